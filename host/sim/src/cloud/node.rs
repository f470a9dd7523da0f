//! The Node object that a machine registers, from what the machine itself sees.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_api::annotations;
use mortise_engine::quantity::Resources;
use mortise_engine::taint::{Effect, Taint};
use serde_json::{Map, Value, json};

/// What the user data and the instance metadata say.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) provider_id: Arc<str>,
    pub(super) labels: BTreeMap<Arc<str>, Arc<str>>,
    pub(super) taints: Vec<Taint>,
    pub(super) capacity: Resources,
    pub(super) allocatable: Resources,
    pub(super) address: String,
}

/// The Node as its kubelet registers it: not ready yet, with the taint that keeps pods away until the controller has
/// matched it to its claim.
pub(super) fn object(machine: &Machine, kwok: bool, now: &str) -> Value {
    let mut labels: BTreeMap<&str, &str> = machine.labels.iter().map(|(k, v)| (&**k, &**v)).collect();
    labels.insert("kubernetes.io/hostname", &machine.name);
    for (old, new) in [("beta.kubernetes.io/arch", "kubernetes.io/arch"), ("beta.kubernetes.io/os", "kubernetes.io/os")]
    {
        if let Some(value) = labels.get(new).copied() {
            labels.insert(old, value);
        }
    }
    let mut taints: Vec<Value> = machine.taints.iter().map(taint).collect();
    taints.push(json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"}));
    if !kwok {
        taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
    }
    let mut metadata = json!({"name": machine.name, "labels": labels});
    if kwok {
        metadata["annotations"] = json!({ annotations::KWOK_NODE: "fake" });
    }
    let condition = json!({
        "type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "container runtime network not ready",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    let arch = machine.labels.get("kubernetes.io/arch").map_or("amd64", |a| &**a);
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": metadata,
        "spec": {"providerID": *machine.provider_id, "taints": taints},
        "status": {
            "capacity": amounts(&machine.capacity), "allocatable": amounts(&machine.allocatable),
            "addresses": [{"type": "InternalIP", "address": machine.address}, {"type": "Hostname", "address": machine.name}],
            "conditions": [condition],
            "nodeInfo": {
                "architecture": arch, "operatingSystem": "linux", "kubeletVersion": "v1.36.0-embedded",
                "osImage": "embedded", "kernelVersion": "", "containerRuntimeVersion": "", "machineID": "",
                "systemUUID": "", "bootID": "", "kubeProxyVersion": "",
            },
        },
    })
}

fn taint(taint: &Taint) -> Value {
    let effect = match taint.effect {
        Effect::NoSchedule => "NoSchedule",
        Effect::PreferNoSchedule => "PreferNoSchedule",
        Effect::NoExecute => "NoExecute",
    };
    let mut out = json!({"key": *taint.key, "effect": effect});
    if !taint.value.is_empty() {
        out["value"] = Value::from(&*taint.value);
    }
    out
}

fn amounts(resources: &Resources) -> Value {
    let mut out = Map::new();
    for (name, amount) in resources.iter() {
        let text = if name == "cpu" { format!("{amount}m") } else { amount.to_string() };
        out.insert(name.to_owned(), text.into());
    }
    Value::Object(out)
}
