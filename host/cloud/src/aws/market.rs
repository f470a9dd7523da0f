//! The market as known now: zones of sale, prices, what was sold out a moment ago.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use aws_sdk_ec2::primitives::DateTime;
use mortise_engine::catalog::CapacityType;

use super::clients::Clients;
use super::error::ApiError;
use super::types::ZonesByType;
use crate::catalog_build::{Market, Quote};
use crate::price::{OnDemandPrices, SpotPrices, micro_usd};
use crate::unavailable::{Mark, Unavailable};

/// Spot prices of Linux in every zone.
pub(crate) async fn fetch_spot_prices(clients: &Clients) -> Result<SpotPrices, ApiError> {
    let mut pages = clients
        .ec2
        .describe_spot_price_history()
        .start_time(DateTime::from(SystemTime::now()))
        .product_descriptions("Linux/UNIX")
        .product_descriptions("Linux/UNIX (Amazon VPC)")
        .max_results(2000)
        .into_paginator()
        .send();
    let mut prices = SpotPrices::default();
    let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut intern = |text: &str| {
        names.get(text).cloned().unwrap_or_else(|| {
            let name: Arc<str> = Arc::from(text);
            names.insert(Arc::clone(&name));
            name
        })
    };
    while let Some(page) = clients.call("DescribeSpotPriceHistory", pages.try_next()).await? {
        for item in page.spot_price_history() {
            let (Some(name), Some(zone), Some(price)) =
                (item.instance_type(), item.availability_zone(), item.spot_price().and_then(micro_usd))
            else {
                continue;
            };
            prices.set(intern(name.as_str()), intern(zone), price);
        }
    }
    Ok(prices)
}

/// What one catalogue is built against.
pub(crate) struct Ec2Market<'a> {
    pub(crate) zones: &'a ZonesByType,
    pub(crate) on_demand: &'a OnDemandPrices,
    /// `None` until the first successful look at the spot market.
    pub(crate) spot: Option<&'a SpotPrices>,
    pub(crate) unavailable: &'a Unavailable,
    /// Zones in which every subnet of the class is out of addresses.
    pub(crate) full_zones: BTreeSet<Arc<str>>,
    pub(crate) now: Instant,
}

impl<'a> Ec2Market<'a> {
    /// Zones of which every subnet is marked. `subnets` are (zone, subnet id).
    pub(crate) fn full_zones<'s>(
        subnets: impl Iterator<Item = (&'s str, &'s str)>,
        unavailable: &Unavailable,
        now: Instant,
    ) -> BTreeSet<Arc<str>> {
        let mut open: BTreeSet<&str> = BTreeSet::new();
        let mut all: BTreeSet<&str> = BTreeSet::new();
        for (zone, subnet) in subnets {
            all.insert(zone);
            if !unavailable.is_marked(&Mark::Subnet(Arc::from(subnet)), now) {
                open.insert(zone);
            }
        }
        all.difference(&open).map(|zone| Arc::from(*zone)).collect()
    }
}

impl Market for Ec2Market<'_> {
    fn zones(&self, instance_type: &str) -> Vec<Arc<str>> {
        self.zones.get(instance_type).map(|z| z.iter().cloned().collect()).unwrap_or_default()
    }

    fn offered(&self, instance_type: &str, zone: &str) -> bool {
        self.zones.get(instance_type).is_some_and(|z| z.contains(zone))
    }

    fn quote(&self, instance_type: &str, zone: &str, capacity_type: CapacityType) -> Quote {
        let in_stock =
            !self.full_zones.contains(zone) && !self.unavailable.blocks(capacity_type, instance_type, zone, self.now);
        let listed = self.on_demand.get(instance_type);
        match (capacity_type, self.spot) {
            (CapacityType::Spot, Some(spot)) => {
                let price = spot.get(instance_type, zone);
                // No history means no spot market for this type in this zone.
                Quote { price, estimated: false, in_stock: in_stock && price.is_some() }
            }
            // Before the market was seen, the list price bounds spot's from above.
            (CapacityType::Spot, None) => Quote { price: listed.map(|(p, _)| p), estimated: true, in_stock },
            _ => Quote {
                price: listed.map(|(p, _)| p),
                estimated: listed.is_some_and(|(_, estimated)| estimated),
                in_stock,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use mortise_engine::quantity::MicroUsd;

    use super::*;

    #[test]
    fn spot_without_history_is_no_spot() {
        let mut zones = ZonesByType::new();
        zones.insert(Arc::from("m5.large"), [Arc::from("a"), Arc::from("b")].into());
        let on_demand = OnDemandPrices::for_region("us-east-1");
        let mut spot = SpotPrices::default();
        spot.set(Arc::from("m5.large"), Arc::from("a"), MicroUsd(30_000));
        let unavailable = Unavailable::default();
        let now = Instant::now();
        let mut market = Ec2Market {
            zones: &zones,
            on_demand: &on_demand,
            spot: None,
            unavailable: &unavailable,
            full_zones: BTreeSet::new(),
            now,
        };
        let quote = market.quote("m5.large", "b", CapacityType::Spot);
        assert_eq!(quote, Quote { price: Some(MicroUsd(96_000)), estimated: true, in_stock: true });
        market.spot = Some(&spot);
        assert!(!market.quote("m5.large", "b", CapacityType::Spot).in_stock);
        assert!(market.quote("m5.large", "a", CapacityType::Spot).in_stock);
        unavailable.mark(Mark::offering(CapacityType::Spot, "m5.large", "a"), now);
        assert!(!market.quote("m5.large", "a", CapacityType::Spot).in_stock);
        assert!(market.quote("m5.large", "a", CapacityType::OnDemand).in_stock);
    }

    #[test]
    fn a_zone_is_full_when_all_its_subnets_are() {
        let unavailable = Unavailable::default();
        let now = Instant::now();
        let subnets = [("a", "s1"), ("a", "s2"), ("b", "s3")];
        unavailable.mark(Mark::Subnet(Arc::from("s1")), now);
        assert!(Ec2Market::full_zones(subnets.into_iter(), &unavailable, now).is_empty());
        unavailable.mark(Mark::Subnet(Arc::from("s2")), now);
        let full = Ec2Market::full_zones(subnets.into_iter(), &unavailable, now);
        assert_eq!(full, [Arc::from("a")].into());
    }
}
