//! Every pod is somewhere once: each pod that needs a place is on one node or claim, or has an error; no other pod is
//! moved; places exist, are named once, and take pods.
//!
//! A pod needs a place when it is pending because no node took it, or when its node is going away. One on a node that is
//! going away may be left out when something (do-not-disrupt, a PodDisruptionBudget) may hold it there.

use std::collections::{BTreeMap, BTreeSet};

use mortise_problem::Problem;
use mortise_problem::api::annotations::DO_NOT_DISRUPT;
use mortise_problem::k8s_openapi::api::core::v1::Pod;

use crate::model::machine::{is_usable, pool};
use crate::model::pod;
use crate::model::selector::selects;
use crate::model::world::{World, leaves};
use crate::violation::{Fault, Findings, Rule, Violation, exceeds};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Accounting);
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let placed = world.answer.claims.iter().flat_map(|claim| &claim.pods);
    for key in placed.chain(world.answer.existing.iter().flat_map(|existing| &existing.pods)) {
        *times.entry(key).or_default() += 1;
    }
    for (key, times) in &times {
        if *times > 1 {
            found.add(Some(key), None, exceeds("times placed", times, 1));
        }
        if world.answer.errors.contains_key(*key) {
            found.add(Some(key), None, Fault::Conflict("it is placed and has an error".into()));
        }
        match world.pods.get(*key) {
            None if is_buffer(world.problem, key) => {}
            None => found.add(Some(key), None, Fault::Missing("there is no such pod".into())),
            Some(p) if !may_move(world, p) => {
                found.add(Some(key), None, Fault::Conflict("it is placed but does not wait for a node".into()));
            }
            Some(p) if world.problem.options.ignore_dra_requests && pod::asks_for_devices(p) => {
                found.add(Some(key), None, Fault::Conflict("it asks for ResourceClaims, which are ignored".into()));
            }
            Some(_) => {}
        }
    }
    for (key, p) in &world.pods {
        if must_move(world, p) && !times.contains_key(key.as_str()) && !world.answer.errors.contains_key(key) {
            found.add(Some(key), None, Fault::Missing("it is neither placed nor has it an error".into()));
        }
    }
    for key in world.answer.errors.keys().filter(|key| !world.pods.contains_key(*key)) {
        if !is_buffer(world.problem, key) {
            found.add(Some(key), None, Fault::Missing("it has an error, and there is no such pod".into()));
        }
    }
    check_places(world, &mut found);
    found.all
}

fn check_places(world: &World<'_>, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for existing in &world.answer.existing {
        let name = existing.node.as_str();
        if !seen.insert(name) {
            found.add(None, Some(name), Fault::Conflict("it is listed twice".into()));
        }
        match world.places.iter().find(|place| place.claim.is_none() && place.name == name) {
            None => found.add(None, Some(name), Fault::Missing("there is no such node".into())),
            Some(place) if place.going && !existing.pods.is_empty() => {
                found.add(None, Some(name), Fault::Conflict("it is being deleted and takes no pods".into()));
            }
            Some(_) => {}
        }
    }
    for (index, claim) in world.answer.claims.iter().enumerate() {
        let name = format!("claim {index}");
        match pool(world.problem, &claim.node_pool) {
            None => {
                let fault = Fault::Missing(format!("there is no NodePool {}", claim.node_pool));
                found.add(None, Some(&name), fault);
            }
            Some(pool) if !is_usable(pool) => {
                let fault = Fault::Conflict(format!("NodePool {} makes no nodes for pods", claim.node_pool));
                found.add(None, Some(&name), fault);
            }
            Some(_) => {}
        }
        if claim.pods.is_empty() {
            found.add(None, Some(&name), Fault::Missing("it is for no pod".into()));
        }
    }
}

/// A pod that stands for room that a CapacityBuffer keeps free.
fn is_buffer(problem: &Problem, key: &str) -> bool {
    problem.capacity_buffers.iter().any(|buffer| {
        let text = |field: &str| buffer["metadata"][field].as_str();
        let prefix =
            format!("{}/capacity-buffer-{}-", text("namespace").unwrap_or("default"), text("name").unwrap_or_default());
        key.strip_prefix(&prefix).is_some_and(|number| number.parse::<u32>().is_ok())
    })
}

fn is_leaving(world: &World<'_>, p: &Pod) -> bool {
    let going = world.places.iter().filter(|place| place.going && place.node_name.is_some());
    leaves(p) && going.into_iter().any(|place| place.node_name.as_deref() == pod::node(p))
}

fn may_move(world: &World<'_>, p: &Pod) -> bool {
    pod::is_pending(p) || is_leaving(world, p)
}

fn must_move(world: &World<'_>, p: &Pod) -> bool {
    let gone = pod::is_over(p) || pod::is_terminating(p);
    let held = p.metadata.annotations.iter().flatten().any(|(key, _)| key == DO_NOT_DISRUPT)
        || world.problem.pod_disruption_budgets.iter().any(|budget| {
            budget.metadata.namespace.as_deref().unwrap_or("default") == pod::namespace(p)
                && selects(budget.spec.as_ref().and_then(|spec| spec.selector.as_ref()), &pod::labels(p))
        });
    !gone && (pod::is_pending(p) || is_leaving(world, p) && !held)
}
