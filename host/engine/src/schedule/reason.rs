//! Why a pod found no place, worked out for those that found none.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::claim::{Surroundings, first_unmet, narrow};
use super::group::Group;
use super::holdings::{attached, drivers};
use super::reservations::full_reservations;
use crate::catalog::View;
use crate::explain::Blocker;
use crate::quantity::display_amount;
use crate::requirement::{key, similar};
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, ValueSet, id_of};
use crate::taint::untolerated;

/// What stands between a group, fully relaxed, and a new node of the pool.
pub(crate) fn why(
    around: Surroundings<'_, '_>,
    group: &Group<'_>,
    sets: &[SymbolSet],
    resource_name: impl Fn(usize) -> Option<Arc<str>>,
    topology: impl FnOnce() -> Option<Blocker>,
) -> Blocker {
    let pool = around.pool;
    let Some(level) = group.levels.last() else { return Blocker::NoNodePool };
    if let Some(taint) = untolerated(&pool.source.taints, &group.shape.tolerations, level.ignore_preferred_taints) {
        return Blocker::Taint(taint.to_string().into());
    }
    // Of several volume alternatives the last one speaks: each of them failed.
    let asked = level.alternatives.last().and_then(|set| sets.get(*set as usize)).cloned().unwrap_or_default();
    if let Some(key) = asked.contradiction() {
        let problem = "the pod's own requirements on it exclude one another".into();
        return Blocker::Refused { key: around.symbols.key_name(key), problem };
    }
    if let Err(key) = pool.template.compatible(&asked, &pool.allow_undefined, around.symbols) {
        let values = asked.get(key).cloned().unwrap_or_default();
        let own = pool.template.get(key);
        return requirement(key, &values, own, around.view, &pool.source.name, around.symbols);
    }
    let mut whole = pool.template.clone();
    whole.extend(&asked, around.symbols);
    if let Some(ids) = full_reservations(around.view, &whole) {
        return Blocker::ReservationsFull(ids);
    }
    if let Some(blocker) = impossible_value(around, &asked) {
        return blocker;
    }
    if let Some(blocker) = too_large(pool, group, &resource_name) {
        return blocker;
    }
    let considered = pool.types.len();
    let mut lost = Lost::default();
    let start = (&pool.template, &pool.types, &pool.offerings);
    let Some(mut left) = narrow(around, start, &asked, None) else {
        return lost.blocker(considered, types_agreeing(around, &asked), considered, None);
    };
    lost.requirements = considered - left.types.len();
    if let Some(dropped) = group.dropped_of(pool.view) {
        let before = left.types.len();
        left.offerings.and_not(dropped);
        left.types.and(&around.view.columns.types_with(&left.offerings));
        lost.policy = before - left.types.len();
        if let (true, Some(reason)) = (left.types.is_empty(), &group.dropped_because) {
            return Blocker::RemovedByPolicy { count: id_of(before), reason: Arc::clone(reason) };
        }
    }
    let mut fitting = left.types.clone();
    let mut short: BTreeMap<usize, usize> = BTreeMap::new();
    fitting.retain(|of_type| {
        let room = |resource: usize| pool.room.get(resource).and_then(|column| column.get(of_type as usize)).copied();
        let missing = group.requests.iter().enumerate().find(|(at, amount)| room(*at).unwrap_or(0) < **amount);
        if let Some((resource, _)) = missing {
            *short.entry(resource).or_default() += 1;
        }
        missing.is_none()
    });
    lost.resources = left.types.len() - fitting.len();
    if fitting.is_empty() {
        let most = short.iter().max_by_key(|(resource, count)| (**count, std::cmp::Reverse(**resource)));
        return lost.blocker(considered, considered, 0, most.and_then(|(resource, _)| resource_name(*resource)));
    }
    let within = fitting.clone();
    let mut limited = fitting;
    if pool.limits.no_nodes_left() {
        return Blocker::Limit("nodes".into());
    }
    let limit = pool.limits.restrict(&around.view.columns.capacity, &mut limited);
    if let Some(limit) = &limit
        && limited.is_empty()
    {
        return Blocker::Limit(Arc::clone(limit));
    }
    let types = if limited.is_empty() { within.clone() } else { limited };
    if let Some((key, _)) = first_unmet(around, &left.requirements, &types) {
        // What the limit leaves may be too little choice.
        let enough = first_unmet(around, &left.requirements, &within).is_none();
        let limit = limit.filter(|_| enough).map(Blocker::Limit);
        return limit.unwrap_or_else(|| Blocker::MinValues(around.symbols.key_name(key)));
    }
    if let Some(blocker) = held_elsewhere(around, group, &types) {
        return blocker;
    }
    let in_use = around.reservations.and_then(|reservations| {
        let only = reservations.are_all(pool.view, around.view, &left.offerings, &types);
        only.then(|| reservations.names(pool.view, around.view, &left.offerings, &types).join(", "))
    });
    if let Some(ids) = in_use {
        return Blocker::ReservationsFull(ids.into());
    }
    // A node could be had: it is where the other pods are.
    topology().unwrap_or_else(|| lost.blocker(considered, considered, 0, None))
}

/// Host ports and volumes that none of these types can give the pod.
fn held_elsewhere(around: Surroundings<'_, '_>, group: &Group<'_>, types: &Bits) -> Option<Blocker> {
    let shape = group.shape;
    if types.is_subset(&around.pool.ports_taken(shape)) {
        let ports: Vec<String> =
            shape.host_ports.iter().map(|port| format!("{}/{}", port.port, port.protocol)).collect();
        return Some(Blocker::HostPort { ports: ports.join(", ").into(), types: id_of(types.len()) });
    }
    drivers(shape).find_map(|driver| {
        let asked = attached(shape, driver);
        let limits = types.iter().filter_map(|at| around.view.catalog.types.get(at as usize));
        let most = limits.map(|of_type| of_type.volume_limits.get(driver).copied().unwrap_or(u32::MAX)).max()?;
        (asked > most).then(|| Blocker::AttachLimit { driver: Arc::clone(driver), asked, most })
    })
}

/// What keeps a pod out of a NodePool that is not in use, whatever the NodePool could launch.
pub(crate) fn outside(pool: &crate::nodepool::NodePool, shape: &crate::pod::PodShape) -> Option<Blocker> {
    let taint = untolerated(&pool.taints, &shape.tolerations, true)?;
    Some(Blocker::Taint(taint.to_string().into()))
}

/// A resource of which no type of the pool has enough, whatever else the pod needs.
fn too_large(
    pool: &super::pool::Pool<'_>,
    group: &Group<'_>,
    resource_name: impl Fn(usize) -> Option<Arc<str>>,
) -> Option<Blocker> {
    /// A million CPUs: `1M` was written for `1m`.
    const SUSPICIOUS_CPU_MILLI: i64 = 1_000_000_000;
    group.asked.iter().find_map(|(resource, amount)| {
        let column = pool.room.get(*resource)?;
        let largest = pool.types.iter().filter_map(|of_type| column.get(of_type as usize)).max().copied()?;
        let name = resource_name(*resource)?;
        let typo = &*name == "cpu" && *amount >= SUSPICIOUS_CPU_MILLI;
        (*amount > largest).then(|| Blocker::TooLarge {
            asked: display_amount(&name, *amount).into(),
            largest: display_amount(&name, largest.max(0)).into(),
            resource: name,
            hint: typo.then(|| "M is a million, m a thousandth".into()),
        })
    })
}

/// Types lost, by cause.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    requirements: usize,
    resources: usize,
    policy: usize,
}

impl Lost {
    /// `agreeing` types of `considered` meet the labels; `offerings` of those have no offering.
    fn blocker(self, considered: usize, agreeing: usize, offerings: usize, short_of: Option<Arc<str>>) -> Blocker {
        Blocker::NoInstanceType {
            considered: id_of(considered),
            by_requirements: id_of(self.requirements.max(considered - agreeing)),
            by_resources: id_of(self.resources),
            by_offerings: id_of(offerings.min(agreeing)),
            by_policy: id_of(self.policy),
            short_of,
        }
    }
}

/// Types of the pool whose own labels meet what is asked, whatever their offerings.
fn types_agreeing(around: Surroundings<'_, '_>, asked: &SymbolSet) -> usize {
    let mut types = around.pool.types.clone();
    for (key, values) in asked.iter() {
        let together = match around.pool.template.get(key) {
            Some(own) => own.intersection(values, around.symbols.integers(key)),
            None => values.clone(),
        };
        types.and(&around.view.types_agreeing(key, &together));
    }
    types.len()
}

/// A value asked for that no type or offering of the pool has: most likely a typing error.
fn impossible_value(around: Surroundings<'_, '_>, asked: &SymbolSet) -> Option<Blocker> {
    asked.iter().find_map(|(key, values)| {
        let mut types = around.pool.types.clone();
        types.and(&around.view.types_agreeing(key, values));
        let offerings = around.view.offerings_agreeing(key, values).map(|mut agreeing| {
            agreeing.and(&around.pool.offerings);
            agreeing
        });
        if !types.is_empty() && offerings.is_none_or(|offerings| !offerings.is_empty()) {
            return None;
        }
        Some(requirement(key, values, None, around.view, &around.pool.source.name, around.symbols))
    })
}

/// A label requirement that a pool cannot meet, with what the pool has and a guess at what was meant.
pub(crate) fn requirement(
    key: KeyId,
    asked: &ValueSet,
    own: Option<&ValueSet>,
    view: &View<'_>,
    pool: &str,
    symbols: &Symbols,
) -> Blocker {
    let name = symbols.key_name(key);
    let known = view.values_of(key);
    let (offered, hint) = match own {
        Some(own) => {
            let own = own.to_values(key, symbols);
            let hint = hint_among(asked, key, own.values.iter().map(|value| &**value), symbols);
            (format!("NodePool {pool} has {own}"), hint)
        }
        None if !known.is_empty() => {
            let hint = hint_among(asked, key, known.iter().map(|value| &**value), symbols);
            let list = crate::requirement::Values {
                values: known.iter().cloned().collect(),
                ..crate::requirement::Values::default()
            };
            let what = match &*name {
                key::ZONE | key::CAPACITY_TYPE => "offerings",
                _ => "instance types",
            };
            (format!("{what} of NodePool {pool} have {list}"), hint)
        }
        None => {
            let keys: Vec<Arc<str>> =
                symbols.keys().filter(|(id, _)| *id != key).map(|(_, name)| Arc::clone(name)).collect();
            let known =
                keys.iter().map(|key| &**key).filter(|known| view.defines(known) || key::WELL_KNOWN.contains(known));
            let hint = similar(&name, known).map(Arc::from);
            (format!("nothing in NodePool {pool} defines this label"), hint)
        }
    };
    Blocker::Requirement {
        key: name,
        asked: asked.to_values(key, symbols).to_string().into(),
        offered: offered.into(),
        hint,
    }
}

fn hint_among<'k>(
    asked: &ValueSet,
    key: KeyId,
    known: impl Iterator<Item = &'k str> + Clone,
    symbols: &Symbols,
) -> Option<Arc<str>> {
    if asked.complement {
        return None;
    }
    let mut values = asked.bits.iter().map(|value| symbols.value_name(key, value));
    values.find_map(|value| similar(&value, known.clone()).map(Arc::from))
}

/// Everything was removed from these types by policies.
pub(crate) fn by_policy(types: &Bits) -> Blocker {
    let count = id_of(types.len());
    Blocker::NoInstanceType {
        considered: count,
        by_requirements: 0,
        by_resources: 0,
        by_offerings: 0,
        by_policy: count,
        short_of: None,
    }
}
