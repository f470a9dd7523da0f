use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use mortise_plugin_sdk::PRICE_UNKNOWN;

use super::*;

type Columns = (Vec<u32>, Vec<u32>, Vec<u8>, Vec<u64>, Vec<u32>, Vec<u32>, Vec<u32>);

/// Offerings as (type, zone, market, price, left, reservation type, interruptible).
struct World {
    symbols: Vec<String>,
    names: Vec<u32>,
    gpu: Vec<u32>,
    label_end: Vec<u32>,
    labels: Vec<u32>,
    columns: Columns,
}

impl World {
    fn new() -> Self {
        Self {
            symbols: vec!["family".to_string(), ZONE_KEY.to_string()],
            names: vec![],
            gpu: vec![],
            label_end: vec![],
            labels: vec![],
            columns: Default::default(),
        }
    }

    fn symbol(&mut self, text: &str) -> u32 {
        let found = self.symbols.iter().position(|s| s == text);
        found.unwrap_or_else(|| {
            self.symbols.push(text.to_string());
            self.symbols.len() - 1
        }) as u32
    }

    fn add(mut self, name: &str, market: u8, price: u64, left: u32, kind: (u32, u32)) -> Self {
        let symbol = self.symbol(name);
        let id = self.names.iter().position(|n| *n == symbol).unwrap_or_else(|| {
            let family = self.symbol(name.split('.').next().unwrap());
            self.names.push(symbol);
            self.gpu.push(u32::from(name.starts_with('g')));
            self.labels.extend([0, family]);
            self.label_end.push(self.labels.len() as u32);
            self.names.len() - 1
        });
        let c = &mut self.columns;
        c.0.push(id as u32);
        c.1.push(0);
        c.2.push(market);
        c.3.push(price);
        c.4.push(left);
        c.5.push(kind.0);
        c.6.push(kind.1);
        self
    }

    fn spot(self, name: &str, price: u64) -> Self {
        self.add(name, 1, price, 0, (0, 0))
    }

    fn od(self, name: &str, price: u64) -> Self {
        self.add(name, 2, price, 0, (0, 0))
    }

    fn tables(&self) -> Tables<'_> {
        let c = &self.columns;
        Tables {
            symbols: &self.symbols,
            types: Types {
                name: &self.names,
                gpu: &self.gpu,
                accelerators: None,
                labels: Rows { end: &self.label_end, member: &self.labels },
            },
            offerings: Offerings {
                instance_type: &c.0,
                zone: &c.1,
                capacity: &c.2,
                price_micro_usd: &c.3,
                reserved_left: &c.4,
                reservation_type: Some(&c.5),
                interruptible: Some(&c.6),
            },
        }
    }

    /// Offerings that remain for a claim that may use all; `pairs` are its minValues, `Some` sets the bit.
    fn kept(&self, pairs: Option<&[u32]>) -> Vec<u32> {
        let tables = self.tables();
        let all: Vec<u32> = (0..self.columns.0.len() as u32).collect();
        let candidates = Candidates { sets: Rows { end: &[all.len() as u32], member: &all }, set_of: &[0] };
        let (end, state) = ([pairs.map_or(0, <[u32]>::len) as u32], [u32::from(pairs.is_some())]);
        let min_values = pairs.map(|p| MinValues::new(&end, p));
        let verdict = Constraints::new(&tables).admit(&tables, &state, min_values, candidates, true);
        assert_eq!(verdict.reason.len(), verdict.dropped.member.len(), "every drop is explained");
        all.into_iter().filter(|o| !verdict.dropped.member.contains(o)).collect()
    }
}

const ZONE_KEY: &str = "topology.kubernetes.io/zone";
const FAMILY: u32 = 0;

#[test]
fn gpu_and_metal_go_while_plain_types_remain() {
    let world = World::new().od("m7i.large", 100).od("g5.xlarge", 50).od("m7i.metal-24xl", 10);
    assert_eq!(world.kept(None), [0]);
    let only_exotic = World::new().od("g5.xlarge", 50).od("m7i.metal-24xl", 10);
    assert_eq!(only_exotic.kept(None), [0, 1]);
}

#[test]
fn min_values_alone_never_lets_a_gpu_type_win() {
    let world = World::new().od("m7i.large", 100).od("c7i.large", 90).od("g5.xlarge", 50);
    assert_eq!(world.kept(Some(&[FAMILY, 2])), [0, 1], "two plain families are enough");
    assert_eq!(world.kept(Some(&[])), [0, 1], "minValues without its columns");
}

#[test]
fn exotic_types_stay_as_far_as_min_values_need_them() {
    let world = World::new().od("m7i.large", 100).od("g5.xlarge", 50).od("g6.xlarge", 40).od("g6.2xlarge", 45);
    assert_eq!(world.kept(Some(&[FAMILY, 2])), [0, 2], "the cheapest type of a second family, and no more");
    assert_eq!(world.kept(Some(&[FAMILY, 3])), [0, 1, 2]);
    assert_eq!(world.kept(Some(&[1, 2])), [0], "a second zone would not come from a GPU type either");
}

#[test]
fn spot_dearer_than_the_cheapest_on_demand_goes() {
    let world = World::new().od("m7i.large", 100).od("c7i.large", 80).spot("m7i.large", 85).spot("c7i.large", 80);
    assert_eq!(world.kept(None), [0, 1, 3]);
    assert_eq!(world.kept(Some(&[FAMILY, 1])), [0, 1, 2, 3], "not with minValues");
    let no_price = World::new().od("m7i.large", PRICE_UNKNOWN).spot("c7i.large", 85);
    assert_eq!(no_price.kept(None), [0, 1], "an unknown price is no limit");
    let unknown_spot = World::new().od("m7i.large", 100).spot("c7i.large", PRICE_UNKNOWN);
    assert_eq!(unknown_spot.kept(None), [0], "spot of unknown price is not known to be cheaper");
}

#[test]
fn one_kind_of_reservation_and_nothing_else() {
    let world = World::new()
        .od("m7i.large", 100)
        .add("m7i.large", 0, 100, 3, (0, 1))
        .add("c7i.large", 0, 90, 3, (0, 0))
        .add("m7i.large", 0, 100, 5, (0, 0))
        .add("m7i.large", 0, 100, 9, (0, 0))
        .add("r7i.large", 0, 10, 0, (0, 0));
    assert_eq!(world.kept(None), [2, 4], "default kind, the fullest of each type and zone, none that is used up");
}

#[test]
fn one_capacity_block() {
    let world =
        World::new().od("m7i.large", 1).add("p5.48xlarge", 0, 70, 8, (1, 0)).add("p5e.48xlarge", 0, 60, 1, (1, 0));
    assert_eq!(world.kept(None), [2]);
}

#[test]
fn reservations_used_up_leave_the_rest_alone() {
    let world = World::new().od("m7i.large", 100).add("m7i.large", 0, 100, 0, (0, 0));
    assert_eq!(world.kept(None), [0]);
}

#[test]
fn equal_rows_get_equal_answers() {
    let world = World::new().od("m7i.large", 100).od("g5.xlarge", 50);
    let tables = world.tables();
    let candidates = Candidates { sets: Rows { end: &[2, 3], member: &[0, 1, 1] }, set_of: &[0, 1, 0] };
    let verdict = Constraints::new(&tables).admit(&tables, &[0, 0, 0], None, candidates, false);
    assert_eq!((verdict.dropped.end.as_slice(), verdict.dropped.member.as_slice()), (&[1, 1, 2][..], &[1, 1][..]));
    assert!(verdict.reasons.is_empty());
}
