//! Controllers of workloads: Deployments, ReplicaSets, DaemonSets, and the status of PodDisruptionBudgets.
//!
//! A Deployment whose template changes brings its new ReplicaSet to full size and then takes the old ones down; its
//! rollout settings (`maxSurge`, `maxUnavailable`, revision history, rollback) are not acted on. StatefulSets, Jobs and
//! HorizontalPodAutoscalers are stored and left alone.

mod budgets;
mod daemonsets;
mod deployments;
mod replicasets;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::actor::{Actor, BUDGETS, DAEMON_SETS, DEPLOYMENTS, NODES, PODS, REPLICA_SETS, controller_of, is_true, text};
use crate::apiserver::ApiServer;
use crate::apiserver::store::Object;

/// Runs all of them until dropped.
pub async fn run(server: ApiServer) {
    tokio::join!(
        each(Actor::new(&server, "deployment-controller"), &[DEPLOYMENTS, REPLICA_SETS], deployments::sync),
        each(Actor::new(&server, "replicaset-controller"), &[REPLICA_SETS, PODS], replicasets::sync),
        each(Actor::new(&server, "daemonset-controller"), &[DAEMON_SETS, NODES, PODS], daemonsets::sync),
        each(Actor::new(&server, "disruption-controller"), &[BUDGETS, PODS], budgets::sync),
    );
}

async fn each(actor: Actor, kinds: &[crate::actor::Kind], sync: fn(&Actor)) {
    let mut wake = actor.wake(kinds);
    loop {
        sync(&actor);
        if !wake.next().await {
            return;
        }
    }
}

/// Owner reference of a controller.
fn owned_by(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }])
}

/// A pod from a template.
fn pod_from(template: &Value, owner: &Value) -> Value {
    json!({
        "metadata": {
            "generateName": format!("{}-", text(&owner["metadata"], "name")),
            "labels": template["metadata"]["labels"], "annotations": template["metadata"]["annotations"],
            "ownerReferences": owned_by(owner),
        },
        "spec": template["spec"],
    })
}

/// Pods that count: neither going nor over.
fn active(pod: &Value) -> bool {
    !crate::actor::deleting(pod) && !matches!(text(&pod["status"], "phase"), "Succeeded" | "Failed")
}

/// Objects by the UID of their controller.
fn by_controller(objects: &[Arc<Object>]) -> std::collections::BTreeMap<&str, Vec<&Value>> {
    let mut out: std::collections::BTreeMap<&str, Vec<&Value>> = std::collections::BTreeMap::new();
    for object in objects {
        if let Some(uid) = controller_of(&object.value) {
            out.entry(uid).or_default().push(&object.value);
        }
    }
    out
}

fn ready(pods: &[&Value]) -> usize {
    pods.iter().filter(|p| is_true(p, "Ready")).count()
}
