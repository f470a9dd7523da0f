//! DaemonSets: what every node carries before the first pod comes.

use serde_json::{Value, json};

use super::pools::Pool;
use super::{Mix, requirement};
use crate::random::Random;

/// A DaemonSet, and what other parts of the generator must know of it.
pub(crate) struct Daemon {
    pub(crate) name: String,
    /// Runs on every node, whatever its labels and taints.
    pub(crate) everywhere: bool,
    /// `spec` of its pods.
    pub(crate) pod: Value,
    pub(crate) value: Value,
}

pub(crate) fn daemons(random: &mut Random, mix: &Mix, pools: &[Pool]) -> Vec<Daemon> {
    if !mix.daemons {
        return Vec::new();
    }
    let count = random.between(1, 3);
    (0..count).map(|at| daemon(random, mix, pools, at)).collect()
}

fn daemon(random: &mut Random, mix: &Mix, pools: &[Pool], at: usize) -> Daemon {
    let name = ["agent", "logs", "proxy"][at].to_owned();
    let mut container = json!({
        "name": "main", "image": "example.com/agent",
        "resources": {"requests": {
            "cpu": random.pick(&["50m", "100m", "400m", "1"]), "memory": random.pick(&["64Mi", "300Mi", "1Gi"]),
        }},
    });
    if mix.ports && random.chance(50) {
        container["ports"] = json!([{"containerPort": 80, "hostPort": random.pick(&[8080, 9100]), "protocol": "TCP"}]);
    }
    let mut pod = json!({"containers": [container], "restartPolicy": "Always"});
    let everywhere = random.chance(50);
    if everywhere {
        pod["tolerations"] = json!([{"operator": "Exists"}]);
    } else {
        match random.below(4) {
            0 => pod["nodeSelector"] = json!({"kubernetes.io/arch": "amd64"}),
            1 => pod["nodeSelector"] = json!({"karpenter.sh/nodepool": random.pick(pools).name}),
            2 => {
                pod["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [match random.below(3) {
                        0 => requirement("karpenter.sh/capacity-type", "NotIn", &["spot"]),
                        1 => requirement("karpenter.k8s.aws/instance-cpu", "Gt", &["2"]),
                        _ => requirement("topology.kubernetes.io/zone", "In", &["zone-1", "zone-2"]),
                    }]}],
                }}});
            }
            _ => pod["tolerations"] = json!([{"key": "dedicated", "operator": "Exists"}]),
        }
    }
    let value = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default", "uid": format!("ds-{name}"),
                     "creationTimestamp": "2025-12-01T00:00:00Z"},
        "spec": {
            "selector": {"matchLabels": {"daemon": name}},
            "template": {"metadata": {"labels": {"daemon": name}}, "spec": pod},
        },
    });
    Daemon { name, everywhere, pod, value }
}
