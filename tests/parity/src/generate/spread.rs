//! Topology spread of pods, and the cluster's default for those that have none.

use serde_json::{Value, json};

use super::pods::Deployment;
use super::{Mix, NAMESPACES};
use crate::random::Random;

const KEYS: [&str; 6] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    "kubernetes.io/hostname",
    "karpenter.sh/capacity-type",
    "kubernetes.io/arch",
    "example.com/tier",
];

/// Constraints of one deployment.
pub(crate) fn constraints(random: &mut Random, app: &str) -> Vec<Value> {
    let count = if random.chance(25) { 2 } else { 1 };
    let mut made: Vec<Value> = Vec::new();
    for _ in 0..count {
        let key = *random.pick(&KEYS);
        let anyway = random.chance(25);
        if made.iter().any(|other| other["topologyKey"] == key) {
            continue;
        }
        let selector = match random.below(20) {
            0 => json!({"matchLabels": {"app": "of-another"}}),
            1 => json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            2 => json!({"matchExpressions": [{"key": "app", "operator": "In", "values": [app, "app-0"]}]}),
            _ => json!({"matchLabels": {"app": app}}),
        };
        let mut constraint = json!({
            "maxSkew": random.pick(&[1, 1, 1, 2, 3]),
            "topologyKey": key,
            "whenUnsatisfiable": if anyway { "ScheduleAnyway" } else { "DoNotSchedule" },
            "labelSelector": selector,
        });
        if !anyway && key != "kubernetes.io/hostname" && random.chance(15) {
            constraint["minDomains"] = json!(random.between(1, 4));
        }
        if random.chance(35) {
            constraint["nodeAffinityPolicy"] = json!(random.pick(&["Honor", "Ignore"]));
        }
        if random.chance(35) {
            constraint["nodeTaintsPolicy"] = json!(random.pick(&["Honor", "Ignore"]));
        }
        if random.chance(12) {
            constraint["matchLabelKeys"] = json!(["pod-template-hash"]);
        }
        made.push(constraint);
    }
    made
}

/// `SCHEDULER_CONFIG`.
pub(crate) fn defaults(random: &mut Random, mix: &Mix) -> Value {
    if !mix.default_spread {
        return Value::Null;
    }
    json!({"podTopologySpread": {"defaultConstraints": [{
        "maxSkew": random.between(1, 2),
        "topologyKey": random.pick(&KEYS[1..4]),
        "whenUnsatisfiable": random.pick(&["DoNotSchedule", "ScheduleAnyway"]),
    }]}})
}

/// Services, by which the default finds what belongs together.
pub(crate) fn services(random: &mut Random, mix: &Mix, deployments: &[Deployment]) -> Vec<Value> {
    let mut made = Vec::new();
    for deployment in deployments {
        if mix.default_spread && random.chance(70) {
            made.push(json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": deployment.app, "namespace": NAMESPACES[deployment.namespace].0},
                "spec": {"selector": {"app": deployment.app}, "ports": [{"port": 80, "protocol": "TCP"}]},
            }));
        }
    }
    made
}
