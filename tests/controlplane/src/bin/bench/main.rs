//! What the controller costs on a real control plane, as ratios to the original: CPU, memory and time for a Deployment up
//! and to zero, memory at rest and with a large cluster watched.
//!
//! `cargo run --release -p mortise-controlplane-tests --bin bench [-- --pods 500,2000] [--skip moto] [--karpenter]`
//! With `--karpenter` the original runs in the same way on the same machine; without, its figures are those of the table
//! below, measured once on a 2-core machine.

mod large;
mod scale;
mod subject;

use anyhow::{Context, Result};
use scale::Measured;
use subject::Subject;

/// Karpenter 1.15.0 with its in-process KWOK provider, 2 cores: pods, CPU-seconds up, peak MiB, seconds until all run,
/// seconds back to zero.
const KARPENTER: [(u32, f64, f64, f64, f64); 2] = [(500, 2.7, 133.0, 29.5, 56.0), (2000, 20.6, 210.0, 108.0, 146.0)];

struct Arguments {
    pods: Vec<u32>,
    skip: Vec<String>,
    karpenter: bool,
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments { pods: vec![500, 2000], skip: Vec::new(), karpenter: false };
    let mut rest = std::env::args().skip(1);
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--karpenter" => parsed.karpenter = true,
            "--skip" => parsed.skip.push(rest.next().context("--skip needs kwok, moto, large or latency")?),
            "--pods" => {
                let list = rest.next().context("--pods needs numbers, such as 500,2000")?;
                parsed.pods = list
                    .split(',')
                    .map(|it| it.parse().with_context(|| format!("--pods {it:?}")))
                    .collect::<Result<_>>()?;
            }
            other => anyhow::bail!("unknown argument {other:?}: want --pods N,N, --skip kwok|moto|large, --karpenter"),
        }
    }
    Ok(parsed)
}

fn row(name: &str, pods: u32, it: &Measured) {
    println!(
        "{name:<28} {pods:>6} {:>9.2} {:>9.0} {:>9.1} {:>9.2} {:>9.1} {:>6}",
        it.cpu_up, it.peak_mib, it.seconds_up, it.cpu_down, it.seconds_down, it.nodes
    );
}

fn ratio(ours: &Measured, theirs: &Measured) {
    println!(
        "{:<28} {:>6} {:>9.3} {:>9.3} {:>9.3} {:>9} {:>9.3}",
        "  ratio to Karpenter",
        "",
        ours.cpu_up / theirs.cpu_up,
        ours.peak_mib / theirs.peak_mib,
        ours.seconds_up / theirs.seconds_up,
        if theirs.cpu_down > 0.0 { format!("{:.3}", ours.cpu_down / theirs.cpu_down) } else { "–".to_owned() },
        ours.seconds_down / theirs.seconds_down
    );
}

fn known(pods: u32) -> Option<Measured> {
    let (_, cpu_up, peak_mib, seconds_up, seconds_down) = KARPENTER.into_iter().find(|it| it.0 == pods)?;
    Some(Measured { cpu_up, peak_mib, seconds_up, cpu_down: 0.0, seconds_down, nodes: 0 })
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = arguments()?;
    let wants = |name: &str| !arguments.skip.iter().any(|skipped| skipped == name);
    println!(
        "\nA Deployment of pods of 1 CPU and 1 GiB on the real control plane; the controller's process alone, start-up excluded."
    );
    println!(
        "{:<28} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>6}",
        "", "pods", "CPU-s up", "peak MiB", "s up", "CPU-s dn", "s down", "nodes"
    );
    for pods in &arguments.pods {
        let theirs = if arguments.karpenter {
            let measured = scale::run(Subject::Karpenter, *pods).await?;
            row("Karpenter 1.15, this run", *pods, &measured);
            Some(measured)
        } else {
            known(*pods).inspect(|it| row("Karpenter 1.15, on record", *pods, it))
        };
        for (name, subject) in [("kwok", Subject::OursInProcess), ("moto", Subject::OursMoto)] {
            if !wants(name) {
                continue;
            }
            let ours = scale::run(subject, *pods).await?;
            row(if name == "kwok" { "Mortise, in-process EC2" } else { "Mortise, moto" }, *pods, &ours);
            if let Some(theirs) = &theirs {
                ratio(&ours, theirs);
            }
        }
    }
    if wants("large") {
        large::run(2_000, 20_000).await?;
    }
    Ok(())
}
