//! Voluntary disruption: which nodes may go.
//!
//! A consolidation policy names sets of nodes, the engine judges each set natively and the policy decides; what it chose
//! is checked again, within budgets. In this version sets of empty nodes are judged; any other set is reported to the
//! policy as infeasible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::decision::Disrupt;
use crate::pod::PodKey;
use crate::policy::{Groups, Outcomes, PolicySet};
use crate::schedule::{begin_tables, round_of, sorted_pools, views};
use crate::snapshot::{Options, Snapshot};
use crate::symbol::Symbols;

pub(crate) mod budget;
mod candidate;
pub mod cron;
mod table;
#[cfg(test)]
mod tests;

use candidate::{Candidate, candidates};

/// Budget and Event reason of emptiness.
pub const EMPTY: &str = "Empty";
/// Sets that a policy may have tried in one round, and questions it may be asked.
const MAX_SETS: u32 = 10_000;
const MAX_ASKS: u32 = 64;

/// Result of one disruption round.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Disruption {
    /// Commands, best first; each is to be validated again before it is carried out.
    pub disrupt: Vec<Disrupt>,
    /// Managed nodes that may not be disrupted now, each with what stands in the way, by name.
    pub blocked: Vec<(Arc<str>, NodeBlocker)>,
    /// Nodes that could be disrupted for this reason (gauge `eligible_nodes`).
    pub eligible: u32,
    /// Budget per NodePool for this reason, by name.
    pub budgets: Vec<BudgetState>,
    /// Policies that did not answer.
    pub policy_faults: Vec<String>,
}

/// Budget of one NodePool for one reason at the time of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BudgetState {
    /// NodePool.
    pub nodepool: Arc<str>,
    /// `Empty`, `Underutilized`, …
    pub reason: Arc<str>,
    /// Nodes that count.
    pub total: u32,
    /// Of them, being disrupted or not ready.
    pub disrupting: u32,
    /// Further nodes that may be disrupted now; `u32::MAX` = no budget in effect.
    pub allowed: u32,
    /// Why it is zero whatever the numbers: a budget that could not be read.
    pub invalid: Option<Arc<str>>,
    /// A node was eligible and had to stay because of this budget.
    pub blocking: bool,
}

/// Why a node may not be disrupted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum NodeBlocker {
    /// Its NodeClaim has no Node yet.
    NoNode,
    /// Already being deleted.
    Deleting,
    /// Not registered or not initialised.
    NotInitialized,
    /// A pending pod was promised to it.
    Nominated,
    /// The do-not-disrupt annotation on the Node or NodeClaim.
    DoNotDisrupt,
    /// It names no NodePool, or one that does not exist.
    NoNodePool,
    /// A pod with an active do-not-disrupt annotation.
    PodDoNotDisrupt(PodKey),
    /// A pod whose PodDisruptionBudget allows no eviction now: pod and budget.
    PodDisruptionBudget(PodKey, Arc<str>),
    /// Another pod that forbids it, in words.
    Pod(PodKey, Arc<str>),
    /// `consolidateAfter: Never`.
    ConsolidateAfterNever,
    /// The NodeClaim condition Consolidatable is not True (yet).
    NotConsolidatable,
    /// The NodePool's budget is spent.
    Budget(Arc<str>),
    /// The consolidation policy decided against it.
    Policy,
}

/// Empty nodes that may go now.
pub fn empty(snapshot: &Snapshot, options: &Options, policies: &dyn PolicySet) -> Disruption {
    let mut out = Disruption { budgets: budgets(snapshot, EMPTY), ..Disruption::default() };
    let mut free: Vec<Candidate<'_>> = Vec::new();
    for candidate in candidates(snapshot) {
        match candidate {
            Ok(candidate) => free.push(candidate),
            Err(blocked) => out.blocked.push(blocked),
        }
    }
    free.retain(|candidate| !candidate.pool.is_static);
    let mut eligible: BTreeSet<usize> = BTreeSet::new();
    for (at, candidate) in free.iter().enumerate().filter(|(_, candidate)| candidate.is_empty()) {
        match candidate.not_removable() {
            Some(blocker) => out.blocked.push((Arc::clone(candidate.name), blocker)),
            None => {
                eligible.insert(at);
            }
        }
    }
    out.eligible = crate::symbol::id_of(eligible.len());
    if eligible.is_empty() {
        out.blocked.sort();
        return out;
    }

    let mut symbols = Symbols::default();
    let (views, by_name) = views(snapshot, &mut symbols);
    let tables = begin_tables(snapshot, &views, &by_name);
    let nodes = table::nodes(&free, snapshot.now_unix_ms, &tables, (&views, &by_name));
    let round = round_of(snapshot.now_unix_ms, options);
    let mut policy = policies.begin(&tables.catalog, &tables.fleet);
    let mut tried = Groups::default();
    let mut outcomes = Outcomes::default();
    for _ in 0..MAX_ASKS {
        let left = MAX_SETS - crate::symbol::id_of(tried.len()).min(MAX_SETS);
        let proposed = if left == 0 {
            Groups::default()
        } else {
            policy.propose_consolidation(&round, &nodes, &tried, &outcomes, left)
        };
        if proposed.is_empty() {
            break;
        }
        for row in (0..proposed.len()).take(left as usize) {
            let set = proposed.row(row);
            judge(set, &eligible, &nodes, &mut outcomes);
            tried.push(set.iter().copied());
        }
    }
    let priorities =
        if tried.is_empty() { Vec::new() } else { policy.decide_consolidation(&round, &nodes, &tried, &outcomes) };
    let chosen = choose(&tried, &outcomes, &priorities);
    take(chosen, &free, &eligible, &mut out);
    out.policy_faults = policy.end();
    out.blocked.sort();
    out
}

/// Feasible when every node of the set is empty and may go: nothing moves and nothing replaces it.
fn judge(set: &[u32], eligible: &BTreeSet<usize>, nodes: &crate::policy::Nodes, outcomes: &mut Outcomes) {
    /// Codes of the table of reasons that policies see.
    const FEASIBLE: u32 = 0;
    const NOT_EMPTY: u32 = 1;
    let feasible = !set.is_empty() && set.iter().all(|at| eligible.contains(&(*at as usize)));
    let price = |at: &u32| nodes.price_micro_usd.get(*at as usize).copied().filter(|price| *price != u64::MAX);
    let saving: u64 = set.iter().filter_map(price).fold(0, u64::saturating_add);
    outcomes.feasible.push(u8::from(feasible));
    outcomes.saving_micro_usd.push(if feasible { crate::quantity::MicroUsd(saving).as_cost() } else { 0 });
    outcomes.new_nodes.push(0);
    outcomes.evictions.push(0);
    outcomes.replacement.push([]);
    outcomes.reason.push(if feasible { FEASIBLE } else { NOT_EMPTY });
}

/// Sets that the policy wants, in its order; earlier proposals first among equals.
fn choose<'t>(tried: &'t Groups, outcomes: &Outcomes, priorities: &[i64]) -> Vec<&'t [u32]> {
    let mut rows: Vec<usize> = (0..tried.len())
        .filter(|row| priorities.get(*row).is_some_and(|priority| *priority > 0))
        .filter(|row| outcomes.feasible.get(*row).is_some_and(|feasible| *feasible == 1))
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(priorities.get(*row).copied()));
    rows.into_iter().map(|row| tried.row(row)).collect()
}

/// Takes chosen sets while budgets last. A set is taken as a whole or not at all.
fn take(chosen: Vec<&[u32]>, free: &[Candidate<'_>], eligible: &BTreeSet<usize>, out: &mut Disruption) {
    let mut left: BTreeMap<Arc<str>, u32> =
        out.budgets.iter().map(|budget| (Arc::clone(&budget.nodepool), budget.allowed)).collect();
    let mut taken: Vec<Arc<str>> = Vec::new();
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    let mut short: BTreeMap<usize, Arc<str>> = BTreeMap::new();
    for set in chosen {
        let members: BTreeSet<usize> = set.iter().map(|at| *at as usize).collect();
        // The host's own check of the set: nothing in it is taken twice or protected.
        if !members.iter().all(|at| eligible.contains(at) && !gone.contains(at)) {
            continue;
        }
        let mut needed: BTreeMap<&Arc<str>, u32> = BTreeMap::new();
        for candidate in members.iter().filter_map(|at| free.get(*at)) {
            *needed.entry(&candidate.pool.name).or_default() += 1;
        }
        let lacking = needed.iter().find(|(pool, count)| left.get(**pool).copied().unwrap_or(0) < **count);
        if let Some((pool, _)) = lacking {
            for budget in out.budgets.iter_mut().filter(|budget| budget.nodepool == **pool) {
                budget.blocking = true;
            }
            short.extend(members.iter().map(|at| (*at, Arc::clone(pool))));
            continue;
        }
        for (pool, count) in needed {
            if let Some(left) = left.get_mut(pool).filter(|left| **left != u32::MAX) {
                *left -= count;
            }
        }
        taken.extend(members.iter().filter_map(|at| free.get(*at)).map(|candidate| Arc::clone(candidate.name)));
        gone.extend(members);
    }
    for at in eligible.iter().filter(|at| !gone.contains(at)) {
        let Some(candidate) = free.get(*at) else { continue };
        let blocker = short.get(at).map_or(NodeBlocker::Policy, |pool| NodeBlocker::Budget(Arc::clone(pool)));
        out.blocked.push((Arc::clone(candidate.name), blocker));
    }
    if !taken.is_empty() {
        out.disrupt.push(Disrupt { nodes: taken, reason: EMPTY.into() });
    }
}

/// Budget of every NodePool, by name.
pub fn budgets(snapshot: &Snapshot, reason: &str) -> Vec<BudgetState> {
    sorted_pools(snapshot).into_iter().map(|pool| budget::state(snapshot, pool, reason)).collect()
}

/// What of an earlier command still holds: nodes that are still candidates for its reason, within today's budgets, in
/// the command's order. A reason that this version does not carry out keeps nothing.
pub fn validate(snapshot: &Snapshot, command: &Disrupt) -> Disrupt {
    let mut nodes = Vec::new();
    if &*command.reason == EMPTY {
        let mut left: BTreeMap<Arc<str>, u32> =
            budgets(snapshot, EMPTY).into_iter().map(|budget| (budget.nodepool, budget.allowed)).collect();
        let free: BTreeMap<&Arc<str>, Candidate<'_>> = candidates(snapshot)
            .into_iter()
            .flatten()
            .filter(|candidate| {
                !candidate.pool.is_static && candidate.is_empty() && candidate.not_removable().is_none()
            })
            .map(|candidate| (candidate.name, candidate))
            .collect();
        for name in &command.nodes {
            let Some(left) = free.get(name).and_then(|candidate| left.get_mut(&candidate.pool.name)) else { continue };
            if *left > 0 && !nodes.contains(name) {
                *left = if *left == u32::MAX { u32::MAX } else { *left - 1 };
                nodes.push(Arc::clone(name));
            }
        }
    }
    Disrupt { nodes, reason: Arc::clone(&command.reason) }
}
