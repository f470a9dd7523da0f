//! What pods ask of their nodes and of each other.

use serde_json::{Value, json};

use super::catalog::InstanceType;
use super::pools::{Pool, TAINTS};
use super::{NAMESPACES, ZONES, requirement};
use crate::random::Random;

/// `nodeSelector`: one label, two at times.
pub(crate) fn node_selector(random: &mut Random, pools: &[Pool], types: &[InstanceType]) -> Value {
    let mut selector = serde_json::Map::new();
    for _ in 0..if random.chance(20) { 2 } else { 1 } {
        let (key, value) = match random.below(10) {
            0..=2 => ("topology.kubernetes.io/zone", *random.pick(&ZONES)),
            3 => ("karpenter.sh/capacity-type", *random.pick(&["spot", "on-demand", "reserved"])),
            4 => ("kubernetes.io/arch", *random.pick(&["amd64", "arm64"])),
            5 => ("karpenter.k8s.aws/instance-family", *random.pick(&["c", "m", "r"])),
            6 => ("node.kubernetes.io/instance-type", &*random.pick(types).name),
            7 => ("karpenter.sh/nodepool", &*random.pick(pools).name),
            8 => {
                let labels: Vec<_> = pools.iter().flat_map(|pool| &pool.labels).collect();
                if labels.is_empty() { ("team", "red") } else { **random.pick(&labels) }
            }
            _ => ("kubernetes.io/os", "linux"),
        };
        selector.insert(key.to_owned(), json!(value));
    }
    Value::Object(selector)
}

/// One expression on node labels.
fn expression(random: &mut Random, types: &[InstanceType]) -> Value {
    match random.below(12) {
        0 => requirement("topology.kubernetes.io/zone", "In", &["zone-1", "zone-2"]),
        1 => requirement("topology.kubernetes.io/zone", "NotIn", &["zone-1"]),
        2 => requirement("karpenter.sh/capacity-type", "In", &["on-demand"]),
        3 => requirement("karpenter.sh/capacity-type", "NotIn", &["spot"]),
        4 => requirement("karpenter.k8s.aws/instance-cpu", "Gt", &[*random.pick(&["1", "3", "15"])]),
        5 => requirement("karpenter.k8s.aws/instance-cpu", "Lt", &[*random.pick(&["5", "9", "33"])]),
        6 => requirement("karpenter.k8s.aws/instance-family", "NotIn", &["c", "t"]),
        7 => requirement("example.com/tier", "Exists", &[]),
        8 => requirement("example.com/tier", "DoesNotExist", &[]),
        9 => requirement("team", "In", &["red", "blue"]),
        10 => requirement("team", "NotIn", &["red"]),
        _ => {
            let names: Vec<&str> = random.some(types).into_iter().map(|t| &*t.name).collect();
            let operator = if random.chance(50) { "In" } else { "NotIn" };
            requirement("node.kubernetes.io/instance-type", operator, &names)
        }
    }
}

fn term(random: &mut Random, types: &[InstanceType]) -> Value {
    let count = if random.chance(25) { 2 } else { 1 };
    json!({"matchExpressions": (0..count).map(|_| expression(random, types)).collect::<Vec<_>>()})
}

/// `requiredDuringSchedulingIgnoredDuringExecution` of node affinity.
pub(crate) fn required(random: &mut Random, types: &[InstanceType]) -> Value {
    let count = *random.pick(&[1, 1, 1, 2, 3]);
    json!({"nodeSelectorTerms": (0..count).map(|_| term(random, types)).collect::<Vec<_>>()})
}

/// `preferredDuringSchedulingIgnoredDuringExecution` of node affinity. Weights differ: the order of equal ones is
/// nobody's promise.
pub(crate) fn preferred(random: &mut Random, types: &[InstanceType]) -> Value {
    let count = random.between(1, 3);
    let weight = |at: usize, random: &mut Random| 1 + at * 30 + random.below(29);
    (0..count).map(|at| json!({"weight": weight(at, random), "preference": term(random, types)})).collect()
}

/// A term of pod affinity or anti-affinity: towards its own kind, or that of another deployment.
pub(crate) fn pod_term(random: &mut Random, app: usize, apps: usize, anti: bool) -> Value {
    let other = if random.chance(if anti { 60 } else { 45 }) { app } else { random.below(apps) };
    let key = match random.below(10) {
        0..=3 => "kubernetes.io/hostname",
        4..=7 => "topology.kubernetes.io/zone",
        8 => "karpenter.sh/capacity-type",
        _ => "kubernetes.io/arch",
    };
    let mut term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": format!("app-{other}")}}});
    match random.below(8) {
        0 => term["namespaces"] = json!([random.pick(&NAMESPACES).0]),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"env": "prod"}}),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    term
}

/// `tolerations` for some of the taints there are.
pub(crate) fn tolerations(random: &mut Random) -> Value {
    if random.chance(15) {
        return json!([{"operator": "Exists"}]);
    }
    let mut made = Vec::new();
    for (key, value, effect) in random.some(&TAINTS) {
        made.push(match random.below(4) {
            0 => json!({"key": key, "operator": "Exists"}),
            1 => json!({"key": key, "operator": "Equal", "value": value}),
            2 => json!({"key": key, "operator": "Exists", "effect": effect}),
            _ => json!({"key": key, "operator": "Equal", "value": value, "effect": effect}),
        });
    }
    Value::Array(made)
}
