//! Integer quantities with the unit in the type. Unknown is `None`, never zero.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Money: millionths of a US dollar per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

/// Amounts of every resource, each in its base unit. A resource that is absent is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Resources {
    /// Thousandths of a CPU.
    pub cpu_milli: i64,
    /// Bytes.
    pub memory: i64,
    /// `ephemeral-storage`, bytes.
    pub ephemeral_storage: i64,
    /// Pod slots.
    pub pods: i64,
    /// Any other resource by its name (`nvidia.com/gpu`, `hugepages-2Mi`, …), whole units, rounded up.
    pub extended: BTreeMap<Arc<str>, i64>,
}
