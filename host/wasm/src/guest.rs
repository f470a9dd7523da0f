//! What the host keeps for one instance of a plugin, and the few things a plugin may ask of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::bindings::v0_1::mortise::policy::{host_log, host_metrics, types};
use crate::clock::Stopwatch;
use crate::limits::{Limits, Meter};

/// Bytes of a log line that are kept.
const MAX_LINE: usize = 512;
/// Metrics of one plugin.
const MAX_METRICS: usize = 32;

/// State of one instance.
pub(crate) struct GuestState {
    plugin: Arc<str>,
    pub meter: Meter,
    /// When the running call began, and how long it may take.
    pub call: (Stopwatch, Duration),
    lines_left: u32,
    lines_dropped: u32,
    /// The last line at level error: a panic's message, most of the time.
    pub last_error: Option<String>,
    /// Counters added to and gauges set in this round.
    pub metrics: Metrics,
}

/// Metrics of a plugin by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub counters: BTreeMap<String, u64>,
    pub gauges: BTreeMap<String, i64>,
}

impl Metrics {
    fn admits(&self, name: &str) -> bool {
        let legal = !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        let known = self.counters.contains_key(name) || self.gauges.contains_key(name);
        legal && (known || self.counters.len() + self.gauges.len() < MAX_METRICS)
    }

    pub(crate) fn add(&mut self, name: &str, delta: u64) {
        if self.admits(name) {
            let counter = self.counters.entry(name.to_owned()).or_default();
            *counter = counter.saturating_add(delta);
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: i64) {
        if self.admits(name) {
            self.gauges.insert(name.to_owned(), value);
        }
    }

    /// Adds what another round counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        other.counters.iter().for_each(|(name, delta)| self.add(name, *delta));
        other.gauges.iter().for_each(|(name, value)| self.set(name, *value));
    }
}

impl GuestState {
    pub(crate) fn new(plugin: &Arc<str>, limits: &Limits) -> Self {
        Self {
            plugin: Arc::clone(plugin),
            meter: Meter::new(limits),
            call: (Stopwatch::start(), Duration::ZERO),
            lines_left: limits.log_lines,
            lines_dropped: 0,
            last_error: None,
            metrics: Metrics::default(),
        }
    }
}

impl Drop for GuestState {
    fn drop(&mut self) {
        if self.lines_dropped > 0 {
            tracing::warn!(plugin = %self.plugin, dropped = self.lines_dropped, "log lines past the limit of the round");
        }
    }
}

impl types::Host for GuestState {}

impl host_log::Host for GuestState {
    fn enabled(&mut self, at: host_log::Level) -> bool {
        match at {
            // Kept for fault messages even when nobody listens.
            host_log::Level::Error => true,
            host_log::Level::Warn => tracing::enabled!(target: "mortise::plugin", tracing::Level::WARN),
            host_log::Level::Info => tracing::enabled!(target: "mortise::plugin", tracing::Level::INFO),
            host_log::Level::Debug => tracing::enabled!(target: "mortise::plugin", tracing::Level::DEBUG),
            host_log::Level::Trace => tracing::enabled!(target: "mortise::plugin", tracing::Level::TRACE),
        }
    }

    fn write(&mut self, at: host_log::Level, message: String) {
        let mut message = message;
        let cut = (0..=MAX_LINE.min(message.len())).rev().find(|i| message.is_char_boundary(*i)).unwrap_or(0);
        message.truncate(cut);
        if at == host_log::Level::Error {
            self.last_error = Some(message.clone());
        }
        if self.lines_left == 0 {
            self.lines_dropped = self.lines_dropped.saturating_add(1);
            return;
        }
        self.lines_left -= 1;
        let plugin = &*self.plugin;
        match at {
            host_log::Level::Error => tracing::error!(target: "mortise::plugin", plugin, "{message}"),
            host_log::Level::Warn => tracing::warn!(target: "mortise::plugin", plugin, "{message}"),
            host_log::Level::Info => tracing::info!(target: "mortise::plugin", plugin, "{message}"),
            host_log::Level::Debug => tracing::debug!(target: "mortise::plugin", plugin, "{message}"),
            host_log::Level::Trace => tracing::trace!(target: "mortise::plugin", plugin, "{message}"),
        }
    }
}

impl host_metrics::Host for GuestState {
    fn add(&mut self, name: String, delta: u64) {
        self.metrics.add(&name, delta);
    }

    fn observe(&mut self, name: String, value: i64) {
        self.metrics.set(&name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::v0_1::mortise::policy::host_log::Host as _;

    #[test]
    fn metrics_are_bounded_in_number_and_name() {
        let mut metrics = Metrics::default();
        (0..100).for_each(|i| metrics.add(&format!("m{i}"), 1));
        assert_eq!(metrics.counters.len(), MAX_METRICS);
        metrics.add("m1", u64::MAX);
        assert_eq!(metrics.counters.get("m1"), Some(&u64::MAX));
        let mut named = Metrics::default();
        ["Bad", "", "a-b", "a b"].iter().for_each(|name| named.set(name, 1));
        assert_eq!(named, Metrics::default());
    }

    #[test]
    fn lines_are_cut_and_counted() {
        let limits = Limits { log_lines: 1, ..Limits::default() };
        let mut state = GuestState::new(&"p".into(), &limits);
        state.write(host_log::Level::Error, "é".repeat(400));
        assert_eq!(state.last_error.as_ref().map(String::len), Some(512));
        state.write(host_log::Level::Info, "second".into());
        assert_eq!((state.lines_left, state.lines_dropped), (0, 1));
    }
}
