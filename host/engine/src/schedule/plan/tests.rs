//! Which proposals stand, and that none breaks a rule.

use proptest::prelude::*;

use crate::catalog::CapacityType;
use crate::decision::{PlanVerdict, Schedule};
use crate::pod::{PodShape, PodTerm, Spread};
use crate::policy::scripted::Scripted;
use crate::policy::{Groups, PlanProblem, Pods, Proposal};
use crate::requirement::key;
use crate::schedule::schedule;
use crate::schedule::tests::{one_cpu, pods, pool, snapshot};
use crate::selector::LabelSelector;
use crate::snapshot::{Options, Snapshot};

/// A node: slots, and groups with pods.
type Node<'a> = (&'a [u32], &'a [(u32, u32)]);

fn proposal(nodes: &[Node<'_>]) -> Proposal {
    let mut out = Proposal::default();
    for (slots, pods) in nodes {
        out.slots.push(slots.iter().copied());
        out.pod_group.push(pods.iter().map(|(group, _)| *group));
        out.pod_count.extend(pods.iter().map(|(_, count)| *count));
    }
    out
}

/// The first slot at this cost.
fn slot(problem: &PlanProblem, cost: i64) -> u32 {
    crate::symbol::id_of(problem.slots.cost.iter().position(|own| *own == cost).unwrap())
}

fn planned(world: &Snapshot, plan: impl Fn(&Pods, &PlanProblem) -> Proposal + Send + Sync + 'static) -> Schedule {
    let policy =
        Scripted { plan: Some(Box::new(move |pods, problem| Some(plan(pods, problem)))), ..Scripted::default() };
    schedule(world, &Options::default(), &policy)
}

fn native(world: &Snapshot) -> Schedule {
    schedule(world, &Options::default(), &Scripted::default())
}

fn verdict(schedule: &Schedule) -> PlanVerdict {
    schedule.plan.clone().unwrap().verdict
}

/// Types of 2, 4 and 8 CPUs at 25,000 a CPU on spot; pods of 1 CPU.
fn ten_pods() -> Snapshot {
    snapshot(vec![pool("one")], pods(10, &one_cpu()))
}

fn types(schedule: &Schedule) -> Vec<String> {
    let cheapest = |claim: &crate::decision::Claim| claim.cheapest.as_ref().unwrap().instance_type.to_string();
    let mut types: Vec<String> = schedule.claims.iter().map(cheapest).collect();
    types.sort();
    types
}

#[test]
fn native_order_and_problem() {
    let world = ten_pods();
    assert_eq!(types(&native(&world)), ["large", "small"]);
    planned(&world, |pods, problem| {
        assert_eq!((pods.count.as_slice(), pods.cpu_milli.as_slice()), (&[10][..], &[1000][..]));
        assert_eq!(problem.slots.cost.len(), 12);
        assert_eq!(problem.candidates.row(0), (0..12).collect::<Vec<u32>>());
        assert_eq!((&*problem.max_per_node, &*problem.zone_skew), (&[u32::MAX][..], &[0][..]));
        Proposal::default()
    });
}

#[test]
fn a_proposal_that_is_no_cheaper_does_not_stand() {
    let world = ten_pods();
    let result = planned(&world, |_, problem| {
        let large = slot(problem, 400_000);
        proposal(&[(&[large], &[(0, 5)]), (&[large], &[(0, 5)])])
    });
    assert_eq!(verdict(&result), PlanVerdict::NoCheaper);
    assert_eq!(result.claims, native(&world).claims);
    assert_eq!(result.plan.unwrap().native_cost, Some(250_000));
}

/// One pod of five CPUs and three of two.
fn costly() -> Snapshot {
    let mut big = one_cpu();
    big.requests.cpu_milli = 5_000;
    let mut small = one_cpu();
    small.requests.cpu_milli = 2_000;
    let mut all = pods(1, &big);
    all.extend(pods(3, &small).into_iter().enumerate().map(|(at, mut pod)| {
        pod.key.uid = format!("small-{at}").into();
        pod.key.name = pod.key.uid.clone();
        pod
    }));
    snapshot(vec![pool("one")], all)
}

#[test]
fn a_cheaper_proposal_stands_with_every_type_that_spot_may_use() {
    // Prices out of proportion: the large type is dear, so three small nodes beat sharing it.
    let mut world = ten_pods();
    let mut one = pool("one");
    let mut catalog = (*one.catalog).clone();
    for offering in &mut catalog.types[0].offerings {
        // Types are sorted by name: large comes first.
        offering.price = offering.price.map(|price| crate::quantity::MicroUsd(price.0 * 2));
    }
    one.catalog = std::sync::Arc::new(crate::catalog::Catalog::new(8, catalog.types));
    world.nodepools = vec![std::sync::Arc::new(one)];
    let before = native(&world);
    let result = planned(&world, |_, problem| {
        let medium = slot(problem, 100_000);
        proposal(&[(&[medium], &[(0, 4)]), (&[medium], &[(0, 4)]), (&[slot(problem, 50_000)], &[(0, 2)])])
    });
    assert_eq!(types(&before), ["large", "small"]);
    assert_eq!(verdict(&result), PlanVerdict::Planned);
    assert_eq!(types(&result), ["medium", "medium", "small"]);
    let report = result.plan.clone().unwrap();
    assert_eq!((report.asked, report.planned), (10, 10));
    assert_eq!((report.native_cost, report.planned_cost), (Some(450_000), Some(250_000)));
    let listed = |claim: &crate::decision::Claim| {
        claim.requirements.iter().find(|one| &*one.key == key::INSTANCE_TYPE).unwrap().values.len()
    };
    assert_eq!(
        result.claims.iter().map(listed).collect::<Vec<_>>(),
        [2, 2, 3],
        "spot keeps every type that holds them"
    );
    assert_eq!(result.claims[0].cheapest.as_ref().unwrap().capacity_type, CapacityType::Spot);
}

#[test]
fn what_the_proposal_leaves_out_is_placed_natively() {
    let result = planned(&costly(), |_, problem| proposal(&[(&[slot(problem, 50_000)], &[(1, 1)])]));
    assert!(result.unplaced.is_empty());
    assert_eq!(result.plan.unwrap().planned, 1);
}

#[test]
fn malformed_proposals_are_found_and_the_native_order_stands() {
    type Bad = fn(&PlanProblem) -> Proposal;
    let bad: [(Bad, &str); 8] = [
        (|_| proposal(&[(&[99], &[(0, 1)])]), "does not exist"),
        (|_| proposal(&[(&[], &[(0, 1)])]), "has no slot"),
        (|_| proposal(&[(&[0], &[(7, 1)])]), "may hold 1 to 0"),
        (|_| proposal(&[(&[0], &[(0, 0)])]), "0 pods"),
        (|_| proposal(&[(&[0], &[(0, 1), (0, 1)])]), "pods of group 0"),
        (|problem| proposal(&[(&[slot(problem, 50_000)], &[(0, 3)])]), "do not fit"),
        (
            |problem| proposal(&[(&[slot(problem, 200_000)], &[(0, 8)]), (&[slot(problem, 200_000)], &[(0, 3)])]),
            "more pods",
        ),
        (
            |_| Proposal { slots: Groups { end: vec![3], member: vec![0] }, ..proposal(&[(&[0], &[(0, 1)])]) },
            "rows do not end",
        ),
    ];
    let world = ten_pods();
    for (plan, word) in bad {
        let result = planned(&world, move |_, problem| plan(problem));
        let PlanVerdict::Malformed(fault) = verdict(&result) else { panic!("{word}: {result:?}") };
        assert!(fault.contains(word), "{fault}");
        assert_eq!(result.claims, native(&world).claims);
        assert!(result.policy_faults[0].contains(word), "{:?}", result.policy_faults);
    }
}

fn zone_spread(max_skew: u32, selector: LabelSelector) -> Spread {
    Spread {
        topology_key: key::ZONE.into(),
        max_skew,
        schedule_anyway: false,
        selector: Some(selector),
        min_domains: None,
        ignore_node_affinity: false,
        honor_node_taints: false,
    }
}

#[test]
fn one_per_node_conflicts_and_spreads_are_told() {
    let app = |name: &str| PodShape { labels: [("app".into(), name.into())].into(), ..one_cpu() };
    let own = |name: &str| LabelSelector::labels([("app", name)]);
    let apart = PodTerm {
        topology_key: key::HOSTNAME.into(),
        selector: Some(own("a")),
        namespaces: Vec::new(),
        namespace_selector: None,
    };
    let mut first = app("a");
    first.pod_anti_affinity = vec![apart.clone()];
    let mut second = app("b");
    second.pod_anti_affinity = vec![apart];
    let mut third = app("c");
    third.spread = vec![zone_spread(2, own("c"))];
    let mut world = snapshot(vec![pool("one")], Vec::new());
    for (at, shape) in [first, second, third].iter().enumerate() {
        world.pending.extend(pods(2, shape).into_iter().map(|mut pod| {
            pod.key.uid = format!("{at}-{}", pod.key.uid).into();
            pod
        }));
    }
    let result = planned(&world, |_, problem| {
        assert_eq!(problem.max_per_node, [1, u32::MAX, u32::MAX]);
        assert_eq!(problem.zone_skew, [0, 0, 2]);
        assert_eq!(problem.conflicts.row(1), [0]);
        Proposal::default()
    });
    assert!(result.unplaced.is_empty());
}

proptest! {
    /// Whatever a planner answers, the result holds as many pods as the native order and costs no more.
    #[test]
    fn any_proposal_is_safe(nodes in proptest::collection::vec((0_u32..12, 1_u32..9), 0..8), spread in any::<bool>()) {
        let mut shape = one_cpu();
        shape.labels = [("app".into(), "a".into())].into();
        if spread {
            let selector = LabelSelector::labels([("app", "a")]);
            shape.spread = vec![zone_spread(1, selector)];
        }
        let world = snapshot(vec![pool("one")], pods(10, &shape));
        let before = native(&world);
        let result = planned(&world, move |_, _| {
            let mut out = Proposal::default();
            for (slot, count) in &nodes {
                out.slots.push([*slot]);
                out.pod_group.push([0]);
                out.pod_count.push(*count);
            }
            out
        });
        prop_assert!(result.unplaced.len() <= before.unplaced.len());
        let cost = |schedule: &Schedule| -> i64 {
            schedule.claims.iter().map(|claim| claim.cheapest.as_ref().unwrap().effective_cost.unwrap()).sum()
        };
        prop_assert!(cost(&result) <= cost(&before));
        let mut zones = std::collections::BTreeMap::from([("a".to_owned(), 0_usize), ("b".to_owned(), 0)]);
        for claim in &result.claims {
            let choice = claim.cheapest.as_ref().unwrap();
            let size = match &*choice.instance_type { "small" => 2, "medium" => 4, _ => 8 };
            prop_assert!(claim.pods.len() <= size, "{} pods on {}", claim.pods.len(), choice.instance_type);
            *zones.get_mut(&*choice.zone).unwrap() += claim.pods.len();
        }
        if spread {
            prop_assert!(zones["a"].abs_diff(zones["b"]) <= 1, "{zones:?}");
        }
    }
}
