//! Devices of dynamic resource allocation (`resource.k8s.io/v1`): what pods ask for, what exists, and who has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::pod::Term;
use crate::quantity::Quantity;

/// Devices, capacity and counters by name.
pub type Amounts = BTreeMap<Arc<str>, Quantity>;

/// What the cluster knows about devices. Empty where requests for devices are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// CEL selectors of every DeviceClass, by its name.
    pub classes: BTreeMap<Arc<str>, Vec<Selector>>,
    /// ResourceSlices. Slices of one node that is not initialised or is going away are passed over by the engine.
    pub slices: Vec<Arc<Slice>>,
    /// ResourceClaims by `<namespace>/<name>`.
    pub claims: BTreeMap<Arc<str>, Arc<Claim>>,
}

/// A device selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Selector {
    /// A CEL expression about `device`.
    Cel(Arc<str>),
    /// A kind that is not known: its name. Nothing can be allocated with it.
    Unknown(Arc<str>),
}

/// One claim of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum PodClaim {
    /// The pod's own, made from a template and not allocated yet: by value, so that equal pods stay equal.
    Own(Arc<ClaimSpec>),
    /// A ResourceClaim by `<namespace>/<name>`, which other pods may use too.
    Named(Arc<str>),
    /// There is no such ResourceClaim: what is missing, in words.
    Missing(Arc<str>),
}

/// `spec.devices` of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct ClaimSpec {
    /// Requests, in order.
    pub requests: Vec<Request>,
    /// Constraints over the devices of several requests.
    pub constraints: Vec<Constraint>,
}

/// A request for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Request {
    /// Name.
    pub name: Arc<str>,
    /// `exactly`: one, without a name of its own. `firstAvailable`: the first that can be had. Empty: it has neither,
    /// and cannot be allocated.
    pub alternatives: Vec<Alternative>,
}

/// One way to satisfy a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Alternative {
    /// Name of the sub-request; `None` for `exactly`.
    pub name: Option<Arc<str>>,
    /// Name of the DeviceClass.
    pub class: Arc<str>,
    /// Selectors beside those of the class; all must hold.
    pub selectors: Vec<Selector>,
    /// How many devices: `None` = all that match (`allocationMode: All`).
    pub count: Option<u32>,
    /// Capacity that is asked of a device which several claims may share.
    pub capacity: Amounts,
    /// What is asked besides and not acted on (`adminAccess`), in words.
    pub unsupported: Option<Arc<str>>,
}

/// A constraint over devices of one claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Constraint {
    /// They have equal values of an attribute.
    MatchAttribute {
        /// `<domain>/<name>`.
        attribute: Arc<str>,
        /// Requests by name, or `<request>/<sub-request>`; empty = all.
        requests: Vec<Arc<str>>,
    },
    /// A kind that is not known: its name. Nothing can be allocated with it.
    Unknown(Arc<str>),
}

/// A ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// What it asks for.
    pub spec: Arc<ClaimSpec>,
    /// What it was given, if anything.
    pub allocation: Option<Allocation>,
    /// UIDs of the pods that it is reserved for.
    pub reserved_for: Vec<Arc<str>>,
    /// It is reserved for something that is no pod.
    pub reserved_for_others: bool,
}

/// `status.allocation` of a ResourceClaim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// Nodes that reach the devices; `Scope::AllNodes` if it says nothing.
    pub scope: Scope,
    /// Devices.
    pub devices: Vec<Allocated>,
}

/// A device that a ResourceClaim was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// The device.
    pub id: DeviceId,
    /// Its share, where several claims have one; `None` = the whole device.
    pub consumed: Option<Amounts>,
}

/// Name of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct DeviceId {
    /// DRA driver.
    pub driver: Arc<str>,
    /// Pool.
    pub pool: Arc<str>,
    /// Name in the pool.
    pub device: Arc<str>,
}

/// Nodes from which devices can be used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Every node.
    #[default]
    AllNodes,
    /// The Node of this name.
    Node(Arc<str>),
    /// Nodes that meet one of these terms.
    Nodes(Vec<Term>),
    /// No node.
    Nowhere,
}

/// A ResourceSlice: devices of a pool, or counters that they share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// DRA driver.
    pub driver: Arc<str>,
    /// Pool.
    pub pool: Arc<str>,
    /// Generation of the pool; older slices are void.
    pub generation: i64,
    /// Slices that the pool has in this generation.
    pub slice_count: i64,
    /// Name of the Node that owns it.
    pub owner: Option<Arc<str>>,
    /// Devices, each with the nodes from which it can be used.
    pub devices: Vec<(Device, Scope)>,
    /// Counter sets by name, in order.
    pub counters: Vec<(Arc<str>, Amounts)>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Device {
    /// Name in its pool.
    pub name: Arc<str>,
    /// Attributes by name; one without a domain has the driver's.
    pub attributes: BTreeMap<Arc<str>, Attribute>,
    /// Capacity by name; one without a domain has the driver's.
    pub capacity: BTreeMap<Arc<str>, Capacity>,
    /// Several claims may have a share of it.
    pub shareable: bool,
    /// What it takes of counters: counter set and amounts.
    pub consumes: Vec<(Arc<str>, Amounts)>,
}

/// Value of a device's attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Attribute {
    /// Integer.
    Int(i64),
    /// Boolean.
    Bool(bool),
    /// Text.
    String(Arc<str>),
    /// Semantic version.
    Version(Arc<str>),
}

/// Capacity of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Capacity {
    /// How much there is.
    pub value: Quantity,
    /// Which shares of it can be asked for; `None` = any.
    pub policy: Option<SharePolicy>,
}

/// `requestPolicy` of a device's capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct SharePolicy {
    /// Share of a claim that asks for none.
    pub default: Option<Quantity>,
    /// Shares that can be had, ascending; a share is rounded up to the next.
    pub values: Vec<Quantity>,
    /// Least share, largest, and the step between.
    pub range: Option<(Option<Quantity>, Option<Quantity>, Option<Quantity>)>,
}

/// What a node of an instance type is expected to publish.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Templates {
    /// Slices.
    pub slices: Vec<Template>,
    /// Devices that share the value of an attribute which is not known before the node runs: attribute and devices.
    pub bindings: Vec<(Arc<str>, Vec<DeviceId>)>,
}

/// A ResourceSlice that a node of an instance type is expected to publish.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Template {
    /// DRA driver.
    pub driver: Arc<str>,
    /// Pool.
    pub pool: Arc<str>,
    /// Devices.
    pub devices: Vec<Device>,
    /// Counter sets by name, in order.
    pub counters: Vec<(Arc<str>, Amounts)>,
}
