//! Built-in policy `constraints`: which of its offerings a node to be launched should not use.
//!
//! Rules, in order; each sees what those before it left:
//!
//! 1. **Reservation used up**: a reserved offering with nothing left goes.
//! 2. **Reservation kind**: when a reserved offering remains, keep the kind (default, capacity block, interruptible) of
//!    the cheapest one and nothing else, so that one launch never mixes kinds.
//! 3. **Capacity block**: of that kind keep the cheapest offering alone.
//! 4. **Fullest reservation**: per type and zone keep the reservation with most left.
//! 5. **Exotic types**: GPU, accelerator and metal types go while plain ones remain. With minValues, those without which
//!    they cannot be met stay, and no more: minValues alone never lets a GPU type win.
//! 6. **Dear spot**: spot dearer than the cheapest on-demand goes. Not with minValues, which might need its types.
//!
//! A pure library over columns. As a component it runs in the sandbox; natively it is the fallback and the yardstick.

#![no_std]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;

use mortise_plugin_sdk::types::Verdict;
use mortise_plugin_sdk::{Candidates, Capacity, Drops, PRICE_UNKNOWN, Rows};

#[cfg(target_arch = "wasm32")]
mod component;
mod min_values;
#[cfg(test)]
mod tests;

pub use min_values::MinValues;

/// Extra column of offerings: 0 default, 1 capacity block.
pub const RESERVATION_TYPE: &str = "reservation-type";
/// Extra column of offerings: 1 interruptible.
pub const RESERVATION_INTERRUPTIBLE: &str = "reservation-interruptible";
/// Extra column of instance types: accelerators that are not GPUs.
pub const ACCELERATORS: &str = "accelerators";
/// Bit of `claims.state`: has minValues.
const HAS_MIN_VALUES: u32 = 1;

/// Columns of the offerings.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Offerings<'a> {
    pub instance_type: &'a [u32],
    pub zone: &'a [u32],
    pub capacity: &'a [u8],
    pub price_micro_usd: &'a [u64],
    pub reserved_left: &'a [u32],
    pub reservation_type: Option<&'a [u32]>,
    pub interruptible: Option<&'a [u32]>,
}

/// Columns of the instance types.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "field by field as documented in wit/0.1/policy.wit")]
pub struct Types<'a> {
    pub name: &'a [u32],
    pub gpu: &'a [u32],
    pub accelerators: Option<&'a [u32]>,
    pub labels: Rows<'a>,
}

/// The tables of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tables<'a> {
    /// Texts of the symbols.
    pub symbols: &'a [String],
    /// Instance types.
    pub types: Types<'a>,
    /// Offerings.
    pub offerings: Offerings<'a>,
}

/// The rules, prepared for the types of one round.
#[derive(Clone, Debug, Default)]
pub struct Constraints {
    /// Per type.
    exotic: Vec<bool>,
    /// Per offering.
    class: Vec<u8>,
}

/// A candidate of the row being judged: `dropped` holds the reason once it is gone.
#[derive(Clone, Copy)]
struct Seat {
    offering: u32,
    dropped: Option<&'static str>,
}

impl Seat {
    fn remains(&self) -> bool {
        self.dropped.is_none()
    }
}

impl<'a> Tables<'a> {
    fn capacity(&self, offering: u32) -> Capacity {
        Capacity::from_code(self.offerings.capacity.get(offering as usize).copied().unwrap_or(2))
    }

    fn price(&self, offering: u32) -> u64 {
        self.offerings.price_micro_usd.get(offering as usize).copied().unwrap_or(PRICE_UNKNOWN)
    }

    fn type_of(&self, offering: u32) -> u32 {
        self.offerings.instance_type.get(offering as usize).copied().unwrap_or(u32::MAX)
    }

    fn zone(&self, offering: u32) -> u32 {
        self.offerings.zone.get(offering as usize).copied().unwrap_or(u32::MAX)
    }

    fn left(&self, offering: u32) -> u32 {
        self.offerings.reserved_left.get(offering as usize).copied().unwrap_or(0)
    }

    /// Kind of a reservation, in order of preference at equal price.
    fn reservation_kind(&self, offering: u32) -> u8 {
        let at = |column: Option<&'a [u32]>| column.and_then(|c| c.get(offering as usize)).copied().unwrap_or(0);
        match (at(self.offerings.reservation_type), at(self.offerings.interruptible)) {
            (0, 0) => 0,
            (0, _) => 2,
            (_, _) => CAPACITY_BLOCK,
        }
    }

    fn text(&self, symbol: u32) -> &'a str {
        self.symbols.get(symbol as usize).map_or("", String::as_str)
    }
}

const CAPACITY_BLOCK: u8 = 1;
const EXOTIC_REASON: &str = "a GPU, accelerator or metal type while plain types remain";
const SPOT_REASON: &str = "spot dearer than the cheapest on-demand";

/// What the rules ask of an offering, in one byte: bits.
const RESERVED: u8 = 1;
const SPOT: u8 = 2;
const EXOTIC: u8 = 4;

impl Constraints {
    /// Prepares the rules: which types are exotic.
    #[must_use]
    pub fn new(tables: &Tables<'_>) -> Self {
        let types = &tables.types;
        let exotic = (types.name.iter().enumerate())
            .map(|(i, name)| {
                let some = |column: Option<&[u32]>| column.and_then(|c| c.get(i)).is_some_and(|n| *n > 0);
                let size = tables.text(*name).split_once('.').map_or("", |(_, size)| size);
                some(Some(types.gpu)) || some(types.accelerators) || size.contains("metal")
            })
            .collect();
        let mut rules = Self { exotic, class: Vec::new() };
        let class_of = |(type_id, code): (&u32, &u8)| {
            let market = match Capacity::from_code(*code) {
                Capacity::Reserved => RESERVED,
                Capacity::Spot => SPOT,
                Capacity::OnDemand => 0,
            };
            if rules.is_exotic(*type_id) { market | EXOTIC } else { market }
        };
        rules.class = tables.offerings.instance_type.iter().zip(tables.offerings.capacity).map(class_of).collect();
        rules
    }

    fn is_exotic(&self, type_id: u32) -> bool {
        self.exotic.get(type_id as usize).copied().unwrap_or(false)
    }

    /// Judges every claim. Claims that share a set of candidates and have no minValues are judged once.
    #[must_use]
    pub fn admit(
        &self,
        tables: &Tables<'_>,
        state: &[u32],
        min_values: Option<MinValues<'_>>,
        candidates: Candidates<'_>,
        explain: bool,
    ) -> Verdict {
        let mut drops = Drops::new(explain);
        let mut judged: Vec<Option<usize>> = alloc::vec![None; candidates.sets.len()];
        let mut seats = Vec::new();
        for (row, offerings) in candidates.iter().enumerate() {
            let has_min_values = state.get(row).copied().unwrap_or(0) & HAS_MIN_VALUES != 0;
            let set = candidates.set_of.get(row).map_or(usize::MAX, |s| *s as usize);
            if let (false, Some(Some(earlier))) = (has_min_values, judged.get(set)) {
                drops.repeat_row(*earlier);
                continue;
            }
            if !has_min_values && self.plain_row(tables, offerings, &mut drops) {
                drops.end_row();
                if let Some(slot) = judged.get_mut(set) {
                    *slot = Some(row);
                }
                continue;
            }
            seats.clear();
            seats.extend(offerings.iter().map(|o| Seat { offering: *o, dropped: None }));
            self.reservations(tables, &mut seats);
            let wanted = min_values.filter(|_| has_min_values).map(|m| m.row(row)).unwrap_or_default();
            self.exotic_types(tables, wanted, &mut seats);
            if !has_min_values {
                dear_spot(tables, &mut seats);
                if let Some(slot) = judged.get_mut(set) {
                    *slot = Some(row);
                }
            }
            for seat in &seats {
                if let Some(reason) = seat.dropped {
                    drops.drop(seat.offering, reason);
                }
            }
            drops.end_row();
        }
        drops.finish()
    }

    /// The usual row in two short passes: no reserved offering, so only rules 5 and 6 speak. False when there is one.
    fn plain_row(&self, tables: &Tables<'_>, offerings: &[u32], drops: &mut Drops) -> bool {
        let (mut any_plain, mut limit_plain, mut limit_any) = (false, PRICE_UNKNOWN, PRICE_UNKNOWN);
        for offering in offerings {
            let at = *offering as usize;
            let class = self.class.get(at).copied().unwrap_or(0);
            if class & RESERVED != 0 {
                return false;
            }
            let exotic = class & EXOTIC != 0;
            any_plain |= !exotic;
            if class & SPOT == 0 {
                let price = tables.price(*offering);
                limit_any = limit_any.min(price);
                limit_plain = if exotic { limit_plain } else { limit_plain.min(price) };
            }
        }
        // An unknown price is the largest number there is: no spot is dearer.
        let limit = if any_plain { limit_plain } else { limit_any };
        for offering in offerings {
            let class = self.class.get(*offering as usize).copied().unwrap_or(0);
            if any_plain && class & EXOTIC != 0 {
                drops.drop(*offering, EXOTIC_REASON);
            } else if class & SPOT != 0 && tables.price(*offering) > limit {
                drops.drop(*offering, SPOT_REASON);
            }
        }
        true
    }

    fn reservations(&self, tables: &Tables<'_>, seats: &mut [Seat]) {
        let reserved = |seat: &Seat| seat.remains() && tables.capacity(seat.offering) == Capacity::Reserved;
        for seat in seats.iter_mut().filter(|s| reserved(s) && tables.left(s.offering) == 0) {
            seat.dropped = Some("the reservation is used up");
        }
        let rank = |offering: u32| (tables.price(offering), tables.reservation_kind(offering));
        let Some(best) = seats.iter().filter(|s| reserved(s)).map(|s| s.offering).min_by_key(|o| rank(*o)) else {
            return;
        };
        let kind = tables.reservation_kind(best);
        for seat in seats.iter_mut().filter(|s| s.remains()) {
            if tables.capacity(seat.offering) != Capacity::Reserved {
                seat.dropped = Some("reserved capacity is left");
            } else if tables.reservation_kind(seat.offering) != kind {
                seat.dropped = Some("another kind of reservation is cheaper");
            } else if kind == CAPACITY_BLOCK && seat.offering != best {
                seat.dropped = Some("another capacity block is cheaper");
            }
        }
        fullest_reservation(tables, seats);
    }

    fn exotic_types(&self, tables: &Tables<'_>, wanted: &[u32], seats: &mut [Seat]) {
        let is_exotic = |offering: u32| self.is_exotic(tables.type_of(offering));
        let (exotic, plain): (Vec<u32>, Vec<u32>) =
            seats.iter().filter(|s| s.remains()).map(|s| s.offering).partition(|o| is_exotic(*o));
        if plain.is_empty() || exotic.is_empty() {
            return;
        }
        let needed = min_values::needed(tables, wanted, &plain, &exotic);
        for seat in seats.iter_mut().filter(|s| s.remains() && is_exotic(s.offering)) {
            if !needed.contains(&tables.type_of(seat.offering)) {
                seat.dropped = Some(EXOTIC_REASON);
            }
        }
    }
}

/// Keeps, per type and zone, the reservation with most left; the first of equals.
fn fullest_reservation(tables: &Tables<'_>, seats: &mut [Seat]) {
    let place = |offering: u32| (tables.type_of(offering), tables.zone(offering));
    let mut remaining: Vec<(usize, u32)> =
        seats.iter().enumerate().filter(|(_, s)| s.remains()).map(|(i, s)| (i, s.offering)).collect();
    remaining.sort_by_key(|(i, o)| (place(*o), core::cmp::Reverse(tables.left(*o)), *i));
    let mut previous = None;
    for (index, offering) in remaining {
        let here = Some(place(offering));
        if here == previous
            && let Some(seat) = seats.get_mut(index)
        {
            seat.dropped = Some("another reservation of that type and zone has more left");
        }
        previous = here;
    }
}

/// Drops spot dearer than the cheapest on-demand, when both are there and an on-demand price is known.
fn dear_spot(tables: &Tables<'_>, seats: &mut [Seat]) {
    let remaining = seats.iter().filter(|s| s.remains());
    let on_demand = remaining
        .filter(|s| tables.capacity(s.offering) == Capacity::OnDemand)
        .map(|s| tables.price(s.offering))
        .filter(|price| *price != PRICE_UNKNOWN)
        .min();
    let Some(limit) = on_demand else { return };
    for seat in seats.iter_mut().filter(|s| s.remains()) {
        if tables.capacity(seat.offering) == Capacity::Spot && tables.price(seat.offering) > limit {
            seat.dropped = Some(SPOT_REASON);
        }
    }
}
