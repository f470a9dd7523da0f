//! What a proposal costs, when it breaks no rule.

use anyhow::{Context, ensure};
use mortise_plugin_cost::{Problem, Proposal};

/// Cost and nodes of a proposal that was found right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Micro-USD per hour.
    pub(crate) cost: i64,
    /// Nodes.
    pub(crate) nodes: usize,
    /// Pods placed.
    pub(crate) pods: u32,
}

/// Adds up the cheapest slot of every node. A naive check, apart from the planner's arithmetic: fit, candidates, most per
/// node, skew.
///
/// # Errors
/// The first rule that the proposal breaks.
pub(crate) fn check(problem: &Problem<'_>, proposal: &Proposal) -> anyhow::Result<Plan> {
    let slots = &problem.slots;
    let mut plan = Plan { nodes: proposal.slot_end.len(), ..Plan::default() };
    let mut zones: Vec<std::collections::BTreeMap<u32, u32>> =
        problem.candidates.iter().map(|row| row.iter().map(|slot| (slots.zone[*slot as usize], 0)).collect()).collect();
    let mut placed = vec![0_u32; problem.pods.count.len()];
    let (mut slot_from, mut group_from) = (0, 0);
    for (slot_to, group_to) in proposal.slot_end.iter().zip(&proposal.group_end) {
        let own = &proposal.slot[slot_from..*slot_to as usize];
        let pods = group_from..*group_to as usize;
        (slot_from, group_from) = (*slot_to as usize, *group_to as usize);
        let cheapest = *own.first().context("a node without slots")? as usize;
        plan.cost += slots.cost[cheapest];
        for slot in own.iter().map(|slot| *slot as usize) {
            let (mut cpu, mut memory, mut gpu, mut count) = (0, 0, 0, 0);
            ensure!(slots.cost[slot] >= slots.cost[cheapest], "the first slot is not the cheapest");
            for at in pods.clone() {
                let (group, number) = (proposal.group[at] as usize, proposal.count[at]);
                ensure!(number <= problem.max_per_node[group], "too many of group {group} on a node");
                ensure!(problem.candidates.row(group).contains(&(slot as u32)), "group {group} may not use {slot}");
                cpu += problem.pods.cpu_milli[group] * u64::from(number);
                memory += problem.pods.memory_mib[group] * u64::from(number);
                gpu += problem.pods.gpu[group] * number;
                count += number;
            }
            ensure!(
                cpu <= slots.cpu_milli[slot]
                    && memory <= slots.memory_mib[slot]
                    && gpu <= slots.gpu[slot]
                    && count <= slots.pods[slot],
                "a node is overfull"
            );
        }
        for at in pods {
            let (group, number) = (proposal.group[at] as usize, proposal.count[at]);
            placed[group] += number;
            *zones[group].entry(slots.zone[cheapest]).or_default() += number;
        }
    }
    for (group, zones) in zones.iter().enumerate() {
        ensure!(placed[group] <= problem.pods.count[group], "more pods than there are in group {group}");
        let skew = problem.zone_skew[group];
        let (most, least) = (zones.values().max().copied(), zones.values().min().copied());
        ensure!(
            skew == 0 || most.unwrap_or(0) - least.unwrap_or(0) <= skew,
            "group {group} is spread unevenly over zones"
        );
    }
    plan.pods = placed.iter().sum();
    Ok(plan)
}
