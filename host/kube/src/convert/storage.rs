//! Volumes: claims, volumes and classes as records.

use std::sync::Arc;

use mortise_api::labels;
use mortise_engine::pod::Term;
use mortise_engine::requirement::{Operator, Requirement};

use super::{Converter, opt_unix_ms, selector_terms};
use crate::objects::{CsiNode, NodeSelector, PersistentVolume, PersistentVolumeClaim, PvSpec, StorageClass};
use crate::record::{CsiNodeRecord, PvRecord, PvcRecord, StorageClassRecord};

impl Converter {
    /// What is kept of a PersistentVolumeClaim.
    pub fn pvc(&mut self, pvc: &PersistentVolumeClaim) -> PvcRecord {
        let text = |t: &Option<String>| t.as_deref().filter(|t| !t.is_empty()).map(str::to_owned);
        PvcRecord {
            name: self.name(&pvc.metadata),
            volume: text(&pvc.spec.volume_name).map(Arc::from),
            class: pvc.spec.storage_class_name.as_deref().map(|c| self.strings.get(c)),
            bind_completed: pvc
                .metadata
                .annotations
                .as_ref()
                .is_some_and(|a| a.contains_key("pv.kubernetes.io/bind-completed")),
            lost: pvc.status.phase.as_deref() == Some("Lost"),
            deleting: pvc.metadata.deletion_timestamp.is_some(),
        }
    }

    /// What is kept of a PersistentVolume. The hostname in the affinity of a local volume is left out: its node may be
    /// the one that goes (karpenter-algorithms §3.10).
    pub fn pv(&mut self, pv: &PersistentVolume) -> PvRecord {
        let local = pv.spec.local.is_some() || pv.spec.host_path.is_some();
        let required = pv.spec.node_affinity.as_ref().and_then(|a| a.required.as_ref());
        let (terms, problem) = match required {
            None => (Vec::new(), None),
            Some(required) => self.volume_terms(required, local),
        };
        PvRecord {
            name: Arc::from(pv.metadata.name.as_deref().unwrap_or_default()),
            terms,
            problem,
            driver: attached_by(&pv.spec).map(|driver| self.strings.get(driver)),
            local,
            deleting: pv.metadata.deletion_timestamp.is_some(),
        }
    }

    fn volume_terms(&mut self, required: &NodeSelector, local: bool) -> (Vec<Term>, Option<Arc<str>>) {
        let mut narrowed = required.clone();
        if local {
            for term in &mut narrowed.node_selector_terms {
                let before = term.match_expressions.len();
                term.match_expressions.retain(|e| labels::normalize(&e.key) != labels::HOSTNAME);
                if term.match_expressions.is_empty() && before > 0 && term.match_fields.is_empty() {
                    // Only the hostname bound it: reachable from anywhere as far as can be told.
                    return (Vec::new(), None);
                }
            }
        }
        let field = "PersistentVolume spec.nodeAffinity.required";
        let (terms, problems) = selector_terms(&mut self.strings, field, &narrowed);
        (terms, (!problems.is_empty()).then(|| problems.join("; ").into()))
    }

    /// What is kept of a StorageClass.
    pub fn storage_class(&mut self, class: &StorageClass) -> StorageClassRecord {
        let terms = class.allowed_topologies.iter().map(|term| {
            term.match_label_expressions
                .iter()
                .map(|e| Requirement {
                    key: self.strings.get(labels::normalize(&e.key)),
                    operator: Operator::In,
                    values: e.values.iter().map(|v| self.strings.get(v)).collect(),
                    min_values: None,
                })
                .collect::<Term>()
        });
        let terms: Vec<Term> = terms.collect();
        StorageClassRecord {
            name: Arc::from(class.metadata.name.as_deref().unwrap_or_default()),
            driver: match class.provisioner.as_str() {
                // Nothing makes such volumes; those bound to say themselves who attaches them.
                "" | "kubernetes.io/no-provisioner" => None,
                provisioner => Some(self.strings.get(csi_name(provisioner))),
            },
            default_since_unix_ms: is_default(class)
                .then(|| opt_unix_ms(class.metadata.creation_timestamp.as_ref()).unwrap_or_default()),
            immediate: class.volume_binding_mode.as_deref() != Some("WaitForFirstConsumer"),
            // An alternative without labels allows every place, which makes the others moot.
            terms: if terms.iter().any(Vec::is_empty) { Vec::new() } else { terms },
        }
    }

    /// What is kept of a CSINode. A driver that states no number, or one that is none, has no limit.
    pub fn csi_node(&mut self, node: &CsiNode) -> CsiNodeRecord {
        let limit = |count: Option<i64>| count.and_then(|n| u32::try_from(n).ok());
        CsiNodeRecord {
            name: self.strings.get(node.metadata.name.as_deref().unwrap_or_default()),
            limits: node
                .spec
                .drivers
                .iter()
                .map(|d| (self.strings.get(&d.name), limit(d.allocatable.as_ref().and_then(|a| a.count))))
                .collect(),
        }
    }
}

/// Plugins of before CSI and the drivers that stand in for them, as Kubernetes itself translates them.
const MIGRATED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
];

/// The CSI driver for a provisioner's name.
fn csi_name(provisioner: &str) -> &str {
    MIGRATED.iter().find(|(old, _)| *old == provisioner).map_or(provisioner, |(_, new)| new)
}

/// The CSI driver that attaches a volume.
fn attached_by(spec: &PvSpec) -> Option<&str> {
    if let Some(csi) = &spec.csi {
        return Some(csi.driver.as_str()).filter(|driver| !driver.is_empty());
    }
    let PvSpec {
        aws_elastic_block_store: ebs,
        gce_persistent_disk: gce,
        azure_disk,
        azure_file,
        cinder,
        vsphere_volume: vsphere,
        portworx_volume: portworx,
        ..
    } = spec;
    let sources = [ebs, gce, azure_disk, azure_file, cinder, vsphere, portworx];
    sources.iter().zip(MIGRATED).find(|(source, _)| source.is_some()).map(|(_, (_, driver))| driver)
}

/// Annotated as the class of claims that name none.
fn is_default(class: &StorageClass) -> bool {
    let notes = class.metadata.annotations.as_ref();
    crate::objects::DEFAULT_CLASS.iter().any(|key| notes.and_then(|n| n.get(*key)).is_some_and(|v| v == "true"))
}
