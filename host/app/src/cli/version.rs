//! `mortise version`.

use std::process::ExitCode;

/// Version with its commit.
pub const LONG: &str = concat!(env!("CARGO_PKG_VERSION"));

/// The verb.
#[must_use]
pub fn command() -> clap::Command {
    clap::Command::new("version")
        .about("Print version, commit and what was built in")
        .arg(clap::Arg::new("output").long("output").short('o').value_parser(["text", "json"]).default_value("text"))
}

/// Prints it.
#[must_use]
pub fn run(matches: &clap::ArgMatches) -> ExitCode {
    let commit = crate::telemetry::COMMIT;
    let aws = cfg!(feature = "aws");
    if matches.get_one::<String>("output").is_some_and(|o| o == "json") {
        println!("{}", serde_json::json!({ "version": LONG, "commit": commit, "aws": aws }));
    } else {
        println!("mortise {LONG} (commit {commit}, provider aws {})", if aws { "built in" } else { "not built in" });
    }
    ExitCode::SUCCESS
}
