use super::*;
use crate::catalog::{InstanceType, Offering};
use crate::policy::scripted::{Scripted, dropping, type_name, zone};
use crate::policy::{COST_DROPPED, NoPolicy};
use crate::quantity::MicroUsd;
use crate::requirement::{Operator, key};

fn offering(zone: &str, capacity_type: CapacityType, price: Option<u64>) -> Offering {
    Offering {
        zone: zone.into(),
        capacity_type,
        price: price.map(MicroUsd),
        price_estimated: false,
        available: true,
        labels: BTreeMap::new(),
        reserved_left: (capacity_type == CapacityType::Reserved).then_some(1),
    }
}

fn of_type(name: &str, cpus: i64, offerings: Vec<Offering>) -> InstanceType {
    let resources = Resources { cpu_milli: cpus * 1000, memory: cpus << 32, pods: 10, ..Resources::default() };
    InstanceType {
        name: name.into(),
        capacity: resources.clone(),
        allocatable: resources,
        offerings,
        ..InstanceType::default()
    }
}

/// `count` types with one on-demand and one spot offering each, dearer by the number.
fn many(count: u64) -> Arc<Catalog> {
    let numbered = |at: u64| {
        let list = vec![
            offering("a", CapacityType::OnDemand, Some(1000 + at)),
            offering("b", CapacityType::Spot, Some(500 + at)),
        ];
        of_type(&format!("t{at:03}"), 2, list)
    };
    Arc::new(Catalog::new(1, (0..count).map(numbered).collect()))
}

fn request(requirements: &[(&str, Operator, &[&str])]) -> LaunchRequest {
    LaunchRequest {
        nodepool: "default".into(),
        requirements: requirements
            .iter()
            .map(|(key, operator, values)| Requirement::new(key, *operator, *values))
            .collect(),
        requests: Resources { cpu_milli: 1000, pods: 2, ..Resources::default() },
        ..LaunchRequest::default()
    }
}

fn list(request: &LaunchRequest, catalog: &Arc<Catalog>, policy: &dyn PolicySet) -> Result<LaunchList, Blocker> {
    launch_list(request, catalog, &Options::default(), policy)
}

fn names(list: &LaunchList) -> Vec<&str> {
    list.choices.iter().map(|choice| &*choice.instance_type).collect()
}

#[test]
fn sixty_cheapest_types_of_one_market() {
    let list = list(&request(&[]), &many(100), &NoPolicy).unwrap();
    assert_eq!(list.capacity_type, CapacityType::Spot);
    assert_eq!((names(&list).len(), names(&list)[0], names(&list)[59]), (60, "t000", "t059"));
    assert!(!list.prioritized);
}

#[test]
fn reserved_goes_before_spot_before_on_demand() {
    let all = |reserved_left| {
        let mut reserved = offering("a", CapacityType::Reserved, Some(900));
        reserved.reserved_left = Some(reserved_left);
        let offerings = vec![
            reserved,
            offering("a", CapacityType::Spot, Some(100)),
            offering("a", CapacityType::OnDemand, Some(900)),
        ];
        Arc::new(Catalog::new(1, vec![of_type("m", 2, offerings)]))
    };
    let market = |catalog: &Arc<Catalog>, markets: &[&str]| {
        list(&request(&[(key::CAPACITY_TYPE, Operator::In, markets)]), catalog, &NoPolicy).unwrap().capacity_type
    };
    let every = ["reserved", "spot", "on-demand"];
    assert_eq!(market(&all(1), &every), CapacityType::Reserved);
    assert_eq!(market(&all(0), &every), CapacityType::Spot);
    assert_eq!(market(&all(1), &["on-demand", "spot"]), CapacityType::Spot);
    assert_eq!(market(&all(1), &["on-demand"]), CapacityType::OnDemand);
}

#[test]
fn an_order_against_list_price_is_marked() {
    let prefer_last = Scripted {
        score: Some(Box::new(|catalog, claims, candidates, base| {
            let members = (0..claims.count.len()).flat_map(|row| candidates.row(row));
            members
                .zip(base)
                .map(|(offering, cost)| if type_name(catalog, *offering) == "t002" { 1 } else { cost })
                .collect()
        })),
        ..Scripted::default()
    };
    let list = list(&request(&[(key::CAPACITY_TYPE, Operator::In, &["on-demand"])]), &many(3), &prefer_last).unwrap();
    assert_eq!(names(&list), ["t002", "t000", "t001"]);
    assert!(list.prioritized);
    assert_eq!(list.choices[0].effective_cost, Some(1));
    assert_eq!(list.choices[0].price, Some(MicroUsd(1002)));
}

#[test]
fn a_proportional_discount_keeps_the_order_of_list_price() {
    let half = Scripted {
        score: Some(Box::new(|_, _, _, base| base.into_iter().map(|cost| cost / 2).collect())),
        ..Scripted::default()
    };
    assert!(!list(&request(&[]), &many(5), &half).unwrap().prioritized);
}

#[test]
fn filters_and_scorers_can_empty_a_list_and_are_named() {
    let filter = Scripted {
        claims: Some(Box::new(|_, _, candidates| dropping(candidates, |_, _| true))),
        ..Scripted::default()
    };
    let scorer = Scripted {
        score: Some(Box::new(|_, _, _, base| base.into_iter().map(|_| COST_DROPPED).collect())),
        ..Scripted::default()
    };
    for policy in [filter, scorer] {
        let blocker = list(&request(&[]), &many(5), &policy).unwrap_err();
        assert!(blocker.to_string().contains("5 removed by a policy"), "{blocker}");
    }
}

#[test]
fn a_refused_zone_is_never_launched() {
    let no_b = Scripted {
        claims: Some(Box::new(|catalog, _, candidates| {
            dropping(candidates, |_, offering| zone(catalog, offering) == "b")
        })),
        ..Scripted::default()
    };
    let list = list(&request(&[]), &many(5), &no_b).unwrap();
    assert!(list.choices.iter().all(|choice| &*choice.zone == "a"));
    assert_eq!(list.capacity_type, CapacityType::OnDemand);
}

#[test]
fn says_what_is_missing() {
    let catalog = many(3);
    let why = |request: &LaunchRequest| list(request, &catalog, &NoPolicy).unwrap_err().to_string();
    let unknown = why(&request(&[(key::INSTANCE_TYPE, Operator::In, &["t00l"])]));
    assert!(unknown.contains("did you mean t001?") || unknown.contains("did you mean t000?"), "{unknown}");
    let zone = why(&request(&[(key::ZONE, Operator::In, &["z"])]));
    assert!(zone.contains("have In [a, b]"), "{zone}");
    let big = LaunchRequest { requests: Resources { cpu_milli: 64_000, ..Resources::default() }, ..request(&[]) };
    assert_eq!(why(&big), "none of 3 instance types is left: 3 too small, mostly for cpu");
    // Spot is offered in zone b only: each alone exists, both together do not.
    let both = why(&request(&[(key::ZONE, Operator::In, &["a"]), (key::CAPACITY_TYPE, Operator::In, &["spot"])]));
    assert_eq!(both, "none of 3 instance types is left: 3 without an available offering");
    assert!(list(&request(&[]), &Arc::default(), &NoPolicy).is_err());
}

#[test]
fn min_values_hold_for_the_list_that_is_sent() {
    let wanting = |count| LaunchRequest {
        requirements: vec![Requirement {
            min_values: Some(count),
            ..Requirement::new(key::INSTANCE_TYPE, Operator::Exists, [""; 0])
        }],
        ..request(&[])
    };
    assert!(list(&wanting(60), &many(80), &NoPolicy).is_ok());
    let blocker = list(&wanting(61), &many(80), &NoPolicy).unwrap_err();
    assert_eq!(blocker, Blocker::MinValues(key::INSTANCE_TYPE.into()));
    let options = Options { min_values_best_effort: true, ..Options::default() };
    assert!(launch_list(&wanting(61), &many(80), &options, &NoPolicy).is_ok());
}

#[test]
fn unknown_prices_go_last() {
    let catalog = Arc::new(Catalog::new(
        1,
        vec![
            of_type("a", 2, vec![offering("a", CapacityType::OnDemand, None)]),
            of_type("b", 2, vec![offering("a", CapacityType::OnDemand, Some(9_999_999))]),
        ],
    ));
    let list = list(&request(&[]), &catalog, &NoPolicy).unwrap();
    assert_eq!(names(&list), ["b", "a"]);
    assert_eq!((list.choices[1].price, list.choices[1].effective_cost, list.prioritized), (None, None, false));
}

#[test]
fn many_claims_are_asked_in_one_round_and_answered_in_order() {
    let (few, more) = (many(2), many(4));
    let (good, bad) = (request(&[]), request(&[(key::ZONE, Operator::In, &["nowhere"])]));
    let inputs: Vec<LaunchInput<'_>> = [(&good, &few), (&bad, &few), (&good, &more)]
        .into_iter()
        .map(|(request, catalog)| LaunchInput { request, catalog })
        .collect();
    let policy = Scripted::default();
    let lists = launch_lists(&inputs, &Options::default(), &policy);
    let sizes: Vec<Option<usize>> =
        lists.iter().map(|list| list.as_ref().ok().map(|list| list.choices.len())).collect();
    assert_eq!(sizes, [Some(2), None, Some(4)]);
    assert_eq!(policy.calls.lock().unwrap().clone(), [("admit-claims", 2), ("evaluate", 2)]);
    assert!(launch_lists(&[], &Options::default(), &policy).is_empty());
}
