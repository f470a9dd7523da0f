//! Deployments: one ReplicaSet per template.

use serde_json::{Value, json};

use super::{by_controller, owned_by};
use crate::actor::{Actor, DEPLOYMENTS, REPLICA_SETS, deleting, settle, text};
use crate::apiserver::subresource::set_condition;

const HASH: &str = "pod-template-hash";

pub(super) fn sync(actor: &Actor) {
    let sets = actor.list(REPLICA_SETS);
    let owned = by_controller(&sets);
    for deployment in actor.list(DEPLOYMENTS) {
        let deployment = &deployment.value;
        if deleting(deployment) {
            continue;
        }
        let none = Vec::new();
        let mine = owned.get(text(&deployment["metadata"], "uid")).unwrap_or(&none);
        one(actor, deployment, mine);
    }
}

fn one(actor: &Actor, deployment: &Value, mine: &[&Value]) {
    let namespace = text(&deployment["metadata"], "namespace");
    let hash = template_hash(&deployment["spec"]["template"]);
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let current = mine.iter().find(|s| s["metadata"]["labels"][HASH] == hash.as_str());
    let Some(current) = current else {
        settle(
            "creating a ReplicaSet",
            actor.create(REPLICA_SETS, namespace, replica_set(deployment, &hash, mine.len())),
        );
        return;
    };
    scale(actor, current, wanted);
    let available = current["status"]["availableReplicas"].as_i64().unwrap_or_default();
    for old in mine.iter().filter(|s| s["metadata"]["uid"] != current["metadata"]["uid"]) {
        if available >= wanted {
            scale(actor, old, 0);
        }
    }
    status(actor, deployment, current, mine);
}

fn scale(actor: &Actor, set: &Value, replicas: i64) {
    if set["spec"]["replicas"].as_i64() != Some(replicas) {
        let (namespace, name) = (text(&set["metadata"], "namespace"), text(&set["metadata"], "name"));
        let patch = json!({"spec": {"replicas": replicas}});
        settle("scaling a ReplicaSet", actor.patch(REPLICA_SETS, namespace, name, None, &patch));
    }
}

/// FNV-1a over the template: equal templates, equal hash.
fn template_hash(template: &Value) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in template.to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{:010x}", hash & 0xff_ffff_ffff)
}

fn replica_set(deployment: &Value, hash: &str, revision: usize) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    template["metadata"]["labels"][HASH] = hash.into();
    let mut selector = deployment["spec"]["selector"].clone();
    selector["matchLabels"][HASH] = hash.into();
    json!({
        "metadata": {
            "name": format!("{}-{hash}", text(&deployment["metadata"], "name")),
            "labels": template["metadata"]["labels"], "ownerReferences": owned_by(deployment),
            "annotations": {"deployment.kubernetes.io/revision": (revision + 1).to_string()},
        },
        "spec": {"replicas": deployment["spec"]["replicas"], "selector": selector, "template": template},
    })
}

fn status(actor: &Actor, deployment: &Value, current: &Value, mine: &[&Value]) {
    let sum = |field: &str| -> i64 { mine.iter().filter_map(|s| s["status"][field].as_i64()).sum() };
    let wanted = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    let available = sum("availableReplicas");
    let mut after = json!({"status": {
        "replicas": sum("replicas"), "readyReplicas": sum("readyReplicas"), "availableReplicas": available,
        "updatedReplicas": current["status"]["replicas"].as_i64().unwrap_or_default(),
        "unavailableReplicas": (wanted - available).max(0),
        "observedGeneration": deployment["metadata"]["generation"],
        "conditions": deployment["status"]["conditions"].clone(),
    }});
    let now = actor.clock().now_rfc3339();
    let complete = available >= wanted && sum("replicas") == wanted;
    let word = |b: bool| if b { "True" } else { "False" };
    let (reason, message) = if available >= wanted {
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set_condition(&mut after, "Available", word(available >= wanted), Some(reason), Some(message), &now);
    let reason = if complete { "NewReplicaSetAvailable" } else { "ReplicaSetUpdated" };
    let message = format!(
        "ReplicaSet \"{}\" {}.",
        text(&current["metadata"], "name"),
        if complete { "has successfully progressed" } else { "is progressing" }
    );
    set_condition(&mut after, "Progressing", "True", Some(reason), Some(&message), &now);
    let changed =
        after["status"].as_object().into_iter().flatten().any(|(field, value)| deployment["status"][field] != *value);
    if changed {
        let (namespace, name) = (text(&deployment["metadata"], "namespace"), text(&deployment["metadata"], "name"));
        settle("status of a Deployment", actor.patch(DEPLOYMENTS, namespace, name, Some("status"), &after));
    }
}
