//! Random small worlds: few values, so that they meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::{CapacityType, Catalog, InstanceType, Offering};
use mortise_engine::node::{Node, NodePod};
use mortise_engine::nodepool::{Limits, NodePool};
use mortise_engine::pod::{Pod, PodKey, PodShape, PodTerm, Spread};
use mortise_engine::quantity::{MicroUsd, Resources};
use mortise_engine::requirement::{Operator, Requirement, key};
use mortise_engine::selector::LabelSelector;
use mortise_engine::snapshot::Snapshot;
use mortise_engine::taint::{Effect, Taint, Toleration};
use proptest::collection::{btree_map, vec};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;

const GIB: i64 = 1 << 30;
const ZONES: [&str; 3] = ["a", "b", "c"];

fn amount(cpu_milli: i64, gib: i64, pods: i64) -> Resources {
    Resources { cpu_milli, memory: gib * GIB, pods, ..Resources::default() }
}

fn offering() -> impl Strategy<Value = Offering> {
    (select(&ZONES[..]), any::<bool>(), weighted(0.9, 1..100_u64), proptest::bool::weighted(0.85)).prop_map(
        |(zone, spot, price, available)| Offering {
            zone: zone.into(),
            capacity_type: if spot { CapacityType::Spot } else { CapacityType::OnDemand },
            price: price.map(MicroUsd),
            price_estimated: false,
            available,
            labels: BTreeMap::new(),
            reserved_left: None,
        },
    )
}

fn instance_type(at: usize) -> impl Strategy<Value = InstanceType> {
    (1..9_i64, 1..9_i64, 2..6_i64, any::<bool>(), 3..6_i64, vec(offering(), 1..5)).prop_map(
        move |(cpus, gib, pods, arm, generation, mut offerings)| {
            offerings.sort_by(|a, b| (&a.zone, a.capacity_type).cmp(&(&b.zone, b.capacity_type)));
            offerings.dedup_by(|a, b| (&a.zone, a.capacity_type) == (&b.zone, b.capacity_type));
            let name = format!("type-{at}");
            let zones: Vec<Arc<str>> = offerings.iter().map(|offering| Arc::clone(&offering.zone)).collect();
            InstanceType {
                requirements: vec![
                    Requirement::new(key::ARCH, Operator::In, [if arm { "arm64" } else { "amd64" }]),
                    Requirement::new(key::ZONE, Operator::In, zones),
                    Requirement::new("generation", Operator::In, [generation.to_string()]),
                ],
                name: name.into(),
                capacity: amount(cpus * 1000, gib, pods),
                allocatable: amount(cpus * 1000 - 100, gib, pods),
                offerings,
                ..InstanceType::default()
            }
        },
    )
}

fn catalog() -> impl Strategy<Value = Arc<Catalog>> {
    (1..8_usize)
        .prop_flat_map(|count| (0..count).map(instance_type).collect::<Vec<_>>())
        .prop_map(|types| Arc::new(Catalog::new(1, types)))
}

fn requirement() -> impl Strategy<Value = Requirement> {
    prop_oneof![
        vec(select(&ZONES[..]), 1..3).prop_map(|zones| Requirement::new(key::ZONE, Operator::In, zones)),
        select(&ZONES[..]).prop_map(|zone| Requirement::new(key::ZONE, Operator::NotIn, [zone])),
        select(&["amd64", "arm64"][..]).prop_map(|arch| Requirement::new(key::ARCH, Operator::In, [arch])),
        select(&["spot", "on-demand"][..]).prop_map(|market| Requirement::new(
            key::CAPACITY_TYPE,
            Operator::In,
            [market]
        )),
        (select(&[Operator::Gt, Operator::Lt, Operator::Gte, Operator::Lte][..]), 3..6_i64)
            .prop_map(|(operator, value)| Requirement::new("generation", operator, [value.to_string()])),
        (select(&[Operator::In, Operator::NotIn][..]), select(&["x", "y"][..]))
            .prop_map(|(operator, value)| Requirement::new("team", operator, [value])),
        select(&[Operator::Exists, Operator::DoesNotExist][..])
            .prop_map(|operator| Requirement::new("team", operator, [""; 0])),
    ]
}

fn pool(name: &'static str) -> impl Strategy<Value = NodePool> {
    let limits = (weighted(0.4, 2..30_i64), weighted(0.2, 1..6_i64)).prop_map(|(cpu, nodes)| Limits {
        resources: cpu.into_iter().map(|cpu| ("cpu".into(), cpu * 1000)).collect(),
        nodes,
    });
    let requirements = (vec(requirement(), 0..2), weighted(0.2, 1..4_u32)).prop_map(|(mut list, minimum)| {
        if let Some(minimum) = minimum {
            list.push(Requirement {
                min_values: Some(minimum),
                ..Requirement::new(key::INSTANCE_TYPE, Operator::Exists, [""; 0])
            });
        }
        list
    });
    let labels = weighted(0.4, select(&["x", "y"][..]));
    (0..3_i32, requirements, labels, weighted(0.3, any::<bool>()), limits).prop_map(
        move |(weight, requirements, team, taint, limits)| NodePool {
            name: name.into(),
            weight,
            requirements,
            labels: team.into_iter().map(|team| ("team".into(), team.into())).collect(),
            taints: taint
                .into_iter()
                .map(|soft| Taint {
                    key: "taint".into(),
                    value: "".into(),
                    effect: if soft { Effect::PreferNoSchedule } else { Effect::NoSchedule },
                })
                .collect(),
            limits,
            node_class: ("karpenter.k8s.aws".into(), "EC2NodeClass".into(), "default".into()),
            ..NodePool::default()
        },
    )
}

fn shape() -> impl Strategy<Value = PodShape> {
    let requests =
        (select(&[100_i64, 500, 1000, 1900, 4000, 12_000][..]), 0..4_i64).prop_map(|(cpu, gib)| amount(cpu, gib, 1));
    let selector = btree_map(select(&["team", key::ZONE][..]), select(&["x", "a", "b"][..]), 0..2);
    let tolerate = proptest::bool::weighted(0.4);
    let terms = || vec(vec(requirement(), 1..3), 0..3);
    (requests, proptest::option::weighted(0.3, selector), terms(), terms(), tolerate).prop_map(
        |(requests, selector, required, preferred, tolerate)| PodShape {
            requests,
            node_selector: selector
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
            required_affinity: required,
            preferred_affinity: preferred
                .into_iter()
                .enumerate()
                .map(|(at, term)| (i32::try_from(at).unwrap(), term))
                .collect(),
            tolerations: if tolerate {
                vec![Toleration { key: "taint".into(), exists: true, value: "".into(), effect: None }]
            } else {
                Vec::new()
            },
            ..PodShape::default()
        },
    )
}

/// Two applications, so that selectors meet pods.
fn app() -> impl Strategy<Value = Option<&'static str>> {
    weighted(0.7, select(&["web", "db"][..]))
}

fn topology_key() -> impl Strategy<Value = &'static str> {
    select(&[key::ZONE, key::HOSTNAME, key::CAPACITY_TYPE, key::ARCH, "team", "nowhere"][..])
}

fn selector() -> impl Strategy<Value = Option<LabelSelector>> {
    weighted(0.95, select(&["web", "db"][..]).prop_map(|app| LabelSelector::labels([("app", app)])))
}

fn spread() -> impl Strategy<Value = Spread> {
    let policies = (any::<bool>(), proptest::bool::weighted(0.2), proptest::bool::weighted(0.2));
    (topology_key(), selector(), 1..3_u32, weighted(0.2, 1..4_u32), policies).prop_map(
        |(
            topology_key,
            selector,
            max_skew,
            min_domains,
            (schedule_anyway, ignore_node_affinity, honor_node_taints),
        )| {
            Spread {
                topology_key: topology_key.into(),
                max_skew,
                schedule_anyway,
                selector,
                min_domains,
                ignore_node_affinity,
                honor_node_taints,
            }
        },
    )
}

fn term() -> impl Strategy<Value = PodTerm> {
    (topology_key(), selector(), proptest::bool::weighted(0.1)).prop_map(|(topology_key, selector, everywhere)| {
        PodTerm {
            topology_key: topology_key.into(),
            selector,
            namespaces: Vec::new(),
            namespace_selector: everywhere.then(LabelSelector::default),
        }
    })
}

/// A shape with constraints about other pods.
fn social_shape() -> impl Strategy<Value = PodShape> {
    let spreads = prop_oneof![2 => Just(Vec::new()), 1 => vec(spread(), 1..3)];
    let terms = || prop_oneof![3 => Just(Vec::new()), 1 => vec(term(), 1..3)];
    let preferred = || prop_oneof![3 => Just(Vec::new()), 1 => vec((1..5_i32, term()), 1..3)];
    (shape(), app(), spreads, terms(), terms(), preferred(), preferred()).prop_map(
        |(shape, app, spread, pod_affinity, pod_anti_affinity, preferred_pod_affinity, preferred_pod_anti_affinity)| {
            PodShape {
                namespace: "default".into(),
                labels: app.into_iter().map(|app| ("app".into(), app.into())).collect(),
                spread,
                pod_affinity,
                pod_anti_affinity,
                preferred_pod_affinity,
                preferred_pod_anti_affinity,
                ..shape
            }
        },
    )
}

/// Small worlds whose pods look at one another, running ones among them.
pub(crate) fn social() -> impl Strategy<Value = Snapshot> {
    (snapshot(), vec(social_shape(), 12), vec(social_shape(), 4)).prop_map(|(mut snapshot, shapes, running)| {
        let mut by_old: BTreeMap<*const PodShape, usize> = BTreeMap::new();
        let shapes: Vec<Arc<PodShape>> = shapes.into_iter().map(Arc::new).collect();
        for pod in &mut snapshot.pending {
            let next = by_old.len();
            let at = *by_old.entry(Arc::as_ptr(&pod.shape)).or_insert(next);
            pod.shape = Arc::clone(&shapes[at % shapes.len()]);
        }
        for ((at, node), shape) in snapshot.nodes.values_mut().enumerate().zip(&running) {
            let node = Arc::make_mut(node);
            let key = PodKey {
                namespace: "default".into(),
                name: format!("running-{at}").into(),
                uid: format!("running-{at}").into(),
            };
            if !node.deleting {
                node.pods.push(NodePod { key, shape: Arc::new(shape.clone()), ..NodePod::default() });
            }
        }
        snapshot
    })
}

fn node(at: usize) -> impl Strategy<Value = Node> {
    let labels = (select(&ZONES[..]), select(&["amd64", "arm64"][..]), weighted(0.4, select(&["x", "y"][..])));
    (labels, 1..9_i64, 0..4_i64, any::<bool>(), weighted(0.6, select(&["p0", "p1"][..])), proptest::bool::weighted(0.1))
        .prop_map(move |((zone, arch, team), cpus, used, initialized, pool, deleting)| {
            let name: Arc<str> = format!("node-{at}").into();
            let mut labels =
                BTreeMap::from([(Arc::from(key::ZONE), Arc::from(zone)), (Arc::from(key::ARCH), Arc::from(arch))]);
            labels.extend(team.map(|team| (Arc::from("team"), Arc::from(team))));
            Node {
                node_name: Some(Arc::clone(&name)),
                node_claim: pool.map(|_| Arc::clone(&name)),
                name,
                nodepool: pool.map(Into::into),
                labels,
                capacity: amount(cpus * 1000, 8, 6),
                allocatable: amount(cpus * 1000, 8, 6),
                used: amount(used * 500, used, used),
                launched: true,
                registered: true,
                initialized,
                ready: true,
                deleting,
                ..Node::default()
            }
        })
}

pub(crate) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let pods = vec((shape(), 1..8_usize), 0..6);
    let pools = (pool("p0"), pool("p1"), proptest::option::of(pool("p2")));
    let nodes = (0..4_usize).prop_flat_map(|count| (0..count).map(node).collect::<Vec<_>>());
    let daemon = weighted(0.5, (0..500_i64).prop_map(|cpu| amount(cpu, 0, 1)));
    (catalog(), pools, pods, nodes, daemon, vec(0..5_i64, 64)).prop_map(
        |(catalog, (p0, p1, p2), pods, nodes, daemon, ages)| {
            let mut pending = Vec::new();
            for (row, (shape, count)) in pods.into_iter().enumerate() {
                let shape = Arc::new(shape);
                for at in 0..count {
                    let name = format!("pod-{row}-{at}");
                    pending.push(Pod {
                        key: PodKey { namespace: "default".into(), name: name.as_str().into(), uid: name.into() },
                        shape: Arc::clone(&shape),
                        created_unix_ms: ages[(row * 8 + at) % ages.len()],
                        buffer: None,
                    });
                }
            }
            let everywhere = Toleration { key: "".into(), exists: true, value: "".into(), effect: None };
            let daemon = daemon
                .map(|requests| Arc::new(PodShape { requests, tolerations: vec![everywhere], ..PodShape::default() }));
            let with_catalog = |pool: NodePool| Arc::new(NodePool { catalog: Arc::clone(&catalog), ..pool });
            Snapshot {
                now_unix_ms: 1_785_492_000_000,
                nodepools: [Some(p0), Some(p1), p2].into_iter().flatten().map(with_catalog).collect(),
                nodes: nodes.into_iter().map(|node| (Arc::clone(&node.name), Arc::new(node))).collect(),
                pending,
                daemons: daemon.into_iter().collect(),
                namespaces: BTreeMap::new(),
                ..Snapshot::default()
            }
        },
    )
}
