//! Runs seeds of the parity test and prints what came of them.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use mortise_parity::oracle::{Oracle, program};
use mortise_parity::run::Run;
use mortise_parity::{generate, ours};
use mortise_problem::Problem;

/// The engine beside the real Karpenter, on generated problems.
#[derive(Debug, Parser)]
struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = 500)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Judge our answers alone, without Karpenter.
    #[arg(long)]
    alone: bool,
    /// Write failing problems down as they are.
    #[arg(long)]
    no_shrink: bool,
    /// Where failing problems are written.
    #[arg(long, default_value = "target/parity/failures")]
    failures: PathBuf,
    /// Print the problem of the first seed and do nothing else.
    #[arg(long)]
    print: bool,
    /// Answer the problem in this file (as it is written for a failure, or alone) and do nothing else.
    #[arg(long)]
    answer: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if args.print {
        println!("{}", serde_json::to_string_pretty(&generate::problem(args.from)?)?);
        return Ok(());
    }
    if let Some(file) = &args.answer {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let value: serde_json::Value = serde_json::from_str(&text)?;
        let problem = Problem::read(&value.get("problem").unwrap_or(&value).to_string())?;
        println!("{}", serde_json::to_string_pretty(&ours::answer(&problem)?)?);
        return Ok(());
    }
    let oracle = if args.alone { None } else { Some(Oracle::start(&program("oracle")?)?) };
    let mut run = Run { oracle, failures: args.failures, shrink: !args.no_shrink };
    let report = run.seeds(args.from..args.from + args.seeds)?;
    print!("{report}");
    if !report.holds() {
        bail!(
            "{} seeds failed, {} had no answer, {} were excused",
            report.failed.len(),
            report.unanswered.len(),
            report.excused
        );
    }
    Ok(())
}
