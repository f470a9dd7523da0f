//! What every reconciler has at hand.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use mortise_cloud::CloudProvider;
use mortise_engine::catalog::Catalog;
use mortise_engine::snapshot::Options;
use mortise_kube::batch::Trigger;
use mortise_kube::events::Recorder;
use mortise_kube::lease::Leadership;
use mortise_kube::record::ObjectName;
use mortise_wasm::PolicyHost;
use tokio::sync::Notify;

use crate::actuate::launch::Launcher;
use crate::actuate::volumes::Attachments;
use crate::actuate::{claims, eviction};
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::metrics::Registry;
use crate::notes::Note;
use crate::overlays::Overlays;
use crate::pipeline::pace::Paces;
use crate::queue::{Backoff, Queue};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::write::Writer;

/// Shared by all reconcilers.
pub(crate) struct Context {
    pub client: Client,
    pub provider: Arc<dyn CloudProvider>,
    pub policies: Arc<PolicyHost>,
    pub settings: Arc<Settings>,
    pub metrics: Arc<Registry>,
    pub clock: Clock,
    pub state: Shared,
    pub writer: Writer,
    pub recorder: Recorder,
    pub launcher: Launcher,
    pub queues: Queues,
    pub trigger: Trigger,
    /// Wakes the disruption loop.
    pub disruption: Notify,
    /// Wakes the writer of the policies' status.
    pub policy_news: Notify,
    /// Catalogues as last asked for, for metrics.
    pub catalogs: Mutex<BTreeMap<Arc<str>, Arc<Catalog>>>,
    /// NodeOverlays, with their feature gate.
    pub overlays: Option<Arc<Overlays>>,
    /// CapacityBuffers, with their feature gate.
    pub buffers: Option<Arc<Buffers>>,
    /// How fast static pools try again.
    pub static_pace: Paces,
    /// Volumes attached to nodes.
    pub attachments: Attachments,
    /// Our own namespace.
    pub namespace: String,
    /// True while this replica may act.
    pub leader: Leadership,
    round: AtomicU64,
}

/// Work to do, by kind of key.
pub(crate) struct Queues {
    /// NodeClaims, and Nodes of which no NodeClaim is known.
    pub claims: Queue<claims::Key>,
    /// Pods to remove from draining nodes.
    pub evictions: Queue<eviction::Key>,
    /// NodePools.
    pub pools: Queue<Arc<str>>,
    /// EC2NodeClasses.
    pub classes: Queue<Arc<str>>,
    /// NodePools with replicas, for the number of their nodes.
    pub statics: Queue<Arc<str>>,
    /// CapacityBuffers.
    pub buffers: Queue<ObjectName>,
}

impl Default for Queues {
    fn default() -> Self {
        let backoff = |first, max| Backoff { first: Duration::from_millis(first), max: Duration::from_millis(max) };
        Self {
            claims: Queue::new(backoff(200, 60_000)),
            evictions: Queue::new(backoff(100, 10_000)),
            pools: Queue::new(backoff(200, 60_000)),
            classes: Queue::new(backoff(200, 60_000)),
            statics: Queue::new(backoff(200, 60_000)),
            buffers: Queue::new(backoff(200, 60_000)),
        }
    }
}

/// Parts of a context that are made elsewhere.
pub(crate) struct Parts {
    pub client: Client,
    pub provider: Arc<dyn CloudProvider>,
    pub policies: Arc<PolicyHost>,
    pub settings: Arc<Settings>,
    pub metrics: Arc<Registry>,
    pub clock: Clock,
    pub state: Shared,
    pub recorder: Recorder,
    pub launcher: Launcher,
    pub trigger: Trigger,
    pub leader: Leadership,
}

impl Context {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { client, provider, policies, settings, metrics, clock, state, recorder, launcher, trigger, leader } =
            parts;
        Arc::new(Self {
            writer: Writer::new(client.clone()),
            queues: Queues::default(),
            disruption: Notify::new(),
            policy_news: Notify::new(),
            catalogs: Mutex::default(),
            overlays: settings.gate("NodeOverlay").then(Arc::default),
            buffers: settings.gate("CapacityBuffer").then(|| Arc::new(Buffers::new())),
            static_pace: Paces::default(),
            attachments: Attachments::default(),
            namespace: settings.namespace(),
            round: AtomicU64::new(1),
            client,
            provider,
            policies,
            settings,
            metrics,
            clock,
            state,
            recorder,
            launcher,
            trigger,
            leader,
        })
    }

    /// Options of the next engine call.
    pub(crate) fn engine_options(&self) -> Options {
        let round = self.round.fetch_add(1, Ordering::Relaxed);
        Options {
            ignore_preferences: self.settings.ignore_preferences,
            min_values_best_effort: self.settings.min_values_best_effort,
            explain: true,
            seed: round,
            round,
            ..Options::default()
        }
    }

    /// Concurrency of a reconciler: `min` at one core of `CPU_REQUESTS`, `max` at sixty.
    pub(crate) fn workers(&self, min: u32, max: u32) -> usize {
        let cores = self.settings.cpu_requests_milli.div_ceil(1000).clamp(1, 60);
        let workers = min + (max.saturating_sub(min)) * (cores - 1) / 59;
        usize::try_from(workers).unwrap_or(1)
    }

    /// May this replica act?
    pub(crate) fn leading(&self) -> bool {
        self.leader.holds()
    }

    /// Sends an Event for each note while leading: for what both replicas see.
    pub(crate) fn notify_leading(&self, notes: impl IntoIterator<Item = Note>) {
        if self.leading() {
            self.notify(notes);
        }
    }

    /// Sends an Event for each note.
    pub(crate) fn notify(&self, notes: impl IntoIterator<Item = Note>) {
        for note in notes {
            crate::events::send(self, &note);
        }
    }
}
