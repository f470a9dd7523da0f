use mortise_engine::catalog::{CapacityType, InstanceType, Offering};
use mortise_engine::decision::Choice;
use mortise_engine::quantity::MicroUsd;
use mortise_kube::record::ObjectName;
use serde_json::{Value, json};

use super::*;

fn offering(price: u64) -> Offering {
    Offering {
        zone: "z".into(),
        capacity_type: CapacityType::OnDemand,
        price: Some(MicroUsd(price)),
        price_estimated: false,
        available: true,
        labels: BTreeMap::new(),
        reserved_left: None,
    }
}

fn pool(name: &str) -> Arc<NodePool> {
    let of = |name: &str, price| {
        let requirements = vec![mortise_engine::requirement::Requirement::new(
            key::INSTANCE_TYPE,
            mortise_engine::requirement::Operator::In,
            [name],
        )];
        InstanceType { name: name.into(), requirements, offerings: vec![offering(price)], ..InstanceType::default() }
    };
    let catalog = Arc::new(Catalog::new(1, vec![of("a.large", 100), of("b.large", 200)]));
    Arc::new(NodePool { name: name.into(), catalog, ..NodePool::default() })
}

fn overlays(specs: &[(&str, Value)]) -> Overlays {
    let overlays = Overlays::default();
    overlays.objects.fill(specs.iter().map(|(name, spec)| {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        (ObjectName::new("", *name), serde_json::from_value::<NodeOverlay>(object).unwrap())
    }));
    overlays
}

fn on_type(name: &str, rest: Value) -> Value {
    let mut spec = json!({"requirements": [{"key": key::INSTANCE_TYPE, "operator": "In", "values": [name]}]});
    spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    spec
}

#[test]
fn ovl_001_pools_see_overlaid_catalogues_and_keep_them() {
    let overlays = overlays(&[
        ("cheaper", on_type("b.large", json!({"price": "0.00005"}))),
        ("device", on_type("a.large", json!({"capacity": {"example.com/dongle": 2}}))),
        ("wrong", json!({"requirements": [], "capacity": {"cpu": 1}})),
    ]);
    let plain = vec![pool("p")];
    let mut first = plain.clone();
    overlays.overlay(&mut first);
    let catalog = &first[0].catalog;
    assert_eq!(catalog.get("b.large").unwrap().offerings[0].price, Some(MicroUsd(50)));
    assert_eq!(added(catalog, "a.large", &Resources::default()).get("example.com/dongle"), 2);
    assert!(added(catalog, "b.large", &Resources::default()).is_zero());
    let provided =
        Resources { extended: [("example.com/dongle".into(), 2)].into_iter().collect(), ..Resources::default() };
    assert!(added(catalog, "a.large", &provided).is_zero(), "what the provider reports is not counted twice");
    let statuses = overlays.statuses();
    assert_eq!(statuses["cheaper"], OverlayStatus::Ready);
    assert!(matches!(&statuses["wrong"], OverlayStatus::Invalid(why) if why.contains("cpu")));

    let mut again = plain;
    overlays.overlay(&mut again);
    assert!(Arc::ptr_eq(&first[0], &again[0]), "what was made of the same is the same");
}

#[test]
fn the_provider_is_told_the_order_where_a_price_is_another() {
    let overlays = overlays(&[("cheaper", on_type("b.large", json!({"priceAdjustment": "-50%"})))]);
    let mut pools = vec![pool("p")];
    overlays.overlay(&mut pools);
    let list = |name: &str| LaunchList {
        capacity_type: CapacityType::OnDemand,
        choices: vec![Choice {
            instance_type: name.into(),
            zone: "z".into(),
            capacity_type: CapacityType::OnDemand,
            price: None,
            effective_cost: None,
        }],
        prioritized: false,
    };
    for (name, told) in [("a.large", false), ("b.large", true)] {
        let mut list = list(name);
        prioritize(&mut list, &pools[0].catalog);
        assert_eq!(list.prioritized, told, "{name}");
    }
}
