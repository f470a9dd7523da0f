//! Volumes that a pod attaches to its node, by driver (karpenter-algorithms §2.4).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mortise_engine::pod::Attachments;

use super::ClusterState;
use crate::record::{ObjectName, PodRecord, StorageClassRecord, VolumeRef};

/// Which pods use a PersistentVolumeClaim, by claim.
#[derive(Debug, Default)]
pub(super) struct ClaimUsers(BTreeMap<ObjectName, BTreeSet<ObjectName>>);

impl ClaimUsers {
    fn several(&self, claim: &ObjectName) -> bool {
        self.0.get(claim).is_some_and(|users| users.len() > 1)
    }
}

fn claim_of(pod: &PodRecord, volume: &VolumeRef) -> ObjectName {
    ObjectName { namespace: Arc::clone(&pod.key.namespace), name: Arc::clone(&volume.claim) }
}

impl ClusterState {
    /// Notes the claims of a pod that came.
    pub(super) fn use_claims(&mut self, name: &ObjectName, pod: &PodRecord) {
        for volume in &pod.volumes {
            let users = self.claim_users.0.entry(claim_of(pod, volume)).or_default();
            let alone = users.iter().next().filter(|_| users.len() == 1).cloned();
            if users.insert(name.clone())
                && let Some(other) = alone
            {
                self.touch_node_of(&other);
            }
        }
    }

    /// Takes back the claims of a pod that went.
    pub(super) fn free_claims(&mut self, name: &ObjectName, pod: &PodRecord) {
        for volume in &pod.volumes {
            let claim = claim_of(pod, volume);
            let Some(users) = self.claim_users.0.get_mut(&claim) else { continue };
            users.remove(name);
            let alone = users.iter().next().filter(|_| users.len() == 1).cloned();
            if users.is_empty() {
                self.claim_users.0.remove(&claim);
            }
            if let Some(other) = alone {
                self.touch_node_of(&other);
            }
        }
    }

    /// A claim of this pod is its own now, or was until now.
    fn touch_node_of(&mut self, pod: &ObjectName) {
        let node = self.pods.get(pod).and_then(|pod| pod.node.clone()).or_else(|| self.promises.target(pod));
        if let Some(node) = node {
            self.touch_named(&node);
        }
    }

    /// What a pod attaches. Volumes without a driver (network shares, local disks) attach nothing.
    pub(super) fn attachments(&self, pod: &PodRecord) -> Attachments {
        let mut found = Attachments::default();
        let mut seen = BTreeSet::new();
        for volume in &pod.volumes {
            let claim = claim_of(pod, volume);
            let Some(driver) = self.driver(&claim, volume) else { continue };
            if !seen.insert(Arc::clone(&volume.claim)) {
                continue;
            }
            if self.claim_users.several(&claim) {
                found.shared.push((driver, Arc::from(claim.to_string())));
            } else {
                *found.own.entry(driver).or_default() += 1;
            }
        }
        found.shared.sort_unstable();
        found
    }

    /// Driver of a claim: that of the volume it is bound to, else of its class.
    fn driver(&self, claim: &ObjectName, volume: &VolumeRef) -> Option<Arc<str>> {
        let known = self.pvcs.get(claim);
        if let Some(bound) = known.and_then(|pvc| pvc.volume.as_ref()) {
            return self.pvs.get(bound)?.driver.clone();
        }
        let class = match (known, &volume.made) {
            (Some(pvc), _) => &pvc.class,
            (None, Some(made)) => made,
            (None, None) => return None,
        };
        let class = match class {
            Some(name) => self.storage_classes.get(name),
            None => self.default_class(),
        };
        class?.driver.clone()
    }

    /// The class of claims that name none: the newest of those annotated so.
    fn default_class(&self) -> Option<&Arc<StorageClassRecord>> {
        let defaults = self.storage_classes.values().filter(|class| class.default_since_unix_ms.is_some());
        defaults.max_by(|a, b| {
            // Of two made at once the one whose name is first.
            a.default_since_unix_ms.cmp(&b.default_since_unix_ms).then_with(|| b.name.cmp(&a.name))
        })
    }
}
