//! A plan as columns.

use alloc::vec::Vec;

use crate::kinds::Columns;
use crate::model::{Left, Model, PlannedNode};
use crate::{Problem, Proposal};

/// Adds the nodes to the proposal and takes their pods and charges off what is left.
pub(crate) fn write(
    problem: &Problem<'_>,
    model: &Model,
    nodes: &[PlannedNode],
    left: &mut Left,
    proposal: &mut Proposal,
) {
    let columns = Columns::new(problem);
    let nodes = within_skew(model, nodes);
    let mut order: Vec<&PlannedNode> = nodes.iter().filter(|node| !node.pods.is_empty()).collect();
    order.sort_by(|a, b| a.kind.cmp(&b.kind).then_with(|| a.pods.cmp(&b.pods)));
    let mut known: Option<(&PlannedNode, Vec<u32>)> = None;
    for node in order {
        let slots = match &known {
            Some((same, slots)) if *same == node => slots.clone(),
            _ => slots(problem, &columns, model, node),
        };
        proposal.slot.extend_from_slice(&slots);
        proposal.slot_end.push(proposal.slot.len() as u32);
        for (part, pods) in &node.pods {
            let group = model.parts[*part as usize].group;
            proposal.group.push(group as u32);
            proposal.count.push(*pods);
            if let Some(left) = left.pods.get_mut(group) {
                *left = left.saturating_sub(*pods);
            }
        }
        proposal.group_end.push(proposal.group.len() as u32);
        let kind = &model.kinds[node.kind];
        if let Some(pool) = left.pools.get_mut(kind.pool) {
            pool.charge(kind);
        }
        known = Some((node, slots));
    }
}

/// Every slot of the node's NodePool that holds its pods at no more than its cost, cheapest first.
fn slots(problem: &Problem<'_>, columns: &Columns<'_>, model: &Model, node: &PlannedNode) -> Vec<u32> {
    let kind = &model.kinds[node.kind];
    let own = kind.slot;
    let cost = |slot: usize| problem.slots.cost.get(slot).copied().unwrap_or(i64::MAX);
    if kind.nodes != u32::MAX {
        return alloc::vec![own as u32];
    }
    let mut need = alloc::vec![0_u32; model.dims];
    let mut zone = None;
    for (part, pods) in &node.pods {
        zone = zone.or(model.parts[*part as usize].zone);
        for (total, need) in need.iter_mut().zip(model.need(*part as usize)) {
            *total = total.saturating_add(need.saturating_mul(*pods));
        }
    }
    let mut groups: Vec<usize> = node.pods.iter().map(|(part, _)| model.parts[*part as usize].group).collect();
    groups.sort_by_key(|group| problem.candidates.row(*group).len());
    let Some((fewest, others)) = groups.split_first() else { return Vec::new() };
    let holds = |slot: usize| {
        problem.slots.nodepool.get(slot).is_some_and(|pool| *pool as usize == kind.pool)
            && cost(slot) <= cost(own)
            && zone.is_none_or(|zone| problem.slots.zone.get(slot) == Some(&zone))
            && problem.slots.nodes.get(slot) == Some(&u32::MAX)
            && problem
                .slots
                .cpu_charged_milli
                .get(slot)
                .is_some_and(|charged| *charged <= kind.cpu_charged || !model.limited)
            && problem
                .slots
                .memory_charged_mib
                .get(slot)
                .is_some_and(|charged| *charged <= kind.memory_charged || !model.limited)
            && columns.fits(slot, &need)
            && others.iter().all(|group| {
                let row = problem.candidates.row(*group);
                row.binary_search(&(slot as u32)).is_ok() || row.contains(&(slot as u32))
            })
    };
    let mut out: Vec<u32> =
        problem.candidates.row(*fewest).iter().copied().filter(|slot| holds(*slot as usize)).collect();
    out.sort_by_key(|slot| (cost(*slot as usize), *slot as usize != own, *slot));
    out.dedup();
    out
}

/// Takes pods out where a zone got so few of a group (limits) that others hold too many for its skew.
fn within_skew(model: &Model, nodes: &[PlannedNode]) -> Vec<PlannedNode> {
    let mut nodes = nodes.to_vec();
    let mut placed = alloc::vec![0_u32; model.parts.len()];
    for (part, pods) in nodes.iter().flat_map(|node| &node.pods) {
        placed[*part as usize] += pods;
    }
    for at in 0..model.parts.len() {
        let (from, to) = model.parts[at].siblings;
        let least = placed.get(from..to).and_then(|zones| zones.iter().min().copied());
        let Some(most) = least.map(|least| least + model.parts[at].skew) else { continue };
        for node in nodes.iter_mut().rev() {
            let over = placed[at].saturating_sub(most);
            for (part, pods) in node.pods.iter_mut().filter(|(part, _)| *part as usize == at) {
                let out = over.min(*pods);
                *pods -= out;
                placed[*part as usize] -= out;
            }
            node.pods.retain(|(_, pods)| *pods > 0);
        }
    }
    nodes
}
