//! The policy host: what is active, and how it is replaced.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use sha2::Digest as _;

use crate::active::{ActivePolicies, Chains};
use crate::admit::{self, Admission, Builtins, DEFAULT_ROUND_DEADLINE};
use crate::config::{self, Entry, PolicySpec};
use crate::limits::Hook;
use crate::plugin::Plugin;
use crate::sandbox::Sandbox;
use crate::slot::{Seat, Slot};
use crate::source::POLICIES_KEY;
use crate::{ConfigMapData, PolicyStatus, RejectedRevision, Rejection};

/// Revision when there is no ConfigMap.
const DEFAULTS: &str = "defaults";

/// Settings of the policy host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostSettings {
    /// CPU time that all plugins together may take in one round: 1 s. Past it the hooks that are left fall back.
    pub round_deadline: Duration,
    /// Largest component, unpacked: 4 MiB. Larger ones take seconds and hundreds of megabytes to compile.
    pub max_component_bytes: usize,
}

impl Default for HostSettings {
    fn default() -> Self {
        Self { round_deadline: DEFAULT_ROUND_DEADLINE, max_component_bytes: 4 * 1024 * 1024 }
    }
}

/// Why the policy host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The sandbox cannot be set up on this machine.
    #[error("setting up the Wasm engine: {0}")]
    Engine(String),
    /// A built-in component does not pass its own admission: a broken build.
    #[error("built-in policy {name}: {message}")]
    Builtin {
        /// Name.
        name: String,
        /// What is wrong.
        message: String,
    },
}

/// A ConfigMap that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its revision, as in [`PolicyStatus::revision`].
    pub revision: String,
    /// False when the very same content was active already.
    pub changed: bool,
}

/// Runs policies. Share it in an `Arc`.
pub struct PolicyHost {
    settings: HostSettings,
    sandbox: Arc<Sandbox>,
    builtins: Builtins,
    active: ArcSwap<ActivePolicies>,
    paused: Arc<AtomicBool>,
    /// Held while a set is being replaced: one admission at a time, which also bounds compilation.
    changing: Mutex<()>,
    rejected: Mutex<Option<RejectedRevision>>,
}

impl PolicyHost {
    /// Compiles the built-in policies and makes them active.
    ///
    /// # Errors
    /// When the Wasm engine or a built-in component is unusable.
    pub fn new(settings: HostSettings) -> Result<Self, HostError> {
        let sandbox = Sandbox::shared().map_err(|error| HostError::Engine(format!("{error:#}")))?;
        let mut builtins = Builtins::new();
        for (name, bytes, sha256) in mortise_plugin_bundle::BUILTINS {
            let checked = admit::check(&sandbox, bytes, sha256.to_owned());
            builtins.push((name, checked.map_err(|message| HostError::Builtin { name: name.to_owned(), message })?));
        }
        let paused = Arc::new(AtomicBool::new(false));
        let set =
            Building { sandbox: &sandbox, builtins: &builtins, settings: &settings, paused: &paused, before: None };
        let active = set.build(&config::defaults(), &ConfigMapData::default(), DEFAULTS).map_err(|reasons| {
            let message = reasons.first().map_or_else(String::new, ToString::to_string);
            HostError::Builtin { name: "defaults".into(), message }
        })?;
        Ok(Self {
            active: ArcSwap::from_pointee(active),
            settings,
            sandbox,
            builtins,
            paused,
            changing: Mutex::default(),
            rejected: Mutex::default(),
        })
    }

    /// The active policies: take once per round.
    #[must_use]
    pub fn current(&self) -> Arc<ActivePolicies> {
        self.active.load_full()
    }

    /// Takes a ConfigMap: runs the whole admission pipeline, then swaps the active set in one step. Blocking (it
    /// compiles): call it off the async threads. On error nothing has changed, except that `disruption: paused` holds
    /// whatever else is wrong.
    ///
    /// # Errors
    /// Everything that is wrong with it, by key path.
    pub fn admit(&self, config_map: &ConfigMapData) -> Result<Admitted, Vec<Rejection>> {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let text = config_map.data.get(POLICIES_KEY);
        if text.is_some_and(|text| config::is_paused(text)) {
            self.paused.store(true, Ordering::Release);
        }
        let revision = revision(config_map);
        let before = self.active.load_full();
        if before.revision == revision {
            *self.rejected() = None;
            // A refused ConfigMap in between may have paused what this one leaves active.
            self.paused.store(text.is_some_and(|text| config::is_paused(text)), Ordering::Release);
            return Ok(Admitted { revision, changed: false });
        }
        let result = match text {
            Some(text) => config::parse(text),
            None => Err(vec![missing(config_map)]),
        };
        let result = result.and_then(|spec| {
            let active = self.building(&before).build(&spec, config_map, &revision)?;
            Ok((spec.paused, active))
        });
        match result {
            Ok((paused, active)) => {
                self.active.store(Arc::new(active));
                self.paused.store(paused, Ordering::Release);
                *self.rejected() = None;
                Ok(Admitted { revision, changed: true })
            }
            Err(reasons) => {
                *self.rejected() = Some(RejectedRevision { revision, at_unix_ms: now(), reasons: reasons.clone() });
                Err(reasons)
            }
        }
    }

    /// Back to the built-in policies, disruption active: what holds when there is no ConfigMap.
    pub fn reset_to_defaults(&self) {
        let _one_at_a_time = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.active.load_full();
        *self.rejected() = None;
        if before.revision != DEFAULTS {
            // The very set that was built at start-up: it cannot fail now.
            match self.building(&before).build(&config::defaults(), &ConfigMapData::default(), DEFAULTS) {
                Ok(active) => self.active.store(Arc::new(active)),
                Err(reasons) => {
                    tracing::error!(?reasons, "the built-in policies no longer start; keeping the active set")
                }
            }
        }
        self.paused.store(false, Ordering::Release);
    }

    /// What runs and how it fares.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        let active = self.active.load();
        PolicyStatus {
            revision: active.revision.clone(),
            active_since_unix_ms: active.since_unix_ms,
            disruption_paused: self.disruption_paused(),
            plugins: active.slots.iter().map(Slot::status).collect(),
            rejected: self.rejected().clone(),
        }
    }

    /// `disruption: paused` holds. Rounds answer no consolidation then; drift and other voluntary disruption ask here.
    #[must_use]
    pub fn disruption_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    fn rejected(&self) -> std::sync::MutexGuard<'_, Option<RejectedRevision>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn building<'a>(&'a self, before: &'a ActivePolicies) -> Building<'a> {
        let (sandbox, builtins) = (&self.sandbox, &self.builtins);
        Building { sandbox, builtins, settings: &self.settings, paused: &self.paused, before: Some(before) }
    }
}

/// Makes a set of policies from what a ConfigMap asks for.
struct Building<'a> {
    sandbox: &'a Arc<Sandbox>,
    builtins: &'a Builtins,
    settings: &'a HostSettings,
    paused: &'a Arc<AtomicBool>,
    before: Option<&'a ActivePolicies>,
}

impl Building<'_> {
    fn build(
        &self,
        spec: &PolicySpec,
        config_map: &ConfigMapData,
        revision: &str,
    ) -> Result<ActivePolicies, Vec<Rejection>> {
        let mut rejections = Vec::new();
        let admission = Admission {
            sandbox: self.sandbox,
            builtins: self.builtins,
            config_map,
            max_component_bytes: self.settings.max_component_bytes,
        };
        let since = now();
        let mut slots = Vec::new();
        let mut chains = Chains::default();
        for group in by_name(&spec.entries, &mut rejections) {
            let Some(first) = group.first() else { continue };
            let hooks: Vec<Hook> = group.iter().map(|entry| entry.hook).collect();
            match admission.plugin(first, &hooks) {
                Ok(plugin) => {
                    let before = self.before.and_then(|set| set.slots.iter().find(|s| **s.name() == *plugin.name));
                    let seat = seat(plugin, before, since);
                    slots.push(Slot::new(seat, first.on_error, hooks, before));
                }
                Err(reasons) => rejections.extend(reasons),
            }
        }
        if !rejections.is_empty() {
            return Err(rejections);
        }
        for entry in &spec.entries {
            let Some(index) = slots.iter().position(|slot| **slot.name() == *entry.name) else { continue };
            match entry.hook {
                Hook::Filter => chains.filters.push(index),
                Hook::Score => chains.scorers.push(index),
                Hook::Consolidate => chains.consolidator = Some(index),
                Hook::Lifecycle => {}
            }
        }
        let (deadline, paused) = (self.settings.round_deadline, Arc::clone(self.paused));
        Ok(ActivePolicies::new(revision.to_owned(), since, slots, chains, deadline, paused))
    }
}

/// Entries grouped by plugin: one that serves several hooks is one instance a round with one memo, so all its entries must
/// say the same.
fn by_name<'a>(entries: &'a [Entry], rejections: &mut Vec<Rejection>) -> Vec<Vec<&'a Entry>> {
    let mut groups: Vec<Vec<&Entry>> = Vec::new();
    for entry in entries {
        let Some(group) = groups.iter_mut().find(|g| g.first().is_some_and(|first| first.name == entry.name)) else {
            groups.push(vec![entry]);
            continue;
        };
        let Some(first) = group.first() else { continue };
        let same = first.source == entry.source
            && first.sha256 == entry.sha256
            && first.config == entry.config
            && first.limits == entry.limits
            && first.on_error == entry.on_error;
        let twice = group.iter().any(|other| other.hook == entry.hook);
        let path = format!("{POLICIES_KEY}: {}.name", entry.path);
        let name = &entry.name;
        if twice {
            rejections
                .push(Rejection { path, message: format!("{name:?} is in this chain twice; give it another name") });
        } else if !same {
            let message =
                format!("{name:?} is also {}, with other settings; make them equal or rename one", first.path);
            rejections.push(Rejection { path, message });
        } else {
            group.push(entry);
        }
    }
    groups
}

/// The seat that runs already when nothing about it changes: its memo and its health stay.
fn seat(plugin: Plugin, before: Option<&Slot>, since: u64) -> Arc<Seat> {
    let kept = before.map(|slot| &slot.seat).filter(|seat| seat.plugin.is_same(&plugin));
    kept.map_or_else(|| Seat::new(Arc::new(plugin), since), Arc::clone)
}

fn missing(config_map: &ConfigMapData) -> Rejection {
    let keys: Vec<&str> = config_map.data.keys().map(String::as_str).collect();
    let found = if keys.is_empty() { "data is empty".to_owned() } else { format!("data has: {}", keys.join(", ")) };
    Rejection { path: format!("data.{POLICIES_KEY}"), message: format!("is missing; {found}") }
}

/// Digest of the whole content: first 12 hex digits.
fn revision(config_map: &ConfigMapData) -> String {
    let mut digest = sha2::Sha256::new();
    let data = config_map.data.iter().map(|(key, value)| (key, value.as_bytes()));
    let binary = config_map.binary_data.iter().map(|(key, value)| (key, value.as_slice()));
    for (key, value) in data.chain(binary) {
        // Lengths first, so that no two contents run together to the same bytes.
        digest.update((key.len() as u64).to_le_bytes());
        digest.update((value.len() as u64).to_le_bytes());
        digest.update(key.as_bytes());
        digest.update(value);
    }
    let mut text = admit::bytes::hex(&digest.finalize());
    text.truncate(12);
    text
}

/// For status only: decisions take their time from the round.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
