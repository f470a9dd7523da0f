//! Orders offerings and instance types by effective cost.

use std::sync::Arc;

use crate::catalog::{CapacityType, View};
use crate::decision::Choice;
use crate::policy::{COST_DROPPED, COST_UNKNOWN};
use crate::symbol::Bits;

/// An offering with its cost after the scorers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ranked {
    pub(crate) of_type: u32,
    pub(crate) offering: u32,
    pub(crate) capacity_type: CapacityType,
    /// List price; `u64::MAX` = unknown.
    pub(crate) list_price: u64,
    /// Effective cost; [`COST_UNKNOWN`] ranks last.
    pub(crate) cost: i64,
}

/// Offerings with their costs, cheapest first. Equal costs: the market that goes first, list price, type name, zone.
/// Dropped ones are gone.
pub(crate) fn rank(view: &View<'_>, offerings: impl Iterator<Item = (u32, i64)>) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> = offerings
        .filter(|(_, cost)| *cost != COST_DROPPED)
        .filter_map(|(offering, cost)| {
            let of_type = *view.columns.type_of.get(offering as usize)?;
            let source = view.offering(of_type, offering)?;
            Some(Ranked {
                of_type,
                offering,
                capacity_type: source.capacity_type,
                list_price: source.price.map_or(u64::MAX, |price| price.0),
                cost,
            })
        })
        .collect();
    // Types are sorted by name, so their index stands for the name.
    ranked.sort_by(|a, b| {
        (a.cost, a.capacity_type, a.list_price, a.of_type)
            .cmp(&(b.cost, b.capacity_type, b.list_price, b.of_type))
            .then_with(|| zone(view, a).cmp(&zone(view, b)))
            .then(a.offering.cmp(&b.offering))
    });
    ranked
}

fn zone<'v>(view: &'v View<'_>, ranked: &Ranked) -> Option<&'v Arc<str>> {
    view.offering(ranked.of_type, ranked.offering).map(|offering| &offering.zone)
}

/// Types in the order of their best offering.
pub(crate) fn types_in_order(ranked: &[Ranked]) -> Vec<u32> {
    let mut seen = Bits::default();
    let mut types = Vec::new();
    for one in ranked {
        if !seen.contains(one.of_type) {
            seen.insert(one.of_type);
            types.push(one.of_type);
        }
    }
    types
}

/// The order by cost contradicts the order by list price.
pub(crate) fn contradicts_list_price(ranked: &[Ranked]) -> bool {
    let mut by_list: Vec<&Ranked> = ranked.iter().collect();
    by_list.sort_by_key(|one| (one.list_price, one.cost));
    by_list.windows(2).any(|pair| matches!(pair, [a, b] if a.list_price < b.list_price && a.cost > b.cost))
}

/// As data for the outside.
pub(crate) fn choice(view: &View<'_>, ranked: &Ranked) -> Option<Choice> {
    let offering = view.offering(ranked.of_type, ranked.offering)?;
    Some(Choice {
        instance_type: Arc::clone(&view.catalog.types.get(ranked.of_type as usize)?.name),
        zone: Arc::clone(&offering.zone),
        capacity_type: offering.capacity_type,
        price: offering.price,
        effective_cost: (ranked.cost != COST_UNKNOWN).then_some(ranked.cost),
    })
}
