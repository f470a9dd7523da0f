//! Placing pods that claim devices, and what must hold of any allocation.

use proptest::prelude::*;

use super::ledger::{Taken, Which};
use super::search::Ground;
use super::*;
use crate::catalog::Catalog;
use crate::decision::Schedule;
use crate::device::{
    Alternative, Amounts, Attribute, Capacity, ClaimSpec, Cluster, Constraint, Device, Request, Scope, Selector, Slice,
    Template,
};
use crate::nodepool::NodePool;
use crate::pod::{Pod, PodKey};
use crate::policy::NoPolicy;
use crate::quantity::{Quantity, Resources};
use crate::requirement::{Operator, Requirement};
use crate::schedule::schedule;
use crate::schedule::tests::{catalog, pool};
use crate::snapshot::Options;

const DRIVER: &str = "gpu.example.com";

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

fn device(name: &str) -> Device {
    Device { name: name.into(), ..Device::default() }
}

fn modelled(name: &str, model: &str) -> Device {
    Device { attributes: [("model".into(), Attribute::String(model.into()))].into(), ..device(name) }
}

fn alternative(count: Option<u32>, selectors: &[&str]) -> Alternative {
    Alternative {
        class: "gpu".into(),
        selectors: selectors.iter().map(|text| Selector::Cel((*text).into())).collect(),
        count,
        ..Alternative::default()
    }
}

fn ask(count: u32) -> ClaimSpec {
    let request = Request { name: "gpu".into(), alternatives: vec![alternative(Some(count), &[])] };
    ClaimSpec { requests: vec![request], constraints: Vec::new() }
}

fn cluster() -> Cluster {
    let selector = Selector::Cel(format!("device.driver == '{DRIVER}'").into());
    Cluster { classes: [("gpu".into(), vec![selector])].into(), ..Cluster::default() }
}

fn slice(pool: &str, scope: Scope, devices: Vec<Device>) -> Slice {
    Slice {
        driver: DRIVER.into(),
        pool: pool.into(),
        generation: 1,
        slice_count: 1,
        devices: devices.into_iter().map(|device| (device, scope.clone())).collect(),
        ..Slice::default()
    }
}

fn templates(devices: Vec<Device>) -> Templates {
    let slice = Template { driver: DRIVER.into(), pool: "local".into(), devices, counters: Vec::new() };
    Templates { slices: vec![slice], bindings: Vec::new() }
}

/// The catalogue of the other tests, where types of these names bring devices.
fn bringing(devices: &[(&str, Templates)]) -> NodePool {
    let mut types = catalog().types.clone();
    for of_type in &mut types {
        if let Some((_, templates)) = devices.iter().find(|(name, _)| **name == *of_type.name) {
            of_type.devices = Arc::new(templates.clone());
        }
    }
    NodePool { catalog: Arc::new(Catalog::new(8, types)), ..pool("default") }
}

fn pod(name: &str, claims: Vec<PodClaim>) -> Pod {
    let requests = Resources { cpu_milli: 100, pods: 1, ..Resources::default() };
    Pod {
        key: PodKey { namespace: "default".into(), name: name.into(), uid: name.into() },
        shape: Arc::new(PodShape { requests, device_claims: claims, ..PodShape::default() }),
        created_unix_ms: 0,
        buffer: None,
    }
}

fn own(spec: ClaimSpec) -> PodClaim {
    PodClaim::Own(Arc::new(spec))
}

fn world(pool: NodePool, cluster: Cluster, pending: Vec<Pod>) -> Snapshot {
    Snapshot { nodepools: vec![Arc::new(pool)], pending, devices: Arc::new(cluster), ..Snapshot::default() }
}

fn planned(pool: NodePool, cluster: Cluster, pending: Vec<Pod>) -> Schedule {
    schedule(&world(pool, cluster, pending), &Options::default(), &NoPolicy)
}

fn values(schedule: &Schedule, claim: usize, key: &str) -> Vec<String> {
    let mut values: Vec<String> = schedule.claims[claim]
        .requirements
        .iter()
        .filter(|one| &*one.key == key)
        .flat_map(|one| one.values.iter().map(ToString::to_string))
        .collect();
    values.sort();
    values
}

fn why(schedule: &Schedule, pod: &str) -> String {
    let found = schedule.unplaced.iter().find(|(key, _)| &*key.name == pod);
    found.map(|(_, why)| why.to_string()).unwrap_or_default()
}

#[test]
fn types_without_the_devices_are_pruned_and_pods_spill() {
    let pool = bringing(&[
        ("medium", templates(vec![device("gpu-0")])),
        ("large", templates(vec![device("gpu-0"), device("gpu-1")])),
    ]);
    let pods = |count: usize| (0..count).map(|at| pod(&format!("p{at}"), vec![own(ask(1))])).collect();
    let one = planned(pool.clone(), cluster(), pods(1));
    assert_eq!(values(&one, 0, key::INSTANCE_TYPE), ["large", "medium"]);
    assert_eq!(one.claims[0].annotations.get("karpenter.sh/requested-dra-drivers").map(|text| &**text), Some(DRIVER));
    let three = planned(pool, cluster(), pods(3));
    assert_eq!(three.claims.iter().map(|claim| claim.pods.len()).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(values(&three, 0, key::INSTANCE_TYPE), ["large"]);
    assert_eq!(values(&three, 1, key::INSTANCE_TYPE), ["large", "medium"]);
}

#[test]
fn published_devices_come_first_and_narrow_the_zone() {
    let pool = bringing(&[("medium", templates(vec![device("gpu-0")]))]);
    let zone = vec![Requirement::new(key::ZONE, Operator::In, ["b"])];
    let mut cluster = cluster();
    cluster.slices.push(Arc::new(slice("net", Scope::Nodes(vec![zone]), vec![device("far-0")])));
    let result = planned(pool, cluster, vec![pod("p", vec![own(ask(1))]), pod("q", vec![own(ask(1))])]);
    assert_eq!(result.claims.len(), 1, "the second pod takes the device of the node");
    assert_eq!(values(&result, 0, key::ZONE), ["b"]);
    assert_eq!(values(&result, 0, key::INSTANCE_TYPE), ["medium"]);
}

#[test]
fn devices_of_two_zones_are_not_for_one_pod() {
    let mut cluster = cluster();
    for zone in ["a", "b"] {
        let term = vec![Requirement::new(key::ZONE, Operator::In, [zone])];
        cluster.slices.push(Arc::new(slice(zone, Scope::Nodes(vec![term]), vec![device("one")])));
    }
    let pods = vec![pod("both", vec![own(ask(2))]), pod("one", vec![own(ask(1))])];
    let result = planned(pool("default"), cluster, pods);
    assert_eq!(result.claims.len(), 1);
    let text = why(&result, "both");
    assert!(text.contains("request gpu asks for 2 devices"), "{text}");
    assert!(text.contains("of 3 instance types 0 bring enough that match"), "{text}");
}

#[test]
fn a_claim_that_pods_share_is_allocated_once() {
    let pool = bringing(&[("medium", templates(vec![device("gpu-0")]))]);
    let mut cluster = cluster();
    let claim = Claim { spec: Arc::new(ask(1)), ..Claim::default() };
    cluster.claims.insert("default/one".into(), Arc::new(claim));
    let named = || vec![PodClaim::Named("default/one".into())];
    let pods = vec![pod("p", named()), pod("q", named()), pod("r", vec![PodClaim::Named("default/none".into())])];
    let result = planned(pool, cluster, pods);
    assert_eq!(result.claims.len(), 1);
    assert_eq!(result.claims[0].pods.len(), 2);
    assert_eq!(why(&result, "r"), "ResourceClaim default/none does not exist");
}

#[test]
fn allocated_claims_hold_their_devices_and_say_where_their_pods_go() {
    let taken = crate::device::Allocated {
        id: crate::device::DeviceId { driver: DRIVER.into(), pool: "net".into(), device: "far-0".into() },
        consumed: None,
    };
    let zone = vec![Requirement::new(key::ZONE, Operator::In, ["b"])];
    let allocation = crate::device::Allocation { scope: Scope::Nodes(vec![zone]), devices: vec![taken] };
    let mut cluster = cluster();
    cluster.slices.push(Arc::new(slice("net", Scope::AllNodes, vec![device("far-0")])));
    let claim = Claim { spec: Arc::new(ask(1)), allocation: Some(allocation), ..Claim::default() };
    cluster.claims.insert("default/one".into(), Arc::new(claim));
    let pods = vec![pod("p", vec![PodClaim::Named("default/one".into())]), pod("q", vec![own(ask(1))])];
    let result = planned(pool("default"), cluster, pods);
    assert_eq!(values(&result, 0, key::ZONE), ["b"]);
    assert!(why(&result, "q").contains("of 1 devices in the cluster 1 match and 0 of them are free"), "{result:?}");
}

#[test]
fn alternatives_are_tried_in_order() {
    let pool = bringing(&[
        ("medium", templates(vec![modelled("gpu-0", "old"), modelled("gpu-1", "old")])),
        ("large", templates(vec![modelled("gpu-0", "new")])),
    ]);
    let select = |model: &str| format!("device.attributes['{DRIVER}'].model == '{model}'");
    let named = |name: &str, count, model: &str| Alternative {
        name: Some(name.into()),
        ..alternative(Some(count), &[&select(model)])
    };
    let spec = |alternatives| ClaimSpec {
        requests: vec![Request { name: "gpu".into(), alternatives }],
        constraints: Vec::new(),
    };
    let result = planned(
        pool.clone(),
        cluster(),
        vec![pod("p", vec![own(spec(vec![named("best", 1, "new"), named("else", 2, "old")]))])],
    );
    assert_eq!(values(&result, 0, key::INSTANCE_TYPE), ["large", "medium"]);
    let neither = planned(pool, cluster(), vec![pod("p", vec![own(spec(Vec::new()))])]);
    assert!(why(&neither, "p").contains("exactly or firstAvailable"), "{neither:?}");
}

#[test]
fn equal_attributes_are_found_by_going_back() {
    let pool =
        bringing(&[("large", templates(vec![modelled("gpu-0", "a"), modelled("gpu-1", "b"), modelled("gpu-2", "b")]))]);
    let constraint = Constraint::MatchAttribute { attribute: format!("{DRIVER}/model").into(), requests: Vec::new() };
    let spec = |count| ClaimSpec { constraints: vec![constraint.clone()], ..ask(count) };
    let result = planned(pool, cluster(), vec![pod("two", vec![own(spec(2))]), pod("three", vec![own(spec(3))])]);
    assert_eq!(result.claims.len(), 1);
    assert!(!why(&result, "three").is_empty());
}

#[test]
fn an_attribute_that_shows_later_is_equal_among_bound_devices() {
    let mut bound = templates(vec![device("gpu-0"), device("gpu-1"), device("gpu-2")]);
    let id = |name: &str| crate::device::DeviceId { driver: DRIVER.into(), pool: "local".into(), device: name.into() };
    bound.bindings.push(("x.example/numa".into(), vec![id("gpu-0"), id("gpu-2")]));
    let pool = bringing(&[("large", bound)]);
    let constraint = Constraint::MatchAttribute { attribute: "x.example/numa".into(), requests: vec!["gpu".into()] };
    let spec = |count| ClaimSpec { constraints: vec![constraint.clone()], ..ask(count) };
    let result = planned(pool, cluster(), vec![pod("two", vec![own(spec(2))]), pod("three", vec![own(spec(3))])]);
    assert_eq!((result.claims.len(), result.unplaced.len()), (1, 1));
}

#[test]
fn all_mode_takes_every_device_that_matches() {
    let pool = bringing(&[("large", templates(vec![device("gpu-0"), device("gpu-1")]))]);
    let all = || {
        let request = Request { name: "gpu".into(), alternatives: vec![alternative(None, &[])] };
        own(ClaimSpec { requests: vec![request], constraints: Vec::new() })
    };
    let result = planned(pool.clone(), cluster(), vec![pod("p", vec![all()]), pod("q", vec![all()])]);
    assert_eq!(result.claims.len(), 2, "one has all devices of its node");
    let none = planned(self::pool("default"), cluster(), vec![pod("p", vec![all()])]);
    assert!(why(&none, "p").contains("asks for all devices that match"), "{none:?}");
    let mut incomplete = cluster();
    let half = Slice { slice_count: 2, ..slice("net", Scope::AllNodes, vec![device("far-0")]) };
    incomplete.slices.push(Arc::new(half));
    let result = planned(pool, incomplete, vec![pod("p", vec![all()]), pod("one", vec![own(ask(1))])]);
    assert!(!why(&result, "p").is_empty(), "what the pool has is not known");
    assert_eq!(result.claims.len(), 1);
}

#[test]
fn partitions_take_from_the_counters_of_their_device() {
    let part = |name: &str, memory: &str| Device {
        consumes: vec![("gpu-0".into(), [("memory".into(), quantity(memory))].into())],
        ..device(name)
    };
    let mut partitioned = templates(vec![part("half-0", "20Gi"), part("half-1", "20Gi"), part("whole", "40Gi")]);
    partitioned.slices.push(Template {
        driver: DRIVER.into(),
        pool: "local".into(),
        devices: Vec::new(),
        counters: vec![("gpu-0".into(), [("memory".into(), quantity("40Gi"))].into())],
    });
    let pool = bringing(&[("large", partitioned)]);
    let pods = |count: usize| (0..count).map(|at| pod(&format!("p{at}"), vec![own(ask(1))])).collect();
    let result = planned(pool, cluster(), pods(3));
    assert_eq!(result.claims.iter().map(|claim| claim.pods.len()).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn a_device_is_shared_up_to_its_capacity() {
    let memory = Capacity { value: quantity("40Gi"), policy: None };
    let shared = Device { shareable: true, capacity: [("memory".into(), memory)].into(), ..device("gpu-0") };
    let pool = bringing(&[("large", templates(vec![shared]))]);
    let share = |name: &str, amount: &str| {
        let capacity: Amounts = [(Arc::from(name), quantity(amount))].into();
        let alternatives = vec![Alternative { capacity, ..alternative(Some(1), &[]) }];
        own(ClaimSpec { requests: vec![Request { name: "gpu".into(), alternatives }], constraints: Vec::new() })
    };
    let pods = (0..3).map(|at| pod(&format!("p{at}"), vec![share("memory", "16Gi")])).collect();
    let result = planned(pool.clone(), cluster(), pods);
    assert_eq!(result.claims.iter().map(|claim| claim.pods.len()).collect::<Vec<_>>(), [2, 1]);
    let unknown = planned(pool, cluster(), vec![pod("p", vec![share("cores", "1")])]);
    assert!(!why(&unknown, "p").is_empty());
}

#[test]
fn what_cannot_be_asked_for_is_told() {
    let spec = |change: fn(&mut Alternative)| {
        let mut alternative = alternative(Some(1), &[]);
        change(&mut alternative);
        let request = Request { name: "gpu".into(), alternatives: vec![alternative] };
        own(ClaimSpec { requests: vec![request], constraints: Vec::new() })
    };
    let unknown = ClaimSpec { constraints: vec![Constraint::Unknown("distinctAttribute".into())], ..ask(1) };
    for (claim, expected) in [
        (spec(|one| one.class = "tpu".into()), "DeviceClass tpu does not exist"),
        (spec(|one| one.selectors = vec![Selector::Cel("device.".into())]), "is not CEL"),
        (spec(|one| one.unsupported = Some("adminAccess".into())), "adminAccess is not acted on"),
        (own(unknown), "distinctAttribute are not acted on"),
        (own(ask(33)), "33 devices"),
        (PodClaim::Missing("no claim was made of template t".into()), "no claim was made of template t"),
    ] {
        let pool = bringing(&[("large", templates(vec![device("gpu-0")]))]);
        let result = planned(pool, cluster(), vec![pod("p", vec![claim]), pod("other", vec![own(ask(1))])]);
        assert!(why(&result, "p").contains(expected), "{expected}: {}", why(&result, "p"));
        assert_eq!(result.claims.len(), 1, "another pod is not held up");
    }
}

#[test]
fn a_search_without_end_ends() {
    // 30 devices of which no 16 agree: a plain search would try a hundred million combinations.
    let devices = (0..30).map(|at| modelled(&format!("gpu-{at}"), &format!("m{}", at % 3))).collect::<Vec<_>>();
    let apart = devices.iter().map(|one| Device {
        attributes: one
            .attributes
            .clone()
            .into_iter()
            .chain([("x.example/id".into(), Attribute::String(Arc::clone(&one.name)))])
            .collect(),
        ..one.clone()
    });
    let pool = bringing(&[("large", templates(apart.collect()))]);
    let constraint = Constraint::MatchAttribute { attribute: format!("{DRIVER}/model").into(), requests: Vec::new() };
    let spec = ClaimSpec { constraints: vec![constraint], ..ask(16) };
    let start = std::time::Instant::now();
    let result = planned(pool, cluster(), vec![pod("p", vec![own(spec)])]);
    assert!(!why(&result, "p").is_empty());
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

/// Small random devices, claims and orders of taking and giving back.
#[derive(Clone, Debug)]
struct Random {
    published: Vec<(u8, u8)>,
    brought: [Vec<(u8, u8)>; 2],
    claims: Vec<(u8, u8, bool)>,
    releases: Vec<Option<bool>>,
}

fn random() -> impl Strategy<Value = Random> {
    let devices = || prop::collection::vec((0..4_u8, 0..3_u8), 0..5);
    let claims = prop::collection::vec((1..3_u8, 0..4_u8, any::<bool>()), 1..9);
    (devices(), devices(), devices(), claims, prop::collection::vec(any::<Option<bool>>(), 9)).prop_map(
        |(published, small, large, claims, releases)| Random { published, brought: [small, large], claims, releases },
    )
}

/// A device by kind: plain, two of a counter, three of a counter, shareable.
fn of_kind(at: usize, (kind, model): (u8, u8)) -> Device {
    let counted = |amount: &str| vec![("set".into(), [("slices".into(), quantity(amount))].into())];
    let mut made = modelled(&format!("d{at}"), &format!("m{model}"));
    match kind {
        1 => made.consumes = counted("2"),
        2 => made.consumes = counted("3"),
        3 => {
            made.shareable = true;
            made.capacity = [("memory".into(), Capacity { value: quantity("10"), policy: None })].into();
        }
        _ => {}
    }
    made
}

fn counters() -> Vec<(Arc<str>, Amounts)> {
    vec![("set".into(), [("slices".into(), quantity("4"))].into())]
}

/// Nothing that these hold is held twice, or exceeds its counters or capacity.
fn check_stock(
    stock: &Stock<'_>,
    held: &[Vec<&Taken>],
    at: impl Fn(&Taken) -> Option<u32>,
) -> Result<(), TestCaseError> {
    let mut counters = vec![Quantity::default(); stock.counters.len()];
    let mut whole: BTreeMap<u32, usize> = BTreeMap::new();
    let mut shares: BTreeMap<u32, Quantity> = BTreeMap::new();
    // A holder becomes one type: its worst case is the largest of them, kept apart by the caller.
    for taken in held.iter().flatten() {
        let Some(device) = at(taken) else { continue };
        let entry = &stock.devices[device as usize];
        match &taken.share {
            Some(share) => {
                let sum = shares.entry(device).or_default();
                *sum = share.iter().fold(*sum, |sum, (_, amount)| sum.saturating_add(*amount));
            }
            None => *whole.entry(device).or_default() += 1,
        }
        for (counter, amount) in &entry.consumes {
            counters[*counter as usize] = counters[*counter as usize].saturating_add(*amount);
        }
    }
    prop_assert!(whole.values().all(|times| *times == 1), "a device is given twice: {:?}", held);
    prop_assert!(shares.values().all(|sum| *sum <= quantity("10")), "a capacity is exceeded: {:?}", held);
    prop_assert!(counters.iter().zip(&stock.counters).all(|(used, total)| used <= total), "a counter: {:?}", held);
    Ok(())
}

proptest! {
    #[test]
    fn nothing_is_given_twice(input in random()) {
        let devices = |list: &[(u8, u8)]| list.iter().enumerate().map(|(at, one)| of_kind(at, *one)).collect::<Vec<_>>();
        let mut cluster = cluster();
        let published = slice("net", Scope::AllNodes, devices(&input.published));
        cluster.slices.push(Arc::new(Slice { counters: counters(), ..published }));
        let [small, large] = input.brought.clone().map(|list| {
            let mut made = templates(devices(&list));
            made.slices[0].counters = counters();
            made
        });
        let pool = bringing(&[("small", small), ("large", large)]);
        let shapes: Vec<Arc<PodShape>> = input.claims.iter().enumerate().map(|(at, (count, asked, constrained))| {
            let capacity = if *asked > 1 { [("memory".into(), Quantity::from_value(i64::from(*asked)))].into() } else { Amounts::new() };
            let alternatives = vec![Alternative { capacity, ..alternative(Some(u32::from(*count)), &[]) }];
            let attribute = Arc::from(format!("{DRIVER}/model"));
            let constraint = Constraint::MatchAttribute { attribute, requests: Vec::new() };
            let constraints = if *constrained { vec![constraint] } else { Vec::new() };
            let spec = ClaimSpec { requests: vec![Request { name: "gpu".into(), alternatives }], constraints };
            Arc::clone(&pod(&format!("p{at}"), vec![own(spec)]).shape)
        }).collect();
        let snapshot = world(pool, cluster, Vec::new());
        let mut symbols = Symbols::default();
        let shapes: Vec<&Arc<PodShape>> = shapes.iter().collect();
        let mut made = Devices::new(&snapshot, &shapes, &mut symbols);
        let views = [View::new(&snapshot.nodepools[0].catalog, &mut symbols)];
        let around = (&PoolsByName::default(), &views[..], &mut InFlight::default());
        made.look_around(&snapshot, &ExistingNodes::default(), around, &mut symbols);
        let mut live: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (at, release) in (0..shapes.len()).zip(&input.releases) {
            let number = id_of(at) % 3;
            let holder = Holder::Claim(number);
            let every = (0..id_of(made.profiles.len())).collect();
            let profiles = live.get(&number).unwrap_or(&every).clone();
            let wanted = made.groups[at].clone().unwrap();
            let nothing = Bits::default();
            let ground = Ground::Claim(SymbolSet::default(), &nothing);
            if let Some(plan) = made.plan(holder, &wanted, ground, &profiles, &symbols) {
                let mut left: BTreeSet<u32> = plan.taken.keys().copied().collect();
                made.commit(holder, plan, &symbols);
                if *release == Some(true) && left.len() > 1 {
                    left.pop_first();
                }
                made.ledger.keep(&made.stock, holder, &left);
                live.insert(number, left);
            }
            if *release == Some(false) {
                made.withdraw(Some(number));
                live.remove(&number);
            }
        }
        // Whatever each of the holders becomes: every combination of their profiles.
        let all = made.ledger.all();
        let mut combinations: Vec<Vec<Vec<&Taken>>> = vec![Vec::new()];
        for by_profile in all.values().filter(|by_profile| !by_profile.is_empty()) {
            combinations = combinations.iter().flat_map(|before| by_profile.values().map(|taken| {
                let mut more = before.clone();
                more.push(taken.iter().collect());
                more
            })).collect();
            for (profile, taken) in by_profile {
                let stock = &made.profiles[*profile as usize].stock;
                check_stock(stock, &[taken.iter().collect()], Taken::template)?;
            }
        }
        for held in &combinations {
            check_stock(&made.stock, held, |taken| match taken.which {
                Which::Published(at) => Some(at),
                Which::Template(_) => None,
            })?;
        }
    }
}
