//! A claim is a narrowing of its pool, and each of its instance types can be had: it exists, is offered to the pool,
//! agrees with the claim's requirements, and has an available offering that agrees with them. (A claim that holds a
//! reservation may keep types beside those reserved, as long as one can be had.)
//!
//! A claim may add requirements on labels that instance types define. On another label that its pool does not set it may
//! only exclude values: no node would ever carry the label.

use std::collections::BTreeSet;

use mortise_problem::Claim;
use mortise_problem::api::NodePool;
use mortise_problem::api::labels::{CAPACITY_RESERVATION_ID, CAPACITY_TYPE, INSTANCE_TYPE, is_well_known, normalize};
use mortise_problem::api::requirement::Requirement;

use crate::model::machine::{admitted, instance_type, machines, pool, template_labels};
use crate::model::values::{Labels, narrow};
use crate::model::world::{World, claim_requirements};
use crate::violation::{Fault, Findings, Rule, Violation};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::InstanceTypes);
    for (index, claim) in world.answer.claims.iter().enumerate() {
        let name = format!("claim {index}");
        let Some(pool) = pool(world.problem, &claim.node_pool) else { continue };
        check_narrowing(world, &name, claim, pool, &mut found);
        if claim.instance_types.is_empty() {
            found.add(None, Some(&name), Fault::Missing("it has no instance type".into()));
        }
        let kinds = claim.instance_types.iter().filter_map(|name| instance_type(world.problem, name));
        let requirements = claim_requirements(claim);
        if kinds.into_iter().all(|kind| machines(pool, &requirements, kind, &name).is_empty()) {
            let fault = "none of its instance types has an available offering within the requirements";
            found.add(None, Some(&name), Fault::Missing(fault.into()));
        }
        let mut seen = BTreeSet::new();
        for type_name in &claim.instance_types {
            if !seen.insert(type_name) {
                found.add(None, Some(&name), Fault::Conflict(format!("instance type {type_name} is listed twice")));
            }
            let Some(instance_type) = instance_type(world.problem, type_name) else {
                found.add(None, Some(&name), Fault::Missing(format!("there is no instance type {type_name}")));
                continue;
            };
            if !world.problem.is_offered(&claim.node_pool, type_name) {
                let fault = format!("NodePool {} is not offered instance type {type_name}", claim.node_pool);
                found.add(None, Some(&name), Fault::Conflict(fault));
            }
            if machines(pool, &before_reserving(claim), instance_type, &name).is_empty() {
                let fault = format!("instance type {type_name} has no available offering within the requirements");
                found.add(None, Some(&name), Fault::Missing(fault));
            }
        }
    }
    found.all
}

/// What a claim requires but for what holding a reservation adds: the types beside those reserved stay on its list.
fn before_reserving(claim: &Claim) -> Vec<Requirement> {
    let added = |key: &str| !claim.reservations.is_empty() && [CAPACITY_TYPE, CAPACITY_RESERVATION_ID].contains(&key);
    claim_requirements(claim).into_iter().filter(|requirement| !added(&requirement.key)).collect()
}

fn check_narrowing(world: &World<'_>, name: &str, claim: &Claim, pool: &NodePool, found: &mut Findings) {
    let of_pool = template_labels(pool, &[]);
    let mut of_claim = Labels::new();
    for requirement in &claim.requirements {
        narrow(&mut of_claim, &requirement.key, &admitted(requirement));
    }
    for requirement in &pool.spec.template.spec.requirements {
        let key = normalize(&requirement.key);
        // The list of instance types is a requirement by itself.
        let kept = of_claim.get(key).is_some_and(|values| of_pool.get(key).is_some_and(|p| p.contains(values)));
        if !kept && key != INSTANCE_TYPE {
            let fault = format!("requirement {key} of NodePool {} is not kept", claim.node_pool);
            found.add(None, Some(name), Fault::Missing(fault));
        }
    }
    for (key, values) in &of_claim {
        let fault = match of_pool.get(key) {
            Some(pool) if pool.and(values).is_empty() => format!("requirement {key} contradicts the NodePool"),
            None if !values.absent && !is_defined(world, key) => {
                format!("requirement {key} is on a label that nothing defines")
            }
            _ if values.is_empty() => format!("requirement {key} admits no value"),
            _ => continue,
        };
        found.add(None, Some(name), Fault::Conflict(fault));
    }
}

/// Whether instance types or offerings say what the label is.
fn is_defined(world: &World<'_>, key: &str) -> bool {
    is_well_known(key)
        || world.problem.instance_types.iter().any(|kind| {
            let offered = kind.offerings.iter().flat_map(|offering| &offering.requirements);
            kind.requirements.iter().chain(offered).any(|requirement| normalize(&requirement.key) == key)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, pool_json, reserved};
    use serde_json::json;

    #[test]
    fn a_requirement_of_the_pool_is_kept_or_narrowed() {
        let requirements =
            json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1", "zone-2"]}]);
        let case = Case::new().pool(pool_json("default", requirements)).pending("p", json!({}));
        for (zones, right) in [(json!(["zone-1"]), true), (json!(["zone-1", "zone-3"]), false), (json!([]), false)] {
            let mut claim = claim("default", &["c-4x"], &["p"]);
            claim["requirements"] = json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones}]);
            assert_eq!(case.judged(check, json!({"claims": [claim]})).is_empty(), right, "{zones}");
        }
        assert!(!case.judged(check, json!({"claims": [claim("default", &["c-4x"], &["p"])]})).is_empty());
    }

    #[test]
    fn a_claim_that_holds_a_reservation_keeps_other_types_beside() {
        let case = reserved(Case::new(), 1).pending("p", json!({}));
        let mut claim = claim("default", &["c-4x", "c-8x"], &["p"]);
        claim["requirements"] =
            json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]}]);
        assert!(!case.judged(check, json!({"claims": [claim]})).is_empty());
        claim["reservations"] = json!(["r-1"]);
        assert!(case.judged(check, json!({"claims": [claim]})).is_empty());
        claim["instanceTypes"] = json!(["c-8x"]);
        assert_eq!(case.judged(check, json!({"claims": [claim]})).len(), 1);
    }

    #[test]
    fn a_label_that_nothing_defines_can_only_be_excluded() {
        let case = Case::new().pending("p", json!({}));
        for (operator, right) in [("NotIn", true), ("In", false)] {
            let mut claim = claim("default", &["c-4x"], &["p"]);
            claim["requirements"] = json!([{"key": "example.com/x", "operator": operator, "values": ["a"]}]);
            assert_eq!(case.judged(check, json!({"claims": [claim]})).is_empty(), right, "{operator}");
        }
    }
}
