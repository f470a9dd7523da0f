//! What policies change in a plan, and what they cannot.

use super::*;
use crate::catalog::{CapacityType, Catalog, InstanceType, Offering};
use crate::nodepool::{Limits, NodePool};
use crate::pod::{Pod, PodKey, PodShape};
use crate::policy::scripted::{Scripted, dropping, type_name, zone};
use crate::policy::{COST_DROPPED, COST_UNKNOWN, NoPolicy};
use crate::quantity::{MicroUsd, Resources};
use crate::requirement::{Operator, Requirement, key};

fn resources(cpus: i64) -> Resources {
    Resources { cpu_milli: cpus * 1000, memory: cpus << 32, pods: 10, ..Resources::default() }
}

/// Types `small`, `medium`, `large` of 2, 4 and 8 CPUs in zones a and b, spot at half the price.
pub(crate) fn catalog() -> Arc<Catalog> {
    let of_type = |(name, cpus): (&str, i64)| {
        let offering = |zone: &str, capacity_type, price: i64| Offering {
            zone: zone.into(),
            capacity_type,
            price: Some(MicroUsd(price.unsigned_abs())),
            price_estimated: false,
            available: true,
            labels: Default::default(),
            reserved_left: None,
        };
        let price = cpus * 50_000;
        InstanceType {
            name: name.into(),
            requirements: vec![
                Requirement::new(key::ARCH, Operator::In, ["amd64"]),
                Requirement::new(key::ZONE, Operator::In, ["a", "b"]),
            ],
            capacity: resources(cpus),
            allocatable: resources(cpus),
            offerings: ["a", "b"]
                .into_iter()
                .flat_map(|zone| {
                    [offering(zone, CapacityType::Spot, price / 2), offering(zone, CapacityType::OnDemand, price)]
                })
                .collect(),
            ..InstanceType::default()
        }
    };
    Arc::new(Catalog::new(7, [("small", 2), ("medium", 4), ("large", 8)].map(of_type).to_vec()))
}

pub(crate) fn pool(name: &str) -> NodePool {
    NodePool {
        name: name.into(),
        node_class: ("karpenter.k8s.aws".into(), "EC2NodeClass".into(), "default".into()),
        catalog: catalog(),
        ..NodePool::default()
    }
}

pub(crate) fn pods(count: usize, shape: &PodShape) -> Vec<Pod> {
    let shape = Arc::new(shape.clone());
    let pod = |at: usize| Pod {
        key: PodKey { namespace: "default".into(), name: format!("p{at}").into(), uid: format!("u{at}").into() },
        shape: Arc::clone(&shape),
        created_unix_ms: 0,
        buffer: None,
    };
    (0..count).map(pod).collect()
}

pub(crate) fn one_cpu() -> PodShape {
    PodShape { requests: Resources { cpu_milli: 1000, pods: 1, ..Resources::default() }, ..PodShape::default() }
}

pub(crate) fn snapshot(pools: Vec<NodePool>, pending: Vec<Pod>) -> Snapshot {
    Snapshot { nodepools: pools.into_iter().map(Arc::new).collect(), pending, ..Snapshot::default() }
}

fn first_choice(schedule: &Schedule) -> (String, String) {
    let cheapest = schedule.claims[0].cheapest.as_ref().unwrap();
    (cheapest.instance_type.to_string(), cheapest.zone.to_string())
}

#[test]
fn every_hook_is_asked_once_with_equal_rows_folded() {
    let policy = Scripted::default();
    let full =
        PodShape { requests: Resources { cpu_milli: 8000, pods: 1, ..Resources::default() }, ..PodShape::default() };
    let result = schedule(&snapshot(vec![pool("one"), pool("two")], pods(5, &full)), &Options::default(), &policy);
    assert_eq!(result.claims.len(), 5);
    let calls = policy.calls.lock().unwrap().clone();
    assert_eq!(calls, [("evaluate", 2), ("admit-pods", 1), ("admit-claims", 1), ("evaluate", 1)]);
    assert_eq!(result.policy_faults, ["scripted: nothing went wrong"]);
}

#[test]
fn without_policies_the_list_price_decides() {
    let result = schedule(&snapshot(vec![pool("one")], pods(2, &one_cpu())), &Options::default(), &NoPolicy);
    assert_eq!(first_choice(&result), ("small".into(), "a".into()));
    assert_eq!(result.claims[0].cheapest.as_ref().unwrap().price, Some(MicroUsd(50_000)));
}

#[test]
fn a_scorer_changes_the_order_of_types() {
    let reversed = Scripted {
        score: Some(Box::new(|_, _, _, base| base.into_iter().map(|cost| 1_000_000 - cost).collect())),
        ..Scripted::default()
    };
    let result = schedule(&snapshot(vec![pool("one")], pods(2, &one_cpu())), &Options::default(), &reversed);
    let list = result.claims[0].requirements.iter().find(|one| &*one.key == key::INSTANCE_TYPE).unwrap();
    assert_eq!(list.values.iter().map(|name| &**name).collect::<Vec<_>>(), ["large", "medium", "small"]);
    assert_eq!(result.claims[0].cheapest.as_ref().unwrap().effective_cost, Some(600_000));
}

#[test]
fn a_zone_discount_wins_its_zone() {
    let discount = Scripted {
        score: Some(Box::new(|catalog, claims, candidates, base| {
            let members = (0..claims.count.len()).flat_map(|row| candidates.row(row));
            members
                .zip(base)
                .map(|(offering, cost)| if zone(catalog, *offering) == "b" { cost / 2 } else { cost })
                .collect()
        })),
        ..Scripted::default()
    };
    let result = schedule(&snapshot(vec![pool("one")], pods(2, &one_cpu())), &Options::default(), &discount);
    assert_eq!(first_choice(&result), ("small".into(), "b".into()));
}

#[test]
fn a_filter_on_pods_removes_offerings_before_placing() {
    let no_large = Scripted {
        pods: Some(Box::new(|catalog, _, candidates| {
            dropping(candidates, |_, offering| {
                type_name(catalog, offering) == "large" || zone(catalog, offering) == "a"
            })
        })),
        ..Scripted::default()
    };
    // Eight CPUs would fit one large node; without it they need two.
    let result = schedule(&snapshot(vec![pool("one")], pods(8, &one_cpu())), &Options::default(), &no_large);
    assert_eq!(result.claims.len(), 2);
    assert_eq!(first_choice(&result), ("medium".into(), "b".into()));
}

#[test]
fn a_filter_that_leaves_a_pod_nothing_is_its_reason() {
    let nothing =
        Scripted { pods: Some(Box::new(|_, _, candidates| dropping(candidates, |_, _| true))), ..Scripted::default() };
    let result = schedule(&snapshot(vec![pool("one")], pods(1, &one_cpu())), &Options::default(), &nothing);
    assert!(result.claims.is_empty());
    let why = result.unplaced[0].1.to_string();
    assert_eq!(why, "NodePool one: none of 3 instance types is left: 3 removed by a policy");
}

#[test]
fn a_filter_that_says_why_is_quoted() {
    let licence = Scripted {
        pods: Some(Box::new(|_, _, candidates| {
            let mut verdict = dropping(candidates, |_, _| true)?;
            verdict.reasons = vec!["".to_owned(), "no licence for so many cores".to_owned()];
            verdict.reason = vec![1; verdict.dropped.member.len()];
            Some(verdict)
        })),
        ..Scripted::default()
    };
    let result = schedule(&snapshot(vec![pool("one")], pods(1, &one_cpu())), &Options::default(), &licence);
    let why = result.unplaced[0].1.to_string();
    assert_eq!(why, "NodePool one: a policy removed the 3 instance types that were left: no licence for so many cores");
}

#[test]
fn requests_of_other_resources_travel_as_columns_by_name() {
    let fpga = Scripted {
        pods: Some(Box::new(|_, pods, _| {
            let names: Vec<&str> = pods.extra.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(names, ["ephemeral-storage", "example.com/fpga"]);
            assert_eq!(pods.extra[1].values, crate::policy::Column::U64(vec![2, 0]));
            None
        })),
        ..Scripted::default()
    };
    let mut shape = one_cpu();
    shape.requests.cpu_milli = 1500;
    shape.requests.set("example.com/fpga", 2);
    shape.requests.ephemeral_storage = 1;
    let mut pending = pods(1, &one_cpu());
    pending.extend(pods(1, &shape).into_iter().map(|pod| Pod { key: PodKey { uid: "f".into(), ..pod.key }, ..pod }));
    let result = schedule(&snapshot(vec![pool("one")], pending), &Options::default(), &fpga);
    assert_eq!(result.unplaced.len(), 1);
}

#[test]
fn a_claim_that_filters_leave_nothing_is_placed_anew_without_what_was_removed() {
    let no_pool_one = Scripted {
        claims: Some(Box::new(|catalog, claims, candidates| {
            let first =
                |row: usize| catalog.symbols[catalog.nodepools.name[claims.nodepool[row] as usize] as usize] == "one";
            dropping(candidates, |row, _| first(row))
        })),
        ..Scripted::default()
    };
    let mut one = pool("one");
    one.weight = 10;
    let two = NodePool { catalog: catalog(), ..pool("two") };
    let result = schedule(&snapshot(vec![one.clone(), two], pods(3, &one_cpu())), &Options::default(), &no_pool_one);
    assert_eq!(result.claims.iter().map(|claim| &*claim.nodepool).collect::<Vec<_>>(), ["two"]);
    assert!(result.unplaced.is_empty());
    // Alone there is no other way: the pods are reported and nothing is launched.
    let result = schedule(&snapshot(vec![one], pods(3, &one_cpu())), &Options::default(), &no_pool_one);
    assert!(result.claims.is_empty());
    assert_eq!(result.unplaced.len(), 3);
    assert!(result.unplaced[0].1.to_string().contains("removed by a policy"), "{}", result.unplaced[0].1);
}

#[test]
fn a_scorer_can_drop_and_rank_as_unknown() {
    let drop_small = Scripted {
        score: Some(Box::new(|catalog, claims, candidates, base| {
            let members = (0..claims.count.len()).flat_map(|row| candidates.row(row));
            let cost = |(offering, cost): (&u32, i64)| match type_name(catalog, *offering) {
                "small" => COST_DROPPED,
                "medium" => COST_UNKNOWN,
                _ => cost,
            };
            members.zip(base).map(cost).collect()
        })),
        ..Scripted::default()
    };
    let result = schedule(&snapshot(vec![pool("one")], pods(1, &one_cpu())), &Options::default(), &drop_small);
    let list = result.claims[0].requirements.iter().find(|one| &*one.key == key::INSTANCE_TYPE).unwrap();
    assert_eq!(list.values.iter().map(|name| &**name).collect::<Vec<_>>(), ["large", "medium"]);
}

#[test]
fn a_policy_can_make_nothing_fit_that_does_not() {
    // Answers of the wrong shape, with ids that do not exist, and prices below zero.
    let wild = Scripted {
        pods: Some(Box::new(|_, _, _| dropping(&crate::policy::Choices::default(), |_, _| true))),
        claims: Some(Box::new(|_, _, _| {
            let mut dropped = crate::policy::Groups::default();
            dropped.push([u32::MAX, 999_999]);
            Some(crate::policy::Verdict { dropped, ..crate::policy::Verdict::default() })
        })),
        score: Some(Box::new(|_, _, _, _| vec![-5])),
        ..Scripted::default()
    };
    let huge =
        PodShape { requests: Resources { cpu_milli: 9000, pods: 1, ..Resources::default() }, ..PodShape::default() };
    let mut pending = pods(2, &one_cpu());
    pending.extend(pods(1, &huge).into_iter().map(|pod| Pod { key: PodKey { uid: "h".into(), ..pod.key }, ..pod }));
    let world = snapshot(vec![pool("one")], pending);
    let result = schedule(&world, &Options::default(), &wild);
    let plain = schedule(&world, &Options::default(), &NoPolicy);
    assert_eq!((&result.claims, &result.unplaced), (&plain.claims, &plain.unplaced));
    assert_eq!(result.unplaced.len(), 1);
}

#[test]
fn groups_are_told_apart_by_labels_that_a_policy_reads() {
    let mut a = one_cpu();
    a.labels.insert("licence".into(), "yes".into());
    let mut pending = pods(1, &one_cpu());
    pending.extend(pods(1, &a).into_iter().map(|pod| Pod { key: PodKey { uid: "a".into(), ..pod.key }, ..pod }));
    for (keys, groups) in [(vec![], 1), (vec!["licence".to_owned()], 2)] {
        let policy = Scripted { label_keys: keys, ..Scripted::default() };
        let _ = schedule(&snapshot(vec![pool("one")], pending.clone()), &Options::default(), &policy);
        assert!(policy.calls.lock().unwrap().contains(&("admit-pods", groups)));
    }
}

#[test]
fn nothing_pending_asks_nobody() {
    let policy = Scripted::default();
    let result = schedule(&snapshot(vec![pool("one")], Vec::new()), &Options::default(), &policy);
    assert_eq!(result, Schedule::default());
    assert!(policy.calls.lock().unwrap().is_empty());
}

/// A NodePool that wishes for three instance types.
fn choosy(limits: Limits) -> NodePool {
    let wish = Requirement { min_values: Some(3), ..Requirement::new(key::INSTANCE_TYPE, Operator::Exists, [""; 0]) };
    NodePool { requirements: vec![wish], limits, ..pool("one") }
}

#[test]
fn best_effort_min_values_keep_no_pod_pending() {
    let options = Options { min_values_best_effort: true, ..Options::default() };
    let one_node = Limits { nodes: Some(1), ..Limits::default() };
    let four_cpus = Limits { resources: [("cpu".into(), 4000)].into(), nodes: None };
    for limits in [one_node, four_cpus] {
        let snapshot = snapshot(vec![choosy(limits)], pods(3, &one_cpu()));
        let plan = schedule(&snapshot, &options, &NoPolicy);
        assert!(plan.unplaced.is_empty(), "{:?}", plan.unplaced);
        let [claim] = &plan.claims[..] else { panic!("{:?}", plan.claims) };
        let list = claim.requirements.iter().find(|one| &*one.key == key::INSTANCE_TYPE).unwrap();
        assert_eq!(list.min_values, Some(u32::try_from(list.values.len()).unwrap()));
        assert_eq!(
            claim.annotations.get("karpenter.sh/nodeclaim-min-values-relaxed").map(|text| &**text),
            Some("true")
        );
        assert!(!schedule(&snapshot, &Options::default(), &NoPolicy).unplaced.is_empty());
    }
    // While there is another way the wish is kept.
    let plan = schedule(&snapshot(vec![choosy(Limits::default())], pods(3, &one_cpu())), &options, &NoPolicy);
    assert_eq!(plan.claims.len(), 2);
}
