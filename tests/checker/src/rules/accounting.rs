//! Every pod is somewhere once: each pod that needs a place is on one node or claim, or has an error; no other pod is
//! moved; places exist, are named once, and take pods.
//!
//! A pod needs a place when it is pending because no node took it, or when its node is going away. One on a node that is
//! going away may be left out when something (do-not-disrupt, a PodDisruptionBudget) may hold it there.

use std::collections::{BTreeMap, BTreeSet};

use mortise_problem::api::annotations::DO_NOT_DISRUPT;
use mortise_problem::k8s_openapi::api::core::v1::Pod;

use crate::model::machine::{is_usable, pool};
use crate::model::pod;
use crate::model::selector::selects;
use crate::model::world::{World, leaves};
use crate::violation::{Fault, Findings, Rule, Violation, exceeds};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Accounting);
    if let Some(error) = &world.answer.error {
        found.add(None, None, Fault::Missing(format!("there is no answer: {error}")));
    }
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
    let unplaced = &world.answer.unplaced_buffers;
    for (key, p) in world.pods.iter() {
        let explained = world.answer.errors.contains_key(key) || unplaced.contains(key);
        if must_move(world, p) && !times.contains_key(key.as_str()) && !explained {
            found.add(Some(key), None, Fault::Missing("it is neither placed nor has it an error".into()));
        }
    }
    for key in world.answer.errors.keys().chain(unplaced).filter(|key| !world.pods.contains_key(*key)) {
        found.add(Some(key), None, Fault::Missing("it has an error, and there is no such pod".into()));
    }
    for key in unplaced.iter().filter(|key| times.contains_key(key.as_str())) {
        found.add(Some(key), None, Fault::Conflict("it is placed and listed as not placed".into()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::buffers::with_buffers;
    use crate::rules::cases::{Case, claim, node_json};
    use serde_json::json;

    #[test]
    fn each_pod_is_placed_once_or_has_an_error() {
        let case = Case::new().pending("p", json!({}));
        let one = || claim("default", &["c-4x"], &["p"]);
        assert!(case.judged(check, json!({"claims": [one()]})).is_empty());
        assert!(case.judged(check, json!({"errors": {"default/p": "no"}})).is_empty());
        let twice = case.judged(check, json!({"claims": [one(), one()]}));
        assert_eq!(twice, ["Accounting: default/p: times placed: 2 of at most 1"]);
        assert_eq!(case.judged(check, json!({})).len(), 1);
        assert_eq!(case.judged(check, json!({"claims": [one()], "errors": {"default/p": "no"}})).len(), 1);
        assert_eq!(case.judged(check, json!({"claims": [claim("default", &["c-4x"], &["q"])]})).len(), 2);
    }

    #[test]
    fn only_pods_that_wait_are_moved() {
        let case = Case::new().node(node_json("n", "zone-1")).bound("p", "n", json!({}));
        assert_eq!(case.judged(check, json!({"claims": [claim("default", &["c-4x"], &["p"])]})).len(), 1);
    }

    #[test]
    fn pods_of_a_node_that_goes_away_move_unless_they_are_held() {
        let mut case = Case::new().node(node_json("n", "zone-1")).bound("p", "n", json!({}));
        case.problem["nodes"][0]["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(case.judged(check, json!({})).len(), 1);
        assert!(case.judged(check, json!({"claims": [claim("default", &["c-4x"], &["p"])]})).is_empty());
        case.problem["pods"][0]["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        assert!(case.judged(check, json!({})).is_empty());
    }

    #[test]
    fn pods_of_buffers_are_placed_or_listed() {
        let mut case = Case::new();
        case.problem["podTemplates"] = json!([{"metadata": {"name": "one", "namespace": "default"}, "template": {
            "spec": {"containers": [{"name": "c"}]}}}]);
        case.problem["capacityBuffers"] = json!([{"metadata": {"name": "spare", "namespace": "default"}, "spec": {
            "podTemplateRef": {"name": "one"}, "replicas": 1}}]);
        case.problem = serde_json::to_value(with_buffers(&case.problem())).unwrap();
        let placed = json!({"claims": [claim("default", &["c-4x"], &["capacity-buffer-spare-1"])]});
        assert!(case.judged(check, placed.clone()).is_empty());
        assert!(case.judged(check, json!({"unplacedBuffers": ["default/capacity-buffer-spare-1"]})).is_empty());
        assert_eq!(case.judged(check, json!({})).len(), 1);
        let mut both = placed;
        both["unplacedBuffers"] = json!(["default/capacity-buffer-spare-1"]);
        assert_eq!(case.judged(check, both).len(), 1);
    }

    #[test]
    fn places_exist_and_take_pods() {
        let mut case = Case::new().pending("p", json!({}));
        let on = |pool: &str| json!({"claims": [claim(pool, &["c-4x"], &["p"])]});
        assert_eq!(case.judged(check, on("other")).len(), 1);
        assert_eq!(case.judged(check, json!({"existing": [{"node": "m", "pods": ["default/p"]}]})).len(), 1);
        case.problem["nodePools"][0]["spec"]["replicas"] = json!(1);
        assert_eq!(case.judged(check, on("default")).len(), 1);
    }
}
