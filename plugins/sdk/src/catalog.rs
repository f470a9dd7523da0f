//! Reading the catalogue of a round by name.

use alloc::string::String;

use crate::types::{Catalog, Column, ExtraColumn};

/// Price of an offering that is unknown.
pub const PRICE_UNKNOWN: u64 = u64::MAX;
/// Cost of a candidate that is unknown: ranks last.
pub const COST_UNKNOWN: i64 = i64::MAX - 1;
/// Cost that drops a candidate.
pub const COST_DROPPED: i64 = i64::MAX;

/// Market of an offering, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capacity {
    /// Capacity reservation: paid for already.
    Reserved,
    /// Spot.
    Spot,
    /// On-demand.
    OnDemand,
}

impl Capacity {
    /// From its code in the `capacity` column. A code of a later contract reads as on-demand, the market without special
    /// rules.
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Reserved,
            1 => Self::Spot,
            _ => Self::OnDemand,
        }
    }

    /// Its code in the `capacity` column.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Reserved => 0,
            Self::Spot => 1,
            Self::OnDemand => 2,
        }
    }
}

impl Catalog {
    /// Text of a symbol; empty when there is no such symbol.
    #[must_use]
    pub fn text(&self, symbol: u32) -> &str {
        self.symbols.get(symbol as usize).map_or("", String::as_str)
    }

    /// Symbol of a text, when this round has it. Linear: look up once per round and compare ids afterwards.
    #[must_use]
    pub fn symbol(&self, text: &str) -> Option<u32> {
        self.symbols.iter().position(|s| s == text).and_then(|i| u32::try_from(i).ok())
    }

    /// Zone symbol of an offering.
    #[must_use]
    pub fn zone_of(&self, offering: u32) -> Option<u32> {
        self.offerings.zone.get(offering as usize).copied()
    }

    /// Market of an offering.
    #[must_use]
    pub fn capacity_of(&self, offering: u32) -> Capacity {
        Capacity::from_code(self.offerings.capacity.get(offering as usize).copied().unwrap_or(2))
    }

    /// List price of an offering, micro-USD per hour; `None` when unknown.
    #[must_use]
    pub fn price_of(&self, offering: u32) -> Option<u64> {
        self.offerings.price_micro_usd.get(offering as usize).copied().filter(|p| *p != PRICE_UNKNOWN)
    }

    /// Instance type id of an offering.
    #[must_use]
    pub fn type_of(&self, offering: u32) -> Option<u32> {
        self.offerings.instance_type.get(offering as usize).copied()
    }
}

/// An extra column of `u32` by name.
#[must_use]
pub fn u32s<'a>(extra: &'a [ExtraColumn], name: &str) -> Option<&'a [u32]> {
    extra.iter().find(|c| c.name == name).and_then(|c| match &c.values {
        Column::U32s(values) => Some(values.as_slice()),
        Column::U64s(_) | Column::S64s(_) => None,
    })
}

/// An extra column of `u64` by name.
#[must_use]
pub fn u64s<'a>(extra: &'a [ExtraColumn], name: &str) -> Option<&'a [u64]> {
    extra.iter().find(|c| c.name == name).and_then(|c| match &c.values {
        Column::U64s(values) => Some(values.as_slice()),
        Column::U32s(_) | Column::S64s(_) => None,
    })
}
