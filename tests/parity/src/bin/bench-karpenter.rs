//! The engine and both releases of the real Karpenter on the same problems, measured in one invocation, as a table.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use mortise_parity::oracle::program;
use mortise_parity::ours::Input;
use mortise_problem::Problem;
use serde_json::Value;

/// Pods a second of the engine and of the real Karpenter.
#[derive(Debug, Parser)]
struct Args {
    /// Numbers of pods.
    #[arg(long, value_delimiter = ',', default_values_t = [500, 1000, 2000, 5000, 10_000, 20_000])]
    pods: Vec<u32>,
    /// Mixes of pods, as the exporter names them.
    #[arg(long, value_delimiter = ',', default_values_t = ["diverse".to_owned()])]
    mix: Vec<String>,
    /// Existing nodes, and the pods that run on them.
    #[arg(long, default_value_t = 0)]
    nodes: u32,
    /// Running pods.
    #[arg(long, default_value_t = 0)]
    running: u32,
    /// Runs of each; the best counts.
    #[arg(long, default_value_t = 3)]
    iterations: u32,
    /// Ours alone.
    #[arg(long)]
    alone: bool,
    /// Where problems are written.
    #[arg(long, default_value = "target/parity/bench")]
    folder: PathBuf,
    /// Measure ours on this problem and print one line: how this program calls itself, for a peak of memory of its own.
    #[arg(long, hide = true)]
    measure: Option<PathBuf>,
}

/// One program on one problem.
struct Measured {
    seconds: f64,
    peak_mib: f64,
    unplaced: u64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(file) = &args.measure {
        return measure(file, args.iterations);
    }
    std::fs::create_dir_all(&args.folder)?;
    let (oracle, before) = (program("oracle")?, program("oracle-v1.14")?);
    println!("mix          pods   ours/s   v1.15/s   v1.14/s   ratio   ours ms   per pod   MiB: ours  v1.15  v1.14");
    for mix in &args.mix {
        let mut first = None;
        for pods in &args.pods {
            let file = args.folder.join(format!("{mix}-{pods}-{}.json", args.nodes));
            export(&oracle, mix, *pods, &args, &file)?;
            let ours =
                run(&std::env::current_exe()?, &["--iterations", &args.iterations.to_string(), "--measure"], &file)?;
            let theirs = if args.alone { None } else { Some((bench(&oracle, &file)?, bench(&before, &file)?)) };
            let count = f64::from(*pods);
            let per_pod = ours.seconds / count;
            // Growth is counted from a thousand pods.
            let growth = per_pod / *first.get_or_insert(per_pod);
            if *pods <= 1000 {
                first = Some(per_pod);
            }
            let (a, b) = theirs.as_ref().map_or((f64::NAN, f64::NAN), |(a, b)| (count / a.seconds, count / b.seconds));
            let (ma, mb) = theirs.as_ref().map_or((f64::NAN, f64::NAN), |(a, b)| (a.peak_mib, b.peak_mib));
            println!(
                "{mix:<11} {pods:>5} {:>8.0} {a:>9.0} {b:>9.0} {:>7.0} {:>9.2} {growth:>8.2}x {:>11.0} {ma:>6.0} {mb:>6.0}",
                count / ours.seconds,
                count / ours.seconds / a.max(b),
                ours.seconds * 1e3,
                ours.peak_mib,
            );
            let unplaced = theirs.map_or(0, |(a, b)| a.unplaced.max(b.unplaced)).max(ours.unplaced);
            if unplaced > 0 {
                bail!("{mix} {pods}: {unplaced} pods were not placed");
            }
        }
    }
    Ok(())
}

fn export(oracle: &Path, mix: &str, pods: u32, args: &Args, file: &Path) -> Result<()> {
    let output = std::fs::File::create(file).with_context(|| format!("writing {}", file.display()))?;
    let numbers = [pods, args.nodes, args.running].map(|n| n.to_string());
    let mut command = Command::new(oracle);
    command.args(["export", "--mix", mix, "--seed", "42", "--pods", &numbers[0]]);
    if args.nodes > 0 {
        command.args(["--nodes", &numbers[1], "--running", &numbers[2]]);
    }
    if !command.stdout(Stdio::from(output)).status()?.success() {
        bail!("exporting {mix} {pods} failed");
    }
    Ok(())
}

fn bench(oracle: &Path, file: &Path) -> Result<Measured> {
    run(oracle, &["bench", "--iterations", "1", "--file"], file)
}

fn run(program: &Path, args: &[&str], file: &Path) -> Result<Measured> {
    let output = Command::new(program).args(args).arg(file).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("{} failed on {}", program.display(), file.display());
    }
    let line: Value = serde_json::from_slice(&output.stdout).context("a measurement is not JSON")?;
    let number = |key: &str| line[key].as_f64().with_context(|| format!("a measurement without {key}"));
    Ok(Measured {
        seconds: number("bestMillis")? / 1e3,
        peak_mib: number("peakRssMiB")?,
        unplaced: line["unplaced"].as_u64().context("a measurement without unplaced")?,
    })
}

fn measure(file: &Path, iterations: u32) -> Result<()> {
    let text = std::fs::read_to_string(file)?;
    let input = Input::new(&Problem::read(&text)?)?;
    drop(text);
    let mut best = f64::INFINITY;
    let mut unplaced = 0;
    for _ in 0..iterations.max(1) {
        let start = Instant::now();
        let decided = input.decide();
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
        unplaced = decided.unplaced.len();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    let line =
        serde_json::json!({"bestMillis": best, "peakRssMiB": peak.unwrap_or(f64::NAN) / 1024.0, "unplaced": unplaced});
    println!("{line}");
    Ok(())
}
