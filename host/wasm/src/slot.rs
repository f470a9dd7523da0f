//! A place in the active set: the plugin that fills it, how that plugin fares, and what stands in when it does not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::fault::Fault;
use crate::guest::Metrics;
use crate::limits::Hook;
use crate::plugin::Plugin;
use crate::status::{FaultCounts, PluginState, PluginStatus};

mod breaker;

use breaker::Breaker;

/// What to do when a plugin cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// The last good component of that name; without one, the built-in (no voluntary disruption, for consolidation).
    LastGood,
    /// The built-in policy of that hook, natively.
    Builtin,
    /// Leave it out: drops nothing, changes no cost, disrupts nothing.
    Skip,
    /// Let nothing pass: no offering is left, nothing is disrupted.
    Stop,
}

/// A plugin with its memory and its health, kept across revisions as long as component, configuration and limits are the
/// same.
pub(crate) struct Seat {
    pub plugin: Arc<Plugin>,
    since_unix_ms: u64,
    inner: Mutex<Health>,
}

#[derive(Default)]
struct Health {
    memo: Vec<u8>,
    rounds: u64,
    good_rounds: u64,
    faults: FaultCounts,
    last_error: Option<String>,
    breaker: Breaker,
    metrics: Metrics,
}

impl Seat {
    pub(crate) fn new(plugin: Arc<Plugin>, since_unix_ms: u64) -> Arc<Self> {
        Arc::new(Self { plugin, since_unix_ms, inner: Mutex::default() })
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        // A panic while it was held can only have been in a counter: the data is still good.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn memo(&self) -> Vec<u8> {
        self.health().memo.clone()
    }

    /// May it be asked at this time?
    pub(crate) fn may_run(&self, now_unix_ms: u64) -> bool {
        self.health().breaker.may_run(now_unix_ms)
    }

    /// Notes a fault.
    pub(crate) fn fault(&self, fault: &Fault, now_unix_ms: u64) {
        let mut health = self.health();
        health.faults.count(fault);
        health.last_error = Some(fault.to_string());
        if fault.is_its_own() {
            health.breaker.fault(now_unix_ms);
        }
    }

    /// Notes a round; `memo` is what to remember when all of it went well.
    pub(crate) fn round_ended(&self, memo: Option<Vec<u8>>, metrics: &Metrics) {
        let mut health = self.health();
        health.rounds += 1;
        health.metrics.merge(metrics);
        if let Some(memo) = memo {
            health.memo = memo;
            health.good_rounds += 1;
            health.breaker.success();
        }
    }

    /// Good enough to stand in for a successor: not tripped.
    fn is_good(&self) -> bool {
        !self.health().breaker.is_open()
    }
}

/// A named place in the active set.
pub(crate) struct Slot {
    pub seat: Arc<Seat>,
    pub last_good: Option<Arc<Seat>>,
    pub on_error: OnError,
    /// Hooks that the set asks it for.
    pub hooks: Vec<Hook>,
}

impl Slot {
    /// Fills a place. `before` is the slot of the same name in the set that runs now.
    pub(crate) fn new(seat: Arc<Seat>, on_error: OnError, hooks: Vec<Hook>, before: Option<&Self>) -> Self {
        let serves = |seat: &Arc<Seat>| hooks.iter().all(|hook| seat.plugin.compiled.serves(*hook));
        let last_good = before.and_then(|before| {
            let same = Arc::ptr_eq(&before.seat, &seat);
            let predecessor =
                if same || !before.seat.is_good() { before.last_good.clone() } else { Some(Arc::clone(&before.seat)) };
            predecessor.filter(serves)
        });
        Self { seat, last_good, on_error, hooks }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.seat.plugin.name
    }

    fn state(&self) -> PluginState {
        if self.seat.is_good() {
            return PluginState::Active;
        }
        let consolidates = self.hooks.contains(&Hook::Consolidate);
        match self.on_error {
            OnError::LastGood if self.last_good.is_some() => PluginState::LastGood,
            OnError::LastGood if consolidates => PluginState::Skipped,
            OnError::LastGood | OnError::Builtin => PluginState::Builtin,
            OnError::Skip => PluginState::Skipped,
            OnError::Stop => PluginState::Stopped,
        }
    }

    pub(crate) fn status(&self) -> PluginStatus {
        let plugin = &self.seat.plugin;
        let state = self.state();
        let health = self.seat.health();
        PluginStatus {
            name: plugin.name.to_string(),
            version: plugin.manifest.version.clone(),
            hooks: self.hooks.iter().map(|hook| hook.name().to_owned()).collect(),
            source: plugin.source.clone(),
            sha256: plugin.sha256.clone(),
            state,
            active_since_unix_ms: self.seat.since_unix_ms,
            rounds: health.rounds,
            faults: health.faults,
            last_error: health.last_error.clone(),
            counters: health.metrics.counters.clone(),
            gauges: health.metrics.gauges.clone(),
        }
    }
}
