//! What pods are worth: the duals of the linear program whose columns are ways to fill a node, made as needed.

use alloc::vec;
use alloc::vec::Vec;

use crate::fill::{self, Filler, Order};
use crate::model::{Budget, Model, PlannedNode};
use crate::simplex::{Column, Simplex};

/// Prices of pods, and which kinds of node are good at these prices.
#[derive(Clone, Debug)]
pub(crate) struct Prices {
    /// Of one pod of each part, micro-USD per hour.
    pub(crate) worth: Vec<f64>,
    /// Kinds, most worth for the cost first.
    pub(crate) ranked: Vec<u32>,
    /// Nodes that the linear program uses, and how many of each.
    pub(crate) used: Vec<(PlannedNode, f64)>,
}

/// More parts than this are priced by the best node for each alone: the work grows with the square.
const MOST_ROWS: usize = 256;
/// Rounds of new columns.
const ROUNDS: usize = 60;
/// New columns a round.
const NEW_COLUMNS: usize = 12;
/// Share of the budget that pricing may use is one over this.
const SHARE: u64 = 4;

pub(crate) fn prices(model: &Model, filler: &mut Filler, budget: &mut Budget) -> Prices {
    let first: Vec<Column> = (0..model.parts.len()).map(|part| best_alone(model, part)).collect();
    let counts = model.counts();
    let mut worth: Vec<f64> = first.iter().map(per_pod).collect();
    let mut used = Vec::new();
    let stop = budget.left() - budget.left() / SHARE;
    if model.parts.len() <= MOST_ROWS {
        let mut simplex = Simplex::new(first, &counts);
        for round in 0..ROUNDS {
            if budget.left() <= stop || !improve(model, (filler, budget), &counts, (&mut simplex, &mut worth), round) {
                break;
            }
        }
        used = simplex.used().map(|(node, level)| (node.clone(), level)).collect();
    }
    worth.iter_mut().for_each(|worth| *worth = worth.max(0.0));
    let ranked = rank(model, (filler, budget), (&counts, &worth));
    Prices { worth, ranked, used }
}

fn per_pod(column: &Column) -> f64 {
    column.node.pods.first().map_or(0.0, |(_, pods)| column.cost / f64::from(*pods))
}

/// The node that holds pods of the part alone at the least cost a pod.
fn best_alone(model: &Model, part: usize) -> Column {
    let mut best: Option<(f64, usize, u32)> = None;
    for (at, kind) in model.kinds.iter().enumerate() {
        if model.class(at).binary_search(&(part as u32)).is_err() {
            continue;
        }
        let pods = model.alone(at, part);
        let each = kind.cost / f64::from(pods);
        if pods > 0 && best.is_none_or(|(least, ..)| each < least) {
            best = Some((each, at, pods));
        }
    }
    let (cost, kind, pods) = best.map_or((0.0, usize::MAX, 1), |(each, at, pods)| (each * f64::from(pods), at, pods));
    Column { node: PlannedNode { kind, pods: vec![(part as u32, pods)] }, cost }
}

/// One round of new columns. False when there are none.
fn improve(
    model: &Model,
    (filler, budget): (&mut Filler, &mut Budget),
    counts: &[u32],
    (simplex, worth): (&mut Simplex, &mut Vec<f64>),
    round: usize,
) -> bool {
    *worth = simplex.worth();
    let negative = worth.iter().position(|worth| *worth < -1e-6);
    if let Some(part) = negative
        && simplex.enter_surplus(part)
    {
        *worth = simplex.worth();
        return true;
    }
    let orders = if round % 4 == 3 {
        &[Order::Worth, Order::Tightest, Order::Balanced, Order::Even][..]
    } else {
        &[Order::Worth, Order::Balanced][..]
    };
    let mut found: Vec<(f64, Column)> = Vec::new();
    let mut pods = Vec::new();
    for (at, kind) in model.kinds.iter().enumerate() {
        for order in orders {
            budget.spend(fill::steps(model, at, *order));
            let gained = filler.fill(model, at, (counts, worth), *order, &mut pods);
            if gained > kind.cost * 1.000_001 {
                let node = PlannedNode { kind: at, pods: pods.clone() };
                found.push((kind.cost / gained, Column { node, cost: kind.cost }));
            }
        }
    }
    found.sort_by(|(a, a_column), (b, b_column)| a.total_cmp(b).then(a_column.node.kind.cmp(&b_column.node.kind)));
    found.truncate(NEW_COLUMNS);
    let mut entered = false;
    for (_, column) in found {
        let gained: f64 = column.node.pods.iter().map(|(part, pods)| worth[*part as usize] * f64::from(*pods)).sum();
        if gained > column.cost * 1.000_001 && simplex.enter(column) {
            entered = true;
            budget.spend(counts.len() * counts.len() / 4);
            *worth = simplex.worth();
        }
    }
    entered
}

/// Kinds by the cost of what they hold best.
fn rank(model: &Model, (filler, budget): (&mut Filler, &mut Budget), of: (&[u32], &[f64])) -> Vec<u32> {
    let mut pods = Vec::new();
    let mut ratios: Vec<(f64, u32)> = Vec::with_capacity(model.kinds.len());
    for (at, kind) in model.kinds.iter().enumerate() {
        budget.spend(fill::steps(model, at, Order::Worth));
        let gained = filler.fill(model, at, of, Order::Worth, &mut pods);
        ratios.push((if gained > 0.0 { kind.cost / gained } else { f64::MAX }, at as u32));
    }
    ratios.sort_by(|(a, a_kind), (b, b_kind)| a.total_cmp(b).then(a_kind.cmp(b_kind)));
    ratios.into_iter().map(|(_, kind)| kind).collect()
}
