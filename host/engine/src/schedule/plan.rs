//! The planner's part of a round: pods that would need new nodes are offered to the planner as one problem; its nodes are
//! opened natively, with every check, before the rest is placed; then the cheaper of that and the native order stands.
//!
//! ```text
//! native order ─► pods on new claims ─► express ─► problem ─► planner ─► check ─► seed ─► rest natively ─► cheaper of both
//! ```

mod express;
mod problem;
mod seed;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use seed::{PlannedNode, nodes};

use super::amounts::ResourceNames;
use super::place::Placer;
use super::topology::Topology;
use crate::batch::Batch;
use crate::decision::{PlanReport, PlanVerdict, Schedule};
use crate::policy::{Pods, PolicyRound, Round, Tables};
use problem::Asked;

/// What a planner is told beside what placing knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offered<'r> {
    pub(crate) tables: &'r Tables,
    /// Row of each pool in the tables.
    pub(crate) pool_rows: &'r [u32],
    /// Of each pool, its offerings with their costs after the scorers.
    pub(crate) costs: &'r [Vec<(u32, i64)>],
    /// All pod groups.
    pub(crate) pods: &'r Pods,
    pub(crate) resources: &'r ResourceNames,
    pub(crate) round: &'r Round,
}

/// Asks the planner about the pods at `places` in the queue. `placer` is as it was before anything was placed.
///
/// # Errors
/// Why there is nothing to plan with, and for how many pods it was asked.
pub(crate) fn ask(
    placer: &mut Placer<'_, '_>,
    batch: &Batch<'_>,
    places: &[u32],
    offered: Offered<'_>,
    conversation: &mut dyn PolicyRound,
) -> Result<(Vec<PlannedNode>, u32), (PlanVerdict, u32)> {
    let mut by_group: Vec<Vec<u32>> = vec![Vec::new(); placer.groups.len()];
    for at in places {
        let pod = batch.pods.get(*at as usize).filter(|pod| pod.buffer.is_none());
        if let Some(own) = pod.and_then(|pod| by_group.get_mut(pod.group as usize)) {
            own.push(*at);
        }
    }
    by_group.iter_mut().for_each(|own| own.sort_unstable());
    let asked = Asked::new(placer, &by_group, offered);
    if asked.groups.is_empty() {
        return Err((PlanVerdict::NothingToPlan, 0));
    }
    let total = asked.pods.count.iter().sum();
    let Some(proposal) = conversation.plan(offered.round, &asked.pods, &asked.problem) else {
        return Err((PlanVerdict::NoAnswer, total));
    };
    if let Err(fault) = proposal.check(&asked.pods, &asked.problem) {
        return Err((PlanVerdict::Malformed(Arc::from(fault)), total));
    }
    Ok((nodes(placer, &asked, &proposal, by_group), total))
}

/// The state that placing starts from, kept so that it can start once more.
pub(crate) struct Start<'a> {
    pub(crate) pools: Vec<super::pool::Pool<'a>>,
    pub(crate) nodes: super::existing::ExistingNodes<'a>,
    pub(crate) groups: Vec<super::group::Group<'a>>,
    pub(crate) topology: Topology<'a>,
    pub(crate) prices: Vec<super::prices::Prices>,
    pub(crate) reservations: super::reservations::Reservations,
    pub(crate) devices: super::dra::Devices<'a>,
}

impl<'a> Start<'a> {
    pub(crate) fn of(placer: &Placer<'_, 'a>) -> Self {
        Self {
            pools: placer.pools.to_vec(),
            nodes: placer.nodes.clone(),
            groups: placer.groups.to_vec(),
            topology: placer.topology.clone(),
            prices: placer.prices.clone(),
            reservations: placer.reservations.clone(),
            devices: placer.devices.clone(),
        }
    }
}

/// The cheaper of the two schedules, with the report of why.
pub(crate) fn cheaper(native: Schedule, planned: Schedule, (asked, on_plan): (u32, u32), node_cost: i64) -> Schedule {
    let (native_cost, planned_cost) = (cost(&native, node_cost), cost(&planned, node_cost));
    let verdict = match (native_cost, planned_cost) {
        _ if planned.unplaced.len() > native.unplaced.len() || buffers(&planned) > buffers(&native) => {
            PlanVerdict::FewerPods
        }
        (Some(native), Some(planned)) if planned < native => PlanVerdict::Planned,
        (Some(_), Some(_)) => PlanVerdict::NoCheaper,
        _ => PlanVerdict::UnknownCost,
    };
    let mut stands = if verdict == PlanVerdict::Planned { planned } else { native };
    stands.plan = Some(PlanReport { verdict, asked, planned: on_plan, native_cost, planned_cost });
    stands
}

/// The report where only the native order was tried.
pub(crate) fn native_stands(mut native: Schedule, (verdict, asked): (PlanVerdict, u32), node_cost: i64) -> Schedule {
    let native_cost = cost(&native, node_cost);
    if let PlanVerdict::Malformed(fault) = &verdict {
        native.policy_faults.push(format!("planner: its proposal is not used: {fault}"));
    }
    native.plan = Some(PlanReport { verdict, asked, planned: 0, native_cost, planned_cost: None });
    native
}

/// What the new nodes cost, each as its cheapest offering, micro-USD per hour; `None` when one is unknown.
fn cost(schedule: &Schedule, node_cost: i64) -> Option<i64> {
    schedule.claims.iter().try_fold(0_i64, |sum, claim| {
        let own = claim.cheapest.as_ref()?.effective_cost?;
        Some(sum.saturating_add(own).saturating_add(node_cost))
    })
}

fn buffers(schedule: &Schedule) -> u32 {
    schedule.buffers.values().map(|fit| fit.unplaced).sum()
}
