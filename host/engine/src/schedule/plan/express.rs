//! Which pod groups a planner's columns can express, and what they say of them.

use crate::catalog::CapacityType;
use crate::requirement::key;
use crate::schedule::holdings::holds_nothing;
use crate::schedule::place::{Fresh, Placer};
use crate::schedule::topology::{Axis, Demand, Rule};
use crate::symbol::Bits;
use crate::taint::untolerated;

/// What a group asks for, as a planner sees it.
#[derive(Clone, Debug)]
pub(super) struct Expressed {
    /// Offerings that it may use, by pool; pools in which it may use none are left out.
    pub(super) offerings: Vec<(usize, Bits)>,
    pub(super) max_per_node: u32,
    pub(super) zone_skew: u32,
    /// Groups that it cannot share a node with; may be ones that are not expressed.
    pub(super) conflicts: Vec<u32>,
}

/// The group as a planner sees it; `None` when it has a constraint that the columns have no place for.
pub(super) fn express(placer: &mut Placer<'_, '_>, at: u32) -> Option<Expressed> {
    let group = placer.groups.get(at as usize)?;
    let ([level], None) = (&*group.levels, &group.refused) else { return None };
    let [set] = &*level.alternatives else { return None };
    if !holds_nothing(group.shape) || !group.shape.device_claims.is_empty() {
        return None;
    }
    let set = *set;
    let mut expressed =
        Expressed { offerings: Vec::new(), max_per_node: u32::MAX, zone_skew: 0, conflicts: Vec::new() };
    for constraint in &group.demand.constraints {
        constrain(placer, at, (constraint.counter, constraint.rule), &mut expressed)?;
    }
    for pool_at in 0..placer.pools.len() {
        let offerings = offerings(placer, at, pool_at, set)?;
        if !offerings.is_empty() {
            expressed.offerings.push((pool_at, offerings));
        }
    }
    Some(expressed)
}

/// One constraint about other pods as columns.
fn constrain(placer: &Placer<'_, '_>, at: u32, (counter_at, rule): (u32, Rule), out: &mut Expressed) -> Option<()> {
    let counter = placer.topology.counter(counter_at)?;
    let among = |of: fn(&Demand) -> &Vec<u32>| -> Vec<u32> {
        let counted = placer.groups.iter().enumerate().filter(|(_, group)| of(&group.demand).contains(&counter_at));
        counted.filter_map(|(at, _)| u32::try_from(at).ok()).collect()
    };
    match (counter.axis, rule) {
        (Axis::Host, Rule::Apart { own }) => {
            for other in if own { among(|demand| &demand.counted) } else { among(|demand| &demand.held) } {
                if other == at {
                    out.max_per_node = 1;
                } else {
                    out.conflicts.push(other);
                }
            }
            Some(())
        }
        (Axis::Host, Rule::Spread { max_skew, counts_itself, .. }) => {
            // A new node has none yet, and an empty one can always be had.
            let alone = among(|demand| &demand.counted) == [at];
            (alone && counts_itself && max_skew > 0).then(|| out.max_per_node = out.max_per_node.min(max_skew))
        }
        (Axis::Key(axis), Rule::Spread { max_skew, min_domains, counts_itself, .. }) => {
            let zone = placer.topology.axes.get(axis as usize)?.key;
            let alone = among(|demand| &demand.counted) == [at];
            // Pods that run already are in no column.
            let expressible = *placer.symbols.key_name(zone) == *key::ZONE
                && alone
                && counts_itself
                && min_domains <= 1
                && counter.total == 0
                && out.zone_skew == 0
                && max_skew > 0;
            expressible.then(|| out.zone_skew = max_skew)
        }
        _ => None,
    }
}

/// Offerings of the pool that a new node for the group may use; `None` when the pool has a rule that the columns have no
/// place for.
fn offerings(placer: &mut Placer<'_, '_>, at: u32, pool_at: usize, set: u32) -> Option<Bits> {
    let narrowed = match placer.fresh(pool_at, set) {
        Some(Fresh::Some(narrowed)) => (narrowed.offerings.clone(), narrowed.types.clone()),
        _ => return Some(Bits::default()),
    };
    let (mut offerings, mut types) = narrowed;
    let group = placer.groups.get(at as usize)?;
    let pool = placer.pools.get(pool_at)?;
    let view = placer.views.get(pool.view)?;
    let level = group.levels.first()?;
    if untolerated(&pool.source.taints, &group.shape.tolerations, level.ignore_preferred_taints).is_some() {
        return Some(Bits::default());
    }
    if let Some(dropped) = group.dropped_of(pool.view) {
        offerings.and_not(dropped);
    }
    offerings.and(&pool.offerings);
    types.and(&pool.holds_daemons);
    let of_type = |offering: u32| view.columns.type_of.get(offering as usize).copied();
    offerings.retain(|offering| of_type(offering).is_some_and(|of_type| types.contains(of_type)));
    if offerings.is_empty() {
        return Some(offerings);
    }
    let reserved = |offering: u32| {
        let source = of_type(offering).and_then(|of_type| view.offering(of_type, offering));
        source.is_none_or(|source| source.capacity_type == CapacityType::Reserved)
    };
    // Slots of reservations are counted, and minValues look at whole claims.
    (!pool.template.has_min_values() && !offerings.iter().any(reserved)).then_some(offerings)
}
