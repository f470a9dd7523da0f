//! What planners are asked and answer.

use super::{Choices, ExtraColumn, Groups, Pods};

/// What new nodes can be: a NodePool together with an offering that it may launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Slots {
    pub nodepool: Vec<u32>,
    pub offering: Vec<u32>,
    pub cost: Vec<i64>,
    pub cpu_milli: Vec<u64>,
    pub memory_mib: Vec<u64>,
    pub gpu: Vec<u32>,
    pub pods: Vec<u32>,
    pub extra: Vec<ExtraColumn>,
}

/// The nodes that may be opened and what the pod groups allow.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct PlanProblem {
    pub slots: Slots,
    pub candidates: Choices,
    pub max_per_node: Vec<u32>,
    pub zone_skew: Vec<u32>,
    pub conflicts: Groups,
}

/// Nodes to open: row `i` is any of the slots of row `i`, with `pod_count[k]` pods of group `pod_group.member[k]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Proposal {
    pub slots: Groups,
    pub pod_group: Groups,
    pub pod_count: Vec<u32>,
}

impl Proposal {
    /// Does it answer this problem? Rows, indexes, counts, candidates, most per node, conflicts and room; not the spread
    /// over zones, which only placing can judge.
    ///
    /// # Errors
    /// What is wrong with it first.
    pub fn check(&self, pods: &Pods, problem: &PlanProblem) -> Result<(), String> {
        sound("slots", &self.slots)?;
        sound("pod-group", &self.pod_group)?;
        if self.slots.len() != self.pod_group.len() || self.pod_count.len() != self.pod_group.member.len() {
            return Err("its columns differ in length".to_owned());
        }
        let mut placed = vec![0_u64; pods.count.len()];
        let mut at = 0;
        for row in 0..self.slots.len() {
            let groups = self.pod_group.row(row);
            let counts = self.pod_count.get(at..at + groups.len()).unwrap_or_default();
            at += groups.len();
            self.check_node(row, groups, counts, pods, problem)?;
            for (group, count) in groups.iter().zip(counts) {
                if let Some(placed) = placed.get_mut(*group as usize) {
                    *placed += u64::from(*count);
                }
            }
        }
        let over = placed.iter().zip(&pods.count).position(|(placed, count)| *placed > u64::from(*count));
        over.map_or(Ok(()), |group| Err(format!("it places more pods of group {group} than there are")))
    }

    fn check_node(
        &self,
        row: usize,
        groups: &[u32],
        counts: &[u32],
        pods: &Pods,
        problem: &PlanProblem,
    ) -> Result<(), String> {
        let slots = self.slots.row(row);
        let pool = |slot: &u32| problem.slots.nodepool.get(*slot as usize);
        let Some(first) = slots.first() else { return Err(format!("node {row} has no slot")) };
        if let Some(slot) = slots.iter().find(|slot| pool(slot).is_none() || pool(slot) != pool(first)) {
            return Err(format!("node {row}: slot {slot} does not exist or is of another NodePool"));
        }
        let mut need = [0_u64; 4];
        for (at, (group, count)) in groups.iter().zip(counts).enumerate() {
            let index = *group as usize;
            let most = problem.max_per_node.get(index).copied().unwrap_or(0);
            if *count == 0 || *count > most || groups.iter().take(at).any(|before| before == group) {
                return Err(format!("node {row}: {count} pods of group {group}, of which it may hold 1 to {most}"));
            }
            if groups.iter().any(|other| problem.conflicts.row(index).contains(other) && other != group) {
                return Err(format!("node {row}: group {group} shares it with one that it conflicts with"));
            }
            let own = problem.candidates.row(index);
            if let Some(slot) = slots.iter().find(|slot| own.binary_search(slot).is_err()) {
                return Err(format!("node {row}: group {group} may not use slot {slot}"));
            }
            let gpu = u64::from(pods.gpu.get(index).copied().unwrap_or(0));
            let of = |column: &[u64]| column.get(index).copied().unwrap_or(0);
            for (total, one) in need.iter_mut().zip([of(&pods.cpu_milli), of(&pods.memory_mib), gpu, 1]) {
                *total = total.saturating_add(one.saturating_mul(u64::from(*count)));
            }
        }
        let room = |slot: usize| {
            let slots = &problem.slots;
            let wide = |column: &[u64]| column.get(slot).copied().unwrap_or(0);
            let narrow = |column: &[u32]| u64::from(column.get(slot).copied().unwrap_or(0));
            [wide(&slots.cpu_milli), wide(&slots.memory_mib), narrow(&slots.gpu), narrow(&slots.pods)]
        };
        let overfull = |slot: &&u32| need.iter().zip(room(**slot as usize)).any(|(need, room)| *need > room);
        match slots.iter().find(overfull) {
            Some(slot) => Err(format!("node {row}: its pods do not fit on slot {slot}")),
            None => Ok(()),
        }
    }
}

/// Ends never decrease and the last is the number of members.
fn sound(name: &str, groups: &Groups) -> Result<(), String> {
    let ordered = groups.end.is_sorted();
    if !ordered || groups.end.last().copied().unwrap_or(0) as usize != groups.member.len() {
        return Err(format!("{name}: its rows do not end where its members do"));
    }
    Ok(())
}
