//! What can be bought: instance types and their offerings, per node class.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::quantity::{MicroUsd, Resources};
use crate::requirement::Requirement;

mod prepared;
mod view;

pub(crate) use prepared::{Prepared, ResourceColumns};
pub(crate) use view::View;

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

impl CapacityType {
    /// Every market, in order of precedence.
    pub const ALL: [Self; 3] = [Self::Reserved, Self::Spot, Self::OnDemand];

    /// Value of the label `karpenter.sh/capacity-type`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spot => "spot",
            Self::OnDemand => "on-demand",
        }
    }

    /// From the label value.
    pub fn parse(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == label)
    }
}

impl fmt::Display for CapacityType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
    /// CSI attach limits by driver, where the provider knows them.
    pub volume_limits: BTreeMap<Arc<str>, u32>,
    /// Devices that its nodes are expected to publish.
    pub devices: Arc<crate::device::Templates>,
    /// A NodeOverlay changed the price of one of its offerings.
    pub price_overlaid: bool,
    /// A NodeOverlay changed its capacity.
    pub capacity_overlaid: bool,
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
    /// Columns, made at first use.
    #[serde(skip)]
    prepared: Cache,
}

/// A cache is no part of the value: equal to any other, and empty in a clone, which may be about to change.
#[derive(Default)]
struct Cache(OnceLock<Arc<Prepared>>);

impl Clone for Cache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache")
    }
}

impl PartialEq for Cache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Cache {}

impl Catalog {
    /// A catalogue of these types. Sorts them by name; of two with one name the first stays.
    pub fn new(generation: u64, mut types: Vec<InstanceType>) -> Self {
        types.sort_by(|a, b| a.name.cmp(&b.name));
        types.dedup_by(|later, first| later.name == first.name);
        Self { generation, types, prepared: Cache::default() }
    }

    /// A type by name.
    pub fn get(&self, name: &str) -> Option<&InstanceType> {
        let at = self.types.binary_search_by(|of_type| (*of_type.name).cmp(name)).ok()?;
        self.types.get(at)
    }

    /// The columns, made at the first call. A catalogue is not changed after that.
    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        self.prepared.0.get_or_init(|| Arc::new(Prepared::new(self)))
    }

    /// Makes the columns now, so that the first round does not have to.
    pub fn prepare(&self) {
        let _ = self.prepared();
    }
}
