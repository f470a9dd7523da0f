//! The columns of a planner's problem.

use std::collections::{BTreeMap, BTreeSet};

use super::Offered;
use super::express::{Expressed, express};
use crate::policy::{Choices, Column, ExtraColumn, Groups, PlanProblem, Pods, Slots, unsigned};
use crate::schedule::place::Placer;
use crate::symbol::id_of;

/// Bytes in a MiB.
const MIB: i64 = 1 << 20;

/// What a planner is asked, and how its indexes translate back.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(super) pods: Pods,
    pub(super) problem: PlanProblem,
    /// Group of each row of `pods`.
    pub(super) groups: Vec<u32>,
    /// Pool and offering of its view of each slot.
    pub(super) slots: Vec<(usize, u32)>,
}

impl Asked {
    /// `places`: of each group, the pods to plan, as places in the queue.
    pub(super) fn new(placer: &mut Placer<'_, '_>, places: &[Vec<u32>], offered: Offered<'_>) -> Self {
        let mut groups: Vec<u32> = Vec::new();
        let mut expressed: Vec<Expressed> = Vec::new();
        for at in (0..places.len()).filter(|at| places.get(*at).is_some_and(|places| !places.is_empty())) {
            if let Some(own) = express(placer, id_of(at)).filter(|own| !own.offerings.is_empty()) {
                groups.push(id_of(at));
                expressed.push(own);
            }
        }
        let used: BTreeSet<(usize, u32)> = expressed
            .iter()
            .flat_map(|own| &own.offerings)
            .flat_map(|(pool, offerings)| offerings.iter().map(|offering| (*pool, offering)))
            .collect();
        let slots: Vec<(usize, u32)> = used.into_iter().collect();
        let index: BTreeMap<(usize, u32), u32> =
            slots.iter().enumerate().map(|(at, slot)| (*slot, id_of(at))).collect();
        let mut known: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut candidates = Choices::default();
        for own in &expressed {
            let row: Vec<u32> = own
                .offerings
                .iter()
                .flat_map(|(pool, offerings)| offerings.iter().map(|offering| (*pool, offering)))
                .filter_map(|slot| index.get(&slot).copied())
                .collect();
            let set = *known.entry(row).or_insert_with_key(|row| {
                candidates.sets.push(row.iter().copied());
                id_of(candidates.sets.len() - 1)
            });
            candidates.set_of.push(set);
        }
        let row_of: BTreeMap<u32, u32> = groups.iter().enumerate().map(|(row, group)| (*group, id_of(row))).collect();
        let mut conflicts = Groups::default();
        for own in &expressed {
            let rows: BTreeSet<u32> = own.conflicts.iter().filter_map(|group| row_of.get(group).copied()).collect();
            conflicts.push(rows);
        }
        let pods = pods(offered.pods, &groups, places);
        let problem = PlanProblem {
            slots: columns(placer, &slots, offered, &pods),
            candidates,
            max_per_node: expressed.iter().map(|own| own.max_per_node).collect(),
            zone_skew: expressed.iter().map(|own| own.zone_skew).collect(),
            conflicts,
        };
        Self { pods, problem, groups, slots }
    }
}

/// The rows of these groups, with the pods to plan as counts.
fn pods(all: &Pods, groups: &[u32], places: &[Vec<u32>]) -> Pods {
    fn rows<T: Copy + Default>(column: &[T], groups: &[u32]) -> Vec<T> {
        groups.iter().map(|group| column.get(*group as usize).copied().unwrap_or_default()).collect()
    }
    let lists = |of: &Groups| {
        let mut out = Groups::default();
        groups.iter().for_each(|group| out.push(of.row(*group as usize).iter().copied()));
        out
    };
    let extra = |column: &ExtraColumn| {
        let values = match &column.values {
            Column::U32(values) => Column::U32(rows(values, groups)),
            Column::U64(values) => Column::U64(rows(values, groups)),
            Column::S64(values) => Column::S64(rows(values, groups)),
        };
        ExtraColumn { name: column.name.clone(), values }
    };
    Pods {
        count: groups.iter().map(|group| places.get(*group as usize).map_or(0, |places| id_of(places.len()))).collect(),
        namespace: rows(&all.namespace, groups),
        priority: rows(&all.priority, groups),
        cpu_milli: rows(&all.cpu_milli, groups),
        memory_mib: rows(&all.memory_mib, groups),
        gpu: rows(&all.gpu, groups),
        labels: lists(&all.labels),
        annotations: lists(&all.annotations),
        extra: all.extra.iter().map(extra).collect(),
    }
}

fn columns(placer: &Placer<'_, '_>, slots: &[(usize, u32)], offered: Offered<'_>, pods: &Pods) -> Slots {
    let mut out = Slots::default();
    let mut extra: Vec<Vec<u64>> = vec![Vec::with_capacity(slots.len()); pods.extra.len()];
    for (pool_at, offering) in slots {
        let Some(pool) = placer.pools.get(*pool_at) else { continue };
        let of_type =
            placer.views.get(pool.view).and_then(|view| view.columns.type_of.get(*offering as usize)).copied();
        let room = |name: &str| {
            let column = offered.resources.iter().position(|known| **known == *name).and_then(|at| pool.room.get(at));
            column.and_then(|column| column.get(of_type? as usize)).copied().unwrap_or(0).max(0)
        };
        let costs = offered.costs.get(*pool_at).map_or(&[][..], Vec::as_slice);
        let cost = costs.binary_search_by_key(offering, |(offering, _)| *offering).ok().and_then(|at| costs.get(at));
        out.nodepool.push(offered.pool_rows.get(*pool_at).copied().unwrap_or(u32::MAX));
        out.offering.push(offered.tables.offering(pool.view, *offering));
        out.cost.push(cost.map_or(crate::policy::COST_UNKNOWN, |(_, cost)| *cost));
        out.cpu_milli.push(unsigned(room("cpu")));
        out.memory_mib.push(unsigned(room("memory") / MIB));
        out.gpu.push(u32::try_from(room("nvidia.com/gpu").saturating_add(room("amd.com/gpu"))).unwrap_or(u32::MAX));
        out.pods.push(u32::try_from(room("pods")).unwrap_or(u32::MAX));
        for (column, pods) in extra.iter_mut().zip(&pods.extra) {
            column.push(unsigned(room(&pods.name)));
        }
    }
    let named = pods.extra.iter().zip(extra);
    out.extra = named.map(|(pods, room)| ExtraColumn { name: pods.name.clone(), values: Column::U64(room) }).collect();
    out
}
