//! Dynamic resource allocation: which devices pods get on which node.
//!
//! Devices are published by drivers ([`stock`]) or expected of a node's instance type. A pod that claims devices is placed
//! where a bounded search ([`search`]) finds them; what it took is written down per node and kind of instance type
//! ([`ledger`]), because a claim that may still become several types holds other devices on each. Types that publish the
//! same devices are one profile and are searched once.

mod allocate;
mod capacity;
mod claim;
mod constraint;
mod explain;
mod ledger;
mod request;
mod search;
mod selector;
mod stock;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::existing::{ExistingNodes, InFlight, PoolsByName};
use super::is_moving;
use crate::catalog::View;
use crate::device::{Claim, PodClaim, Templates};
use crate::explain::Blocker;
use crate::pod::PodShape;
use crate::requirement::key;
use crate::snapshot::Snapshot;
use crate::symbol::{Bits, SymbolSet, Symbols, id_of};
use ledger::{Held, Holder, Ledger};
use request::{Asked, Requests};
use search::Answers;
use selector::Selectors;
use stock::{Profile, Reach, Stock};

/// Devices of a round. Empty, and without any cost, while no pod claims one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices<'a> {
    /// What is published in the cluster.
    stock: Stock<'a>,
    /// Distinct device templates of instance types; the first is empty.
    profiles: Vec<Profile<'a>>,
    /// Profile of each type, by view.
    profile_of: Vec<Vec<u32>>,
    /// Profiles that a node may turn out to have.
    of_node: Vec<BTreeSet<u32>>,
    /// By group: what its pods claim.
    groups: Vec<Option<Vec<Wanted>>>,
    /// ResourceClaims that have devices already: where pods with them may go.
    settled: BTreeMap<Arc<str>, Reach<'a>>,
    requests: Requests,
    selectors: Selectors,
    answers: Answers,
    ledger: Ledger,
    /// ResourceClaims that were given devices in this round.
    held: BTreeMap<Arc<str>, Held>,
    next_holder: u32,
}

/// One claim of a group's pods.
#[derive(Clone, Debug)]
enum Wanted {
    /// Each pod has its own.
    Own(Arc<Asked>),
    /// A ResourceClaim that others may use as well.
    Shared(Arc<str>, Arc<Asked>),
    /// A ResourceClaim that has devices already.
    Settled(Arc<str>),
}

impl<'a> Devices<'a> {
    /// Devices for these groups.
    pub(crate) fn new(snapshot: &'a Snapshot, shapes: &[&'a Arc<PodShape>], symbols: &mut Symbols) -> Self {
        if shapes.iter().all(|shape| shape.device_claims.is_empty()) {
            return Self::default();
        }
        let cluster = &*snapshot.devices;
        let mut devices = Self { stock: Stock::of_cluster(snapshot, symbols), ..Self::default() };
        let moving: BTreeSet<&str> = (snapshot.nodes.values().filter(|node| node.deleting))
            .flat_map(|node| node.pods.iter().filter(|pod| is_moving(pod)).map(|pod| &*pod.key.uid))
            .collect();
        for (name, claim) in &cluster.claims {
            if let Some(allocation) = claim.allocation.as_ref().filter(|_| !is_freed(claim, &moving)) {
                devices.settled.insert(Arc::clone(name), Reach::new(&allocation.scope, symbols));
                devices.ledger.allocated(&devices.stock, &allocation.devices);
            }
        }
        devices.groups = shapes.iter().map(|shape| devices.wanted(snapshot, shape).ok()).collect();
        devices
    }

    /// What a pod claims; `Ok` of nothing if it claims nothing.
    fn wanted(&mut self, snapshot: &Snapshot, shape: &PodShape) -> Result<Vec<Wanted>, Arc<str>> {
        let cluster = &snapshot.devices;
        let mut wanted = Vec::with_capacity(shape.device_claims.len());
        for claim in &shape.device_claims {
            wanted.push(match claim {
                PodClaim::Missing(what) => return Err(Arc::clone(what)),
                PodClaim::Own(spec) => Wanted::Own(self.requests.resolve(spec, cluster, &mut self.selectors)?),
                PodClaim::Named(name) if self.settled.contains_key(name) => Wanted::Settled(Arc::clone(name)),
                PodClaim::Named(name) => {
                    let missing = || Arc::from(format!("ResourceClaim {name} does not exist"));
                    let claim = cluster.claims.get(name).ok_or_else(missing)?;
                    let asked = self.requests.resolve(&claim.spec, cluster, &mut self.selectors);
                    Wanted::Shared(
                        Arc::clone(name),
                        asked.map_err(|why| Arc::from(format!("ResourceClaim {name}: {why}")))?,
                    )
                }
            });
        }
        Ok(wanted)
    }

    /// Why a pod's claims can be allocated nowhere.
    pub(crate) fn refusal(&mut self, snapshot: &Snapshot, shape: &PodShape) -> Option<Blocker> {
        self.wanted(snapshot, shape).err().map(Blocker::ResourceClaim)
    }

    /// Keys of labels that devices or allocated claims ask of nodes.
    pub(crate) fn keys(&self) -> Bits {
        let settled = self.settled.values().flat_map(Reach::sets);
        let keys = self.stock.sets().chain(settled);
        keys.flat_map(|set: &SymbolSet| set.iter().map(|(key, _)| key)).collect()
    }

    /// Whether pods of a group claim devices.
    pub(crate) fn wants(&self, group: u32) -> bool {
        self.groups.get(group as usize).is_some_and(|wanted| wanted.as_ref().is_some_and(|wanted| !wanted.is_empty()))
    }

    /// Learns what types and nodes publish, and counts what pods that were promised to nodes will take.
    pub(crate) fn look_around(
        &mut self,
        snapshot: &'a Snapshot,
        nodes: &ExistingNodes<'a>,
        (pools, views, in_flight): (&PoolsByName<'_>, &[View<'a>], &mut InFlight<'a>),
        symbols: &mut Symbols,
    ) {
        if self.groups.is_empty() {
            return;
        }
        static NOTHING: Templates = Templates { slices: Vec::new(), bindings: Vec::new() };
        let mut known: BTreeMap<&'a Templates, u32> = BTreeMap::from([(&NOTHING, 0)]);
        self.profiles.push(Profile::new(&NOTHING));
        for view in views {
            let of_types = view.catalog.types.iter().map(|of_type| {
                *known.entry(&of_type.devices).or_insert_with(|| {
                    self.profiles.push(Profile::new(&of_type.devices));
                    id_of(self.profiles.len() - 1)
                })
            });
            let of_types = of_types.collect();
            self.profile_of.push(of_types);
        }
        for node in &nodes.nodes {
            let found = pools.find(node.source, views);
            let profiles = match found {
                Some((at, view)) if !node.source.initialized => {
                    let label = node.source.labels.get(key::INSTANCE_TYPE);
                    let named = label.and_then(|name| {
                        view.catalog.types.binary_search_by(|of_type| (*of_type.name).cmp(&**name)).ok()
                    });
                    match named {
                        Some(of_type) => self.profiles_of(at, [id_of(of_type)].into_iter()),
                        None => {
                            let types = in_flight.types_of(node.source, found, symbols);
                            self.profiles_of(at, types.iter())
                        }
                    }
                }
                _ => BTreeSet::from([0]),
            };
            self.of_node.push(profiles);
        }
        for (at, node) in nodes.nodes.iter().enumerate() {
            let promised = node.source.pods.iter().map(|pod| &pod.shape).chain(&node.source.fixed_pods);
            for shape in promised.filter(|shape| !shape.device_claims.is_empty()) {
                if let Ok(wanted) = self.wanted(snapshot, shape) {
                    self.take(Holder::Node(id_of(at)), &wanted, nodes, at, symbols);
                }
            }
        }
    }

    fn profiles_of(&self, view: usize, types: impl Iterator<Item = u32>) -> BTreeSet<u32> {
        let of_types = self.profile_of.get(view);
        types.filter_map(|of_type| of_types?.get(of_type as usize).copied()).collect()
    }

    /// Gives a pod of a group its devices on a node, if it has them.
    pub(crate) fn on_node(&mut self, group: u32, nodes: &ExistingNodes<'_>, at: usize, symbols: &Symbols) -> bool {
        if !self.wants(group) {
            return true;
        }
        let Some(wanted) = self.groups.get(group as usize).cloned().flatten() else { return false };
        self.take(Holder::Node(id_of(at)), &wanted, nodes, at, symbols)
    }

    /// Drivers whose devices the node of a claim is expected to publish, for its NodeClaim.
    pub(crate) fn drivers(&self, holder: Option<u32>) -> Option<Arc<str>> {
        let drivers: BTreeSet<&str> = (self.ledger.of(Holder::Claim(holder?)))
            .flat_map(|(profile, taken)| taken.iter().map(move |one| (profile, one)))
            .filter_map(|(profile, taken)| {
                let template = taken.template()?;
                Some(&**self.profiles.get(profile as usize)?.stock.devices.get(template as usize)?.driver)
            })
            .collect();
        (!drivers.is_empty()).then(|| Arc::from(drivers.into_iter().collect::<Vec<_>>().join(",")))
    }
}

/// Everything that a claim is reserved for is moving elsewhere: it is allocated anew.
fn is_freed(claim: &Claim, moving: &BTreeSet<&str>) -> bool {
    !claim.reserved_for_others
        && !claim.reserved_for.is_empty()
        && claim.reserved_for.iter().all(|uid| moving.contains(&**uid))
}
