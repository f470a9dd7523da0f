//! Ways to buy a type: zone and market, price, and whether it may be tried now.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::catalog::{CapacityType, Offering};
use mortise_engine::quantity::MicroUsd;

use super::compatibility::incompatible;
use super::intern::Interner;
use super::row::TypeRow;
use super::shape::ClassShape;

/// What a provider knows of the market at the moment.
pub trait Market {
    /// Zones in which this type is sold, whether or not a class has a subnet there.
    fn zones(&self, instance_type: &str) -> Vec<Arc<str>>;
    /// The type is sold in this zone.
    fn offered(&self, instance_type: &str, zone: &str) -> bool;
    /// Price and state of one offering.
    fn quote(&self, instance_type: &str, zone: &str, capacity_type: CapacityType) -> Quote;
}

/// Price and state of one offering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quote {
    /// Price per hour; `None` = unknown.
    pub price: Option<MicroUsd>,
    /// The price is an estimate.
    pub estimated: bool,
    /// Not sold out as far as is known, and sold at all in this market.
    pub in_stock: bool,
}

/// Every offering of a type, by zone and market.
pub(super) fn offerings(row: &TypeRow, shape: &ClassShape, market: &dyn Market, names: &mut Interner) -> Vec<Offering> {
    let compatible = incompatible(row, shape).is_none();
    let mut zones = market.zones(&row.name);
    zones.sort();
    let mut out = Vec::with_capacity(zones.len() * 2);
    for zone in zones {
        let zone = names.get(&zone);
        let ours = shape.zones.iter().find(|z| z.name == zone);
        let mut labels: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
        if let Some(id) = ours.and_then(|z| z.id.clone()) {
            labels.insert(names.get("topology.k8s.aws/zone-id"), id);
        }
        for (sold, capacity_type) in [(row.spot, CapacityType::Spot), (row.on_demand, CapacityType::OnDemand)] {
            if !sold {
                continue;
            }
            let quote = market.quote(&row.name, &zone, capacity_type);
            out.push(Offering {
                zone: Arc::clone(&zone),
                capacity_type,
                price: quote.price,
                price_estimated: quote.estimated,
                available: compatible && ours.is_some() && quote.in_stock,
                labels: labels.clone(),
                reserved_left: None,
            });
        }
    }
    out
}
