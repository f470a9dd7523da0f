//! From a first plan to a better one: take some nodes out, place their pods anew, keep what is cheaper.

use alloc::vec::Vec;

use crate::draw::Draw;
use crate::fill::{Filler, Order};
use crate::greedy::{Built, Limits, Rules, build};
use crate::model::{Budget, Model, PlannedNode};
use crate::prices::{Prices, prices};

/// Most nodes taken out at a time.
const MOST_RUINED: usize = 6;
/// Kinds that a rebuild chooses from: of the best, and of all.
const GOOD_KINDS: usize = 10;
const ANY_KINDS: usize = 6;
/// A worse plan is walked through when it is at most this share worse, at the start; nothing at the end.
const PATIENCE: f64 = 0.004;

/// A plan being improved.
#[derive(Clone, Debug)]
struct Plan {
    nodes: Vec<PlannedNode>,
    cost: f64,
    /// Pods of each part without a node.
    left: Vec<u32>,
    unplaced: u64,
    limits: Limits,
    /// Pods of each part: moves between zones change it.
    counts: Vec<u32>,
}

impl Plan {
    fn is_better_than(&self, other: &Self) -> bool {
        (self.unplaced, self.cost) < (other.unplaced, other.cost)
    }
}

/// The cheapest nodes found for all parts of the model.
pub(crate) fn plan(model: &Model, budget: &mut Budget) -> Vec<PlannedNode> {
    let mut filler = Filler::new(model);
    let prices = prices(model, &mut filler, budget);
    let mut best = first(model, &prices, (&mut filler, budget));
    let mut search =
        Search { model, prices: &prices, draw: Draw::new(), worth: prices.worth.clone(), kinds: Vec::new() };
    let mut plan = best.clone();
    while !budget.is_spent() && !plan.nodes.is_empty() {
        let changed = search.step(&mut plan, (&mut filler, budget));
        if changed && plan.is_better_than(&best) {
            best = plan.clone();
        } else if plan.cost > best.cost * (1.0 + PATIENCE) {
            plan = best.clone();
        }
    }
    best.nodes
}

/// The best of some plans made at one go.
fn first(model: &Model, prices: &Prices, (filler, budget): (&mut Filler, &mut Budget)) -> Plan {
    let counts = model.counts();
    let mut best: Option<Plan> = None;
    let mut keep = |built: Built, limits: Limits| {
        let plan = Plan {
            nodes: built.nodes,
            cost: built.cost,
            left: built.left,
            unplaced: built.unplaced,
            limits,
            counts: model.counts(),
        };
        if best.as_ref().is_none_or(|best| plan.is_better_than(best)) {
            best = Some(plan);
        }
    };
    let few: Vec<u32> = prices.ranked.iter().copied().take(64).collect();
    let whole = rounded_down(model, prices, &counts, budget);
    for order in [Order::Worth, Order::Tightest, Order::Balanced, Order::Largest, Order::Even] {
        for start in [&[][..], &whole] {
            let mut limits = Limits::new(model);
            let mut left = counts.clone();
            for node in start {
                limits.take(model, node.kind);
                node.pods.iter().for_each(|(part, pods)| left[*part as usize] -= pods);
            }
            let rules = Rules { worth: &prices.worth, bias: 0.0, order, kinds: &few, limit: f64::MAX, bound: None };
            if let Some(mut built) = build(model, (filler, budget), left, &mut limits, &rules) {
                built.nodes.extend_from_slice(start);
                built.cost += start.iter().map(|node| model.kinds[node.kind].cost).sum::<f64>();
                keep(built, limits);
            }
        }
    }
    best.unwrap_or_else(|| Plan {
        nodes: Vec::new(),
        cost: 0.0,
        unplaced: counts.iter().map(|count| u64::from(*count)).sum(),
        left: counts.clone(),
        limits: Limits::new(model),
        counts,
    })
}

/// Whole nodes of the linear program, where no limit binds.
fn rounded_down(model: &Model, prices: &Prices, counts: &[u32], budget: &mut Budget) -> Vec<PlannedNode> {
    let mut left = counts.to_vec();
    let mut out = Vec::new();
    if model.limited {
        return out;
    }
    for (node, level) in &prices.used {
        for _ in 0..(*level + 1e-6) as usize {
            if !budget.spend(node.pods.len() + 1) || node.pods.iter().any(|(part, pods)| left[*part as usize] < *pods) {
                break;
            }
            node.pods.iter().for_each(|(part, pods)| left[*part as usize] -= pods);
            out.push(node.clone());
        }
    }
    out
}

struct Search<'m> {
    model: &'m Model,
    prices: &'m Prices,
    draw: Draw,
    worth: Vec<f64>,
    kinds: Vec<u32>,
}

impl Search<'_> {
    /// One ruin and rebuild. True when the plan changed.
    fn step(&mut self, plan: &mut Plan, (filler, budget): (&mut Filler, &mut Budget)) -> bool {
        budget.spend(self.model.parts.len() + plan.nodes.len() + 8);
        let ruined = self.ruin(plan);
        let mut left = plan.left.clone();
        let mut before = 0.0;
        let mut limits = plan.limits.clone();
        for at in &ruined {
            let node = &plan.nodes[*at];
            before += self.model.kinds[node.kind].cost;
            limits.give(self.model, node.kind);
            node.pods.iter().for_each(|(part, pods)| left[*part as usize] += pods);
        }
        let moves = self.move_between_zones(&mut left, &mut plan.counts);
        self.vary();
        let patience = plan.cost * PATIENCE * budget.share_left() * self.draw.between(0.0, 1.0);
        let order = match self.draw.below(8) {
            0 | 1 => Order::Worth,
            2 => Order::Tightest,
            3 | 4 => Order::Largest,
            5 => Order::Even,
            _ => Order::Balanced,
        };
        let average = plan.cost / plan.nodes.len() as f64;
        let bias = if self.draw.below(3) == 0 { 0.0 } else { average * self.draw.between(-0.15, 0.3) };
        let limit = before + patience;
        let bound = (plan.unplaced == 0).then_some(&*self.prices.worth);
        let rules = Rules { worth: &self.worth, bias, order, kinds: &self.kinds, limit, bound };
        let built = build(self.model, (filler, budget), left, &mut limits, &rules);
        let built = built
            .filter(|built| built.unplaced < plan.unplaced || (built.unplaced == plan.unplaced && built.cost < limit));
        let Some(built) = built else {
            for (from, to) in moves {
                plan.counts[from] += 1;
                plan.counts[to] -= 1;
            }
            return false;
        };
        let mut ruined = ruined;
        ruined.sort_unstable();
        for at in ruined.into_iter().rev() {
            plan.nodes.swap_remove(at);
        }
        plan.nodes.extend(built.nodes);
        plan.cost += built.cost - before;
        plan.left = built.left;
        plan.unplaced = built.unplaced;
        plan.limits = limits;
        true
    }

    /// Which nodes to take out: one that wastes much, and others.
    fn ruin(&mut self, plan: &Plan) -> Vec<usize> {
        let nodes = plan.nodes.len();
        let most = MOST_RUINED.min(nodes);
        // Few more often than many.
        let count = 1 + self.draw.below(most).min(self.draw.below(most + 1));
        let mut out: Vec<usize> = Vec::with_capacity(count);
        for _ in 0..count {
            let mut worst: Option<(f64, usize)> = None;
            for _ in 0..(1 + self.draw.below(3)) {
                let at = self.draw.below(nodes);
                let waste = self.waste(&plan.nodes[at]);
                if !out.contains(&at) && worst.is_none_or(|(most, _)| waste > most) {
                    worst = Some((waste, at));
                }
            }
            out.extend(worst.map(|(_, at)| at));
        }
        out
    }

    /// Cost of the node above the worth of its pods.
    fn waste(&self, node: &PlannedNode) -> f64 {
        let worth: f64 =
            node.pods.iter().map(|(part, pods)| self.prices.worth[*part as usize] * f64::from(*pods)).sum();
        self.model.kinds[node.kind].cost - worth
    }

    /// Moves some pods of spread groups to another zone where the skew allows it. Returns the moves, for taking back.
    fn move_between_zones(&mut self, left: &mut [u32], counts: &mut [u32]) -> Vec<(usize, usize)> {
        let mut moves = Vec::new();
        if self.draw.below(2) == 0 {
            return moves;
        }
        let movable: Vec<usize> =
            (0..left.len()).filter(|part| left[*part] > 0 && self.model.parts[*part].siblings.1 > 0).collect();
        for _ in 0..(1 + self.draw.below(4)).min(movable.len()) {
            let from = movable[self.draw.below(movable.len())];
            let part = &self.model.parts[from];
            let (start, end) = part.siblings;
            let to = start + self.draw.below(end - start);
            if to == from || left[from] == 0 {
                continue;
            }
            let after = |at: usize| match at {
                at if at == from => counts[at] - 1,
                at if at == to => counts[at] + 1,
                at => counts[at],
            };
            let most = (start..end).map(after).max().unwrap_or(0);
            let least = (start..end).map(after).min().unwrap_or(0);
            if most - least <= part.skew {
                counts[from] -= 1;
                counts[to] += 1;
                left[from] -= 1;
                left[to] += 1;
                moves.push((from, to));
            }
        }
        moves
    }

    /// Other worths and other kinds for the next rebuild.
    fn vary(&mut self) {
        let width = [0.0, 0.05, 0.15, 0.4][self.draw.below(4)];
        for (worth, base) in self.worth.iter_mut().zip(&self.prices.worth) {
            *worth = base * self.draw.between(1.0 - width, 1.0 + width);
        }
        self.kinds.clear();
        let ranked = &self.prices.ranked;
        for _ in 0..GOOD_KINDS {
            let among = ranked.len().min(GOOD_KINDS * 4);
            self.kinds.push(ranked[self.draw.below(among)]);
        }
        for _ in 0..ANY_KINDS {
            self.kinds.push(ranked[self.draw.below(ranked.len())]);
        }
        self.kinds.sort_unstable();
        self.kinds.dedup();
    }
}
