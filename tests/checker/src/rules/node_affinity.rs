//! Node selector and one term of the required node affinity hold on each machine that a claim may turn out to be,
//! whichever value a label that is left open gets.

use crate::model::pod::{key, surely_selects};
use crate::model::world::World;
use crate::violation::{Fault, Findings, Rule, Violation};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::NodeAffinity);
    for place in &world.places {
        for pod in &place.placed {
            for machine in &place.machines {
                if !surely_selects(pod, &machine.labels, place.node_name.as_deref()) {
                    let fault = format!("node selector or required node affinity does not hold on {}", machine.name);
                    found.add(Some(&key(pod)), Some(&place.name), Fault::Conflict(fault));
                }
            }
        }
    }
    found.all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, node_json, zones};
    use serde_json::json;

    #[test]
    fn an_open_zone_is_no_pinned_zone() {
        let mut case = Case::new().pending("p", json!({}));
        case.problem["pods"][0]["spec"]["nodeSelector"] = json!({"topology.kubernetes.io/zone": "zone-1"});
        let mut narrowed = claim("default", &["c-4x"], &["p"]);
        assert_eq!(case.judged(check, json!({"claims": [narrowed.clone()]})).len(), 1);
        narrowed["requirements"] = zones(&["zone-1"]);
        assert!(case.judged(check, json!({"claims": [narrowed]})).is_empty());
    }

    #[test]
    fn one_term_is_enough_and_old_keys_mean_the_new_ones() {
        let mut case = Case::new().node(node_json("n", "zone-1")).pending("p", json!({}));
        let term =
            |key: &str, value: &str| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
        let answer = json!({"existing": [{"node": "n", "pods": ["default/p"]}]});
        for (terms, right) in [
            (vec![term("x", "y"), term("failure-domain.beta.kubernetes.io/zone", "zone-1")], true),
            (vec![term("topology.kubernetes.io/zone", "zone-2")], false),
            (vec![json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]})], true),
            (vec![json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}]})], false),
        ] {
            case.problem["pods"][0]["spec"]["affinity"] = json!({"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
            assert_eq!(case.judged(check, answer.clone()).is_empty(), right, "{terms:?}");
        }
    }
}
