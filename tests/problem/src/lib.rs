//! A scheduling problem, and an answer to it, as JSON: the types of `tests/parity/FORMAT.md`.
//!
//! The engine (through the same conversion as in production) and the independent checker read them, so nothing here
//! decides or interprets anything: quantities stay text, labels stay as written.

mod answer;
mod expect;
mod read;

pub use answer::{Answer, Claim, Existing};
pub use expect::{Example, Expectation, Span};
pub use k8s_openapi;
pub use mortise_api as api;
pub use read::ReadError;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{
    Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, PodTemplate, ReplicationController, Service,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{
    CounterSet, Device, DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice,
};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mortise_api::requirement::Requirement;
use mortise_api::{CapacityBuffer, NodeClaim, NodeOverlay, NodePool};
use serde::{Deserialize, Serialize};
pub use serde_json::Value;

/// One scheduling problem: the cluster, what the cloud offers, and the pods. Lists that are left out are empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Problem {
    /// Name for messages.
    pub name: String,
    /// The time that the problem is at.
    pub now: Time,
    /// Settings of the scheduler.
    #[serde(default)]
    pub options: Options,
    /// What the cloud offers.
    #[serde(default)]
    pub instance_types: Vec<InstanceType>,
    /// Names of the instance types that a NodePool is offered, by NodePool. One that is not named is offered all.
    #[serde(default)]
    pub instance_types_of: BTreeMap<String, Vec<String>>,
    /// NodePools, all of them Ready.
    #[serde(default)]
    pub node_pools: Vec<NodePool>,
    /// NodeClaims: of the managed nodes, and those in flight.
    #[serde(default)]
    pub node_claims: Vec<NodeClaim>,
    /// Nodes.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// Pods, bound and pending.
    #[serde(default)]
    pub pods: Vec<Pod>,
    /// DaemonSets.
    #[serde(default)]
    pub daemon_sets: Vec<DaemonSet>,
    /// Namespaces.
    #[serde(default)]
    pub namespaces: Vec<Namespace>,
    /// PersistentVolumeClaims.
    #[serde(default)]
    pub persistent_volume_claims: Vec<PersistentVolumeClaim>,
    /// PersistentVolumes.
    #[serde(default)]
    pub persistent_volumes: Vec<PersistentVolume>,
    /// StorageClasses.
    #[serde(default)]
    pub storage_classes: Vec<StorageClass>,
    /// CSINodes.
    #[serde(default)]
    pub csi_nodes: Vec<CSINode>,
    /// Services, which default topology spread looks at.
    #[serde(default)]
    pub services: Vec<Service>,
    /// Deployments, which CapacityBuffers may refer to.
    #[serde(default)]
    pub deployments: Vec<Deployment>,
    /// ReplicaSets.
    #[serde(default)]
    pub replica_sets: Vec<ReplicaSet>,
    /// StatefulSets.
    #[serde(default)]
    pub stateful_sets: Vec<StatefulSet>,
    /// ReplicationControllers.
    #[serde(default)]
    pub replication_controllers: Vec<ReplicationController>,
    /// PodDisruptionBudgets.
    #[serde(default)]
    pub pod_disruption_budgets: Vec<PodDisruptionBudget>,
    /// PodTemplates, which CapacityBuffers may refer to.
    #[serde(default)]
    pub pod_templates: Vec<PodTemplate>,
    /// NodeOverlays.
    #[serde(default)]
    pub node_overlays: Vec<NodeOverlay>,
    /// CapacityBuffers.
    #[serde(default)]
    pub capacity_buffers: Vec<CapacityBuffer>,
    /// ResourceClaims.
    #[serde(default)]
    pub resource_claims: Vec<ResourceClaim>,
    /// ResourceClaimTemplates.
    #[serde(default)]
    pub resource_claim_templates: Vec<ResourceClaimTemplate>,
    /// DeviceClasses.
    #[serde(default)]
    pub device_classes: Vec<DeviceClass>,
    /// ResourceSlices.
    #[serde(default)]
    pub resource_slices: Vec<ResourceSlice>,
}

impl Problem {
    /// Whether a NodePool is offered an instance type.
    pub fn is_offered(&self, node_pool: &str, instance_type: &str) -> bool {
        self.instance_types_of.get(node_pool).is_none_or(|names| names.iter().any(|name| name == instance_type))
    }
}

/// Settings of the scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// What preferences of pods count for.
    pub preference_policy: PreferencePolicy,
    /// What happens when `minValues` cannot be kept.
    pub min_values_policy: MinValuesPolicy,
    /// Pods that ask for ResourceClaims are left alone.
    #[serde(rename = "ignoreDRARequests")]
    pub ignore_dra_requests: bool,
    /// Capacity reservations are used.
    pub reserved_capacity: bool,
    /// KubeSchedulerConfiguration, of which the default topology spread constraints are read.
    pub scheduler_config: Option<Value>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            preference_policy: PreferencePolicy::Respect,
            min_values_policy: MinValuesPolicy::Strict,
            ignore_dra_requests: true,
            reserved_capacity: true,
            scheduler_config: None,
        }
    }
}

/// What preferences of pods count for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreferencePolicy {
    /// They hold until nothing fits.
    Respect,
    /// Nothing.
    Ignore,
}

/// What happens when `minValues` cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MinValuesPolicy {
    /// No node.
    Strict,
    /// A node with as many values as there are.
    BestEffort,
}

/// A kind of machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InstanceType {
    /// Name, the value of label `node.kubernetes.io/instance-type`.
    pub name: String,
    /// What the labels of its nodes may be.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// Capacity by resource name.
    #[serde(default)]
    pub capacity: BTreeMap<String, Quantity>,
    /// What the machine keeps for itself: allocatable is capacity less overhead.
    #[serde(default)]
    pub overhead: BTreeMap<String, Quantity>,
    /// CSI attach limits by driver; a driver that is not named is unbounded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub volume_limits: BTreeMap<String, u32>,
    /// ResourceSlices that a node of it is expected to publish.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_templates: Vec<DeviceTemplate>,
    /// Devices of it that share an attribute whose value is not known before the node runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attribute_bindings: Vec<AttributeBinding>,
    /// Where and how it can be had.
    #[serde(default)]
    pub offerings: Vec<Offering>,
}

/// One way to have an instance type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Offering {
    /// Zone, capacity type and, for reserved ones, the reservation's id and type.
    #[serde(default)]
    pub requirements: Vec<Requirement>,
    /// USD per hour; `None` = not known.
    #[serde(default)]
    pub price: Option<f64>,
    /// Whether the cloud has it now.
    #[serde(default)]
    pub available: bool,
    /// Instances left in the reservation; reserved offerings only.
    #[serde(default)]
    pub reservation_capacity: u32,
}

/// A ResourceSlice that a node of an instance type is expected to publish: either devices, or counters that they share.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceTemplate {
    /// DRA driver.
    pub driver: String,
    /// Pool of the devices.
    pub pool: String,
    /// Devices.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// Counters that devices of the pool draw from.
    #[serde(default)]
    pub shared_counters: Vec<CounterSet>,
}

/// Devices that share the value of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AttributeBinding {
    /// `<domain>/<name>` of the attribute.
    pub attribute: String,
    /// The devices, two at least.
    pub devices: Vec<DeviceId>,
}

/// Name of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceId {
    /// DRA driver.
    pub driver: String,
    /// Pool.
    pub pool: String,
    /// Name in the pool.
    pub device: String,
}
