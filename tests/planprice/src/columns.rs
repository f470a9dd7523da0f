//! A workload as the planner's columns.

use mortise_plugin_cost::{Pods, Pools, Problem, Slots};
use mortise_plugin_sdk::{Candidates, Rows};

use crate::data::{NodeType, Workload};

/// A slot: type, zone, market, micro-USD per hour.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Index of the type.
    pub(crate) of_type: usize,
    /// Index of the zone.
    pub(crate) zone: usize,
    /// Capacity type.
    pub(crate) market: &'static str,
    /// Micro-USD per hour.
    pub(crate) cost: i64,
}

/// Columns that a [`Problem`] borrows from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    /// What nodes may be.
    pub(crate) slots: Vec<Slot>,
    nodepool: Vec<u32>,
    cost: Vec<i64>,
    cpu: Vec<u64>,
    memory: Vec<u64>,
    gpu: Vec<u32>,
    pods: Vec<u32>,
    count: Vec<u32>,
    need_cpu: Vec<u64>,
    need_memory: Vec<u64>,
    need_gpu: Vec<u32>,
    set_end: Vec<u32>,
    set_member: Vec<u32>,
    set_of: Vec<u32>,
    max_per_node: Vec<u32>,
    zone_skew: Vec<u32>,
}

fn micro(usd: f64) -> i64 {
    (usd * 1e6).round() as i64
}

impl Columns {
    /// Columns of a workload.
    pub(crate) fn new(workload: &Workload, types: &[NodeType]) -> Self {
        let mut out = Self::default();
        for (at, of_type) in types.iter().enumerate().filter(|(_, of_type)| workload.gpu || of_type.gpu == 0) {
            for (zone, spot) in of_type.spot.iter().enumerate() {
                let Some(spot) = spot else { continue };
                for (market, price) in [("spot", *spot), ("on-demand", of_type.on_demand)] {
                    if workload.markets.iter().any(|allowed| allowed == market) {
                        out.slots.push(Slot { of_type: at, zone, market, cost: micro(price) });
                    }
                }
            }
        }
        for slot in &out.slots {
            let of_type = &types[slot.of_type];
            out.nodepool.push(0);
            out.cost.push(slot.cost);
            out.cpu.push(of_type.cpu_milli.saturating_sub(workload.daemon_cpu_milli));
            out.memory.push(of_type.memory_mib.saturating_sub(workload.daemon_memory_mib));
            out.gpu.push(of_type.gpu);
            out.pods.push(of_type.pods.saturating_sub(workload.daemon_pods));
        }
        for (row, group) in workload.groups.iter().enumerate() {
            out.count.push(group.pods);
            out.need_cpu.push(group.cpu_milli);
            out.need_memory.push(group.memory_mib);
            out.need_gpu.push(group.gpu);
            let may = |slot: &Slot| {
                group.arch.as_ref().is_none_or(|arch| *arch == types[slot.of_type].arch)
                    && group.market.as_ref().is_none_or(|market| market == slot.market)
            };
            let own = out.slots.iter().enumerate().filter(|(_, slot)| may(slot)).map(|(at, _)| at as u32);
            out.set_member.extend(own);
            out.set_end.push(out.set_member.len() as u32);
            out.set_of.push(row as u32);
            out.max_per_node.push(if group.one_per_node { 1 } else { u32::MAX });
            out.zone_skew.push(group.zone_skew);
        }
        out
    }

    /// The planner's problem.
    pub(crate) fn problem(&self, steps: u64) -> Problem<'_> {
        let slots = self.slots.len();
        Problem {
            slots: Slots {
                nodepool: &self.nodepool,
                cost: &self.cost,
                cpu_milli: &self.cpu,
                memory_mib: &self.memory,
                gpu: &self.gpu,
                pods: &self.pods,
                extra: Vec::new(),
                zone: self.slots.iter().map(|slot| slot.zone as u32).collect(),
                cpu_charged_milli: self.cpu.clone(),
                memory_charged_mib: self.memory.clone(),
                nodes: vec![u32::MAX; slots],
            },
            pods: Pods {
                count: &self.count,
                cpu_milli: &self.need_cpu,
                memory_mib: &self.need_memory,
                gpu: &self.need_gpu,
                extra: Vec::new(),
            },
            pools: Pools {
                weight: &[0],
                cpu_left_milli: &[u64::MAX],
                memory_left_mib: &[u64::MAX],
                nodes_left: &[u32::MAX],
            },
            candidates: Candidates {
                sets: Rows { end: &self.set_end, member: &self.set_member },
                set_of: &self.set_of,
            },
            max_per_node: &self.max_per_node,
            zone_skew: &self.zone_skew,
            conflicts: Rows::default(),
            node_cost_micro_usd: 0,
            steps,
        }
    }
}
