//! A scheduler: binds pods to nodes that have room and suit them, and marks the others Unschedulable.
//!
//! It looks at resources, taints, node selectors, required node affinity, required pod (anti-)affinity, `DoNotSchedule`
//! topology spread and host ports, and prefers the least allocated node. Pods with resource claims stay pending, with that
//! as the reason. Preferences and volumes are not looked at.

pub(crate) mod affinity;
mod fit;
pub(crate) mod taints;
mod topology;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::fit::{Amounts, NodeRoom, Refusal};
use self::topology::Neighbours;
use crate::actor::{Actor, NAMESPACES, NODES, PODS, deleting, settle, text};
use crate::apiserver::ApiServer;
use crate::apiserver::subresource::set_condition;

/// Schedules until dropped.
pub async fn run(server: ApiServer) {
    let actor = Actor::new(&server, "kube-scheduler");
    let mut wake = actor.wake(&[PODS, NODES]);
    loop {
        round(&actor);
        if !wake.next().await {
            return;
        }
    }
}

/// Whether this scheduler is the one that a pod asks for, and the pod waits for a node.
fn waits(pod: &Value) -> bool {
    text(&pod["spec"], "nodeName").is_empty()
        && !deleting(pod)
        && matches!(text(&pod["spec"], "schedulerName"), "" | "default-scheduler")
        && pod["spec"]["schedulingGates"].as_array().is_none_or(Vec::is_empty)
        && !matches!(text(&pod["status"], "phase"), "Succeeded" | "Failed")
}

fn round(actor: &Actor) {
    let pods = actor.list(PODS);
    let mut waiting: Vec<&Value> = pods.iter().map(|p| &p.value).filter(|p| waits(p)).collect();
    if waiting.is_empty() {
        return;
    }
    // Higher priority first, then the one that waits longer.
    waiting.sort_by_key(|p| {
        let priority = p["spec"]["priority"].as_i64().unwrap_or_default();
        (std::cmp::Reverse(priority), text(&p["metadata"], "creationTimestamp").to_owned())
    });
    let nodes = actor.list(NODES);
    let mut rooms: BTreeMap<&str, NodeRoom<'_>> =
        nodes.iter().map(|n| (text(&n.value["metadata"], "name"), NodeRoom::new(&n.value))).collect();
    for pod in &pods {
        let over = matches!(text(&pod.value["status"], "phase"), "Succeeded" | "Failed");
        if let Some(room) = rooms.get_mut(text(&pod.value["spec"], "nodeName")).filter(|_| !over) {
            room.take(&Amounts::of_pod(&pod.value));
        }
    }
    let namespaces = actor.list(NAMESPACES);
    let mut neighbours = Neighbours::new(
        nodes.iter().map(|n| &n.value),
        pods.iter().map(|p| &p.value),
        namespaces.iter().map(|n| &n.value),
    );
    // Pods of equal needs that found no place: the next of them need not look again.
    let mut hopeless: BTreeMap<String, String> = BTreeMap::new();
    for pod in waiting {
        let needs = needs_key(pod);
        if let Some(why) = hopeless.get(&needs) {
            mark(actor, pod, why);
            continue;
        }
        match place(pod, &rooms, &neighbours) {
            Ok(node) => {
                let bound = actor.bind(text(&pod["metadata"], "namespace"), text(&pod["metadata"], "name"), node);
                if settle("binding a pod", bound).is_some()
                    && let Some(room) = rooms.get_mut(node)
                {
                    room.take(&Amounts::of_pod(pod));
                    neighbours.place(pod, node);
                }
            }
            Err(why) => {
                mark(actor, pod, &why);
                hopeless.insert(needs, why);
            }
        }
    }
}

/// Equal for pods that fit the same nodes.
fn needs_key(pod: &Value) -> String {
    let spec = &pod["spec"];
    let containers = |list: &str| -> Vec<Value> {
        let all = spec[list].as_array().into_iter().flatten();
        all.map(|c| json!([c["resources"]["requests"], c["restartPolicy"], c["ports"]])).collect()
    };
    json!([
        pod["metadata"]["namespace"],
        pod["metadata"]["labels"],
        spec["hostNetwork"],
        spec["nodeSelector"],
        spec["affinity"],
        spec["tolerations"],
        spec["topologySpreadConstraints"],
        spec["resourceClaims"],
        spec["overhead"],
        spec["resources"],
        containers("containers"),
        containers("initContainers"),
    ])
    .to_string()
}

fn place<'a>(
    pod: &Value,
    rooms: &BTreeMap<&'a str, NodeRoom<'_>>,
    neighbours: &Neighbours<'_>,
) -> Result<&'a str, String> {
    if let Some(field) = not_acted_on(pod) {
        return Err(format!("0/{} nodes are available: the embedded scheduler does not act on {field}.", rooms.len()));
    }
    let amounts = Amounts::of_pod(pod);
    let rules = neighbours.rules(pod);
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut best: Option<(i64, &'a str)> = None;
    for (name, room) in rooms {
        let accepted = room.accepts(pod, &amounts).and_then(|score| match neighbours.refusal(&rules, room.node()) {
            Some(why) => Err(Refusal(vec![why.to_owned()])),
            None => Ok(score),
        });
        match accepted {
            Ok(score) => {
                if best.is_none_or(|(top, _)| score > top) {
                    best = Some((score, name));
                }
            }
            Err(Refusal(reasons)) => reasons.into_iter().for_each(|r| *refusals.entry(r).or_default() += 1),
        }
    }
    best.map(|(_, name)| name).ok_or_else(|| {
        if rooms.is_empty() {
            return "no nodes available to schedule pods".to_owned();
        }
        let reasons: Vec<String> = refusals.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        format!("0/{} nodes are available: {}.", rooms.len(), reasons.join(", "))
    })
}

/// A required constraint that this scheduler knows nothing of.
fn not_acted_on(pod: &Value) -> Option<&'static str> {
    let claims = pod["spec"]["resourceClaims"].as_array();
    claims.is_some_and(|list| !list.is_empty()).then_some("spec.resourceClaims")
}

fn mark(actor: &Actor, pod: &Value, why: &str) {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.any(|c| c["type"] == "PodScheduled" && c["status"] == "False" && c["message"] == why) {
        return;
    }
    let mut after = json!({"status": {"conditions": pod["status"]["conditions"].clone()}});
    let now = actor.clock().now_rfc3339();
    set_condition(&mut after, "PodScheduled", "False", Some("Unschedulable"), Some(why), &now);
    let (namespace, name) = (text(&pod["metadata"], "namespace"), text(&pod["metadata"], "name"));
    settle("marking a pod unschedulable", actor.patch(PODS, namespace, name, Some("status"), &after));
}
