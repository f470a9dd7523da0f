//! Integer quantities with the unit in the type. Unknown is `None`, never zero.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

mod parse;
#[cfg(test)]
mod tests;

pub use parse::{Quantity, QuantityError};

/// Money: millionths of a US dollar per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// Sum, stopping at the largest value.
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// As the signed cost that scorers speak in; never one of the reserved values at the top.
    pub fn as_cost(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX).min(crate::policy::COST_UNKNOWN - 1)
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:04}", self.0 / 1_000_000, self.0 % 1_000_000 / 100)
    }
}

/// Amounts of every resource, each in its base unit. A resource that is absent is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
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

impl Resources {
    /// Amount of a resource by its Kubernetes name, in its base unit (`cpu` in thousandths).
    pub fn get(&self, name: &str) -> i64 {
        match name {
            "cpu" => self.cpu_milli,
            "memory" => self.memory,
            "ephemeral-storage" => self.ephemeral_storage,
            "pods" => self.pods,
            other => self.extended.get(other).copied().unwrap_or(0),
        }
    }

    /// Sets a resource by its Kubernetes name from its base unit. Zero removes an extended resource.
    pub fn set(&mut self, name: &str, amount: i64) {
        match name {
            "cpu" => self.cpu_milli = amount,
            "memory" => self.memory = amount,
            "ephemeral-storage" => self.ephemeral_storage = amount,
            "pods" => self.pods = amount,
            other if amount == 0 => {
                self.extended.remove(other);
            }
            other => {
                self.extended.insert(Arc::from(other), amount);
            }
        }
    }

    /// Sets a resource by its Kubernetes name from a quantity, rounded up to the base unit.
    pub fn set_quantity(&mut self, name: &str, quantity: Quantity) {
        self.set(name, base_units(name, quantity));
    }

    /// From names and quantities as written in a manifest.
    ///
    /// # Errors
    /// The first quantity that does not parse, with the name of its resource.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, (String, QuantityError)> {
        let mut resources = Self::default();
        for (name, text) in pairs {
            let quantity = text.parse().map_err(|error| (name.to_owned(), error))?;
            resources.set_quantity(name, quantity);
        }
        Ok(resources)
    }

    /// Name and amount of every resource that is not zero, the four basic ones first, then by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        [
            ("cpu", self.cpu_milli),
            ("memory", self.memory),
            ("ephemeral-storage", self.ephemeral_storage),
            ("pods", self.pods),
        ]
        .into_iter()
        .chain(self.extended.iter().map(|(name, amount)| (&**name, *amount)))
        .filter(|(_, amount)| *amount != 0)
    }

    /// Whether every resource is zero.
    pub fn is_zero(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Sum; each resource stops at the largest value.
    #[must_use]
    pub fn saturating_add(&self, other: &Self) -> Self {
        self.merge(other, i64::saturating_add)
    }

    /// Difference; may be negative.
    #[must_use]
    pub fn saturating_sub(&self, other: &Self) -> Self {
        self.merge(other, i64::saturating_sub)
    }

    /// Sum, or `None` if a resource overflows.
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        let mut whole = true;
        let sum = self.merge(other, |a, b| {
            a.checked_add(b).unwrap_or_else(|| {
                whole = false;
                i64::MAX
            })
        });
        whole.then_some(sum)
    }

    /// The larger of both, resource by resource.
    #[must_use]
    pub fn elementwise_max(&self, other: &Self) -> Self {
        self.merge(other, i64::max)
    }

    /// The smaller of both, resource by resource (absent counts as zero).
    #[must_use]
    pub fn elementwise_min(&self, other: &Self) -> Self {
        self.merge(other, i64::min)
    }

    /// With nothing below zero.
    #[must_use]
    pub fn at_least_zero(&self) -> Self {
        self.elementwise_max(&Self::default())
    }

    /// `count` times this, each resource stopping at the largest value.
    #[must_use]
    pub fn times(&self, count: i64) -> Self {
        self.merge(&Self::default(), |a, _| a.saturating_mul(count))
    }

    /// Whether these requests fit into `room`: nothing larger, and nothing of the room negative that is asked for.
    pub fn fits(&self, room: &Self) -> bool {
        self.iter().all(|(name, amount)| amount <= room.get(name))
    }

    /// The first resource that does not fit into `room`.
    pub fn short_of<'a>(&'a self, room: &Self) -> Option<&'a str> {
        self.iter().find(|(name, amount)| *amount > room.get(name)).map(|(name, _)| name)
    }

    fn merge(&self, other: &Self, mut op: impl FnMut(i64, i64) -> i64) -> Self {
        let mut extended: BTreeMap<Arc<str>, i64> = BTreeMap::new();
        for name in self.extended.keys().chain(other.extended.keys()) {
            if !extended.contains_key(name) {
                let amount = op(self.get(name), other.get(name));
                extended.insert(Arc::clone(name), amount);
            }
        }
        extended.retain(|_, amount| *amount != 0);
        Self {
            cpu_milli: op(self.cpu_milli, other.cpu_milli),
            memory: op(self.memory, other.memory),
            ephemeral_storage: op(self.ephemeral_storage, other.ephemeral_storage),
            pods: op(self.pods, other.pods),
            extended,
        }
    }
}

/// Base units of a quantity of the named resource: thousandths for `cpu`, whole units for everything else.
pub fn base_units(name: &str, quantity: Quantity) -> i64 {
    if name == "cpu" { quantity.milli() } else { quantity.value() }
}

/// The amount of a resource in base units, written as Kubernetes would: `1500m`, `2`, `8Gi`, `110`.
pub fn display_amount(name: &str, amount: i64) -> String {
    match name {
        "cpu" if amount % 1000 == 0 => (amount / 1000).to_string(),
        "cpu" => format!("{amount}m"),
        "memory" | "ephemeral-storage" => display_bytes(amount),
        other if other.starts_with("hugepages-") => display_bytes(amount),
        _ => amount.to_string(),
    }
}

/// With the largest binary suffix that loses nothing.
fn display_bytes(amount: i64) -> String {
    for (suffix, shift) in [("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)] {
        if amount != 0 && amount % (1_i64 << shift) == 0 {
            return format!("{}{suffix}", amount >> shift);
        }
    }
    amount.to_string()
}
