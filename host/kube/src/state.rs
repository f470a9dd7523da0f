//! The cluster as last seen, kept up event by event, and the snapshot that decisions are made on.
//!
//! Nodes and NodeClaims are halves of one *slot*, joined by provider id. Pods are kept per node name, whether or not the
//! node is known yet, so the order in which kinds arrive does not matter. A slot is rebuilt for the engine only when
//! something about it changed: sums are taken then, over the pods of that one node, and cannot drift.

mod access;
mod attachments;
mod build;
mod change;
mod daemons;
mod default_spread;
mod eviction;
mod pods;
mod pools;
mod promise;
mod shape;
mod slots;
mod volumes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use mortise_api::{EC2NodeClass, NodePool};
use mortise_engine::catalog::Catalog;
use mortise_engine::nodepool as engine_pool;
use mortise_engine::pod::{Pod, PodShape};
use mortise_engine::snapshot::Snapshot;

use crate::convert::{self, Refers};
use crate::intern::{Interner, Strings};
use crate::record::{
    CsiNodeRecord, DaemonSetRecord, NamespaceRecord, ObjectName, PdbRecord, PodRecord, PolicyData, PvRecord, PvcRecord,
    StorageClassRecord,
};
use crate::watch::{Delta, Event, Kind};

pub use access::Usage;
pub use change::Change;
pub use eviction::Eviction;

/// Pods of one node (or of none), by namespace and name.
type PodsByName = BTreeMap<ObjectName, Arc<PodRecord>>;

/// The cluster as last seen.
#[derive(Debug, Default)]
pub struct ClusterState {
    listed: BTreeSet<Kind>,
    pods: HashMap<ObjectName, Arc<PodRecord>>,
    pods_by_node: HashMap<Arc<str>, PodsByName>,
    /// Unschedulable pods that want capacity.
    waiting: PodsByName,
    slots: slots::Slots,
    promises: promise::Promises,
    nodepools: BTreeMap<Arc<str>, Arc<NodePool>>,
    node_classes: BTreeMap<Arc<str>, Arc<EC2NodeClass>>,
    daemons: daemons::Daemons,
    pdbs: BTreeMap<ObjectName, Arc<PdbRecord>>,
    /// Namespaces whose budgets changed since nodes were last built.
    pdbs_changed: BTreeSet<Arc<str>>,
    pvcs: BTreeMap<ObjectName, Arc<PvcRecord>>,
    pvs: BTreeMap<Arc<str>, Arc<PvRecord>>,
    storage_classes: BTreeMap<Arc<str>, Arc<StorageClassRecord>>,
    /// Something about volumes changed since nodes were last built.
    volumes_changed: bool,
    claim_users: attachments::ClaimUsers,
    csi_nodes: BTreeMap<Arc<str>, Arc<CsiNodeRecord>>,
    namespaces: BTreeMap<Arc<str>, Arc<NamespaceRecord>>,
    default_spread: default_spread::DefaultSpread,
    policies: Option<Arc<PolicyData>>,
    strings: Strings,
    shapes: Interner<PodShape>,
    engine_pools: BTreeMap<Arc<str>, CachedPool>,
    static_capacity: bool,
}

/// An engine NodePool and what it was made from.
#[derive(Debug)]
struct CachedPool {
    from: Arc<NodePool>,
    class: Option<Arc<EC2NodeClass>>,
    catalog: Option<Arc<Catalog>>,
    built: Arc<engine_pool::NodePool>,
}

impl ClusterState {
    /// An empty cluster.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether pools with `spec.replicas` may be used (feature gate StaticCapacity); off from the start.
    pub fn set_static_capacity(&mut self, on: bool) {
        self.static_capacity = on;
        self.engine_pools.clear();
    }

    /// Every kind has been listed at least once.
    pub fn synced(&self) -> bool {
        self.listed.len() == Kind::ALL.len()
    }

    /// Kinds not listed yet.
    pub fn unsynced(&self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| !self.listed.contains(kind)).collect()
    }

    /// Takes in one event. `now_unix_ms` dates pod events. Events that change nothing give no changes.
    pub fn apply(&mut self, event: Event, now_unix_ms: i64) -> Vec<Change> {
        let mut changes = Vec::new();
        let out = &mut changes;
        match event {
            Event::Pod(delta) => self.apply_pods(delta, now_unix_ms, out),
            Event::Node(delta) => self.apply_nodes(delta, out),
            Event::NodeClaim(delta) => self.apply_claims(delta, out),
            Event::NodePool(delta) => {
                let name = |pool: &NodePool| name_of(&pool.metadata);
                let same = |a: &NodePool, b: &NodePool| same_version(&a.metadata, &b.metadata) || a == b;
                let changed = self.keyed(Kind::NodePool, delta, |s| &mut s.nodepools, name, same, |n| n.name, out);
                out.extend(changed.into_iter().map(Change::NodePool));
                let pools = &self.nodepools;
                self.engine_pools.retain(|name, _| pools.contains_key(name));
            }
            Event::NodeClass(delta) => {
                let name = |class: &EC2NodeClass| name_of(&class.metadata);
                let same = |a: &EC2NodeClass, b: &EC2NodeClass| same_version(&a.metadata, &b.metadata) || a == b;
                let changed = self.keyed(Kind::NodeClass, delta, |s| &mut s.node_classes, name, same, |n| n.name, out);
                out.extend(changed.into_iter().map(Change::NodeClass));
            }
            Event::DaemonSet(delta) => {
                let name = |ds: &DaemonSetRecord| ds.name.clone();
                let changed = self.keyed(Kind::DaemonSet, delta, |s| s.daemons.sets(), name, PartialEq::eq, |n| n, out);
                out.extend(changed.into_iter().map(Change::DaemonSet));
            }
            Event::Pdb(delta) => {
                let name = |pdb: &PdbRecord| pdb.name.clone();
                let changed = self.keyed(Kind::Pdb, delta, |s| &mut s.pdbs, name, PartialEq::eq, |n| n, out);
                self.pdbs_changed.extend(changed.iter().map(|n| Arc::clone(&n.namespace)));
                out.extend(changed.into_iter().map(Change::Pdb));
            }
            Event::Pvc(delta) => {
                let name = |pvc: &PvcRecord| pvc.name.clone();
                let changed = self.keyed(Kind::Pvc, delta, |s| &mut s.pvcs, name, PartialEq::eq, |n| n, out);
                self.volumes_touched(!changed.is_empty(), out);
            }
            Event::Pv(delta) => {
                let name = |pv: &PvRecord| ObjectName::new("", Arc::clone(&pv.name));
                let changed = self.keyed(Kind::Pv, delta, |s| &mut s.pvs, name, PartialEq::eq, |n| n.name, out);
                self.volumes_touched(!changed.is_empty(), out);
            }
            Event::StorageClass(delta) => {
                let name = |class: &StorageClassRecord| ObjectName::new("", Arc::clone(&class.name));
                let kind = Kind::StorageClass;
                let changed = self.keyed(kind, delta, |s| &mut s.storage_classes, name, PartialEq::eq, |n| n.name, out);
                self.volumes_touched(!changed.is_empty(), out);
            }
            Event::CsiNode(delta) => {
                let name = |node: &CsiNodeRecord| ObjectName::new("", Arc::clone(&node.name));
                let changed =
                    self.keyed(Kind::CsiNode, delta, |s| &mut s.csi_nodes, name, PartialEq::eq, |n| n.name, out);
                for node in changed {
                    self.touch_node(&node);
                }
            }
            Event::Namespace(delta) => {
                let name = |n: &NamespaceRecord| ObjectName::new("", Arc::clone(&n.name));
                self.keyed(Kind::Namespace, delta, |s| &mut s.namespaces, name, PartialEq::eq, |n| n.name, out);
            }
            Event::Service(delta) => self.apply_services(delta, out),
            Event::ReplicaSet(delta) => self.apply_workloads(Kind::ReplicaSet, delta, out),
            Event::StatefulSet(delta) => self.apply_workloads(Kind::StatefulSet, delta, out),
            Event::ReplicationController(delta) => self.apply_workloads(Kind::ReplicationController, delta, out),
            Event::Policies(delta) => self.apply_policies(delta, out),
        }
        changes
    }

    /// The world at this moment, for one decision. Only nodes that changed are built anew. `catalogs` by EC2NodeClass.
    pub fn snapshot(&mut self, now_unix_ms: i64, catalogs: &BTreeMap<Arc<str>, Arc<Catalog>>) -> Snapshot {
        self.settle_promises(now_unix_ms);
        self.build_nodes(now_unix_ms);
        Snapshot {
            now_unix_ms,
            nodepools: self.engine_pools(catalogs),
            nodes: self.slots.built(),
            pending: self.pending(now_unix_ms),
            daemons: self.daemons.shapes(&mut self.shapes),
            namespaces: self.namespaces.iter().map(|(name, n)| (Arc::clone(name), Arc::clone(&n.labels))).collect(),
            devices: Arc::default(),
        }
    }

    /// Pods that wait for capacity and are promised none.
    fn pending(&mut self, now_unix_ms: i64) -> Vec<Pod> {
        let waiting = self.provisionable(now_unix_ms);
        let mut shapes = shape::Shared::new(std::mem::take(&mut self.shapes));
        let pending = waiting
            .iter()
            .map(|pod| Pod {
                key: pod.key.clone(),
                shape: self.full_shape(pod, &mut shapes),
                created_unix_ms: pod.created_unix_ms,
                buffer: None,
            })
            .collect();
        self.shapes = shapes.into_inner();
        pending
    }

    fn engine_pools(&mut self, catalogs: &BTreeMap<Arc<str>, Arc<Catalog>>) -> Vec<Arc<engine_pool::NodePool>> {
        let mut pools = Vec::with_capacity(self.nodepools.len());
        for (name, pool) in &self.nodepools {
            let class_name = pool.spec.template.spec.node_class_ref.name.as_str();
            let class = self.node_classes.get(class_name);
            let catalog = catalogs.get(class_name);
            let cached = self.engine_pools.get(name).filter(|c| {
                Arc::ptr_eq(&c.from, pool) && same_arc(c.class.as_ref(), class) && same_arc(c.catalog.as_ref(), catalog)
            });
            if let Some(cached) = cached {
                pools.push(Arc::clone(&cached.built));
                continue;
            }
            let refers = Refers { class: class.map(AsRef::as_ref), catalog, static_capacity: self.static_capacity };
            let built = Arc::new(convert::nodepool(&mut self.strings, pool, refers));
            pools.push(Arc::clone(&built));
            let entry = CachedPool { from: Arc::clone(pool), class: class.cloned(), catalog: catalog.cloned(), built };
            self.engine_pools.insert(Arc::clone(name), entry);
        }
        pools
    }

    fn apply_policies(&mut self, delta: Delta<PolicyData>, out: &mut Vec<Change>) {
        let next = match delta {
            Delta::Applied(data) => Some(data),
            Delta::Deleted(_) => None,
            Delta::Replaced { objects, .. } => {
                self.note_listed(Kind::Policies, out);
                objects.into_iter().next()
            }
            Delta::Undecodable { name, message } => {
                out.push(Change::Undecodable { kind: Kind::Policies, name, message });
                return;
            }
        };
        let content = |data: &Option<Arc<PolicyData>>| {
            data.as_ref().map(|d| (Arc::clone(&d.uid), d.data.clone(), d.binary_data.clone()))
        };
        if content(&next) != content(&self.policies) {
            out.push(Change::Policies(next.clone()));
        }
        self.policies = next;
    }

    fn volumes_touched(&mut self, touched: bool, out: &mut Vec<Change>) {
        if touched {
            self.volumes_changed = true;
            out.push(Change::Storage);
        }
    }

    fn note_listed(&mut self, kind: Kind, out: &mut Vec<Change>) {
        self.listed.insert(kind);
        out.push(Change::Listed(kind));
    }

    /// Takes a delta into a map of its own and returns the keys whose object changed.
    #[expect(clippy::too_many_arguments, reason = "one generic body instead of twelve copies")]
    fn keyed<K: Ord + Clone, T>(
        &mut self,
        kind: Kind,
        delta: Delta<T>,
        store: impl Fn(&mut Self) -> &mut BTreeMap<K, Arc<T>>,
        name: impl Fn(&T) -> ObjectName,
        same: impl Fn(&T, &T) -> bool,
        key: impl Fn(ObjectName) -> K,
        out: &mut Vec<Change>,
    ) -> Vec<K> {
        let mut changed = Vec::new();
        let put = |map: &mut BTreeMap<K, Arc<T>>, object: Arc<T>, changed: &mut Vec<K>| {
            let k = key(name(&object));
            if !map.get(&k).is_some_and(|old| same(old, &object)) {
                map.insert(k.clone(), object);
                changed.push(k);
            }
        };
        match delta {
            Delta::Applied(object) => put(store(self), object, &mut changed),
            Delta::Deleted(gone) => {
                let k = key(gone);
                if store(self).remove(&k).is_some() {
                    changed.push(k);
                }
            }
            Delta::Replaced { objects, undecodable } => {
                let mut keep: BTreeSet<K> = objects.iter().map(|o| key(name(o))).collect();
                keep.extend(undecodable.iter().map(|(n, _)| key(n.clone())));
                let map = store(self);
                map.retain(|k, _| {
                    let stays = keep.contains(k);
                    if !stays {
                        changed.push(k.clone());
                    }
                    stays
                });
                for object in objects {
                    put(map, object, &mut changed);
                }
                change::undecodable(kind, undecodable, out);
                self.note_listed(kind, out);
            }
            Delta::Undecodable { name, message } => out.push(Change::Undecodable { kind, name, message }),
        }
        changed
    }
}

/// Name of a cluster-scoped object.
fn name_of(meta: &ObjectMeta) -> ObjectName {
    ObjectName::new("", meta.name.as_deref().unwrap_or_default())
}

/// The same version of the same object, as far as the API server says.
fn same_version(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.resource_version.is_some() && a.resource_version == b.resource_version && a.uid == b.uid
}

fn same_arc<T>(a: Option<&Arc<T>>, b: Option<&Arc<T>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
