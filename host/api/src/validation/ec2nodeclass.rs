//! EC2NodeClass: the checks that need no cloud.

use std::collections::BTreeMap;

use super::{FieldError, Findings, joined, kubelet};
use crate::ec2nodeclass::{AmiFamily, EC2NodeClass, EC2NodeClassSpec, ManagedKubelet};
use crate::{annotations, labels};

/// An EC2NodeClass that cannot be launched with, as `ValidationSucceeded=False` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassError {
    /// Reason of the condition.
    pub reason: &'static str,
    /// The fields.
    pub fields: Vec<FieldError>,
}

impl ClassError {
    /// Message of the condition.
    pub fn message(&self) -> String {
        joined(&self.fields)
    }
}

/// Judges an EC2NodeClass; the first kind of failure decides the reason, as a condition has only one.
///
/// `expressions` says whether kubelet expressions are acted on (feature gate NodeClassCEL).
pub fn ec2_node_class(class: &EC2NodeClass, expressions: bool) -> (Option<ClassError>, Findings) {
    let spec = &class.spec;
    let mut findings = Findings::default();
    let sharing = class.metadata.annotations.as_ref().and_then(|map| map.get(annotations::NVIDIA_CONSUMABLE_CAPACITY));
    let (unreadable, unsupported) = sharing.map(|text| gpu_sharing(text)).unwrap_or_default();
    let stages: [(&'static str, Vec<FieldError>); 6] = [
        ("InvalidKubeletConfiguration", kubelet::structure(&spec.kubelet)),
        ("KubeletExpressionsDisabled", if expressions { Vec::new() } else { kubelet::expressions(&spec.kubelet) }),
        ("UnsupportedKubeletConfiguration", unsupported_kubelet(spec)),
        ("NVIDIAConsumableCapacityInvalid", unreadable),
        ("DRADisabled", unsupported),
        ("TagValidationFailed", tags(&spec.tags)),
    ];
    let failure =
        stages.into_iter().find(|(_, fields)| !fields.is_empty()).map(|(reason, fields)| ClassError { reason, fields });
    if let Some(failure) = &failure {
        findings.errors.clone_from(&failure.fields);
    }
    unknown_words(spec, &mut findings);
    ambiguous_terms(spec, &mut findings);
    if spec.alias().is_some_and(|alias| alias.is_latest()) {
        let message = "follows every new image, and each one is drift for all nodes: pin a version in production";
        findings.warn("spec.amiSelectorTerms[0].alias", "@latest", message);
    }
    (failure, findings)
}

/// Settings that a family's bootstrap cannot carry.
fn unsupported_kubelet(spec: &EC2NodeClassSpec) -> Vec<FieldError> {
    let Some(family) = spec.resolved_ami_family() else { return Vec::new() };
    if matches!(family, AmiFamily::Al2023 | AmiFamily::Custom) {
        return Vec::new();
    }
    let unmanaged = spec.kubelet.keys().filter(|key| !ManagedKubelet::FIELDS.contains(&key.as_str()));
    let mut errors: Vec<_> = unmanaged
        .map(|key| {
            let fields = ManagedKubelet::FIELDS.join(", ");
            let message = format!("is not supported by the image family {family}, which takes {fields}");
            FieldError::new(format!("spec.kubelet.{key}"), "", message)
        })
        .collect();
    let servers = spec.kubelet.get("clusterDNS").and_then(|value| value.as_array()).map_or(0, Vec::len);
    if servers > 1 {
        let message = format!("the image family {family} takes one DNS server");
        errors.push(FieldError::new("spec.kubelet.clusterDNS", servers, message));
    }
    if family == AmiFamily::Bottlerocket && spec.kubelet.contains_key("podsPerCore") {
        errors.push(FieldError::new("spec.kubelet.podsPerCore", "", "is not supported by Bottlerocket: use maxPods"));
    }
    errors
}

/// How the NVIDIA DRA driver is to share GPUs: what cannot be read, and what can but is not acted on.
fn gpu_sharing(text: &str) -> (Vec<FieldError>, Vec<FieldError>) {
    let error = |message: &str| {
        let field = format!("metadata.annotations[{}]", annotations::NVIDIA_CONSUMABLE_CAPACITY);
        vec![FieldError::new(field, text, message)]
    };
    match text {
        "disabled" => Default::default(),
        "memory" | "unlimited" => (Vec::new(), error("DRA devices are not offered: write disabled or remove it")),
        shares if shares.parse::<u32>().is_ok_and(|shares| shares > 0) => {
            (Vec::new(), error("DRA devices are not offered: write disabled or remove it"))
        }
        _ => (error("write disabled, memory, unlimited or a number of shares from 1 up"), Vec::new()),
    }
}

/// Tags that the controller writes itself.
fn tags(tags: &BTreeMap<String, String>) -> Vec<FieldError> {
    let cluster = |key: &str| {
        let name = key.strip_prefix("kubernetes.io/cluster/").unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    let reserved = [labels::NODEPOOL, "karpenter.sh/nodeclaim", labels::EC2NODECLASS, "eks:eks-cluster-name"];
    tags.keys()
        .filter(|key| reserved.contains(&key.as_str()) || cluster(key))
        .map(|key| FieldError::new(format!("spec.tags[{key}]"), "", "is set by the controller: remove it"))
        .collect()
}

/// Words that a newer schema let through and this version does not know. They must not be passed over in silence.
fn unknown_words(spec: &EC2NodeClassSpec, findings: &mut Findings) {
    let words = [
        ("spec.amiFamily", spec.ami_family.as_ref().filter(|word| !word.is_known()).map(ToString::to_string)),
        (
            "spec.instanceStorePolicy",
            spec.instance_store_policy.as_ref().filter(|word| !word.is_known()).map(ToString::to_string),
        ),
    ];
    for (field, found) in words {
        if let Some(found) = found {
            findings.error(field, found, "is not known to this version");
        }
    }
}

/// Terms that name more than one selector, of which only the first is used. The schema lets them through next to a
/// clean term.
fn ambiguous_terms(spec: &EC2NodeClassSpec, findings: &mut Findings) {
    let message = |used: &str| format!("{used} says it all: the term's other selectors are not used");
    for (i, term) in spec.subnet_selector_terms.iter().enumerate() {
        if let Some(id) = term.id.as_ref().filter(|_| !term.tags.is_empty()) {
            findings.warn(format!("spec.subnetSelectorTerms[{i}]"), id, message("id"));
        }
    }
    for (i, term) in spec.security_group_selector_terms.iter().enumerate() {
        let field = format!("spec.securityGroupSelectorTerms[{i}]");
        match (&term.id, &term.name) {
            (Some(id), name) if name.is_some() || !term.tags.is_empty() => findings.warn(field, id, message("id")),
            (None, Some(name)) if !term.tags.is_empty() => findings.warn(field, name, message("name")),
            _ => {}
        }
    }
    for (i, term) in spec.capacity_reservation_selector_terms.iter().enumerate() {
        let more = !term.tags.is_empty() || term.owner_id.is_some() || term.instance_match_criteria.is_some();
        if let Some(id) = term.id.as_ref().filter(|_| more) {
            findings.warn(format!("spec.capacityReservationSelectorTerms[{i}]"), id, message("id"));
        }
    }
}
