//! NodeClaim: the intent to have one node, and what became of it.
#![allow(clippy::duplicated_attributes, reason = "the keys of one printcolumn are taken for repeats of another's")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::{GoDuration, NillableDuration};
use crate::nodepool::expire_after;
use crate::requirement::{NodeClassReference, Requirement};
use crate::taints::Taint;

/// The node that is wanted. Never changes after creation.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    doc = "NodeClaim is the intent to have one node, and what became of it.",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    category = "karpenter",
    printcolumn(name = "Type", type_ = "string", json_path = r".metadata.labels.node\.kubernetes\.io/instance-type"),
    printcolumn(name = "Capacity", type_ = "string", json_path = r".metadata.labels.karpenter\.sh/capacity-type"),
    printcolumn(name = "Zone", type_ = "string", json_path = r".metadata.labels.topology\.kubernetes\.io/zone"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ImageID", type_ = "string", json_path = ".status.imageID", priority = 1),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = 1),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        json_path = r".metadata.labels.karpenter\.sh/nodepool",
        priority = 1
    ),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.nodeClassRef.name", priority = 1),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Drifted")].status"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// Node class that says how to build the node.
    pub node_class_ref: NodeClassReference,
    /// What the node's labels must satisfy.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub requirements: Vec<Requirement>,
    /// What the pods meant for the node need at least.
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// Taints of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Vec<Taint>,
    /// Taints of the new node that something else removes once it is prepared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Vec<Taint>,
    /// Age at which the node is drained and replaced whatever the disruption budgets say, or Never.
    #[serde(default = "expire_after")]
    pub expire_after: NillableDuration,
    /// Longest time that draining may take; 0s ends it at once. Without it draining may take for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<GoDuration>,
}

impl Default for NodeClaimSpec {
    fn default() -> Self {
        Self {
            node_class_ref: NodeClassReference::default(),
            requirements: Vec::new(),
            resources: Resources::default(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            expire_after: expire_after(),
            termination_grace_period: None,
        }
    }
}

/// What the pods meant for a node need.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Least resources that the node must have, by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::crd::quantities")]
    pub requests: BTreeMap<String, Quantity>,
}

impl Resources {
    fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }
}

/// What became of a NodeClaim.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// Name of its Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Provider id of its instance, as the Node carries it: `aws:///ZONE/INSTANCE`.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// AMI that it was launched from.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Estimated full capacity of the node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::crd::quantities")]
    pub capacity: BTreeMap<String, Quantity>,
    /// Estimated capacity left for pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::crd::quantities")]
    pub allocatable: BTreeMap<String, Quantity>,
    /// What is known about the claim's state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::condition::relaxed_list_map")]
    pub conditions: Vec<Condition>,
    /// When a pod was last bound to the node or left it. consolidateAfter counts from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<Time>,
}
