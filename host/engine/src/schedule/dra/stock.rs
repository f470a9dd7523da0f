//! Devices that exist, or that an instance type brings, with their pools and counters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::device::{Amounts, Device, DeviceId, Scope, Slice, Templates};
use crate::quantity::Quantity;
use crate::snapshot::Snapshot;
use crate::symbol::{SymbolSet, Symbols, id_of};

/// Nodes that reach a device.
#[derive(Clone, Debug)]
pub(super) enum Reach<'a> {
    Everywhere,
    Node(&'a Arc<str>),
    /// Nodes that meet one of these.
    Nodes(Vec<SymbolSet>),
    Nowhere,
}

impl<'a> Reach<'a> {
    pub(super) fn new(scope: &'a Scope, symbols: &mut Symbols) -> Self {
        match scope {
            Scope::AllNodes => Self::Everywhere,
            Scope::Node(name) => Self::Node(name),
            Scope::Nodes(terms) => Self::Nodes(terms.iter().map(|term| SymbolSet::new(term, symbols)).collect()),
            Scope::Nowhere => Self::Nowhere,
        }
    }

    pub(super) fn sets(&self) -> &[SymbolSet] {
        match self {
            Self::Nodes(sets) => sets,
            Self::Everywhere | Self::Node(_) | Self::Nowhere => &[],
        }
    }
}

/// A device of a pool.
#[derive(Clone, Debug)]
pub(super) struct Entry<'a> {
    pub(super) driver: &'a Arc<str>,
    pub(super) pool: &'a Arc<str>,
    pub(super) device: &'a Device,
    pub(super) reach: Reach<'a>,
    /// Index of its pool.
    pub(super) of_pool: usize,
    /// What it takes of counters, by index.
    pub(super) consumes: Vec<(u32, Quantity)>,
    /// Devices of one kind are the same but for their names.
    pub(super) kind: u32,
}

impl Entry<'_> {
    pub(super) fn is(&self, id: &DeviceId) -> bool {
        *self.driver == id.driver && *self.pool == id.pool && self.device.name == id.device
    }
}

/// A pool of devices.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PoolState {
    /// All slices of the generation are there.
    pub(super) complete: bool,
    /// Names of devices and counter sets are distinct, and counters that devices take from exist.
    pub(super) valid: bool,
}

/// What makes devices the same: pool, content without the name, and reach; a name where it matters.
type Kind = (usize, Device, Vec<SymbolSet>, u8, Option<Arc<str>>);

/// Devices and the counters that they share.
#[derive(Clone, Debug, Default)]
pub(super) struct Stock<'a> {
    /// By pool, in the order of their slices.
    pub(super) devices: Vec<Entry<'a>>,
    pub(super) pools: Vec<PoolState>,
    /// How much each counter has.
    pub(super) counters: Vec<Quantity>,
}

impl<'a> Stock<'a> {
    /// What the slices of the cluster publish. Those of a Node that is not initialised, going away or unknown are left
    /// out: what it will publish is told by its instance type.
    pub(super) fn of_cluster(snapshot: &'a Snapshot, symbols: &mut Symbols) -> Self {
        let there: BTreeSet<&str> = (snapshot.nodes.values())
            .filter(|node| node.initialized && !node.deleting)
            .filter_map(|node| node.node_name.as_deref())
            .collect();
        let mut pools: BTreeMap<(&Arc<str>, &Arc<str>), Vec<&'a Slice>> = BTreeMap::new();
        for slice in &snapshot.devices.slices {
            if slice.owner.as_deref().is_none_or(|owner| there.contains(owner)) {
                pools.entry((&slice.driver, &slice.pool)).or_default().push(slice);
            }
        }
        let mut stock = Self::default();
        for ((driver, pool), mut slices) in pools {
            let newest = slices.iter().map(|slice| slice.generation).max().unwrap_or(0);
            slices.retain(|slice| slice.generation == newest);
            slices.sort_by_key(|slice| slice.devices.first().map(|(device, _)| &device.name));
            let expected = slices.first().map_or(0, |slice| slice.slice_count);
            let complete = usize::try_from(expected).is_ok_and(|expected| expected == slices.len());
            let counters = slices.iter().flat_map(|slice| &slice.counters);
            let devices = slices.iter().flat_map(|slice| &slice.devices);
            let devices = devices.map(|(device, scope)| (device, Reach::new(scope, symbols))).collect();
            stock.add((driver, pool), counters, devices, complete);
        }
        stock.name_kinds(&BTreeSet::new());
        stock
    }

    fn add(
        &mut self,
        (driver, pool): (&'a Arc<str>, &'a Arc<str>),
        sets: impl Iterator<Item = &'a (Arc<str>, Amounts)>,
        devices: Vec<(&'a Device, Reach<'a>)>,
        complete: bool,
    ) {
        let of_pool = self.pools.len();
        let mut valid = true;
        let mut counters: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for (set, amounts) in sets {
            valid &= names.insert(set);
            for (counter, total) in amounts {
                counters.insert((set, counter), id_of(self.counters.len()));
                self.counters.push(*total);
            }
        }
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (device, reach) in devices {
            valid &= seen.insert(&device.name);
            let mut consumes = Vec::new();
            for (set, amounts) in &device.consumes {
                for (counter, amount) in amounts {
                    match counters.get(&(&**set, &**counter)) {
                        Some(at) => consumes.push((*at, *amount)),
                        None => valid = false,
                    }
                }
            }
            self.devices.push(Entry { driver, pool, device, reach, of_pool, consumes, kind: 0 });
        }
        self.pools.push(PoolState { complete, valid });
    }

    /// Gives devices that are the same but for their names the same kind; `named` are told apart.
    fn name_kinds(&mut self, named: &BTreeSet<&DeviceId>) {
        let mut kinds: BTreeMap<Kind, u32> = BTreeMap::new();
        for entry in &mut self.devices {
            let mut device = entry.device.clone();
            let name = std::mem::take(&mut device.name);
            let place = match &entry.reach {
                Reach::Everywhere => (0, None),
                Reach::Node(node) => (1, Some(Arc::clone(node))),
                Reach::Nodes(_) => (2, None),
                Reach::Nowhere => (3, None),
            };
            let told_apart =
                named.iter().any(|id| entry.driver == &id.driver && entry.pool == &id.pool && name == id.device);
            let apart = if told_apart { Some(name) } else { place.1 };
            let next = id_of(kinds.len());
            entry.kind =
                *kinds.entry((entry.of_pool, device, entry.reach.sets().to_vec(), place.0, apart)).or_insert(next);
        }
    }

    /// Requirements that devices make of nodes.
    pub(super) fn sets(&self) -> impl Iterator<Item = &SymbolSet> {
        self.devices.iter().flat_map(|entry| entry.reach.sets())
    }
}

/// Devices that every node of some instance types is expected to publish.
#[derive(Clone, Debug)]
pub(super) struct Profile<'a> {
    pub(super) stock: Stock<'a>,
    /// By attribute: groups of devices that will have equal values of it.
    bindings: BTreeMap<&'a str, Vec<BTreeSet<&'a DeviceId>>>,
}

impl<'a> Profile<'a> {
    pub(super) fn new(templates: &'a Templates) -> Self {
        let mut stock = Stock::default();
        let mut pools: BTreeMap<(&Arc<str>, &Arc<str>), Vec<usize>> = BTreeMap::new();
        for (at, slice) in templates.slices.iter().enumerate() {
            pools.entry((&slice.driver, &slice.pool)).or_default().push(at);
        }
        for ((driver, pool), slices) in pools {
            let slices = || slices.iter().filter_map(|at| templates.slices.get(*at));
            let devices = slices().flat_map(|slice| &slice.devices).map(|device| (device, Reach::Everywhere)).collect();
            stock.add((driver, pool), slices().flat_map(|slice| &slice.counters), devices, true);
        }
        let mut bindings: BTreeMap<&str, Vec<BTreeSet<&DeviceId>>> = BTreeMap::new();
        for (attribute, devices) in templates.bindings.iter().filter(|(_, devices)| devices.len() > 1) {
            let groups = bindings.entry(attribute).or_default();
            let mut joined: BTreeSet<&DeviceId> = devices.iter().collect();
            groups.retain(|group| {
                let apart = group.is_disjoint(&joined);
                if !apart {
                    joined.extend(group);
                }
                apart
            });
            groups.push(joined);
        }
        stock.name_kinds(&bindings.values().flatten().flatten().copied().collect());
        Self { stock, bindings }
    }

    /// The group of devices that share an attribute with this one, by index.
    pub(super) fn bound(&self, attribute: &str, entry: &Entry<'_>) -> Option<usize> {
        self.bindings.get(attribute)?.iter().position(|group| group.iter().any(|id| entry.is(id)))
    }
}
