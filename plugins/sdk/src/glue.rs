//! Between the generated exports and the traits of a plugin: holds the plugin and the catalogue for one round.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::RefCell;

use crate::batch::{ClaimBatch, NodeBatch, PodBatch};
use crate::bindings::lifecycle::exports::mortise::policy::lifecycle::Manifest;
use crate::config::Config;
use crate::plugin::{Consolidate, Filter, Plugin, Score};
use crate::types::{
    Catalog, Choices, Claims, Diagnostic, Fleet, Groups, Nodes, Outcomes, Pods, PolicyError, Round, Verdict,
};

pub struct State<P>(RefCell<Option<Active<P>>>);

struct Active<P> {
    plugin: P,
    catalog: Option<Catalog>,
}

// A component has one thread, and the host never enters it while it runs.
#[expect(unsafe_code, reason = "wasm32 without threads: nothing is ever shared between threads")]
unsafe impl<P> Sync for State<P> {}

impl<P> Default for State<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> State<P> {
    pub const fn new() -> Self {
        Self(RefCell::new(None))
    }
}

fn early(what: &str) -> PolicyError {
    PolicyError::Internal(what.to_string())
}

impl<P: Plugin> State<P> {
    pub fn describe(&self) -> Manifest {
        let owned = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<String>>();
        Manifest {
            name: P::NAME.to_string(),
            version: P::VERSION.to_string(),
            config_schema: P::CONFIG_SCHEMA.to_string(),
            label_keys: owned(P::LABEL_KEYS),
            annotation_keys: owned(P::ANNOTATION_KEYS),
        }
    }

    pub fn configure(&self, json: &str) -> Result<(), Vec<Diagnostic>> {
        let config = Config::parse(json).map_err(|invalid| invalid.0)?;
        let plugin = P::configure(&config).map_err(|invalid| invalid.0)?;
        self.0.replace(Some(Active { plugin, catalog: None }));
        Ok(())
    }

    pub fn begin_round(&self, catalog: Catalog, fleet: &Fleet, memo: &[u8]) -> Result<(), PolicyError> {
        let mut state = self.0.borrow_mut();
        let active = state.as_mut().ok_or_else(|| early("begin-round before configure"))?;
        active.plugin.begin_round(&catalog, fleet, memo)?;
        active.catalog = Some(catalog);
        Ok(())
    }

    pub fn end_round(&self) -> Vec<u8> {
        self.0.borrow_mut().as_mut().map_or_else(Vec::new, |active| active.plugin.end_round())
    }

    fn ask<T>(&self, hook: impl FnOnce(&mut P, &Catalog) -> Result<T, PolicyError>) -> Result<T, PolicyError> {
        let mut state = self.0.borrow_mut();
        let active = state.as_mut().ok_or_else(|| early("hook before configure"))?;
        let catalog = active.catalog.as_ref().ok_or_else(|| early("hook before begin-round"))?;
        hook(&mut active.plugin, catalog)
    }
}

impl<P: Filter> State<P> {
    pub fn admit_pods(&self, round: &Round, pods: &Pods, candidates: &Choices) -> Result<Verdict, PolicyError> {
        let candidates = candidates.into();
        self.ask(|plugin, catalog| plugin.admit_pods(&PodBatch { round, catalog, pods, candidates }))
    }

    pub fn admit_claims(&self, round: &Round, claims: &Claims, candidates: &Choices) -> Result<Verdict, PolicyError> {
        let candidates = candidates.into();
        self.ask(|plugin, catalog| plugin.admit_claims(&ClaimBatch { round, catalog, claims, candidates }))
    }
}

impl<P: Score> State<P> {
    pub fn evaluate(
        &self,
        round: &Round,
        claims: &Claims,
        candidates: &Choices,
        base: &[i64],
    ) -> Result<Vec<i64>, PolicyError> {
        let candidates = candidates.into();
        self.ask(|plugin, catalog| plugin.evaluate(&ClaimBatch { round, catalog, claims, candidates }, base))
    }
}

impl<P: Consolidate> State<P> {
    pub fn propose(
        &self,
        round: &Round,
        nodes: &Nodes,
        tried: &Groups,
        outcomes: &Outcomes,
        max_sets: u32,
    ) -> Result<Groups, PolicyError> {
        let tried = tried.into();
        self.ask(|plugin, catalog| plugin.propose(&NodeBatch { round, catalog, nodes, tried, outcomes }, max_sets))
    }

    pub fn decide(
        &self,
        round: &Round,
        nodes: &Nodes,
        tried: &Groups,
        outcomes: &Outcomes,
    ) -> Result<Vec<i64>, PolicyError> {
        let tried = tried.into();
        self.ask(|plugin, catalog| plugin.decide(&NodeBatch { round, catalog, nodes, tried, outcomes }))
    }
}
