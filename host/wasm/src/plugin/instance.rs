//! One instance of a plugin, for one round: calls under limits, answers checked.

use std::sync::Arc;
use std::time::Duration;

use mortise_engine::policy as core;
use wasmtime::{Store, Trap, UpdateDeadline};

use super::{Compiled, Manifest};
use crate::bindings::v0_1::exports::mortise::policy::{consolidate, filter, lifecycle, score};
use crate::bindings::v0_1::mortise::policy::types::{GroupsResult, PolicyError};
use crate::clock::Stopwatch;
use crate::columns::{self, CatalogColumns, check};
use crate::fault::Fault;
use crate::guest::{GuestState, Metrics};
use crate::limits::{Hook, Limits, MAX_MEMO};
use crate::sandbox::{ClockGuard, Sandbox};

/// An instance. After a fault it must not be called again.
pub(crate) struct Instance {
    store: Store<GuestState>,
    guests: Guests,
    limits: Limits,
    /// CPU time in calls so far.
    pub spent: Duration,
    /// Fuel that the last call used.
    pub last_fuel: u64,
    _clock: ClockGuard,
}

#[derive(Clone)]
struct Guests {
    lifecycle: Arc<lifecycle::Guest>,
    filter: Option<Arc<filter::Guest>>,
    score: Option<Arc<score::Guest>>,
    consolidate: Option<Arc<consolidate::Guest>>,
}

type Answer<T> = wasmtime::Result<Result<T, PolicyError>>;

impl Instance {
    pub(super) fn new(compiled: &Compiled, name: &Arc<str>, limits: Limits) -> Result<Self, Fault> {
        let begun = Stopwatch::start();
        let clock = compiled.sandbox.run_clock();
        let mut store = Store::new(&compiled.sandbox.engine, GuestState::new(name, &limits));
        store.limiter(|state| &mut state.meter);
        store.epoch_deadline_callback(|store| {
            let (begun, deadline) = store.data().call;
            Ok(if begun.is_past(deadline) { UpdateDeadline::Interrupt } else { UpdateDeadline::Continue(1) })
        });
        arm(&mut store, &limits, Hook::Lifecycle, 0)?;
        let load = |store: &mut Store<GuestState>| -> wasmtime::Result<Guests> {
            let instance = compiled.pre.instantiate(&mut *store)?;
            let filter = compiled.filter.as_ref().map(|i| i.load(&mut *store, &instance).map(Arc::new)).transpose()?;
            let score = compiled.score.as_ref().map(|i| i.load(&mut *store, &instance).map(Arc::new)).transpose()?;
            let nodes = compiled.consolidate.as_ref();
            Ok(Guests {
                lifecycle: Arc::new(compiled.lifecycle.load(&mut *store, &instance)?),
                filter,
                score,
                consolidate: nodes.map(|i| i.load(&mut *store, &instance).map(Arc::new)).transpose()?,
            })
        };
        let guests = load(&mut store).map_err(|error| fault_of(&error, &store, &limits, Hook::Lifecycle, 0))?;
        Ok(Self { store, guests, limits, spent: begun.elapsed(), last_fuel: 0, _clock: clock })
    }

    fn call<T>(
        &mut self,
        hook: Hook,
        candidates: usize,
        call: impl FnOnce(&Guests, &mut Store<GuestState>) -> wasmtime::Result<T>,
    ) -> Result<T, Fault> {
        let begun = Stopwatch::start();
        let budget = arm(&mut self.store, &self.limits, hook, candidates)?;
        let result = call(&self.guests, &mut self.store);
        self.spent += begun.elapsed();
        self.last_fuel = budget.saturating_sub(self.store.get_fuel().unwrap_or(0));
        result.map_err(|error| fault_of(&error, &self.store, &self.limits, hook, candidates))
    }

    fn ask<T>(
        &mut self,
        hook: Hook,
        candidates: usize,
        call: impl FnOnce(&Guests, &mut Store<GuestState>) -> Option<Answer<T>>,
    ) -> Result<T, Fault> {
        let answer = self.call(hook, candidates, |guests, store| call(guests, store).transpose())?;
        match answer {
            Some(answer) => answer.map_err(policy_error),
            None => Err(Fault::Policy(format!("it has no {} hook", hook.name()))),
        }
    }

    pub(crate) fn describe(&mut self) -> Result<Manifest, Fault> {
        self.call(Hook::Lifecycle, 0, |guests, store| guests.lifecycle.call_describe(store))
    }

    /// The inner error is the plugin's diagnostics: the configuration's fault, not the plugin's.
    pub(crate) fn configure(&mut self, json: &str) -> Result<Result<(), Vec<lifecycle::Diagnostic>>, Fault> {
        self.call(Hook::Lifecycle, 0, |guests, store| guests.lifecycle.call_configure(store, json))
    }

    pub(crate) fn begin_round(&mut self, columns: &CatalogColumns<'_>, memo: &[u8]) -> Result<(), Fault> {
        self.ask(Hook::Lifecycle, columns.rows(), |guests, store| {
            Some(guests.lifecycle.call_begin_round(store, columns.catalog(), columns.fleet(), memo))
        })
    }

    pub(crate) fn end_round(&mut self, rows: usize) -> Result<Vec<u8>, Fault> {
        let memo = self.call(Hook::Lifecycle, rows, |guests, store| guests.lifecycle.call_end_round(store))?;
        if memo.len() > MAX_MEMO {
            return Err(Fault::Length(format!("memo: {} bytes, at most {MAX_MEMO}", memo.len())));
        }
        Ok(memo)
    }

    pub(crate) fn admit_pods(
        &mut self,
        round: &core::Round,
        pods: &core::Pods,
        candidates: &core::Choices,
    ) -> Result<core::Verdict, Fault> {
        // Sets are sent once, and pods are few rows: a filter's work is per row and per member of the sets.
        let size = pods.count.len().saturating_add(check::candidate_count(candidates));
        let extra = columns::extra(&pods.extra);
        let answer = self.ask(Hook::Filter, size, |guests, store| {
            let (round, pods) = (columns::round(round), columns::pods(pods, &extra));
            guests.filter.as_ref().map(|f| f.call_admit_pods(store, round, pods, columns::choices(candidates)))
        })?;
        check::verdict(lift_verdict(answer), candidates, round.explain)
    }

    pub(crate) fn admit_claims(
        &mut self,
        round: &core::Round,
        claims: &core::Claims,
        candidates: &core::Choices,
    ) -> Result<core::Verdict, Fault> {
        let extra = columns::extra(&claims.extra);
        let answer = self.ask(Hook::Filter, check::candidate_count(candidates), |guests, store| {
            let (round, claims) = (columns::round(round), columns::claims(claims, &extra));
            guests.filter.as_ref().map(|f| f.call_admit_claims(store, round, claims, columns::choices(candidates)))
        })?;
        check::verdict(lift_verdict(answer), candidates, round.explain)
    }

    pub(crate) fn evaluate(
        &mut self,
        round: &core::Round,
        claims: &core::Claims,
        candidates: &core::Choices,
        base: &[i64],
    ) -> Result<Vec<i64>, Fault> {
        let extra = columns::extra(&claims.extra);
        let costs = self.ask(Hook::Score, base.len(), |guests, store| {
            let (round, claims) = (columns::round(round), columns::claims(claims, &extra));
            guests.score.as_ref().map(|s| s.call_evaluate(store, round, claims, columns::choices(candidates), base))
        })?;
        check::costs(costs, base.len())
    }

    pub(crate) fn propose(
        &mut self,
        round: &core::Round,
        nodes: &core::Nodes,
        tried: &core::Groups,
        outcomes: &core::Outcomes,
        max_sets: u32,
    ) -> Result<core::Groups, Fault> {
        let size = nodes.id.len().saturating_add(tried.member.len());
        let extra = columns::extra(&nodes.extra);
        let sets = self.ask(Hook::Consolidate, size, |guests, store| {
            let (round, nodes) = (columns::round(round), columns::nodes(nodes, &extra));
            let (tried, outcomes) = (columns::groups(tried), columns::outcomes(outcomes));
            guests.consolidate.as_ref().map(|c| c.call_propose(store, round, nodes, tried, outcomes, max_sets))
        })?;
        check::sets(lift_groups(sets), nodes.id.len(), max_sets)
    }

    pub(crate) fn decide(
        &mut self,
        round: &core::Round,
        nodes: &core::Nodes,
        tried: &core::Groups,
        outcomes: &core::Outcomes,
    ) -> Result<Vec<i64>, Fault> {
        let size = nodes.id.len().saturating_add(tried.member.len());
        let extra = columns::extra(&nodes.extra);
        let priorities = self.ask(Hook::Consolidate, size, |guests, store| {
            let (round, nodes) = (columns::round(round), columns::nodes(nodes, &extra));
            let (tried, outcomes) = (columns::groups(tried), columns::outcomes(outcomes));
            guests.consolidate.as_ref().map(|c| c.call_decide(store, round, nodes, tried, outcomes))
        })?;
        check::priorities(priorities, tried.end.len())
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.store.data().metrics
    }
}

/// Sets what the next call may use and returns its fuel.
fn arm(store: &mut Store<GuestState>, limits: &Limits, hook: Hook, candidates: usize) -> Result<u64, Fault> {
    let budget = limits.budget(hook, candidates);
    store.set_fuel(budget.fuel).map_err(|error| Fault::Trap(format!("{error:#}")))?;
    store.set_epoch_deadline(Sandbox::ticks(budget.deadline));
    store.data_mut().call = (Stopwatch::start(), budget.deadline);
    store.set_hostcall_fuel(budget.answer_bytes);
    Ok(budget.fuel)
}

/// Tells apart why a call did not return.
fn fault_of(
    error: &wasmtime::Error,
    store: &Store<GuestState>,
    limits: &Limits,
    hook: Hook,
    candidates: usize,
) -> Fault {
    let budget = limits.budget(hook, candidates);
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => Fault::Fuel(budget.fuel),
        Some(Trap::Interrupt) => Fault::Deadline(u64::try_from(budget.deadline.as_millis()).unwrap_or(u64::MAX)),
        // A guest that is refused memory usually panics: the cause is the refusal.
        _ if store.data().meter.denied => Fault::Memory(limits.memory_mib),
        Some(Trap::UnreachableCodeReached) => {
            let said = store.data().last_error.clone();
            Fault::Trap(said.unwrap_or_else(|| "reached code that should never run".into()))
        }
        Some(trap) => Fault::Trap(trap.to_string()),
        None => {
            let text = format!("{error:#}");
            // The limit on bytes that the host reads from the guest has no type of its own.
            if text.contains("fuel allocated for hostcalls") {
                Fault::Length(format!("more than {} KiB", budget.answer_bytes / 1024))
            } else {
                Fault::Trap(text)
            }
        }
    }
}

fn policy_error(error: PolicyError) -> Fault {
    Fault::Policy(match error {
        PolicyError::InvalidConfig(text) => format!("invalid configuration: {text}"),
        PolicyError::Unsupported(text) => format!("unsupported: {text}"),
        PolicyError::Internal(text) => format!("internal: {text}"),
    })
}

fn lift_groups(groups: GroupsResult) -> core::Groups {
    core::Groups { end: groups.end, member: groups.member }
}

fn lift_verdict(verdict: filter::Verdict) -> core::Verdict {
    core::Verdict { dropped: lift_groups(verdict.dropped), reason: verdict.reason, reasons: verdict.reasons }
}
