//! The measured workload: a realistic catalogue and pods in 20 shapes, the same on every machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::{CapacityType, Catalog, InstanceType, Offering};
use mortise_engine::node::Node;
use mortise_engine::nodepool::NodePool;
use mortise_engine::pod::{Pod, PodKey, PodShape};
use mortise_engine::quantity::{MicroUsd, Resources};
use mortise_engine::requirement::{Operator, Requirement, key};
use mortise_engine::snapshot::Snapshot;
use mortise_engine::taint::{Effect, Taint, Toleration};

const ZONES: [&str; 4] = ["us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d"];
const GIB: i64 = 1 << 30;

/// 400 types: 40 families of 10 sizes, two architectures, each in 4 zones on spot and on demand (3,200 offerings).
pub(crate) fn catalog() -> Arc<Catalog> {
    let mut types = Vec::new();
    for family in 0..40_i64 {
        let (letter, memory_per_cpu) =
            [("c", 2), ("m", 4), ("r", 8), ("t", 4)][usize::try_from(family % 4).unwrap_or(0)];
        let generation = 4 + family / 4 % 5;
        let arm = family % 5 == 4;
        let name = format!(
            "{letter}{generation}{}{}",
            if arm { "g" } else { "" },
            ["", "d", "n", "a", "i"][usize::try_from(family / 8).unwrap_or(0)]
        );
        for (at, size) in [
            "medium", "large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge", "24xlarge",
            "48xlarge",
        ]
        .into_iter()
        .enumerate()
        {
            let cpus = [1, 2, 4, 8, 16, 32, 48, 64, 96, 192][at];
            types.push(instance_type(
                &format!("{name}{family:02}.{size}"),
                &name,
                size,
                cpus,
                cpus * memory_per_cpu,
                generation,
                arm,
                family,
            ));
        }
    }
    Arc::new(Catalog::new(1, types))
}

#[expect(clippy::too_many_arguments, reason = "one row of a table")]
fn instance_type(
    name: &str,
    family: &str,
    size: &str,
    cpus: i64,
    memory_gib: i64,
    generation: i64,
    arm: bool,
    salt: i64,
) -> InstanceType {
    let one = |key: &str, value: &str| Requirement::new(key, Operator::In, [value]);
    let requirements = vec![
        one(key::INSTANCE_TYPE, name),
        one(key::ARCH, if arm { "arm64" } else { "amd64" }),
        one(key::OS, "linux"),
        one(key::REGION, "us-east-1"),
        Requirement::new(key::ZONE, Operator::In, ZONES),
        Requirement::new(key::CAPACITY_TYPE, Operator::In, ["spot", "on-demand"]),
        one("karpenter.k8s.aws/instance-category", &family[..1]),
        one("karpenter.k8s.aws/instance-family", family),
        one("karpenter.k8s.aws/instance-generation", &generation.to_string()),
        one("karpenter.k8s.aws/instance-size", size),
        one("karpenter.k8s.aws/instance-cpu", &cpus.to_string()),
        one("karpenter.k8s.aws/instance-memory", &(memory_gib * 1024).to_string()),
        one("karpenter.k8s.aws/instance-hypervisor", "nitro"),
        one("karpenter.k8s.aws/instance-cpu-manufacturer", if arm { "aws" } else { "intel" }),
        Requirement::new("karpenter.k8s.aws/instance-gpu-name", Operator::DoesNotExist, [""; 0]),
        Requirement::new("karpenter.k8s.aws/instance-gpu-count", Operator::DoesNotExist, [""; 0]),
    ];
    let capacity = Resources {
        cpu_milli: cpus * 1000,
        memory: memory_gib * GIB * 37 / 40,
        ephemeral_storage: 20 * GIB,
        pods: [8, 29, 58, 58, 234, 234, 234, 737, 737, 737][(cpus.ilog2() as usize).min(9)],
        ..Resources::default()
    };
    let allocatable = Resources {
        cpu_milli: capacity.cpu_milli - 80 - cpus * 2,
        memory: capacity.memory - 100 * (1 << 20) - capacity.pods * 11 * (1 << 20),
        ephemeral_storage: 18 * GIB,
        ..capacity.clone()
    };
    let on_demand = u64::try_from(cpus * 21_000 + memory_gib * 5_300 + salt * 37).unwrap_or(0);
    let offerings = ZONES
        .into_iter()
        .enumerate()
        .flat_map(|(at, zone)| {
            let discount = 30 + (u64::try_from(salt).unwrap_or(0) * 7 + at as u64 * 5) % 40;
            [(CapacityType::Spot, on_demand * discount / 100), (CapacityType::OnDemand, on_demand)].map(
                |(capacity_type, price)| Offering {
                    zone: zone.into(),
                    capacity_type,
                    price: Some(MicroUsd(price)),
                    price_estimated: false,
                    available: true,
                    labels: BTreeMap::from([("topology.k8s.aws/zone-id".into(), format!("use1-az{}", at + 1).into())]),
                    reserved_left: None,
                },
            )
        })
        .collect();
    InstanceType { name: name.into(), requirements, capacity, allocatable, offerings, ..InstanceType::default() }
}

/// Two NodePools of one class, one of them tainted, and three DaemonSets.
pub(crate) fn snapshot(pods: usize) -> Snapshot {
    let catalog = catalog();
    let class = ("karpenter.k8s.aws".into(), "EC2NodeClass".into(), "default".into());
    let pool = |name: &str, weight| NodePool {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        weight,
        requirements: vec![
            Requirement::new(key::ARCH, Operator::In, ["amd64", "arm64"]),
            Requirement::new("karpenter.k8s.aws/instance-generation", Operator::Gt, ["4"]),
        ],
        node_class: class.clone(),
        catalog: Arc::clone(&catalog),
        ..NodePool::default()
    };
    let mut batch = pool("batch", 10);
    batch.taints = vec![Taint { key: "batch".into(), value: "".into(), effect: Effect::NoSchedule }];
    let daemons = [(100, 128), (50, 64), (250, 256)].map(|(cpu_milli, mib)| {
        let requests = Resources { cpu_milli, memory: mib << 20, pods: 1, ..Resources::default() };
        let everywhere = Toleration { key: "".into(), exists: true, value: "".into(), effect: None };
        Arc::new(PodShape { requests, tolerations: vec![everywhere], ..PodShape::default() })
    });
    let shapes = shapes();
    let pending = (0..pods).map(|at| Pod {
        key: PodKey {
            namespace: "default".into(),
            name: format!("pod-{at}").into(),
            uid: format!("uid-{:06}", at * 7919 % 1_000_003).into(),
        },
        shape: Arc::clone(&shapes[at % shapes.len()]),
        created_unix_ms: 1_785_492_000_000 + i64::try_from(at % 50).unwrap_or(0),
        buffer: None,
    });
    Snapshot {
        now_unix_ms: 1_785_492_060_000,
        nodepools: vec![Arc::new(pool("default", 0)), Arc::new(batch)],
        nodes: BTreeMap::new(),
        pending: pending.collect(),
        daemons: daemons.to_vec(),
        namespaces: BTreeMap::new(),
        ..Snapshot::default()
    }
}

/// 20 shapes: 7 sizes; free, by zone, by market, by architecture, by size bound, preferred, tolerating.
fn shapes() -> Vec<Arc<PodShape>> {
    let sizes = [(100, 128), (250, 512), (500, 1024), (1000, 1024), (1000, 4096), (2000, 4096), (4000, 16384)];
    (0..20)
        .map(|at| {
            let (cpu_milli, mib) = sizes[at % sizes.len()];
            let mut shape = PodShape {
                namespace: "default".into(),
                labels: BTreeMap::from([("app".into(), format!("app-{at}").into())]),
                requests: Resources { cpu_milli, memory: mib << 20, pods: 1, ..Resources::default() },
                ..PodShape::default()
            };
            match at % 8 {
                1 => drop(shape.node_selector.insert(key::ZONE.into(), ZONES[at % 4].into())),
                2 => drop(shape.node_selector.insert(key::CAPACITY_TYPE.into(), "on-demand".into())),
                3 => drop(shape.node_selector.insert(key::ARCH.into(), "arm64".into())),
                4 => {
                    shape.required_affinity =
                        vec![vec![Requirement::new("karpenter.k8s.aws/instance-cpu", Operator::Lt, ["33"])]]
                }
                5 => {
                    shape.preferred_affinity =
                        vec![(10, vec![Requirement::new(key::ZONE, Operator::In, ["us-east-1b"])])]
                }
                6 => {
                    shape.tolerations =
                        vec![Toleration { key: "batch".into(), exists: true, value: "".into(), effect: None }]
                }
                7 => {
                    shape.required_affinity = vec![vec![
                        Requirement::new("karpenter.k8s.aws/instance-category", Operator::In, ["c", "m"]),
                        Requirement::new(key::ZONE, Operator::NotIn, ["us-east-1d"]),
                    ]]
                }
                _ => {}
            }
            Arc::new(shape)
        })
        .collect()
}

/// The same pods, each with a label of its own, as a StatefulSet's have.
pub(crate) fn labelled_apart(mut snapshot: Snapshot) -> Snapshot {
    for pod in &mut snapshot.pending {
        let mut shape = (*pod.shape).clone();
        shape.labels.insert("statefulset.kubernetes.io/pod-name".into(), Arc::clone(&pod.key.name));
        pod.shape = Arc::new(shape);
    }
    snapshot
}

/// The same pods with requests of so many sizes that hardly any two are equal.
pub(crate) fn sized_apart(mut snapshot: Snapshot, sizes: usize) -> Snapshot {
    for (at, pod) in snapshot.pending.iter_mut().enumerate() {
        let mut shape = (*pod.shape).clone();
        shape.requests.cpu_milli += i64::try_from(at % sizes).unwrap_or(0);
        pod.shape = Arc::new(shape);
    }
    snapshot
}

/// With so many nodes of four CPUs that are full but for one pod in ten.
pub(crate) fn with_nodes(mut snapshot: Snapshot, nodes: usize) -> Snapshot {
    for at in 0..nodes {
        let name: Arc<str> = format!("ip-10-0-{}-{}.ec2.internal", at / 256, at % 256).into();
        let labels = [
            (key::ZONE, ZONES[at % 4]),
            (key::ARCH, "amd64"),
            (key::OS, "linux"),
            (key::CAPACITY_TYPE, "spot"),
            (key::NODEPOOL, "default"),
            (key::HOSTNAME, &*name),
        ];
        let resources =
            |cpu_milli, gib: i64, pods| Resources { cpu_milli, memory: gib * GIB, pods, ..Resources::default() };
        let node = Node {
            node_name: Some(Arc::clone(&name)),
            node_claim: Some(Arc::clone(&name)),
            nodepool: Some("default".into()),
            labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
            capacity: resources(4000, 16, 58),
            allocatable: resources(3900, 15, 58),
            used: if at % 10 == 0 { resources(2400, 8, 9) } else { resources(3800, 14, 10) },
            daemon_used: resources(400, 0, 3),
            launched: true,
            registered: true,
            initialized: true,
            ready: true,
            name: Arc::clone(&name),
            ..Node::default()
        };
        snapshot.nodes.insert(name, Arc::new(node));
    }
    snapshot
}
