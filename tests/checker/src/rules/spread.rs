//! Topology spread (DoNotSchedule) holds on the final placement, in the sense that kube-scheduler would accept it for some
//! order of binding the new pods.
//!
//! For a constraint of a new pod let, of the pods that it counts,
//! - `before(d)` be those in domain `d` now,
//! - `like(d)` the new ones in `d` that carry the same constraint with the same node filter, and
//! - `after(e)` all of them in `e` in the end.
//!
//! The last of `like(d)` to be bound finds at least `before(d) + like(d) - 1` there, and nowhere a domain with more than
//! `after(e)`. So for each domain that gets such a pod, and each eligible domain `e`:
//!
//! `before(d) + like(d) - after(e) <= maxSkew`
//!
//! (without `like(d)` if the pod does not count itself). This is necessary whatever the order. It is also sufficient for
//! one constraint by itself: bind like pods in the order of the count that each makes, and all others after them. A
//! domain that had too many before is no fault as long as it gets no more.
//!
//! Eligible are the domains of nodes that the pod's node filter admits and that have all its topology labels, and those
//! that a new node for the pod alone, with all these labels, could be in. Fewer of them than `minDomains`, and 0 stands for the least. Every new
//! node is a hostname of its own, so while one can be made the least of hostnames is 0.
//!
//! A claim that leaves the label open counts as in `d`, and as not in `e`.

use std::collections::BTreeSet;

use mortise_problem::api::labels::HOSTNAME;
use mortise_problem::api::labels::normalize;
use mortise_problem::k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};

use crate::model::launch::alone;
use crate::model::machine::Machine;
use crate::model::place::{Domains, Place};
use crate::model::pod::{affinity_terms, is_terminating, key, refused_by};
use crate::model::selector::spread_counts;
use crate::model::world::World;
use crate::violation::{Fault, Findings, Rule, Violation, exceeds};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Spread);
    for place in &world.places {
        for pod in &place.placed {
            for constraint in hard(pod) {
                check_one(world, place, pod, constraint, &mut found);
            }
        }
    }
    found.all
}

/// Constraints that must hold.
pub(crate) fn hard(pod: &Pod) -> impl Iterator<Item = &TopologySpreadConstraint> {
    let all = pod.spec.iter().flat_map(|spec| spec.topology_spread_constraints.iter().flatten());
    all.filter(|constraint| constraint.when_unsatisfiable == "DoNotSchedule")
}

fn check_one(
    world: &World<'_>,
    place: &Place<'_>,
    pod: &Pod,
    constraint: &TopologySpreadConstraint,
    found: &mut Findings,
) {
    let (name, topology) = (key(pod), normalize(&constraint.topology_key));
    let own = place.domains(topology);
    if own.absent || own.open {
        let fault = Fault::Missing(format!("its node has no certain label {topology} to spread by"));
        found.add(Some(&name), Some(&place.name), fault);
        return;
    }
    let eligible = eligible(world, pod, constraint, topology);
    let self_counts = spread_counts(constraint, pod, pod);
    for domain in &own.values {
        let mut most = 0_usize;
        for other in &world.places {
            if !other.domains(topology).may_be(domain) || !admits(constraint, pod, other, true) {
                continue;
            }
            most += counted(constraint, pod, &other.staying).count();
            if self_counts {
                most += counted(constraint, pod, &other.placed).filter(|new| carries(new, pod, constraint)).count();
            }
        }
        let least_of = |other: &String| {
            let surely = world.places.iter().filter(|place| place.domains(topology).is(other));
            surely
                .filter(|place| admits(constraint, pod, place, false))
                .map(|place| {
                    counted(constraint, pod, &place.staying).count() + counted(constraint, pod, &place.placed).count()
                })
                .sum::<usize>()
        };
        let others = eligible.values.iter().filter(|other| *other != domain);
        let mut least = others.map(least_of).min().unwrap_or(most).min(most);
        let few =
            constraint.min_domains.and_then(|n| usize::try_from(n).ok()).is_some_and(|n| eligible.values.len() < n);
        if eligible.open || few {
            least = 0;
        }
        let skew = most.saturating_sub(least);
        if usize::try_from(constraint.max_skew).is_ok_and(|allowed| skew > allowed) {
            let what = format!("skew over {topology} in {domain} ({most} there, {least} in the least)");
            found.add(Some(&name), Some(&place.name), exceeds(what, skew, constraint.max_skew));
        }
    }
}

/// The domains whose least counts.
fn eligible(world: &World<'_>, pod: &Pod, constraint: &TopologySpreadConstraint, topology: &str) -> Domains {
    let mut all = Domains::default();
    let has_all = |place: &Place<'_>| hard(pod).all(|c| !place.domains(&c.topology_key).absent);
    let nodes = world.places.iter().filter(|place| place.node_name.is_some() && !place.going);
    for place in nodes.filter(|place| has_all(place) && admits(constraint, pod, place, true)) {
        all.values.extend(place.domains(topology).values);
    }
    let labelled = |machine: &Machine<'_>| {
        hard(pod).all(|c| {
            let values = machine.labels.get(normalize(&c.topology_key));
            values.is_some_and(|values| values.only.as_ref().is_none_or(|only| !only.is_empty()))
        })
    };
    let new: Vec<Machine<'_>> = alone(world, pod).into_iter().filter(labelled).collect();
    if topology == HOSTNAME {
        all.open = !new.is_empty();
        let claims = world.places.iter().filter(|place| place.claim.is_some());
        let claims = claims.filter(|place| admits(constraint, pod, place, true));
        all.values.extend(claims.map(|place| place.name.clone()));
        return all;
    }
    let of_new: BTreeSet<String> = new
        .iter()
        .filter_map(|machine| machine.labels.get(topology).and_then(|values| values.only.clone()))
        .flatten()
        .collect();
    all.values.extend(of_new);
    all
}

/// Whether a place's pods are counted: `surely`, whatever the place turns out to be, or perhaps.
fn admits(constraint: &TopologySpreadConstraint, pod: &Pod, place: &Place<'_>, surely: bool) -> bool {
    let by_affinity = constraint.node_affinity_policy.as_deref() == Some("Ignore")
        || if surely { place.surely_selected(pod) } else { place.perhaps_selected(pod) };
    let by_taints =
        constraint.node_taints_policy.as_deref() != Some("Honor") || refused_by(pod, &place.taints).is_none();
    by_affinity && by_taints && !(surely && place.going)
}

fn counted<'p>(
    constraint: &'p TopologySpreadConstraint,
    owner: &'p Pod,
    pods: &'p [&Pod],
) -> impl Iterator<Item = &'p Pod> {
    pods.iter().copied().filter(move |other| !is_terminating(other) && spread_counts(constraint, owner, other))
}

/// Whether a pod has the same constraint with the same node filter.
fn carries(other: &Pod, pod: &Pod, constraint: &TopologySpreadConstraint) -> bool {
    let selector = |p: &Pod| p.spec.as_ref().and_then(|spec| spec.node_selector.clone()).unwrap_or_default();
    let tolerations = |p: &Pod| p.spec.as_ref().and_then(|spec| spec.tolerations.clone()).unwrap_or_default();
    hard(other).any(|own| own == constraint)
        && selector(other) == selector(pod)
        && affinity_terms(other) == affinity_terms(pod)
        && tolerations(other) == tolerations(pod)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, node_json, spread, zones};
    use serde_json::{Value, json};

    fn in_zone(zone: &[&str], pods: &[&str]) -> Value {
        let mut claim = claim("default", &["c-4x"], pods);
        claim["requirements"] = zones(zone);
        claim
    }

    fn case(pods: &[&str]) -> Case {
        let mut case = Case::new();
        for (index, name) in pods.iter().enumerate() {
            case = case.pending(name, json!({}));
            spread(&mut case.problem["pods"][index], "topology.kubernetes.io/zone", 1);
        }
        case
    }

    #[test]
    fn pods_are_spread_over_the_zones_that_there_are() {
        let case = case(&["p", "q"]);
        let right = json!({"claims": [in_zone(&["zone-1"], &["p"]), in_zone(&["zone-2"], &["q"])]});
        assert!(case.judged(check, right).is_empty());
        let wrong = case.judged(check, json!({"claims": [in_zone(&["zone-1"], &["p", "q"])]}));
        assert!(wrong[0].contains("(2 there, 0 in the least): 2 of at most 1"), "{wrong:?}");
    }

    #[test]
    fn an_open_zone_is_judged_at_its_worst() {
        let case = case(&["p", "q"]);
        let open = in_zone(&["zone-1", "zone-2"], &["q"]);
        assert!(!case.judged(check, json!({"claims": [in_zone(&["zone-1"], &["p"]), open]})).is_empty());
        assert!(case.judged(check, json!({"claims": [open]})).is_empty());
    }

    #[test]
    fn an_old_imbalance_is_no_fault_of_who_evens_it() {
        let mut case = case(&["p"]).node(node_json("n", "zone-1"));
        for name in ["a", "b", "c"] {
            case = case.bound(name, "n", json!({}));
        }
        for pod in [1, 2, 3] {
            case.problem["pods"][pod]["metadata"]["labels"] = json!({"app": "a"});
        }
        assert!(case.judged(check, json!({"claims": [in_zone(&["zone-2"], &["p"])]})).is_empty());
        assert!(!case.judged(check, json!({"existing": [{"node": "n", "pods": ["default/p"]}]})).is_empty());
    }

    #[test]
    fn too_few_domains_make_the_least_zero() {
        let mut case = case(&["p", "q", "r"]);
        for pod in [0, 1, 2] {
            case.problem["pods"][pod]["spec"]["topologySpreadConstraints"][0]["minDomains"] = json!(3);
        }
        let answer = json!({"claims": [in_zone(&["zone-1"], &["p", "r"]), in_zone(&["zone-2"], &["q"])]});
        assert_eq!(case.judged(check, answer).len(), 2);
    }

    #[test]
    fn hostnames_are_never_short() {
        let mut case = case(&["p", "q"]);
        for pod in [0, 1] {
            spread(&mut case.problem["pods"][pod], "kubernetes.io/hostname", 1);
        }
        let apart = json!({"claims": [claim("default", &["c-4x"], &["p"]), claim("default", &["c-4x"], &["q"])]});
        assert!(case.judged(check, apart).is_empty());
        assert!(!case.judged(check, json!({"claims": [claim("default", &["c-4x"], &["p", "q"])]})).is_empty());
    }

    #[test]
    fn a_new_node_without_another_topology_label_is_no_domain() {
        let mut case = case(&["p", "q"]).node(node_json("n", "zone-1"));
        case.problem["nodes"][0]["metadata"]["labels"]["example.com/rack"] = json!("a");
        let answer = json!({"existing": [{"node": "n", "pods": ["default/p", "default/q"]}]});
        assert!(!case.judged(check, answer.clone()).is_empty());
        for pod in [0, 1] {
            let mut rack = case.problem["pods"][pod]["spec"]["topologySpreadConstraints"][0].clone();
            rack["topologyKey"] = json!("example.com/rack");
            case.problem["pods"][pod]["spec"]["topologySpreadConstraints"].as_array_mut().unwrap().push(rack);
        }
        assert!(case.judged(check, answer).is_empty());
    }

    #[test]
    fn a_preference_is_no_rule() {
        let mut case = case(&["p", "q"]);
        for pod in [0, 1] {
            case.problem["pods"][pod]["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] =
                json!("ScheduleAnyway");
        }
        assert!(case.judged(check, json!({"claims": [in_zone(&["zone-1"], &["p", "q"])]})).is_empty());
    }
}
