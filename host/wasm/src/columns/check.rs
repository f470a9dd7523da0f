//! Answers are not trusted: lengths, ranges and membership are checked before the engine sees them.

use mortise_engine::policy::{Choices, Groups, Verdict};
use mortise_plugin_sdk::Rows;

use crate::fault::Fault;

/// Reasons of one verdict: more than a person reads.
const MAX_REASONS: usize = 1_000;
/// Bytes of a reason that are kept.
const MAX_REASON: usize = 256;

/// A `groups` as the SDK's borrowed rows.
pub(crate) fn rows(groups: &Groups) -> Rows<'_> {
    Rows { end: &groups.end, member: &groups.member }
}

/// Candidates of row `index`.
pub(crate) fn candidates_of(choices: &Choices, index: usize) -> &[u32] {
    choices.set_of.get(index).map_or(&[], |set| rows(&choices.sets).row(*set as usize))
}

/// Candidates over all rows.
pub(crate) fn candidate_count(choices: &Choices) -> usize {
    (0..choices.set_of.len()).map(|i| candidates_of(choices, i).len()).sum()
}

fn shape(groups: &Groups, what: &str) -> Result<(), Fault> {
    let ordered = groups.end.is_sorted() && groups.end.last().copied().unwrap_or(0) as usize == groups.member.len();
    let last = groups.end.last().copied().unwrap_or(0);
    let members = groups.member.len();
    if ordered { Ok(()) } else { Err(Fault::Length(format!("{what}: rows end at {last} of {members} members"))) }
}

fn length(what: &str, found: usize, expected: usize) -> Result<(), Fault> {
    let message = || Fault::Length(format!("{what}: {found} where {expected} were asked"));
    if found == expected { Ok(()) } else { Err(message()) }
}

/// A filter's verdict about `candidates`.
pub(crate) fn verdict(mut verdict: Verdict, candidates: &Choices, explain: bool) -> Result<Verdict, Fault> {
    length("verdict rows", verdict.dropped.end.len(), candidates.set_of.len())?;
    shape(&verdict.dropped, "verdict")?;
    for (row, dropped) in rows(&verdict.dropped).iter().enumerate() {
        let set = candidates_of(candidates, row);
        if !is_part_of(dropped, set) {
            let stranger = dropped.iter().find(|o| !set.contains(o));
            return Err(Fault::Index(match stranger {
                Some(offering) => format!("verdict row {row} drops offering {offering}, which is not its candidate"),
                None => format!("verdict row {row} drops an offering twice"),
            }));
        }
    }
    if !explain {
        // Texts that nobody asked for are not looked at.
        verdict.reason.clear();
        verdict.reasons.clear();
        return Ok(verdict);
    }
    length("verdict reasons", verdict.reason.len(), verdict.dropped.member.len())?;
    if verdict.reasons.len() > MAX_REASONS {
        return Err(Fault::Length(format!(
            "verdict: {} different reasons, at most {MAX_REASONS}",
            verdict.reasons.len()
        )));
    }
    if let Some(reason) = verdict.reason.iter().find(|r| **r as usize >= verdict.reasons.len()) {
        return Err(Fault::Index(format!("verdict: reason {reason} of {}", verdict.reasons.len())));
    }
    for reason in &mut verdict.reasons {
        let cut = (0..=MAX_REASON.min(reason.len())).rev().find(|i| reason.is_char_boundary(*i));
        reason.truncate(cut.unwrap_or(0));
    }
    Ok(verdict)
}

/// Every member is one of `set`, none twice.
fn is_part_of(members: &[u32], set: &[u32]) -> bool {
    // Most filters keep the order of the candidates: one walk. The others are sorted.
    let mut rest = set.iter();
    if members.iter().all(|member| rest.any(|candidate| candidate == member)) {
        return true;
    }
    let (mut members, mut set) = (members.to_vec(), set.to_vec());
    members.sort_unstable();
    set.sort_unstable();
    let mut rest = set.iter();
    members.is_sorted_by(|a, b| a < b) && members.iter().all(|member| rest.any(|candidate| candidate == member))
}

/// A scorer's costs.
pub(crate) fn costs(costs: Vec<i64>, expected: usize) -> Result<Vec<i64>, Fault> {
    length("costs", costs.len(), expected)?;
    Ok(costs)
}

/// Sets of nodes to simulate.
pub(crate) fn sets(sets: Groups, nodes: usize, max_sets: u32) -> Result<Groups, Fault> {
    shape(&sets, "sets")?;
    if sets.end.len() > max_sets as usize {
        return Err(Fault::Length(format!("{} sets, at most {max_sets}", sets.end.len())));
    }
    for (row, set) in rows(&sets).iter().enumerate() {
        if set.is_empty() {
            return Err(Fault::Length(format!("set {row} is empty")));
        }
        if let Some(node) = set.iter().find(|node| **node as usize >= nodes) {
            return Err(Fault::Index(format!("set {row} names node {node} of {nodes}")));
        }
        let mut sorted = set.to_vec();
        sorted.sort_unstable();
        if !sorted.is_sorted_by(|a, b| a < b) {
            return Err(Fault::Index(format!("set {row} names a node twice")));
        }
    }
    Ok(sets)
}

/// Priorities of tried sets.
pub(crate) fn priorities(priorities: Vec<i64>, tried: usize) -> Result<Vec<i64>, Fault> {
    length("priorities", priorities.len(), tried)?;
    Ok(priorities)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Choices {
        Choices { sets: Groups { end: vec![3, 4], member: vec![7, 8, 9, 5] }, set_of: vec![0, 1, 0] }
    }

    fn dropped(end: &[u32], member: &[u32]) -> Verdict {
        Verdict { dropped: Groups { end: end.to_vec(), member: member.to_vec() }, ..Verdict::default() }
    }

    #[test]
    fn good_verdicts_pass_in_any_order() {
        for (end, member) in [(&[0, 0, 0], &[][..]), (&[2, 3, 3], &[7, 9, 5][..]), (&[3, 3, 3], &[9, 7, 8][..])] {
            assert!(verdict(dropped(end, member), &choices(), false).is_ok(), "{end:?} {member:?}");
        }
    }

    #[test]
    fn bad_verdicts_are_told_apart() {
        let kind = |v: Verdict, explain| verdict(v, &choices(), explain).map_err(|f| f.kind());
        assert_eq!(kind(dropped(&[0, 0], &[]), false), Err("length"), "rows");
        assert_eq!(kind(dropped(&[0, 0, 1], &[]), false), Err("length"), "end past members");
        assert_eq!(kind(dropped(&[1, 0, 1], &[7]), false), Err("length"), "ends go back");
        assert_eq!(kind(dropped(&[0, 0, 0], &[7]), false), Err("length"), "member of no row");
        assert_eq!(kind(dropped(&[1, 1, 1], &[5]), false), Err("index"), "of another row's set");
        assert_eq!(kind(dropped(&[2, 2, 2], &[7, 7]), false), Err("index"), "twice");
        assert_eq!(kind(dropped(&[1, 1, 1], &[7]), true), Err("length"), "no reasons");
        let reason = Verdict { reason: vec![1], reasons: vec!["x".into()], ..dropped(&[1, 1, 1], &[7]) };
        assert_eq!(kind(reason, true), Err("index"), "reason out of range");
    }

    #[test]
    fn sets_name_nodes_once_and_not_too_many() {
        let kind = |end: &[u32], member: &[u32]| {
            sets(Groups { end: end.to_vec(), member: member.to_vec() }, 3, 2).map(|_| ()).map_err(|f| f.kind())
        };
        assert_eq!(kind(&[1, 3], &[0, 1, 2]), Ok(()));
        assert_eq!(kind(&[1, 2, 3], &[0, 1, 2]), Err("length"));
        assert_eq!(kind(&[0], &[]), Err("length"));
        assert_eq!(kind(&[1], &[3]), Err("index"));
        assert_eq!(kind(&[2], &[1, 1]), Err("index"));
    }
}
