//! Reading the state, and the marks that decisions leave on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_api::{EC2NodeClass, NodeClaim, NodePool};
use mortise_engine::node::Node;
use mortise_engine::pod::PodKey;
use mortise_engine::quantity::Resources;

use super::{ClusterState, name_of};
use crate::record::{DaemonSetRecord, NodeRecord, ObjectName, PdbRecord, PodRecord, PolicyData};

/// What a NodePool's nodes add up to. Nodes marked for deletion are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Sum of capacities.
    pub resources: Resources,
    /// Number of nodes, those in flight included.
    pub nodes: i64,
}

impl ClusterState {
    /// NodePools by name.
    pub fn nodepools(&self) -> &BTreeMap<Arc<str>, Arc<NodePool>> {
        &self.nodepools
    }

    /// One NodePool.
    pub fn nodepool(&self, name: &str) -> Option<&Arc<NodePool>> {
        self.nodepools.get(name)
    }

    /// EC2NodeClasses by name.
    pub fn node_classes(&self) -> &BTreeMap<Arc<str>, Arc<EC2NodeClass>> {
        &self.node_classes
    }

    /// One EC2NodeClass.
    pub fn node_class(&self, name: &str) -> Option<&Arc<EC2NodeClass>> {
        self.node_classes.get(name)
    }

    /// Every NodeClaim, in no order that means anything.
    pub fn nodeclaims(&self) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.slots.claims()
    }

    /// One NodeClaim.
    pub fn nodeclaim(&self, name: &str) -> Option<&Arc<NodeClaim>> {
        self.slots.claim(name)
    }

    /// Every Node, in no order that means anything.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeRecord>> {
        self.slots.nodes()
    }

    /// One Node.
    pub fn node(&self, name: &str) -> Option<&Arc<NodeRecord>> {
        self.slots.node(name)
    }

    /// Every Node that carries this provider id.
    pub fn nodes_by_provider(&self, provider_id: &str) -> Vec<Arc<NodeRecord>> {
        self.slots.all_nodes_of_provider(provider_id)
    }

    /// The NodeClaim of a Node.
    pub fn claim_of_node(&self, node: &str) -> Option<&Arc<NodeClaim>> {
        self.slots.of_node(node)?.claim()
    }

    /// The Node of a NodeClaim.
    pub fn node_of_claim(&self, claim: &str) -> Option<&Arc<NodeRecord>> {
        self.slots.of_claim(claim)?.node()
    }

    /// The merged node of a NodeClaim as of the last snapshot, when nothing about it has changed since.
    pub fn built_node(&self, claim: &str) -> Option<&Arc<Node>> {
        self.slots.of_claim(claim)?.built.as_ref()?.as_ref()
    }

    /// One pod that is not terminal.
    pub fn pod(&self, name: &ObjectName) -> Option<&Arc<PodRecord>> {
        self.pods.get(name)
    }

    /// Every pod that is not terminal, in no order that means anything.
    pub fn pods(&self) -> impl Iterator<Item = &Arc<PodRecord>> {
        self.pods.values()
    }

    /// Pods bound to a node that are not terminal, by namespace and name.
    pub fn pods_on(&self, node: &str) -> Vec<Arc<PodRecord>> {
        self.pods_by_node.get(node).map(|pods| pods.values().cloned().collect()).unwrap_or_default()
    }

    /// DaemonSets by namespace and name.
    pub fn daemonset(&mut self, name: &ObjectName) -> Option<&Arc<DaemonSetRecord>> {
        self.daemons.sets().get(name)
    }

    /// One PodDisruptionBudget.
    pub fn pdb(&self, name: &ObjectName) -> Option<&Arc<PdbRecord>> {
        self.pdbs.get(name)
    }

    /// The policy ConfigMap.
    pub fn policies(&self) -> Option<&Arc<PolicyData>> {
        self.policies.as_ref()
    }

    /// Pods that wait for capacity and are promised none that still counts, by namespace and name. While there are any,
    /// the batch window is to be triggered again every ten seconds (§1.2): time alone may change what is possible.
    pub fn provisionable(&mut self, now_unix_ms: i64) -> Vec<Arc<PodRecord>> {
        self.settle_promises(now_unix_ms);
        self.waiting
            .iter()
            .filter(|(name, pod)| !pod.refuses_nodepools && !self.promises.holds(name))
            .map(|(_, pod)| Arc::clone(pod))
            .collect()
    }

    /// The PersistentVolume that a pod's PersistentVolumeClaim is bound to.
    pub fn bound_volume(&self, namespace: &Arc<str>, claim: &Arc<str>) -> Option<Arc<str>> {
        let name = ObjectName { namespace: Arc::clone(namespace), name: Arc::clone(claim) };
        self.pvcs.get(&name)?.volume.clone()
    }

    /// Every pod that waits for capacity, promised or not.
    pub fn waiting(&self) -> impl Iterator<Item = &Arc<PodRecord>> {
        self.waiting.values()
    }

    /// Pods that wait and refuse the nodes of any NodePool.
    pub fn refusing(&self) -> impl Iterator<Item = &PodKey> {
        self.waiting.values().filter(|pod| pod.refuses_nodepools).map(|pod| &pod.key)
    }

    /// What the nodes of every NodePool add up to. NodeClaims not launched yet count as a node without capacity.
    pub fn usage(&mut self, now_unix_ms: i64) -> BTreeMap<Arc<str>, Usage> {
        self.build_nodes(now_unix_ms);
        let mut usage: BTreeMap<Arc<str>, Usage> = BTreeMap::new();
        for node in self.slots.iter().filter_map(|slot| slot.built.as_ref()?.as_ref()) {
            let Some(pool) = node.nodepool.as_ref().filter(|_| !node.deleting) else { continue };
            let entry = usage.entry(Arc::clone(pool)).or_default();
            entry.resources = entry.resources.saturating_add(&node.capacity);
            entry.nodes += 1;
        }
        usage
    }

    /// NodeClaims that name a NodePool, by label.
    pub fn claims_of_pool(&self, pool: &str) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.nodeclaims().filter(move |claim| {
            let labels = claim.metadata.labels.as_ref();
            labels.and_then(|l| l.get(mortise_api::labels::NODEPOOL)).is_some_and(|name| name == pool)
        })
    }

    /// NodeClaims that use an EC2NodeClass, by reference.
    pub fn claims_of_class(&self, class: &str) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.nodeclaims()
            .filter(move |claim| claim.spec.node_class_ref.is_ec2() && claim.spec.node_class_ref.name == class)
    }

    /// A pod was promised to this node (by NodeClaim or Node name), and the promise is not over.
    pub fn nominated(&self, name: &str, now_unix_ms: i64) -> bool {
        self.slots.named(name).is_some_and(|slot| now_unix_ms < slot.nominated_until)
    }

    /// Marks the node of a NodeClaim (or of a Node without one) as chosen for deletion: it takes no pods, its capacity
    /// counts no more, its pods need another place. Returns whether there is such a node.
    pub fn mark_for_deletion(&mut self, name: &str) -> bool {
        self.set_mark(name, true)
    }

    /// Takes the mark back.
    pub fn unmark(&mut self, name: &str) -> bool {
        self.set_mark(name, false)
    }

    /// Marked for deletion, or being deleted.
    pub fn deleting(&self, name: &str) -> bool {
        self.slots.named(name).is_some_and(super::slots::Slot::deleting)
    }

    /// The last pod event seen on the node of a NodeClaim in this process, Unix milliseconds.
    pub fn last_pod_event(&self, claim: &str) -> Option<i64> {
        self.slots.of_claim(claim)?.last_pod_event
    }

    fn set_mark(&mut self, name: &str, mark: bool) -> bool {
        let Some(slot) = self.slots.named_mut(name) else { return false };
        slot.marked = mark;
        slot.built = None;
        let claim = slot.claim().map(|claim| name_of(&claim.metadata).name);
        if mark {
            // What was promised there needs another place.
            self.promises.forget_target(claim.as_deref().unwrap_or(name));
        }
        true
    }
}
