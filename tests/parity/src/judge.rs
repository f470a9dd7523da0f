//! What must hold of an answer of ours, by itself and beside those of the real Karpenter.

use std::collections::BTreeSet;
use std::fmt;

use mortise_checker::{Violation, can_place, check, cost};
use mortise_problem::k8s_openapi::api::core::v1::Pod;
use mortise_problem::{Answer, Problem};

use crate::{ours, placed};

/// Costs are sums of prices written in micro-USD; what is less apart is equal.
const CENT_OF_A_MICRO_USD: f64 = 1e-8;

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Every waiting pod is placed or has a reason.
    Accounted,
    /// The independent checker finds nothing wrong with the answer; it judges limits, minValues and reservations too.
    Checker,
    /// A pod that stays pending could indeed not be added to what was decided.
    Pending,
    /// Every pod that each run of Karpenter places is placed; with limits, as many pods as its worst run places.
    Placed,
    /// Where the same pods are placed, the cost is no more than that of Karpenter's dearest run.
    Cost,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Accounted => "accounted",
            Self::Checker => "checker",
            Self::Pending => "pending",
            Self::Placed => "placed",
            Self::Cost => "cost",
        })
    }
}

/// One rule that does not hold, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The rule.
    pub rule: Rule,
    /// In words and numbers.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)
    }
}

/// What must hold whatever others answer.
pub fn alone(problem: &Problem, answer: &Answer) -> Vec<Failure> {
    let mut failures = Vec::new();
    let placed: BTreeSet<&str> = placed(answer).collect();
    for pod in ours::pending(problem) {
        if placed.contains(&*pod) == answer.errors.contains_key(&pod) {
            let text = if placed.contains(&*pod) { "is placed and has a reason not to be" } else { "is nowhere" };
            failures.push(Failure { rule: Rule::Accounted, text: format!("{pod} {text}") });
        }
    }
    failures.extend(check(problem, answer).iter().map(|v| Failure { rule: Rule::Checker, text: v.to_string() }));
    for (pod, why) in one_of_each(problem, answer) {
        if let Some(place) = can_place(problem, answer, pod) {
            failures.push(Failure { rule: Rule::Pending, text: format!("{pod} fits {place:?}, but: {why}") });
        }
    }
    failures
}

/// Of pods that stay pending and are equal in all but their names, one: what is true of it is true of the others.
fn one_of_each<'a>(problem: &'a Problem, answer: &'a Answer) -> Vec<(&'a String, &'a String)> {
    let mut kept: Vec<(&Pod, (&String, &String))> = Vec::new();
    for pod in &problem.pods {
        let Some(entry) = answer.errors.get_key_value(&ours::name(&pod.metadata)) else { continue };
        let equal = |(other, _): &(&Pod, _)| {
            let (ours, theirs) = (&pod.metadata, &other.metadata);
            ours.namespace == theirs.namespace && ours.labels == theirs.labels && pod.spec == other.spec
        };
        if !kept.iter().any(equal) {
            kept.push((pod, entry));
        }
    }
    kept.into_iter().map(|(_, entry)| entry).collect()
}

/// Answers of Karpenter to one problem, and what is wrong with each by the independent checker.
#[derive(Clone, Debug)]
pub struct Theirs {
    /// One per run.
    pub answers: Vec<Answer>,
    /// Beside them.
    pub violations: Vec<Vec<Violation>>,
}

impl Theirs {
    /// Judges the runs.
    pub fn new(problem: &Problem, answers: Vec<Answer>) -> Self {
        let mut theirs = Self { answers: Vec::new(), violations: Vec::new() };
        theirs.add(problem, answers);
        theirs
    }

    /// Judges further runs. Runs that decided the same are judged once.
    pub fn add(&mut self, problem: &Problem, answers: Vec<Answer>) {
        for answer in answers {
            let same = |other: &Answer| Answer { millis: answer.millis, ..other.clone() } == answer;
            let known = self.answers.iter().position(same).and_then(|at| self.violations.get(at).cloned());
            self.violations.push(known.unwrap_or_else(|| check(problem, &answer)));
            self.answers.push(answer);
        }
    }
}

/// What must hold beside Karpenter's answers.
pub fn beside(problem: &Problem, answer: &Answer, theirs: &Theirs) -> Vec<Failure> {
    let mut failures = Vec::new();
    let ours: BTreeSet<&str> = placed(answer).collect();
    let runs: Vec<BTreeSet<&str>> = theirs.answers.iter().map(|answer| placed(answer).collect()).collect();
    let limits = problem.node_pools.iter().any(|pool| pool.spec.limits.is_some());
    if limits {
        let fewest = runs.iter().map(BTreeSet::len).min().unwrap_or_default();
        if ours.len() < fewest {
            let text = format!("{} pods of at least {fewest}", ours.len());
            failures.push(Failure { rule: Rule::Placed, text });
        }
    } else if let Some((first, rest)) = runs.split_first() {
        for pod in first.iter().filter(|pod| !ours.contains(*pod) && rest.iter().all(|run| run.contains(*pod))) {
            let why = answer.errors.get(*pod).map_or("no reason", String::as_str);
            failures.push(Failure { rule: Rule::Placed, text: format!("{pod} is placed by every run; ours: {why}") });
        }
    }
    let same = theirs.answers.iter().zip(&runs).filter(|(_, placed)| **placed == ours);
    let dearest = same.map(|(answer, _)| cost(problem, answer)).max_by(f64::total_cmp);
    let cost = cost(problem, answer);
    if let Some(dearest) = dearest.filter(|dearest| cost > dearest + CENT_OF_A_MICRO_USD) {
        failures.push(Failure { rule: Rule::Cost, text: format!("{cost:.6} USD an hour, their dearest {dearest:.6}") });
    }
    failures
}
