//! Watches of everything the controller looks at, merged into one bounded channel of small records.
//!
//! Each kind is listed consistently in pages and then watched from there; a lost watch resumes where it stopped, an
//! expired one (410) lists again and replaces the kind's whole content, so that deletions missed meanwhile are seen.
//! Pages rather than streaming lists: a streamed list may be served from an old cache, and a NodeClaim that is not
//! seen would be launched twice.

mod stream;
mod tolerant;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::Client;
use mortise_api::{EC2NodeClass, NodeClaim, NodePool};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::record::{
    CsiNodeRecord, DaemonSetRecord, NamespaceRecord, NodeRecord, ObjectName, PdbRecord, PodRecord, PolicyData,
    PvRecord, PvcRecord, ServiceRecord, StorageClassRecord, WorkloadRecord,
};

pub(crate) use tolerant::Tolerant;

/// Kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Pods that are not terminal.
    Pod,
    /// Nodes.
    Node,
    /// NodePools.
    NodePool,
    /// NodeClaims.
    NodeClaim,
    /// EC2NodeClasses.
    NodeClass,
    /// DaemonSets.
    DaemonSet,
    /// PodDisruptionBudgets.
    Pdb,
    /// PersistentVolumeClaims.
    Pvc,
    /// PersistentVolumes.
    Pv,
    /// StorageClasses.
    StorageClass,
    /// CSINodes.
    CsiNode,
    /// Namespaces.
    Namespace,
    /// Services; only for default topology spread.
    Service,
    /// ReplicaSets; only for default topology spread.
    ReplicaSet,
    /// StatefulSets; only for default topology spread.
    StatefulSet,
    /// ReplicationControllers; only for default topology spread.
    ReplicationController,
    /// The policy ConfigMap.
    Policies,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Pod,
        Self::Node,
        Self::NodePool,
        Self::NodeClaim,
        Self::NodeClass,
        Self::DaemonSet,
        Self::Pdb,
        Self::Pvc,
        Self::Pv,
        Self::StorageClass,
        Self::CsiNode,
        Self::Namespace,
        Self::Service,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::ReplicationController,
        Self::Policies,
    ];

    /// Name of the kind in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Node => "Node",
            Self::NodePool => "NodePool",
            Self::NodeClaim => "NodeClaim",
            Self::NodeClass => "EC2NodeClass",
            Self::DaemonSet => "DaemonSet",
            Self::Pdb => "PodDisruptionBudget",
            Self::Pvc => "PersistentVolumeClaim",
            Self::Pv => "PersistentVolume",
            Self::StorageClass => "StorageClass",
            Self::CsiNode => "CSINode",
            Self::Namespace => "Namespace",
            Self::Service => "Service",
            Self::ReplicaSet => "ReplicaSet",
            Self::StatefulSet => "StatefulSet",
            Self::ReplicationController => "ReplicationController",
            Self::Policies => "ConfigMap",
        }
    }
}

/// What happened to one kind.
#[derive(Clone, Debug)]
pub enum Delta<T> {
    /// Added or changed.
    Applied(Arc<T>),
    /// Gone.
    Deleted(ObjectName),
    /// Listed anew: this is all there is.
    Replaced {
        /// Every object that could be read.
        objects: Vec<Arc<T>>,
        /// Objects that exist and could not be read, and why; what was known of them stays.
        undecodable: Vec<(ObjectName, Arc<str>)>,
    },
    /// Changed into something that cannot be read; what was known of it stays.
    Undecodable {
        /// Which.
        name: ObjectName,
        /// Why.
        message: Arc<str>,
    },
}

impl<T> Delta<T> {
    /// A list that could be read throughout.
    pub fn replaced(objects: impl IntoIterator<Item = T>) -> Self {
        Self::Replaced { objects: objects.into_iter().map(Arc::new).collect(), undecodable: Vec::new() }
    }
}

/// One event of one kind.
#[derive(Clone, Debug)]
pub enum Event {
    /// Pods.
    Pod(Delta<PodRecord>),
    /// Nodes.
    Node(Delta<NodeRecord>),
    /// NodePools.
    NodePool(Delta<NodePool>),
    /// NodeClaims.
    NodeClaim(Delta<NodeClaim>),
    /// EC2NodeClasses.
    NodeClass(Delta<EC2NodeClass>),
    /// DaemonSets.
    DaemonSet(Delta<DaemonSetRecord>),
    /// PodDisruptionBudgets.
    Pdb(Delta<PdbRecord>),
    /// PersistentVolumeClaims.
    Pvc(Delta<PvcRecord>),
    /// PersistentVolumes.
    Pv(Delta<PvRecord>),
    /// StorageClasses.
    StorageClass(Delta<StorageClassRecord>),
    /// CSINodes.
    CsiNode(Delta<CsiNodeRecord>),
    /// Namespaces.
    Namespace(Delta<NamespaceRecord>),
    /// Services.
    Service(Delta<ServiceRecord>),
    /// ReplicaSets.
    ReplicaSet(Delta<WorkloadRecord>),
    /// StatefulSets.
    StatefulSet(Delta<WorkloadRecord>),
    /// ReplicationControllers.
    ReplicationController(Delta<WorkloadRecord>),
    /// The policy ConfigMap.
    Policies(Delta<PolicyData>),
}

/// What to watch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace and name of the policy ConfigMap; `None` = not watched (and counted as listed).
    pub policies: Option<(String, String)>,
    /// Watch Services and the owners of pods, which default topology spread needs; otherwise they count as listed.
    pub workloads: bool,
    /// Objects per page of a list. 500 is what client-go asks for.
    pub page_size: u32,
    /// Events that may wait for the reader before the watches pause.
    pub buffer: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { policies: None, workloads: false, page_size: 500, buffer: 1024 }
    }
}

/// Running watches. Dropping it stops them.
#[derive(Debug)]
pub struct Watches {
    relist: BTreeMap<Kind, watch::Sender<u64>>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Starts every watch. Events arrive in order within a kind; there is no order between kinds.
    pub fn start(client: &Client, options: &Options) -> (Self, mpsc::Receiver<Event>) {
        let (events, receiver) = mpsc::channel(options.buffer.max(1));
        let mut tasks = JoinSet::new();
        let mut relist = BTreeMap::new();
        for kind in Kind::ALL {
            let (sender, again) = watch::channel(0);
            relist.insert(kind, sender);
            stream::spawn(kind, client, options, events.clone(), again, &mut tasks);
        }
        (Self { relist, _tasks: tasks }, receiver)
    }

    /// Lists these kinds anew, consistently: a new leader does it for NodeClaims and Nodes, so that it cannot miss what
    /// the old one created last. The answer is a [`Delta::Replaced`] per kind.
    pub fn relist(&self, kinds: &[Kind]) {
        for sender in kinds.iter().filter_map(|kind| self.relist.get(kind)) {
            sender.send_modify(|n| *n = n.wrapping_add(1));
        }
    }
}

#[cfg(test)]
mod tests;
