//! Pods promised to a node or to a NodeClaim in flight. While the promise lasts they are not placed again, and the node
//! counts them. Promises are memory only: a new leader starts without and packs the pods onto the same claims again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use mortise_engine::pod::PodKey;

use super::{ClusterState, name_of};
use crate::record::ObjectName;

#[derive(Debug)]
struct Promise {
    uid: Arc<str>,
    target: Arc<str>,
    until: i64,
}

/// Who is promised to whom.
#[derive(Debug, Default)]
pub(super) struct Promises {
    by_pod: BTreeMap<ObjectName, Promise>,
    by_target: HashMap<Arc<str>, BTreeSet<ObjectName>>,
}

impl Promises {
    fn insert(&mut self, pod: ObjectName, promise: Promise) {
        self.remove(&pod);
        self.by_target.entry(Arc::clone(&promise.target)).or_default().insert(pod.clone());
        self.by_pod.insert(pod, promise);
    }

    /// Drops a pod's promise; returns the target.
    fn remove(&mut self, pod: &ObjectName) -> Option<Arc<str>> {
        let promise = self.by_pod.remove(pod)?;
        if let Some(pods) = self.by_target.get_mut(&promise.target) {
            pods.remove(pod);
            if pods.is_empty() {
                self.by_target.remove(&promise.target);
            }
        }
        Some(promise.target)
    }

    pub(super) fn forget_target(&mut self, target: &str) {
        for pod in self.by_target.remove(target).unwrap_or_default() {
            self.by_pod.remove(&pod);
        }
    }

    /// Whom a pod is promised to.
    pub(super) fn target(&self, pod: &ObjectName) -> Option<Arc<str>> {
        self.by_pod.get(pod).map(|promise| Arc::clone(&promise.target))
    }

    pub(super) fn holds(&self, pod: &ObjectName) -> bool {
        self.by_pod.contains_key(pod)
    }

    /// Pods promised to the slot of this NodeClaim or Node name.
    pub(super) fn of<'a>(
        &'a self,
        claim: Option<&str>,
        node: Option<&str>,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a> {
        let found = [claim, node].map(|name| self.by_target.get(name?));
        found.into_iter().flatten().flatten()
    }
}

impl ClusterState {
    /// Records that these pods are expected on `target` (a NodeClaim's name, or a Node's): the node counts as nominated
    /// until then, and those of the pods that still wait leave [`mortise_engine::snapshot::Snapshot::pending`] and count
    /// on the node. A promise ends when the pod is bound or gone, when its target goes or is marked for deletion, or when
    /// its time is over and the node is initialised (a node in flight keeps its pods).
    ///
    /// Pods that already run on a node being deleted are not promised: they stay where the engine finds them.
    pub fn nominate(&mut self, target: &str, pods: &[PodKey], until_unix_ms: i64) {
        // Under the name that lasts: the NodeClaim's.
        let lasting = self
            .slots
            .named(target)
            .and_then(|slot| slot.claim())
            .map_or_else(|| Arc::from(target), |claim| name_of(&claim.metadata).name);
        if let Some(slot) = self.slots.named_mut(target) {
            slot.nominated_until = slot.nominated_until.max(until_unix_ms);
        }
        for key in pods {
            let name = ObjectName { namespace: Arc::clone(&key.namespace), name: Arc::clone(&key.name) };
            if self.waiting.get(&name).is_some_and(|pod| pod.key.uid == key.uid) {
                self.forget_promise(&name);
                let promise = Promise { uid: Arc::clone(&key.uid), target: Arc::clone(&lasting), until: until_unix_ms };
                self.promises.insert(name, promise);
            }
        }
        self.touch_named(target);
    }

    pub(super) fn forget_promise(&mut self, pod: &ObjectName) {
        if let Some(target) = self.promises.remove(pod) {
            self.touch_named(&target);
        }
    }

    /// The target a waiting pod is promised to.
    pub fn promised_to(&self, pod: &ObjectName) -> Option<&Arc<str>> {
        self.promises.by_pod.get(pod).map(|promise| &promise.target)
    }

    /// Drops promises that no longer hold.
    pub(super) fn settle_promises(&mut self, now_unix_ms: i64) {
        let over: Vec<ObjectName> = self
            .promises
            .by_pod
            .iter()
            .filter(|(name, promise)| !self.promise_holds(name, promise, now_unix_ms))
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            self.forget_promise(&name);
        }
    }

    fn promise_holds(&self, pod: &ObjectName, promise: &Promise, now_unix_ms: i64) -> bool {
        if self.waiting.get(pod).is_none_or(|p| p.key.uid != promise.uid) {
            return false;
        }
        match self.slots.named(&promise.target) {
            // Created, and not seen in the watch yet.
            None => now_unix_ms < promise.until,
            Some(slot) => !slot.deleting() && (now_unix_ms < promise.until || !slot.initialized()),
        }
    }

    pub(super) fn touch_named(&mut self, target: &str) {
        if let Some(slot) = self.slots.named_mut(target) {
            slot.built = None;
        }
    }
}
