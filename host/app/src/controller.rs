//! The controller: watches feed one state, changes fill queues, and while this replica leads, reconcilers work them off.
//!
//! ```text
//! watches ─► Shared (ClusterState) ─► route ─► queues ─► reconcilers ─► API server, cloud
//!                                        └───► batcher ─► pipeline ──┘
//! ```
//!
//! Both replicas watch, so a hand-over starts warm. What acts is one *term*: its tasks start with the lease and are cut
//! off with it.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use mortise_cloud::CloudProvider;
use mortise_kube::batch::{Batcher, Windows};
use mortise_kube::events::{Options as EventOptions, Recorder};
use mortise_kube::watch::{Options as WatchOptions, Watches};
use mortise_wasm::PolicyHost;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::actuate::launch::Launcher;
use crate::actuate::policies as policy_map;
use crate::clock::Clock;
use crate::context::{Context, Parts};
use crate::health::Health;
use crate::metrics::Registry;
use crate::serve::{self, Routes};
use crate::settings::Settings;
use crate::shared::Shared;
use crate::{observe, route};

mod lead;
mod startup;
mod term;

/// Runs the controller until the token is cancelled, then ends in order: no new work, work under way finished or left
/// in a state that another replica takes up, lease released, Events sent.
///
/// # Errors
/// What keeps it from starting: a port in use, a cloud that cannot be reached.
pub async fn run(
    client: Client,
    provider: Arc<dyn CloudProvider>,
    policies: Arc<PolicyHost>,
    settings: Arc<Settings>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    Controller::new(client, provider, policies, settings).run(shutdown).await
}

/// A controller that has not started yet; gives access to what can be watched from outside.
pub struct Controller {
    client: Client,
    provider: Arc<dyn CloudProvider>,
    policies: Arc<PolicyHost>,
    settings: Arc<Settings>,
    metrics: Arc<Registry>,
    health: Arc<Health>,
    election: Option<Client>,
}

impl Controller {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        client: Client,
        provider: Arc<dyn CloudProvider>,
        policies: Arc<PolicyHost>,
        settings: Arc<Settings>,
    ) -> Self {
        Self { client, provider, policies, settings, metrics: Registry::new(), health: Arc::default(), election: None }
    }

    /// Gives the election a client of its own, so that it never waits behind other requests.
    #[must_use]
    pub fn with_election_client(self, client: Client) -> Self {
        Self { election: Some(client), ..self }
    }

    /// Uses a registry that other parts count in too.
    #[must_use]
    pub fn with_metrics(self, metrics: Arc<Registry>) -> Self {
        Self { metrics, ..self }
    }

    /// Its metrics.
    #[must_use]
    pub fn metrics(&self) -> Arc<Registry> {
        self.metrics.clone()
    }

    /// Its readiness.
    #[must_use]
    pub fn health(&self) -> Arc<Health> {
        self.health.clone()
    }

    /// Runs it; see [`run`].
    ///
    /// # Errors
    /// See [`run`].
    pub async fn run(self, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self { client, provider, policies: host, settings, metrics, health, election } = self;
        for warning in &settings.warnings {
            tracing::warn!("{warning}");
        }
        // Background tasks end with this set; leading and the lease end before them.
        let mut tasks = JoinSet::new();
        let background = CancellationToken::new();
        listen(&settings, &metrics, &health, &background, &mut tasks).await?;
        health.policies_loaded();
        if let Err(error) = provider.check().await {
            anyhow::bail!("the cloud provider {} cannot be used: {error}", provider.name());
        }

        let events = EventOptions { instance: lead::hostname(), ..EventOptions::default() };
        let clock = Clock::start();
        let (state, changes) = Shared::new(clock);
        state.with(|s| s.set_default_spread(settings.default_spread.clone()));
        state.with(|s| s.set_static_capacity(settings.gate("StaticCapacity")));
        let (launcher, line) = Launcher::new();
        let (election, leader) = lead::Election::start(&settings, election.unwrap_or_else(|| client.clone()));
        let leads = leader.watch();
        let (batcher, trigger) = Batcher::new(Windows { idle: settings.batch_idle, max: settings.batch_max });
        let ctx = Context::new(Parts {
            recorder: Recorder::start(client.clone(), events),
            trigger,
            client: client.clone(),
            provider: provider.clone(),
            policies: host,
            settings: settings.clone(),
            metrics: metrics.clone(),
            clock,
            state: state.clone(),
            launcher,
            leader,
        });
        observe::collect(&ctx);
        let options = WatchOptions {
            policies: Some((ctx.namespace.clone(), settings.policies_configmap.clone())),
            workloads: !settings.default_spread.is_empty(),
            ..WatchOptions::default()
        };
        let (watches, events) = Watches::start(&client, &options);
        if let Some(overlays) = &ctx.overlays {
            overlays.watch(&client, &mut tasks);
        }
        if let Some(buffers) = &ctx.buffers {
            buffers.watch(&client, &ctx.queues.buffers, &mut tasks);
        }
        let (policy_feed, policies) = watch::channel(route::PolicyFeed::default());
        let (handled, policies_handled) = watch::channel(0);
        let (listed, lists) = watch::channel(route::Lists::default());
        tasks.spawn(startup::crds(client.clone(), health.clone()));
        tasks.spawn(feed(state, events));
        tasks.spawn(route::run(ctx.clone(), changes, policy_feed, listed, health));
        tasks.spawn(policy_map::run(ctx.clone(), policies.clone(), handled, background.clone()));
        tasks.spawn({
            let (provider, leads) = (provider.clone(), leads.clone());
            async move { provider.run(leads).await }
        });
        tasks.spawn(catalog_changes(ctx.clone()));

        tracing::info!(provider = provider.name(), version = env!("CARGO_PKG_VERSION"), "starting controller");
        let (batcher, line) = (Arc::new(Mutex::new(batcher)), Arc::new(Mutex::new(line)));
        let duties = term::Duties { ctx: ctx.clone(), watches, lists, policies, policies_handled, batcher, line };
        lead::run(duties, election, leads, shutdown).await;
        ctx.recorder.flush(Duration::from_secs(2)).await;
        background.cancel();
        tasks.shutdown().await;
        tracing::info!("stopped controller");
        Ok(())
    }
}

/// Opens the ports and serves them. A port of 0 is not served.
async fn listen(
    settings: &Settings,
    metrics: &Arc<Registry>,
    health: &Arc<Health>,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) -> anyhow::Result<()> {
    let ports = [
        (settings.metrics_port, "metrics", Routes::Metrics(metrics.clone())),
        (settings.health_probe_port, "health probes", Routes::Health(health.clone())),
    ];
    for (port, what, routes) in ports.into_iter().filter(|(port, ..)| *port != 0) {
        let listener = serve::bind(port, what).await?;
        tasks.spawn(serve::serve(listener, routes, stop.clone()));
    }
    let extra = settings.extra_metrics_port;
    if extra != 0 && extra != settings.metrics_port && extra != settings.health_probe_port {
        // A convenience for older scrape settings: not worth failing for.
        match serve::bind(extra, "metrics").await {
            Ok(listener) => {
                tasks.spawn(serve::serve(listener, Routes::Metrics(metrics.clone()), stop.clone()));
            }
            Err(error) => tracing::warn!("EXTRA_METRICS_PORT: {error:#}"),
        }
    }
    Ok(())
}

/// Events into the state, as many at once as have come.
async fn feed(state: Shared, mut events: tokio::sync::mpsc::Receiver<mortise_kube::watch::Event>) {
    let mut batch = Vec::with_capacity(256);
    while events.recv_many(&mut batch, 256).await > 0 {
        state.apply(batch.drain(..));
    }
}

/// A change of types, prices or stock may make room for pods that wait.
async fn catalog_changes(ctx: Arc<Context>) {
    let mut changed = ctx.provider.catalog_changed();
    while changed.changed().await.is_ok() {
        changed.borrow_and_update();
        route::wake_pipeline(&ctx);
    }
}
