//! What is kept of each object: small records with interned strings, made once when the object arrives.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::pod::{PodKey, PodShape};
use mortise_engine::quantity::Resources;
use mortise_engine::selector::LabelSelector;
use mortise_engine::taint::Taint;

/// Labels or annotations with shared strings.
pub type Map = BTreeMap<Arc<str>, Arc<str>>;

/// Namespace and name. Cluster-scoped objects have an empty namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Namespace; empty when cluster-scoped.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectName {
    /// From parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// Who controls a pod, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Nobody, or a kind that needs no special treatment.
    #[default]
    Other,
    /// An apps/v1 DaemonSet, by UID.
    DaemonSet(Arc<str>),
    /// An apps/v1 StatefulSet, by name.
    StatefulSet(Arc<str>),
    /// An apps/v1 ReplicaSet, by name.
    ReplicaSet(Arc<str>),
    /// A v1 ReplicationController, by name.
    ReplicationController(Arc<str>),
    /// A v1 Node: a mirror (static) pod.
    Node,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not running yet (also when absent or unknown).
    #[default]
    Pending,
    /// Running.
    Running,
    /// Finished well.
    Succeeded,
    /// Finished badly.
    Failed,
}

/// Annotation `karpenter.sh/do-not-disrupt` of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hold {
    /// Absent.
    #[default]
    None,
    /// "true".
    Forever,
    /// A duration from the pod's start, milliseconds.
    For(i64),
    /// Anything else: ignored, and worth an Event; the value as written (cut at 64 characters).
    Invalid(Arc<str>),
}

/// A volume of a pod that names a PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeRef {
    /// Name of the volume in the pod.
    pub volume: Arc<str>,
    /// Name of the PersistentVolumeClaim in the pod's namespace.
    pub claim: Arc<str>,
    /// The claim is made for the pod (a generic ephemeral volume), of this `storageClassName`.
    pub made: Option<Option<Arc<str>>>,
}

/// What is kept of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRecord {
    /// Identity.
    pub key: PodKey,
    /// Needs, without what its volumes add (the cluster state knows the volumes). Shared by equal pods.
    pub shape: Arc<PodShape>,
    /// `spec.nodeName`.
    pub node: Option<Arc<str>>,
    /// Controller.
    pub owner: Owner,
    /// `status.phase`.
    pub phase: Phase,
    /// Creation, Unix milliseconds.
    pub created_unix_ms: i64,
    /// `status.startTime`, Unix milliseconds.
    pub started_unix_ms: Option<i64>,
    /// `metadata.deletionTimestamp`, Unix milliseconds.
    pub deletion_unix_ms: Option<i64>,
    /// `spec.terminationGracePeriodSeconds`.
    pub grace_seconds: Option<i64>,
    /// Condition Ready is True.
    pub ready: bool,
    /// Condition PodScheduled has reason Unschedulable.
    pub unschedulable: bool,
    /// `status.nominatedNodeName` is set.
    pub nominated: bool,
    /// Priority class system-cluster-critical or system-node-critical.
    pub critical: bool,
    /// Tolerates the taint `karpenter.sh/disrupted:NoSchedule`.
    pub tolerates_disrupted: bool,
    /// Refuses nodes of any NodePool (`karpenter.sh/nodepool` DoesNotExist).
    pub refuses_nodepools: bool,
    /// do-not-disrupt annotation.
    pub hold: Hold,
    /// Eviction cost in thousandths, within ±10,000.
    pub eviction_cost_milli: i64,
    /// PersistentVolumeClaims it mounts.
    pub volumes: Box<[VolumeRef]>,
}

impl PodRecord {
    /// Namespace and name.
    pub fn name(&self) -> ObjectName {
        ObjectName { namespace: Arc::clone(&self.key.namespace), name: Arc::clone(&self.key.name) }
    }

    /// Succeeded or Failed: it uses nothing any more.
    pub fn terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Has a deletion timestamp.
    pub fn terminating(&self) -> bool {
        self.deletion_unix_ms.is_some()
    }

    /// Neither terminal nor terminating.
    pub fn active(&self) -> bool {
        !self.terminal() && !self.terminating()
    }

    /// Owned by a DaemonSet.
    pub fn daemon(&self) -> bool {
        matches!(self.owner, Owner::DaemonSet(_))
    }

    /// Waits for capacity that this controller may add (karpenter-algorithms §1.1).
    pub fn provisionable(&self) -> bool {
        self.unschedulable
            && self.node.is_none()
            && !self.nominated
            && !matches!(self.owner, Owner::DaemonSet(_) | Owner::Node)
            && !self.terminal()
    }

    /// Its do-not-disrupt annotation protects it at this time.
    pub fn held(&self, now_unix_ms: i64) -> bool {
        match self.hold {
            Hold::Forever => true,
            Hold::For(ms) => self.started_unix_ms.is_none_or(|start| now_unix_ms < start.saturating_add(ms)),
            Hold::None | Hold::Invalid(_) => false,
        }
    }

    /// Would need another place when its node goes (karpenter-algorithms §5.3).
    pub fn reschedulable(&self) -> bool {
        let lives = self.active() || (matches!(self.owner, Owner::StatefulSet(_)) && !self.terminal());
        lives && !matches!(self.owner, Owner::DaemonSet(_) | Owner::Node)
    }

    /// A drain may evict it now.
    pub fn evictable(&self, now_unix_ms: i64) -> bool {
        self.active() && !self.tolerates_disrupted && self.owner != Owner::Node && !self.held(now_unix_ms)
    }

    /// A drain waits for it: not tolerant of the disruption taint, not mirror, not stuck (over a minute past its
    /// deletion timestamp), not terminal.
    pub fn drainable(&self, now_unix_ms: i64) -> bool {
        let stuck = self.deletion_unix_ms.is_some_and(|at| now_unix_ms > at.saturating_add(60_000));
        !self.terminal() && !self.tolerates_disrupted && self.owner != Owner::Node && !stuck
    }
}

/// One status condition of a Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeCondition {
    /// Type.
    pub kind: Arc<str>,
    /// "True", "False" or "Unknown".
    pub status: Arc<str>,
    /// Reason.
    pub reason: Arc<str>,
    /// `lastTransitionTime`, Unix milliseconds.
    pub since_unix_ms: Option<i64>,
}

/// What is kept of a Node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// Name.
    pub name: Arc<str>,
    /// UID.
    pub uid: Arc<str>,
    /// For optimistic writes. Changes with every write; two records that differ in nothing else are taken as equal.
    pub resource_version: Arc<str>,
    /// `spec.providerID`.
    pub provider_id: Option<Arc<str>>,
    /// Labels.
    pub labels: Map,
    /// Annotations of karpenter.sh, karpenter.k8s.aws, mortise.dev and kwok.x-k8s.io domains; others are not kept.
    pub annotations: Map,
    /// Taints, PreferNoSchedule too.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// `status.capacity`.
    pub capacity: Resources,
    /// `status.allocatable`.
    pub allocatable: Resources,
    /// Conditions, without heartbeats.
    pub conditions: Vec<NodeCondition>,
    /// Finalizers.
    pub finalizers: Vec<Arc<str>>,
    /// Owner NodeClaim names (ownerReferences of kind NodeClaim).
    pub owners: Vec<Arc<str>>,
    /// `status.nodeInfo.bootID`.
    pub boot_id: Arc<str>,
    /// Creation, Unix milliseconds.
    pub created_unix_ms: i64,
    /// Deletion timestamp, Unix milliseconds.
    pub deletion_unix_ms: Option<i64>,
}

impl NodeRecord {
    /// Condition Ready is True.
    pub fn ready(&self) -> bool {
        self.conditions.iter().any(|c| &*c.kind == "Ready" && &*c.status == "True")
    }

    /// Equal in everything but the resource version.
    pub fn same_but_version(&self, other: &Self) -> bool {
        let Self {
            name,
            uid,
            resource_version: _,
            provider_id,
            labels,
            annotations,
            taints,
            unschedulable,
            capacity,
            allocatable,
            conditions,
            finalizers,
            owners,
            boot_id,
            created_unix_ms,
            deletion_unix_ms,
        } = self;
        *name == other.name
            && *uid == other.uid
            && *provider_id == other.provider_id
            && *labels == other.labels
            && *annotations == other.annotations
            && *taints == other.taints
            && *unschedulable == other.unschedulable
            && *capacity == other.capacity
            && *allocatable == other.allocatable
            && *conditions == other.conditions
            && *finalizers == other.finalizers
            && *owners == other.owners
            && *boot_id == other.boot_id
            && *created_unix_ms == other.created_unix_ms
            && *deletion_unix_ms == other.deletion_unix_ms
    }
}

/// What is kept of a DaemonSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonSetRecord {
    /// Namespace and name.
    pub name: ObjectName,
    /// UID.
    pub uid: Arc<str>,
    /// A pod as its template would make it.
    pub template: Arc<PodShape>,
    /// Its pods ask for devices by resource claims.
    pub uses_claims: bool,
}

/// What is kept of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PdbRecord {
    /// Namespace and name.
    pub name: ObjectName,
    /// Which pods of the namespace it covers; `None` covers none.
    pub selector: Option<LabelSelector>,
    /// `status.disruptionsAllowed`.
    pub disruptions_allowed: i64,
    /// `maxUnavailable` is 0 or "0%", or `minAvailable` is "100%": it can never allow an eviction.
    pub never: bool,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`.
    pub unhealthy_always: bool,
}

/// What is kept of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PvcRecord {
    /// Namespace and name.
    pub name: ObjectName,
    /// `spec.volumeName`.
    pub volume: Option<Arc<str>>,
    /// `spec.storageClassName`; absent = the default class is still to be filled in, empty = none is wanted.
    pub class: Option<Arc<str>>,
    /// Annotation `pv.kubernetes.io/bind-completed` is present.
    pub bind_completed: bool,
    /// Phase Lost.
    pub lost: bool,
    /// Has a deletion timestamp.
    pub deleting: bool,
}

/// What is kept of a PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PvRecord {
    /// Name.
    pub name: Arc<str>,
    /// `spec.nodeAffinity.required` terms, keys normalised; empty = from anywhere.
    pub terms: Vec<mortise_engine::pod::Term>,
    /// A part of the node affinity that cannot be expressed.
    pub problem: Option<Arc<str>>,
    /// CSI driver that attaches it, also for volumes written in the form of before CSI; `None` = it is not attached.
    pub driver: Option<Arc<str>>,
    /// Local or hostPath volume.
    pub local: bool,
    /// Has a deletion timestamp.
    pub deleting: bool,
}

/// What is kept of a StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClassRecord {
    /// Name.
    pub name: Arc<str>,
    /// CSI driver of its volumes, also where the provisioner has its name of before CSI; `None` = they are not attached.
    pub driver: Option<Arc<str>>,
    /// Annotated as the default class: its creation, Unix milliseconds.
    pub default_since_unix_ms: Option<i64>,
    /// `volumeBindingMode` is Immediate (also when absent).
    pub immediate: bool,
    /// `allowedTopologies`, keys normalised; empty = anywhere.
    pub terms: Vec<mortise_engine::pod::Term>,
}

/// What is kept of a CSINode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CsiNodeRecord {
    /// Name of the node.
    pub name: Arc<str>,
    /// Attach limits by driver; `None` = no limit.
    pub limits: BTreeMap<Arc<str>, Option<u32>>,
}

/// What is kept of a Namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceRecord {
    /// Name.
    pub name: Arc<str>,
    /// Labels.
    pub labels: Arc<Map>,
}

/// What is kept of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceRecord {
    /// Namespace and name.
    pub name: ObjectName,
    /// Labels that its pods have; empty = it selects none.
    pub selector: Map,
}

/// What is kept of a ReplicaSet, StatefulSet or ReplicationController.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadRecord {
    /// Namespace and name.
    pub name: ObjectName,
    /// Which pods are its own; `None` = that cannot be told.
    pub selector: Option<LabelSelector>,
}

/// `data` and `binaryData` of the policy ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyData {
    /// UID.
    pub uid: Arc<str>,
    /// Resource version.
    pub resource_version: Arc<str>,
    /// `data`.
    pub data: BTreeMap<String, String>,
    /// `binaryData`, decoded.
    pub binary_data: BTreeMap<String, Vec<u8>>,
}

/// What is kept of an object with a pod template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateRecord {
    /// Namespace and name.
    pub name: ObjectName,
    /// `metadata.generation`; PodTemplates of some API servers have none.
    pub generation: Option<i64>,
    /// Number of pods; `None` for a PodTemplate.
    pub replicas: Option<i32>,
    /// What a pod that stands for one of its pods needs: its volumes are left out, its priority is the lowest.
    pub shape: Arc<PodShape>,
}
