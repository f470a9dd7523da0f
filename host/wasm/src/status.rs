//! What runs and how it fares, for the status ConfigMap, metrics and `/debug`.

use std::collections::BTreeMap;

/// State of the policy host. Serialises to the `status.yaml` of the status ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    /// Digest of the ConfigMap that is active (first 12 hex digits of its sha256), or `defaults`.
    pub revision: String,
    /// Since when, Unix milliseconds.
    pub active_since_unix_ms: u64,
    /// Voluntary disruption is paused by the ConfigMap.
    pub disruption_paused: bool,
    /// Every plugin of the active set, in chain order.
    pub plugins: Vec<PluginStatus>,
    /// The latest ConfigMap that was refused, unless a later one was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedRevision>,
}

/// A ConfigMap that was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RejectedRevision {
    /// Its digest.
    pub revision: String,
    /// When, Unix milliseconds.
    pub at_unix_ms: u64,
    /// Everything wrong with it.
    pub reasons: Vec<crate::Rejection>,
}

/// One plugin of the active set.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// Name in the ConfigMap.
    pub name: String,
    /// Version that the component states.
    pub version: String,
    /// Hooks it serves: `filter`, `score`, `consolidate`.
    pub hooks: Vec<String>,
    /// `builtin:<name>` or `inline:<key>`.
    pub source: String,
    /// sha256 of the component, hex.
    pub sha256: String,
    /// What answers now.
    pub state: PluginState,
    /// Since when this component is in the set, Unix milliseconds.
    pub active_since_unix_ms: u64,
    /// Rounds it took part in.
    pub rounds: u64,
    /// Faults by kind since it is in the set.
    pub faults: FaultCounts,
    /// The latest fault, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Counters that the plugin itself keeps, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
    /// Gauges that the plugin itself keeps, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<String, i64>,
}

/// What answers for a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PluginState {
    /// The component itself.
    Active,
    /// Its breaker is open: the last good component of that name answers.
    LastGood,
    /// Its breaker is open: the native built-in answers.
    Builtin,
    /// Its breaker is open: it is left out.
    Skipped,
    /// Its breaker is open and `onError: stop`: nothing passes.
    Stopped,
}

/// Faults by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultCounts {
    /// Traps: panics, stack overflow, bad pointers.
    pub trap: u64,
    /// Out of fuel.
    pub fuel: u64,
    /// Past the deadline of a call or of the round.
    pub deadline: u64,
    /// Asked for more memory than it may have.
    pub memory: u64,
    /// An answer of the wrong length, or too large.
    pub length: u64,
    /// An index out of range, or not of the row's own set.
    pub index: u64,
    /// The plugin returned an error.
    pub policy_error: u64,
}
