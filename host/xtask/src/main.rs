//! Development tasks: `cargo xtask <task>`. Each task is a module with its arguments and a `run`.

mod chart;
mod crdgen;
mod files;
mod layering;
mod plugins;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Development tasks of Mortise.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the CRD YAML of charts/mortise-crd from the types.
    Crdgen(crdgen::Args),
    /// Compare the chart's values, schema, templates and environment variables.
    Chart(chart::Args),
    /// Check the fences between the crates.
    Layering,
    /// Build plugins to components and ConfigMaps.
    Plugins(plugins::Args),
}

fn main() -> Result<()> {
    match Cli::parse().task {
        Task::Crdgen(args) => crdgen::run(&args),
        Task::Chart(args) => chart::run(&args),
        Task::Layering => layering::check(),
        Task::Plugins(args) => plugins::run(&args),
    }
}
