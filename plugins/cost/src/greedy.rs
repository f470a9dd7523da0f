//! Opening nodes one after another until no pod is left.

use alloc::vec;
use alloc::vec::Vec;

use crate::fill::{self, Filler, Order};
use crate::model::{Budget, Model, PlannedNode, PoolLeft};

/// What is left of limits while a plan is made.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pools: Vec<PoolLeft>,
    nodes: Vec<u32>,
    any: bool,
}

impl Limits {
    pub(crate) fn new(model: &Model) -> Self {
        let nodes = if model.limited { model.kinds.iter().map(|kind| kind.nodes).collect() } else { Vec::new() };
        Self { pools: if model.limited { model.pools.clone() } else { Vec::new() }, nodes, any: model.limited }
    }

    fn allows(&self, model: &Model, kind: usize) -> bool {
        let of = &model.kinds[kind];
        !self.any || (self.nodes[kind] > 0 && self.pools.get(of.pool).is_some_and(|left| left.allows(of)))
    }

    pub(crate) fn take(&mut self, model: &Model, kind: usize) {
        if self.any {
            let of = &model.kinds[kind];
            self.nodes[kind] = if of.nodes == u32::MAX { u32::MAX } else { self.nodes[kind].saturating_sub(1) };
            if let Some(pool) = self.pools.get_mut(of.pool) {
                pool.charge(of);
            }
        }
    }

    pub(crate) fn give(&mut self, model: &Model, kind: usize) {
        if self.any {
            let of = &model.kinds[kind];
            self.nodes[kind] = if of.nodes == u32::MAX { u32::MAX } else { self.nodes[kind].saturating_add(1) };
            if let Some(pool) = self.pools.get_mut(of.pool) {
                pool.refund(of);
            }
        }
    }
}

/// How nodes are chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    pub(crate) worth: &'a [f64],
    /// Added to the cost of every node while choosing: above 0 bigger nodes look better, below 0 smaller ones.
    pub(crate) bias: f64,
    pub(crate) order: Order,
    /// Kinds to choose from.
    pub(crate) kinds: &'a [u32],
    /// A plan that leaves no pod and costs this is no use.
    pub(crate) limit: f64,
    /// What one pod of each part costs at least, for giving up early.
    pub(crate) bound: Option<&'a [f64]>,
}

/// Nodes and what is not placed.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) nodes: Vec<PlannedNode>,
    pub(crate) cost: f64,
    /// Pods of each part that found no node.
    pub(crate) left: Vec<u32>,
    pub(crate) unplaced: u64,
}

/// Places `left` (pods of each part) on new nodes; `None` when the limit of the rules is reached or the budget spent.
pub(crate) fn build(
    model: &Model,
    (filler, budget): (&mut Filler, &mut Budget),
    mut left: Vec<u32>,
    limits: &mut Limits,
    rules: &Rules<'_>,
) -> Option<Built> {
    let mut nodes: Vec<PlannedNode> = Vec::new();
    let mut cost = 0.0;
    // The cheapest way found to end with one node that holds everything left: after how many nodes, and which.
    let mut end: Option<(f64, usize, PlannedNode)> = None;
    let mut pods = Vec::new();
    let mut best_pods = Vec::new();
    let mut total = totals(model, &left);
    loop {
        if left.iter().all(|count| *count == 0) {
            break;
        }
        let limit =
            end.as_ref().map_or(rules.limit, |(least, ..)| if *least < rules.limit { *least } else { rules.limit });
        let floor = |bound: &[f64]| -> f64 {
            bound.iter().zip(&left).map(|(worth, count)| worth * f64::from(*count)).sum::<f64>() * 0.995
        };
        if cost >= limit || rules.bound.is_some_and(|bound| cost + floor(bound) >= limit) {
            break;
        }
        budget.spend(model.kinds.len() / 4 + left.len());
        if let Some(kind) = holds_all(model, &left, &total, limits, limit - cost) {
            let rest = left.iter().enumerate().filter(|(_, count)| **count > 0);
            let node = PlannedNode { kind, pods: rest.map(|(part, count)| (part as u32, *count)).collect() };
            end = Some((cost + model.kinds[kind].cost, nodes.len(), node));
        }
        let mut best: Option<(f64, usize)> = None;
        for kind in rules.kinds.iter().map(|kind| *kind as usize) {
            let of = &model.kinds[kind];
            if !limits.allows(model, kind) || cost + of.cost >= limit {
                continue;
            }
            budget.spend(fill::steps(model, kind, rules.order));
            let worth = filler.fill(model, kind, (&left, rules.worth), rules.order, &mut pods);
            if pods.is_empty() {
                continue;
            }
            let biased = of.cost + rules.bias;
            let least = of.cost * 0.05;
            let score = (if biased > least { biased } else { least }) / (worth + 1e-9);
            if best.is_none_or(|(least, _)| score < least) {
                best = Some((score, kind));
                core::mem::swap(&mut pods, &mut best_pods);
            }
        }
        let Some((_, kind)) = best else { break };
        // The same node again for as long as the rest fills it, and would not fit on one node.
        loop {
            for (part, count) in &best_pods {
                let at = *part as usize;
                left[at] -= count;
                for (total, need) in total.iter_mut().zip(model.need(at)) {
                    *total -= u64::from(*need) * u64::from(*count);
                }
            }
            limits.take(model, kind);
            cost += model.kinds[kind].cost;
            nodes.push(PlannedNode { kind, pods: best_pods.clone() });
            let again = best_pods.iter().all(|(part, count)| left[*part as usize] >= count.saturating_mul(2));
            if !again || !limits.allows(model, kind) || cost >= rules.limit || !budget.spend(best_pods.len()) {
                break;
            }
        }
        if budget.is_spent() {
            break;
        }
    }
    if left.iter().any(|count| *count > 0)
        && let Some((_, keep, node)) = end
    {
        for dropped in nodes.split_off(keep) {
            limits.give(model, dropped.kind);
        }
        limits.take(model, node.kind);
        nodes.push(node);
        left = vec![0; left.len()];
    }
    let unplaced = left.iter().map(|count| u64::from(*count)).sum();
    let cost = nodes.iter().map(|node| model.kinds[node.kind].cost).sum();
    Some(Built { nodes, cost, left, unplaced })
}

fn totals(model: &Model, left: &[u32]) -> Vec<u64> {
    let mut total = vec![0_u64; model.dims];
    for (part, count) in left.iter().enumerate().filter(|(_, count)| **count > 0) {
        for (total, need) in total.iter_mut().zip(model.need(part)) {
            *total += u64::from(*need) * u64::from(*count);
        }
    }
    total
}

/// The cheapest kind below `limit` that holds everything that is left on one node.
fn holds_all(model: &Model, left: &[u32], total: &[u64], limits: &Limits, limit: f64) -> Option<usize> {
    let rest = || left.iter().enumerate().filter(|(_, count)| **count > 0).map(|(part, count)| (part, *count));
    if rest().any(|(part, count)| count > model.parts[part].most) {
        return None;
    }
    if model.has_conflicts
        && rest().any(|(part, _)| model.parts[part].conflicts.iter().any(|other| left[*other as usize] > 0))
    {
        return None;
    }
    let holds = |kind: usize| {
        model.room(kind).iter().zip(total).all(|(room, total)| *total <= u64::from(*room))
            && limits.allows(model, kind)
            && rest().all(|(part, _)| model.class(kind).binary_search(&(part as u32)).is_ok())
    };
    (0..model.kinds.len()).take_while(|kind| model.kinds[*kind].cost < limit).find(|kind| holds(*kind))
}
