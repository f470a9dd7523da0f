//! One round's conversation with the active policies.

use std::sync::Arc;
use std::time::Duration;

use mortise_engine::policy::{
    COST_DROPPED, Choices, Claims, Fleet, Groups, Nodes, Outcomes, Pods, PolicyRound, Round as Asked, RoundCatalog,
    Verdict,
};

use crate::active::ActivePolicies;
use crate::clock::Stopwatch;
use crate::columns::CatalogColumns;
use crate::fault::Fault;
use crate::limits::Hook;
use crate::native::NativeRound;
use crate::plugin::Instance;
use crate::slot::{OnError, Seat, Slot};

mod chain;
mod fold;

use fold::Folded;

/// A round: fresh instances, made when a hook is first asked.
pub(crate) struct Round<'a> {
    active: &'a ActivePolicies,
    columns: CatalogColumns<'a>,
    native: NativeRound<'a>,
    runs: Vec<Run>,
    faults: Vec<String>,
    /// CPU time in plugins so far.
    spent: Duration,
    now_unix_ms: u64,
}

/// What answers for a slot in this round.
enum Run {
    /// Not asked yet.
    Fresh,
    /// A component: the slot's own or its last good one.
    Component { seat: Arc<Seat>, instance: Box<Instance> },
    /// The native built-in of the hook.
    Builtin,
    /// Nothing: it is left out.
    Skip,
    /// Nothing passes.
    Stop,
}

/// What a slot answers to one question.
enum Reply<T> {
    Answer(T),
    Builtin,
    Skip,
    Stop,
}

impl Run {
    fn name(&self) -> &'static str {
        match self {
            Self::Fresh | Self::Component { .. } => "its last good component stands in",
            Self::Builtin => "the native built-in stands in",
            Self::Skip => "it is left out of this round",
            Self::Stop => "nothing passes, as its onError says",
        }
    }
}

impl<'a> Round<'a> {
    pub(crate) fn new(active: &'a ActivePolicies, catalog: &'a RoundCatalog, fleet: &'a Fleet) -> Self {
        Self {
            active,
            columns: CatalogColumns::new(catalog, fleet),
            native: NativeRound::new(catalog),
            runs: active.slots.iter().map(|_| Run::Fresh).collect(),
            faults: Vec::new(),
            spent: Duration::ZERO,
            now_unix_ms: 0,
        }
    }

    /// Asks the slot, going down its fallbacks until one answers.
    fn ask<T>(
        &mut self,
        index: usize,
        hook: Hook,
        mut question: impl FnMut(&mut Instance) -> Result<T, Fault>,
    ) -> Reply<T> {
        let active = self.active;
        let Some(slot) = active.slots.get(index) else { return Reply::Skip };
        loop {
            let late = self.spent >= active.round_deadline;
            let run = self.runs.get_mut(index).map_or(Run::Skip, |run| std::mem::replace(run, Run::Fresh));
            let next = match run {
                Run::Fresh if late => self.fail(slot, hook, &self.too_late(), None),
                Run::Fresh if !slot.seat.may_run(self.now_unix_ms) => self.stand_in(slot, hook),
                Run::Fresh => self.start(slot, hook, &slot.seat),
                Run::Component { seat, instance } if late => {
                    seat.round_ended(None, instance.metrics());
                    self.fail(slot, hook, &self.too_late(), None)
                }
                Run::Component { seat, mut instance } => {
                    let before = instance.spent;
                    let answer = question(&mut instance);
                    self.spent += instance.spent.saturating_sub(before);
                    match answer {
                        Ok(answer) => {
                            self.set(index, Run::Component { seat, instance });
                            return Reply::Answer(answer);
                        }
                        Err(fault) => {
                            seat.round_ended(None, instance.metrics());
                            self.fail(slot, hook, &fault, Some(&seat))
                        }
                    }
                }
                Run::Builtin => {
                    self.set(index, Run::Builtin);
                    return Reply::Builtin;
                }
                Run::Skip => {
                    self.set(index, Run::Skip);
                    return Reply::Skip;
                }
                Run::Stop => {
                    self.set(index, Run::Stop);
                    return Reply::Stop;
                }
            };
            self.set(index, next);
        }
    }

    fn set(&mut self, index: usize, run: Run) {
        if let Some(place) = self.runs.get_mut(index) {
            *place = run;
        }
    }

    fn too_late(&self) -> Fault {
        Fault::RoundDeadline(u64::try_from(self.active.round_deadline.as_millis()).unwrap_or(u64::MAX))
    }

    /// A fresh instance of a component in this round, or what stands in when it cannot start.
    fn start(&mut self, slot: &Slot, hook: Hook, seat: &Arc<Seat>) -> Run {
        let begun = Stopwatch::start();
        let started = seat.plugin.instantiate().and_then(|mut instance| {
            instance.begin_round(&self.columns, &seat.memo())?;
            Ok(Box::new(instance))
        });
        self.spent += begun.elapsed();
        match started {
            Ok(instance) => Run::Component { seat: Arc::clone(seat), instance },
            Err(fault) => self.fail(slot, hook, &fault, Some(seat)),
        }
    }

    /// Notes a fault and says what comes next. `seat` is the component that failed, if one was asked.
    fn fail(&mut self, slot: &Slot, hook: Hook, fault: &Fault, seat: Option<&Arc<Seat>>) -> Run {
        let failed = seat.unwrap_or(&slot.seat);
        failed.fault(fault, self.now_unix_ms);
        let next = match slot.on_error {
            OnError::LastGood if seat.is_some_and(|seat| Arc::ptr_eq(seat, &slot.seat)) => self.stand_in(slot, hook),
            OnError::LastGood => unaided(hook),
            OnError::Builtin => Run::Builtin,
            OnError::Skip => Run::Skip,
            OnError::Stop => Run::Stop,
        };
        let (name, hook) = (slot.name(), hook.name());
        self.faults.push(format!("policy {name}: {hook}: the plugin {fault}; {}", next.name()));
        next
    }

    /// What answers instead of a slot's own component.
    fn stand_in(&mut self, slot: &Slot, hook: Hook) -> Run {
        match (slot.on_error, &slot.last_good) {
            (OnError::LastGood, Some(seat)) => self.start(slot, hook, &Arc::clone(seat)),
            (OnError::LastGood, None) => unaided(hook),
            (OnError::Builtin, _) => Run::Builtin,
            (OnError::Skip, _) => Run::Skip,
            (OnError::Stop, _) => Run::Stop,
        }
    }

    /// Runs the chain of filters over `candidates`.
    fn filter(
        &mut self,
        round: &Asked,
        candidates: &Choices,
        mut question: impl FnMut(&mut Instance, &Choices) -> Result<Verdict, Fault>,
        mut builtin: impl FnMut(&mut NativeRound<'a>, &Choices) -> Option<Verdict>,
    ) -> Option<Verdict> {
        self.now_unix_ms = round.now_unix_ms;
        let active = self.active;
        let mut chain = chain::Filtered::new(candidates, round.explain);
        for index in &active.chains.filters {
            let name = active.slots.get(*index).map_or("", |slot| slot.name());
            let reply = self.ask(*index, Hook::Filter, |instance| question(instance, chain.candidates()));
            let verdict = match reply {
                Reply::Answer(verdict) => Some(verdict),
                Reply::Builtin => builtin(&mut self.native, chain.candidates()),
                Reply::Skip => None,
                Reply::Stop => Some(chain.everything("its plugin failed and its onError is stop")),
            };
            if let Some(verdict) = verdict {
                chain.apply(name, verdict);
            }
        }
        chain.finish()
    }
}

/// Without a last good component: the built-in for filters and scorers, no voluntary disruption for consolidation.
fn unaided(hook: Hook) -> Run {
    if hook == Hook::Consolidate { Run::Skip } else { Run::Builtin }
}

impl PolicyRound for Round<'_> {
    fn admit_pods(&mut self, round: &Asked, pods: &Pods, candidates: &Choices) -> Option<Verdict> {
        // No built-in has an opinion before placement.
        let question = |instance: &mut Instance, left: &Choices| instance.admit_pods(round, pods, left);
        self.filter(round, candidates, question, |_, _| None)
    }

    fn admit_claims(&mut self, round: &Asked, claims: &Claims, candidates: &Choices) -> Option<Verdict> {
        if let Some(folded) = Folded::new(claims, candidates, &[]) {
            let verdict = self.admit_claims(round, &folded.claims, &folded.candidates)?;
            return Some(folded.unfold_verdict(verdict));
        }
        let question = |instance: &mut Instance, left: &Choices| instance.admit_claims(round, claims, left);
        self.filter(round, candidates, question, |native, left| Some(native.constraints(round, claims, left)))
    }

    fn evaluate(&mut self, round: &Asked, claims: &Claims, candidates: &Choices, base: Vec<i64>) -> Vec<i64> {
        if let Some(mut folded) = Folded::new(claims, candidates, &base) {
            let costs = std::mem::take(&mut folded.base);
            let costs = self.evaluate(round, &folded.claims, &folded.candidates, costs);
            return folded.unfold_costs(&costs, base);
        }
        self.now_unix_ms = round.now_unix_ms;
        let active = self.active;
        let mut costs = base;
        for index in &active.chains.scorers {
            let reply = self.ask(*index, Hook::Score, |instance| instance.evaluate(round, claims, candidates, &costs));
            let mut scored = match reply {
                Reply::Answer(scored) => scored,
                Reply::Builtin => self.native.price(candidates, costs.clone()),
                Reply::Skip => continue,
                Reply::Stop => vec![COST_DROPPED; costs.len()],
            };
            for (cost, before) in scored.iter_mut().zip(&costs) {
                if *before == COST_DROPPED {
                    *cost = COST_DROPPED;
                }
            }
            costs = scored;
        }
        costs
    }

    fn propose_consolidation(
        &mut self,
        round: &Asked,
        nodes: &Nodes,
        tried: &Groups,
        outcomes: &Outcomes,
        max_sets: u32,
    ) -> Groups {
        self.now_unix_ms = round.now_unix_ms;
        let Some(index) = self.active.chains.consolidator.filter(|_| !self.active.is_paused()) else {
            return Groups::default();
        };
        let question = |instance: &mut Instance| instance.propose(round, nodes, tried, outcomes, max_sets);
        match self.ask(index, Hook::Consolidate, question) {
            Reply::Answer(sets) => sets,
            Reply::Builtin => self.native.propose(nodes, tried, max_sets),
            Reply::Skip | Reply::Stop => Groups::default(),
        }
    }

    fn decide_consolidation(&mut self, round: &Asked, nodes: &Nodes, tried: &Groups, outcomes: &Outcomes) -> Vec<i64> {
        self.now_unix_ms = round.now_unix_ms;
        let nothing = || vec![0; tried.end.len()];
        let Some(index) = self.active.chains.consolidator.filter(|_| !self.active.is_paused()) else {
            return nothing();
        };
        let question = |instance: &mut Instance| instance.decide(round, nodes, tried, outcomes);
        match self.ask(index, Hook::Consolidate, question) {
            Reply::Answer(priorities) => priorities,
            Reply::Builtin => self.native.decide(nodes, tried, outcomes),
            Reply::Skip | Reply::Stop => nothing(),
        }
    }

    fn end(self: Box<Self>) -> Vec<String> {
        let Self { active, columns, runs, mut faults, now_unix_ms, .. } = *self;
        for (slot, run) in active.slots.iter().zip(runs) {
            let Run::Component { seat, mut instance } = run else { continue };
            match instance.end_round(columns.rows()) {
                Ok(memo) => seat.round_ended(Some(memo), instance.metrics()),
                Err(fault) => {
                    seat.fault(&fault, now_unix_ms);
                    seat.round_ended(None, instance.metrics());
                    faults.push(format!("policy {}: end-round: the plugin {fault}; its memo is kept", slot.name()));
                }
            }
        }
        faults
    }
}
