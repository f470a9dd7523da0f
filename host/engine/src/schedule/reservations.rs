//! Capacity reservations: how many instances each has left, and which claims hold them.
//!
//! A claim that uses reservations is open to reserved offerings only and will take exactly one slot. While it is filled it
//! may take that slot from any reservation that its types and offerings still allow, and moves over when another claim has
//! no other choice (an augmenting path), so no claim is turned away while the slots suffice. When everything is placed
//! each claim is narrowed to the reservation that it holds, and slots that nobody needs are handed out for choice: every
//! pair of claim and reservation listed has a slot of its own, so whatever is launched no reservation is exceeded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::claim::{Narrowed, OpenClaim, Surroundings, slots_among};
use super::pool::Pool;
use crate::catalog::{CapacityType, View};
use crate::requirement::key;
use crate::symbol::{Bits, SymbolSet, Symbols, ValueSet, id_of};

/// An offering that is of no reservation.
const NONE: u32 = u32::MAX;

/// Reservations of a round, shared by every NodePool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservations {
    /// Cheapest first.
    names: Vec<Arc<str>>,
    /// Slots that nobody holds.
    free: Vec<u32>,
    /// By view: reserved offerings, and the reservation of each offering.
    of_view: Vec<(Bits, Vec<u32>)>,
    tickets: Vec<Option<Ticket>>,
}

/// What one claim holds.
#[derive(Clone, Debug)]
struct Ticket {
    /// Reservations that would do.
    among: Bits,
    /// The one whose slot it holds.
    held: u32,
}

impl Reservations {
    /// Counts what each reservation has left: the least that any catalogue says.
    pub(crate) fn new(views: &[View<'_>]) -> Self {
        let mut left: BTreeMap<Arc<str>, (u64, u32)> = BTreeMap::new();
        let each = |view: &View<'_>| -> Vec<(u32, Arc<str>, u64, u32)> {
            let mut rows = Vec::new();
            for (of_type, start) in view.catalog.types.iter().zip(&view.columns.start) {
                for (own, offering) in of_type.offerings.iter().enumerate() {
                    if offering.capacity_type == CapacityType::Reserved {
                        let name = offering.labels.get(key::RESERVATION_ID).cloned();
                        let name = name.unwrap_or_else(|| format!("{}/{}", of_type.name, offering.zone).into());
                        let price = offering.price.map_or(u64::MAX, |price| price.0);
                        rows.push((start + id_of(own), name, price, offering.reserved_left.unwrap_or(u32::MAX)));
                    }
                }
            }
            rows
        };
        let rows: Vec<_> = views.iter().map(each).collect();
        for (_, name, price, slots) in rows.iter().flatten() {
            let known = left.entry(Arc::clone(name)).or_insert((*price, *slots));
            *known = (known.0.min(*price), known.1.min(*slots));
        }
        let mut sorted: Vec<(u64, Arc<str>, u32)> =
            left.into_iter().map(|(name, (price, slots))| (price, name, slots)).collect();
        sorted.sort();
        let ids: BTreeMap<&Arc<str>, u32> =
            sorted.iter().enumerate().map(|(at, (_, name, _))| (name, id_of(at))).collect();
        let of_view = views
            .iter()
            .zip(&rows)
            .map(|(view, rows)| {
                let mut of = if rows.is_empty() { Vec::new() } else { vec![NONE; view.columns.type_of.len()] };
                for (offering, name, ..) in rows {
                    if let (Some(slot), Some(id)) = (of.get_mut(*offering as usize), ids.get(name)) {
                        *slot = *id;
                    }
                }
                (rows.iter().map(|(offering, ..)| *offering).collect(), of)
            })
            .collect();
        Self {
            free: sorted.iter().map(|(.., slots)| *slots).collect(),
            of_view,
            names: sorted.into_iter().map(|(_, name, _)| name).collect(),
            tickets: Vec::new(),
        }
    }

    /// The ways in which a new claim can be opened: reserved, while reservations have a slot for it, then otherwise.
    pub(crate) fn ways(&self, view_at: usize, view: &View<'_>, whole: Narrowed) -> Vec<(Narrowed, bool)> {
        let Some((reserved, of)) =
            self.of_view.get(view_at).filter(|(reserved, _)| reserved.intersects(&whole.offerings))
        else {
            return vec![(whole, false)];
        };
        let mut with = whole.clone();
        with.offerings.and(reserved);
        let ids: Bits = with.offerings.iter().filter_map(|offering| of.get(offering as usize)).copied().collect();
        let open: Bits = ids.iter().filter(|id| self.path(None, &[*id].into_iter().collect()).is_some()).collect();
        with.offerings.retain(|offering| of.get(offering as usize).is_some_and(|id| open.contains(*id)));
        let mut without = whole;
        without.offerings.and_not(reserved);
        let mut ways = Vec::new();
        for (mut way, is_reserved) in [(with, true), (without, false)] {
            way.types.and(&view.columns.types_with(&way.offerings));
            if !way.types.is_empty() {
                ways.push((way, is_reserved));
            }
        }
        ways
    }

    /// Reservations among these offerings of these types.
    pub(crate) fn among(&self, view_at: usize, view: &View<'_>, offerings: &Bits, types: &Bits) -> Bits {
        let Some((reserved, of)) = self.of_view.get(view_at) else { return Bits::default() };
        let mut own = offerings.clone();
        own.and(reserved);
        let of_type = |offering: u32| view.columns.type_of.get(offering as usize).copied();
        own.iter()
            .filter(|offering| of_type(*offering).is_some_and(|of_type| types.contains(of_type)))
            .filter_map(|offering| of.get(offering as usize).copied())
            .collect()
    }

    /// Of these types, those with an offering of one reservation.
    pub(crate) fn types_of(
        &self,
        view_at: usize,
        view: &View<'_>,
        (offerings, types): (&Bits, &Bits),
        id: u32,
    ) -> Bits {
        let Some((_, of)) = self.of_view.get(view_at) else { return Bits::default() };
        let mut own = offerings.clone();
        own.retain(|offering| of.get(offering as usize) == Some(&id));
        let mut with = view.columns.types_with(&own);
        with.and(types);
        with
    }

    /// Whether a claim can have a slot of one of these, besides everybody else.
    pub(crate) fn admits(&self, ticket: Option<u32>, among: &Bits) -> bool {
        self.path(ticket, among).is_some()
    }

    /// Gives a claim a slot of one of these. The claim's former slot is free again.
    pub(crate) fn hold(&mut self, ticket: &mut Option<u32>, among: Bits) {
        let Some(mut path) = self.path(*ticket, &among) else { return };
        self.release(*ticket);
        // From the end: each move frees the slot that the move before it needs.
        let mut into = path.pop();
        while let Some((mover, id)) = into {
            if let Some(free) = self.free.get_mut(id as usize) {
                *free = free.saturating_sub(1);
            }
            match mover {
                Some(mover) => {
                    if let Some(Some(moved)) = self.tickets.get_mut(mover as usize) {
                        let before = std::mem::replace(&mut moved.held, id);
                        if let Some(free) = self.free.get_mut(before as usize) {
                            *free = free.saturating_add(1);
                        }
                    }
                }
                None => {
                    let new = Some(Ticket { among: among.clone(), held: id });
                    match ticket.and_then(|at| self.tickets.get_mut(at as usize)) {
                        Some(own) => *own = new,
                        None => {
                            *ticket = Some(id_of(self.tickets.len()));
                            self.tickets.push(new);
                        }
                    }
                }
            }
            into = path.pop();
        }
    }

    /// Frees the slot of a claim.
    pub(crate) fn release(&mut self, ticket: Option<u32>) {
        let Some(own) = ticket.and_then(|at| self.tickets.get_mut(at as usize)).and_then(Option::take) else { return };
        if let Some(free) = self.free.get_mut(own.held as usize) {
            *free = free.saturating_add(1);
        }
    }

    /// Moves that give a claim a slot: the claim itself (`None`) into the first reservation, the holder that must leave it
    /// into the next, and so on. The shortest one.
    fn path(&self, ticket: Option<u32>, among: &Bits) -> Option<Vec<(Option<u32>, u32)>> {
        let own = ticket.and_then(|at| self.tickets.get(at as usize)).and_then(Option::as_ref);
        let mut came: BTreeMap<u32, Option<(u32, u32)>> = among.iter().map(|id| (id, None)).collect();
        let mut next: VecDeque<u32> = among.iter().collect();
        while let Some(id) = next.pop_front() {
            let free = self.free.get(id as usize).copied().unwrap_or(0);
            if free > 0 || own.is_some_and(|own| own.held == id) {
                let mut path = Vec::new();
                let mut at = id;
                while let Some(Some((mover, before))) = came.get(&at) {
                    path.push((Some(*mover), at));
                    at = *before;
                }
                path.push((None, at));
                path.reverse();
                return Some(path);
            }
            for (mover, other) in self.tickets.iter().enumerate() {
                let mover = id_of(mover);
                let Some(other) = other.as_ref().filter(|other| other.held == id && ticket != Some(mover)) else {
                    continue;
                };
                for to in other.among.iter() {
                    if let std::collections::btree_map::Entry::Vacant(slot) = came.entry(to) {
                        slot.insert(Some((mover, id)));
                        next.push_back(to);
                    }
                }
            }
        }
        None
    }

    /// Narrows every claim that uses reservations to those that it may launch from, in the order of the claims. One whose
    /// share of a limit leaves it no slot is left without offerings.
    pub(crate) fn settle(
        &mut self,
        claims: &mut [OpenClaim],
        pools: &[Pool<'_>],
        views: &[View<'_>],
        symbols: &Symbols,
    ) {
        self.renew(claims, pools, views, symbols);
        let mut spare = self.free.clone();
        for claim in claims.iter_mut().filter(|claim| claim.load.reserved) {
            let ticket = claim.load.ticket.and_then(|at| self.tickets.get(at as usize)).and_then(Option::as_ref);
            let Some(ticket) = ticket else {
                claim.offerings = Bits::default();
                continue;
            };
            let mut listed: BTreeSet<u32> = BTreeSet::from([ticket.held]);
            for id in ticket.among.iter().filter(|id| *id != ticket.held) {
                if let Some(spare) = spare.get_mut(id as usize).filter(|spare| **spare > 0) {
                    *spare -= 1;
                    listed.insert(id);
                }
            }
            let Some((_, of)) = pools.get(claim.pool).and_then(|pool| self.of_view.get(pool.view)) else { continue };
            claim.offerings.retain(|offering| of.get(offering as usize).is_some_and(|id| listed.contains(id)));
            let Some(key) = symbols.find_key(key::RESERVATION_ID) else { continue };
            let named = listed.iter().filter_map(|id| self.names.get(*id as usize));
            let bits: Bits = named.filter_map(|name| symbols.find_value(key, name)).collect();
            if bits.len() == listed.len() {
                claim.requirements.add(key, &ValueSet { bits, present: true, ..ValueSet::default() }, symbols);
            }
        }
    }

    /// Fits what the claims hold to the types that they have now: their share of a limit may have taken away those of a
    /// reservation.
    fn renew(&mut self, claims: &mut [OpenClaim], pools: &[Pool<'_>], views: &[View<'_>], symbols: &Symbols) {
        let mut homeless = Vec::new();
        for claim in claims.iter_mut().filter(|claim| claim.load.reserved) {
            let Some(pool) = pools.get(claim.pool) else { continue };
            let Some(view) = views.get(pool.view) else { continue };
            let around = Surroundings { pool, view, symbols, reservations: Some(self) };
            let among = slots_among(around, (&claim.requirements, &claim.offerings), &claim.types);
            let ticket = claim.load.ticket.and_then(|at| self.tickets.get_mut(at as usize)).and_then(Option::as_mut);
            match ticket.filter(|ticket| among.contains(ticket.held)) {
                Some(ticket) => ticket.among = among,
                None => {
                    self.release(claim.load.ticket);
                    homeless.push((&mut claim.load.ticket, among));
                }
            }
        }
        for (ticket, among) in homeless {
            self.hold(ticket, among);
        }
    }

    /// Whether these types can only be launched from reservations.
    pub(crate) fn are_all(&self, view_at: usize, view: &View<'_>, offerings: &Bits, types: &Bits) -> bool {
        let Some((reserved, _)) = self.of_view.get(view_at) else { return false };
        let mut others = offerings.clone();
        others.and_not(reserved);
        let mut with = view.columns.types_with(&others);
        with.and(types);
        with.is_empty() && !self.among(view_at, view, offerings, types).is_empty()
    }

    /// Names of the reservations among these offerings of a view.
    pub(crate) fn names(&self, view_at: usize, view: &View<'_>, offerings: &Bits, types: &Bits) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = self
            .among(view_at, view, offerings, types)
            .iter()
            .filter_map(|id| self.names.get(id as usize).cloned())
            .collect();
        names.sort();
        names
    }
}

/// Ids of the reservations that are all that these requirements leave of a catalogue, when not one of them has an instance
/// left.
pub(crate) fn full_reservations(view: &View<'_>, requirements: &SymbolSet) -> Option<Arc<str>> {
    let mut full = view.columns.available.clone();
    full.and_not(&view.columns.launchable);
    if full.is_empty() {
        return None;
    }
    let (mut types, launchable) = view.matching(requirements);
    for (key, values) in requirements.iter() {
        if let Some(agreeing) = view.offerings_agreeing(key, values) {
            full.and(&agreeing);
        }
    }
    let mut now = view.columns.types_with(&launchable);
    now.and(&types);
    types.and(&view.columns.types_with(&full));
    if !now.is_empty() || types.is_empty() {
        return None;
    }
    let of_type = |offering: u32| view.columns.type_of.get(offering as usize).copied().filter(|at| types.contains(*at));
    let offered = full.iter().filter_map(|offering| view.offering(of_type(offering)?, offering));
    let ids: BTreeSet<Arc<str>> =
        offered.map(|one| one.labels.get(key::RESERVATION_ID).unwrap_or(&one.zone).clone()).collect();
    Some(ids.iter().map(|id| &**id).collect::<Vec<_>>().join(", ").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Catalog, InstanceType, Offering};
    use crate::nodepool::{Limits, NodePool};
    use crate::pod::{Pod, PodKey, PodShape};
    use crate::policy::NoPolicy;
    use crate::quantity::{MicroUsd, Resources};
    use crate::schedule::schedule;
    use crate::snapshot::{Options, Snapshot};

    fn offering(zone: &str, capacity_type: CapacityType, reservation: Option<(&str, u32)>) -> Offering {
        Offering {
            zone: zone.into(),
            capacity_type,
            price: Some(MicroUsd(if reservation.is_some() { 1 } else { 1000 })),
            price_estimated: false,
            available: true,
            labels: reservation.into_iter().map(|(id, _)| (key::RESERVATION_ID.into(), id.into())).collect(),
            reserved_left: reservation.map(|(_, left)| left),
        }
    }

    /// Types of 2, 4 and 8 CPUs, each with on-demand and reservations of this many instances: one per type, and one in
    /// another zone for the first two.
    fn catalog(slots: [u32; 5]) -> Arc<Catalog> {
        let of_type = |(at, cpus): (usize, i64)| {
            let resources = Resources { cpu_milli: cpus * 1000, memory: 64 << 30, pods: 50, ..Resources::default() };
            let id = format!("cr-{at}");
            let mut offerings = vec![
                offering("a", CapacityType::OnDemand, None),
                offering("a", CapacityType::Reserved, Some((id.as_str(), slots[at]))),
            ];
            if at < 2 {
                let other = format!("cr-b{at}");
                offerings.push(offering("b", CapacityType::Reserved, Some((other.as_str(), slots[3 + at]))));
            }
            InstanceType {
                name: format!("t{cpus}").into(),
                capacity: resources.clone(),
                allocatable: resources,
                offerings,
                ..InstanceType::default()
            }
        };
        Arc::new(Catalog::new(1, [2, 4, 8].into_iter().enumerate().map(of_type).collect()))
    }

    fn pods(sizes: &[i64]) -> Vec<Pod> {
        let pod = |(at, size): (usize, &i64)| Pod {
            key: PodKey { namespace: "n".into(), name: format!("p{at}").into(), uid: format!("p{at}").into() },
            shape: Arc::new(PodShape {
                requests: Resources { cpu_milli: *size, pods: 1, ..Resources::default() },
                ..PodShape::default()
            }),
            created_unix_ms: 0,
            buffer: None,
        };
        sizes.iter().enumerate().map(pod).collect()
    }

    #[test]
    fn no_reservation_is_exceeded_and_none_is_left_unused_while_it_would_do() {
        // A small generator of its own: numbers only have to differ.
        let mut state: u64 = 7;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..300 {
            let slots = [(); 5].map(|()| u32::try_from(next(4)).unwrap());
            let sizes: Vec<i64> = (0..=next(14)).map(|_| 500 * (1 + i64::try_from(next(14)).unwrap())).collect();
            let pool = NodePool { name: "p".into(), catalog: catalog(slots), ..NodePool::default() };
            let pool = Arc::new(pool);
            let snapshot =
                Snapshot { nodepools: vec![Arc::clone(&pool)], pending: pods(&sizes), ..Snapshot::default() };
            let plan = schedule(&snapshot, &Options::default(), &NoPolicy);
            assert!(plan.unplaced.is_empty(), "{round}: on-demand is always there");
            let mut listed: BTreeMap<Arc<str>, u32> = BTreeMap::new();
            let mut others = 0;
            for claim in &plan.claims {
                let values = |name: &str| -> Vec<Arc<str>> {
                    let own = claim.requirements.iter().filter(|one| &*one.key == name);
                    own.flat_map(|one| one.values.clone()).collect()
                };
                let reserved = values(key::CAPACITY_TYPE) == [Arc::from("reserved")];
                let ids = values(key::RESERVATION_ID);
                assert_eq!(reserved, !ids.is_empty(), "{round}: a claim is of reservations or it is not");
                ids.into_iter().for_each(|id| *listed.entry(id).or_default() += 1);
                others += u32::from(!reserved);
            }
            for (id, slot) in [("cr-0", 0), ("cr-1", 1), ("cr-2", 2), ("cr-b0", 3), ("cr-b1", 4)] {
                let held = listed.get(id).copied().unwrap_or(0);
                assert!(held <= slots[slot], "{round}: {held} claims list {id} of {}", slots[slot]);
                // The largest type holds every pod: no claim goes elsewhere while it has a slot.
                assert!(slot != 2 || others == 0 || held == slots[slot], "{round}: {id} is left unused");
            }
        }
    }

    #[test]
    fn a_claim_lists_reservations_of_the_types_that_its_share_of_a_limit_leaves() {
        for (cpus, count) in (1..40).flat_map(|cpus| (1..6).map(move |count| (cpus, count))) {
            let limits = Limits { resources: [("cpu".into(), cpus * 1000)].into(), nodes: None };
            let pool = NodePool { name: "p".into(), catalog: catalog([2, 2, 2, 1, 1]), limits, ..NodePool::default() };
            let pending = pods(&vec![1500; count]);
            let snapshot = Snapshot { nodepools: vec![Arc::new(pool)], pending, ..Snapshot::default() };
            let plan = schedule(&snapshot, &Options::default(), &NoPolicy);
            let placed: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
            assert!(placed >= count.min(usize::from(cpus >= 2)), "{cpus} CPUs, {count} pods: {placed}");
            for claim in &plan.claims {
                let values = |name: &str| -> Vec<Arc<str>> {
                    let own = claim.requirements.iter().filter(|one| &*one.key == name);
                    own.flat_map(|one| one.values.clone()).collect()
                };
                for id in values(key::RESERVATION_ID) {
                    let of = if id.ends_with('0') {
                        "t2"
                    } else if id.ends_with('1') {
                        "t4"
                    } else {
                        "t8"
                    };
                    let types = values(key::INSTANCE_TYPE);
                    assert!(types.contains(&of.into()), "{cpus} CPUs, {count} pods: {id} is not of {types:?}");
                }
            }
        }
    }
}
