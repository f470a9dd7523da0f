//! What the demo applies: two NodePools and an EC2NodeClass of the usual shape, and a burst of pods of five kinds.

use serde_json::{Value, json};

/// How long a node stays empty before it goes, cluster time.
const CONSOLIDATE_AFTER: &str = "30s";

pub(super) fn node_class() -> Value {
    let term = json!([{"tags": {"karpenter.sh/discovery": "demo"}}]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "KarpenterNodeRole-demo",
            "subnetSelectorTerms": term, "securityGroupSelectorTerms": term,
            "tags": {"karpenter.sh/discovery": "demo", "intent": "apps"},
        },
    })
}

/// Two NodePools of the usual shape: a small one on demand for pods that must stay, tainted and heavier, and one for all
/// others, spot or on demand, current generations of three categories, two architectures, three zones. Unlike in
/// production no budget spares business hours, so that the scale-down shows at any time of day.
pub(super) fn node_pools(pods: u32) -> Vec<Value> {
    let requirement =
        |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
    let common = [
        requirement("karpenter.k8s.aws/instance-generation", "Gt", &["5"]),
        requirement("kubernetes.io/arch", "In", &["amd64", "arm64"]),
        // Without it two or three of the largest machines would hold the whole burst.
        requirement("karpenter.k8s.aws/instance-cpu", "Lt", &["33"]),
    ];
    // Enough for the burst with room: it asks for less than one CPU a pod.
    let cpu = pods.saturating_mul(2).max(100);
    let mut system = pool("system", 100, cpu);
    let spec = &mut system["spec"]["template"]["spec"];
    spec["taints"] = json!([{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]);
    spec["requirements"] = [
        &common[..],
        &[
            requirement("karpenter.sh/capacity-type", "In", &["on-demand"]),
            requirement("karpenter.k8s.aws/instance-category", "In", &["c", "m"]),
        ],
    ]
    .concat()
    .into();
    let mut default = pool("default", 10, cpu);
    default["spec"]["template"]["spec"]["requirements"] = [
        &common[..],
        &[
            requirement("karpenter.sh/capacity-type", "In", &["spot", "on-demand"]),
            requirement("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"]),
            requirement("karpenter.k8s.aws/instance-size", "NotIn", &["nano", "micro", "small"]),
            requirement("topology.kubernetes.io/zone", "In", &["us-east-1a", "us-east-1b", "us-east-1c"]),
        ],
    ]
    .concat()
    .into();
    vec![system, default]
}

fn pool(name: &str, weight: u32, cpu: u32) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {
            "weight": weight,
            "template": {
                "metadata": {"labels": {"intent": if name == "system" { "system" } else { "apps" }}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "expireAfter": "336h",
                },
            },
            "disruption": {
                "consolidationPolicy": "WhenEmpty", "consolidateAfter": CONSOLIDATE_AFTER, "budgets": [{"nodes": "100%"}],
            },
            "limits": {"cpu": cpu.to_string(), "memory": format!("{}Gi", u64::from(cpu) * 4)},
        },
    })
}

/// One kind of pod: name, share of the burst in percent, CPU, memory, node selector.
type Kind = (&'static str, u32, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const KINDS: &[Kind] = &[
    ("web", 44, "500m", "1Gi", &[]),
    ("api", 24, "1", "2Gi", &[]),
    ("cache", 12, "250m", "4Gi", &[]),
    ("arm", 12, "1", "1Gi", &[("kubernetes.io/arch", "arm64")]),
    ("steady", 8, "500m", "2Gi", &[("intent", "system")]),
];

/// The Deployments of the burst, with their replicas.
pub(super) fn deployments(pods: u32) -> Vec<(&'static str, u32, Value)> {
    let mut left = pods;
    let mut out = Vec::with_capacity(KINDS.len());
    for (name, share, cpu, memory, selector) in KINDS.iter().rev() {
        // The first kind, last here, takes what the shares leave over.
        let replicas = if *name == "web" { left } else { (pods * share / 100).min(left) };
        left -= replicas;
        if replicas > 0 {
            out.push((*name, replicas, deployment(name, replicas, cpu, memory, selector)));
        }
    }
    out.reverse();
    out
}

fn deployment(name: &str, replicas: u32, cpu: &str, memory: &str, selector: &[(&str, &str)]) -> Value {
    let labels = json!({"app": name, "burst": "demo"});
    let selector: serde_json::Map<String, Value> =
        selector.iter().map(|(k, v)| ((*k).to_owned(), Value::from(*v))).collect();
    let tolerations = if selector.get("intent").is_some() {
        json!([{"key": "CriticalAddonsOnly", "operator": "Exists"}])
    } else {
        json!([])
    };
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "terminationGracePeriodSeconds": 5, "nodeSelector": selector, "tolerations": tolerations,
                    "containers": [{
                        "name": name, "image": "public.ecr.aws/eks-distro/kubernetes/pause:3.9",
                        "resources": {"requests": {"cpu": cpu, "memory": memory}},
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn shares_add_up() {
        for pods in [1, 7, 100, 500, 19_999] {
            assert_eq!(super::deployments(pods).iter().map(|(_, replicas, _)| replicas).sum::<u32>(), pods);
        }
    }
}
