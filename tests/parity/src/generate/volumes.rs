//! Volumes: bound ones, ones that wait for the first consumer, and what is wrong with some.

use serde_json::{Value, json};

use super::{Mix, ZONES};
use crate::random::Random;

const DRIVER: &str = "ebs.csi.aws.com";

/// Storage of a problem. Claims are made as pods ask for them.
#[derive(Default)]
pub(crate) struct Volumes {
    pub(crate) used: bool,
    pub(crate) volumes: Vec<Value>,
    pub(crate) claims: Vec<Value>,
    narrow: Vec<&'static str>,
}

/// What the pods of a deployment mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mount {
    /// One claim of its own each, bound in some zone.
    Bound,
    /// One claim of its own each, that waits for its pod.
    Waiting,
    /// As before, of a class that is to be had in some zones only.
    Narrow,
    /// All pods use one claim, bound.
    Shared,
    /// A generic ephemeral volume.
    Ephemeral,
    /// A claim that is not there.
    Missing,
}

impl Volumes {
    pub(crate) fn draw(random: &mut Random, mix: &Mix) -> Self {
        let narrow = random.some(&ZONES).into_iter().copied().collect();
        Self { used: mix.volumes, narrow, ..Self::default() }
    }

    pub(crate) fn classes(&self) -> Vec<Value> {
        if !self.used {
            return Vec::new();
        }
        let class = |name: &str| {
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
                "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer",
            })
        };
        let mut narrow = class("narrow");
        narrow["allowedTopologies"] = json!([
            {"matchLabelExpressions": [{"key": "topology.kubernetes.io/zone", "values": self.narrow}]},
        ]);
        vec![class("standard"), narrow]
    }

    /// Makes the claim of a pod and returns the pod's volume.
    pub(crate) fn mount(&mut self, random: &mut Random, mount: Mount, namespace: &str, pod: &str, app: &str) -> Value {
        let own = format!("data-{pod}");
        let shared = format!("shared-{app}");
        match mount {
            Mount::Bound => self.bound(random, namespace, &own),
            Mount::Waiting => self.waiting(namespace, &own, "standard"),
            Mount::Narrow => self.waiting(namespace, &own, "narrow"),
            Mount::Shared => self.bound(random, namespace, &shared),
            Mount::Ephemeral => {
                self.waiting(namespace, &format!("{pod}-data"), "standard");
                return json!({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
                    "resources": {"requests": {"storage": "10Gi"}},
                }}}});
            }
            Mount::Missing => {}
        }
        let claim = if mount == Mount::Shared { shared } else { own };
        json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}})
    }

    fn bound(&mut self, random: &mut Random, namespace: &str, name: &str) {
        if self.claims.iter().any(|c| c["metadata"]["name"] == name && c["metadata"]["namespace"] == namespace) {
            return;
        }
        let volume = format!("pv-{}", self.volumes.len());
        self.volumes.push(json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume, "uid": volume},
            "spec": {
                "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
                "csi": {"driver": DRIVER, "volumeHandle": volume},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [random.pick(&ZONES)]},
                ]}]}},
            },
        }));
        let mut claim = claim(namespace, name, "standard");
        claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
        claim["spec"]["volumeName"] = json!(volume);
        claim["status"] = json!({"phase": "Bound"});
        self.claims.push(claim);
    }

    fn waiting(&mut self, namespace: &str, name: &str, class: &str) {
        let mut claim = claim(namespace, name, class);
        claim["status"] = json!({"phase": "Pending"});
        self.claims.push(claim);
    }
}

fn claim(namespace: &str, name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("pvc-{namespace}-{name}")},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                 "resources": {"requests": {"storage": "10Gi"}}},
    })
}
