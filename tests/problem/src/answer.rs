//! What a scheduler answers.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mortise_api::requirement::Requirement;
use serde::{Deserialize, Serialize};

/// Where each pending pod goes, or why it stays. Pods are named `<namespace>/<name>`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Answer {
    /// Name of the problem.
    pub name: String,
    /// Nodes to be made.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Nodes that there are already, or are in flight, with the pods that go there.
    #[serde(default)]
    pub existing: Vec<Existing>,
    /// Why a pod stays pending, by pod.
    #[serde(default)]
    pub errors: BTreeMap<String, String>,
    /// Why there is no answer at all: bad input, a panic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Pods of buffers, `<namespace>/capacity-buffer-<buffer>-<i>`, that room was not found for.
    #[serde(default)]
    pub unplaced_buffers: Vec<String>,
    /// Time that the decision took, without reading and writing, milliseconds.
    #[serde(default)]
    pub millis: f64,
}

/// A node to be made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    /// Name of its NodePool.
    pub node_pool: String,
    /// Requirements of the NodeClaim; the instance types among them in order.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// Labels of the NodeClaim.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Names of the instance types left, cheapest first. The cloud may launch any of them.
    #[serde(default)]
    pub instance_types: Vec<String>,
    /// Sum of what its pods and DaemonSets ask for.
    #[serde(default)]
    pub requests: BTreeMap<String, Quantity>,
    /// Pods that go there.
    #[serde(default)]
    pub pods: Vec<String>,
    /// Ids of the capacity reservations held.
    #[serde(default)]
    pub reservations: Vec<String>,
}

/// A node that there is already, with the pods that go there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Existing {
    /// Node name, or NodeClaim name while there is no Node.
    pub node: String,
    /// Pods that go there.
    #[serde(default)]
    pub pods: Vec<String>,
}
