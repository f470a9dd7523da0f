//! NodePool: what nodes may be provisioned, how many, and how they may be disrupted.
#![allow(clippy::duplicated_attributes, reason = "the keys of one printcolumn are taken for repeats of another's")]

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::duration::{GoDuration, NillableDuration};
use crate::open_enum::open_enum;
use crate::requirement::{NodeClassReference, Requirement};
use crate::taints::Taint;

/// What nodes may be provisioned.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    doc = "NodePool says which nodes may be provisioned for pending pods, up to which limits, and how they may be disrupted.",
    status = "NodePoolStatus",
    derive = "PartialEq",
    category = "karpenter",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.template.spec.nodeClassRef.name"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu", priority = 1),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.resources.memory", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// What a node of this pool looks like.
    pub template: NodeClaimTemplate,
    /// How nodes of this pool may be disrupted.
    #[serde(default)]
    #[schemars(extend("default" = {"consolidateAfter": "0s"}))]
    pub disruption: Disruption,
    /// Upper bound of what the pool's nodes may sum up to, by resource name; `nodes` bounds their number. Without
    /// limits a mistake in a workload can provision without end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::crd::quantities")]
    pub limits: Option<BTreeMap<String, Quantity>>,
    /// Pools of higher weight are tried first. Absent counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// Fixed number of nodes, kept whatever pods there are. A pool has it from the start or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// What a node of a pool looks like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplate {
    /// Labels and annotations of the NodeClaims and Nodes.
    #[serde(default, skip_serializing_if = "TemplateMetadata::is_empty")]
    pub metadata: TemplateMetadata,
    /// Spec of the NodeClaims.
    pub spec: NodeClaimTemplateSpec,
}

/// Labels and annotations of the NodeClaims and Nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateMetadata {
    /// Labels, on NodeClaim and Node. Pods may select by them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "labels_schema")]
    pub labels: BTreeMap<String, String>,
    /// Annotations, on NodeClaim and Node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl TemplateMetadata {
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// Spec of the NodeClaims of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimTemplateSpec {
    /// Node class that says how to build the node. Group and kind cannot change, the name can.
    pub node_class_ref: NodeClassReference,
    /// What the node's labels must satisfy, together with the pods' own requirements.
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub requirements: Vec<Requirement>,
    /// Taints of the node; pods must tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub taints: Vec<Taint>,
    /// Taints of the new node that something else removes once it is prepared; pods need not tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub startup_taints: Vec<Taint>,
    /// Age at which a node is drained and replaced whatever the disruption budgets say, or Never.
    #[serde(default = "expire_after")]
    pub expire_after: NillableDuration,
    /// Longest time that draining may take; 0s ends it at once. Without it draining may take for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period: Option<GoDuration>,
}

impl Default for NodeClaimTemplateSpec {
    fn default() -> Self {
        Self {
            node_class_ref: NodeClassReference::default(),
            requirements: Vec::new(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            expire_after: expire_after(),
            termination_grace_period: None,
        }
    }
}

/// 30 days: old enough to cost little, young enough that nodes get security fixes.
pub(crate) fn expire_after() -> NillableDuration {
    NillableDuration::from("720h")
}

/// How nodes of a pool may be disrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Disruption {
    /// Time without a pod coming or going after which a node may be consolidated, or Never. Pools with replicas
    /// ignore it.
    pub consolidate_after: NillableDuration,
    /// Which nodes consolidation may touch: WhenEmpty only empty ones, WhenEmptyOrUnderutilized also those whose pods
    /// fit cheaper elsewhere, Balanced those of them where the saving is worth the disruption.
    #[schemars(schema_with = "policy_schema")]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be disrupted at a time. The tightest active budget counts.
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "atomic"))]
    pub budgets: Vec<Budget>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidate_after: NillableDuration::from("0s"),
            consolidation_policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            budgets: vec![Budget::default()],
        }
    }
}

/// A text and no enumeration: were the word refused as a wrong one of an enumeration, the API server would not get to
/// the rule that tells users of v1beta1 what to write instead.
fn policy_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 63})
}

/// Label values, which the schema checks here so that the user sees it before any node is asked for.
fn labels_schema(_: &mut SchemaGenerator) -> Schema {
    let value = json_schema!({"type": "string", "maxLength": 63, "pattern": crate::crd::LABEL_VALUE});
    json_schema!({
        "type": "object", "additionalProperties": value, "maxProperties": 100, "x-kubernetes-map-type": "atomic"
    })
}

open_enum! {
    /// Which nodes consolidation may touch.
    pub enum ConsolidationPolicy {
        /// Empty nodes.
        WhenEmpty = "WhenEmpty",
        /// Empty nodes and those whose pods fit cheaper elsewhere.
        WhenEmptyOrUnderutilized = "WhenEmptyOrUnderutilized",
        /// As before, where the saving is worth the disruption.
        Balanced = "Balanced",
    }
}

open_enum! {
    /// Why a node is disrupted, as budgets name it.
    pub enum DisruptionReason {
        /// Its pods fit cheaper elsewhere.
        Underutilized = "Underutilized",
        /// It runs no pods but those of DaemonSets.
        Empty = "Empty",
        /// It is no longer what its pool and class ask for.
        Drifted = "Drifted",
        /// It is broken and to be repaired.
        Unhealthy = "Unhealthy",
    }
}

/// How many nodes may be disrupted at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// A number of nodes, or a percentage of the pool's nodes rounded up.
    #[serde(default = "ten_percent")]
    #[schemars(regex(pattern = r"^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// Reasons that the budget bounds. Absent means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "set"))]
    pub reasons: Vec<DisruptionReason>,
    /// When the budget becomes active: five cron fields or a macro such as @daily, in UTC. Without it the budget is
    /// always active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::crd::SCHEDULE))]
    pub schedule: Option<String>,
    /// How long the budget is active after each time of the schedule, in hours and minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<GoDuration>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { nodes: ten_percent(), reasons: Vec::new(), schedule: None, duration: None }
    }
}

fn ten_percent() -> String {
    "10%".into()
}

/// What was last seen of a NodePool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Sum of the capacity of the pool's nodes, by resource name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::crd::quantities")]
    pub resources: BTreeMap<String, Quantity>,
    /// Number of nodes of the pool.
    #[serde(default)]
    pub nodes: i64,
    /// Generation of the node class that registration health was judged at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// What is known about the pool's state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::condition::list_map")]
    pub conditions: Vec<Condition>,
}

impl NodePool {
    /// Weight, with the default of 0.
    pub fn weight(&self) -> i32 {
        self.spec.weight.unwrap_or(0)
    }

    /// Whether it keeps a fixed number of nodes.
    pub fn is_static(&self) -> bool {
        self.spec.replicas.is_some()
    }
}
