//! Instance types and what they cost where.

use serde_json::{Value, json};

use super::{Mix, ZONES, requirement};
use crate::random::Random;

/// A type of machine, and what other parts of the generator must know of it.
pub(crate) struct InstanceType {
    pub(crate) name: String,
    pub(crate) family: &'static str,
    pub(crate) arch: &'static str,
    pub(crate) cpu: usize,
    pub(crate) memory_gib: usize,
    pub(crate) pods: usize,
    pub(crate) gpus: usize,
    /// Zone and market of the offerings that are available and no reservation.
    pub(crate) offered: Vec<(&'static str, &'static str)>,
    pub(crate) value: Value,
}

/// Family, GiB of memory per CPU, micro-USD per CPU and hour.
const FAMILIES: [(&str, usize, usize); 4] = [("c", 2, 42_500), ("m", 4, 48_000), ("r", 8, 63_000), ("t", 4, 41_600)];
const SIZES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

pub(crate) fn types(random: &mut Random, mix: &Mix) -> Vec<InstanceType> {
    let mut reservations = Vec::new();
    let mut names = Vec::new();
    let count = random.between(3, 30);
    let mut made = Vec::new();
    while made.len() < count && names.len() < count * 4 {
        let gpu = mix.gpu && random.chance(20);
        let (family, per_cpu, rate) = if gpu { ("g", 4, 130_000) } else { *random.pick(&FAMILIES) };
        let arch = if random.chance(25) { "arm64" } else { "amd64" };
        let cpu = *random.pick(&SIZES);
        let name = format!("{family}{}-{cpu}x", if arch == "arm64" { "g" } else { "" });
        if !names.contains(&name) {
            let memory_gib = cpu * per_cpu;
            let mut of_type = InstanceType {
                family,
                arch,
                cpu,
                memory_gib,
                // Few, so that the number of pods is a limit at times.
                pods: if random.chance(15) { random.between(3, 6) } else { (cpu * 8).clamp(8, 110) },
                gpus: if gpu { (cpu / 8).max(1) } else { 0 },
                offered: Vec::new(),
                value: Value::Null,
                name: name.clone(),
            };
            complete(random, mix, &mut of_type, rate, &mut reservations);
            made.push(of_type);
        }
        names.push(name);
    }
    made
}

fn complete(random: &mut Random, mix: &Mix, of_type: &mut InstanceType, rate: usize, reservations: &mut Vec<String>) {
    let list = of_type.cpu * rate;
    let mut zones: Vec<&'static str> = random.some(&ZONES).into_iter().copied().collect();
    if random.chance(60) {
        zones = ZONES.to_vec();
    }
    let mut markets = vec!["on-demand"];
    let mut offerings = Vec::new();
    for zone in &zones {
        for market in ["on-demand", "spot"] {
            if market == "spot" && random.chance(25) {
                continue;
            }
            // On demand costs the same in every zone.
            let share = if market == "spot" { random.between(300, 700) } else { 1000 };
            let available = !random.chance(12);
            if available {
                of_type.offered.push((zone, market));
            }
            if !markets.contains(&market) {
                markets.push(market);
            }
            offerings.push(json!({
                "requirements": [at(zone), bought(market)],
                "price": micro_usd(list * share / 1000),
                "available": available,
            }));
        }
        if mix.reserved && random.chance(35) {
            let id = format!("cr-{}", reservations.len() + 1);
            markets.push("reserved");
            offerings.push(json!({
                "requirements": [
                    at(zone), bought("reserved"),
                    requirement("karpenter.k8s.aws/capacity-reservation-id", "In", &[&id]),
                ],
                // Paid for already: next to nothing, and ordered as the list price is.
                "price": micro_usd(list / 10_000),
                "available": !random.chance(10),
                "reservationCapacity": random.between(0, 3),
            }));
            reservations.push(id);
        }
    }
    markets.sort_unstable();
    markets.dedup();
    let cpu = of_type.cpu.to_string();
    let mut capacity = json!({
        "cpu": cpu, "memory": format!("{}Gi", of_type.memory_gib),
        "pods": of_type.pods.to_string(), "ephemeral-storage": "20Gi",
    });
    if of_type.gpus > 0 {
        capacity["nvidia.com/gpu"] = json!(of_type.gpus.to_string());
    }
    let mut value = json!({
        "name": of_type.name,
        "requirements": [
            requirement("node.kubernetes.io/instance-type", "In", &[&of_type.name]),
            requirement("kubernetes.io/arch", "In", &[of_type.arch]),
            requirement("kubernetes.io/os", "In", &["linux"]),
            requirement("topology.kubernetes.io/zone", "In", &zones),
            requirement("karpenter.sh/capacity-type", "In", &markets),
            requirement("karpenter.k8s.aws/instance-family", "In", &[of_type.family]),
            requirement("karpenter.k8s.aws/instance-cpu", "In", &[&cpu]),
            if of_type.gpus > 0 {
                requirement("karpenter.k8s.aws/instance-gpu-count", "In", &[&of_type.gpus.to_string()])
            } else {
                requirement("karpenter.k8s.aws/instance-gpu-count", "DoesNotExist", &[])
            },
        ],
        "capacity": capacity,
        "overhead": {"cpu": "80m", "memory": format!("{}Mi", 100 + 11 * of_type.pods)},
        "offerings": offerings,
    });
    if mix.volumes && random.chance(50) {
        value["volumeLimits"] = json!({"ebs.csi.aws.com": random.between(1, 4)});
    }
    of_type.value = value;
}

fn at(zone: &str) -> Value {
    requirement("topology.kubernetes.io/zone", "In", &[zone])
}

fn bought(market: &str) -> Value {
    requirement("karpenter.sh/capacity-type", "In", &[market])
}

/// USD per hour of millionths. Both programs compare what is written, so the same text must mean the same price.
fn micro_usd(micros: usize) -> f64 {
    f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1e6
}
