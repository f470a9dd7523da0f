//! Taints are tolerated: every pod tolerates each NoSchedule and NoExecute taint that its node keeps. PreferNoSchedule is
//! a preference; startup taints of a pool go away by themselves.

use crate::model::pod::{key, refused_by};
use crate::model::world::World;
use crate::violation::{Fault, Findings, Rule, Violation};

pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    let mut found = Findings::of(Rule::Taints);
    for place in &world.places {
        for pod in &place.placed {
            if let Some(taint) = refused_by(pod, &place.taints) {
                let value = taint.value.as_deref().unwrap_or_default();
                let fault = format!("it does not tolerate {}={value}:{}", taint.key, taint.effect);
                found.add(Some(&key(pod)), Some(&place.name), Fault::Conflict(fault));
            }
        }
    }
    found.all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::cases::{Case, claim};
    use serde_json::json;

    #[test]
    fn a_taint_needs_its_toleration() {
        let mut case = Case::new().pending("p", json!({}));
        let answer = json!({"claims": [claim("default", &["c-4x"], &["p"])]});
        case.problem["nodePools"][0]["spec"]["template"]["spec"]["taints"] =
            json!([{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "c", "effect": "PreferNoSchedule"}]);
        case.problem["nodePools"][0]["spec"]["template"]["spec"]["startupTaints"] =
            json!([{"key": "d", "effect": "NoSchedule"}]);
        for (toleration, right) in [
            (json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}), true),
            (json!({"key": "a", "operator": "Exists"}), true),
            (json!({"operator": "Exists"}), true),
            (json!({"key": "a", "operator": "Equal", "value": "c"}), false),
            (json!({"key": "a", "operator": "Exists", "effect": "NoExecute"}), false),
        ] {
            case.problem["pods"][0]["spec"]["tolerations"] = json!([toleration]);
            assert_eq!(case.judged(check, answer.clone()).is_empty(), right, "{toleration}");
        }
    }
}
