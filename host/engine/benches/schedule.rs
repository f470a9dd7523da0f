//! How long one provisioning round takes. `cargo bench -p mortise-engine` measures with criterion;
//! `cargo bench -p mortise-engine -- --plain` prints milliseconds of every input and ends
//! (a word after it: only of inputs whose title has it).

#![allow(missing_docs, reason = "a benchmark has no public items")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark may stop")]

mod diverse;
mod workload;

use std::hint::black_box;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use mortise_engine::policy::NoPolicy;
use mortise_engine::schedule::schedule;
use mortise_engine::snapshot::{Options, Snapshot};

/// Median milliseconds of some rounds, first round (catalogue not prepared yet) apart.
fn plain() {
    let cases: Vec<(String, Snapshot)> = [1_000, 10_000, 50_000]
        .map(|pods| (format!("{pods} pods in 20 shapes"), workload::snapshot(pods)))
        .into_iter()
        .chain([
            ("10000 pods, a label apart".to_owned(), workload::labelled_apart(workload::snapshot(10_000))),
            ("10000 pods in 10000 sizes".to_owned(), workload::sized_apart(workload::snapshot(10_000), 10_000)),
            ("1000 pods beside 2000 nodes".to_owned(), workload::with_nodes(workload::snapshot(1_000), 2_000)),
            ("10000 pods beside 5000 nodes".to_owned(), workload::with_nodes(workload::snapshot(10_000), 5_000)),
        ])
        .chain(
            [500, 1_000, 2_000, 5_000, 10_000, 20_000].map(|pods| (format!("{pods} diverse"), diverse::diverse(pods))),
        )
        .chain([500, 5_000, 20_000].map(|pods| (format!("{pods} spread-heavy"), diverse::spread_heavy(pods))))
        .chain([5_000, 20_000].map(|pods| (format!("{pods} diverse, 5000 sizes"), diverse::distinct(pods))))
        .chain([("500 diverse beside 2000 nodes".to_owned(), diverse::beside(diverse::diverse(500), 2_000))])
        .collect();
    // Cargo adds `--bench` at the end.
    let only = std::env::args().skip_while(|arg| arg != "--plain").skip(1).find(|arg| !arg.starts_with("--"));
    let only = only.unwrap_or_default();
    for (title, snapshot) in cases.into_iter().filter(|(title, _)| title.contains(only.as_str())) {
        let started = Instant::now();
        let first = schedule(&snapshot, &Options::default(), &NoPolicy);
        let cold = started.elapsed();
        let mut times: Vec<f64> = (0..9)
            .map(|_| {
                let started = Instant::now();
                black_box(schedule(black_box(&snapshot), &Options::default(), &NoPolicy));
                started.elapsed().as_secs_f64() * 1000.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let placed: usize = first.claims.iter().map(|claim| claim.pods.len()).sum();
        let on_nodes: usize = first.nominations.iter().map(|(_, pods)| pods.len()).sum();
        println!(
            "{title:<30} {:8.2} ms, {:6.2} us per pod (first {:7.2} ms): {placed} on {} NodeClaims, {on_nodes} on nodes, {} pending",
            times[times.len() / 2],
            times[times.len() / 2] * 1000.0 / snapshot.pending.len() as f64,
            cold.as_secs_f64() * 1000.0,
            first.claims.len(),
            first.unplaced.len(),
        );
    }
}

fn main() {
    if std::env::args().any(|arg| arg == "--plain") {
        return plain();
    }
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let mut group = criterion.benchmark_group("schedule");
    for pods in [1_000, 10_000, 50_000] {
        let snapshot = workload::snapshot(pods);
        group.throughput(Throughput::Elements(pods as u64));
        group.bench_function(pods.to_string(), |bench| {
            bench.iter(|| schedule(black_box(&snapshot), &Options::default(), &NoPolicy));
        });
    }
    group.finish();
    criterion.final_summary();
}
