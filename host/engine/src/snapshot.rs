//! Everything one round may look at. Immutable and cheap to clone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::node::Node;
use crate::nodepool::NodePool;
use crate::pod::{Pod, PodShape};

/// Labels of an object.
pub type Labels = BTreeMap<Arc<str>, Arc<str>>;

/// The world at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Time of the snapshot, Unix milliseconds.
    pub now_unix_ms: i64,
    /// NodePools in any order.
    pub nodepools: Vec<Arc<NodePool>>,
    /// Nodes, by name. Copy-on-write by node.
    pub nodes: BTreeMap<Arc<str>, Arc<Node>>,
    /// Provisionable pods (unschedulable, unbound, not nominated).
    pub pending: Vec<Pod>,
    /// Pods of DaemonSets as they would be on a new node: shape per DaemonSet.
    pub daemons: Vec<Arc<PodShape>>,
    /// Labels of every namespace, for namespace selectors.
    pub namespaces: BTreeMap<Arc<str>, Arc<Labels>>,
    /// Devices of dynamic resource allocation.
    pub devices: Arc<crate::device::Cluster>,
}

/// How a round is to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// `PREFERENCE_POLICY=Ignore`: preferences are dropped from the start.
    pub ignore_preferences: bool,
    /// `MIN_VALUES_POLICY=BestEffort`.
    pub min_values_best_effort: bool,
    /// Instance types kept on a claim (600).
    pub max_instance_types: usize,
    /// Fill reasons in full.
    pub explain: bool,
    /// Seed of the round, for policies.
    pub seed: u64,
    /// Number of the round, for policies.
    pub round: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ignore_preferences: false,
            min_values_best_effort: false,
            max_instance_types: 600,
            explain: false,
            seed: 0,
            round: 0,
        }
    }
}
