//! Claims that ask the same question are asked about once: a burst of equal pods makes a hundred equal claims.

use std::collections::BTreeMap;

use mortise_engine::policy::{Choices, Claims, Verdict};

use crate::columns::check::{candidates_of, rows};

/// Everything that a policy sees of a claim.
type Key = (u32, u32, u64, u64, u32, u32, u32);

/// Equal claims as one row with a count.
pub(super) struct Folded {
    pub claims: Claims,
    pub candidates: Choices,
    /// Costs so far of the folded rows, in order.
    pub base: Vec<i64>,
    /// Folded row of each claim.
    row_of: Vec<usize>,
}

impl Folded {
    /// Folds; `None` when no two rows are equal, or when extra columns may tell them apart. `base` is empty, or holds one
    /// cost per candidate, rows in order.
    pub(super) fn new(claims: &Claims, candidates: &Choices, base: &[i64]) -> Option<Self> {
        if !claims.extra.is_empty() {
            return None;
        }
        let mut known: BTreeMap<Key, (usize, &[i64])> = BTreeMap::new();
        let mut folded =
            Self { claims: Claims::default(), candidates: Choices::default(), base: Vec::new(), row_of: Vec::new() };
        folded.candidates.sets = candidates.sets.clone();
        let mut rest = base;
        for row in 0..candidates.set_of.len() {
            let costs;
            (costs, rest) = rest.split_at(candidates_of(candidates, row).len().min(rest.len()));
            let key = key(claims, candidates, row)?;
            let same = known.get(&key).filter(|(_, earlier)| *earlier == costs).map(|(row, _)| *row);
            let target = same.unwrap_or_else(|| {
                let target = folded.candidates.set_of.len();
                folded.push(key, costs);
                known.insert(key, (target, costs));
                target
            });
            let count = claims.count.get(row).copied().unwrap_or(1);
            if let Some(total) = folded.claims.count.get_mut(target) {
                *total = total.saturating_add(count);
            }
            folded.row_of.push(target);
        }
        (folded.candidates.set_of.len() < candidates.set_of.len()).then_some(folded)
    }

    fn push(&mut self, (set, nodepool, cpu_milli, memory_mib, gpu, pods, state): Key, costs: &[i64]) {
        self.candidates.set_of.push(set);
        self.base.extend_from_slice(costs);
        let claims = &mut self.claims;
        claims.count.push(0);
        claims.nodepool.push(nodepool);
        claims.cpu_milli.push(cpu_milli);
        claims.memory_mib.push(memory_mib);
        claims.gpu.push(gpu);
        claims.pods.push(pods);
        claims.state.push(state);
    }

    /// The verdict about the folded rows as one about all.
    pub(super) fn unfold_verdict(&self, folded: Verdict) -> Verdict {
        let mut verdict = Verdict { reasons: folded.reasons, ..Verdict::default() };
        for row in &self.row_of {
            let start =
                row.checked_sub(1).and_then(|before| folded.dropped.end.get(before)).map_or(0, |end| *end as usize);
            let dropped = rows(&folded.dropped).row(*row);
            verdict.dropped.member.extend_from_slice(dropped);
            verdict.dropped.end.push(u32::try_from(verdict.dropped.member.len()).unwrap_or(u32::MAX));
            // Empty unless reasons were asked for.
            verdict.reason.extend_from_slice(folded.reason.get(start..start + dropped.len()).unwrap_or(&[]));
        }
        verdict
    }

    /// The costs of the folded rows, written over those of all rows.
    pub(super) fn unfold_costs(&self, folded: &[i64], mut all: Vec<i64>) -> Vec<i64> {
        let mut starts = vec![0];
        for row in 0..self.candidates.set_of.len() {
            starts.push(starts.last().copied().unwrap_or(0) + candidates_of(&self.candidates, row).len());
        }
        let mut rest = all.as_mut_slice();
        for row in &self.row_of {
            let costs = match starts.get(*row..*row + 2) {
                Some(&[start, end]) => folded.get(start..end).unwrap_or(&[]),
                _ => &[],
            };
            let place;
            (place, rest) = rest.split_at_mut(costs.len().min(rest.len()));
            place.copy_from_slice(costs.get(..place.len()).unwrap_or(costs));
        }
        all
    }
}

fn key(claims: &Claims, candidates: &Choices, row: usize) -> Option<Key> {
    Some((
        *candidates.set_of.get(row)?,
        *claims.nodepool.get(row)?,
        *claims.cpu_milli.get(row)?,
        *claims.memory_mib.get(row)?,
        *claims.gpu.get(row)?,
        *claims.pods.get(row)?,
        *claims.state.get(row)?,
    ))
}

#[cfg(test)]
mod tests {
    use mortise_engine::policy::{Column, ExtraColumn, Groups};

    use super::*;

    fn claims(cpu: &[u64]) -> Claims {
        let rows = cpu.len();
        Claims {
            count: vec![1; rows],
            nodepool: vec![0; rows],
            cpu_milli: cpu.to_vec(),
            memory_mib: vec![0; rows],
            gpu: vec![0; rows],
            pods: vec![1; rows],
            state: vec![0; rows],
            extra: Vec::new(),
        }
    }

    fn candidates() -> Choices {
        Choices { sets: Groups { end: vec![2, 3], member: vec![7, 8, 9] }, set_of: vec![0, 1, 0, 0, 1] }
    }

    #[test]
    fn equal_rows_are_one_and_answers_go_back_to_each() {
        let base = vec![1, 2, 3, 1, 2, 1, 2, 3];
        let folded = Folded::new(&claims(&[5, 5, 5, 6, 5]), &candidates(), &base).unwrap();
        assert_eq!((&*folded.claims.count, &*folded.candidates.set_of), (&[2, 2, 1][..], &[0, 1, 0][..]));
        assert_eq!(folded.base, [1, 2, 3, 1, 2]);
        assert_eq!(folded.unfold_costs(&[10, 20, 30, 11, 21], base), [10, 20, 30, 10, 20, 11, 21, 30]);
        let verdict = Verdict {
            dropped: Groups { end: vec![1, 1, 3], member: vec![8, 7, 8] },
            reason: vec![0, 1, 0],
            reasons: vec!["x".into(), "y".into()],
        };
        let all = folded.unfold_verdict(verdict);
        assert_eq!((&*all.dropped.end, &*all.dropped.member), (&[1, 1, 2, 4, 4][..], &[8, 8, 7, 8][..]));
        assert_eq!(all.reason, [0, 0, 1, 0]);
    }

    #[test]
    fn rows_that_differ_in_cost_or_may_differ_in_extra_columns_stay_apart() {
        let base = [1, 2, 3, 1, 9, 1, 2, 3];
        let folded = Folded::new(&claims(&[5, 5, 5, 6, 5]), &candidates(), &base).unwrap();
        assert_eq!(folded.claims.count, [1, 2, 1, 1]);
        assert!(Folded::new(&claims(&[1, 2, 3, 4, 5]), &candidates(), &[]).is_none(), "nothing to fold");
        let mut extra = claims(&[5, 5, 5, 5, 5]);
        extra.extra.push(ExtraColumn { name: "min-values-end".into(), values: Column::U32(vec![0; 5]) });
        assert!(Folded::new(&extra, &candidates(), &[]).is_none());
    }
}
