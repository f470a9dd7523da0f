//! CapacityBuffer: room kept free for pods that do not exist yet.
#![allow(clippy::duplicated_attributes, reason = "the keys of one printcolumn are taken for repeats of another's")]

mod size;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;

pub use size::{Size, replicas};

/// The strategy that keeps nodes running for the buffer, and the default.
pub const ACTIVE_CAPACITY: &str = "buffer.x-k8s.io/active-capacity";

/// For which pods room is kept free, and for how many.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    doc = "CapacityBuffer keeps room free on nodes for pods that do not exist yet, so that they start without waiting for a node.",
    status = "CapacityBufferStatus",
    derive = "PartialEq",
    namespaced,
    category = "autoscaling",
    shortname = "cb",
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.provisioningStrategy"),
    printcolumn(name = "PodTemplate", type_ = "string", json_path = ".status.podTemplateRef.name"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "ConditionsType", type_ = "string", json_path = ".status.conditions[*].type"),
    printcolumn(name = "ConditionsStatus", type_ = "string", json_path = ".status.conditions[*].status"),
    printcolumn(name = "ConditionsReason", type_ = "string", json_path = ".status.conditions[*].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferSpec {
    /// How the room is kept: buffer.x-k8s.io/active-capacity keeps nodes running for it.
    #[serde(default = "active_capacity")]
    pub provisioning_strategy: String,
    /// PodTemplate of the same namespace that says what one pod needs. Goes with replicas or limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// Workload of the same namespace whose pods the room is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableReference>,
    /// Number of pods to keep room for. With percentage the larger of both counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// Percentage of the workload's replicas to keep room for, rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// Upper bound of what the room sums up to, by resource name. Alone it says how many pods there is room for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::crd::quantities")]
    pub limits: BTreeMap<String, Quantity>,
}

impl Default for CapacityBufferSpec {
    fn default() -> Self {
        Self {
            provisioning_strategy: active_capacity(),
            pod_template_ref: None,
            scalable_ref: None,
            replicas: None,
            percentage: None,
            limits: BTreeMap::new(),
        }
    }
}

fn active_capacity() -> String {
    ACTIVE_CAPACITY.into()
}

/// An object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalReference {
    /// Name of the object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A workload of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableReference {
    /// Group of the workload; empty means apps.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// Kind of the workload: Deployment, ReplicaSet or StatefulSet.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name of the workload.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What was last seen of a CapacityBuffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// PodTemplate that the room is measured by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<LocalReference>,
    /// Generation of the PodTemplate or workload that the room is measured by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// Strategy that is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// Number of pods that room is kept for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What is known about the buffer's state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::condition::list_map")]
    pub conditions: Vec<Condition>,
}
