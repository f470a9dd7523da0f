//! A plugin: a compiled component with its configuration and limits, and the making of fresh instances of it.

use std::sync::Arc;

use wasmtime::component::{Component, InstancePre};

use crate::bindings::v0_1::exports::mortise::policy::{consolidate, filter, lifecycle, score};
use crate::fault::Fault;
use crate::guest::GuestState;
use crate::limits::{Hook, Limits};
use crate::sandbox::Sandbox;

mod instance;

pub(crate) use instance::Instance;

/// Export names of the hooks, version 0.1.
pub(crate) const LIFECYCLE: &str = "mortise:policy/lifecycle@0.1.0";
pub(crate) const FILTER: &str = "mortise:policy/filter@0.1.0";
pub(crate) const SCORE: &str = "mortise:policy/score@0.1.0";
pub(crate) const PLAN: &str = "mortise:policy/plan@0.1.0";
pub(crate) const CONSOLIDATE: &str = "mortise:policy/consolidate@0.1.0";

/// What a plugin says of itself.
pub(crate) type Manifest = lifecycle::Manifest;

/// A compiled component that was found to be a plugin.
#[derive(Clone)]
pub(crate) struct Compiled {
    sandbox: Arc<Sandbox>,
    pre: InstancePre<GuestState>,
    lifecycle: Arc<lifecycle::GuestIndices>,
    filter: Option<Arc<filter::GuestIndices>>,
    score: Option<Arc<score::GuestIndices>>,
    consolidate: Option<Arc<consolidate::GuestIndices>>,
}

/// A plugin ready for rounds.
pub(crate) struct Plugin {
    /// Name in the ConfigMap.
    pub name: Arc<str>,
    pub compiled: Compiled,
    pub manifest: Manifest,
    /// JSON text for `configure`.
    pub config: String,
    pub limits: Limits,
    /// sha256 of the component, hex.
    pub sha256: String,
    /// `builtin:<name>` or `inline:<key>`.
    pub source: String,
}

impl Compiled {
    /// Links a component. Imports must have been checked before.
    pub(crate) fn link(sandbox: &Arc<Sandbox>, component: &Component) -> wasmtime::Result<Self> {
        let pre = sandbox.linker.instantiate_pre(component)?;
        let has = |name: &str| component.get_export_index(None, name).is_some();
        Ok(Self {
            sandbox: Arc::clone(sandbox),
            lifecycle: Arc::new(lifecycle::GuestIndices::new(&pre)?),
            filter: has(FILTER).then(|| filter::GuestIndices::new(&pre).map(Arc::new)).transpose()?,
            score: has(SCORE).then(|| score::GuestIndices::new(&pre).map(Arc::new)).transpose()?,
            consolidate: has(CONSOLIDATE).then(|| consolidate::GuestIndices::new(&pre).map(Arc::new)).transpose()?,
            pre,
        })
    }

    /// It exports this hook.
    pub(crate) fn serves(&self, hook: Hook) -> bool {
        match hook {
            Hook::Lifecycle => true,
            Hook::Filter => self.filter.is_some(),
            Hook::Score => self.score.is_some(),
            Hook::Consolidate => self.consolidate.is_some(),
        }
    }

    /// A fresh instance, with every function of every hook looked up and type-checked.
    pub(crate) fn instantiate(&self, name: &Arc<str>, limits: Limits) -> Result<Instance, Fault> {
        Instance::new(self, name, limits)
    }
}

impl Plugin {
    /// A fresh instance, configured.
    pub(crate) fn instantiate(&self) -> Result<Instance, Fault> {
        let mut instance = self.compiled.instantiate(&self.name, self.limits)?;
        instance.configure(&self.config)?.map_err(|diagnostics| {
            let first = diagnostics.first().map_or_else(String::new, |d| format!("{}: {}", d.path, d.message));
            Fault::Policy(format!("configure refused what it had accepted at admission: {first}"))
        })?;
        Ok(instance)
    }

    /// Same component, configuration and limits: the same in all that matters, memo included.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.sha256 == other.sha256 && self.config == other.config && self.limits == other.limits
    }
}
