//! Nodes that there are already, in every stage of their life, with pods on them.

use serde_json::{Value, json};

use super::catalog::InstanceType;
use super::daemons::Daemon;
use super::pods::Deployment;
use super::pools::{Pool, Taint, condition, taint};
use super::volumes::Volumes;
use super::{Mix, ZONES};
use crate::random::Random;

/// Nodes of a problem.
#[derive(Default)]
pub(crate) struct Nodes {
    pub(crate) nodes: Vec<Value>,
    pub(crate) claims: Vec<Value>,
    /// Deployment and node of each pod that runs.
    pub(crate) bound: Vec<(usize, String)>,
    pub(crate) daemon_pods: Vec<Value>,
    /// Nodes whose CSI driver has reported, with its limit.
    csi: Vec<(String, Option<usize>)>,
}

/// Where a node is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A NodeClaim without Node.
    InFlight,
    /// A Node that has its startup taints still.
    Starting,
    Ready,
    Deleting,
    /// Somebody else's.
    Unmanaged,
}

impl Nodes {
    pub(crate) fn draw(
        random: &mut Random,
        mix: &Mix,
        pools: &[Pool],
        types: &[InstanceType],
        deployments: &[Deployment],
        daemons: &[Daemon],
    ) -> Self {
        let mut made = Self::default();
        if !mix.nodes {
            return made;
        }
        for at in 0..random.between(1, 5) {
            let stage = *random.pick(&[
                Stage::Ready,
                Stage::Ready,
                Stage::Ready,
                Stage::Ready,
                Stage::Starting,
                Stage::InFlight,
                Stage::Deleting,
                Stage::Unmanaged,
            ]);
            let of_type = random.pick(types);
            let pool = random.pick(pools);
            made.add(random, stage, at, (pool, of_type), daemons);
            if stage != Stage::InFlight {
                made.fill(random, mix, &format!("node-{at}"), of_type, deployments);
            }
        }
        made
    }

    fn add(
        &mut self,
        random: &mut Random,
        stage: Stage,
        at: usize,
        (pool, of_type): (&Pool, &InstanceType),
        daemons: &[Daemon],
    ) {
        let name = format!("node-{at}");
        let provider = format!("aws:///zone/i-{at}");
        let (zone, market) = if of_type.offered.is_empty() {
            (*random.pick(&ZONES), "on-demand")
        } else {
            *random.pick(&of_type.offered)
        };
        let managed = stage != Stage::Unmanaged;
        let mut labels = json!({
            "kubernetes.io/arch": of_type.arch, "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": of_type.name, "topology.kubernetes.io/zone": zone,
        });
        if managed {
            labels["karpenter.sh/capacity-type"] = json!(market);
            labels["karpenter.sh/nodepool"] = json!(pool.name);
            labels["karpenter.k8s.aws/ec2nodeclass"] = json!("default");
            labels["karpenter.k8s.aws/instance-family"] = json!(of_type.family);
            labels["karpenter.k8s.aws/instance-cpu"] = json!(of_type.cpu.to_string());
            if of_type.gpus > 0 {
                labels["karpenter.k8s.aws/instance-gpu-count"] = json!(of_type.gpus.to_string());
            }
            for (key, value) in &pool.labels {
                labels[*key] = json!(value);
            }
        }
        let capacity = json!({
            "cpu": of_type.cpu.to_string(), "memory": format!("{}Gi", of_type.memory_gib),
            "pods": of_type.pods.to_string(), "ephemeral-storage": "20Gi",
        });
        let mut allocatable = capacity.clone();
        allocatable["cpu"] = json!(format!("{}m", of_type.cpu * 1000 - 80));
        allocatable["memory"] = json!(format!("{}Mi", of_type.memory_gib * 1024 - 100 - 11 * of_type.pods));
        let amounts = |mut amounts: Value| {
            if of_type.gpus > 0 {
                amounts["nvidia.com/gpu"] = json!(of_type.gpus.to_string());
            }
            amounts
        };
        let (capacity, allocatable) = (amounts(capacity), amounts(allocatable));
        if managed {
            self.claims.push(claim(stage, at, pool, &provider, &labels, (&capacity, &allocatable)));
        }
        if stage == Stage::InFlight {
            return;
        }
        labels["kubernetes.io/hostname"] = json!(name);
        let mut taints: Vec<Taint> = if managed { pool.taints.clone() } else { Vec::new() };
        if managed {
            labels["karpenter.sh/registered"] = json!("true");
            if stage == Stage::Starting {
                taints.extend(&pool.startup_taints);
                taints.push(("node.kubernetes.io/not-ready", "", "NoSchedule"));
            } else {
                labels["karpenter.sh/initialized"] = json!("true");
            }
        }
        let ready = if stage == Stage::Starting { "False" } else { "True" };
        self.nodes.push(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "uid": format!("node-uid-{at}"), "labels": labels,
                         "creationTimestamp": "2026-01-01T10:00:00Z"},
            "spec": {"providerID": provider, "taints": taints.iter().map(taint).collect::<Vec<_>>()},
            "status": {"capacity": capacity, "allocatable": allocatable,
                       "conditions": [{"type": "Ready", "status": ready}]},
        }));
        if random.chance(60) {
            self.csi.push((name.clone(), random.chance(70).then(|| random.between(1, 3))));
        }
        for daemon in daemons.iter().filter(|daemon| daemon.everywhere && random.chance(70)) {
            self.daemon_pods.push(daemon_pod(daemon, &name));
        }
    }

    /// Puts pods of simple deployments there while they fit.
    fn fill(&mut self, random: &mut Random, mix: &Mix, node: &str, of_type: &InstanceType, deployments: &[Deployment]) {
        // Room is left for DaemonSets.
        let mut cpu = (of_type.cpu * 1000).saturating_sub(1500);
        let mut memory = (of_type.memory_gib * 1024).saturating_sub(2600);
        let mut pods = of_type.pods.saturating_sub(3);
        for (at, deployment) in deployments.iter().enumerate() {
            let spread_or_bound = !deployment.pod["topologySpreadConstraints"].is_null();
            let may = (deployment.unconstrained || deployment.keeps_apart)
                && (!spread_or_bound || random.chance(60))
                && deployment.gpus == 0;
            if !may || mix.ports && !deployment.pod["containers"][0]["ports"].is_null() || deployment.mount.is_some() {
                continue;
            }
            // One that keeps away from its own kind runs once, or it would not be where it is.
            let most = if deployment.keeps_apart { 1 } else { random.below(4) };
            let runs = self.bound.iter().filter(|(of, _)| *of == at).count();
            for _ in 0..if deployment.keeps_apart { most.saturating_sub(runs) } else { most } {
                if deployment.cpu_milli <= cpu && deployment.memory_mib <= memory && pods > 0 {
                    cpu -= deployment.cpu_milli;
                    memory -= deployment.memory_mib;
                    pods -= 1;
                    self.bound.push((at, node.to_owned()));
                }
            }
        }
    }

    pub(crate) fn csi_nodes(&self, volumes: &Volumes) -> Vec<Value> {
        let reported = |(name, limit): &(String, Option<usize>)| {
            let mut driver = json!({"name": "ebs.csi.aws.com", "nodeID": name});
            if let Some(limit) = limit {
                driver["allocatable"] = json!({"count": limit});
            }
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
                   "spec": {"drivers": [driver]}})
        };
        if volumes.used { self.csi.iter().map(reported).collect() } else { Vec::new() }
    }
}

fn claim(
    stage: Stage,
    at: usize,
    pool: &Pool,
    provider: &str,
    labels: &Value,
    (capacity, allocatable): (&Value, &Value),
) -> Value {
    let mut conditions = vec![condition("Launched")];
    if stage != Stage::InFlight {
        conditions.push(condition("Registered"));
        if stage != Stage::Starting {
            conditions.push(condition("Initialized"));
        }
    }
    let mut metadata = json!({
        "name": format!("claim-{at}"), "uid": format!("claim-uid-{at}"), "labels": labels,
        "creationTimestamp": "2026-01-01T10:00:00Z", "resourceVersion": "1",
        "finalizers": ["karpenter.sh/termination"],
    });
    if stage == Stage::Deleting {
        metadata["deletionTimestamp"] = json!("2026-01-01T11:59:00Z");
    }
    let mut status = json!({
        "providerID": provider, "capacity": capacity, "allocatable": allocatable, "conditions": conditions,
    });
    if stage != Stage::InFlight {
        status["nodeName"] = json!(format!("node-{at}"));
    }
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata,
        "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [],
            "taints": pool.taints.iter().map(taint).collect::<Vec<_>>(),
            "startupTaints": pool.startup_taints.iter().map(taint).collect::<Vec<_>>(),
            "expireAfter": "720h",
        },
        "status": status,
    })
}

fn daemon_pod(daemon: &Daemon, node: &str) -> Value {
    let mut spec = daemon.pod.clone();
    spec["nodeName"] = json!(node);
    let name = format!("{}-{node}", daemon.name);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"),
            "creationTimestamp": "2026-01-01T10:30:00Z", "labels": {"daemon": daemon.name},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": daemon.name,
                                 "uid": format!("ds-{}", daemon.name), "controller": true}],
        },
        "spec": spec,
        "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
    })
}
