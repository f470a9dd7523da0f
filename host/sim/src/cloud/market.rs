//! Prices and stock.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use mortise_cloud::catalog_build::{Market, Quote};
use mortise_cloud::price::OnDemandPrices;
use mortise_engine::catalog::CapacityType;
use mortise_engine::quantity::MicroUsd;

use super::table::TABLE;

/// An offering: type, zone, market. Each may be `*`.
type Offer = (Arc<str>, Arc<str>, Option<CapacityType>);

/// Prices, and what is sold out.
#[derive(Debug)]
pub(super) struct Stock {
    region: Arc<str>,
    zones: Vec<char>,
    seed: u64,
    prices: OnDemandPrices,
    /// Really sold out, which a launch finds out.
    sold_out: Mutex<BTreeSet<Offer>>,
}

impl Stock {
    pub(super) fn new(region: Arc<str>, zones: Vec<char>, seed: u64) -> Self {
        let prices = OnDemandPrices::for_region(&region);
        Self { region, zones, seed, prices, sold_out: Mutex::default() }
    }

    fn sold_out(&self) -> std::sync::MutexGuard<'_, BTreeSet<Offer>> {
        self.sold_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_sold_out(&self, instance_type: &str, zone: &str, capacity_type: Option<CapacityType>, out: bool) {
        let offer = (Arc::from(instance_type), Arc::from(zone), capacity_type);
        if out {
            self.sold_out().insert(offer);
        } else {
            self.sold_out().remove(&offer);
        }
    }

    pub(super) fn is_sold_out(&self, instance_type: &str, zone: &str, capacity_type: CapacityType) -> bool {
        let matches = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        self.sold_out()
            .iter()
            .any(|(t, z, c)| matches(t, instance_type) && matches(z, zone) && c.is_none_or(|c| c == capacity_type))
    }

    pub(super) fn price(
        &self,
        instance_type: &str,
        zone: &str,
        capacity_type: CapacityType,
    ) -> Option<(MicroUsd, bool)> {
        let (on_demand, estimated) = self.prices.get(instance_type)?;
        let price = match capacity_type {
            CapacityType::Spot => MicroUsd(on_demand.0.saturating_mul(self.spot_share(instance_type, zone)) / 1000),
            _ => on_demand,
        };
        Some((price, estimated || capacity_type == CapacityType::Spot))
    }

    /// Spot price as a share of on-demand, thousandths: 280 to 420.
    fn spot_share(&self, instance_type: &str, zone: &str) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.seed;
        for byte in instance_type.bytes().chain(zone.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        280 + (hash >> 32) % 141
    }
}

impl Market for Stock {
    fn zones(&self, instance_type: &str) -> Vec<Arc<str>> {
        let row =
            TABLE.binary_search_by(|row| row.facts.name.as_str().cmp(instance_type)).ok().and_then(|at| TABLE.get(at));
        let sold = row.map(|r| r.zones.as_str()).unwrap_or_default();
        // The table is us-east-1's; elsewhere the same letters sell the same types.
        self.zones.iter().filter(|z| sold.contains(**z)).map(|z| Arc::from(format!("{}{z}", self.region))).collect()
    }

    fn offered(&self, instance_type: &str, zone: &str) -> bool {
        self.zones(instance_type).iter().any(|z| &**z == zone)
    }

    fn quote(&self, instance_type: &str, zone: &str, capacity_type: CapacityType) -> Quote {
        match self.price(instance_type, zone, capacity_type) {
            Some((price, estimated)) => Quote { price: Some(price), estimated, in_stock: true },
            None => Quote { price: None, estimated: false, in_stock: true },
        }
    }
}
