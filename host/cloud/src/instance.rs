//! Machines as the provider reports them.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::CapacityType;
use mortise_engine::quantity::Resources;

/// Life of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum InstanceState {
    /// Starting.
    Pending,
    /// Running.
    Running,
    /// Stopping or stopped: exists, costs storage, is no node.
    Stopped,
    /// On its way out; termination need not be asked for again.
    ShuttingDown,
    /// Gone; still listed for a while.
    Terminated,
}

impl InstanceState {
    /// Shutting down or terminated.
    #[must_use]
    pub fn is_gone(self) -> bool {
        matches!(self, Self::ShuttingDown | Self::Terminated)
    }
}

/// A machine with what links it to its NodeClaim.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Instance {
    /// `spec.providerID` of its Node: `aws:///<zone>/<instance id>`.
    pub provider_id: Arc<str>,
    /// `node.kubernetes.io/instance-type`.
    pub instance_type: Arc<str>,
    /// Zone.
    pub zone: Arc<str>,
    /// Market.
    pub capacity_type: CapacityType,
    /// Image it runs.
    pub image_id: Arc<str>,
    /// Name of its NodeClaim, from the tag it was launched with (or tagged with later, if Karpenter launched it).
    pub claim_name: Option<Arc<str>>,
    /// UID of its NodeClaim, from the tag it was launched with. None when Karpenter launched it.
    pub claim_uid: Option<Arc<str>>,
    /// NodePool, from its tag.
    pub nodepool: Option<Arc<str>>,
    /// Node class, from its tag.
    pub node_class: Option<Arc<str>>,
    /// Labels for the NodeClaim that follow from type, zone and market. Complete from `launch` and `adopt`, which know
    /// the class; `get` and `list` give only what the instance itself shows.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Annotations for the NodeClaim (instance profile used, …). From `launch` and `adopt` only.
    pub annotations: BTreeMap<Arc<str>, Arc<str>>,
    /// Capacity. From `launch` and `adopt` only; zero otherwise.
    pub capacity: Resources,
    /// Allocatable. From `launch` and `adopt` only; zero otherwise.
    pub allocatable: Resources,
    /// Launch time, Unix milliseconds.
    pub launched_at_unix_ms: i64,
    /// State.
    pub state: InstanceState,
    /// Subnet, when known.
    pub subnet: Option<Arc<str>>,
    /// Security groups, sorted.
    pub security_groups: Vec<Arc<str>>,
    /// Every tag on it.
    pub tags: BTreeMap<Arc<str>, Arc<str>>,
}
