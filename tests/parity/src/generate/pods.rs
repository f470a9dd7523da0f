//! Deployments and their pods.

use serde_json::{Value, json};

use super::catalog::InstanceType;
use super::nodes::Nodes;
use super::pools::Pool;
use super::volumes::{Mount, Volumes};
use super::{Mix, NAMESPACES, affinity, spread};
use crate::random::Random;

/// Equal pods.
pub(crate) struct Deployment {
    pub(crate) app: String,
    /// Index into [`NAMESPACES`].
    pub(crate) namespace: usize,
    pub(crate) cpu_milli: usize,
    pub(crate) memory_mib: usize,
    pub(crate) gpus: usize,
    /// Pods that wait.
    pub(crate) pending: usize,
    pub(crate) mount: Option<Mount>,
    /// Nothing ties it to nodes of some kind: its pods may run on any node with room.
    pub(crate) unconstrained: bool,
    /// Nothing but required anti-affinity ties it.
    pub(crate) keeps_apart: bool,
    /// `spec` of its pods, without volumes and node.
    pub(crate) pod: Value,
}

const CPU: [usize; 12] = [10, 50, 100, 250, 500, 900, 1000, 1500, 2000, 3500, 7000, 12_000];
const MEMORY: [usize; 8] = [16, 64, 128, 512, 1024, 3000, 7000, 15_000];

pub(crate) fn deployments(random: &mut Random, mix: &Mix, pools: &[Pool], types: &[InstanceType]) -> Vec<Deployment> {
    let count = *random.pick(&[1, 2, 2, 3, 3, 4, 5, 6, 8, 12]);
    let total = random.between(count, 60);
    (0..count)
        .map(|at| {
            let pending = (random.between(1, 2 * total / count)).min(60 / count.min(6));
            deployment(random, mix, pools, types, at, count, pending)
        })
        .collect()
}

fn deployment(
    random: &mut Random,
    mix: &Mix,
    pools: &[Pool],
    types: &[InstanceType],
    at: usize,
    count: usize,
    pending: usize,
) -> Deployment {
    let app = format!("app-{at}");
    // The queue goes by CPU, then memory: no two deployments are equal in both, or age alone would decide.
    let cpu_milli = *random.pick(&CPU) + at;
    let memory_mib = *random.pick(&MEMORY) + at;
    let gpus = if mix.gpu && random.chance(25) { random.between(1, 2) } else { 0 };
    let mut requests = json!({"cpu": format!("{cpu_milli}m"), "memory": format!("{memory_mib}Mi")});
    if gpus > 0 {
        requests["nvidia.com/gpu"] = json!(gpus.to_string());
    }
    let mut container = json!({"name": "main", "image": "example.com/app", "resources": {"requests": requests}});
    if gpus > 0 {
        container["resources"]["limits"] = json!({"nvidia.com/gpu": gpus.to_string()});
    }
    if mix.ports && random.chance(25) {
        container["ports"] = json!([{"containerPort": 80, "hostPort": random.pick(&[8080, 9100, 5353]),
                                     "protocol": random.pick(&["TCP", "TCP", "UDP"])}]);
    }
    let mut pod = json!({"containers": [container], "restartPolicy": "Always"});
    if random.chance(8) {
        pod["initContainers"] = json!([{"name": "init", "image": "example.com/init",
            "resources": {"requests": {"cpu": random.pick(&["2", "500m"]), "memory": "256Mi"}}}]);
    }
    if mix.selectors && random.chance(40) {
        pod["nodeSelector"] = affinity::node_selector(random, pools, types);
    }
    let mut rules = serde_json::Map::new();
    let mut node = serde_json::Map::new();
    if mix.node_affinity && random.chance(45) {
        node.insert("requiredDuringSchedulingIgnoredDuringExecution".into(), affinity::required(random, types));
    }
    if mix.preferred && random.chance(45) {
        node.insert("preferredDuringSchedulingIgnoredDuringExecution".into(), affinity::preferred(random, types));
    }
    if !node.is_empty() {
        rules.insert("nodeAffinity".into(), Value::Object(node));
    }
    for (used, kind, anti) in
        [(mix.pod_affinity, "podAffinity", false), (mix.pod_anti_affinity, "podAntiAffinity", true)]
    {
        if used && random.chance(40) {
            let term = affinity::pod_term(random, at, count, anti);
            rules.insert(
                kind.into(),
                if random.chance(75) {
                    json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]})
                } else {
                    json!({"preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": random.between(1, 100), "podAffinityTerm": term}]})
                },
            );
        }
    }
    let free = pod["nodeSelector"].is_null();
    let unconstrained = free && rules.is_empty();
    let apart = rules.get("podAntiAffinity").map(|rule| &rule["requiredDuringSchedulingIgnoredDuringExecution"]);
    let keeps_apart = free && rules.len() == 1 && apart.is_some_and(serde_json::Value::is_array);
    if !rules.is_empty() {
        pod["affinity"] = Value::Object(rules);
    }
    if mix.taints && random.chance(55) {
        pod["tolerations"] = affinity::tolerations(random);
    }
    if mix.spread && random.chance(60) {
        pod["topologySpreadConstraints"] = Value::Array(spread::constraints(random, &app));
    }
    let mount = (mix.volumes && random.chance(50)).then(|| {
        *random.pick(&[
            Mount::Bound,
            Mount::Bound,
            Mount::Waiting,
            Mount::Waiting,
            Mount::Narrow,
            Mount::Shared,
            Mount::Ephemeral,
            Mount::Missing,
        ])
    });
    let namespace = *random.pick(&[0, 0, 0, 1, 2]);
    Deployment { app, namespace, cpu_milli, memory_mib, gpus, pending, mount, unconstrained, keeps_apart, pod }
}

/// Pods of all deployments that wait, and those that run already.
pub(crate) fn pods(
    random: &mut Random,
    deployments: &[Deployment],
    nodes: &Nodes,
    volumes: &mut Volumes,
) -> Vec<Value> {
    let mut made = nodes.daemon_pods.clone();
    for (at, deployment) in deployments.iter().enumerate() {
        let here = nodes.bound.iter().filter(|(of, _)| *of == at).map(|(_, node)| Some(node.as_str()));
        let waiting = std::iter::repeat_n(None, deployment.pending);
        for (index, node) in here.chain(waiting).enumerate() {
            made.push(pod(random, deployment, index, node, volumes));
        }
    }
    made
}

fn pod(random: &mut Random, deployment: &Deployment, index: usize, node: Option<&str>, volumes: &mut Volumes) -> Value {
    let namespace = NAMESPACES[deployment.namespace].0;
    let name = format!("{}-{index:02}", deployment.app);
    let mut spec = deployment.pod.clone();
    if let Some(mount) = deployment.mount {
        spec["volumes"] = json!([volumes.mount(random, mount, namespace, &name, &deployment.app)]);
    }
    let status = match node {
        Some(node) => {
            spec["nodeName"] = json!(node);
            json!({"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]})
        }
        None => json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"),
            "creationTimestamp": format!("2026-01-01T11:00:{:02}Z", index % 60),
            "labels": {"app": deployment.app, "pod-template-hash": "7d9f"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": deployment.app,
                                 "uid": format!("rs-{}", deployment.app), "controller": true}],
        },
        "spec": spec,
        "status": status,
    })
}
