//! What plans cost beside a linear-programming bound and the real Karpenter's: `make bench-plan`.

mod bound;
mod check;
mod columns;
mod data;

use crate::columns::Columns;
use crate::data::{NodeType, Workload};

/// The engine's own step budget.
const STEPS: u64 = 3_000_000;
/// Workloads of 2,000 small pods.
const GENERATED: u32 = 10;

/// Sums of a table.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    karpenter: f64,
    cost: f64,
    bound: f64,
    worst: f64,
}

fn main() -> anyhow::Result<()> {
    let steps = std::env::args().nth(1).map_or(Ok(STEPS), |steps| steps.parse())?;
    let types = data::types()?;
    table("recorded workloads", &data::workloads()?, &types, steps)?;
    table("generated: 2,000 small pods", &data::generated(GENERATED), &types, steps)
}

fn table(title: &str, workloads: &[Workload], types: &[NodeType], steps: u64) -> anyhow::Result<()> {
    println!("{title} (USD per hour; cost planner with {steps} steps)");
    println!(
        "{:<20}{:>6}{:>11}{:>7}{:>9}{:>7}{:>10}{:>9}{:>9}{:>10}{:>9}",
        "workload", "pods", "Karpenter", "nodes", "cost", "nodes", "bound", "K/bound", "c/bound", "unplaced", "CPU ms"
    );
    let mut sums = Sums::default();
    for workload in workloads {
        let columns = Columns::new(workload, types);
        let problem = columns.problem(steps);
        let started = cpu_time();
        let proposal = mortise_plugin_cost::propose(&problem);
        let took = cpu_time() - started;
        let plan = check::check(&problem, &proposal)?;
        let bound = bound::bound(&problem)? / 1e6;
        let cost = plan.cost as f64 / 1e6;
        println!(
            "{:<20}{:>6}{:>11.4}{:>7}{:>9.4}{:>7}{:>10.4}{:>9.3}{:>9.3}{:>10}{:>9.1}",
            workload.name,
            workload.pods(),
            workload.karpenter_usd,
            workload.karpenter_nodes,
            cost,
            plan.nodes,
            bound,
            workload.karpenter_usd / bound,
            cost / bound,
            workload.pods() - plan.pods,
            took * 1e3,
        );
        sums.karpenter += workload.karpenter_usd;
        sums.cost += cost;
        sums.bound += bound;
        sums.worst = sums.worst.max(cost / bound);
    }
    println!(
        "sum over sum: Karpenter {:.4}, cost planner {:.4}; worst case of the planner {:.4}\n",
        sums.karpenter / sums.bound,
        sums.cost / sums.bound,
        sums.worst
    );
    Ok(())
}

/// CPU seconds of this thread: other work on the machine does not count.
fn cpu_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
