//! Status of PodDisruptionBudgets.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::actor::{Actor, BUDGETS, PODS, REPLICA_SETS, controller_of, deleting, is_true, settle, text};
use crate::apiserver::selector::Selector;

pub(super) fn sync(actor: &Actor) {
    let budgets = actor.list(BUDGETS);
    if budgets.is_empty() {
        return;
    }
    let (pods, sets) = (actor.list(PODS), actor.list(REPLICA_SETS));
    let scale: BTreeMap<&str, i64> = sets
        .iter()
        .map(|s| (text(&s.value["metadata"], "uid"), s.value["spec"]["replicas"].as_i64().unwrap_or(1)))
        .collect();
    for budget in &budgets {
        let budget = &budget.value;
        let namespace = text(&budget["metadata"], "namespace");
        let Some(selector) = Selector::from_label_selector(&budget["spec"]["selector"]) else { continue };
        let covered: Vec<&Value> = pods
            .iter()
            .map(|p| &p.value)
            .filter(|p| {
                text(&p["metadata"], "namespace") == namespace && selector.matches_labels(&p["metadata"]["labels"])
            })
            .collect();
        let status = status(budget, &covered, &scale);
        if status.as_object().into_iter().flatten().any(|(field, value)| budget["status"][field] != *value) {
            let name = text(&budget["metadata"], "name");
            let patch =
                json!({"metadata": {"resourceVersion": budget["metadata"]["resourceVersion"]}, "status": status});
            settle("status of a PodDisruptionBudget", actor.patch(BUDGETS, namespace, name, Some("status"), &patch));
        }
    }
}

fn status(budget: &Value, covered: &[&Value], scale: &BTreeMap<&str, i64>) -> Value {
    // Evicted pods that have not begun to go yet count as gone.
    let mut disrupted = Map::new();
    for (name, time) in budget["status"]["disruptedPods"].as_object().into_iter().flatten() {
        let still = covered.iter().any(|p| text(&p["metadata"], "name") == name && !deleting(p));
        disrupted.insert(name.clone(), if still { time.clone() } else { Value::Null });
    }
    let healthy = covered
        .iter()
        .filter(|p| is_true(p, "Ready") && !deleting(p))
        .filter(|p| disrupted.get(text(&p["metadata"], "name")).is_none_or(Value::is_null))
        .count();
    let (healthy, total) =
        (i64::try_from(healthy).unwrap_or(i64::MAX), i64::try_from(covered.len()).unwrap_or(i64::MAX));
    let mut owners: Vec<&str> = covered.iter().filter_map(|p| controller_of(p)).collect();
    owners.sort_unstable();
    owners.dedup();
    let expected = if owners.is_empty() {
        total
    } else {
        owners.iter().map(|uid| scale.get(uid).copied().unwrap_or_default()).sum()
    };
    let (expected, desired) = match (&budget["spec"]["minAvailable"], &budget["spec"]["maxUnavailable"]) {
        (Value::Number(least), _) => (total, least.as_i64().unwrap_or_default()),
        (Value::String(least), _) => (expected, share(least, expected)),
        (_, Value::Number(most)) => (expected, (expected - most.as_i64().unwrap_or_default()).max(0)),
        (_, Value::String(most)) => (expected, (expected - share(most, expected)).max(0)),
        _ => (expected, 0),
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    let condition = json!([{
        "type": "DisruptionAllowed", "status": if allowed > 0 { "True" } else { "False" },
        "reason": if allowed > 0 { "SufficientPods" } else { "InsufficientPods" }, "message": "",
        "observedGeneration": budget["metadata"]["generation"],
        "lastTransitionTime": budget["status"]["conditions"][0]["lastTransitionTime"].as_str().unwrap_or("1970-01-01T00:00:00Z"),
    }]);
    let mut out = json!({
        "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected, "disruptionsAllowed": allowed,
        "observedGeneration": budget["metadata"]["generation"], "conditions": condition,
    });
    if disrupted.values().any(Value::is_null) {
        out["disruptedPods"] = Value::Object(disrupted);
    }
    out
}

/// A percentage of a number, rounded up, as disruption budgets do.
fn share(text: &str, of: i64) -> i64 {
    let percent: i64 = text.trim_end_matches('%').parse().unwrap_or_default();
    (percent.saturating_mul(of) + 99) / 100
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn allowed_disruptions_follow_the_budget() {
        let pod = |name: &str, ready: &str| json!({"metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]}});
        let (a, b, c) = (pod("a", "True"), pod("b", "True"), pod("c", "False"));
        let covered = [&a, &b, &c];
        let allowed = |spec: Value| {
            status(&json!({"metadata": {"generation": 1}, "spec": spec}), &covered, &BTreeMap::new())["disruptionsAllowed"].clone()
        };
        assert_eq!(allowed(json!({"minAvailable": 1})), 1);
        assert_eq!(allowed(json!({"minAvailable": 2})), 0);
        assert_eq!(allowed(json!({"minAvailable": "50%"})), 0);
        assert_eq!(allowed(json!({"maxUnavailable": 2})), 1);
        assert_eq!(allowed(json!({"maxUnavailable": 0})), 0);
    }
}
