//! Kubernetes Events: deduplicated, limited, sent from a bounded queue, so that telling never slows doing.

mod dedupe;
mod sender;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource};
use mortise_engine::pod::PodKey;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

use crate::record::NodeRecord;

/// An Event about one object.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is about.
    pub about: ObjectReference,
    /// `Warning`, else `Normal`.
    pub warning: bool,
    /// Reason, CamelCase.
    pub reason: String,
    /// Message for people. Cut at 1024 bytes, the API's limit.
    pub message: String,
    /// What makes two Events of one reason about one object different; the message when empty.
    pub key: Vec<String>,
    /// For how long an equal Event is left out; `None` = as [`window`] says for the reason.
    pub window: Option<Duration>,
}

impl Event {
    /// A Normal Event.
    pub fn normal(about: ObjectReference, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { about, warning: false, reason: reason.into(), message: message.into(), key: Vec::new(), window: None }
    }

    /// A Warning Event.
    pub fn warning(about: ObjectReference, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(about, reason, message) }
    }

    /// Tells Events apart by these values instead of the whole message: numbers in a message change, the matter does not.
    #[must_use]
    pub fn keyed(mut self, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.key = values.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves equal Events out for this long.
    #[must_use]
    pub fn within(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }
}

/// For how long an equal Event is left out (karpenter-aws §9.6).
pub fn window(reason: &str) -> Duration {
    Duration::from_secs(match reason {
        "FailedScheduling" => 5 * 60,
        "NoCompatibleInstanceTypes" => 60,
        "Unconsolidatable" | "NodeRepairBlocked" => 15 * 60,
        "RebootObserved" | "RebootFailed" => 30 * 60,
        _ => 2 * 60,
    })
}

/// How many Events of a reason may go out in the whole process, per second and at once; `None` = no bound of its own.
pub fn bound(reason: &str, kind: &str) -> Option<(f64, f64)> {
    match reason {
        "Nominated" => Some((5.0, 10.0)),
        "InsufficientCapacityError" if kind == "Pod" => Some((5.0, 10.0)),
        _ => None,
    }
}

/// A reference to a pod.
pub fn pod(key: &PodKey) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: Some(key.namespace.to_string()),
        name: Some(key.name.to_string()),
        uid: Some(key.uid.to_string()),
        ..ObjectReference::default()
    }
}

/// A reference to a Node.
pub fn node(node: &NodeRecord) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.name.to_string()),
        uid: Some(node.uid.to_string()),
        ..ObjectReference::default()
    }
}

/// A reference to a NodePool, NodeClaim, EC2NodeClass or any other object.
pub fn object<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    object.object_ref(&())
}

/// Who the Events are from.
#[derive(Clone, Debug)]
pub struct Options {
    /// `source.component`: `karpenter`, so that what is built on its Events goes on working.
    pub component: String,
    /// Name of this pod.
    pub instance: String,
    /// Namespace for Events about cluster-scoped objects.
    pub namespace: String,
    /// Events that may wait to be sent; more are dropped and counted.
    pub queue: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            component: "karpenter".to_owned(),
            instance: String::new(),
            namespace: "default".to_owned(),
            queue: 1000,
        }
    }
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    left_out: AtomicU64,
    dropped: AtomicU64,
}

/// Takes Events from anywhere. Clones share one queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Event>,
    dedupe: Arc<std::sync::Mutex<dedupe::Dedupe>>,
    counts: Arc<Counts>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Recorder {
    /// Starts sending.
    pub fn start(client: Client, options: Options) -> Self {
        let (queue, events) = mpsc::channel(options.queue.max(1));
        let counts = Arc::new(Counts::default());
        let task = tokio::spawn(sender::run(client, options, events, Arc::clone(&counts)));
        Self { queue, dedupe: Arc::default(), counts, task: Arc::new(Mutex::new(Some(task))) }
    }

    /// Sends an Event, unless an equal one was sent within its window, its reason is bounded and the bound is reached, or
    /// the queue is full. Never waits. Returns whether it is on its way.
    pub fn publish(&self, event: Event) -> bool {
        let wanted = self.dedupe.lock().unwrap_or_else(std::sync::PoisonError::into_inner).admit(&event);
        if !wanted {
            self.counts.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        let queued = self.queue.try_send(event).is_ok();
        if !queued {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
        queued
    }

    /// Events sent, left out as repetitions or beyond a bound, and dropped for want of room or after failed attempts.
    pub fn counts(&self) -> (u64, u64, u64) {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (read(&self.counts.sent), read(&self.counts.left_out), read(&self.counts.dropped))
    }

    /// Sends what is queued, for at most this long, and ends. Events published afterwards are dropped.
    pub async fn flush(&self, limit: Duration) {
        let Some(task) = self.task.lock().await.take() else { return };
        let abort = task.abort_handle();
        // The marker is the last thing sent; the sender ends there.
        let marker = Event::normal(ObjectReference::default(), sender::END, "");
        let ended = tokio::time::timeout(limit, async {
            if self.queue.send(marker).await.is_ok() {
                let _ = task.await;
            }
        });
        if ended.await.is_err() {
            abort.abort();
        }
    }
}

#[cfg(test)]
mod tests;
