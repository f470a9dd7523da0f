//! Built-in policy `price`: what an offering effectively costs is its list price.
//!
//! A reservation is paid for whether it is used or not, so a reserved offering costs nothing more and goes first; spot and
//! on-demand cost what they cost (equal costs are ordered by the host: reserved, spot, on-demand, list price, name). An
//! offering whose price is unknown ranks last, never first.

#![no_std]

extern crate alloc;

use alloc::vec::Vec;

use mortise_plugin_sdk::{COST_DROPPED, COST_UNKNOWN, Candidates, Capacity, PRICE_UNKNOWN};

#[cfg(target_arch = "wasm32")]
mod component;

/// Some offering is reserved or has no known price: otherwise every cost so far is the cost, and [`evaluate`] need not look
/// at candidates. Asked once a round.
#[must_use]
pub fn changes_costs(capacity: &[u8], price_micro_usd: &[u64]) -> bool {
    price_micro_usd.contains(&PRICE_UNKNOWN) || capacity.iter().any(|code| is_reserved(*code))
}

/// Cost of every candidate, rows in order. `capacity` and `price_micro_usd` are columns of the offerings, `base` the costs
/// so far. What an earlier scorer dropped or could not price stays so.
#[must_use]
pub fn evaluate(capacity: &[u8], price_micro_usd: &[u64], candidates: Candidates<'_>, base: &[i64]) -> Vec<i64> {
    let mut costs = Vec::with_capacity(base.len());
    let mut base = base.iter();
    for row in candidates.iter() {
        costs.extend(row.iter().zip(base.by_ref()).map(|(offering, so_far)| {
            let at = *offering as usize;
            let unknown = price_micro_usd.get(at).is_none_or(|price| *price == PRICE_UNKNOWN);
            let reserved = capacity.get(at).is_some_and(|code| is_reserved(*code));
            match *so_far {
                COST_DROPPED => COST_DROPPED,
                _ if unknown => COST_UNKNOWN,
                COST_UNKNOWN => COST_UNKNOWN,
                _ if reserved => 0,
                cost => cost,
            }
        }));
    }
    costs
}

fn is_reserved(code: u8) -> bool {
    Capacity::from_code(code) == Capacity::Reserved
}

#[cfg(test)]
mod tests {
    use mortise_plugin_sdk::Rows;

    use super::*;

    #[test]
    fn reserved_first_unknown_last_dropped_stays_dropped() {
        let candidates = Candidates { sets: Rows { end: &[3, 5], member: &[0, 1, 2, 3, 1] }, set_of: &[0, 1] };
        let capacity = [0, 1, 2, 0];
        let price = [100_000, 30_000, 100_000, PRICE_UNKNOWN];
        let base = [100_000, 30_000, COST_DROPPED, 5, COST_UNKNOWN];
        let costs = evaluate(&capacity, &price, candidates, &base);
        assert_eq!(costs, [0, 30_000, COST_DROPPED, COST_UNKNOWN, COST_UNKNOWN]);
    }

    #[test]
    fn a_discount_before_it_is_kept() {
        let candidates = Candidates { sets: Rows { end: &[2], member: &[0, 1] }, set_of: &[0] };
        assert_eq!(evaluate(&[2, 1], &[100_000, 30_000], candidates, &[80_000, 30_000]), [80_000, 30_000]);
    }

    #[test]
    fn only_reserved_or_unknown_offerings_change_a_cost() {
        assert!(!changes_costs(&[1, 2], &[1, 2]));
        assert!(changes_costs(&[1, 0], &[1, 2]) && changes_costs(&[1, 2], &[1, PRICE_UNKNOWN]));
        let candidates = Candidates { sets: Rows { end: &[2], member: &[0, 1] }, set_of: &[0] };
        assert_eq!(evaluate(&[1, 2], &[1, 2], candidates, &[7, COST_DROPPED]), [7, COST_DROPPED]);
    }
}
