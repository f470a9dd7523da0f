//! What policies are asked before placing.

use std::collections::BTreeMap;

use super::group::Group;
use super::place::{Fresh, Placer};
use super::pool::Pool;
use crate::policy::{COST_DROPPED, ChoicesBuilder, Claims, Pods, PolicyRound, PolicySet, Round, Tables};
use crate::quantity::Resources;
use crate::symbol::Bits;

/// The pod groups as filters see them.
pub(crate) fn pod_columns(groups: &[Group<'_>], policies: &dyn PolicySet, tables: &mut Tables) -> Pods {
    let mut pods = Pods::default();
    for group in groups {
        pods.push(group.shape, group.count, policies.label_keys(), tables);
    }
    pods.push_resources(groups.iter().map(|group| &group.shape.requests));
    pods
}

/// Scorers see each pool before any claim exists; what they drop there is dropped for the round. Returns what is left of
/// each pool's offerings with their costs, ascending.
pub(crate) fn estimate(
    pools: &mut [Pool<'_>],
    rows: &[u32],
    tables: &Tables,
    round: &Round,
    policies: &mut dyn PolicyRound,
) -> Vec<Vec<(u32, i64)>> {
    /// Bit 3 of a claim row's state.
    const ESTIMATE: u32 = 1 << 3;
    let mut claims = Claims::default();
    let mut choices = ChoicesBuilder::default();
    for (pool, row) in pools.iter().zip(rows) {
        let state = ESTIMATE | u32::from(pool.template.has_min_values());
        claims.push(*row, &Resources::default(), 0, state);
        choices.push(tables, vec![(pool.view, pool.offerings.clone())]);
    }
    let choices = choices.finish();
    let base = tables.list_prices(&choices);
    let expected = base.len();
    let costs = policies.evaluate(round, &claims, &choices, base);
    if costs.len() != expected {
        return Vec::new();
    }
    let mut costs = costs.into_iter();
    let mut kept = Vec::with_capacity(pools.len());
    for pool in pools {
        let offerings: Vec<u32> = pool.offerings.iter().collect();
        let (dropped, left): (Vec<_>, Vec<_>) =
            offerings.into_iter().zip(costs.by_ref()).partition(|(_, cost)| *cost == COST_DROPPED);
        dropped.into_iter().for_each(|(offering, _)| pool.offerings.remove(offering));
        kept.push(left);
    }
    kept
}

/// Filters see every group with the offerings that its labels allow in some pool.
pub(crate) fn admit_pods(
    placer: &mut Placer<'_, '_>,
    columns: &Pods,
    tables: &Tables,
    round: &Round,
    policies: &mut dyn PolicyRound,
) {
    let mut choices = ChoicesBuilder::default();
    for at in 0..placer.groups.len() {
        let mut allowed: BTreeMap<usize, Bits> = BTreeMap::new();
        let sets: Vec<u32> = placer
            .groups
            .get(at)
            .map(|group| group.levels.iter().flat_map(|level| level.alternatives.iter().copied()).collect())
            .unwrap_or_default();
        for pool in 0..placer.pools.len() {
            let Some(view) = placer.pools.get(pool).map(|pool| pool.view) else { continue };
            for set in &sets {
                if let Some(Fresh::Some(narrowed)) = placer.fresh(pool, *set) {
                    allowed.entry(view).or_default().or(&narrowed.offerings);
                }
            }
        }
        choices.push(tables, allowed.into_iter().collect());
    }
    if let Some(verdict) = policies.admit_pods(round, columns, &choices.finish()) {
        for (at, group) in placer.groups.iter_mut().enumerate() {
            group.dropped = tables.dropped(&verdict, at);
            group.dropped_because = Tables::reason(&verdict, at);
        }
    }
}
