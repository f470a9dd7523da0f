//! A chain of filters: each sees what those before it left, the verdicts add up.

use std::collections::BTreeMap;

use mortise_engine::policy::{Choices, Groups, Verdict};

use crate::columns::check::{candidates_of, rows};

/// What the filters so far have left and dropped.
pub(super) struct Filtered<'a> {
    original: &'a Choices,
    /// Candidates left; `None` while nothing is dropped.
    left: Option<Choices>,
    /// Dropped of those, but not taken out yet: after the last filter nobody asks.
    pending: Option<Groups>,
    dropped: Option<Verdict>,
    explain: bool,
}

impl<'a> Filtered<'a> {
    pub(super) fn new(candidates: &'a Choices, explain: bool) -> Self {
        Self { original: candidates, left: None, pending: None, dropped: None, explain }
    }

    /// What the next filter is asked about.
    pub(super) fn candidates(&mut self) -> &Choices {
        if let Some(dropped) = self.pending.take() {
            self.left = Some(narrow(self.left.as_ref().unwrap_or(self.original), &dropped));
        }
        self.left.as_ref().unwrap_or(self.original)
    }

    /// A verdict that drops all that is left.
    pub(super) fn everything(&mut self, reason: &str) -> Verdict {
        let explain = self.explain;
        let left = self.candidates();
        let mut verdict = Verdict::default();
        for row in 0..left.set_of.len() {
            verdict.dropped.member.extend_from_slice(candidates_of(left, row));
            verdict.dropped.end.push(index(verdict.dropped.member.len()));
        }
        if explain {
            verdict.reason = vec![0; verdict.dropped.member.len()];
            verdict.reasons.push(reason.to_owned());
        }
        verdict
    }

    /// Takes a checked verdict of the plugin `name` about [`Filtered::candidates`].
    pub(super) fn apply(&mut self, name: &str, mut verdict: Verdict) {
        for reason in &mut verdict.reasons {
            reason.insert_str(0, ": ");
            reason.insert_str(0, name);
        }
        if verdict.dropped.member.is_empty() {
            self.dropped.get_or_insert(verdict);
            return;
        }
        // A verdict is about the candidates as they are, so what was pending is taken out by now.
        self.candidates();
        self.pending = Some(verdict.dropped.clone());
        self.dropped = Some(match self.dropped.take() {
            Some(before) if !before.dropped.member.is_empty() => join(before, &verdict),
            _ => verdict,
        });
    }

    /// What all filters together drop; `None` when there was none.
    pub(super) fn finish(self) -> Option<Verdict> {
        self.dropped
    }
}

/// Candidates without what is dropped. Rows that had one set and lose the same members share a set again.
fn narrow(candidates: &Choices, dropped: &Groups) -> Choices {
    let mut known: BTreeMap<(u32, &[u32]), u32> = BTreeMap::new();
    let mut left = Choices::default();
    for (row, set) in candidates.set_of.iter().enumerate() {
        let gone = rows(dropped).row(row);
        let set_of = *known.entry((*set, gone)).or_insert_with(|| {
            let members = candidates_of(candidates, row);
            if gone.is_empty() {
                left.sets.member.extend_from_slice(members);
            } else {
                let mut sorted = gone.to_vec();
                sorted.sort_unstable();
                left.sets.member.extend(members.iter().filter(|m| sorted.binary_search(m).is_err()));
            }
            left.sets.end.push(index(left.sets.member.len()));
            index(left.sets.end.len() - 1)
        });
        left.set_of.push(set_of);
    }
    left
}

/// Both verdicts, row by row.
fn join(first: Verdict, second: &Verdict) -> Verdict {
    let mut joined = Verdict { reasons: first.reasons, ..Verdict::default() };
    let offset = index(joined.reasons.len());
    joined.reasons.extend(second.reasons.iter().cloned());
    let (mut reasons, mut more) =
        (first.reason.iter().copied(), second.reason.iter().map(|r| r.saturating_add(offset)));
    for row in 0..first.dropped.end.len() {
        let (a, b) = (rows(&first.dropped).row(row), rows(&second.dropped).row(row));
        joined.dropped.member.extend_from_slice(a);
        joined.dropped.member.extend_from_slice(b);
        joined.dropped.end.push(index(joined.dropped.member.len()));
        joined.reason.extend(reasons.by_ref().take(a.len()));
        joined.reason.extend(more.by_ref().take(b.len()));
    }
    joined
}

fn index(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(rows: &[&[u32]], reason: &str) -> Verdict {
        let mut verdict = Verdict { reasons: vec![reason.into()], ..Verdict::default() };
        for row in rows {
            verdict.dropped.member.extend_from_slice(row);
            verdict.dropped.end.push(verdict.dropped.member.len() as u32);
            verdict.reason.extend(row.iter().map(|_| 0));
        }
        verdict
    }

    #[test]
    fn later_filters_see_less_and_verdicts_add_up() {
        let candidates = Choices { sets: Groups { end: vec![3], member: vec![1, 2, 3] }, set_of: vec![0, 0, 0] };
        let mut chain = Filtered::new(&candidates, true);
        chain.apply("a", verdict(&[&[2], &[], &[2]], "x"));
        let left = chain.candidates().clone();
        assert_eq!((left.sets.end, left.sets.member), (vec![2, 5], vec![1, 3, 1, 2, 3]));
        assert_eq!(left.set_of, [0, 1, 0]);
        chain.apply("b", verdict(&[&[1], &[3], &[]], "y"));
        assert_eq!(candidates_of(chain.candidates(), 0), [3]);
        let everything = chain.everything("stop");
        chain.apply("c", everything);
        let all = chain.finish().unwrap();
        assert_eq!((all.dropped.end, all.dropped.member), (vec![3, 6, 9], vec![2, 1, 3, 3, 1, 2, 2, 1, 3]));
        assert_eq!(all.reasons, ["a: x", "b: y", "c: stop"]);
        assert_eq!(all.reason, [0, 1, 2, 1, 2, 2, 0, 2, 2]);
    }
}
