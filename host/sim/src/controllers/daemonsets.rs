//! DaemonSets: one pod on every node that suits.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{active, by_controller, pod_from, ready};
use crate::actor::{Actor, DAEMON_SETS, NODES, PODS, deleting, settle, text};
use crate::scheduler::{affinity, taints};

/// What every DaemonSet pod tolerates.
const TOLERATED: &[(&str, &str)] = &[
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

pub(super) fn sync(actor: &Actor) {
    let (pods, nodes) = (actor.list(PODS), actor.list(NODES));
    let owned = by_controller(&pods);
    for set in actor.list(DAEMON_SETS) {
        let set = &set.value;
        if deleting(set) {
            continue;
        }
        let none = Vec::new();
        let mine = owned.get(text(&set["metadata"], "uid")).unwrap_or(&none);
        let alive: Vec<&Value> = mine.iter().copied().filter(|p| active(p)).collect();
        let template = template(set);
        let mut there: BTreeMap<String, &Value> = alive.iter().map(|p| (target(p), *p)).collect();
        let mut desired = 0;
        for node in nodes.iter().map(|n| &n.value).filter(|n| suits(n, &template)) {
            desired += 1;
            let name = text(&node["metadata"], "name");
            if there.remove(name).is_none() {
                let pod = pod_for(set, &template, name);
                settle("creating a DaemonSet pod", actor.create(PODS, text(&set["metadata"], "namespace"), pod));
            }
        }
        for pod in there.values() {
            let (namespace, name) = (text(&pod["metadata"], "namespace"), text(&pod["metadata"], "name"));
            settle("deleting a DaemonSet pod", actor.delete(PODS, namespace, name, None));
        }
        status(actor, set, desired, &alive);
    }
}

fn template(set: &Value) -> Value {
    let mut template = set["spec"]["template"].clone();
    let mut tolerations = template["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
    tolerations
        .extend(TOLERATED.iter().map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect})));
    template["spec"]["tolerations"] = tolerations.into();
    template
}

fn suits(node: &Value, template: &Value) -> bool {
    !deleting(node)
        && affinity::matches(node, &template["spec"])
        && taints::untolerated(node, &template["spec"]).is_none()
}

/// The node that a pod is meant for.
fn target(pod: &Value) -> String {
    let bound = text(&pod["spec"], "nodeName");
    if !bound.is_empty() {
        return bound.to_owned();
    }
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0].as_str().unwrap_or_default().to_owned()
}

fn pod_for(set: &Value, template: &Value, node: &str) -> Value {
    let mut pod = pod_from(template, set);
    // The scheduler binds it, to this node and no other.
    let affinity = &mut pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    *affinity =
        json!({"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]});
    pod
}

fn status(actor: &Actor, set: &Value, desired: usize, alive: &[&Value]) {
    let ready = ready(alive);
    let status = json!({
        "desiredNumberScheduled": desired, "currentNumberScheduled": alive.len(), "numberReady": ready,
        "numberAvailable": ready, "updatedNumberScheduled": alive.len(), "numberMisscheduled": 0,
        "numberUnavailable": desired.saturating_sub(ready), "observedGeneration": set["metadata"]["generation"],
    });
    if status.as_object().into_iter().flatten().any(|(field, value)| set["status"][field] != *value) {
        let (namespace, name) = (text(&set["metadata"], "namespace"), text(&set["metadata"], "name"));
        settle(
            "status of a DaemonSet",
            actor.patch(DAEMON_SETS, namespace, name, Some("status"), &json!({ "status": status })),
        );
    }
}
