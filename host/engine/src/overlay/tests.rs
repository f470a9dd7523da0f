use super::*;
use crate::catalog::CapacityType;
use crate::requirement::{Operator, key};
use crate::schedule::tests as test_world;

fn overlay(name: &str, weight: i32, requirements: &[(&str, &str)], price: Option<PriceChange>) -> Overlay {
    Overlay {
        name: name.into(),
        weight,
        requirements: requirements.iter().map(|(key, value)| Requirement::new(key, Operator::In, [value])).collect(),
        price,
        ..Overlay::default()
    }
}

fn pools() -> Vec<Arc<NodePool>> {
    let catalog = test_world::catalog();
    let pool = |name| Arc::new(NodePool { catalog: Arc::clone(&catalog), ..test_world::pool(name) });
    vec![pool("one"), pool("two")]
}

/// Prices of one type in a NodePool, in the order of its offerings.
fn prices(overlaid: &Overlaid, pool: &str, of_type: &str) -> Vec<Option<u64>> {
    let offerings = &overlaid.catalogs[pool].get(of_type).unwrap().offerings;
    offerings.iter().map(|offering| offering.price.map(|price| price.0)).collect()
}

#[test]
fn without_overlays_and_where_none_touches_the_catalogue_stays_the_same_allocation() {
    let pools = pools();
    let none = apply(&[], &pools, None);
    assert!(pools.iter().all(|pool| Arc::ptr_eq(&none.catalogs[&pool.name], &pool.catalog)));
    let one = apply(&[overlay("a", 0, &[(key::NODEPOOL, "one")], Some(PriceChange::Add(1)))], &pools, None);
    assert!(!Arc::ptr_eq(&one.catalogs["one"], &pools[0].catalog));
    assert!(Arc::ptr_eq(&one.catalogs["two"], &pools[1].catalog));
    let both = apply(&[overlay("a", 0, &[], Some(PriceChange::Add(1)))], &pools, None);
    assert!(Arc::ptr_eq(&both.catalogs["one"], &both.catalogs["two"]), "equal changes are made once");
    assert_ne!(both.catalogs["one"].generation, pools[0].catalog.generation);
    let again = apply(&[overlay("a", 0, &[], Some(PriceChange::Add(1)))], &pools, Some(&both));
    assert!(Arc::ptr_eq(&again.catalogs["one"], &both.catalogs["one"]), "unchanged: taken again");
}

#[test]
fn prices_are_set_added_to_and_scaled_and_stop_at_zero() {
    let known = Some(MicroUsd(1000));
    for (change, expected) in [
        (PriceChange::Set(MicroUsd(7)), 7),
        (PriceChange::Add(1000), 2000),
        (PriceChange::Add(-300), 700),
        (PriceChange::Add(-5000), 0),
        (PriceChange::Scale(100_000), 1100),
        (PriceChange::Scale(-255_000), 745),
        (PriceChange::Scale(-1_000_000), 0),
    ] {
        assert_eq!(change.of(known), Some(MicroUsd(expected)), "{change:?}");
    }
}

#[test]
fn an_unknown_price_is_never_zero() {
    assert_eq!(PriceChange::Add(5).of(None), None);
    assert_eq!(PriceChange::Scale(-1_000_000).of(None), None);
    assert_eq!(PriceChange::Set(MicroUsd(5)).of(None), Some(MicroUsd(5)));
}

#[test]
fn requirements_select_types_and_offerings() {
    let pools = pools();
    let asked = [(key::INSTANCE_TYPE, "small"), (key::CAPACITY_TYPE, "spot"), (key::ZONE, "b")];
    let overlaid = apply(&[overlay("a", 0, &asked, Some(PriceChange::Set(MicroUsd(1))))], &pools, None);
    let expected: Vec<Option<u64>> = pools[0]
        .catalog
        .get("small")
        .unwrap()
        .offerings
        .iter()
        .map(|one| {
            let changed = one.capacity_type == CapacityType::Spot && &*one.zone == "b";
            if changed { Some(1) } else { one.price.map(|price| price.0) }
        })
        .collect();
    assert_eq!(prices(&overlaid, "one", "small"), expected);
    let small = overlaid.catalogs["one"].get("small").unwrap();
    assert!(small.price_overlaid && !small.capacity_overlaid);
    assert!(!overlaid.catalogs["one"].get("large").unwrap().price_overlaid);
    let undefined = apply(&[overlay("a", 0, &[("team", "x")], Some(PriceChange::Add(1)))], &pools, None);
    assert!(Arc::ptr_eq(&undefined.catalogs["one"], &pools[0].catalog), "nobody has this label");
    assert_eq!(undefined.statuses["a"], OverlayStatus::Ready);
}

#[test]
fn labels_of_the_template_select_a_nodepool() {
    let mut pools = pools();
    Arc::make_mut(&mut pools[1]).labels.insert("team".into(), "x".into());
    let overlaid = apply(&[overlay("a", 0, &[("team", "x")], Some(PriceChange::Add(1)))], &pools, None);
    assert!(Arc::ptr_eq(&overlaid.catalogs["one"], &pools[0].catalog));
    assert!(!Arc::ptr_eq(&overlaid.catalogs["two"], &pools[1].catalog));
}

#[test]
fn equal_weights_conflict_even_with_equal_values_and_nothing_of_the_loser_is_applied() {
    let pools = pools();
    let change = Some(PriceChange::Set(MicroUsd(9)));
    // In order of name descending "b" is first.
    let small = overlay("b", 3, &[(key::INSTANCE_TYPE, "small")], change);
    let all = overlay("a", 3, &[], change);
    let overlaid = apply(&[all, small], &pools, None);
    assert_eq!(overlaid.statuses["b"], OverlayStatus::Ready);
    let OverlayStatus::Conflict { with, instance_type, what, .. } = &overlaid.statuses["a"] else {
        panic!("{:?}", overlaid.statuses)
    };
    assert_eq!((&**with, &**instance_type, &**what), ("b", "small", "the price"));
    assert!(prices(&overlaid, "one", "small").iter().all(|price| *price == Some(9)));
    assert!(!overlaid.catalogs["one"].get("large").unwrap().price_overlaid);
}

#[test]
fn different_weights_and_disjoint_offerings_do_not_conflict() {
    let pools = pools();
    let spot = [(key::CAPACITY_TYPE, "spot")];
    let on_demand = [(key::CAPACITY_TYPE, "on-demand")];
    let overlaid = apply(
        &[
            overlay("light", 1, &[], Some(PriceChange::Set(MicroUsd(1)))),
            overlay("heavy", 2, &spot, Some(PriceChange::Set(MicroUsd(2)))),
            overlay("other", 2, &on_demand, Some(PriceChange::Set(MicroUsd(3)))),
        ],
        &pools,
        None,
    );
    assert!(overlaid.statuses.values().all(|status| *status == OverlayStatus::Ready));
    let have = prices(&overlaid, "one", "small");
    assert!(have.contains(&Some(2)) && have.contains(&Some(3)) && !have.contains(&Some(1)), "{have:?}");
}

#[test]
fn capacity_is_merged_by_weight_and_basic_resources_are_refused() {
    let pools = pools();
    let with = |name: &str, weight, pairs: &[(&str, &str)]| Overlay {
        capacity: Resources::parse(pairs.iter().copied()).unwrap(),
        ..overlay(name, weight, &[], None)
    };
    let overlaid = apply(
        &[
            with("heavy", 5, &[("x.com/fpga", "2")]),
            with("light", 1, &[("x.com/fpga", "9"), ("x.com/dongle", "1")]),
            with("bad", 9, &[("cpu", "100")]),
        ],
        &pools,
        None,
    );
    let small = overlaid.catalogs["one"].get("small").unwrap();
    assert_eq!((small.capacity.get("x.com/fpga"), small.allocatable.get("x.com/dongle")), (2, 1));
    assert!(small.capacity_overlaid && !small.price_overlaid);
    assert_eq!(small.capacity.cpu_milli, pools[0].catalog.get("small").unwrap().capacity.cpu_milli);
    assert_eq!(overlaid.statuses["bad"].to_string(), "capacity may hold extended resources only, not cpu");
}

#[test]
fn what_the_edge_calls_invalid_stays_out() {
    let pools = pools();
    let bad = Overlay { invalid: Some("no price".into()), ..overlay("a", 0, &[], Some(PriceChange::Add(1))) };
    let overlaid = apply(&[bad], &pools, None);
    assert_eq!(overlaid.statuses["a"], OverlayStatus::Invalid("no price".into()));
    assert!(Arc::ptr_eq(&overlaid.catalogs["one"], &pools[0].catalog));
}
