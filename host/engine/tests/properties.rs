//! Properties that hold for every snapshot: searched with random small worlds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may stop")]

#[path = "property/filter.rs"]
mod filter;
#[path = "property/generate.rs"]
#[allow(dead_code, reason = "worlds of both tests")]
mod generate;

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::decision::{Claim, Schedule};
use mortise_engine::launch::{LaunchRequest, launch_list};
use mortise_engine::pod::PodShape;
use mortise_engine::policy::{NoPolicy, PolicySet};
use mortise_engine::quantity::Resources;
use mortise_engine::requirement::{Requirements, key};
use mortise_engine::schedule::schedule;
use mortise_engine::snapshot::{Options, Snapshot};
use mortise_engine::taint::untolerated;
use proptest::prelude::*;

fn options(best_effort: bool) -> Options {
    Options { min_values_best_effort: best_effort, ..Options::default() }
}

fn shape_of<'a>(snapshot: &'a Snapshot, uid: &str) -> &'a PodShape {
    &snapshot.pending.iter().find(|pod| &*pod.key.uid == uid).unwrap().shape
}

fn type_names(claim: &Claim) -> Vec<Arc<str>> {
    claim.requirements.iter().filter(|one| &*one.key == key::INSTANCE_TYPE).flat_map(|one| one.values.clone()).collect()
}

/// A node of this type, zone and market satisfies one of the pod's alternatives, preferences aside.
fn satisfies(claim: &Claim, shape: &PodShape, labels: &Requirements) -> bool {
    let mut node = Requirements::from_labels(&claim.labels);
    node.extend(&Requirements::new(&claim.requirements));
    node.extend(labels);
    if node.keys.values().any(|values| !values.complement && values.values.is_empty() && values.min_values.is_some()) {
        return false;
    }
    let selector = Requirements::from_labels(&shape.node_selector);
    let terms: Vec<Vec<_>> =
        if shape.required_affinity.is_empty() { vec![Vec::new()] } else { shape.required_affinity.clone() };
    node.compatible(&selector, |_| false).is_ok()
        && terms.iter().any(|term| node.compatible(&Requirements::new(term), |_| false).is_ok())
}

fn check(
    snapshot: &Snapshot,
    result: &Schedule,
    options: &Options,
    policies: &dyn PolicySet,
) -> Result<(), TestCaseError> {
    let mut seen: BTreeMap<Arc<str>, u32> = BTreeMap::new();
    let everywhere = result.claims.iter().flat_map(|claim| &claim.pods);
    let everywhere = everywhere.chain(result.nominations.iter().flat_map(|(_, pods)| pods));
    for pod in everywhere.chain(result.unplaced.iter().map(|(pod, _)| pod)) {
        *seen.entry(Arc::clone(&pod.uid)).or_default() += 1;
    }
    prop_assert!(seen.values().all(|count| *count == 1), "a pod has two places: {:?}", seen);
    prop_assert_eq!(seen.len(), snapshot.pending.len(), "a pod is lost");
    for (pod, why) in &result.unplaced {
        prop_assert!(!why.to_string().is_empty(), "{:?} has no reason", pod);
    }
    for claim in &result.claims {
        check_claim(snapshot, claim, options, policies)?;
    }
    check_limits(snapshot, result)
}

fn check_claim(
    snapshot: &Snapshot,
    claim: &Claim,
    options: &Options,
    policies: &dyn PolicySet,
) -> Result<(), TestCaseError> {
    let pool = snapshot.nodepools.iter().find(|pool| pool.name == claim.nodepool).unwrap();
    prop_assert!(!claim.pods.is_empty());
    let names = type_names(claim);
    prop_assert!(!names.is_empty() && names.len() <= options.max_instance_types);
    let requests = claim
        .pods
        .iter()
        .fold(Resources::default(), |sum, pod| sum.saturating_add(&shape_of(snapshot, &pod.uid).requests));
    for name in &names {
        let of_type = pool.catalog.get(name).expect("a type on a claim exists");
        // DaemonSets of the generated worlds tolerate everything and select nothing: they run on every type.
        let daemons =
            snapshot.daemons.iter().fold(Resources::default(), |sum, daemon| sum.saturating_add(&daemon.requests));
        prop_assert!(requests.saturating_add(&daemons).fits(&of_type.allocatable), "{} does not fit {:?}", name, claim);
    }
    for pod in &claim.pods {
        let shape = shape_of(snapshot, &pod.uid);
        prop_assert!(untolerated(&pool.taints, &shape.tolerations, true).is_none());
        for name in &names {
            let of_type = Requirements::new(&pool.catalog.get(name).unwrap().requirements);
            prop_assert!(satisfies(claim, shape, &of_type), "{:?} on {} of {:?}", shape, name, claim);
        }
    }
    let minimum = claim.requirements.iter().find(|one| &*one.key == key::INSTANCE_TYPE).and_then(|one| one.min_values);
    prop_assert!(minimum.is_none_or(|minimum| names.len() >= minimum as usize));
    let request = LaunchRequest {
        nodepool: Arc::clone(&claim.nodepool),
        requirements: claim.requirements.clone(),
        requests: claim.requests.clone(),
        replaces: false,
        now_unix_ms: snapshot.now_unix_ms,
    };
    let list = launch_list(&request, &pool.catalog, options, policies);
    let list = list.map_err(|blocker| TestCaseError::fail(format!("nothing to launch for {claim:?}: {blocker}")))?;
    prop_assert!(!list.choices.is_empty());
    let whole = Requirements::new(&claim.requirements);
    for choice in &list.choices {
        prop_assert!(names.contains(&choice.instance_type));
        prop_assert!(whole.get(key::ZONE).is_none_or(|zones| zones.has(&choice.zone)));
        prop_assert_eq!(choice.capacity_type, list.capacity_type);
        let offerings = &pool.catalog.get(&choice.instance_type).unwrap().offerings;
        prop_assert!(offerings.iter().any(|offering| offering.available
            && offering.zone == choice.zone
            && offering.capacity_type == choice.capacity_type));
    }
    let costs: Vec<i64> = list.choices.iter().map(|choice| choice.effective_cost.unwrap_or(i64::MAX)).collect();
    prop_assert!(costs.is_sorted(), "{:?}", costs);
    prop_assert_eq!(list.choices.first().map(|choice| choice.instance_type.clone()).is_some(), true);
    Ok(())
}

/// Whatever type is launched for each claim, no limit is exceeded that was not exceeded before.
fn check_limits(snapshot: &Snapshot, result: &Schedule) -> Result<(), TestCaseError> {
    for pool in &snapshot.nodepools {
        let claims: Vec<&Claim> = result.claims.iter().filter(|claim| claim.nodepool == pool.name).collect();
        if claims.is_empty() {
            continue;
        }
        let nodes = snapshot.nodes.values().filter(|node| node.nodepool.as_ref() == Some(&pool.name) && !node.deleting);
        if let Some(limit) = pool.limits.nodes {
            prop_assert!(i64::try_from(nodes.clone().count() + claims.len()).unwrap() <= limit);
        }
        for (resource, limit) in &pool.limits.resources {
            let used: i64 = nodes.clone().map(|node| node.capacity.get(resource)).sum();
            let largest = |claim: &&Claim| {
                type_names(claim)
                    .iter()
                    .map(|name| pool.catalog.get(name).unwrap().capacity.get(resource))
                    .max()
                    .unwrap_or(0)
            };
            let opened: i64 = claims.iter().map(largest).sum();
            prop_assert!(used + opened <= *limit, "{} of {}: {} + {} > {}", resource, pool.name, used, opened, limit);
        }
    }
    Ok(())
}

/// The same pods with every shape its own allocation and made distinct by a label that nobody reads.
fn unfolded(snapshot: &Snapshot) -> Snapshot {
    let mut out = snapshot.clone();
    for (at, pod) in out.pending.iter_mut().enumerate() {
        let mut shape = (*pod.shape).clone();
        shape.labels.insert("unread".into(), at.to_string().into());
        pod.shape = Arc::new(shape);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn schedules_are_sound(snapshot in generate::snapshot(), best_effort in any::<bool>()) {
        let options = options(best_effort);
        let result = schedule(&snapshot, &options, &NoPolicy);
        check(&snapshot, &result, &options, &NoPolicy)?;
    }

    #[test]
    fn policies_only_narrow_and_order(snapshot in generate::snapshot(), seed in any::<u64>()) {
        let whim = filter::Whim(seed);
        let options = options(false);
        let result = schedule(&snapshot, &options, &whim);
        check(&snapshot, &result, &options, &whim)?;
        for claim in &result.claims {
            let choice = claim.cheapest.as_ref().unwrap();
            let market = u8::from(choice.capacity_type == mortise_engine::catalog::CapacityType::OnDemand) + 1;
            prop_assert!(!whim.drops(&choice.instance_type, &choice.zone, market), "{:?}", choice);
        }
    }

    #[test]
    fn the_order_of_input_does_not_matter(snapshot in generate::snapshot(), seed in any::<u64>()) {
        let result = schedule(&snapshot, &Options::default(), &NoPolicy);
        let again = schedule(&snapshot, &Options::default(), &NoPolicy);
        prop_assert_eq!(serde_json::to_string(&result).unwrap(), serde_json::to_string(&again).unwrap());
        let mut shuffled = snapshot;
        let mut state = seed | 1;
        let mut next = |len: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % len
        };
        for at in (1..shuffled.pending.len()).rev() {
            shuffled.pending.swap(at, next(at + 1));
        }
        for at in (1..shuffled.nodepools.len()).rev() {
            shuffled.nodepools.swap(at, next(at + 1));
        }
        let shuffled = schedule(&shuffled, &Options::default(), &NoPolicy);
        prop_assert_eq!(serde_json::to_string(&result).unwrap(), serde_json::to_string(&shuffled).unwrap());
    }

    #[test]
    fn groups_place_as_their_pods_would_one_by_one(snapshot in generate::snapshot()) {
        let folded = schedule(&snapshot, &Options::default(), &NoPolicy);
        let single = schedule(&unfolded(&snapshot), &Options::default(), &NoPolicy);
        prop_assert_eq!(folded, single);
    }

    #[test]
    fn a_broken_pool_changes_nothing_for_the_others(snapshot in generate::snapshot()) {
        let before = schedule(&snapshot, &Options::default(), &NoPolicy);
        let mut broken = snapshot;
        let mut pool = (*broken.nodepools[0]).clone();
        pool.name = "zz-broken".into();
        pool.weight = 1000;
        pool.unusable = vec!["its class is not ready".into()];
        broken.nodepools.push(Arc::new(pool));
        let after = schedule(&broken, &Options::default(), &NoPolicy);
        prop_assert_eq!(before.claims, after.claims);
        prop_assert_eq!(before.nominations, after.nominations);
    }
}
