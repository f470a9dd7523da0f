//! A ConfigMap changes the next round; a bad one changes nothing and says why.

use mortise_engine::policy::PolicySet as _;
use mortise_wasm::{HostSettings, PluginState, PolicyHost};

use crate::guests::{ZONE_DISCOUNT, config_map, evil};
use crate::world::World;

fn host() -> PolicyHost {
    PolicyHost::new(HostSettings::default()).unwrap()
}

#[test]
fn a_reversed_scorer_changes_the_choice() {
    let (host, world) = (host(), World::small());
    let before = world.choices(&*host.current());
    host.admit(&config_map(&format!("score: [ {} ]", evil("{ mode: reverse }", "")))).unwrap();
    let after = world.choices(&*host.current());
    assert_eq!(before.first().unwrap(), "m7i.large/us-east-1b");
    assert_eq!(after.first().unwrap(), "m7i.large/us-east-1a", "the dearest that constraints leaves");
    assert_eq!(after.last().unwrap(), "m7i.large/us-east-1b", "the cheapest");
}

#[test]
fn a_filter_that_refuses_a_zone_changes_the_choice() {
    let (host, world) = (host(), World::small());
    let refuse = evil("{ mode: refuse-zone, zone: us-east-1b }", "");
    host.admit(&config_map(&format!(
        "filter: [ {{ name: constraints, source: {{ builtin: constraints }} }}, {refuse} ]"
    )))
    .unwrap();
    assert_eq!(world.choices(&*host.current()), ["c7i.large/us-east-1a", "m7i.large/us-east-1a"]);
    let verdict = world.ask(&*host.current()).verdict.unwrap();
    let mut reasons = verdict.reasons;
    reasons.sort();
    let expected =
        ["constraints: a GPU, accelerator or metal type while plain types remain", "evil: this zone is refused"];
    assert_eq!(reasons, expected);
}

#[test]
fn the_example_scorer_sees_the_cost_of_those_before_it() {
    let (host, world) = (host(), World::small());
    let discount = "score: [ { name: price, source: { builtin: price } }, { name: zone-discount, \
                    source: { inline: zone.wasm }, sha256: \"{zone}\", config: { zone: us-east-1a, percent: 60 } } ]";
    host.admit(&config_map(discount)).unwrap();
    let choices = world.choices(&*host.current());
    assert_eq!(choices.first().unwrap(), "c7i.large/us-east-1a", "34,000 before spot's 40,000");
    let status = host.status();
    let plugin = status.plugins.iter().find(|p| p.name == "zone-discount").unwrap();
    assert_eq!((plugin.source.as_str(), plugin.version.as_str()), ("inline:zone.wasm", env!("CARGO_PKG_VERSION")));
    assert_eq!(plugin.sha256, mortise_plugin_build::sha256(&ZONE_DISCOUNT));
}

#[test]
fn rounds_in_flight_keep_the_old_set() {
    let (host, world) = (host(), World::small());
    let old = host.current();
    let mut round = old.begin(&world.catalog, &world.fleet);
    host.admit(&config_map(&format!("score: [ {} ]", evil("{ mode: reverse }", "")))).unwrap();
    let costs = round.evaluate(&world.round, &world.claims, &world.candidates, world.base());
    assert_eq!(costs, world.base(), "list price, as before the swap");
    assert_eq!(round.end(), Vec::<String>::new());
    assert_ne!(world.ask(&*host.current()).costs, world.base());
}

#[test]
fn a_bad_config_map_changes_nothing_and_says_why_and_a_good_one_clears_it() {
    let (host, world) = (host(), World::small());
    let good = config_map(&format!("score: [ {} ]", evil("{ mode: reverse }", "")));
    let admitted = host.admit(&good).unwrap();
    assert!(admitted.changed && host.status().revision == admitted.revision);
    let before = world.ask(&*host.current());
    let reasons = host.admit(&config_map(&format!("score: [ {} ]", evil("{ mode: spin }", "")))).unwrap_err();
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].to_string().starts_with("policies.yaml: score[0].source: trial round: "), "{}", reasons[0]);
    assert_eq!(world.ask(&*host.current()), before);
    let status = host.status();
    assert_eq!((status.revision, status.rejected.unwrap().reasons), (admitted.revision, reasons));
    let again = host.admit(&good).unwrap();
    assert!(!again.changed && host.status().rejected.is_none());
    host.reset_to_defaults();
    assert_eq!(host.status().revision, "defaults");
    assert_eq!(world.ask(&*host.current()).costs, world.base());
}

#[test]
fn disruption_paused_holds_even_when_the_rest_is_refused() {
    let (host, mut world) = (host(), World::small());
    world.add_node(0b1_0101, 100_000);
    let running = host.current();
    assert_eq!(world.ask(&*running).sets.member, [0]);
    host.admit(&config_map("disruption: paused\nfilter: 3\n")).unwrap_err();
    assert!(host.disruption_paused() && host.status().disruption_paused);
    assert_eq!(world.ask(&*running).sets.member, [0; 0], "rounds that run already stop too");
    host.admit(&config_map("disruption: active\nfilter: 3\n")).unwrap_err();
    assert!(host.disruption_paused(), "only a ConfigMap that is taken ends the pause");
    host.admit(&config_map("disruption: active\n")).unwrap();
    assert!(!host.disruption_paused());
}

#[test]
fn the_memo_is_kept_across_rounds_and_revisions_but_not_for_another_component() {
    let (host, world) = (host(), World::small());
    let remember = |rest: &str| config_map(&format!("score: [ {} ]\n{rest}", evil("{ mode: remember }", "")));
    host.admit(&remember("")).unwrap();
    let added = |host: &PolicyHost| world.ask(&*host.current()).costs[0] - world.base()[0];
    assert_eq!((added(&host), added(&host), added(&host)), (0, 1, 2));
    host.admit(&remember("filter: []")).unwrap();
    assert_eq!(added(&host), 3, "the same plugin in another revision");
    let plugin = host.status().plugins.into_iter().find(|p| p.name == "evil").unwrap();
    assert_eq!((plugin.counters["rounds"], plugin.gauges["rounds_remembered"]), (4, 4));
    host.reset_to_defaults();
    host.admit(&remember("")).unwrap();
    assert_eq!(added(&host), 0, "gone with the plugin");
}

#[test]
fn one_component_serves_several_hooks_with_one_memo() {
    let (host, world) = (host(), World::small());
    let both = evil("{ mode: remember }", "");
    host.admit(&config_map(&format!("filter: [ {both} ]\nscore: [ {both} ]\nconsolidate: {both}"))).unwrap();
    world.ask(&*host.current());
    let status = host.status();
    assert_eq!(status.plugins.len(), 1);
    assert_eq!(
        (status.plugins[0].hooks.as_slice(), status.plugins[0].rounds),
        (&["filter", "score", "consolidate"].map(String::from)[..], 1)
    );
    let other = evil("{ mode: reverse }", "");
    let reasons = host.admit(&config_map(&format!("filter: [ {both} ]\nscore: [ {other} ]"))).unwrap_err();
    assert!(reasons[0].to_string().starts_with("policies.yaml: score[0].name: "), "{reasons:?}");
    assert_eq!(host.status().plugins[0].state, PluginState::Active);
}
