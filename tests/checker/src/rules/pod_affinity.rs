//! Required pod affinity and anti-affinity hold on the final placement.
//!
//! Anti-affinity: no pod that a term of another one is about may be in a domain that the other may be in, whichever of
//! both is new. A node without the label has no domain to share. Two places that leave the label open may meet.
//!
//! Affinity: there is an order of binding the new pods in which each term of each finds, when its pod is bound, another pod
//! that it is about in the same domain, whichever value an open label gets. A pod that its own term is about may be the
//! first one, anywhere, if the cluster has none to begin with; a second one in another place has to find the first.
//! Its node must have the label.

use std::collections::BTreeSet;

use mortise_problem::k8s_openapi::api::core::v1::{Pod, PodAffinityTerm};

use crate::model::place::Place;
use crate::model::pod::{is_terminating, key};
use crate::model::selector::term_matches;
use crate::model::world::World;
use crate::violation::{Fault, Findings, Rule, Violation};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::PodAffinity);
    check_apart(world, &mut found);
    check_together(world, &mut found);
    found.all
}

/// A pod where it is.
#[derive(Clone, Copy)]
struct Spot<'w> {
    pod: &'w Pod,
    place: &'w Place<'w>,
    is_new: bool,
}

fn spots<'w>(world: &'w World<'_>) -> Vec<Spot<'w>> {
    let mut all = Vec::new();
    for place in &world.places {
        all.extend(place.staying.iter().map(|pod| Spot { pod, place, is_new: false }));
        all.extend(place.placed.iter().map(|pod| Spot { pod, place, is_new: true }));
    }
    all.retain(|spot| !is_terminating(spot.pod));
    all
}

/// Required anti-affinity terms.
pub(crate) fn anti_terms(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.as_ref().and_then(|s| s.affinity.as_ref()).and_then(|a| a.pod_anti_affinity.as_ref());
    affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

/// Required affinity terms.
pub(crate) fn terms(pod: &Pod) -> &[PodAffinityTerm] {
    let affinity = pod.spec.as_ref().and_then(|s| s.affinity.as_ref()).and_then(|a| a.pod_affinity.as_ref());
    affinity.and_then(|a| a.required_during_scheduling_ignored_during_execution.as_deref()).unwrap_or_default()
}

fn check_apart(world: &World<'_>, found: &mut Findings) {
    let spots = spots(world);
    for owner in &spots {
        for term in anti_terms(owner.pod) {
            let own = owner.place.domains(&term.topology_key);
            for other in spots.iter().filter(|o| !std::ptr::eq(o.pod, owner.pod) && (o.is_new || owner.is_new)) {
                if !term_matches(world.problem, term, owner.pod, other.pod) {
                    continue;
                }
                // One node is in one domain; two that may be in the same one are judged as if they were.
                if own.may_meet(&other.place.domains(&term.topology_key)) {
                    let new = if owner.is_new { owner } else { other };
                    let fault = format!(
                        "anti-affinity of {} over {} forbids {} ({}) near it",
                        key(owner.pod),
                        term.topology_key,
                        key(other.pod),
                        other.place.name
                    );
                    found.add(Some(&key(new.pod)), Some(&new.place.name), Fault::Conflict(fault));
                }
            }
        }
    }
}

fn check_together(world: &World<'_>, found: &mut Findings) {
    let spots = spots(world);
    let there: Vec<Spot<'_>> = spots.iter().filter(|spot| !spot.is_new).copied().collect();
    let mut bound = there.clone();
    let mut waiting: Vec<Spot<'_>> = spots.iter().filter(|spot| spot.is_new).copied().collect();
    // Terms that a first pod was taken for: by topology key and the pods of the plan that they are about.
    let mut begun: BTreeSet<(String, Vec<String>)> = BTreeSet::new();
    let about = |owner: &Pod, term: &PodAffinityTerm| {
        let about = spots.iter().filter(|s| term_matches(world.problem, term, owner, s.pod)).map(|s| key(s.pod));
        (term.topology_key.clone(), about.collect::<Vec<String>>())
    };
    loop {
        let ready = |spot: &Spot<'_>| terms(spot.pod).iter().all(|term| finds(world, spot, term, &bound));
        let (now, later): (Vec<_>, Vec<_>) = waiting.iter().copied().partition(ready);
        if !now.is_empty() {
            bound.extend(now);
            waiting = later;
            continue;
        }
        let may_begin = |spot: &Spot<'_>| {
            terms(spot.pod).iter().all(|term| {
                finds(world, spot, term, &bound)
                    || term_matches(world.problem, term, spot.pod, spot.pod)
                        && !spot.place.domains(&term.topology_key).absent
                        && !there.iter().any(|other| term_matches(world.problem, term, spot.pod, other.pod))
                        && !begun.contains(&about(spot.pod, term))
            })
        };
        let Some(first) = waiting.iter().position(may_begin) else { break };
        let spot = waiting.remove(first);
        begun.extend(terms(spot.pod).iter().map(|term| about(spot.pod, term)));
        bound.push(spot);
    }
    for spot in waiting {
        for term in terms(spot.pod).iter().filter(|term| !finds(world, &spot, term, &bound)) {
            let fault = format!("affinity over {} finds no pod near it", term.topology_key);
            found.add(Some(&key(spot.pod)), Some(&spot.place.name), Fault::Missing(fault));
        }
    }
}

/// Whether a term finds a bound pod in the same domain, whichever the domain turns out to be.
fn finds(world: &World<'_>, spot: &Spot<'_>, term: &PodAffinityTerm, bound: &[Spot<'_>]) -> bool {
    let own = spot.place.domains(&term.topology_key);
    if own.absent {
        return false;
    }
    let about: Vec<&Spot<'_>> = bound
        .iter()
        .filter(|o| !std::ptr::eq(o.pod, spot.pod) && term_matches(world.problem, term, spot.pod, o.pod))
        .collect();
    about.iter().any(|other| other.place.name == spot.place.name)
        || !own.open
            && own.values.iter().all(|v| about.iter().any(|other| other.place.domains(&term.topology_key).is(v)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, affinity, claim, node_json, zones};
    use serde_json::{Value, json};

    const ZONE: &str = "topology.kubernetes.io/zone";
    const HOST: &str = "kubernetes.io/hostname";

    fn in_zone(zone: &[&str], pods: &[&str]) -> Value {
        let mut claim = claim("default", &["c-4x"], pods);
        claim["requirements"] = zones(zone);
        claim
    }

    fn two(kind: &str, key: &str, pods: &[usize]) -> Case {
        let mut case = Case::new().pending("p", json!({})).pending("q", json!({}));
        for pod in [0, 1] {
            case.problem["pods"][pod]["metadata"]["labels"] = json!({"app": "a"});
        }
        for pod in pods {
            affinity(&mut case.problem["pods"][*pod], kind, key);
        }
        case
    }

    #[test]
    fn anti_affinity_is_judged_from_both_sides() {
        for owner in [0, 1] {
            let case = two("podAntiAffinity", HOST, &[owner]);
            let both = claim("default", &["c-4x"], &["p", "q"]);
            assert!(!case.judged(check, json!({"claims": [both]})).is_empty());
            let apart = json!({"claims": [claim("default", &["c-4x"], &["p"]), claim("default", &["c-4x"], &["q"])]});
            assert!(case.judged(check, apart).is_empty());
        }
    }

    #[test]
    fn open_zones_may_meet() {
        let case = two("podAntiAffinity", ZONE, &[0]);
        let apart = |second: &[&str]| json!({"claims": [in_zone(&["zone-1"], &["p"]), in_zone(second, &["q"])]});
        assert!(case.judged(check, apart(&["zone-2"])).is_empty());
        assert!(!case.judged(check, apart(&["zone-1", "zone-2"])).is_empty());
    }

    #[test]
    fn who_runs_already_keeps_others_away() {
        let mut case = two("podAntiAffinity", HOST, &[]).node(node_json("n", "zone-1")).bound("old", "n", json!({}));
        affinity(&mut case.problem["pods"][2], "podAntiAffinity", HOST);
        assert!(!case.judged(check, json!({"existing": [{"node": "n", "pods": ["default/p"]}]})).is_empty());
    }

    #[test]
    fn the_first_may_go_anywhere_and_the_next_must_follow() {
        let case = two("podAffinity", ZONE, &[0, 1]);
        let answer = |second: &[&str]| json!({"claims": [in_zone(&["zone-1"], &["p"]), in_zone(second, &["q"])]});
        assert!(case.judged(check, answer(&["zone-1"])).is_empty());
        assert_eq!(case.judged(check, answer(&["zone-2"])).len(), 1);
        assert!(case.judged(check, json!({"claims": [claim("default", &["c-4x"], &["p", "q"])]})).is_empty());
    }

    #[test]
    fn two_that_want_each_other_do_not_outvote_who_runs_elsewhere() {
        let mut case = two("podAffinity", ZONE, &[0, 1]).node(node_json("n", "zone-1")).bound("old", "n", json!({}));
        case.problem["pods"][2]["metadata"]["labels"] = json!({"app": "a"});
        assert_eq!(case.judged(check, json!({"claims": [in_zone(&["zone-2"], &["p", "q"])]})).len(), 2);
        assert!(case.judged(check, json!({"claims": [in_zone(&["zone-1"], &["p", "q"])]})).is_empty());
    }
}
