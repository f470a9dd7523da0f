//! Prices and stock: what EC2 knows when it chooses among a fleet request's overrides.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

/// A shortage: an empty field stands for any value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shortage {
    instance_type: String,
    zone: String,
    capacity_type: String,
    /// Instances still to be had.
    left: u32,
}

/// Stock and prices.
#[derive(Debug, Clone, Default)]
pub struct Market {
    shortages: Vec<Shortage>,
}

impl Market {
    /// Nothing (or only `left`) of this is to be had; an empty field stands for any value.
    pub fn sell_out(&mut self, instance_type: &str, zone: &str, capacity_type: &str, left: u32) {
        self.shortages.push(Shortage {
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            capacity_type: capacity_type.to_owned(),
            left,
        });
    }

    /// Everything is to be had again.
    pub fn restock(&mut self) {
        self.shortages.clear();
    }

    /// Takes up to `wanted` instances out of stock; returns how many there were.
    pub fn take(&mut self, instance_type: &str, zone: &str, capacity_type: &str, wanted: u32) -> u32 {
        let fits = |have: &str, asked: &str| have.is_empty() || have == asked;
        let matching: Vec<usize> = self
            .shortages
            .iter()
            .enumerate()
            .filter(|(_, it)| {
                fits(&it.instance_type, instance_type) && fits(&it.zone, zone) && fits(&it.capacity_type, capacity_type)
            })
            .map(|(index, _)| index)
            .collect();
        let got = matching
            .iter()
            .filter_map(|&index| self.shortages.get(index))
            .map(|it| it.left)
            .min()
            .unwrap_or(wanted)
            .min(wanted);
        for index in matching {
            if let Some(shortage) = self.shortages.get_mut(index) {
                shortage.left -= got;
            }
        }
        got
    }

    /// Dollars an hour; `None` for types without a price.
    ///
    /// On-demand prices are the provider's own table. Spot prices are made up from it, since moto says the same for all:
    /// 28 to 42 % of on-demand, fixed for a type in a zone, as the spread of real spot prices is.
    pub fn price(instance_type: &str, zone: &str, capacity_type: &str) -> Option<f64> {
        let on_demand = *on_demand().get(instance_type)?;
        if capacity_type != "spot" {
            return Some(on_demand);
        }
        // FNV-1a: any fixed spreading function would do.
        let hash = instance_type
            .bytes()
            .chain(zone.bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let share = 0.28 + f64::from(u16::try_from((hash >> 20) % 1_400).unwrap_or(0)) / 10_000.0;
        Some((on_demand * share * 1e4).round() / 1e4)
    }
}

fn on_demand() -> &'static BTreeMap<String, f64> {
    static TABLE: OnceLock<BTreeMap<String, f64>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/cloud/data/ec2-us-east-1-on-demand.csv");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.split_once(','))
            .filter_map(|(name, price)| Some((name.to_owned(), price.trim().parse().ok()?)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::Market;

    #[test]
    fn shortages_count_down_and_overlap() {
        let mut market = Market::default();
        assert_eq!(market.take("m6i.large", "us-east-1a", "spot", 3), 3);
        market.sell_out("m6i.large", "", "", 2);
        market.sell_out("", "us-east-1a", "spot", 5);
        assert_eq!(market.take("m6i.large", "us-east-1a", "spot", 3), 2);
        assert_eq!(market.take("m6i.large", "us-east-1b", "spot", 3), 0);
        assert_eq!(market.take("c6i.large", "us-east-1a", "spot", 9), 3);
        market.restock();
        assert_eq!(market.take("m6i.large", "us-east-1a", "spot", 3), 3);
    }

    #[test]
    fn spot_costs_less_than_on_demand_and_differs_by_zone() {
        let on_demand = Market::price("m6i.large", "us-east-1a", "on-demand").expect("in the table");
        let spot: Vec<f64> = ["us-east-1a", "us-east-1b", "us-east-1c"]
            .iter()
            .filter_map(|zone| Market::price("m6i.large", zone, "spot"))
            .collect();
        assert!(spot.iter().all(|price| *price > on_demand * 0.27 && *price < on_demand * 0.43), "{spot:?}");
        assert!(spot[0] != spot[1] || spot[1] != spot[2], "{spot:?}");
        assert_eq!(Market::price("x9.huge", "us-east-1a", "spot"), None);
    }
}
