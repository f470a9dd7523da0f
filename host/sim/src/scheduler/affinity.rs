//! Node selectors and required node affinity.

use serde_json::Value;

/// The node suits the selector and the required affinity of a pod spec.
pub(crate) fn matches(node: &Value, pod_spec: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let mut selector = pod_spec["nodeSelector"].as_object().into_iter().flatten();
    if !selector.all(|(key, value)| labels.get(key) == Some(value)) {
        return false;
    }
    let required = &pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    match required["nodeSelectorTerms"].as_array() {
        None => true,
        Some(terms) => terms.iter().any(|term| term_matches(node, term)),
    }
}

fn term_matches(node: &Value, term: &Value) -> bool {
    let list = |field: &str| term[field].as_array().map(Vec::as_slice).unwrap_or_default();
    let (labels, fields) = (list("matchExpressions"), list("matchFields"));
    let of_label =
        |r: &Value| node["metadata"]["labels"][r["key"].as_str().unwrap_or_default()].as_str().map(str::to_owned);
    let of_field = |r: &Value| {
        (r["key"] == "metadata.name").then(|| node["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    };
    // A term without requirements matches nothing.
    !(labels.is_empty() && fields.is_empty())
        && labels.iter().all(|r| holds(r, of_label(r)))
        && fields.iter().all(|r| holds(r, of_field(r)))
}

fn holds(requirement: &Value, found: Option<String>) -> bool {
    let values: Vec<&str> = requirement["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let number = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok());
    let (have, want) = (number(found.as_deref()), number(values.first().copied()));
    match requirement["operator"].as_str() {
        Some("In") => found.is_some_and(|f| values.contains(&f.as_str())),
        Some("NotIn") => found.is_none_or(|f| !values.contains(&f.as_str())),
        Some("Exists") => found.is_some(),
        Some("DoesNotExist") => found.is_none(),
        Some("Gt") => have.zip(want).is_some_and(|(have, want)| have > want),
        Some("Lt") => have.zip(want).is_some_and(|(have, want)| have < want),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_are_alternatives_and_all_operators_hold() {
        let node = json!({"metadata": {"name": "n1", "labels": {"zone": "a", "gen": "6"}}});
        let affinity = |terms: Value| json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}});
        let one = |key: &str, operator: &str, values: Value| json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]);
        for (terms, expected) in [
            (one("zone", "In", json!(["a", "b"])), true),
            (one("zone", "NotIn", json!(["a"])), false),
            (one("gone", "NotIn", json!(["a"])), true),
            (one("gone", "Exists", json!([])), false),
            (one("gone", "DoesNotExist", json!([])), true),
            (one("gen", "Gt", json!(["5"])), true),
            (one("gen", "Lt", json!(["6"])), false),
            (json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]), true),
            (json!([{}]), false),
        ] {
            assert_eq!(matches(&node, &affinity(terms.clone())), expected, "{terms}");
        }
        assert!(matches(&node, &json!({"nodeSelector": {"zone": "a"}})));
        assert!(!matches(&node, &json!({"nodeSelector": {"zone": "b"}})));
    }
}
