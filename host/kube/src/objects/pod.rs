//! Pods, as far as placement and disruption look at them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{LabelSelector, Scalar, nullable};

/// Resource names and quantities.
pub type ResourceList = BTreeMap<String, Scalar>;

/// A Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
    /// Status.
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
}

/// `spec` of a Pod or of a pod template.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 PodSpec)")]
pub struct PodSpec {
    pub node_name: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub host_network: bool,
    #[serde(deserialize_with = "nullable")]
    pub node_selector: BTreeMap<String, String>,
    pub affinity: Option<Affinity>,
    #[serde(deserialize_with = "nullable")]
    pub tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "nullable")]
    pub topology_spread_constraints: Vec<SpreadConstraint>,
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub overhead: ResourceList,
    pub resources: Option<ResourceNeeds>,
    #[serde(deserialize_with = "nullable")]
    pub resource_claims: Vec<IgnoredAny>,
    #[serde(deserialize_with = "nullable")]
    pub volumes: Vec<Volume>,
    pub priority: Option<i32>,
    pub priority_class_name: Option<String>,
    pub termination_grace_period_seconds: Option<i64>,
}

/// A container, init container or sidecar.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 Container)")]
pub struct Container {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub resources: ResourceNeeds,
    pub restart_policy: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub ports: Vec<ContainerPort>,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 ResourceRequirements)")]
pub struct ResourceNeeds {
    #[serde(deserialize_with = "nullable")]
    pub requests: ResourceList,
    #[serde(deserialize_with = "nullable")]
    pub limits: ResourceList,
    #[serde(deserialize_with = "nullable")]
    pub claims: Vec<IgnoredAny>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 ContainerPort)")]
pub struct ContainerPort {
    pub container_port: Option<i64>,
    pub host_port: Option<i64>,
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
    pub protocol: Option<String>,
}

/// Affinity rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 Affinity)")]
pub struct Affinity {
    pub node_affinity: Option<NodeAffinity>,
    pub pod_affinity: Option<PodAffinity>,
    pub pod_anti_affinity: Option<PodAffinity>,
}

/// Node affinity.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// Hard terms.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// Soft terms.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub preferred: Vec<PreferredTerm>,
}

/// Pod affinity or anti-affinity.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodAffinity {
    /// Hard terms.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub required: Vec<PodAffinityTerm>,
    /// Soft terms.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution", deserialize_with = "nullable")]
    pub preferred: Vec<WeightedPodAffinityTerm>,
}

/// A term of pod affinity or anti-affinity.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 PodAffinityTerm)")]
pub struct PodAffinityTerm {
    #[serde(deserialize_with = "nullable")]
    pub topology_key: String,
    pub label_selector: Option<LabelSelector>,
    #[serde(deserialize_with = "nullable")]
    pub namespaces: Vec<String>,
    pub namespace_selector: Option<LabelSelector>,
    #[serde(deserialize_with = "nullable")]
    pub match_label_keys: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub mismatch_label_keys: Vec<String>,
}

/// A preferred term with its weight.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    missing_docs,
    reason = "fields are named and documented by the Kubernetes API (core/v1 WeightedPodAffinityTerm)"
)]
pub struct WeightedPodAffinityTerm {
    #[serde(deserialize_with = "nullable")]
    pub weight: i32,
    #[serde(deserialize_with = "nullable")]
    pub pod_affinity_term: PodAffinityTerm,
}

/// Alternatives, one of which must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 NodeSelector)")]
pub struct NodeSelector {
    #[serde(deserialize_with = "nullable")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Requirements that must all hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 NodeSelectorTerm)")]
pub struct NodeSelectorTerm {
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<super::Expression>,
    #[serde(deserialize_with = "nullable")]
    pub match_fields: Vec<super::Expression>,
}

/// A term with a weight.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    missing_docs,
    reason = "fields are named and documented by the Kubernetes API (core/v1 PreferredSchedulingTerm)"
)]
pub struct PreferredTerm {
    pub weight: i32,
    #[serde(deserialize_with = "nullable")]
    pub preference: NodeSelectorTerm,
}

/// A toleration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 Toleration)")]
pub struct Toleration {
    pub key: Option<String>,
    pub operator: Option<String>,
    pub value: Option<String>,
    pub effect: Option<String>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    missing_docs,
    reason = "fields are named and documented by the Kubernetes API (core/v1 TopologySpreadConstraint)"
)]
pub struct SpreadConstraint {
    #[serde(deserialize_with = "nullable")]
    pub max_skew: i64,
    #[serde(deserialize_with = "nullable")]
    pub topology_key: String,
    #[serde(deserialize_with = "nullable")]
    pub when_unsatisfiable: String,
    pub label_selector: Option<LabelSelector>,
    pub min_domains: Option<i64>,
    pub node_affinity_policy: Option<String>,
    pub node_taints_policy: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub match_label_keys: Vec<String>,
}

/// A volume, as far as it needs a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 Volume)")]
pub struct Volume {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    pub persistent_volume_claim: Option<PvcVolume>,
    pub ephemeral: Option<EphemeralVolume>,
}

/// Names a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "field of core/v1 PersistentVolumeClaimVolumeSource")]
pub struct PvcVolume {
    #[serde(deserialize_with = "nullable")]
    pub claim_name: String,
}

/// A PersistentVolumeClaim made for the pod, named after pod and volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EphemeralVolume {
    /// What the claim is made from.
    #[serde(deserialize_with = "nullable")]
    pub volume_claim_template: ClaimTemplate,
}

/// Template of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ClaimTemplate {
    /// Specification of the claim.
    #[serde(deserialize_with = "nullable")]
    pub spec: super::PvcSpec,
}

/// `status` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 PodStatus)")]
pub struct PodStatus {
    pub phase: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<super::Condition>,
    pub nominated_node_name: Option<String>,
    pub start_time: Option<Time>,
    #[serde(deserialize_with = "nullable")]
    pub container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    pub init_container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    pub allocated_resources: ResourceList,
    #[serde(deserialize_with = "nullable")]
    pub resources: ActualResources,
}

/// Status of a container: what the kubelet has allocated to it, and what it runs with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 ContainerStatus)")]
pub struct ContainerStatus {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub allocated_resources: ResourceList,
    #[serde(deserialize_with = "nullable")]
    pub resources: ActualResources,
}

/// Resources in effect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ActualResources {
    /// Requests in effect.
    #[serde(deserialize_with = "nullable")]
    pub requests: ResourceList,
}
