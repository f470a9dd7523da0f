//! The cheapest offering in a domain, for ties between domains.

use crate::catalog::View;
use crate::symbol::{Bits, KeyId, ValueSet};
use std::collections::BTreeMap;

/// Launchable offerings of one catalogue by list price, and which of them are in a domain.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    /// Cheapest first; unknown prices last.
    order: Vec<u32>,
    /// By key and value: offerings and types with it; no offerings = the key says nothing about offerings.
    domains: BTreeMap<(KeyId, u32), (Option<Bits>, Bits)>,
}

impl Prices {
    /// `domains`: keys and values that may be asked about.
    pub(crate) fn new(view: &View<'_>, domains: impl Iterator<Item = (KeyId, u32)>) -> Self {
        let price = |offering: u32| {
            let of_type = view.columns.type_of.get(offering as usize).copied()?;
            view.offering(of_type, offering)?.price.map(|price| price.0)
        };
        let mut order: Vec<(u64, u32)> =
            view.columns.launchable.iter().map(|offering| (price(offering).unwrap_or(u64::MAX), offering)).collect();
        order.sort_unstable();
        let agreeing = |(key, value): (KeyId, u32)| {
            let one = ValueSet::one(value);
            ((key, value), (view.offerings_agreeing(key, &one), view.types_agreeing(key, &one)))
        };
        Self {
            order: order.into_iter().map(|(_, offering)| offering).collect(),
            domains: domains.map(agreeing).collect(),
        }
    }

    /// Price (place in the order of prices, equal prices alike) of the cheapest of these offerings and types in a domain.
    pub(crate) fn cheapest(
        &self,
        view: &View<'_>,
        key: KeyId,
        value: u32,
        types: &Bits,
        offerings: &Bits,
    ) -> Option<u64> {
        let (with, of_types) = self.domains.get(&(key, value))?;
        let suits = |offering: &&u32| {
            offerings.contains(**offering)
                && with.as_ref().is_none_or(|with| with.contains(**offering))
                && view
                    .columns
                    .type_of
                    .get(**offering as usize)
                    .is_some_and(|of_type| types.contains(*of_type) && of_types.contains(*of_type))
        };
        let cheapest = *self.order.iter().find(suits)?;
        let of_type = view.columns.type_of.get(cheapest as usize).copied()?;
        Some(view.offering(of_type, cheapest)?.price.map_or(u64::MAX, |price| price.0))
    }
}
