//! Requests are within what is allocatable: pods and the DaemonSets that may run there together, on each machine that a
//! claim may turn out to be, for every resource; and a claim asks for at least what its pods do.
//!
//! On a node that exists, DaemonSets still take what all that may run there ask for, less what those there have.

use crate::model::pod;
use crate::model::quantity::{Resources, add, resources, show};
use crate::model::world::World;
use crate::violation::{Findings, Rule, Violation, exceeds, lacks};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Fit);
    for place in world.places.iter().filter(|place| !place.placed.is_empty()) {
        let mut pods = Resources::new();
        for p in place.pods() {
            add(&mut pods, &pod::requests(p));
        }
        let mut there = Resources::new();
        for p in place.staying.iter().filter(|p| pod::is_owned_by(p, "DaemonSet")) {
            add(&mut there, &pod::requests(p));
        }
        for machine in &place.machines {
            let mut needed = pods.clone();
            for (name, amount) in world.daemon_requests(&place.taints, machine, place.node_name.as_deref()) {
                let more = (amount - there.get(&name).copied().unwrap_or_default()).max(0);
                *needed.entry(name).or_default() += more;
            }
            for (name, amount) in needed {
                let room = machine.allocatable.get(&name).copied().unwrap_or_default();
                if amount > room {
                    let what = format!("{name} of {}", machine.name);
                    found.add(None, Some(&place.name), exceeds(what, show(amount), show(room)));
                }
            }
        }
        let Some(claim) = place.claim.and_then(|index| world.answer.claims.get(index)) else { continue };
        let asked = resources(&claim.requests);
        for (name, amount) in pods.iter().filter(|_| !asked.is_empty()) {
            let of_claim = asked.get(name).copied().unwrap_or_default();
            if of_claim < *amount && name != "pods" {
                found.add(None, Some(&place.name), lacks(format!("{name} requested"), show(of_claim), show(*amount)));
            }
        }
    }
    found.all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, node_json};
    use serde_json::json;

    #[test]
    fn each_type_left_holds_the_pods() {
        let case = Case::new().pending("p", json!({"cpu": "3"})).pending("q", json!({"cpu": "2"}));
        assert!(case.judged(check, json!({"claims": [claim("default", &["c-8x"], &["p", "q"])]})).is_empty());
        let wrong = case.judged(check, json!({"claims": [claim("default", &["c-8x", "c-4x"], &["p", "q"])]}));
        assert!(wrong.iter().any(|v| v.contains("cpu of c-4x in zone-1 (spot): 5 of at most 3.9")), "{wrong:?}");
    }

    #[test]
    fn daemon_sets_take_their_part() {
        let case = Case::new().pending("p", json!({"cpu": "3.5"}));
        let answer = json!({"claims": [claim("default", &["c-4x"], &["p"])]});
        assert!(
            case.clone()
                .daemon_set("light", json!({"cpu": "400m"}), json!({}))
                .judged(check, answer.clone())
                .is_empty()
        );
        assert!(
            !case
                .clone()
                .daemon_set("heavy", json!({"cpu": "500m"}), json!({}))
                .judged(check, answer.clone())
                .is_empty()
        );
        let elsewhere = json!({"kubernetes.io/arch": "arm64"});
        assert!(case.daemon_set("arm", json!({"cpu": "3"}), elsewhere).judged(check, answer).is_empty());
    }

    #[test]
    fn what_runs_on_a_node_is_taken() {
        let case = Case::new().node(node_json("n", "zone-1")).bound("old", "n", json!({"cpu": "3"}));
        let case = case.pending("p", json!({"cpu": "1"})).pending("q", json!({"cpu": "100m"}));
        assert!(case.judged(check, json!({"existing": [{"node": "n", "pods": ["default/p"]}]})).is_empty());
        let both = json!({"existing": [{"node": "n", "pods": ["default/p", "default/q"]}]});
        assert!(!case.judged(check, both).is_empty());
    }

    #[test]
    fn a_claim_asks_for_what_its_pods_do() {
        let case = Case::new().pending("p", json!({"cpu": "1"}));
        let mut short = claim("default", &["c-4x"], &["p"]);
        short["requests"] = json!({"cpu": "900m"});
        assert!(case.judged(check, json!({"claims": [short]}))[0].contains("cpu requested: 0.9 of at least 1"));
    }
}
