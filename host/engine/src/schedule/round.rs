//! Opening a round with the policies: its tables and its arguments.

use std::sync::Arc;

use super::existing::PoolsByName;
use crate::catalog::{CapacityType, View};
use crate::nodepool::{ConsolidationPolicy, NodePool};
use crate::policy::{Round, Tables};
use crate::requirement::key;
use crate::snapshot::{Options, Snapshot};

/// Work budget handed to planners: enough for 20,000 pods, bounded for the worst case.
const STEPS: u64 = 3_000_000;

/// Arguments that every hook gets.
pub(crate) fn round_of(now_unix_ms: i64, options: &Options) -> Round {
    Round {
        id: options.round,
        now_unix_ms: crate::policy::unsigned(now_unix_ms),
        seed: options.seed,
        steps: STEPS,
        explain: options.explain,
    }
}

/// The tables of a snapshot: catalogues, NodePools by name, and what runs now.
pub(crate) fn begin_tables(snapshot: &Snapshot, views: &[View<'_>], pools: &PoolsByName<'_>) -> Tables {
    let mut tables = Tables::new(views);
    for (pool, _) in pools.pools.values() {
        add_nodepool(&mut tables, pool, snapshot);
    }
    for node in snapshot.nodes.values() {
        let Some((pool, view)) = node.nodepool.as_deref().and_then(|name| pools.pools.get(name)) else { continue };
        if let Some(offering) = views.get(*view).and_then(|view| offering_of(view, node))
            && !node.deleting
        {
            let row = tables.nodepool_row(&pool.name);
            let offering = tables.offering(*view, offering);
            tables.count_running(row, offering);
        }
    }
    tables
}

fn add_nodepool(tables: &mut Tables, pool: &Arc<NodePool>, snapshot: &Snapshot) {
    let mut limits = pool.limits.clone();
    for node in snapshot.nodes.values().filter(|node| node.nodepool.as_ref() == Some(&pool.name) && !node.deleting) {
        for (name, left) in &mut limits.resources {
            *left = left.saturating_sub(node.capacity.get(name));
        }
        limits.nodes = limits.nodes.map(|nodes| nodes - 1);
    }
    let consolidation = match pool.disruption.policy {
        ConsolidationPolicy::WhenEmpty => 0,
        ConsolidationPolicy::WhenEmptyOrUnderutilized => 1,
        ConsolidationPolicy::Balanced => 2,
    };
    let budget = |reason| crate::disrupt::budget::state(snapshot, pool, reason).allowed;
    let budgets = (budget("Empty"), budget("Underutilized"));
    tables.add_nodepool(pool, consolidation, &limits, budgets);
}

/// The offering that a running node is, by its labels.
pub(crate) fn offering_of(view: &View<'_>, node: &crate::node::Node) -> Option<u32> {
    let label = |name: &str| node.labels.get(name).map(|value| &**value);
    let name = label(key::INSTANCE_TYPE)?;
    let at = view.catalog.types.binary_search_by(|of_type| (*of_type.name).cmp(name)).ok()?;
    let of_type = view.catalog.types.get(at)?;
    let (zone, market) = (label(key::ZONE)?, CapacityType::parse(label(key::CAPACITY_TYPE)?)?);
    let own =
        of_type.offerings.iter().position(|offering| &*offering.zone == zone && offering.capacity_type == market)?;
    Some(view.columns.offerings_of(crate::symbol::id_of(at)).start + crate::symbol::id_of(own))
}
