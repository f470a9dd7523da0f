//! `mortise` and `mortise controller`: the controller itself.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use kube::Client;
use mortise_cloud::CloudProvider;
use mortise_kube::client::{Options, build};
use mortise_sim::cloud::{self, KwokCloud};
use mortise_wasm::{HostSettings, PolicyHost};
use tokio_util::sync::CancellationToken;

use crate::controller::Controller;
use crate::metrics::Registry;
use crate::settings::{Provider, Settings, Typed};
use crate::telemetry;

/// Worker threads of the runtime. The controller waits most of the time; the engine has the blocking pool.
const THREADS: usize = 2;

/// The verb.
#[must_use]
pub fn command() -> clap::Command {
    clap::Command::new("controller").about("Run the controller (the default)").args(crate::settings::args())
}

/// Runs it. Exit code 2 = the settings are wrong, 1 = it could not start or broke, 0 = it was asked to stop.
#[must_use]
pub fn run(matches: &clap::ArgMatches) -> ExitCode {
    let settings = match Settings::validate(&Typed::from_matches(matches)) {
        Ok(settings) => Arc::new(settings),
        Err(errors) => {
            for error in errors {
                eprintln!("error: {error}");
            }
            eprintln!("\nSee mortise --help for all settings.");
            return ExitCode::from(super::USAGE);
        }
    };
    if let Err(error) = telemetry::start(&settings.log_level, &settings.log_output_paths) {
        eprintln!("error: {error}");
        return ExitCode::from(super::USAGE);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(serve(settings)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "controller failed");
            ExitCode::FAILURE
        }
    }
}

async fn serve(settings: Arc<Settings>) -> anyhow::Result<()> {
    let shutdown = CancellationToken::new();
    tokio::spawn(signals(shutdown.clone()));
    let limits =
        Options { qps: f64::from(settings.kube_client_qps), burst: settings.kube_client_burst, ..Options::default() };
    let metrics = Registry::new();
    let (client, _) = build(&limits).await?;
    // The lease is renewed by a client without limits: an election that waits behind other requests is lost under load.
    let (election, _) = build(&Options { qps: 0.0, ..Options::default() }).await?;
    let provider = provider(&client, &settings, &metrics).await?;
    // Compiles the built-in components: a tenth of a second of CPU.
    let policies = tokio::task::spawn_blocking(|| PolicyHost::new(HostSettings::default())).await?;
    let policies = Arc::new(policies.context("the policy host cannot start")?);
    Controller::new(client, provider, policies, settings)
        .with_metrics(metrics)
        .with_election_client(election)
        .run(shutdown)
        .await
}

#[cfg(feature = "aws")]
async fn aws(client: &Client, settings: &Settings, metrics: &Arc<Registry>) -> anyhow::Result<Arc<dyn CloudProvider>> {
    super::aws::provider(client, settings, metrics).await
}

#[cfg(not(feature = "aws"))]
async fn aws(_: &Client, _: &Settings, _: &Arc<Registry>) -> anyhow::Result<Arc<dyn CloudProvider>> {
    anyhow::bail!(
        "this build has no AWS provider: build with `--features aws`, or choose another with --cloud-provider (kwok is \
         in-process and for tests)"
    )
}

async fn provider(
    client: &Client,
    settings: &Settings,
    metrics: &Arc<Registry>,
) -> anyhow::Result<Arc<dyn CloudProvider>> {
    match settings.provider {
        Provider::Aws => aws(client, settings, metrics).await,
        Provider::Kwok => Ok(Arc::new(KwokCloud::new(client.clone(), cloud::Options::kwok(1)))),
    }
}

/// Cancels on SIGTERM and SIGINT; a second one ends the process at once.
async fn signals(shutdown: CancellationToken) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be handled, the process ends without releasing its lease");
        return;
    };
    let mut count = 0;
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        count += 1;
        if count > 1 {
            std::process::exit(1);
        }
        tracing::info!("stopping");
        shutdown.cancel();
    }
}
