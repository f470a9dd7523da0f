//! Reasons of the pods that found no place.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::amounts::ResourceNames;
use super::claim::Surroundings;
use super::place::Placer;
use super::{reason, sorted_pools};
use crate::batch::{Batch, Run};
use crate::explain::{Blocker, PodReason, PoolReason};
use crate::pod::PodKey;
use crate::snapshot::Snapshot;

/// Pods whose claim policies left nothing, with its NodePool and what stood in the way.
pub(crate) type Rejected = (Vec<u32>, Arc<str>, Blocker);

/// Reasons of every pod that found no place; one group is looked into once.
pub(crate) fn unplaced(
    placer: &Placer<'_, '_>,
    batch: &Batch<'_>,
    left: &[Run],
    rejected: Vec<Rejected>,
    resources: &ResourceNames,
    snapshot: &Snapshot,
    pools: &[(Arc<str>, PoolReason)],
) -> Vec<(PodKey, PodReason)> {
    let mut reasons: BTreeMap<u32, PodReason> = BTreeMap::new();
    let mut out: Vec<(u32, PodReason)> = Vec::new();
    for run in left {
        let reason =
            reasons.entry(run.group).or_insert_with(|| group_reason(placer, run.group, resources, snapshot, pools));
        out.extend((run.from..run.to).map(|at| (at, reason.clone())));
    }
    for (pods, pool, blocker) in rejected {
        let reason = PodReason { per_pool: vec![(pool, blocker)], general: None };
        out.extend(pods.into_iter().map(|at| (at, reason.clone())));
    }
    out.sort_by_key(|(at, _)| *at);
    out.into_iter().filter_map(|(at, reason)| Some((batch.pods.get(at as usize)?.key.clone(), reason))).collect()
}

fn group_reason(
    placer: &Placer<'_, '_>,
    group: u32,
    resources: &ResourceNames,
    snapshot: &Snapshot,
    pools: &[(Arc<str>, PoolReason)],
) -> PodReason {
    let id = group;
    let Some(group) = placer.groups.get(id as usize) else {
        return PodReason { per_pool: Vec::new(), general: Some(Blocker::NoNodePool) };
    };
    if let Some(refused) = &group.refused {
        return PodReason { per_pool: Vec::new(), general: Some(refused.clone()) };
    }
    let mut per_pool = Vec::new();
    for pool in placer.pools.iter() {
        let Some(view) = placer.views.get(pool.view) else { continue };
        let around = Surroundings { pool, view, symbols: placer.symbols, reservations: Some(&placer.reservations) };
        let topology = || {
            let devices = placer.devices.explain(id, pool.view, &pool.types);
            devices.or_else(|| placer.explain(group, around))
        };
        let blocker = reason::why(around, group, &placer.sets.sets, |at| resources.name(at).cloned(), topology);
        per_pool.push((Arc::clone(&pool.source.name), blocker));
    }
    let used: Vec<&str> = placer.pools.iter().map(|pool| &*pool.source.name).collect();
    for pool in sorted_pools(snapshot) {
        if !pool.is_static && !used.contains(&&*pool.name) {
            let why = match pools.iter().find(|(name, _)| *name == pool.name) {
                Some((_, PoolReason::Limit(resource))) => Blocker::Limit(Arc::clone(resource)),
                Some((_, PoolReason::ReservationsFull(ids))) => {
                    reason::outside(pool, group.shape).unwrap_or_else(|| Blocker::ReservationsFull(Arc::clone(ids)))
                }
                Some((_, PoolReason::Unusable(why))) => Blocker::PoolUnusable(why.join("; ").into()),
                Some((_, reason @ PoolReason::NoInstanceTypes(_))) => Blocker::PoolUnusable(reason.to_string().into()),
                None => Blocker::PoolUnusable(pool.unusable.join("; ").into()),
            };
            per_pool.push((Arc::clone(&pool.name), why));
        }
    }
    let general = per_pool.is_empty().then_some(Blocker::NoNodePool);
    PodReason { per_pool, general }
}
