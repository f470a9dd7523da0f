//! Pods as the scheduler sees them. Pods with equal needs share one [`PodShape`], so that a thousand replicas cost one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::quantity::Resources;
use crate::requirement::Requirement;
use crate::taint::Toleration;

/// Identity of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct PodKey {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// UID.
    pub uid: Arc<str>,
}

/// A term: all requirements must hold.
pub type Term = Vec<Requirement>;

/// Everything placement depends on, besides identity and age. Equal shapes are one allocation (the Kubernetes edge
/// interns them), which is what folds pods into groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct PodShape {
    /// Namespace.
    pub namespace: Arc<str>,
    /// Labels (topology and affinity selectors look at them; policies may ask for some).
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Effective requests: containers, init containers, sidecars, overhead, pod-level resources, in-place resize; `pods` = 1.
    pub requests: Resources,
    /// `spec.nodeSelector`, keys normalised.
    pub node_selector: BTreeMap<Arc<str>, Arc<str>>,
    /// Required node affinity terms: one of them must hold; empty = no constraint. Tried in order (relaxed one by one).
    pub required_affinity: Vec<Term>,
    /// Preferred node affinity, heaviest first: weight and term.
    pub preferred_affinity: Vec<(i32, Term)>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// `spec.priority`.
    pub priority: i32,
    /// Zones etc. that the pod's volumes allow: alternatives, one of which must hold; empty = no constraint.
    pub volume_alternatives: Vec<Term>,
    /// Constraints that are present and that this version does not act on. A pod with any stays pending with them as
    /// the reason: nothing is silently ignored.
    pub unsupported: Vec<Arc<str>>,
}

/// A pod to be placed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pod {
    /// Identity.
    pub key: PodKey,
    /// Needs.
    pub shape: Arc<PodShape>,
    /// `metadata.creationTimestamp`, Unix milliseconds.
    pub created_unix_ms: i64,
}
