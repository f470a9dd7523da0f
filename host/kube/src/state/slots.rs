//! Node and NodeClaim as halves of one slot, joined by provider id (karpenter-algorithms §2.2).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mortise_api::NodeClaim;
use mortise_engine::node::Node;

use super::{Change, ClusterState, change, name_of};
use crate::record::NodeRecord;
use crate::watch::{Delta, Kind};

/// What a slot is found by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// Provider id of either half.
    Provider(Arc<str>),
    /// A Node without one.
    Node(Arc<str>),
    /// A NodeClaim without one.
    Claim(Arc<str>),
}

/// A node that exists or is on its way.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Nodes with the slot's key, newest first; one but for odd clusters. Only the first counts.
    nodes: Vec<Arc<NodeRecord>>,
    /// NodeClaims with the slot's key, newest first.
    claims: Vec<Arc<NodeClaim>>,
    pub(super) nominated_until: i64,
    pub(super) marked: bool,
    pub(super) last_pod_event: Option<i64>,
    /// As the engine sees it; `None` within when it is not to be seen.
    pub(super) built: Option<Option<Arc<Node>>>,
    /// The built node is true until this time.
    pub(super) valid_until: i64,
}

impl Slot {
    pub(super) fn node(&self) -> Option<&Arc<NodeRecord>> {
        self.nodes.first()
    }

    pub(super) fn claim(&self) -> Option<&Arc<NodeClaim>> {
        self.claims.first()
    }

    fn empty(&self) -> bool {
        self.nodes.is_empty() && self.claims.is_empty()
    }
}

/// All slots, found by Node name, NodeClaim name or provider id.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: BTreeMap<Key, Slot>,
    by_node: HashMap<Arc<str>, Key>,
    by_claim: HashMap<Arc<str>, Key>,
}

/// The newest first; names decide between equals, so that the order of arrival does not.
fn put_half<T>(halves: &mut Vec<Arc<T>>, half: Arc<T>, rank: impl Fn(&T) -> (std::cmp::Reverse<i64>, Arc<str>)) {
    halves.retain(|other| rank(other).1 != rank(&half).1);
    halves.push(half);
    halves.sort_by_cached_key(|h| rank(h));
}

fn node_rank(node: &NodeRecord) -> (std::cmp::Reverse<i64>, Arc<str>) {
    (std::cmp::Reverse(node.created_unix_ms), Arc::clone(&node.name))
}

fn claim_rank(claim: &NodeClaim) -> (std::cmp::Reverse<i64>, Arc<str>) {
    let created = claim.metadata.creation_timestamp.as_ref().map(crate::convert::unix_ms).unwrap_or_default();
    (std::cmp::Reverse(created), name_of(&claim.metadata).name)
}

fn claim_key(claim: &NodeClaim, name: &Arc<str>) -> Key {
    match claim.status.as_ref().and_then(|s| s.provider_id.as_deref()).filter(|p| !p.is_empty()) {
        Some(id) => Key::Provider(Arc::from(id)),
        None => Key::Claim(Arc::clone(name)),
    }
}

/// Whether the first is to replace the second. An answer to a write of our own may be known before the watch delivers
/// what came before it; resource versions of one object are ordered numbers.
fn newer(claim: &NodeClaim, known: &NodeClaim) -> bool {
    if claim.metadata.uid != known.metadata.uid {
        return true;
    }
    let version = |c: &NodeClaim| c.metadata.resource_version.as_deref().and_then(|v| v.parse::<u64>().ok());
    match (version(claim), version(known)) {
        (Some(new), Some(old)) => new > old,
        _ => claim != known,
    }
}

impl Slots {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.values_mut()
    }

    pub(super) fn of_node(&self, name: &str) -> Option<&Slot> {
        self.slots.get(self.by_node.get(name)?)
    }

    pub(super) fn of_node_mut(&mut self, name: &str) -> Option<&mut Slot> {
        self.slots.get_mut(self.by_node.get(name)?)
    }

    pub(super) fn of_claim(&self, name: &str) -> Option<&Slot> {
        self.slots.get(self.by_claim.get(name)?)
    }

    pub(super) fn of_provider(&self, id: &str) -> Option<&Slot> {
        self.slots.get(&Key::Provider(Arc::from(id)))
    }

    /// The slot that goes by this name in a snapshot: by NodeClaim or by Node.
    pub(super) fn named(&self, name: &str) -> Option<&Slot> {
        self.of_claim(name).or_else(|| self.of_node(name))
    }

    /// As [`Self::named`].
    pub(super) fn named_mut(&mut self, name: &str) -> Option<&mut Slot> {
        let key = self.by_claim.get(name).or_else(|| self.by_node.get(name))?;
        self.slots.get_mut(key)
    }

    pub(super) fn all_nodes_of_provider(&self, id: &str) -> Vec<Arc<NodeRecord>> {
        self.of_provider(id).map(|slot| slot.nodes.clone()).unwrap_or_default()
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<NodeRecord>> {
        self.slots.values().flat_map(|slot| &slot.nodes)
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = &Arc<NodeClaim>> {
        self.slots.values().flat_map(|slot| &slot.claims)
    }

    pub(super) fn node(&self, name: &str) -> Option<&Arc<NodeRecord>> {
        self.of_node(name)?.nodes.iter().find(|node| &*node.name == name)
    }

    pub(super) fn claim(&self, name: &str) -> Option<&Arc<NodeClaim>> {
        self.of_claim(name)?.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(name))
    }

    fn put_node(&mut self, node: Arc<NodeRecord>) {
        let key = match &node.provider_id {
            Some(id) => Key::Provider(Arc::clone(id)),
            None => Key::Node(Arc::clone(&node.name)),
        };
        let carried = match self.by_node.get(&node.name) {
            Some(old) if *old != key => self.take_node(&Arc::clone(&node.name)),
            _ => None,
        };
        self.by_node.insert(Arc::clone(&node.name), key.clone());
        let slot = self.slots.entry(key).or_default();
        put_half(&mut slot.nodes, node, node_rank);
        slot.inherit(carried);
    }

    fn put_claim(&mut self, claim: Arc<NodeClaim>) {
        let name = name_of(&claim.metadata).name;
        let key = claim_key(&claim, &name);
        let carried = match self.by_claim.get(&name) {
            Some(old) if *old != key => self.take_claim(&name),
            _ => None,
        };
        self.by_claim.insert(name, key.clone());
        let slot = self.slots.entry(key).or_default();
        put_half(&mut slot.claims, claim, claim_rank);
        slot.inherit(carried);
    }

    /// Removes the Node half; returns the slot when nothing is left of it.
    fn take_node(&mut self, name: &str) -> Option<Slot> {
        let key = self.by_node.remove(name)?;
        let slot = self.slots.get_mut(&key)?;
        slot.nodes.retain(|node| &*node.name != name);
        slot.built = None;
        if slot.empty() { self.slots.remove(&key) } else { None }
    }

    /// Removes the NodeClaim half; returns the slot when nothing is left of it.
    fn take_claim(&mut self, name: &str) -> Option<Slot> {
        let key = self.by_claim.remove(name)?;
        let slot = self.slots.get_mut(&key)?;
        slot.claims.retain(|claim| claim.metadata.name.as_deref() != Some(name));
        slot.built = None;
        if slot.empty() { self.slots.remove(&key) } else { None }
    }

    /// Every slot as the engine sees it, by name. Two slots of one name (a Node that happens to be called like another's
    /// NodeClaim) are told apart by the provider id.
    pub(super) fn built(&self) -> BTreeMap<Arc<str>, Arc<Node>> {
        let mut nodes: BTreeMap<Arc<str>, Arc<Node>> = BTreeMap::new();
        for node in self.slots.values().filter_map(|slot| slot.built.as_ref()?.as_ref()) {
            match nodes.entry(Arc::clone(&node.name)) {
                std::collections::btree_map::Entry::Vacant(free) => {
                    free.insert(Arc::clone(node));
                }
                std::collections::btree_map::Entry::Occupied(_) => {
                    let mut renamed = Node::clone(node);
                    renamed.name = match &node.provider_id {
                        Some(id) => Arc::clone(id),
                        None => Arc::from(format!("{} (NodeClaim)", node.name)),
                    };
                    nodes.insert(Arc::clone(&renamed.name), Arc::new(renamed));
                }
            }
        }
        nodes
    }
}

impl Slot {
    fn inherit(&mut self, from: Option<Slot>) {
        self.built = None;
        if let Some(from) = from {
            self.nominated_until = self.nominated_until.max(from.nominated_until);
            self.marked |= from.marked;
            self.last_pod_event = self.last_pod_event.max(from.last_pod_event);
        }
    }
}

impl ClusterState {
    pub(super) fn apply_nodes(&mut self, delta: Delta<NodeRecord>, out: &mut Vec<Change>) {
        match delta {
            Delta::Applied(node) => self.put_node(node, out),
            Delta::Deleted(name) => self.drop_node(&name.name, out),
            Delta::Replaced { objects, undecodable } => {
                let mut keep: BTreeSet<Arc<str>> = objects.iter().map(|n| Arc::clone(&n.name)).collect();
                keep.extend(undecodable.iter().map(|(n, _)| Arc::clone(&n.name)));
                let gone: Vec<Arc<str>> = self.slots.by_node.keys().filter(|n| !keep.contains(*n)).cloned().collect();
                for name in gone {
                    self.drop_node(&name, out);
                }
                for node in objects {
                    self.put_node(node, out);
                }
                change::undecodable(Kind::Node, undecodable, out);
                self.note_listed(Kind::Node, out);
            }
            Delta::Undecodable { name, message } => {
                out.push(Change::Undecodable { kind: Kind::Node, name, message });
            }
        }
    }

    fn put_node(&mut self, node: Arc<NodeRecord>, out: &mut Vec<Change>) {
        let name = Arc::clone(&node.name);
        if let Some(old) = self.slots.node(&name)
            && old.same_but_version(&node)
        {
            // A heartbeat: keep the version for writes, tell nobody.
            if let Some(slot) = self.slots.of_node_mut(&name) {
                put_half(&mut slot.nodes, node, node_rank);
            }
            return;
        }
        self.slots.put_node(node);
        self.node_changed(name, out);
    }

    fn drop_node(&mut self, name: &Arc<str>, out: &mut Vec<Change>) {
        let claim = self.claim_name_of_node(name);
        if self.slots.by_node.contains_key(name) {
            self.slots.take_node(name);
            out.push(Change::Node { name: Arc::clone(name), claim });
        }
    }

    fn node_changed(&mut self, name: Arc<str>, out: &mut Vec<Change>) {
        let claim = self.claim_name_of_node(&name);
        out.push(Change::Node { name, claim });
    }

    /// Name of the NodeClaim that shares the slot of this Node.
    pub(super) fn claim_name_of_node(&self, node: &str) -> Option<Arc<str>> {
        self.slots.of_node(node)?.claim().map(|claim| name_of(&claim.metadata).name)
    }

    pub(super) fn apply_claims(&mut self, delta: Delta<NodeClaim>, out: &mut Vec<Change>) {
        match delta {
            Delta::Applied(claim) => self.put_claim(claim, out),
            Delta::Deleted(name) => self.drop_claim(&name.name, out),
            Delta::Replaced { objects, undecodable } => {
                let mut keep: BTreeSet<Arc<str>> = objects.iter().map(|c| name_of(&c.metadata).name).collect();
                keep.extend(undecodable.iter().map(|(n, _)| Arc::clone(&n.name)));
                let gone: Vec<Arc<str>> = self.slots.by_claim.keys().filter(|n| !keep.contains(*n)).cloned().collect();
                for name in gone {
                    self.drop_claim(&name, out);
                }
                for claim in objects {
                    self.put_claim(claim, out);
                }
                change::undecodable(Kind::NodeClaim, undecodable, out);
                self.note_listed(Kind::NodeClaim, out);
            }
            Delta::Undecodable { name, message } => {
                out.push(Change::Undecodable { kind: Kind::NodeClaim, name, message });
            }
        }
    }

    fn put_claim(&mut self, claim: Arc<NodeClaim>, out: &mut Vec<Change>) {
        let name = name_of(&claim.metadata).name;
        if self.slots.claim(&name).is_some_and(|old| !newer(&claim, old)) {
            return;
        }
        self.slots.put_claim(claim);
        out.push(Change::NodeClaim(name));
    }

    fn drop_claim(&mut self, name: &Arc<str>, out: &mut Vec<Change>) {
        if self.slots.by_claim.contains_key(name) {
            self.slots.take_claim(name);
            self.promises.forget_target(name);
            out.push(Change::NodeClaim(Arc::clone(name)));
        }
    }
}
