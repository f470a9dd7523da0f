//! NodePools and catalogues made ready for a round.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::PoolsByName;
use super::amounts::ResourceNames;
use super::existing::InFlight;
use super::limits::Remaining;
use super::pool::Pool;
use crate::catalog::View;
use crate::explain::PoolReason;
use crate::nodepool::NodePool;
use crate::quantity::Resources;
use crate::snapshot::{Options, Snapshot};
use crate::symbol::Symbols;

/// NodePools that say themselves that they cannot be used, by name.
pub(crate) fn unusable(snapshot: &Snapshot) -> Vec<(Arc<str>, PoolReason)> {
    let mut reasons: Vec<(Arc<str>, PoolReason)> = snapshot
        .nodepools
        .iter()
        .filter(|pool| !pool.unusable.is_empty() && !pool.is_static)
        .map(|pool| (Arc::clone(&pool.name), PoolReason::Unusable(pool.unusable.clone())))
        .collect();
    reasons.sort_by(|a, b| a.0.cmp(&b.0));
    reasons
}

/// NodePools by name, the same whatever their order in the snapshot.
pub(crate) fn sorted_pools(snapshot: &Snapshot) -> Vec<&Arc<NodePool>> {
    let mut pools: Vec<&Arc<NodePool>> = snapshot.nodepools.iter().collect();
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    pools.dedup_by(|later, first| later.name == first.name);
    pools
}

/// One view per distinct catalogue, and each pool's.
pub(crate) fn views<'a>(snapshot: &'a Snapshot, symbols: &mut Symbols) -> (Vec<View<'a>>, PoolsByName<'a>) {
    let mut views: Vec<View<'a>> = Vec::new();
    let mut by_name = PoolsByName::default();
    for pool in sorted_pools(snapshot) {
        let known = views.iter().position(|view| Arc::ptr_eq(view.catalog, &pool.catalog));
        let at = known.unwrap_or_else(|| {
            views.push(View::new(&pool.catalog, symbols));
            views.len() - 1
        });
        by_name.pools.insert(&pool.name, (pool, at));
    }
    (views, by_name)
}

/// Usable pools in the order in which they are tried (weight, then name, both descending), and why others are not.
pub(crate) fn pools<'a>(
    snapshot: &'a Snapshot,
    options: &Options,
    (views, by_name, in_flight): (&[View<'a>], &PoolsByName<'a>, &mut InFlight<'a>),
    resources: &ResourceNames,
    symbols: &mut Symbols,
) -> (Vec<Pool<'a>>, Vec<(Arc<str>, PoolReason)>) {
    let mut charged: BTreeMap<&str, Vec<Resources>> = BTreeMap::new();
    for node in snapshot.nodes.values().filter(|node| !node.deleting) {
        if let Some(pool) = node.nodepool.as_deref() {
            charged.entry(pool).or_default().push(in_flight.charged_capacity(node, by_name.find(node, views), symbols));
        }
    }
    let mut pools = Vec::new();
    let mut reasons = unusable(snapshot);
    for (name, (source, at)) in &by_name.pools {
        let Some(view) = views.get(*at) else { continue };
        if !source.unusable.is_empty() || source.is_static {
            continue;
        }
        let limits = Remaining::new(&source.limits, charged.get(name).into_iter().flatten());
        match Pool::new(source, (*at, view), &snapshot.daemons, resources, limits, options, symbols) {
            Ok(pool) => pools.push(pool),
            Err(reason) => reasons.push((Arc::clone(&source.name), reason)),
        }
    }
    pools.sort_by(|a, b| (b.source.weight, &b.source.name).cmp(&(a.source.weight, &a.source.name)));
    reasons.sort_by(|a, b| a.0.cmp(&b.0));
    (pools, reasons)
}

/// Pools that only their limits keep out: no node comes from them now, but the domains that they could have nodes in exist.
pub(crate) fn pools_at_limit<'a>(
    snapshot: &'a Snapshot,
    options: &Options,
    (views, by_name): (&[View<'a>], &PoolsByName<'a>),
    reasons: &[(Arc<str>, PoolReason)],
    symbols: &mut Symbols,
) -> Vec<Pool<'a>> {
    let at_limit = reasons.iter().filter(|(_, reason)| matches!(reason, PoolReason::Limit(_)));
    let pool = |(name, _): &(Arc<str>, PoolReason)| {
        let (source, at) = by_name.pools.get(&**name)?;
        let view = views.get(*at)?;
        let resources = ResourceNames::new([]);
        Pool::new(source, (*at, view), &snapshot.daemons, &resources, Remaining::default(), options, symbols).ok()
    };
    at_limit.filter_map(pool).collect()
}
