//! Which pods a topology constraint is about.

use std::collections::BTreeMap;

use mortise_problem::Problem;
use mortise_problem::k8s_openapi::api::core::v1::{Pod, PodAffinityTerm, TopologySpreadConstraint};
use mortise_problem::k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::pod::{labels, namespace};

/// Whether a selector selects labels. None selects nothing, an empty one everything, an unknown operator nothing.
pub(crate) fn selects(selector: Option<&LabelSelector>, labels: &BTreeMap<String, String>) -> bool {
    let Some(selector) = selector else { return false };
    selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && selector.match_expressions.iter().flatten().all(|expression| {
            let value = labels.get(&expression.key);
            let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|v| v == value));
            match expression.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                _ => false,
            }
        })
}

/// A selector narrowed to the pods that have (`In`) or have not (`NotIn`) the same values as `pod` for some keys.
fn alike(selector: Option<&LabelSelector>, pod: &Pod, keys: &[String], operator: &str) -> Option<LabelSelector> {
    let mut selector = selector?.clone();
    let own = labels(pod);
    for (key, value) in keys.iter().filter_map(|key| own.get(key).map(|value| (key, value))) {
        selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: key.clone(),
            operator: operator.to_owned(),
            values: Some(vec![value.clone()]),
        });
    }
    Some(selector)
}

/// Whether a spread constraint of `owner` counts `other`.
pub(crate) fn spread_counts(constraint: &TopologySpreadConstraint, owner: &Pod, other: &Pod) -> bool {
    let keys = constraint.match_label_keys.as_deref().unwrap_or_default();
    let selector = alike(constraint.label_selector.as_ref(), owner, keys, "In");
    namespace(owner) == namespace(other) && selects(selector.as_ref(), &labels(other))
}

/// Whether an affinity or anti-affinity term of `owner` is about `other`.
pub(crate) fn term_matches(problem: &Problem, term: &PodAffinityTerm, owner: &Pod, other: &Pod) -> bool {
    let same = term.match_label_keys.as_deref().unwrap_or_default();
    let different = term.mismatch_label_keys.as_deref().unwrap_or_default();
    let selector = alike(term.label_selector.as_ref(), owner, same, "In");
    let selector = alike(selector.as_ref(), owner, different, "NotIn");
    in_namespaces(problem, term, owner, namespace(other)) && selects(selector.as_ref(), &labels(other))
}

fn in_namespaces(problem: &Problem, term: &PodAffinityTerm, owner: &Pod, name: &str) -> bool {
    let named = term.namespaces.as_deref().unwrap_or_default();
    match &term.namespace_selector {
        None if named.is_empty() => name == namespace(owner),
        None => named.iter().any(|n| n == name),
        Some(selector) => {
            let of = problem.namespaces.iter().find(|n| n.metadata.name.as_deref() == Some(name));
            let of = of.and_then(|n| n.metadata.labels.clone()).unwrap_or_default();
            named.iter().any(|n| n == name) || selects(Some(selector), &of)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_selector_selects_nothing_and_an_empty_one_everything() {
        assert!(!selects(None, &BTreeMap::new()));
        assert!(selects(Some(&LabelSelector::default()), &BTreeMap::new()));
    }

    #[test]
    fn match_label_keys_keep_revisions_apart() {
        let pod = |hash: &str| -> Pod {
            serde_json::from_value(serde_json::json!({"metadata": {"labels": {"app": "a", "hash": hash}}})).unwrap()
        };
        let constraint: TopologySpreadConstraint = serde_json::from_value(serde_json::json!({
            "maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["hash"],
            "labelSelector": {"matchLabels": {"app": "a"}}
        }))
        .unwrap();
        assert!(spread_counts(&constraint, &pod("1"), &pod("1")));
        assert!(!spread_counts(&constraint, &pod("1"), &pod("2")));
    }
}
