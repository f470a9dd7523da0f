//! The bound: nodes may be fractions.

use microlp::{ComparisonOp, OptimizationDirection, Problem as Program, Variable};
use mortise_plugin_cost::Problem;

/// A slot reduced to what the bound looks at.
struct Offer {
    cost: f64,
    room: [u64; 4],
    /// Groups that may use it.
    groups: Vec<bool>,
}

/// The least that any plan of the problem can cost, micro-USD per hour. Rows: every pod is placed; CPU, memory, pods and
/// GPUs bought hold what is placed; and no more of a group a node than fit alone on a whole one (or than it allows).
///
/// # Errors
/// When the linear program has no solution.
pub(crate) fn bound(problem: &Problem<'_>) -> anyhow::Result<f64> {
    let groups = problem.pods.count.len();
    let offers = offers(problem);
    let like = like(problem);
    let need = |group: usize| {
        let pods = &problem.pods;
        [pods.cpu_milli[group], pods.memory_mib[group], 1, u64::from(pods.gpu[group])]
    };
    let mut program = Program::new(OptimizationDirection::Minimize);
    let mut placed: Vec<Vec<(Variable, f64)>> = vec![Vec::new(); groups];
    for offer in &offers {
        let nodes = program.add_var(offer.cost, (0.0, f64::INFINITY));
        let mut used: [Vec<(Variable, f64)>; 4] = Default::default();
        let mut alike: Vec<(u64, Vec<(Variable, f64)>)> = vec![Default::default(); groups];
        for group in (0..groups).filter(|group| offer.groups[*group]) {
            let need = need(group);
            let fit = offer.room.iter().zip(need).filter(|(_, need)| *need > 0).map(|(room, need)| room / need);
            let fit = fit.min().unwrap_or(0);
            if fit == 0 {
                continue;
            }
            let pods = program.add_var(0.0, (0.0, f64::INFINITY));
            placed[group].push((pods, 1.0));
            for (used, need) in used.iter_mut().zip(need).filter(|(_, need)| *need > 0) {
                used.push((pods, need as f64));
            }
            let most = u64::from(problem.max_per_node[group]);
            if most < fit {
                program.add_constraint([(pods, 1.0), (nodes, -(most as f64))].as_slice(), ComparisonOp::Le, 0.0);
            }
            let (together, members) = &mut alike[like[group]];
            *together = (*together + most).min(fit);
            members.push((pods, 1.0));
        }
        for (fit, mut members) in alike.into_iter().filter(|(_, members)| !members.is_empty()) {
            members.push((nodes, -(fit as f64)));
            program.add_constraint(members.as_slice(), ComparisonOp::Le, 0.0);
        }
        for (mut used, room) in used.into_iter().zip(offer.room) {
            if used.len() > 1 {
                used.push((nodes, -(room as f64)));
                program.add_constraint(used.as_slice(), ComparisonOp::Le, 0.0);
            }
        }
    }
    for (group, placed) in placed.iter().enumerate() {
        program.add_constraint(placed.as_slice(), ComparisonOp::Eq, f64::from(problem.pods.count[group]));
    }
    Ok(program.solve()?.objective())
}

/// Of each group, the first one with the same requests: of them all no more fit on a node than of one alone.
fn like(problem: &Problem<'_>) -> Vec<usize> {
    let pods = &problem.pods;
    let shape = |group: usize| (pods.cpu_milli[group], pods.memory_mib[group], pods.gpu[group]);
    (0..pods.count.len()).map(|group| (0..group).find(|other| shape(*other) == shape(group)).unwrap_or(group)).collect()
}

/// Slots that no other one beats.
fn offers(problem: &Problem<'_>) -> Vec<Offer> {
    let slots = &problem.slots;
    let mut may = vec![vec![false; problem.pods.count.len()]; slots.cost.len()];
    for (group, row) in problem.candidates.iter().enumerate() {
        row.iter().for_each(|slot| may[*slot as usize][group] = true);
    }
    let mut all: Vec<Offer> = may
        .into_iter()
        .enumerate()
        .map(|(slot, groups)| Offer {
            cost: slots.cost[slot] as f64,
            room: [
                slots.cpu_milli[slot],
                slots.memory_mib[slot],
                u64::from(slots.pods[slot]),
                u64::from(slots.gpu[slot]),
            ],
            groups,
        })
        .collect();
    all.sort_by(|a, b| a.cost.total_cmp(&b.cost).then(b.room.cmp(&a.room)));
    let mut kept: Vec<Offer> = Vec::new();
    for offer in all {
        let beaten = kept.iter().any(|better| {
            better.room.iter().zip(offer.room).all(|(more, room)| *more >= room)
                && better.groups.iter().zip(&offer.groups).all(|(more, own)| *more || !own)
        });
        if !beaten {
            kept.push(offer);
        }
    }
    kept
}
