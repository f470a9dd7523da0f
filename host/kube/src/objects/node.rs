//! Nodes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;

use super::{ResourceList, nullable};

/// A Node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification.
    #[serde(deserialize_with = "nullable")]
    pub spec: NodeSpec,
    /// Status.
    #[serde(deserialize_with = "nullable")]
    pub status: NodeStatus,
}

/// `spec` of a Node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 NodeSpec)")]
pub struct NodeSpec {
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    pub unschedulable: bool,
}

/// A taint.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 Taint)")]
pub struct Taint {
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    pub value: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub effect: String,
}

/// `status` of a Node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 NodeStatus)")]
pub struct NodeStatus {
    #[serde(deserialize_with = "nullable")]
    pub capacity: ResourceList,
    #[serde(deserialize_with = "nullable")]
    pub allocatable: ResourceList,
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    pub node_info: NodeInfo,
}

/// `status.nodeInfo`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    /// Changes with every boot.
    #[serde(rename = "bootID", deserialize_with = "nullable")]
    pub boot_id: String,
}

/// A condition of a Node or Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1 NodeCondition)")]
pub struct Condition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub kind: String,
    #[serde(deserialize_with = "nullable")]
    pub status: String,
    #[serde(deserialize_with = "nullable")]
    pub reason: String,
    pub last_transition_time: Option<Time>,
}
