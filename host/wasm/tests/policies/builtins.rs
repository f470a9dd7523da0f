//! The built-in policies run in the sandbox and answer what their native twins answer.

use std::sync::LazyLock;

use mortise_wasm::{HostSettings, NativePolicies, PluginState, PolicyHost};
use proptest::prelude::*;

use crate::world::World;

static HOST: LazyLock<PolicyHost> = LazyLock::new(|| PolicyHost::new(HostSettings::default()).unwrap());

#[test]
fn defaults_are_components_and_active() {
    let host = PolicyHost::new(HostSettings::default()).unwrap();
    let world = World::small();
    assert_eq!(world.ask(&*host.current()).faults, Vec::<String>::new());
    let status = host.status();
    assert_eq!(status.revision, "defaults");
    let of =
        |hook: &str| status.plugins.iter().find(|p| p.hooks == [hook]).map(|p| (p.name.as_str(), p.state, p.rounds));
    assert_eq!(of("filter"), Some(("constraints", PluginState::Active, 1)));
    assert_eq!(of("score"), Some(("price", PluginState::Active, 1)));
    assert_eq!(of("consolidate"), Some(("karpenter", PluginState::Active, 1)));
}

#[test]
fn a_gpu_type_is_not_used_and_cheapest_goes_first() {
    let expected = [
        "m7i.large/us-east-1b",
        "c7i.large/us-east-1a",
        "c7i.large/us-east-1b",
        "m7i.large/us-east-1a",
        "m7i.large/us-east-1b",
    ];
    assert_eq!(World::small().choices(&*HOST.current()), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn components_answer_what_their_native_twins_answer(seed: u64, types in 1u64..60, zones in 1u64..4, claims in 0u64..12) {
        let world = World::random(seed, types, zones, claims);
        let (component, native) = (world.ask(&*HOST.current()), world.ask(&NativePolicies));
        // The chain tags reasons with the plugin's name; the twin alone does not.
        let untagged = component.verdict.map(|mut v| {
            v.reasons.iter_mut().for_each(|r| *r = r.strip_prefix("constraints: ").unwrap().to_owned());
            v
        });
        prop_assert_eq!(component.faults, Vec::<String>::new());
        prop_assert_eq!(untagged, native.verdict);
        prop_assert_eq!(component.costs, native.costs);
        prop_assert_eq!(component.sets, native.sets);
        prop_assert_eq!(component.priorities, native.priorities);
    }
}
