//! `mortise demo`: the whole loop with no cloud and no cluster. An API server, a scheduler, kubelets and an EC2 stand-in
//! run in this process; the controller is the real one with its real settings and policies. Only the clock runs faster.

mod manifests;
mod observe;
mod screen;
mod story;
mod summary;
mod text;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{Arg, ArgAction, value_parser};

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// A screen that updates in place.
    Screen,
    /// One line per happening.
    Lines,
    /// One JSON object per line.
    Json,
}

/// What the user asked for.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) pods: u32,
    pub(super) seed: u64,
    pub(super) speed: f64,
    pub(super) port: u16,
    pub(super) keep: bool,
    pub(super) output: Output,
}

/// The verb.
#[must_use]
pub fn command() -> clap::Command {
    clap::Command::new("demo")
        .about("Show the whole loop in an embedded cluster: pods wait, nodes come, pods go, nodes go")
        .long_about(
            "Runs the controller against an embedded cluster: a Kubernetes API, scheduler, kubelets and EC2 in this \
             process. A burst of pods is deployed, nodes are launched for them, then the burst is scaled to zero and \
             the empty nodes go away. Exit code 0 means that all of it really happened.",
        )
        .arg(
            Arg::new("pods")
                .long("pods")
                .value_parser(value_parser!(u32).range(1..=20_000))
                .default_value("500")
                .help("Pods in the burst, over five Deployments"),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_parser(value_parser!(u64))
                .default_value("1")
                .help("Seed of names, spot prices and boot times"),
        )
        .arg(
            Arg::new("speed")
                .long("speed")
                .value_parser(speed)
                .default_value("15")
                .help("How many times faster than real time the cluster runs: 0.1 to 100"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .value_parser(value_parser!(u16))
                .default_value("0")
                .help("Loopback port of the API server; 0 = any free one"),
        )
        .arg(Arg::new("keep").long("keep").action(ArgAction::SetTrue).help(
            "Keep the cluster after the burst runs, for kubectl, until interrupted; its clock then runs in real time",
        ))
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_parser(["auto", "text", "json"])
                .default_value("auto")
                .help("auto = a live screen on a terminal, else lines; json = one object per line"),
        )
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.1..=100.0).contains(&value) => Ok(value),
        _ => Err("want a number from 0.1 to 100".to_owned()),
    }
}

/// Runs it. Exit code 0 = everything happened as it should, 1 = it did not.
#[must_use]
pub fn run(matches: &clap::ArgMatches) -> ExitCode {
    let terminal = std::io::stdout().is_terminal();
    let output = match matches.get_one::<String>("output").map(String::as_str) {
        Some("json") => Output::Json,
        Some("text") => Output::Lines,
        _ if terminal => Output::Screen,
        _ => Output::Lines,
    };
    // Clap has filled in every default.
    let request = Request {
        pods: matches.get_one("pods").copied().unwrap_or(500),
        seed: matches.get_one("seed").copied().unwrap_or(1),
        speed: matches.get_one("speed").copied().unwrap_or(15.0),
        port: matches.get_one("port").copied().unwrap_or_default(),
        keep: matches.get_flag("keep"),
        output,
    };
    // The display tells what happens; the log would tear the screen. What fails is still said on stderr.
    if let Err(error) = crate::telemetry::start("error", &["stderr".to_owned()]) {
        eprintln!("error: {error}");
        return ExitCode::from(super::USAGE);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(story::tell(&request)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
