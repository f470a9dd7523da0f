//! Defaults of built-in kinds, as far as the controllers here and kubectl look at them.

use serde_json::{Map, Value, json};

/// Fills in what the API server would.
pub(crate) fn fill(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("", "Pod") => {
            pod_spec(&mut object["spec"]);
            tolerations(&mut object["spec"]);
            set(&mut object["status"], "phase", "Pending".into());
            let class = quality(&object["spec"]);
            set(&mut object["status"], "qosClass", class.into());
        }
        ("", "Namespace") => {
            let name = object["metadata"]["name"].clone();
            set(&mut object["metadata"]["labels"], "kubernetes.io/metadata.name", name);
            set(&mut object["spec"], "finalizers", json!(["kubernetes"]));
            set(&mut object["status"], "phase", "Active".into());
        }
        ("", "Secret") => secret(object),
        ("", "Service") => service(&mut object["spec"]),
        ("apps", "Deployment") => {
            let spec = &mut object["spec"];
            set(spec, "replicas", 1.into());
            set(spec, "revisionHistoryLimit", 10.into());
            set(spec, "progressDeadlineSeconds", 600.into());
            set(spec, "strategy", json!({}));
            set(&mut spec["strategy"], "type", "RollingUpdate".into());
            if spec["strategy"]["type"] == "RollingUpdate" {
                set(&mut spec["strategy"]["rollingUpdate"], "maxUnavailable", "25%".into());
                set(&mut spec["strategy"]["rollingUpdate"], "maxSurge", "25%".into());
            }
            pod_spec(&mut spec["template"]["spec"]);
        }
        ("apps", "ReplicaSet" | "StatefulSet") => {
            set(&mut object["spec"], "replicas", 1.into());
            pod_spec(&mut object["spec"]["template"]["spec"]);
        }
        ("apps", "DaemonSet") => {
            let spec = &mut object["spec"];
            set(spec, "revisionHistoryLimit", 10.into());
            set(&mut spec["updateStrategy"], "type", "RollingUpdate".into());
            pod_spec(&mut spec["template"]["spec"]);
        }
        _ => {}
    }
}

/// Sets a field that is absent, making the map when there is none.
fn set(target: &mut Value, name: &str, preset: Value) {
    if target.is_null() {
        *target = Value::Object(Map::new());
    }
    if let Some(fields) = target.as_object_mut() {
        let slot = fields.entry(name).or_insert(Value::Null);
        if slot.is_null() {
            *slot = preset;
        }
    }
}

fn pod_spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    set(spec, "restartPolicy", "Always".into());
    set(spec, "dnsPolicy", "ClusterFirst".into());
    set(spec, "schedulerName", "default-scheduler".into());
    set(spec, "terminationGracePeriodSeconds", 30.into());
    set(spec, "securityContext", json!({}));
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container_defaults(container);
        }
    }
}

fn container_defaults(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let latest = image.ends_with(":latest") || !image.rsplit('/').next().unwrap_or_default().contains([':', '@']);
    set(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" }.into());
    set(container, "terminationMessagePath", "/dev/termination-log".into());
    set(container, "terminationMessagePolicy", "File".into());
    set(container, "resources", json!({}));
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set(port, "protocol", "TCP".into());
    }
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    for (resource, amount) in limits {
        set(&mut container["resources"]["requests"], &resource, amount);
    }
}

/// As the DefaultTolerationSeconds admission does: five minutes on a node that is not ready or unreachable.
fn tolerations(spec: &mut Value) {
    set(spec, "tolerations", json!([]));
    set(spec, "priority", 0.into());
    set(spec, "preemptionPolicy", "PreemptLowerPriority".into());
    set(spec, "serviceAccountName", "default".into());
    set(spec, "serviceAccount", "default".into());
    set(spec, "enableServiceLinks", true.into());
    let Some(list) = spec["tolerations"].as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = list.iter().any(|t| {
            (t["key"] == key || t["key"].as_str().unwrap_or_default().is_empty())
                && (t["effect"] == "NoExecute" || t["effect"].as_str().unwrap_or_default().is_empty())
        });
        if !tolerated {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

fn quality(spec: &Value) -> &'static str {
    let containers = spec["containers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let amounts = |c: &Value, which: &str| c["resources"][which].as_object().is_some_and(|m| !m.is_empty());
    if containers.iter().all(|c| !amounts(c, "requests") && !amounts(c, "limits")) {
        return "BestEffort";
    }
    let guaranteed = containers.iter().all(|c| {
        let (requests, limits) = (&c["resources"]["requests"], &c["resources"]["limits"]);
        ["cpu", "memory"].iter().all(|r| limits[r].is_string() && requests[r] == limits[r])
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

fn secret(object: &mut Value) {
    use base64::Engine as _;
    set(object, "type", "Opaque".into());
    let text = object.as_object_mut().and_then(|o| o.remove("stringData"));
    for (key, value) in text.as_ref().and_then(Value::as_object).into_iter().flatten() {
        let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
        if object["data"].is_null() {
            object["data"] = json!({});
        }
        object["data"][key] = encoded.into();
    }
}

fn service(spec: &mut Value) {
    set(spec, "type", "ClusterIP".into());
    set(spec, "sessionAffinity", "None".into());
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set(port, "protocol", "TCP".into());
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
}
