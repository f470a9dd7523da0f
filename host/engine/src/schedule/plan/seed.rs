//! A proposal as nodes to be opened natively.

use super::problem::Asked;
use crate::catalog::CapacityType;
use crate::policy::Proposal;
use crate::schedule::place::Placer;
use crate::symbol::{Bits, id_of};

/// A node that the planner wants.
#[derive(Clone, Debug)]
pub(crate) struct PlannedNode {
    /// Index of its NodePool.
    pub(crate) pool: usize,
    /// Offerings of the pool's view that it may be.
    pub(crate) allowed: Bits,
    /// Groups with their pods, as places in the queue.
    pub(crate) pods: Vec<(u32, Vec<u32>)>,
}

/// The nodes of a checked proposal. `places` are the pods of each group that were asked for.
///
/// A node may be every offering of its NodePool at up to the price that the planner had in mind. One that is planned on
/// spot is not narrowed by price at all: what spot draws from must be as wide as in native order.
pub(crate) fn nodes(
    placer: &Placer<'_, '_>,
    asked: &Asked,
    proposal: &Proposal,
    mut places: Vec<Vec<u32>>,
) -> Vec<PlannedNode> {
    let mut counts = proposal.pod_count.iter().copied();
    let mut out = Vec::with_capacity(proposal.slots.len());
    for row in 0..proposal.slots.len() {
        let slots = proposal.slots.row(row);
        let rows = proposal.pod_group.row(row);
        let mut pods = Vec::with_capacity(rows.len());
        for (row, count) in rows.iter().zip(counts.by_ref()) {
            let Some(group) = asked.groups.get(*row as usize) else { continue };
            let Some(left) = places.get_mut(*group as usize) else { continue };
            let rest = left.split_off((count as usize).min(left.len()));
            pods.push((*group, std::mem::replace(left, rest)));
        }
        let spread = rows.iter().any(|row| asked.problem.zone_skew.get(*row as usize).is_some_and(|skew| *skew > 0));
        if let Some((pool, allowed)) = allowed(placer, asked, slots, spread) {
            out.push(PlannedNode { pool, allowed, pods });
        }
    }
    out
}

fn allowed(placer: &Placer<'_, '_>, asked: &Asked, slots: &[u32], spread: bool) -> Option<(usize, Bits)> {
    let cost = |slot: &u32| asked.problem.slots.cost.get(*slot as usize).copied().unwrap_or(i64::MAX);
    let cheapest = slots.iter().min_by_key(|slot| (cost(slot), **slot))?;
    let dearest = slots.iter().map(cost).max()?;
    let (pool_at, first) = *asked.slots.get(*cheapest as usize)?;
    let pool = placer.pools.get(pool_at)?;
    let view = placer.views.get(pool.view)?;
    let source = |offering: u32| view.offering(*view.columns.type_of.get(offering as usize)?, offering);
    let first = source(first)?;
    let any_price = first.capacity_type == CapacityType::Spot;
    let in_zone = |offering: u32| !spread || source(offering).is_some_and(|other| other.zone == first.zone);
    let own = asked.slots.iter().enumerate().filter(|(_, (pool, _))| *pool == pool_at);
    let at_price = own.filter(|(slot, _)| any_price || cost(&id_of(*slot)) <= dearest);
    let allowed = at_price.map(|(_, (_, offering))| *offering).filter(|offering| in_zone(*offering)).collect();
    Some((pool_at, allowed))
}
