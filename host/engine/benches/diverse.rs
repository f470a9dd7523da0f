//! Pods that look at one another: Karpenter's own benchmark (mix of five kinds over 400 types of one size step each), and
//! inputs that are heavier on topology.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::{CapacityType, Catalog, InstanceType, Offering};
use mortise_engine::node::{Node, NodePod};
use mortise_engine::nodepool::NodePool;
use mortise_engine::pod::{Pod, PodKey, PodShape, PodTerm, Spread};
use mortise_engine::quantity::{MicroUsd, Resources};
use mortise_engine::requirement::{Operator, Requirement, key};
use mortise_engine::selector::LabelSelector;
use mortise_engine::snapshot::Snapshot;

const GIB: i64 = 1 << 30;
const ZONES: [&str; 3] = ["test-zone-1", "test-zone-2", "test-zone-3"];

/// A linear congruential sequence: the same numbers everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % sides
    }
}

/// Types of 1 to 400 CPUs with 2 GiB each, on spot in two zones and on demand in three.
fn catalog() -> Arc<Catalog> {
    let of_type = |at: i64| {
        let capacity = Resources { cpu_milli: at * 1000, memory: at * 2 * GIB, pods: at * 10, ..Resources::default() };
        let price = u64::try_from(at * 100_000 + at * 2 * GIB / 10_000).unwrap_or(0);
        let offering = |zone: &str, capacity_type| Offering {
            zone: zone.into(),
            capacity_type,
            price: Some(MicroUsd(price)),
            price_estimated: false,
            available: true,
            labels: BTreeMap::new(),
            reserved_left: None,
        };
        let large = at > 4;
        InstanceType {
            name: format!("fake-it-{at:03}").into(),
            requirements: vec![
                Requirement::new(key::ARCH, Operator::In, ["amd64"]),
                Requirement::new(key::OS, Operator::In, ["linux", "windows", "darwin"]),
                Requirement::new(key::ZONE, Operator::In, ZONES),
                Requirement::new(key::CAPACITY_TYPE, Operator::In, ["spot", "on-demand"]),
                Requirement::new("size", Operator::In, [if large { "large" } else { "small" }]),
                Requirement::new("integer", Operator::In, [at.to_string()]),
            ],
            allocatable: Resources {
                cpu_milli: capacity.cpu_milli - 100,
                memory: capacity.memory - (10 << 20),
                ..capacity.clone()
            },
            capacity,
            offerings: ZONES
                .iter()
                .take(2)
                .map(|zone| offering(zone, CapacityType::Spot))
                .chain(ZONES.iter().map(|zone| offering(zone, CapacityType::OnDemand)))
                .collect(),
            ..InstanceType::default()
        }
    };
    Arc::new(Catalog::new(1, (1..=400).map(of_type).collect()))
}

fn sized(dice: &mut Dice) -> PodShape {
    let cpu_milli = [100, 250, 500, 1000, 1500][dice.roll(5)];
    let memory = [100_i64, 256, 512, 1024, 2048, 4096][dice.roll(6)] << 20;
    PodShape {
        namespace: "default".into(),
        requests: Resources { cpu_milli, memory, pods: 1, ..Resources::default() },
        ..PodShape::default()
    }
}

fn letter(dice: &mut Dice) -> Arc<str> {
    ["a", "b", "c", "d", "e", "f", "g"][dice.roll(7)].into()
}

fn selecting(key: &str, value: &str) -> Option<LabelSelector> {
    Some(LabelSelector::labels([(key, value)]))
}

fn labelled(mut shape: PodShape, key: &str, value: &Arc<str>) -> PodShape {
    shape.labels.insert(key.into(), Arc::clone(value));
    shape
}

fn spread(topology_key: &str, key: &str, value: &str) -> Spread {
    Spread { topology_key: topology_key.into(), max_skew: 1, selector: selecting(key, value), ..Spread::default() }
}

fn term(topology_key: &str, key: &str, value: &str) -> PodTerm {
    PodTerm { topology_key: topology_key.into(), selector: selecting(key, value), ..PodTerm::default() }
}

/// Kind of the `at`-th of `count` pods: 0 generic, 1 zone spread, 2 hostname spread, 3 zone affinity, 4 hostname
/// anti-affinity.
fn kind(at: usize, count: usize) -> usize {
    let fifth = (count / 5).max(1);
    if at / fifth < 5 { at / fifth } else { 0 }
}

fn diverse_shape(kind: usize, dice: &mut Dice) -> PodShape {
    match kind {
        1 | 2 => {
            let (own, other) = (letter(dice), letter(dice));
            let mut shape = labelled(sized(dice), "my-label", &own);
            shape.spread = vec![spread(if kind == 1 { key::ZONE } else { key::HOSTNAME }, "my-label", &other)];
            shape
        }
        3 => {
            let own = letter(dice);
            let mut shape = labelled(sized(dice), "my-affininity", &own);
            shape.pod_affinity = vec![term(key::ZONE, "my-affininity", &own)];
            shape
        }
        4 => {
            let mut shape = labelled(sized(dice), "app", &"nginx".into());
            shape.pod_anti_affinity = vec![term(key::HOSTNAME, "app", "nginx")];
            shape
        }
        _ => {
            let own = letter(dice);
            labelled(sized(dice), "my-label", &own)
        }
    }
}

fn world(shapes: impl Iterator<Item = PodShape>, dice: &mut Dice) -> Snapshot {
    let mut known: BTreeMap<PodShape, Arc<PodShape>> = BTreeMap::new();
    let pending = shapes
        .enumerate()
        .map(|(at, shape)| {
            let shape = Arc::clone(known.entry(shape.clone()).or_insert_with(|| Arc::new(shape)));
            let key = PodKey {
                namespace: "default".into(),
                name: format!("pod-{at}").into(),
                uid: format!("{:08x}-{at}", dice.roll(1 << 30)).into(),
            };
            Pod { key, shape, created_unix_ms: 1_785_492_000_000 + i64::try_from(at / 1000).unwrap_or(0), buffer: None }
        })
        .collect();
    let pool = NodePool {
        name: "default".into(),
        uid: "uid-default".into(),
        node_class: ("karpenter.k8s.aws".into(), "EC2NodeClass".into(), "default".into()),
        catalog: catalog(),
        ..NodePool::default()
    };
    Snapshot { now_unix_ms: 1_785_492_060_000, nodepools: vec![Arc::new(pool)], pending, ..Snapshot::default() }
}

/// Karpenter's own mix.
pub(crate) fn diverse(count: usize) -> Snapshot {
    let mut dice = Dice(42);
    let shapes: Vec<PodShape> = (0..count).map(|at| diverse_shape(kind(at, count), &mut dice)).collect();
    world(shapes.into_iter(), &mut dice)
}

/// Deployments of ten pods, each with zone and hostname spread, every third with affinity to another one as well and
/// every fourth with zonal anti-affinity to a third one.
pub(crate) fn spread_heavy(count: usize) -> Snapshot {
    let mut dice = Dice(7);
    let deployments = count.div_ceil(10);
    let bases: Vec<PodShape> = (0..deployments).map(|_| sized(&mut dice)).collect();
    let shapes = (0..count).map(|at| {
        let deployment = at / 10;
        let app: Arc<str> = format!("app-{deployment}").into();
        let mut shape = labelled(bases[deployment].clone(), "app", &app);
        shape.spread = vec![spread(key::ZONE, "app", &app), spread(key::HOSTNAME, "app", &app)];
        if deployment % 3 == 1 {
            shape.spread.truncate(1);
            shape.pod_affinity = vec![term(key::ZONE, "app", &format!("app-{}", deployment - 1))];
        }
        if deployment % 4 == 2 {
            shape.pod_anti_affinity = vec![term(key::HOSTNAME, "app", &format!("app-{}", deployment - 1))];
        }
        shape
    });
    world(shapes.collect::<Vec<_>>().into_iter(), &mut dice)
}

/// So many pods with hardly two of one shape, in Karpenter's mix.
pub(crate) fn distinct(count: usize) -> Snapshot {
    let mut snapshot = diverse(count);
    for (at, pod) in snapshot.pending.iter_mut().enumerate() {
        let mut shape = (*pod.shape).clone();
        shape.requests.cpu_milli += i64::try_from(at % 5000).unwrap_or(0);
        pod.shape = Arc::new(shape);
    }
    snapshot
}

/// Beside `nodes` nodes with ten running pods each of the mix.
pub(crate) fn beside(mut snapshot: Snapshot, nodes: usize) -> Snapshot {
    let mut dice = Dice(99);
    let shapes: Vec<Arc<PodShape>> = (0..500).map(|at| Arc::new(diverse_shape(at % 5, &mut dice))).collect();
    for at in 0..nodes {
        let name: Arc<str> = format!("ip-10-0-{}-{}.ec2.internal", at / 256, at % 256).into();
        let labels = [
            (key::ZONE, ZONES[at % 3]),
            (key::ARCH, "amd64"),
            (key::OS, "linux"),
            (key::CAPACITY_TYPE, "on-demand"),
            (key::NODEPOOL, "default"),
            (key::HOSTNAME, &*name),
        ];
        let resources =
            |cpu_milli, gib: i64, pods| Resources { cpu_milli, memory: gib * GIB, pods, ..Resources::default() };
        let pods = (0..10).map(|pod| NodePod {
            key: PodKey {
                namespace: "default".into(),
                name: format!("running-{at}-{pod}").into(),
                uid: format!("running-{at}-{pod}").into(),
            },
            shape: Arc::clone(&shapes[dice.roll(shapes.len())]),
            ..NodePod::default()
        });
        let node = Node {
            node_name: Some(Arc::clone(&name)),
            node_claim: Some(Arc::clone(&name)),
            nodepool: Some("default".into()),
            labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
            capacity: resources(8000, 16, 80),
            allocatable: resources(7900, 15, 80),
            used: if at % 10 == 0 { resources(4400, 8, 10) } else { resources(7700, 14, 10) },
            pods: pods.collect(),
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
