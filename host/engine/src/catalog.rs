//! What can be bought: instance types and their offerings, per node class.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::quantity::{MicroUsd, Resources};
use crate::requirement::Requirement;

/// Market of an offering, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum CapacityType {
    /// Capacity reservation.
    Reserved,
    /// Spot.
    Spot,
    /// On-demand.
    OnDemand,
}

/// One way to buy an instance type.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Offering {
    /// `topology.kubernetes.io/zone`.
    pub zone: Arc<str>,
    /// Market.
    pub capacity_type: CapacityType,
    /// Price per hour; `None` = unknown, which ranks last and is never taken for zero.
    pub price: Option<MicroUsd>,
    /// The price is an estimate (another region's table).
    pub price_estimated: bool,
    /// May be launched now: offered, a subnet in the zone, not in the insufficient-capacity cache.
    pub available: bool,
    /// Further labels that a node of this offering gets (zone id, tenancy, reservation id, …).
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Reserved only: instances left.
    pub reserved_left: Option<u32>,
}

/// An instance type of one node class.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct InstanceType {
    /// `node.kubernetes.io/instance-type`.
    pub name: Arc<str>,
    /// What its nodes' labels may be: single values (arch, family, cpu, …), sets, or DoesNotExist.
    pub requirements: Vec<Requirement>,
    /// Capacity.
    pub capacity: Resources,
    /// Capacity less kube-reserved, system-reserved and eviction threshold.
    pub allocatable: Resources,
    /// Ways to buy it. Unavailable ones stay listed, so that their price and zone are known.
    pub offerings: Vec<Offering>,
}

/// The instance types of a node class, sorted by name, at one moment. Made by [`Catalog::new`] and not changed after.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Catalog {
    /// Grows with every change of types, offerings, prices or availability; equal generation = equal content.
    pub generation: u64,
    /// Types sorted by name.
    pub types: Vec<InstanceType>,
}

impl Catalog {
    /// A catalogue of these types. Sorts them by name; of two with one name the first stays.
    pub fn new(generation: u64, mut types: Vec<InstanceType>) -> Self {
        types.sort_by(|a, b| a.name.cmp(&b.name));
        types.dedup_by(|later, first| later.name == first.name);
        Self { generation, types }
    }
}
