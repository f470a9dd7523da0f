//! Candidate nodes as the consolidation policy sees them.

use super::candidate::Candidate;
use crate::catalog::View;
use crate::policy::{Nodes, Tables, unsigned};
use crate::requirement::key;
use crate::schedule::{PoolsByName, needs_another_place, offering_of};

/// One row per candidate, in their order.
pub(crate) fn nodes(
    candidates: &[Candidate<'_>],
    now_unix_ms: i64,
    tables: &Tables,
    (views, pools): (&[View<'_>], &PoolsByName<'_>),
) -> Nodes {
    let mut nodes = Nodes::default();
    let seconds_since = |unix_ms: i64| unsigned(now_unix_ms.saturating_sub(unix_ms) / 1000);
    for candidate in candidates {
        let node = candidate.node;
        let at = pools.pools.get(&*candidate.pool.name).map(|(_, view)| *view);
        let found = at.and_then(|at| Some((at, views.get(at)?, offering_of(views.get(at)?, node)?)));
        let price = found.and_then(|(_, view, offering)| {
            let of_type = view.columns.type_of.get(offering as usize)?;
            view.offering(*of_type, offering)?.price
        });
        let moving = node.pods.iter().filter(|pod| needs_another_place(pod));
        let moving_cost: i64 = moving.clone().map(|pod| pod.eviction_cost_milli.max(0)).sum();
        let spot = node.labels.get(key::CAPACITY_TYPE).is_some_and(|market| &**market == "spot");
        let bits = [candidate.is_empty(), false, node.consolidatable, spot, node.initialized, candidate.pool.is_static];
        nodes.id.push(stable_id(node.node_claim.as_deref().unwrap_or(candidate.name)));
        nodes.nodepool.push(tables.nodepool_row(&candidate.pool.name));
        nodes.offering.push(found.map_or(u32::MAX, |(at, _, offering)| tables.offering(at, offering)));
        nodes.price_micro_usd.push(price.map_or(u64::MAX, |price| price.0));
        nodes.age_s.push(seconds_since(node.created_unix_ms));
        nodes.idle_s.push(node.last_pod_event_unix_ms.map_or(0, seconds_since));
        nodes.used_cpu_milli.push(unsigned(node.used.cpu_milli));
        nodes.used_memory_mib.push(unsigned(node.used.memory >> 20));
        nodes.pods.push(crate::symbol::id_of(moving.count()));
        // 1 for the node and what its pods cost, as the reference counts it.
        nodes.disruption_cost_milli.push(unsigned(1000_i64.saturating_add(moving_cost)));
        nodes.last_moved_s.push(0);
        nodes.state.push(bits.iter().enumerate().map(|(bit, set)| u32::from(*set) << bit).sum());
    }
    nodes
}

/// The same for as long as the node lives, on every machine and version: FNV-1a of its name.
fn stable_id(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
