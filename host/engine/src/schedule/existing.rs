//! Nodes that exist or are on their way, as rows: room per resource and label values per key that something asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::amounts::{ResourceNames, times_fitting};
use super::group::Group;
use super::holdings::{AttachLimits, Held, holds_nothing};
use super::pool::daemon_requirements;
use crate::catalog::View;
use crate::node::Node;
use crate::nodepool::NodePool;
use crate::pod::PodShape;
use crate::quantity::Resources;
use crate::requirement::Requirement;
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, ValueId, ValueSet};
use crate::taint::{Taint, Toleration, untolerated};

/// A node has no such label.
const ABSENT: ValueId = ValueId::MAX;

/// A node that pods may be placed on.
#[derive(Clone, Debug)]
pub(crate) struct Existing<'a> {
    /// Key in the snapshot.
    pub(crate) name: &'a Arc<str>,
    pub(crate) source: &'a Node,
    /// What is left, by resource.
    pub(crate) room: Vec<i64>,
    /// An unlaunched claim: what its labels may still become.
    open: Option<SymbolSet>,
    /// Pods placed on it, as places in the queue.
    pub(crate) pods: Vec<u32>,
    /// Host ports and volumes of its pods.
    pub(crate) held: Held,
    /// Attach limits of its instance type, for drivers of which the node itself says nothing yet.
    pub(crate) type_limits: AttachLimits,
}

/// A node's label on one key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Label<'n> {
    Absent,
    Is(ValueId),
    /// An unlaunched claim: one of these.
    Open(&'n ValueSet),
}

/// All of them, in the order in which they are tried: initialised first, then by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExistingNodes<'a> {
    pub(crate) nodes: Vec<Existing<'a>>,
    /// Label value per node, for every key that a pod or DaemonSet asks for.
    labels: BTreeMap<KeyId, Vec<ValueId>>,
}

impl<'a> ExistingNodes<'a> {
    /// `asked_keys`: every key that a requirement of the round names.
    pub(crate) fn new(
        nodes: impl Iterator<Item = (&'a Arc<str>, &'a Node)>,
        (pools, views, in_flight): (&PoolsByName<'_>, &[View<'_>], &mut InFlight<'a>),
        daemons: &[Arc<PodShape>],
        asked_keys: &Bits,
        resources: &ResourceNames,
        symbols: &mut Symbols,
    ) -> Self {
        let mut sorted: Vec<(&'a Arc<str>, &'a Node)> = nodes.filter(|(_, node)| !node.deleting).collect();
        sorted.sort_by_key(|(name, node)| (!node.initialized, *name));
        let mut labels: BTreeMap<KeyId, Vec<ValueId>> = BTreeMap::new();
        for key in asked_keys.iter() {
            let name = symbols.key_name(key);
            let value = |(_, node): &(&Arc<str>, &Node)| {
                node.labels.get(&name).map_or(ABSENT, |value| symbols.value(key, value))
            };
            labels.insert(key, sorted.iter().map(value).collect());
        }
        let mut all = Self { nodes: Vec::with_capacity(sorted.len()), labels };
        for (name, node) in sorted {
            let mut allocatable = node.allocatable.clone();
            let mut open = None;
            if !node.launched && !node.requirements.is_empty() {
                let becoming = in_flight.of(node, pools.find(node, views), symbols);
                if allocatable.is_zero() {
                    allocatable.clone_from(&becoming.allocatable);
                }
                let mut set = becoming.requirements.clone();
                for (key, value) in &node.labels {
                    set.add_label(key, value, symbols);
                }
                if let Some((_, view)) = pools.find(node, views) {
                    for key in asked_keys.iter() {
                        if set.get(key).is_none()
                            && let Some(union) = view.union(key, &becoming.types)
                        {
                            set.set(key, union);
                        }
                    }
                }
                open = Some(set);
            }
            let room = resources.dense(&allocatable.saturating_sub(&node.used));
            all.nodes.push(Existing {
                name,
                source: node,
                room,
                open,
                pods: Vec::new(),
                held: Held::default(),
                type_limits: AttachLimits::new(),
            });
        }
        for at in 0..all.nodes.len() {
            all.reserve_daemons(at, daemons, resources, symbols);
        }
        all
    }

    /// Takes off what DaemonSets that will run on the node have not taken yet.
    fn reserve_daemons(
        &mut self,
        at: usize,
        daemons: &[Arc<PodShape>],
        resources: &ResourceNames,
        symbols: &mut Symbols,
    ) {
        let Some(source) = self.nodes.get(at).map(|node| node.source) else { return };
        let mut overhead = Resources::default();
        for daemon in daemons {
            let mut terms = 0..daemon.required_affinity.len().max(1);
            if untolerated(&source.taints, &daemon.tolerations, true).is_none()
                && terms.any(|term| self.meets(at, &daemon_requirements(daemon, term, symbols), symbols))
            {
                overhead = overhead.saturating_add(&daemon.requests);
            }
        }
        let missing = resources.dense(&overhead.saturating_sub(&source.daemon_used).at_least_zero());
        if let Some(node) = self.nodes.get_mut(at) {
            for (room, missing) in node.room.iter_mut().zip(missing) {
                *room = room.saturating_sub(missing);
            }
        }
    }

    /// Whether a node has every label that is asked for. Of an unlaunched claim every label it may get must do.
    pub(crate) fn meets(&self, at: usize, asked: &SymbolSet, symbols: &Symbols) -> bool {
        let Some(node) = self.nodes.get(at) else { return false };
        if asked.contradiction().is_some() {
            return false;
        }
        asked.iter().all(|(key, values)| {
            if let Some(open) = &node.open {
                return match open.get(key) {
                    Some(own) => own.implies(values, symbols.integers(key)),
                    None => values.allows_absence(),
                };
            }
            match self.labels.get(&key).and_then(|column| column.get(at)).copied() {
                None | Some(ABSENT) => values.allows_absence(),
                Some(value) => values.has(value, symbols.integers(key)),
            }
        })
    }

    /// What is known of one label of a node; the key must be among those asked for.
    pub(crate) fn label(&self, at: usize, key: KeyId) -> Label<'_> {
        if let Some(open) = self.nodes.get(at).and_then(|node| node.open.as_ref()) {
            return match open.get(key) {
                Some(own) if own.complement || own.bits.len() > 1 => Label::Open(own),
                Some(own) => own.bits.iter().next().map_or(Label::Absent, Label::Is),
                None => Label::Absent,
            };
        }
        match self.labels.get(&key).and_then(|column| column.get(at)).copied() {
            None | Some(ABSENT) => Label::Absent,
            Some(value) => Label::Is(value),
        }
    }

    pub(crate) fn tolerated(&self, at: usize, tolerations: &[Toleration], ignore_preferred: bool) -> bool {
        self.untolerated(at, tolerations, ignore_preferred).is_none()
    }

    fn untolerated(&self, at: usize, tolerations: &[Toleration], ignore_preferred: bool) -> Option<&Taint> {
        let node = self.nodes.get(at)?;
        untolerated(&node.source.taints, tolerations, ignore_preferred)
    }

    /// How many pods asking for this still fit, at most `most`.
    pub(crate) fn fitting(&self, at: usize, (asked, shape): (&[(usize, i64)], &PodShape), most: u32) -> u32 {
        let Some(node) = self.nodes.get(at) else { return 0 };
        let times = times_fitting(asked, |_| 0, |resource| node.room.get(resource).copied().unwrap_or(0), most);
        if times == 0 || holds_nothing(shape) {
            return times;
        }
        let limit = |driver: &str| match node.source.volume_limits.get(driver) {
            Some(limit) => *limit,
            None => node.type_limits.get(driver).copied(),
        };
        node.held.fitting(shape, limit, times)
    }

    /// Places pods `from..from + count` of the queue.
    pub(crate) fn place(&mut self, at: usize, group: &Group<'_>, from: u32, count: u32) {
        let Some(node) = self.nodes.get_mut(at) else { return };
        node.held.take(group.shape, count);
        for (resource, amount) in &group.asked {
            if let Some(room) = node.room.get_mut(*resource) {
                *room = room.saturating_sub(amount.saturating_mul(i64::from(count)));
            }
        }
        node.pods.extend(from..from + count);
    }
}

/// NodePools of the snapshot by name, each with the index of its catalogue's view.
#[derive(Debug, Default)]
pub(crate) struct PoolsByName<'a> {
    pub(crate) pools: BTreeMap<&'a str, (&'a Arc<NodePool>, usize)>,
}

impl<'a> PoolsByName<'a> {
    /// Index and view of the catalogue of a node's pool.
    pub(crate) fn find<'v, 'c>(&self, node: &Node, views: &'v [View<'c>]) -> Option<(usize, &'v View<'c>)> {
        let (_, view) = self.pools.get(node.nodepool.as_deref()?)?;
        Some((*view, views.get(*view)?))
    }
}

/// What unlaunched claims may become. Claims of one burst ask for the same, so it is worked out once for each distinct
/// list of requirements.
#[derive(Debug, Default)]
pub(crate) struct InFlight<'a> {
    known: BTreeMap<(Option<usize>, &'a [Requirement]), Becoming>,
}

/// What an unlaunched claim may become.
#[derive(Clone, Debug, Default)]
pub(crate) struct Becoming {
    requirements: SymbolSet,
    types: Bits,
    /// What every one of its types has.
    allocatable: Resources,
    /// The most that one of its types has, resource by resource.
    capacity: Resources,
}

impl<'a> InFlight<'a> {
    fn of(&mut self, node: &'a Node, pool: Option<(usize, &View<'_>)>, symbols: &mut Symbols) -> &Becoming {
        let key = (pool.map(|(at, _)| at), node.requirements.as_slice());
        self.known.entry(key).or_insert_with(|| {
            let requirements = SymbolSet::new(&node.requirements, symbols);
            let Some((_, view)) = pool else { return Becoming { requirements, ..Becoming::default() } };
            let types = view.matching(&requirements).0;
            let all = || types.iter().filter_map(|at| view.catalog.types.get(at as usize));
            let first = all().next().map(|of_type| of_type.allocatable.clone()).unwrap_or_default();
            Becoming {
                allocatable: all().fold(first, |least, of_type| least.elementwise_min(&of_type.allocatable)),
                capacity: all().fold(Resources::default(), |most, of_type| most.elementwise_max(&of_type.capacity)),
                requirements,
                types,
            }
        })
    }

    /// Types that an unlaunched claim may become.
    pub(crate) fn types_of(&mut self, node: &'a Node, pool: Option<(usize, &View<'_>)>, symbols: &mut Symbols) -> Bits {
        self.of(node, pool, symbols).types.clone()
    }

    /// What a node counts against its NodePool's limits: its capacity, or, while nothing is launched and the capacity is
    /// unknown, the largest that its claim may still become.
    pub(crate) fn charged_capacity(
        &mut self,
        node: &'a Node,
        pool: Option<(usize, &View<'_>)>,
        symbols: &mut Symbols,
    ) -> Resources {
        if node.launched || !node.capacity.is_zero() || pool.is_none() {
            return node.capacity.clone();
        }
        self.of(node, pool, symbols).capacity.clone()
    }
}
