//! The kubelets of all nodes: nodes become Ready some time after they register, bound pods run after their image is
//! there, deleted pods end. Pods whose node is gone are deleted, as the controller manager does.
//!
//! There are no node leases and no heartbeats: a node stays as it was written.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::actor::{Actor, NODES, PODS, deleting, is_true, settle, text};
use crate::apiserver::ApiServer;

/// How long things take on a node, before the clock's speed.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// From the Node object to Ready: CNI and the like.
    pub ready: Duration,
    /// From binding to Running: image pull and start.
    pub start: Duration,
    /// From deletion to gone, if the grace is not shorter.
    pub stop: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { ready: Duration::from_secs(8), start: Duration::from_secs(2), stop: Duration::from_secs(1) }
    }
}

#[derive(Clone, Debug)]
struct Kubelet {
    actor: Actor,
    timing: Timing,
    /// What is under way, by UID and step.
    busy: Arc<Mutex<BTreeSet<(String, Step)>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Ready,
    Start,
    Stop,
}

/// Runs until dropped.
pub async fn run(server: ApiServer, timing: Timing) {
    let actor = Actor::new(&server, "kubelet");
    let mut wake = actor.wake(&[PODS, NODES]);
    let kubelet = Kubelet { actor, timing, busy: Arc::default() };
    loop {
        kubelet.look();
        if !wake.next().await {
            return;
        }
    }
}

impl Kubelet {
    fn look(&self) {
        let nodes = self.actor.list(NODES);
        let names: BTreeSet<&str> = nodes.iter().map(|n| text(&n.value["metadata"], "name")).collect();
        for node in nodes.iter().filter(|n| !is_true(&n.value, "Ready")) {
            self.begin(&node.value, Step::Ready, self.timing.ready);
        }
        for pod in self.actor.list(PODS) {
            let (pod, phase) = (&pod.value, text(&pod.value["status"], "phase"));
            let node = text(&pod["spec"], "nodeName");
            if node.is_empty() {
                continue;
            }
            if !names.contains(node) {
                self.begin(pod, Step::Stop, Duration::ZERO);
            } else if deleting(pod) {
                let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64().unwrap_or_default();
                self.begin(pod, Step::Stop, self.timing.stop.min(Duration::from_secs(grace)));
            } else if phase == "Pending" {
                self.begin(pod, Step::Start, self.timing.start);
            }
        }
    }

    /// Takes a step after a delay, unless it is under way.
    fn begin(&self, object: &Value, step: Step, delay: Duration) {
        let key = (text(&object["metadata"], "uid").to_owned(), step);
        if !self.busy().insert(key.clone()) {
            return;
        }
        let namespace = text(&object["metadata"], "namespace").to_owned();
        let name = text(&object["metadata"], "name").to_owned();
        let kubelet = self.clone();
        tokio::spawn(async move {
            kubelet.actor.clock().sleep(delay).await;
            kubelet.take(step, &namespace, &name, &key.0);
            kubelet.busy().remove(&key);
        });
    }

    fn busy(&self) -> std::sync::MutexGuard<'_, BTreeSet<(String, Step)>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, step: Step, namespace: &str, name: &str, uid: &str) {
        let kind = if step == Step::Ready { NODES } else { PODS };
        let Some(object) = self.actor.get(kind, namespace, name).filter(|o| text(&o.value["metadata"], "uid") == uid)
        else {
            return;
        };
        match step {
            Step::Ready => self.node_ready(&object.value),
            Step::Start => {
                let status = running(&object.value, &self.actor.clock().now_rfc3339());
                settle(
                    "starting a pod",
                    self.actor.patch(PODS, namespace, name, Some("status"), &json!({ "status": status })),
                );
            }
            Step::Stop => _ = settle("stopping a pod", self.actor.delete(PODS, namespace, name, Some(0))),
        }
    }

    fn node_ready(&self, node: &Value) {
        let now = self.actor.clock().now_rfc3339();
        let name = text(&node["metadata"], "name");
        let condition = |kind: &str, status: &str, reason: &str, message: &str| json!({"type": kind, "status": status, "reason": reason, "message": message, "lastHeartbeatTime": now, "lastTransitionTime": now});
        let conditions = json!([
            condition(
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available"
            ),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ]);
        settle(
            "making a node ready",
            self.actor.patch(NODES, "", name, Some("status"), &json!({"status": {"conditions": conditions}})),
        );
        // The node lifecycle controller takes the taint off once the node is Ready.
        for _ in 0..5 {
            let Some(current) = self.actor.get(NODES, "", name) else { return };
            let taints = current.value["spec"]["taints"].as_array().cloned().unwrap_or_default();
            let left: Vec<Value> =
                taints.iter().filter(|t| t["key"] != "node.kubernetes.io/not-ready").cloned().collect();
            if left.len() == taints.len() {
                return;
            }
            let left = if left.is_empty() { Value::Null } else { Value::Array(left) };
            let version = current.version.to_string();
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
            if self.actor.patch(NODES, "", name, None, &patch).is_ok() {
                return;
            }
        }
    }
}

/// Status of a pod whose containers all run.
fn running(pod: &Value, now: &str) -> Value {
    let uid = text(&pod["metadata"], "uid");
    let number = u32::from_str_radix(uid.get(..8).unwrap_or("0"), 16).unwrap_or_default();
    let ip = format!("10.{}.{}.{}", 64 + (number >> 16 & 63), number >> 8 & 255, number & 255);
    let mut conditions: Vec<Value> = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for kind in ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"] {
        conditions.retain(|c| c["type"] != kind);
        conditions.push(json!({"type": kind, "status": "True", "lastTransitionTime": now}));
    }
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten().map(|c| {
        json!({
            "name": c["name"], "image": c["image"], "imageID": "", "ready": true, "started": true, "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        })
    });
    json!({
        "phase": "Running", "startTime": now, "conditions": conditions, "podIP": ip, "podIPs": [{"ip": ip}],
        "containerStatuses": containers.collect::<Vec<_>>(),
    })
}
