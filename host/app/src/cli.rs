//! The command line: one module per verb. Without a verb the controller runs, as Karpenter's image expects.

use std::process::ExitCode;

#[cfg(feature = "aws")]
mod aws;
pub mod controller;
#[cfg(feature = "demo")]
pub mod demo;
pub mod simulate;
pub mod version;

/// Exit code of usage errors: wrong flags, settings or input files.
pub const USAGE: u8 = 2;

/// The whole command line.
#[must_use]
pub fn command() -> clap::Command {
    let command = clap::Command::new("mortise")
        .about("Provisions nodes for pods that do not fit, and takes empty ones away. Compatible with Karpenter.")
        .version(version::LONG)
        .args(crate::settings::args())
        .args_conflicts_with_subcommands(true)
        .subcommand(controller::command())
        .subcommand(simulate::command())
        .subcommand(version::command());
    #[cfg(feature = "demo")]
    let command = command.subcommand(demo::command());
    command
}

/// Parses the arguments of the process and runs the verb.
#[must_use]
pub fn run() -> ExitCode {
    let matches = match command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => {
            // Clap prints help to stdout and errors to stderr, and knows the exit code of each (0 and 2).
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    match matches.subcommand() {
        Some(("simulate", sub)) => simulate::run(sub),
        #[cfg(feature = "demo")]
        Some(("demo", sub)) => demo::run(sub),
        Some(("version", sub)) => version::run(sub),
        Some((_, sub)) => controller::run(sub),
        None => controller::run(&matches),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn command_line_is_consistent() {
        super::command().debug_assert();
    }
}
