//! Pods: where they are bound, which of them wait, and what counts as a pod event.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Change, ClusterState, change};
use crate::record::{ObjectName, PodRecord};
use crate::watch::{Delta, Kind};

impl ClusterState {
    pub(super) fn apply_pods(&mut self, delta: Delta<PodRecord>, now_unix_ms: i64, out: &mut Vec<Change>) {
        // The first list tells what was there before this process: none of it is news for a node.
        let news = self.listed.contains(&Kind::Pod).then_some(now_unix_ms);
        match delta {
            Delta::Applied(pod) => self.put_pod(pod, news, out),
            Delta::Deleted(name) => self.drop_pod(&name, news, out),
            Delta::Replaced { objects, undecodable } => {
                let mut keep: HashSet<ObjectName> = objects.iter().map(|pod| pod.name()).collect();
                keep.extend(undecodable.iter().map(|(name, _)| name.clone()));
                let mut gone: Vec<ObjectName> = self.pods.keys().filter(|n| !keep.contains(*n)).cloned().collect();
                gone.sort_unstable();
                for name in gone {
                    self.drop_pod(&name, news, out);
                }
                for pod in objects {
                    self.put_pod(pod, news, out);
                }
                change::undecodable(Kind::Pod, undecodable, out);
                self.note_listed(Kind::Pod, out);
            }
            Delta::Undecodable { name, message } => {
                out.push(Change::Undecodable { kind: Kind::Pod, name, message });
            }
        }
    }

    fn put_pod(&mut self, pod: Arc<PodRecord>, news: Option<i64>, out: &mut Vec<Change>) {
        let name = pod.name();
        if pod.terminal() {
            // It uses nothing and moves nowhere: the same as gone.
            self.drop_pod(&name, news, out);
            return;
        }
        let old = self.pods.get(&name).cloned();
        if old.as_ref() == Some(&pod) {
            return;
        }
        if let Some(old) = &old {
            self.unlink(&name, old);
        }
        if let Some(node) = &pod.node {
            self.pods_by_node.entry(Arc::clone(node)).or_default().insert(name.clone(), Arc::clone(&pod));
            self.touch_node(node);
        }
        if pod.provisionable() {
            self.waiting.insert(name.clone(), Arc::clone(&pod));
            out.push(Change::Provisionable(pod.key.clone()));
        }
        self.daemons.put_pod(&name, &pod);
        self.use_claims(&name, &pod);
        if pod.node.is_some() || old.as_ref().is_some_and(|old| old.key.uid != pod.key.uid) {
            self.forget_promise(&name);
        }
        let same = old.as_ref().filter(|old| old.key.uid == pod.key.uid);
        let bound = pod.node.is_some() && same.is_none_or(|old| old.node != pod.node);
        let ending = pod.terminating() && same.is_none_or(|old| !old.terminating());
        if bound || ending {
            self.pod_event(&pod, news, out);
        }
        out.push(Change::Pod { name: name.clone(), node: pod.node.clone(), gone: false });
        self.pods.insert(name, pod);
    }

    fn drop_pod(&mut self, name: &ObjectName, news: Option<i64>, out: &mut Vec<Change>) {
        let Some(old) = self.pods.remove(name) else { return };
        self.unlink(name, &old);
        self.forget_promise(name);
        self.pod_event(&old, news, out);
        out.push(Change::Pod { name: name.clone(), node: old.node.clone(), gone: true });
    }

    /// Takes a pod out of every index.
    fn unlink(&mut self, name: &ObjectName, pod: &PodRecord) {
        if let Some(node) = &pod.node {
            if let Some(pods) = self.pods_by_node.get_mut(node) {
                pods.remove(name);
                if pods.is_empty() {
                    self.pods_by_node.remove(node);
                }
            }
            self.touch_node(node);
        }
        self.waiting.remove(name);
        self.daemons.drop_pod(name, pod);
        self.free_claims(name, pod);
    }

    /// The slot of a node is to be built anew.
    pub(super) fn touch_node(&mut self, node: &str) {
        if let Some(slot) = self.slots.of_node_mut(node) {
            slot.built = None;
        }
    }

    /// Dates a pod's coming or going on its managed node. DaemonSet pods come and go with the node and do not count.
    fn pod_event(&mut self, pod: &PodRecord, news: Option<i64>, out: &mut Vec<Change>) {
        let (Some(now), Some(node), false) = (news, &pod.node, pod.daemon()) else { return };
        let Some(claim) = self.claim_name_of_node(node) else { return };
        if let Some(slot) = self.slots.of_node_mut(node) {
            slot.last_pod_event = Some(now);
            slot.built = None;
        }
        out.push(Change::PodEvent { claim });
    }
}
