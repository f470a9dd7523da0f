//! NodeConfig of AL2023's nodeadm.

use mortise_api::labels;
use serde_json::{Map, Value, json};

use super::{Bootstrap, UserDataError};

/// Taint that keeps pods away until the node has been matched to its NodeClaim.
const UNREGISTERED: &str = "karpenter.sh/unregistered";

/// The generated NodeConfig as YAML.
pub(super) fn node_config(b: &Bootstrap<'_>) -> Result<String, UserDataError> {
    let cluster = b.cluster;
    let need = |value: &Option<std::sync::Arc<str>>, what| {
        value.as_ref().map(|v| v.to_string()).ok_or(UserDataError::Cluster(what))
    };
    let mut instance = Map::new();
    if b.raid0 {
        instance.insert("localStorage".to_owned(), json!({"strategy": "RAID0"}));
    }
    let mut spec = Map::new();
    spec.insert(
        "cluster".to_owned(),
        json!({
            "name": &*cluster.name,
            "apiServerEndpoint": need(&cluster.endpoint, "endpoint")?,
            "certificateAuthority": need(&cluster.ca_bundle, "CA certificate")?,
            "cidr": need(&cluster.service_cidr, "service CIDR")?,
        }),
    );
    if !instance.is_empty() {
        spec.insert("instance".to_owned(), Value::Object(instance));
    }
    let flags: Vec<String> = node_labels(b).map(|l| format!("--node-labels={l}")).into_iter().collect();
    spec.insert("kubelet".to_owned(), json!({"config": kubelet(b), "flags": flags}));
    let config = json!({"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec});
    let yaml = serde_norway::to_string(&sorted(config)).map_err(|e| UserDataError::Custom(e.to_string()))?;
    Ok(format!("# Generated: settings of earlier parts are merged with these, and these win\n{yaml}"))
}

/// Keys in order at every level: the text decides a launch template's name, so it must not hang on how maps are kept.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let ordered: std::collections::BTreeMap<_, _> = map.into_iter().collect();
            Value::Object(ordered.into_iter().map(|(k, v)| (k, sorted(v))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

/// `k=v,k=v`, without the labels that a kubelet may not give itself.
fn node_labels(b: &Bootstrap<'_>) -> Option<String> {
    let pairs: Vec<String> = b
        .labels
        .iter()
        .filter(|(key, _)| !labels::is_kubelet_restricted(key))
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (!pairs.is_empty()).then(|| pairs.join(","))
}

/// Kubelet settings: the user's, with what we decide filled in.
fn kubelet(b: &Bootstrap<'_>) -> Map<String, Value> {
    let mut config: Map<String, Value> = b.kubelet.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    config.insert("maxPods".to_owned(), json!(b.max_pods));
    if let (false, Some(ip)) = (config.contains_key("clusterDNS"), &b.cluster.dns_ip) {
        config.insert("clusterDNS".to_owned(), json!([&**ip]));
    }
    let mut taints: Vec<Value> = b
        .taints
        .iter()
        .map(|t| {
            let mut taint = Map::new();
            taint.insert("key".to_owned(), json!(&*t.key));
            if !t.value.is_empty() {
                taint.insert("value".to_owned(), json!(&*t.value));
            }
            taint.insert("effect".to_owned(), json!(effect(t.effect)));
            Value::Object(taint)
        })
        .collect();
    if !b.taints.iter().any(|t| &*t.key == UNREGISTERED) {
        taints.push(json!({"key": UNREGISTERED, "effect": "NoExecute"}));
    }
    config.insert("registerWithTaints".to_owned(), Value::Array(taints));
    config
}

fn effect(effect: mortise_engine::taint::Effect) -> &'static str {
    use mortise_engine::taint::Effect;
    match effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    }
}
