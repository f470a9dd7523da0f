//! `minValues` are kept (unless the policy is BestEffort): for each requirement of the pool with one, the claim's instance
//! types have at least so many different values of the label among those that the pool admits. What the pods' own
//! requirements exclude counts: it narrows the launch, not the choice that the pool asks to keep.

use std::collections::BTreeSet;

use mortise_problem::MinValuesPolicy;
use mortise_problem::api::labels::{INSTANCE_TYPE, normalize};

use crate::model::machine::{admitted, instance_type, pool, template_labels};
use crate::model::values::{Labels, narrow};
use crate::model::world::World;
use crate::violation::{Findings, Rule, Violation, lacks};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::MinValues);
    if world.problem.options.min_values_policy == MinValuesPolicy::BestEffort {
        return Vec::new();
    }
    for (index, claim) in world.answer.claims.iter().enumerate() {
        let Some(pool) = pool(world.problem, &claim.node_pool) else { continue };
        let of_pool = template_labels(pool, &[]);
        for requirement in &pool.spec.template.spec.requirements {
            let Some(least) = requirement.min_values.and_then(|n| usize::try_from(n).ok()) else { continue };
            let key = normalize(&requirement.key);
            let Some(of_pool) = of_pool.get(key) else { continue };
            let mut values: BTreeSet<String> = BTreeSet::new();
            for kind in claim.instance_types.iter().filter_map(|name| instance_type(world.problem, name)) {
                let mut labels = Labels::new();
                for own in &kind.requirements {
                    narrow(&mut labels, &own.key, &admitted(own));
                }
                if key == INSTANCE_TYPE {
                    values.insert(kind.name.clone());
                }
                let own = labels.get(key).map(|own| own.and(of_pool));
                values.extend(own.and_then(|own| own.only).into_iter().flatten());
            }
            if values.len() < least {
                let place = format!("claim {index}");
                found.add(None, Some(&place), lacks(format!("values of {key}"), values.len(), least));
            }
        }
    }
    found.all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim, pool_json, zones};
    use serde_json::json;

    #[test]
    fn values_are_counted_over_the_types_left() {
        let least = json!([{"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}]);
        let mut case = Case::new().pool(pool_json("default", least)).pending("p", json!({}));
        let answer = |types: &[&str]| json!({"claims": [claim("default", types, &["p"])]});
        assert!(case.judged(check, answer(&["c-4x", "c-8x"])).is_empty());
        let wrong = case.judged(check, answer(&["c-4x"]));
        assert!(wrong[0].contains("values of node.kubernetes.io/instance-type: 1 of at least 2"), "{wrong:?}");
        case.problem["options"] = json!({"minValuesPolicy": "BestEffort"});
        assert!(case.judged(check, answer(&["c-4x"])).is_empty());
    }

    #[test]
    fn what_a_pod_excludes_still_counts() {
        let least = json!([{"key": "topology.kubernetes.io/zone", "operator": "Exists", "minValues": 2}]);
        let case = Case::new().pool(pool_json("default", least)).pending("p", json!({}));
        let mut claim = claim("default", &["c-4x"], &["p"]);
        claim["requirements"] = zones(&["zone-1"]);
        assert!(case.judged(check, json!({"claims": [claim]})).is_empty());
    }
}
