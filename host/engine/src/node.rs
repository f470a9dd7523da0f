//! Existing and in-flight nodes: a Node, a NodeClaim, or both merged by provider id.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pod::PodKey;
use crate::quantity::Resources;
use crate::taint::Taint;

/// A node that exists or is on its way. The Kubernetes edge merges the Node and its NodeClaim into one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Node {
    /// NodeClaim name until registered, then the node's name; unmanaged nodes have their node name.
    pub name: Arc<str>,
    /// Name of the Node object, once there is one.
    pub node_name: Option<Arc<str>>,
    /// Name of the NodeClaim, when managed.
    pub node_claim: Option<Arc<str>>,
    /// Name of the NodePool, when managed by one.
    pub nodepool: Option<Arc<str>>,
    /// Provider id, once known.
    pub provider_id: Option<Arc<str>>,
    /// Labels: the NodeClaim's until registered, then the Node's. For a claim that is not launched yet these are the
    /// values its requirements pin down.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// For a claim that is not launched yet: its requirements, which pods placed on it must be compatible with. Empty
    /// once labels are final.
    pub requirements: Vec<crate::requirement::Requirement>,
    /// Taints that count: startup and ephemeral taints are hidden while not initialised.
    pub taints: Vec<Taint>,
    /// Capacity, charged to the NodePool's limits.
    pub capacity: Resources,
    /// Allocatable.
    pub allocatable: Resources,
    /// Sum of the requests of the pods on it (and promised to it by an unlaunched claim's own `resources.requests`,
    /// less DaemonSets' share).
    pub used: Resources,
    /// Part of `used` that belongs to DaemonSet pods.
    pub daemon_used: Resources,
    /// Pods bound to it that would have to move when it goes: neither DaemonSet-owned, nor mirror, nor terminal.
    pub pods: Vec<NodePod>,
    /// Its other pods that have not ended (DaemonSet-owned, mirror): they count for topology, host ports and attachments.
    pub fixed_pods: Vec<Arc<crate::pod::PodShape>>,
    /// CSI attach limits by driver, as its CSINode says. A driver that is not here is bounded by its instance type, and
    /// is unbounded if that says nothing either. `None` = the driver is there and has no limit.
    pub volume_limits: BTreeMap<Arc<str>, Option<u32>>,
    /// Pods that stand for CapacityBuffers and were last placed here: the node is not empty while there are any.
    pub buffer_pods: u32,
    /// Further pods (DaemonSet-owned, mirror) that forbid a voluntary disruption of the node: identity and why, in words
    /// ("has the do-not-disrupt annotation", "its PodDisruptionBudget web allows no eviction").
    pub blocking_pods: Vec<(PodKey, Arc<str>)>,
    /// Condition Launched is True.
    pub launched: bool,
    /// Label `karpenter.sh/registered`; unmanaged nodes count as registered.
    pub registered: bool,
    /// Label `karpenter.sh/initialized`; unmanaged nodes count as initialised.
    pub initialized: bool,
    /// Ready condition of the Node is True.
    pub ready: bool,
    /// Being deleted, or chosen for deletion: it takes no pods and its pods need another place.
    pub deleting: bool,
    /// NodeClaim condition InstanceTerminating is True: no longer counted in its NodePool's budget total.
    pub instance_terminating: bool,
    /// Nominated for a pending pod until this time, Unix milliseconds.
    pub nominated_until_unix_ms: i64,
    /// Annotation `karpenter.sh/do-not-disrupt` = "true" on the Node or NodeClaim.
    pub do_not_disrupt: bool,
    /// NodeClaim condition Consolidatable is True.
    pub consolidatable: bool,
    /// Creation of the NodeClaim (or Node), Unix milliseconds.
    pub created_unix_ms: i64,
    /// `status.lastPodEventTime` of the NodeClaim, else its Initialized time, Unix milliseconds.
    pub last_pod_event_unix_ms: Option<i64>,
}

/// A pod on a node, as far as disruption must know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NodePod {
    /// Identity.
    pub key: PodKey,
    /// Needs, for placing it elsewhere.
    pub shape: Arc<crate::pod::PodShape>,
    /// Active do-not-disrupt annotation, already judged against the time of the snapshot.
    pub do_not_disrupt: bool,
    /// A PodDisruptionBudget allows no eviction of it now: its name.
    pub blocked_by_pdb: Option<Arc<str>>,
    /// The PodDisruptionBudget can never allow an eviction (maxUnavailable 0, minAvailable 100%, or two budgets match):
    /// no capacity is prepared ahead for such a pod while its node is being deleted.
    pub fully_blocked: bool,
    /// Is terminating.
    pub terminating: bool,
    /// Owned by a StatefulSet: it comes back under the same name, so it needs another place even while terminating.
    pub stateful: bool,
    /// Eviction cost in thousandths (karpenter-algorithms.md §5.5), clamped to ±10,000.
    pub eviction_cost_milli: i64,
}
