//! What the sandbox costs: the hooks of one provisioning round as components against their native twins.
//!
//! The round is that of 2,000 pods in 20 groups on a catalogue of 900 types and 5,400 offerings: filter before placement,
//! estimate, filter and score of 100 claims. `cargo bench -p mortise-wasm`.

#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use mortise_engine::policy::{
    COST_UNKNOWN, Choices, Claims, Fleet, Groups, InstanceTypes, NodePools, Offerings, Pods, PolicySet, Round,
    RoundCatalog,
};
use mortise_wasm::{HostSettings, NativePolicies, PolicyHost};

const TYPES: u32 = 900;
const ZONES: u32 = 3;
const GROUPS: u32 = 20;
const PODS: u32 = 2_000;
const CLAIMS: u32 = 100;
/// Rounds measured; the best and the median are printed, since the machine may be busy.
const ROUNDS: usize = 60;

fn main() {
    let begun = Instant::now();
    let host = PolicyHost::new(HostSettings::default()).unwrap();
    let start = begun.elapsed();
    let begun = Instant::now();
    let _second = PolicyHost::new(HostSettings::default()).unwrap();
    println!("start: {start:.1?} with compilation, {:.1?} without", begun.elapsed());

    let input = Input::new();
    let active = host.current();
    println!(
        "one round: {PODS} pods in {GROUPS} groups, {CLAIMS} claims, {} offerings",
        input.catalog.offerings.zone.len()
    );
    println!("{:<28}{:>12}{:>12}{:>14}{:>12}", "", "wasm best", "median", "native best", "median");
    let mut total = (Duration::ZERO, Duration::ZERO);
    let parts: [(&str, Part); 5] = [
        ("begin and end", |_, _| {}),
        ("+ admit-pods", |input, round| {
            drop(black_box(round.admit_pods(&input.round, &input.pods, &input.group_sets)))
        }),
        ("+ evaluate, estimate", |input, round| {
            let base = input.base(&input.estimate_sets);
            drop(black_box(round.evaluate(&input.round, &input.estimate, &input.estimate_sets, base)));
        }),
        ("+ admit-claims", |input, round| {
            drop(black_box(round.admit_claims(&input.round, &input.claims, &input.claim_sets)));
        }),
        ("+ evaluate, claims", |input, round| {
            let base = input.base(&input.claim_sets);
            drop(black_box(round.evaluate(&input.round, &input.claims, &input.claim_sets, base)));
        }),
    ];
    for count in 1..=parts.len() {
        let wasm = measure(&*active, &input, &parts[..count]);
        let native = measure(&NativePolicies, &input, &parts[..count]);
        println!("{:<28}{:>12.2?}{:>12.2?}{:>14.2?}{:>12.2?}", parts[count - 1].0, wasm.0, wasm.1, native.0, native.1);
        total = (wasm.0, native.0);
    }
    let candidates = Input::count(&input.claim_sets);
    println!(
        "a whole round grows by {:.2?} (to reach: 2 ms); {candidates} candidates of claims",
        total.0.saturating_sub(total.1)
    );
    println!("peak resident memory: {}", peak_memory());
}

type Part = fn(&Input, &mut dyn mortise_engine::policy::PolicyRound);

fn measure(policies: &dyn PolicySet, input: &Input, parts: &[(&str, Part)]) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            let mut round = policies.begin(&input.catalog, &input.fleet);
            for (_, part) in parts {
                part(input, &mut *round);
            }
            let faults = round.end();
            let time = begun.elapsed();
            assert!(faults.is_empty(), "{faults:?}");
            time
        })
        .collect();
    times.sort();
    (times[0], times[ROUNDS / 2])
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

struct Input {
    round: Round,
    catalog: RoundCatalog,
    fleet: Fleet,
    pods: Pods,
    group_sets: Choices,
    estimate: Claims,
    estimate_sets: Choices,
    claims: Claims,
    claim_sets: Choices,
}

impl Input {
    fn new() -> Self {
        let catalog = catalog();
        let all: Vec<u32> = (0..TYPES * ZONES * 2).collect();
        // Each group may use the offerings of the types that are large enough for it: twenty different sets.
        let sets = |rows: u32| {
            let mut choices = Choices::default();
            for group in 0..GROUPS {
                choices.sets.member.extend(all.iter().filter(|o| *o % GROUPS >= group / 2));
                choices.sets.end.push(choices.sets.member.len() as u32);
            }
            choices.set_of = (0..rows).map(|row| row % GROUPS).collect();
            choices
        };
        let empty = || Groups { end: vec![0; GROUPS as usize], member: vec![] };
        let column = |value: u64| vec![value; GROUPS as usize];
        let pods = Pods {
            count: vec![PODS / GROUPS; GROUPS as usize],
            namespace: vec![0; GROUPS as usize],
            priority: vec![0; GROUPS as usize],
            cpu_milli: column(500),
            memory_mib: column(1_024),
            gpu: vec![0; GROUPS as usize],
            labels: empty(),
            annotations: empty(),
            extra: vec![],
        };
        let estimate_sets =
            Choices { sets: Groups { end: vec![all.len() as u32], member: all.clone() }, set_of: vec![0] };
        Self {
            round: Round { id: 1, now_unix_ms: 1, seed: 1, steps: 0, explain: false },
            catalog,
            fleet: Fleet::default(),
            pods,
            group_sets: sets(GROUPS),
            estimate: claims(1, 8),
            estimate_sets,
            claims: claims(CLAIMS, 0),
            claim_sets: sets(CLAIMS),
        }
    }

    fn row(choices: &Choices, row: usize) -> &[u32] {
        let set = choices.set_of[row] as usize;
        let start = if set == 0 { 0 } else { choices.sets.end[set - 1] as usize };
        &choices.sets.member[start..choices.sets.end[set] as usize]
    }

    fn count(choices: &Choices) -> usize {
        (0..choices.set_of.len()).map(|row| Self::row(choices, row).len()).sum()
    }

    fn base(&self, choices: &Choices) -> Vec<i64> {
        let prices = &self.catalog.offerings.price_micro_usd;
        let price = |o: &u32| i64::try_from(prices[*o as usize]).unwrap_or(COST_UNKNOWN);
        (0..choices.set_of.len()).flat_map(|row| Self::row(choices, row).iter().map(price)).collect()
    }
}

fn claims(rows: u32, state: u32) -> Claims {
    let rows = rows as usize;
    Claims {
        count: vec![1; rows],
        nodepool: vec![0; rows],
        cpu_milli: vec![10_000; rows],
        memory_mib: vec![20_480; rows],
        gpu: vec![0; rows],
        pods: vec![20; rows],
        state: vec![state; rows],
        extra: vec![],
    }
}

fn catalog() -> RoundCatalog {
    let mut symbols: Vec<String> =
        ["default", "amd64", "us-east-1a", "us-east-1b", "us-east-1c"].map(String::from).into();
    let keys: Vec<u32> =
        (0..8).map(|key| intern(&mut symbols, format!("karpenter.k8s.aws/instance-key-{key}"))).collect();
    let mut types = InstanceTypes::default();
    let mut offerings = Offerings::default();
    for t in 0..TYPES {
        let name = intern(&mut symbols, format!("m{}i.{}xlarge", t / 20, t % 20));
        types.name.push(name);
        types.family.push(name);
        types.arch.push(1);
        types.generation.push(7);
        types.cpu_milli.push(u64::from(1 + t % 20) * 4_000);
        types.memory_mib.push(u64::from(1 + t % 20) * 16_384);
        types.ephemeral_mib.push(20_480);
        types.pods.push(110);
        types.gpu.push(u32::from(t % 15 == 0));
        types.labels.member.extend(keys.iter().flat_map(|key| [*key, name]));
        types.labels.end.push(types.labels.member.len() as u32);
        for zone in 0..ZONES {
            for capacity in [1, 2] {
                offerings.instance_type.push(t);
                offerings.zone.push(2 + zone);
                offerings.capacity.push(capacity);
                offerings.price_micro_usd.push(u64::from(1 + t % 20) * 200_000 / u64::from(3 - u32::from(capacity)));
                offerings.reserved_left.push(0);
            }
        }
    }
    while symbols.len() < 1_500 {
        let next = symbols.len();
        symbols.push(format!("value-{next}"));
    }
    let nodepools = NodePools {
        name: vec![0],
        weight: vec![0],
        consolidation: vec![1],
        consolidate_after_s: vec![0],
        cpu_left_milli: vec![u64::MAX],
        memory_left_mib: vec![u64::MAX],
        nodes_left: vec![u32::MAX],
        budget_empty: vec![1],
        budget_underutilized: vec![1],
        labels: Groups { end: vec![0], member: vec![] },
        extra: vec![],
    };
    RoundCatalog { generation: 1, symbols, types, offerings, nodepools }
}

fn intern(symbols: &mut Vec<String>, text: String) -> u32 {
    symbols.push(text);
    symbols.len() as u32 - 1
}
