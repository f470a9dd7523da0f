//! Plugins that turn bad after admission: the fault is told apart, something stands in, the round goes on.

use mortise_wasm::{HostSettings, PluginState, PolicyHost};

use crate::guests::{config_map, evil};
use crate::world::{Answers, World};

fn host(policies: &str) -> PolicyHost {
    let host = PolicyHost::new(HostSettings::default()).unwrap();
    host.admit(&config_map(policies)).unwrap_or_else(|reasons| panic!("{reasons:?}"));
    host
}

fn state(host: &PolicyHost) -> (PluginState, mortise_wasm::FaultCounts) {
    let status = host.status().plugins.into_iter().find(|p| p.name == "evil").unwrap();
    (status.state, status.faults)
}

fn world() -> World {
    let mut world = World::small();
    world.add_node(0b1_0101, 100_000);
    world.add_node(0b1_0000, 100_000);
    world
}

/// Native answers without faults: what `builtin` gives.
fn builtin() -> Answers {
    world().ask(&mortise_wasm::NativePolicies)
}

#[test]
fn every_kind_of_fault_is_told_apart_and_the_builtin_stands_in() {
    // mode, hook, limits, words of the fault, kind
    // Long deadlines where another limit is to bite first: the machine that tests may be busy.
    let slow = ", limits: { fuel: 100000000000, deadlineMs: 30 }";
    let roomy = ", limits: { fuel: 10000000000, deadlineMs: 60000 }";
    let patient = ", limits: { deadlineMs: 60000 }";
    let cases = [
        ("trap", "evaluate", "", "trapped: the guest panics at ", "trap"),
        ("recurse", "evaluate", roomy, "trapped: ", "trap"),
        ("spin", "evaluate", patient, "ran out of fuel", "fuel"),
        ("spin", "begin-round", patient, "ran out of fuel", "fuel"),
        ("spin", "evaluate", slow, "took longer than 30 ms", "deadline"),
        ("grow", "evaluate", roomy, "more memory than its 64 MiB", "memory"),
        ("short", "evaluate", "", "wrong length: costs: 5 where 6", "length"),
        ("long", "evaluate", "", "wrong length: costs: 7 where 6", "length"),
        ("huge", "evaluate", roomy, "wrong length: more than ", "length"),
        ("error", "evaluate", "", "returned an error: internal: it does not feel like it", "policyError"),
        ("error", "begin-round", "", "returned an error", "policyError"),
    ];
    for (mode, hook, limits, words, kind) in cases {
        let entry = evil(&format!("{{ mode: {mode}, hook: {hook}, since: 1 }}"), limits);
        let host = host(&format!("score: [ {entry} ]"));
        let answers = world().ask(&*host.current());
        assert_eq!(answers.costs, builtin().costs, "{mode}: the built-in scorer stands in");
        assert_eq!(answers.faults.len(), 1, "{mode}: {:?}", answers.faults);
        let fault = &answers.faults[0];
        assert!(fault.contains(words), "{mode}: {fault}");
        assert!(
            fault.starts_with("policy evil: score: the plugin ") && fault.ends_with("the native built-in stands in"),
            "{fault}"
        );
        let counts = serde_json::to_value(state(&host).1).unwrap();
        assert_eq!((counts[kind].as_u64(), state(&host).1.total()), (Some(1), 1), "{mode}: {counts}");
    }
}

#[test]
fn bad_filters_and_consolidators_are_refused_whole() {
    for (mode, words) in
        [("foreign", "not its candidate"), ("twice", "twice"), ("short", "verdict rows"), ("huge", "more than")]
    {
        let entry = evil(&format!("{{ mode: {mode}, hook: admit-claims, since: 1 }}"), "");
        let answers = world().ask(&*host(&format!("filter: [ {entry} ]")).current());
        assert!(answers.faults[0].contains(words), "{mode}: {:?}", answers.faults);
        let dropped = |a: &Answers| a.verdict.as_ref().unwrap().dropped.clone();
        assert_eq!(dropped(&answers), dropped(&builtin()), "{mode}");
    }
    for (mode, hook, words) in [
        ("foreign", "propose", "names node 2 of 2"),
        ("long", "propose", "101 sets, at most 100"),
        ("trap", "decide", "guest panics"),
    ] {
        let entry = evil(&format!("{{ mode: {mode}, hook: {hook}, since: 1 }}"), "");
        let answers = world().ask(&*host(&format!("consolidate: {entry}")).current());
        assert!(answers.faults[0].contains(words), "{mode}: {:?}", answers.faults);
        assert!(answers.faults[0].ends_with("it is left out of this round"));
        assert_eq!(answers.priorities, [0; 0], "{mode}: no voluntary disruption this round");
    }
}

#[test]
fn on_error_says_what_stands_in() {
    let bad = |on_error: &str| evil("{ mode: trap, hook: evaluate, since: 1 }", &format!(", onError: {on_error}"));
    let costs = |on_error: &str| {
        // After a discount, so that leaving it out, the built-in and stopping differ.
        let host = host(&format!(
            "score: [ {{ name: zone-discount, source: {{ inline: zone.wasm }}, sha256: \"{{zone}}\", \
             config: {{ zone: us-east-1a, percent: 10 }} }}, {} ]",
            bad(on_error)
        ));
        world().ask(&*host.current()).costs
    };
    let discounted = [76_500, 85_000, 905_400, 90_720, 100_800, 40_000];
    assert_eq!(costs("builtin"), discounted);
    assert_eq!(costs("skip"), discounted);
    assert_eq!(costs("last-good"), discounted, "without a predecessor: the built-in");
    assert_eq!(costs("stop"), [i64::MAX; 6]);

    let bad = |on_error: &str| evil("{ mode: trap, hook: admit-claims, since: 1 }", &format!(", onError: {on_error}"));
    let dropped = |on_error: &str| {
        let verdict = world().ask(&*host(&format!("filter: [ {} ]", bad(on_error))).current()).verdict;
        verdict.map(|v| v.dropped.member)
    };
    assert_eq!(dropped("builtin"), Some(vec![2]), "the GPU type");
    assert_eq!(dropped("last-good"), Some(vec![2]));
    assert_eq!(dropped("skip"), None);
    assert_eq!(dropped("stop"), Some(vec![0, 1, 2, 3, 4, 5]));

    let bad = |on_error: &str| evil("{ mode: trap, hook: propose, since: 1 }", &format!(", onError: {on_error}"));
    let sets = |on_error: &str| world().ask(&*host(&format!("consolidate: {}", bad(on_error))).current()).sets.member;
    assert_eq!(sets("builtin"), [0]);
    assert_eq!((sets("last-good"), sets("skip"), sets("stop")), (vec![], vec![], vec![]));
}

#[test]
fn the_last_good_component_stands_in_and_trips_the_breaker() {
    let host = host(&format!("score: [ {} ]", evil("{ mode: reverse }", "")));
    let reversed = world().ask(&*host.current()).costs;
    host.admit(&config_map(&format!("score: [ {} ]", evil("{ mode: trap, hook: evaluate, since: 1 }", "")))).unwrap();
    let mut world = world();
    for round in 0..3 {
        assert_eq!(state(&host).0, PluginState::Active, "round {round}");
        let answers = world.ask(&*host.current());
        assert_eq!(answers.costs, reversed, "round {round}");
        assert!(answers.faults[0].ends_with("its last good component stands in"), "{:?}", answers.faults);
    }
    assert_eq!(state(&host).0, PluginState::LastGood);
    let open = world.ask(&*host.current());
    assert_eq!((open.costs, open.faults), (reversed, vec![]), "not asked while the breaker is open");
    assert_eq!(state(&host).1.trap, 3);

    world.round.now_unix_ms += 1_000;
    assert_eq!(world.ask(&*host.current()).faults.len(), 1, "retried after a second");
    world.round.now_unix_ms += 2_000;
    world.catalog.generation = 0;
    let healed = world.ask(&*host.current());
    assert_eq!((healed.costs, healed.faults), (world.base(), vec![]), "it answers again");
    assert_eq!(state(&host).0, PluginState::Active);
}

#[test]
fn a_good_round_between_faults_keeps_the_breaker_closed_for_a_while() {
    let host = host(&format!("score: [ {} ]", evil("{ mode: trap, hook: evaluate, since: 2 }", "")));
    let (mut good, mut bad) = (world(), world());
    (good.catalog.generation, bad.catalog.generation) = (1, 2);
    for _ in 0..4 {
        bad.ask(&*host.current());
        good.ask(&*host.current());
    }
    assert_eq!(state(&host).0, PluginState::Active);
    bad.ask(&*host.current());
    assert_eq!(state(&host).0, PluginState::Builtin, "five in ten minutes");
}

#[test]
fn a_memo_too_large_is_a_fault_and_the_answers_stand() {
    let entry = evil("{ mode: long, hook: end-round, since: 1 }", "");
    let host = host(&format!("score: [ {entry} ]"));
    let answers = world().ask(&*host.current());
    assert_eq!(answers.costs, world().base());
    assert!(answers.faults[0].contains("memo: 65537 bytes"), "{:?}", answers.faults);
}

#[test]
fn past_the_deadline_of_the_round_the_rest_falls_back() {
    let mut settings = HostSettings::default();
    settings.round_deadline = std::time::Duration::from_millis(20);
    let host = PolicyHost::new(settings).unwrap();
    let slow = evil("{ mode: spin, hook: admit-claims, since: 1 }", ", limits: { fuel: 100000000000, deadlineMs: 40 }");
    host.admit(&config_map(&format!("filter: [ {slow} ]"))).unwrap();
    let answers = world().ask(&*host.current());
    assert_eq!(answers.costs, builtin().costs, "price is not asked; its twin is");
    assert_eq!(answers.faults.len(), 3, "{:?}", answers.faults);
    assert!(answers.faults[1].starts_with("policy price: score: the plugin was not asked"), "{:?}", answers.faults);
    let price = host.status().plugins.into_iter().find(|p| p.name == "price").unwrap();
    assert_eq!((price.faults.deadline, price.state), (1, PluginState::Active), "not its own fault");
}
