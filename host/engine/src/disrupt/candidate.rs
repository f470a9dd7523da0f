//! Which nodes may be considered for voluntary disruption, and why others may not.

use std::sync::Arc;

use super::NodeBlocker;
use crate::node::Node;
use crate::nodepool::NodePool;
use crate::schedule::{managed_nodes, needs_another_place, sorted_pools};
use crate::snapshot::Snapshot;

/// A node that nothing protects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) node: &'a Node,
    pub(crate) pool: &'a Arc<NodePool>,
}

impl Candidate<'_> {
    /// Nothing on it would have to move at a cost: no pod, or only such as are marked to be evicted rather than kept; and
    /// it keeps no room for a CapacityBuffer.
    pub(crate) fn is_empty(&self) -> bool {
        self.node.buffer_pods == 0
            && !self.node.pods.iter().any(|pod| needs_another_place(pod) && pod.eviction_cost_milli > 0)
    }

    /// Why emptiness leaves it alone although it is empty.
    pub(crate) fn not_removable(&self) -> Option<NodeBlocker> {
        if self.pool.disruption.consolidate_after_ms.is_none() {
            return Some(NodeBlocker::ConsolidateAfterNever);
        }
        (!self.node.consolidatable).then_some(NodeBlocker::NotConsolidatable)
    }
}

/// Every managed node: a candidate, or what protects it. In order of name.
pub(crate) fn candidates(snapshot: &Snapshot) -> Vec<Result<Candidate<'_>, (Arc<str>, NodeBlocker)>> {
    let pools = sorted_pools(snapshot);
    managed_nodes(snapshot)
        .map(|(name, node)| match blocker(node, &pools, snapshot.now_unix_ms) {
            Ok(pool) => Ok(Candidate { name, node, pool }),
            Err(blocker) => Err((Arc::clone(name), blocker)),
        })
        .collect()
}

/// The node's NodePool, or the first thing that protects the node.
fn blocker<'a>(node: &Node, pools: &[&'a Arc<NodePool>], now_unix_ms: i64) -> Result<&'a Arc<NodePool>, NodeBlocker> {
    if node.node_name.is_none() {
        return Err(NodeBlocker::NoNode);
    }
    if node.deleting || node.instance_terminating {
        return Err(NodeBlocker::Deleting);
    }
    if !node.registered || !node.initialized {
        return Err(NodeBlocker::NotInitialized);
    }
    if node.nominated_until_unix_ms > now_unix_ms {
        return Err(NodeBlocker::Nominated);
    }
    if node.do_not_disrupt {
        return Err(NodeBlocker::DoNotDisrupt);
    }
    let name = node.nodepool.as_deref().unwrap_or_default();
    let found = pools.binary_search_by(|pool| (*pool.name).cmp(name)).ok().and_then(|at| pools.get(at));
    let Some(pool) = found else { return Err(NodeBlocker::NoNodePool) };
    for pod in &node.pods {
        // A terminating pod is on its way out whatever its annotations say.
        if !pod.terminating && pod.do_not_disrupt {
            return Err(NodeBlocker::PodDoNotDisrupt(pod.key.clone()));
        }
    }
    for pod in &node.pods {
        if !pod.terminating
            && let Some(budget) = &pod.blocked_by_pdb
        {
            return Err(NodeBlocker::PodDisruptionBudget(pod.key.clone(), Arc::clone(budget)));
        }
    }
    match node.blocking_pods.first() {
        Some((pod, why)) => Err(NodeBlocker::Pod(pod.clone(), Arc::clone(why))),
        None => Ok(pool),
    }
}
