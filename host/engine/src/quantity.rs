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

/// A quantity that is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a Kubernetes quantity: {problem}; write it like 250m, 2, 1.5Gi or 100M")]
pub struct QuantityError {
    /// What was found.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// A parsed Kubernetes quantity, exact to a billionth of a unit (finer digits round up, as in Kubernetes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nano: i128,
}

impl Quantity {
    /// In thousandths, rounded up.
    pub fn milli(self) -> i64 {
        ceil_to_i64(self.nano, 1_000_000)
    }

    /// In whole units, rounded up.
    pub fn value(self) -> i64 {
        ceil_to_i64(self.nano, 1_000_000_000)
    }
}

/// `nano / unit`, rounded up, clamped to what an i64 holds.
fn ceil_to_i64(nano: i128, unit: i128) -> i64 {
    let whole = nano.div_euclid(unit) + i128::from(nano.rem_euclid(unit) != 0);
    i64::try_from(whole).unwrap_or(if whole > 0 { i64::MAX } else { i64::MIN })
}
