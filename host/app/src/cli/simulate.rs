//! `mortise simulate`: what would be launched for these pods, before anything is. Reads manifests or, without changing
//! anything, a live cluster; runs the very engine and policies of the controller.

mod cluster;
mod manifest;
mod report;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use k8s_openapi::jiff::Timestamp;
use mortise_cloud::CloudProvider;
use mortise_engine::schedule::schedule;
use mortise_engine::snapshot::Options;
use mortise_kube::state::ClusterState;
use mortise_kube::watch::{Options as WatchOptions, Watches};
use mortise_wasm::{ConfigMapData, HostSettings, PolicyHost};

use cluster::Loaded;
use report::Report;

/// Exit code when some pod has no place.
const UNPLACED: u8 = 1;
/// Seed of the modelled spot prices: the same plan for the same input, every time.
const SPOT_SEED: u64 = 1;
/// How long a live cluster may take to be read.
const LIVE_TIMEOUT: Duration = Duration::from_secs(60);

/// The verb.
#[must_use]
pub fn command() -> Command {
    Command::new("simulate")
        .about("Print the plan for pending pods without carrying it out")
        .after_help(
            "Exit codes: 0 every pod has a place, 1 some have none, 2 the input is wrong.\n\
             Types and list prices are those built in (us-east-1); spot prices are modelled.",
        )
        .arg(Arg::new("files").value_name("PATH").num_args(0..).help("Files, directories, or - for stdin"))
        .arg(
            Arg::new("filename")
                .short('f')
                .long("filename")
                .value_name("PATH")
                .action(ArgAction::Append)
                .help("The same, as kubectl takes them"),
        )
        .arg(
            Arg::new("live")
                .long("live")
                .action(ArgAction::SetTrue)
                .help("Read the cluster of the kubeconfig, read-only"),
        )
        .arg(Arg::new("context").long("context").value_name("NAME").requires("live").help("Context of the kubeconfig"))
        .arg(
            Arg::new("policies")
                .long("policies")
                .value_name("PATH")
                .help("A policies ConfigMap to decide with instead of the built-in policies"),
        )
        .arg(Arg::new("region").long("region").default_value("us-east-1").help("Region of zones and prices"))
        .arg(
            Arg::new("zones")
                .long("zones")
                .value_name("LETTERS")
                .default_value("abcd")
                .help("Zones of the region, by letter"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_parser(["table", "json", "yaml"])
                .default_value("table")
                .help("Format of the plan"),
        )
        .arg(
            Arg::new("seed").long("seed").value_parser(value_parser!(u64)).default_value("0").help("Seed for policies"),
        )
}

/// Runs the verb.
#[must_use]
pub fn run(matches: &ArgMatches) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("mortise simulate: {error}");
            return ExitCode::from(super::USAGE);
        }
    };
    match runtime.block_on(simulate(matches)) {
        Ok(report) => {
            let text = match matches.get_one::<String>("output").map(String::as_str) {
                Some("json") => serde_json::to_string_pretty(&report).map_err(anyhow::Error::from).map(|t| t + "\n"),
                Some("yaml") => serde_norway::to_string(&report).map_err(anyhow::Error::from),
                _ => Ok(report.table()),
            };
            match text {
                Ok(text) => print!("{text}"),
                Err(error) => {
                    eprintln!("mortise simulate: {error}");
                    return ExitCode::from(super::USAGE);
                }
            }
            if report.fits { ExitCode::SUCCESS } else { ExitCode::from(UNPLACED) }
        }
        Err(error) => {
            eprintln!("mortise simulate: {error:#}");
            ExitCode::from(super::USAGE)
        }
    }
}

async fn simulate(matches: &ArgMatches) -> Result<Report> {
    let many = |name| matches.get_many::<String>(name).into_iter().flatten().cloned();
    let paths: Vec<String> = many("files").chain(many("filename")).collect();
    let region = matches.get_one::<String>("region").map_or("us-east-1", String::as_str);
    let admission = cluster::Admission::new()?;
    let provider = market(&admission, region, matches.get_one::<String>("zones").map_or("abcd", String::as_str))?;
    let live = matches.get_flag("live");
    let Loaded { mut state, catalogs, notes } = match (live, paths.is_empty()) {
        (true, true) => read_live(matches.get_one::<String>("context"), &*provider).await?,
        (true, false) => bail!(
            "give either manifests or --live; to try manifests against a cluster, dump it first: kubectl get nodepools,ec2nodeclasses,nodeclaims,nodes,pods -A -o yaml"
        ),
        (false, true) => bail!("no input: name files, directories or - for stdin, or use --live"),
        (false, false) => {
            let documents = manifest::read(&paths).map_err(|errors| all(&errors))?;
            cluster::load(&documents, &admission, &*provider).await.map_err(|errors| all(&errors))?
        }
    };
    let policies = PolicyHost::new(HostSettings::default()).context("the built-in policies cannot be loaded")?;
    if let Some(path) = matches.get_one::<String>("policies") {
        let data = policies_of(path)?;
        policies.admit(&data).map_err(|rejections| anyhow!("{path}: {}", all(&rejections)))?;
    }
    let now = Timestamp::now().as_millisecond();
    let snapshot = state.snapshot(now, &catalogs);
    let seed = matches.get_one::<u64>("seed").copied().unwrap_or_default();
    let options = Options { explain: true, seed, ..Options::default() };
    let active = policies.current();
    let plan = tokio::task::spawn_blocking(move || (schedule(&snapshot, &options, &*active), snapshot.pending.len()));
    let (plan, pods) = plan.await.context("the round did not end")?;
    Ok(Report::new(&plan, pods, notes))
}

/// The built-in types at list and modelled spot prices.
fn market(admission: &cluster::Admission, region: &str, zones: &str) -> Result<Arc<dyn CloudProvider>> {
    if zones.is_empty() || !zones.chars().all(|c| c.is_ascii_lowercase()) {
        bail!("--zones: expected letters such as abc, found {zones:?}");
    }
    let shape = mortise_sim::cloud::Options::sim(SPOT_SEED, mortise_sim::clock::Clock::new(1.0));
    let options = mortise_sim::cloud::Options { region: region.into(), zones: zones.chars().collect(), ..shape };
    Ok(Arc::new(mortise_sim::cloud::SimCloud::new(admission.client(), options)))
}

async fn read_live(context: Option<&String>, provider: &dyn CloudProvider) -> Result<Loaded> {
    let options = kube::config::KubeConfigOptions { context: context.cloned(), ..Default::default() };
    let config = kube::Config::from_kubeconfig(&options).await.context("the kubeconfig cannot be used")?;
    let client = kube::Client::try_from(config)?;
    let (_watches, mut events) = Watches::start(&client, &WatchOptions::default());
    let mut state = ClusterState::new();
    let reading = async {
        while !state.synced() {
            let Some(event) = events.recv().await else { bail!("the watches ended") };
            state.apply(event, Timestamp::now().as_millisecond());
        }
        Ok(())
    };
    if let Ok(done) = tokio::time::timeout(LIVE_TIMEOUT, reading).await {
        done?;
    } else {
        let missing: Vec<_> = state.unsynced().into_iter().map(|kind| kind.name()).collect();
        bail!(
            "the cluster could not be read within {LIVE_TIMEOUT:?}: no list of {} (are the CRDs installed, and may you list them?)",
            missing.join(", ")
        );
    }
    let mut notes = Vec::new();
    let catalogs = cluster::catalogs_of(&mut state, provider, &mut notes).await;
    Ok(Loaded { state, catalogs, notes })
}

/// `data` and `binaryData` of a ConfigMap manifest.
fn policies_of(path: &str) -> Result<ConfigMapData> {
    let documents = manifest::read(&[path.to_owned()]).map_err(|errors| all(&errors))?;
    let [document] = documents.as_slice() else {
        bail!("{path}: one ConfigMap was expected, found {} objects", documents.len())
    };
    if document.kind() != "ConfigMap" {
        bail!("{path}: kind: a ConfigMap was expected, found {}", document.kind());
    }
    let map: k8s_openapi::api::core::v1::ConfigMap =
        serde_json::from_value(document.value.clone()).with_context(|| path.to_owned())?;
    let binary: BTreeMap<String, Vec<u8>> =
        map.binary_data.unwrap_or_default().into_iter().map(|(k, v)| (k, v.0)).collect();
    Ok(ConfigMapData { data: map.data.unwrap_or_default(), binary_data: binary })
}

fn all<E: std::fmt::Display>(errors: &[E]) -> anyhow::Error {
    anyhow!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}
