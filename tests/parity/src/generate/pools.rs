//! NodePools.

use serde_json::{Value, json};

use super::catalog::InstanceType;
use super::{Mix, ZONES, requirement};
use crate::random::Random;

/// A NodePool, and what other parts of the generator must know of it.
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) labels: Vec<(&'static str, &'static str)>,
    pub(crate) taints: Vec<Taint>,
    pub(crate) startup_taints: Vec<Taint>,
    /// Types that it is offered; `None` = all.
    pub(crate) offered: Option<Vec<String>>,
    pub(crate) value: Value,
}

/// Key, value, effect.
pub(crate) type Taint = (&'static str, &'static str, &'static str);

/// Taints of NodePools.
pub(crate) const TAINTS: [Taint; 4] = [
    ("dedicated", "batch", "NoSchedule"),
    ("dedicated", "web", "NoSchedule"),
    ("gpu", "true", "NoExecute"),
    ("burstable", "true", "PreferNoSchedule"),
];
/// Labels of NodePools.
pub(crate) const LABELS: [(&str, &str); 4] =
    [("team", "red"), ("team", "blue"), ("example.com/tier", "1"), ("example.com/tier", "2")];

pub(crate) fn pools(random: &mut Random, mix: &Mix, types: &[InstanceType]) -> Vec<Pool> {
    let count = *random.pick(&[1, 1, 1, 2, 2, 3, 4]);
    (0..count).map(|at| pool(random, mix, types, at)).collect()
}

fn pool(random: &mut Random, mix: &Mix, types: &[InstanceType], at: usize) -> Pool {
    let name = ["general", "special", "batch", "web"][at].to_owned();
    let mut requirements = Vec::new();
    draw_requirements(random, mix, types, &mut requirements);
    let mut labels = Vec::new();
    if mix.selectors || mix.node_affinity {
        for label in LABELS {
            if random.chance(25) && labels.iter().all(|(key, _)| *key != label.0) {
                labels.push(label);
            }
        }
        if random.chance(20) && labels.iter().all(|(key, _)| *key != "team") {
            requirements.push(requirement("team", "In", &["red", "blue", "green"]));
        }
    }
    let mut taints = Vec::new();
    if mix.taints && random.chance(50) {
        taints.push(*random.pick(&TAINTS));
    }
    let startup_taints: Vec<Taint> =
        if mix.taints && random.chance(25) { vec![("example.com/agent", "starting", "NoSchedule")] } else { vec![] };
    let offered = random.chance(15).then(|| random.some(types).into_iter().map(|t| t.name.clone()).collect());
    let mut spec = json!({
        "template": {
            "metadata": {"labels": labels.iter().copied().collect::<std::collections::BTreeMap<_, _>>()},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": requirements,
                "taints": taints.iter().map(taint).collect::<Vec<_>>(),
                "startupTaints": startup_taints.iter().map(taint).collect::<Vec<_>>(),
                "expireAfter": "720h",
            },
        },
        "disruption": {
            "consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "10%"}],
        },
    });
    // Equal weights at times: then names decide.
    if random.chance(60) {
        spec["weight"] = json!(*random.pick(&[1, 10, 10, 50]));
    }
    if mix.limits && random.chance(70) {
        spec["limits"] = limits(random);
    }
    let conditions = ["ValidationSucceeded", "NodeClassReady", "Ready"].map(condition);
    let value = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": name, "uid": format!("pool-{at}"), "creationTimestamp": "2025-12-01T00:00:00Z",
                     "generation": 1, "resourceVersion": "1"},
        "spec": spec,
        "status": {"conditions": conditions},
    });
    Pool { name, labels, taints, startup_taints, offered, value }
}

fn draw_requirements(random: &mut Random, mix: &Mix, types: &[InstanceType], requirements: &mut Vec<Value>) {
    if random.chance(60) {
        requirements.push(match random.below(4) {
            0 => requirement("karpenter.sh/capacity-type", "In", &["on-demand"]),
            1 => requirement("karpenter.sh/capacity-type", "In", &["spot"]),
            2 => requirement("karpenter.sh/capacity-type", "NotIn", &["spot"]),
            _ => requirement("karpenter.sh/capacity-type", "In", &["spot", "on-demand", "reserved"]),
        });
    }
    if random.chance(40) {
        let arch = if random.chance(70) { &["amd64"][..] } else { &["amd64", "arm64"] };
        requirements.push(requirement("kubernetes.io/arch", "In", arch));
    }
    if random.chance(25) {
        let zones: Vec<&str> = random.some(&ZONES).into_iter().copied().collect();
        let operator = if zones.len() < ZONES.len() && random.chance(30) { "NotIn" } else { "In" };
        requirements.push(requirement("topology.kubernetes.io/zone", operator, &zones));
    }
    if random.chance(25) {
        requirements.push(match random.below(4) {
            0 => requirement("karpenter.k8s.aws/instance-family", "In", &["c", "m", "g"]),
            1 => requirement("karpenter.k8s.aws/instance-family", "NotIn", &["r"]),
            2 => requirement("karpenter.k8s.aws/instance-cpu", "Gt", &["1"]),
            _ => requirement("karpenter.k8s.aws/instance-cpu", "Lt", &["33"]),
        });
    }
    if random.chance(8) {
        let names: Vec<&str> = random.some(types).into_iter().map(|t| &*t.name).collect();
        requirements.push(requirement("node.kubernetes.io/instance-type", "In", &names));
    }
    if mix.gpu && random.chance(20) {
        requirements.push(requirement("karpenter.k8s.aws/instance-gpu-count", "Exists", &[]));
    }
    if mix.min_values && random.chance(80) {
        add_min_values(random, requirements);
    }
}

fn add_min_values(random: &mut Random, requirements: &mut Vec<Value>) {
    let key = *random.pick(&[
        "node.kubernetes.io/instance-type",
        "karpenter.k8s.aws/instance-family",
        "karpenter.k8s.aws/instance-cpu",
        "topology.kubernetes.io/zone",
    ]);
    let least = if key.ends_with("zone") { 2 } else { random.between(2, 4) };
    match requirements.iter_mut().find(|r| r["key"] == key && r["operator"] == "Exists") {
        Some(found) => found["minValues"] = json!(least),
        None => requirements.push(json!({"key": key, "operator": "Exists", "minValues": least})),
    }
}

/// Limits near what the pods of a problem need.
fn limits(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"cpu": random.pick(&["4", "8", "17", "40"])}),
        1 => json!({"cpu": random.pick(&["8", "24", "64"]), "memory": random.pick(&["16Gi", "48Gi", "200Gi"])}),
        2 => json!({"nodes": random.between(1, 5).to_string()}),
        _ => json!({"cpu": "1000", "memory": "2000Gi"}),
    }
}

pub(crate) fn taint(taint: &Taint) -> Value {
    json!({"key": taint.0, "value": taint.1, "effect": taint.2})
}

pub(crate) fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": kind, "message": "", "observedGeneration": 1,
           "lastTransitionTime": "2025-12-01T00:00:00Z"})
}
