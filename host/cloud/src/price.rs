//! List prices of on-demand instances, from a table that is part of the program.
//!
//! The table is us-east-1's. Any other region takes its figures as an estimate and says so: prices differ by region, but
//! their order hardly does, and order is what decides. A type that is not in the table has no known price.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use mortise_engine::quantity::MicroUsd;

/// The table's region.
pub const TABLE_REGION: &str = "us-east-1";
/// Day the table was taken.
pub const TABLE_DATE: &str = "2026-07-20";

static CSV: &str = include_str!("../data/ec2-us-east-1-on-demand.csv");
static TABLE: LazyLock<BTreeMap<&'static str, MicroUsd>> = LazyLock::new(|| parse(CSV));

/// Lines of `type,dollars`; comments, the heading and anything that does not parse are passed over (a test holds the
/// count, so nothing is lost unseen).
fn parse(csv: &str) -> BTreeMap<&str, MicroUsd> {
    csv.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let (name, dollars) = line.split_once(',')?;
            Some((name, micro_usd(dollars)?))
        })
        .collect()
}

/// Decimal dollars to millionths, without going through floating point. A seventh decimal is rounded up. `None` for
/// anything that is not a plain positive decimal number; zero is not a price.
#[must_use]
pub fn micro_usd(dollars: &str) -> Option<MicroUsd> {
    let text = dollars.trim();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if (whole.is_empty() && fraction.is_empty()) || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let dollars: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut micro: u64 = 0;
    for i in 0..6 {
        let digit = fraction.as_bytes().get(i).map_or(0, |b| u64::from(b - b'0'));
        micro = micro * 10 + digit;
    }
    let finer = fraction.bytes().skip(6).any(|b| b != b'0');
    let total = dollars.checked_mul(1_000_000)?.checked_add(micro)?.checked_add(u64::from(finer))?;
    (total > 0).then_some(MicroUsd(total))
}

/// On-demand prices of one region.
#[derive(Clone, Debug)]
pub struct OnDemandPrices {
    estimated: bool,
}

impl OnDemandPrices {
    /// Prices for `region`.
    #[must_use]
    pub fn for_region(region: &str) -> Self {
        Self { estimated: region != TABLE_REGION }
    }

    /// The prices are another region's.
    #[must_use]
    pub fn estimated(&self) -> bool {
        self.estimated
    }

    /// Price per hour, and whether it is an estimate. `None` = unknown.
    #[must_use]
    pub fn get(&self, instance_type: &str) -> Option<(MicroUsd, bool)> {
        TABLE.get(instance_type).map(|price| (*price, self.estimated))
    }
}

/// Spot prices by type and zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpotPrices(BTreeMap<Arc<str>, BTreeMap<Arc<str>, MicroUsd>>);

impl SpotPrices {
    /// Notes a price.
    pub fn set(&mut self, instance_type: Arc<str>, zone: Arc<str>, price: MicroUsd) {
        self.0.entry(instance_type).or_default().insert(zone, price);
    }

    /// Price per hour. `None` = no history in this zone, which means that there is no such spot market.
    #[must_use]
    pub fn get(&self, instance_type: &str, zone: &str) -> Option<MicroUsd> {
        self.0.get(instance_type)?.get(zone).copied()
    }

    /// Nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_table_is_read() {
        assert_eq!(TABLE.len(), 1367);
        let lines = CSV.lines().filter(|l| !l.starts_with('#')).count();
        assert_eq!(lines, 1368, "one heading and 1,367 rows");
    }

    #[test]
    fn prices_are_exact() {
        let here = OnDemandPrices::for_region("us-east-1");
        assert_eq!(here.get("m5.large"), Some((MicroUsd(96_000), false)));
        assert_eq!(here.get("a1.medium"), Some((MicroUsd(25_500), false)));
        assert_eq!(here.get("x9.unheard"), None);
        let there = OnDemandPrices::for_region("eu-north-1");
        assert_eq!(there.get("m5.large"), Some((MicroUsd(96_000), true)));
    }

    #[test]
    fn dollars_need_no_floats() {
        assert_eq!(micro_usd("0.0255"), Some(MicroUsd(25_500)));
        assert_eq!(micro_usd("12"), Some(MicroUsd(12_000_000)));
        assert_eq!(micro_usd(".5"), Some(MicroUsd(500_000)));
        assert_eq!(micro_usd("0.0000001"), Some(MicroUsd(1)), "rounded up, never to zero");
        assert_eq!(micro_usd("0.1234567"), Some(MicroUsd(123_457)));
        for bad in ["", ".", "0", "0.0", "-1", "1e3", "NaN", "1,5", "99999999999999999999"] {
            assert_eq!(micro_usd(bad), None, "{bad}");
        }
    }
}
