//! An independent judge of scheduling answers: a deliberately naive, third implementation of the rules that
//! kube-scheduler and NodePools set, read as their specification. Clear and slow: it works on small problems.
//!
//! It shares no code with the engine, nor could it (`cargo xtask layering`).
//!
//! The cloud may launch any instance type left on a claim, by any available offering that its requirements admit, so a
//! claim is judged as every machine that it may turn out to be ([`check`]); a label that stays open is judged in its worst
//! value. Preferences (ScheduleAnyway, preferred affinity, PreferNoSchedule) never make an answer wrong.
//!
//! Not judged: which device a ResourceClaim gets (a pod with ResourceClaims placed with `ignoreDRARequests` is wrong), and
//! NodeOverlays.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop"))]

mod cost;
mod model;
#[cfg(test)]
mod plans;
mod rules;
mod search;
mod violation;

pub use cost::cost;
pub use search::{Where, can_place};
pub use violation::{Fault, Rule, Violation};

use mortise_problem::{Answer, Problem};

/// Everything that is wrong with an answer, rule by rule. Empty means right.
pub fn check(problem: &Problem, answer: &Answer) -> Vec<Violation> {
    let problem = model::complete(problem);
    rules::check(&model::world::World::new(&problem, answer))
}
