//! DaemonSets: what one of their pods would take on a new node (karpenter-algorithms §2.8, §3.9).

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mortise_engine::pod::PodShape;

use crate::intern::Interner;
use crate::record::{DaemonSetRecord, ObjectName, Owner, PodRecord};

/// Pods of one DaemonSet, oldest first.
type ByAge = BTreeMap<(i64, ObjectName), Arc<PodShape>>;

/// DaemonSets, and their pods by the DaemonSet's UID.
#[derive(Debug, Default)]
pub(super) struct Daemons {
    sets: BTreeMap<ObjectName, Arc<DaemonSetRecord>>,
    pods: HashMap<Arc<str>, ByAge>,
}

impl Daemons {
    pub(super) fn sets(&mut self) -> &mut BTreeMap<ObjectName, Arc<DaemonSetRecord>> {
        &mut self.sets
    }

    pub(super) fn put_pod(&mut self, name: &ObjectName, pod: &PodRecord) {
        if let Owner::DaemonSet(uid) = &pod.owner {
            let pods = self.pods.entry(Arc::clone(uid)).or_default();
            pods.insert((pod.created_unix_ms, name.clone()), Arc::clone(&pod.shape));
        }
    }

    pub(super) fn drop_pod(&mut self, name: &ObjectName, pod: &PodRecord) {
        if let Owner::DaemonSet(uid) = &pod.owner
            && let Some(pods) = self.pods.get_mut(uid)
        {
            pods.remove(&(pod.created_unix_ms, name.clone()));
            if pods.is_empty() {
                self.pods.remove(uid);
            }
        }
    }

    /// One shape per DaemonSet: its newest pod's, so that what admission changed counts, else the template's. The node
    /// affinity is always the template's, since each real pod is pinned to its own node.
    pub(super) fn shapes(&self, shapes: &mut Interner<PodShape>) -> Vec<Arc<PodShape>> {
        self.sets
            .values()
            .filter(|set| !set.uses_claims)
            .map(|set| {
                let newest = self.pods.get(&set.uid).and_then(|pods| pods.last_key_value()).map(|(_, shape)| shape);
                let mut shape = PodShape::clone(newest.unwrap_or(&set.template));
                shape.required_affinity.clone_from(&set.template.required_affinity);
                // Reasons not to place a pod mean nothing here: a DaemonSet's pods are placed by its own controller.
                shape.unsupported.clear();
                shapes.share(shape)
            })
            .collect()
    }
}
