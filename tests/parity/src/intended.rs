//! Where we differ from Karpenter on purpose: its faults, by their id in the list of weaknesses, each with a predicate
//! that says when it explains a failure beside Karpenter's answers. How often each does is counted, and bounded.

use mortise_checker::Rule as Checked;
use mortise_problem::{Answer, Problem};

use crate::judge::{Failure, Rule, Theirs};

/// What a predicate may look at.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// Our answer.
    pub ours: &'a Answer,
    /// Karpenter's.
    pub theirs: &'a Theirs,
    /// What does not hold.
    pub failure: &'a Failure,
}

/// A fault of Karpenter's that we do not copy.
#[derive(Clone, Copy, Debug)]
pub struct Difference {
    /// Id in the list of weaknesses.
    pub id: &'static str,
    /// What it is.
    pub what: &'static str,
    explains: fn(Case<'_>) -> bool,
}

/// Every difference by intent.
pub const DIFFERENCES: &[Difference] = &[Difference {
    id: "W-34",
    what: "limits.nodes is not charged within a run, so its answer has more nodes than the limit",
    explains: |case| broken(case, Checked::Limits),
}];

/// Karpenter's own answers break a rule of the independent checker, in every run that the comparison rests on.
fn broken(case: Case<'_>, rule: Checked) -> bool {
    matches!(case.failure.rule, Rule::Placed | Rule::Cost)
        && case.theirs.violations.iter().all(|run| run.iter().any(|violation| violation.rule == rule))
}

/// The first difference that explains a failure.
pub fn explanation(case: Case<'_>) -> Option<&'static Difference> {
    DIFFERENCES.iter().find(|difference| (difference.explains)(case))
}
