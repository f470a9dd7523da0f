//! Seed after seed, and what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use mortise_checker::Rule as Checked;
use mortise_problem::{Answer, Problem};
use serde_json::json;

use crate::features::FEATURES;
use crate::intended::{Case, DIFFERENCES, explanation};
use crate::judge::{Failure, Rule, Theirs, alone, beside};
use crate::oracle::{Oracle, RUNS};
use crate::shrink::shrink;
use crate::{generate, ours};

/// How often a failing problem is tried in smaller forms.
const SHRINKING: usize = 600;
/// Failing seeds that are shrunk and written down; the rest is only counted.
const WRITTEN: usize = 20;

/// How often five more runs are asked for before a cost counts as too high: the dearest of five is not always the dearest
/// that the order of its maps can lead to.
const MORE: usize = 3;

/// What came of the seeds.
#[derive(Debug, Default)]
pub struct Report {
    /// Seeds judged.
    pub seeds: usize,
    /// Pods that waited, those that we placed, and nodes that we would make.
    pub pods: usize,
    /// Of them placed by us.
    pub placed: usize,
    /// Nodes that we would make.
    pub claims: usize,
    /// Pods that the worst run of Karpenter places, summed.
    pub placed_by_karpenter: usize,
    /// Seeds with each feature, in the order of [`FEATURES`].
    pub features: Vec<usize>,
    /// Seeds in which each intended difference explained something.
    pub differences: BTreeMap<&'static str, usize>,
    /// Seeds with any of them.
    pub excused: usize,
    /// Failures by rule that nothing explains.
    pub failures: BTreeMap<Rule, usize>,
    /// Seeds with any of them, with the first failure of each and the file that holds the small problem.
    pub failed: Vec<(u64, Failure, Option<PathBuf>)>,
    /// Runs of Karpenter that break a rule of the independent checker, by rule.
    pub broken_by_karpenter: BTreeMap<Checked, usize>,
    /// Seeds for which the oracle had no answer, with its words.
    pub unanswered: Vec<(u64, String)>,
}

/// Judges seeds.
#[derive(Debug)]
pub struct Run {
    /// The real Karpenter; without it only what must hold of our answer alone is judged.
    pub oracle: Option<Oracle>,
    /// Where small failing problems are written.
    pub failures: PathBuf,
    /// Shrinks what fails.
    pub shrink: bool,
}

/// What one problem showed.
struct Outcome {
    ours: Answer,
    theirs: Option<Theirs>,
    failures: Vec<Failure>,
    /// Ids of intended differences.
    excused: Vec<&'static str>,
}

impl Run {
    /// Judges these seeds.
    ///
    /// # Errors
    /// The generator or the conversion failed, the oracle died, or a failure could not be written down.
    pub fn seeds(&mut self, seeds: impl IntoIterator<Item = u64>) -> Result<Report> {
        let mut report = Report { features: vec![0; FEATURES.len()], ..Report::default() };
        for seed in seeds {
            let problem = generate::problem(seed)?;
            report.seeds += 1;
            for (count, (_, has)) in report.features.iter_mut().zip(FEATURES) {
                *count += usize::from(has(&problem));
            }
            let outcome = match self.outcome(&problem)? {
                Ok(outcome) => outcome,
                Err(why) => {
                    report.unanswered.push((seed, why));
                    continue;
                }
            };
            report.count(&problem, &outcome);
            let Some(first) = outcome.failures.first().cloned() else { continue };
            for failure in &outcome.failures {
                *report.failures.entry(failure.rule).or_default() += 1;
            }
            let written = report.failed.len() < WRITTEN;
            let file = if written { Some(self.write(seed, &problem, &first)?) } else { None };
            report.failed.push((seed, first, file));
        }
        Ok(report)
    }

    /// Judges one problem; the inner error is the oracle's.
    fn outcome(&mut self, problem: &Problem) -> Result<Result<Outcome, String>> {
        if let Some(oracle) = &mut self.oracle {
            oracle.ask(problem)?;
        }
        let ours = ours::answer(problem)?;
        let mut failures = alone(problem, &ours);
        let mut theirs = match &mut self.oracle {
            Some(oracle) => match oracle.answers()? {
                Ok(answers) => Some(Theirs::new(problem, answers)),
                Err(why) => return Ok(Err(why)),
            },
            None => None,
        };
        let mut excused = Vec::new();
        if let Some(theirs) = &mut theirs {
            let mut found = beside(problem, &ours, theirs);
            for _ in 0..MORE {
                let Some(oracle) = self.oracle.as_mut().filter(|_| found.iter().any(|f| f.rule == Rule::Cost)) else {
                    break;
                };
                oracle.ask(problem)?;
                if let Ok(answers) = oracle.answers()? {
                    theirs.add(problem, answers);
                }
                found = beside(problem, &ours, theirs);
            }
            for failure in found {
                match explanation(Case { problem, ours: &ours, theirs, failure: &failure }) {
                    Some(difference) => excused.push(difference.id),
                    None => failures.push(failure),
                }
            }
        }
        excused.sort_unstable();
        excused.dedup();
        Ok(Ok(Outcome { ours, theirs, failures, excused }))
    }

    /// Shrinks a failing problem and writes it down with both sides' answers.
    fn write(&mut self, seed: u64, problem: &Problem, failure: &Failure) -> Result<PathBuf> {
        let budget = if self.shrink { SHRINKING } else { 0 };
        let small = shrink(problem, budget, &mut |smaller| {
            let outcome = self.outcome(smaller).and_then(|outcome| outcome.map_err(anyhow::Error::msg));
            outcome.is_ok_and(|outcome| outcome.failures.iter().any(|f| f.rule == failure.rule))
        });
        let outcome = self.outcome(&small)?.map_err(anyhow::Error::msg)?;
        let path = self.failures.join(format!("{seed}-{}.json", failure.rule));
        let texts: Vec<String> = outcome.failures.iter().map(ToString::to_string).collect();
        let content = json!({
            "failures": texts, "ours": outcome.ours, "theirs": outcome.theirs.map(|theirs| theirs.answers),
            "problem": small,
        });
        write(&path, &content)?;
        Ok(path)
    }
}

fn write(path: &Path, content: &serde_json::Value) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    std::fs::write(path, serde_json::to_string_pretty(content)?).with_context(|| format!("writing {}", path.display()))
}

impl Report {
    fn count(&mut self, problem: &Problem, outcome: &Outcome) {
        self.pods += ours::pending(problem).len();
        self.placed += crate::placed(&outcome.ours).count();
        self.claims += outcome.ours.claims.len();
        let runs = outcome.theirs.iter().flat_map(|theirs| &theirs.answers);
        self.placed_by_karpenter += runs.map(|run| crate::placed(run).count()).min().unwrap_or_default();
        for violations in outcome.theirs.iter().flat_map(|theirs| &theirs.violations) {
            for rule in violations.iter().map(|violation| violation.rule).collect::<BTreeSet<_>>() {
                *self.broken_by_karpenter.entry(rule).or_default() += 1;
            }
        }
        self.excused += usize::from(!outcome.excused.is_empty());
        for id in &outcome.excused {
            *self.differences.entry(id).or_default() += 1;
        }
    }

    /// Nothing failed that nothing explains, and explanations are rare enough to be exceptions.
    pub fn holds(&self) -> bool {
        self.failed.is_empty() && self.unanswered.is_empty() && self.excused * 20 <= self.seeds
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} seeds: {} pods waited, {} placed (Karpenter's worst runs: {}), {} nodes to make",
            self.seeds, self.pods, self.placed, self.placed_by_karpenter, self.claims
        )?;
        let share = |count: usize| count * 100 / self.seeds.max(1);
        writeln!(f, "\nfeature                       seeds  share")?;
        for ((name, _), count) in FEATURES.iter().zip(&self.features) {
            writeln!(f, "{name:<28} {count:>6} {:>5}%", share(*count))?;
        }
        writeln!(f, "\ndifferences by intent: {} seeds ({}%)", self.excused, share(self.excused))?;
        for difference in DIFFERENCES {
            let count = self.differences.get(difference.id).copied().unwrap_or_default();
            writeln!(f, "{:<6} {count:>6}  {}", difference.id, difference.what)?;
        }
        writeln!(f, "\nrules of the checker broken by runs of Karpenter, of {}:", self.seeds * RUNS)?;
        for (rule, count) in &self.broken_by_karpenter {
            writeln!(f, "{:<14} {count:>6}", format!("{rule:?}"))?;
        }
        writeln!(f, "\nfailures: {} seeds", self.failed.len())?;
        for (rule, count) in &self.failures {
            writeln!(f, "{:<10} {count:>6}", rule.to_string())?;
        }
        for (seed, failure, file) in &self.failed {
            let file = file.as_ref().map_or_else(String::new, |file| format!(" ({})", file.display()));
            writeln!(f, "seed {seed}: {failure}{file}")?;
        }
        for (seed, why) in &self.unanswered {
            writeln!(f, "seed {seed}: no answer of Karpenter: {}", why.lines().next().unwrap_or_default())?;
        }
        Ok(())
    }
}
