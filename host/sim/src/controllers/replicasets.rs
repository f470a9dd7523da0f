//! ReplicaSets: as many pods as asked for.

use serde_json::{Value, json};

use super::{active, by_controller, pod_from, ready};
use crate::actor::{Actor, PODS, REPLICA_SETS, deleting, is_true, settle, text};

pub(super) fn sync(actor: &Actor) {
    let pods = actor.list(PODS);
    let owned = by_controller(&pods);
    for set in actor.list(REPLICA_SETS) {
        let set = &set.value;
        if deleting(set) {
            continue;
        }
        let none = Vec::new();
        let mine = owned.get(text(&set["metadata"], "uid")).unwrap_or(&none);
        let mut alive: Vec<&Value> = mine.iter().copied().filter(|p| active(p)).collect();
        let wanted = usize::try_from(set["spec"]["replicas"].as_i64().unwrap_or(1)).unwrap_or_default();
        let namespace = text(&set["metadata"], "namespace");
        for _ in alive.len()..wanted {
            settle("creating a pod", actor.create(PODS, namespace, pod_from(&set["spec"]["template"], set)));
        }
        if alive.len() > wanted {
            // First those without a node, then those that are not ready, then the youngest.
            alive.sort_by_key(|p| {
                (
                    !text(&p["spec"], "nodeName").is_empty(),
                    is_true(p, "Ready"),
                    std::cmp::Reverse(text(&p["metadata"], "creationTimestamp").to_owned()),
                )
            });
            for pod in alive.iter().take(alive.len() - wanted) {
                settle("deleting a pod", actor.delete(PODS, namespace, text(&pod["metadata"], "name"), None));
            }
        }
        status(actor, set, &alive);
    }
}

fn status(actor: &Actor, set: &Value, alive: &[&Value]) {
    let ready = ready(alive);
    let status = json!({
        "replicas": alive.len(), "fullyLabeledReplicas": alive.len(), "readyReplicas": ready, "availableReplicas": ready,
        "observedGeneration": set["metadata"]["generation"],
    });
    let (namespace, name) = (text(&set["metadata"], "namespace"), text(&set["metadata"], "name"));
    if status.as_object().into_iter().flatten().any(|(field, value)| set["status"][field] != *value) {
        settle(
            "status of a ReplicaSet",
            actor.patch(REPLICA_SETS, namespace, name, Some("status"), &json!({ "status": status })),
        );
    }
}
