//! What is refused at admission, with its key path and reason.

use mortise_plugin_build::sha256;
use mortise_wasm::{HostSettings, PolicyHost};

use crate::guests::{EVIL, ZONE_DISCOUNT, config_map, evil};

/// The only reason for which a `policies.yaml` is refused.
fn refused(policies: &str) -> String {
    let host = PolicyHost::new(HostSettings::default()).unwrap();
    let reasons = host.admit(&config_map(policies)).unwrap_err();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons[0].to_string()
}

/// The reason for which these bytes are refused as a scorer.
fn refused_bytes(bytes: &[u8], digest: &str) -> String {
    let host = PolicyHost::new(HostSettings::default()).unwrap();
    let entry = format!("score: [ {{ name: x, source: {{ inline: x.wasm }}, sha256: \"{digest}\" }} ]");
    let mut map = config_map(&entry);
    map.binary_data.insert("x.wasm".into(), bytes.to_vec());
    let reasons = host.admit(&map).unwrap_err();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons[0].to_string()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn hostile_guests_are_refused_by_the_trial_round() {
    for (config, start) in [
        ("{ mode: spin }", "trial round: begin-round: the plugin ran out of fuel"),
        ("{ mode: grow }", "trial round: begin-round: the plugin asked for more memory than its 64 MiB"),
        ("{ mode: recurse }", "trial round: begin-round: the plugin trapped: "),
        ("{ mode: trap }", "trial round: begin-round: the plugin trapped: the guest panics at "),
        ("{ mode: short }", "trial round: evaluate: the plugin answered with a wrong length"),
        ("{ mode: huge }", "trial round: evaluate: the plugin answered with a wrong length: more than "),
        ("{ mode: error, hook: evaluate }", "trial round: evaluate: the plugin returned an error"),
        ("{ mode: long, hook: end-round }", "trial round: end-round: the plugin answered with a wrong length: memo"),
        ("{ mode: trap-in-configure }", "configure: the plugin trapped: the guest panics at "),
        ("{ mode: spin-in-configure }", "configure: the plugin ran out of fuel"),
    ] {
        let reason =
            refused(&format!("score: [ {} ]", evil(config, ", limits: { fuel: 1000000000, deadlineMs: 60000 }")));
        assert!(reason.starts_with(&format!("policies.yaml: score[0].source: {start}")), "{config}: {reason}");
    }
    let filter = refused(&format!("filter: [ {} ]", evil("{ mode: foreign }", "")));
    assert!(
        filter.contains("filter[0].source: trial round: admit-claims: the plugin answered with a bad index"),
        "{filter}"
    );
    let nodes = refused(&format!("consolidate: {}", evil("{ mode: foreign }", "")));
    assert!(
        nodes.contains("consolidate.source: trial round: propose: the plugin answered with a bad index"),
        "{nodes}"
    );
}

#[test]
fn configurations_are_checked_by_schema_and_by_the_plugin() {
    let zone = |config: &str| {
        format!("score: [ {{ name: z, source: {{ inline: zone.wasm }}, sha256: \"{{zone}}\", config: {config} }} ]")
    };
    assert_eq!(
        refused(&zone("{ zone: a, percent: 101 }")),
        "policies.yaml: score[0].config.percent: expected at most 100, found 101"
    );
    assert_eq!(refused(&zone("{ percent: 1 }")), "policies.yaml: score[0].config.zone: is missing");
    assert_eq!(
        refused(&zone("{ zone: a, percent: 1, colour: red }")),
        "policies.yaml: score[0].config.colour: is not a key of this plugin; it knows: percent, zone"
    );
    let own = refused(&format!("score: [ {} ]", evil("{ mode: refuse-configuration }", "")));
    assert_eq!(own, "policies.yaml: score[0].config.zone: this plugin likes no zone");
    assert_eq!(
        refused("score: [ { name: price, source: { builtin: price }, config: { a: 1 } } ]"),
        "policies.yaml: score[0].config.a: is not a key of this plugin; it takes no configuration"
    );
}

#[test]
fn what_is_not_the_pinned_component_is_refused() {
    let good = ZONE_DISCOUNT.clone();
    let digest = sha256(&good);
    let cases: [(&[u8], &str, &str); 7] = [
        (&good, &"0".repeat(64), "score[0].sha256: the component has sha256 "),
        (&gzip(&good), &sha256(&gzip(&good)), "(the one given is that of the packed bytes)"),
        (&good[..good.len() / 2], &digest, "score[0].sha256: "),
        (&gzip(&good)[..1_000], &digest, "score[0].source.inline: broken gzip"),
        (
            &gzip(&vec![0; 64 << 20]),
            &digest,
            "score[0].source.inline: 4194305 bytes or more when unpacked, at most 4194304",
        ),
        (&[0x28, 0xb5, 0x2f, 0xfd, 1, 2], &digest, "score[0].source.inline: zstd is not supported"),
        (&vec![0; (1 << 20) + 1], &digest, "at most 1048576 in a ConfigMap"),
    ];
    for (bytes, digest, words) in cases {
        let reason = refused_bytes(bytes, digest);
        assert!(reason.contains(words), "{words}: {reason}");
    }
    let truncated = &good[..good.len() / 2];
    let reason = refused_bytes(truncated, &sha256(truncated));
    assert!(reason.contains("score[0].source.inline: broken component"), "{reason}");
}

#[test]
fn what_is_no_policy_component_is_refused_by_what_it_is() {
    for (text, words) in [
        ("(module)", "a core Wasm module, not a component"),
        ("(component)", "does not export mortise:policy/lifecycle@0.1.0"),
        (
            "(component (import \"wasi:sockets/tcp@0.2.0\" (instance)))",
            "imports wasi:sockets/tcp@0.2.0: this version links no wasi",
        ),
        (
            "(component (import \"acme:net/http\" (instance)))",
            "imports acme:net/http: a policy may import only mortise:policy/",
        ),
        ("(component (import \"run\" (func)))", "imports run: a policy may import only"),
        (
            "(component (import \"mortise:policy/types@0.9.0\" (instance)))",
            "made for 0.9.0 of the contract; this host speaks 0.1",
        ),
        ("(component (instance $i) (export \"mortise:policy/lifecycle@0.1.0\" (instance $i)))", "exports no hook"),
        (
            "(component (instance $i) (export \"mortise:policy/lifecycle@0.1.0\" (instance $i)) \
             (export \"mortise:policy/score@0.1.0\" (instance $i)))",
            "does not compile and link as a policy: ",
        ),
        (
            "(component (instance $i) (export \"mortise:policy/lifecycle@0.1.0\" (instance $i)) \
             (export \"mortise:policy/score@0.7.0\" (instance $i)))",
            "made for 0.7.0",
        ),
    ] {
        let bytes = wat::parse_str(text).unwrap();
        let reason = refused_bytes(&bytes, &sha256(&bytes));
        assert!(reason.contains(words), "{text}: {reason}");
    }
    let elf = b"\x7fELF and so on";
    assert!(refused_bytes(elf, &sha256(elf)).contains("native code"));
}

#[test]
fn wrong_names_are_answered_with_the_right_ones() {
    assert_eq!(
        refused("score: [ { name: x, source: { builtin: prise } } ]"),
        "policies.yaml: score[0].source.builtin: there is no builtin \"prise\"; there are: constraints, price, karpenter"
    );
    let inline = refused("score: [ { name: x, source: { inline: y.wasm }, sha256: \"{evil}\" } ]");
    assert_eq!(
        inline,
        "policies.yaml: score[0].source.inline: binaryData has no key \"y.wasm\"; it has: evil.wasm, zone.wasm"
    );
    assert_eq!(
        refused("filter: [ { name: price, source: { builtin: price } } ]\nscore: []"),
        "policies.yaml: filter[0]: \"price\" has no filter hook"
    );
    let twice = "score: [ { name: price, source: { builtin: price } }, { name: price, source: { builtin: price } } ]";
    assert_eq!(refused(twice), "policies.yaml: score[1].name: \"price\" is in this chain twice; give it another name");
    let pinned = format!("score: [ {{ name: price, source: {{ builtin: price }}, sha256: \"{}\" }} ]", "0".repeat(64));
    assert!(refused(&pinned).contains("score[0].sha256: the builtin price of this version has sha256 "));
    let host = PolicyHost::new(HostSettings::default()).unwrap();
    let reasons = host.admit(&mortise_wasm::ConfigMapData::default()).unwrap_err();
    assert_eq!(reasons[0].to_string(), "data.policies.yaml: is missing; data is empty");
    assert!(!EVIL.is_empty());
}

#[test]
fn gzip_is_unpacked_and_the_digest_is_that_of_the_component() {
    let host = PolicyHost::new(HostSettings::default()).unwrap();
    let entry =
        "score: [ { name: z, source: { inline: zone.wasm }, sha256: \"{zone}\", config: { zone: a, percent: 1 } } ]";
    let mut map = config_map(entry);
    map.binary_data.insert("zone.wasm".into(), gzip(&ZONE_DISCOUNT));
    host.admit(&map).unwrap();
}

#[test]
fn the_example_config_maps_are_admitted() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/policies");
    let mut admitted = 0;
    for file in std::fs::read_dir(examples).unwrap().map(|f| f.unwrap().path()) {
        if file.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        let manifest: serde_json::Value = serde_norway::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let policies = manifest["data"]["policies.yaml"].as_str().unwrap().to_owned();
        let mut map = mortise_wasm::ConfigMapData::default();
        map.data.insert("policies.yaml".into(), policies);
        let host = PolicyHost::new(HostSettings::default()).unwrap();
        host.admit(&map).unwrap_or_else(|reasons| panic!("{}: {reasons:?}", file.display()));
        assert_eq!(host.disruption_paused(), file.ends_with("disruption-paused.yaml"));
        admitted += 1;
    }
    assert_eq!(admitted, 2);
}
