//! Taints and tolerations, as the scheduler sees them.

use serde_json::Value;

/// The first taint that keeps a pod away, as `{key: value}`.
pub(crate) fn untolerated(node: &Value, pod_spec: &Value) -> Option<String> {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    for taint in taints.filter(|t| matches!(t["effect"].as_str(), Some("NoSchedule" | "NoExecute"))) {
        if !tolerated(taint, &pod_spec["tolerations"]) {
            return Some(format!(
                "{{{}: {}}}",
                taint["key"].as_str().unwrap_or_default(),
                taint["value"].as_str().unwrap_or_default()
            ));
        }
    }
    None
}

/// Some toleration matches the taint.
pub(crate) fn tolerated(taint: &Value, tolerations: &Value) -> bool {
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    tolerations.as_array().into_iter().flatten().any(|t| {
        let (key, effect) = (text(t, "key"), text(t, "effect"));
        let key_matches = key == text(taint, "key") || key.is_empty() && t["operator"] == "Exists";
        let value_matches = t["operator"] == "Exists" || text(t, "value") == text(taint, "value");
        key_matches && value_matches && (effect.is_empty() || effect == text(taint, "effect"))
    })
}

/// A pod that may go onto a cordoned node (DaemonSet pods may).
pub(crate) fn tolerates_unschedulable(pod_spec: &Value) -> bool {
    let taint = serde_json::json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"});
    tolerated(&taint, &pod_spec["tolerations"])
}
