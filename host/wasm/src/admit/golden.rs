//! The trial round: every hook that a plugin is asked for, once, on a small made-up round under its real limits.

use mortise_engine::policy::{
    Choices, Claims, Fleet, Groups, InstanceTypes, NodePools, Nodes, Offerings, Outcomes, Pods, Round, RoundCatalog,
};

use crate::columns::CatalogColumns;
use crate::fault::Fault;
use crate::limits::Hook;
use crate::plugin::Plugin;

/// Runs the trial round.
pub(super) fn run(plugin: &Plugin, hooks: &[Hook]) -> Result<(), (&'static str, Fault)> {
    let (catalog, fleet) = (catalog(), Fleet { nodepool: vec![0], offering: vec![2], count: vec![3] });
    let columns = CatalogColumns::new(&catalog, &fleet);
    let round = Round { id: 1, now_unix_ms: 1_767_225_600_000, seed: 7, steps: 1_000, explain: true };
    let step = |name: &'static str| move |fault| (name, fault);
    let mut instance = plugin.instantiate().map_err(step("configure"))?;
    instance.begin_round(&columns, &[]).map_err(step("begin-round"))?;
    for hook in hooks {
        match hook {
            Hook::Lifecycle => {}
            Hook::Filter => {
                instance.admit_pods(&round, &pods(), &candidates()).map_err(step("admit-pods"))?;
                instance.admit_claims(&round, &claims(0), &candidates()).map_err(step("admit-claims"))?;
            }
            Hook::Score => {
                let base = base(&catalog);
                instance.evaluate(&round, &claims(8), &candidates(), &base).map_err(step("evaluate"))?;
                instance.evaluate(&round, &claims(0), &candidates(), &base).map_err(step("evaluate"))?;
            }
            Hook::Consolidate => {
                let (nodes, none) = (nodes(), Outcomes::default());
                let tried = Groups::default();
                let sets = instance.propose(&round, &nodes, &tried, &none, 8).map_err(step("propose"))?;
                let rows = sets.end.len();
                let outcomes = Outcomes {
                    feasible: vec![1; rows],
                    saving_micro_usd: vec![1_000; rows],
                    new_nodes: vec![0; rows],
                    evictions: vec![1; rows],
                    replacement: Groups { end: vec![0; rows], member: Vec::new() },
                    reason: vec![0; rows],
                };
                instance.propose(&round, &nodes, &sets, &outcomes, 8).map_err(step("propose"))?;
                instance.decide(&round, &nodes, &sets, &outcomes).map_err(step("decide"))?;
            }
        }
    }
    instance.end_round(columns.rows()).map(|_| ()).map_err(step("end-round"))
}

/// Four types (one with a GPU, one metal) in two zones, spot and on-demand, one reservation, one unknown price.
fn catalog() -> RoundCatalog {
    let symbols = [
        "default",
        "us-east-1a",
        "us-east-1b",
        "amd64",
        "arm64",
        "m7i",
        "m7i.large",
        "m7g",
        "m7g.large",
        "g5",
        "g5.xlarge",
        "m7i.metal-24xl",
        "node.kubernetes.io/instance-type",
    ];
    let types = InstanceTypes {
        name: vec![10, 8, 6, 11],
        family: vec![9, 7, 5, 5],
        arch: vec![3, 4, 3, 3],
        generation: vec![5, 7, 7, 7],
        cpu_milli: vec![4_000, 2_000, 2_000, 96_000],
        memory_mib: vec![16_384, 8_192, 8_192, 393_216],
        ephemeral_mib: vec![20_480; 4],
        pods: vec![58, 29, 29, 737],
        gpu: vec![1, 0, 0, 0],
        labels: Groups { end: vec![2, 4, 6, 8], member: vec![12, 10, 12, 8, 12, 6, 12, 11] },
        extra: Vec::new(),
    };
    let mut offerings = Offerings::default();
    for (type_id, price) in [(0, 1_006_000), (1, 81_600), (2, 100_800), (3, 4_838_400)] {
        for (zone, capacity, price) in [(1, 2, price), (2, 2, price), (1, 1, price / 3), (2, 1, u64::MAX)] {
            offerings.instance_type.push(type_id);
            offerings.zone.push(zone);
            offerings.capacity.push(capacity);
            offerings.price_micro_usd.push(price);
            offerings.reserved_left.push(0);
        }
    }
    offerings.instance_type.push(2);
    offerings.zone.push(1);
    offerings.capacity.push(0);
    offerings.price_micro_usd.push(100_800);
    offerings.reserved_left.push(4);
    let nodepools = NodePools {
        name: vec![0],
        weight: vec![10],
        consolidation: vec![1],
        consolidate_after_s: vec![30],
        cpu_left_milli: vec![u64::MAX],
        memory_left_mib: vec![u64::MAX],
        nodes_left: vec![u32::MAX],
        budget_empty: vec![1],
        budget_underutilized: vec![1],
        labels: Groups { end: vec![0], member: Vec::new() },
        extra: Vec::new(),
    };
    let symbols = symbols.iter().map(ToString::to_string).collect();
    RoundCatalog { generation: 0, symbols, types, offerings, nodepools }
}

/// All offerings; without the reservation; none.
fn candidates() -> Choices {
    let member: Vec<u32> = (0..17).chain(0..16).collect();
    Choices { sets: Groups { end: vec![17, 33, 33], member }, set_of: vec![0, 1, 2] }
}

fn base(catalog: &RoundCatalog) -> Vec<i64> {
    let prices = catalog.offerings.price_micro_usd.iter().chain(catalog.offerings.price_micro_usd.iter().take(16));
    prices.map(|price| i64::try_from(*price).unwrap_or(mortise_engine::policy::COST_UNKNOWN)).collect()
}

fn claims(state: u32) -> Claims {
    Claims {
        count: vec![2, 1, 1],
        nodepool: vec![0; 3],
        cpu_milli: vec![1_500, 900, 0],
        memory_mib: vec![3_000, 900, 0],
        gpu: vec![0; 3],
        pods: vec![3, 1, 0],
        state: vec![state, state | 1, state],
        extra: Vec::new(),
    }
}

fn pods() -> Pods {
    let empty = || Groups { end: vec![0; 3], member: Vec::new() };
    Pods {
        count: vec![5, 1, 1],
        namespace: vec![0; 3],
        priority: vec![0, 1_000, -1],
        cpu_milli: vec![500, 900, 0],
        memory_mib: vec![1_000, 900, 0],
        gpu: vec![0; 3],
        labels: empty(),
        annotations: empty(),
        extra: Vec::new(),
    }
}

fn nodes() -> Nodes {
    Nodes {
        id: vec![11, 12, 13],
        nodepool: vec![0; 3],
        offering: vec![8, 10, u32::MAX],
        price_micro_usd: vec![100_800, 33_600, u64::MAX],
        age_s: vec![3_600, 60, 90_000],
        idle_s: vec![600, 60, 10],
        used_cpu_milli: vec![0, 500, 1_900],
        used_memory_mib: vec![0, 512, 4_096],
        pods: vec![0, 1, 9],
        disruption_cost_milli: vec![1_000, 2_000, 10_000],
        last_moved_s: vec![u64::MAX, 30, 4_000],
        state: vec![0b1_0101, 0b1_1100, 0b1_0000],
        extra: Vec::new(),
    }
}
