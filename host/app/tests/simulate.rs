//! `mortise simulate` as a person runs it: good input, wrong input, and what each is told.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

use std::path::PathBuf;
use std::process::{Command, Output};

fn example(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).display().to_string()
}

fn simulate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mortise")).arg("simulate").args(args).output().expect("the binary runs")
}

/// Runs on the example NodePool and a manifest.
fn with(name: &str, manifest: &str, more: &[&str]) -> Output {
    let file = file(name, manifest);
    let pools = example("nodepool.yaml");
    let mut args = vec!["-f", pools.as_str(), "-f", file.as_str()];
    args.extend(more);
    simulate(&args)
}

fn file(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("simulate-{name}.yaml"));
    std::fs::write(&path, text).expect("the temporary directory is writable");
    path.display().to_string()
}

fn pod(spec: &str, cpu: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  {spec}\n  containers: [{{name: c, resources: {{requests: {{cpu: \"{cpu}\"}}}}}}]\n"
    )
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_examples_fit() {
    let output = simulate(&[&example("nodepool.yaml"), &example("burst.yaml")]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("50 pods: 50 on "), "{}", text(&output));
    assert!(!text(&output).contains("unknown"), "every example type has a price: {}", text(&output));
}

#[test]
fn the_plan_is_data_too_and_the_same_every_time() {
    let run = || simulate(&["-o", "json", &example("nodepool.yaml"), &example("burst.yaml")]);
    let first = run();
    let plan: serde_json::Value = serde_json::from_slice(&first.stdout).expect("JSON on stdout");
    assert_eq!(plan["fits"], true);
    assert_eq!(plan["podsOnNewNodes"], 50);
    let on_claims: usize =
        plan["claims"].as_array().expect("claims").iter().map(|c| c["pods"].as_array().map_or(0, Vec::len)).sum();
    assert_eq!(on_claims, 50);
    let again: serde_json::Value = serde_json::from_slice(&run().stdout).expect("JSON on stdout");
    assert_eq!(plan["claims"], again["claims"]);
}

#[test]
fn pods_without_a_place_are_told_why() {
    let cases = [
        ("zone", pod("nodeSelector: {topology.kubernetes.io/zone: us-east-1z}", "1"), "did you mean us-east-1a?"),
        ("key", pod("nodeSelector: {team: blue}", "1"), "nothing in NodePool default defines this label"),
        ("type", pod("nodeSelector: {node.kubernetes.io/instance-type: m6i.lagre}", "1"), "did you mean m6i.large?"),
        ("big", pod("", "5000"), "5000 of cpu is asked for"),
        (
            "spread",
            pod(
                "topologySpreadConstraints: [{maxSkew: 0, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]",
                "1",
            ),
            "spec.topologySpreadConstraints[0].maxSkew is 0",
        ),
        (
            "port",
            pod("hostNetwork: false", "1")
                .replace("name: c,", "name: c, ports: [{containerPort: 80, hostPort: 70000}],"),
            "hostPort 70000 is not a port",
        ),
    ];
    for (name, manifest, expected) in cases {
        let output = with(name, &manifest, &[]);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output));
        assert!(text(&output).contains(expected), "{name}: {}", text(&output));
    }
}

#[test]
fn wrong_input_is_refused_by_name() {
    let pools = std::fs::read_to_string(example("nodepool.yaml")).expect("the example is there");
    let cases = [
        (
            "misspelt field",
            pools.replace("requirements:", "requirments:"),
            "unknown field \"spec.template.spec.requirments\"",
        ),
        (
            "old policy",
            pools.replace("WhenEmptyOrUnderutilized", "WhenUnderutilized"),
            "write WhenEmptyOrUnderutilized",
        ),
        (
            "old version",
            pools.replace("karpenter.sh/v1\n", "karpenter.sh/v1beta1\n"),
            "NodePool is served as karpenter.sh/v1",
        ),
        (
            "empty pool",
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: e}\nspec: {}\n".into(),
            "spec.template: Required value",
        ),
        ("restricted label", pools.replace("intent: apps", "kubernetes.io/hostname: x"), "kubernetes.io/hostname"),
        ("no pool", pod("", "1"), "no NodePool among the manifests"),
        ("words", "just words".into(), "found plain text"),
        ("half a document", "kind: [".into(), "is not YAML"),
    ];
    for (name, manifest, expected) in cases {
        let output = simulate(&["-f", &file(&name.replace(' ', "-"), &manifest)]);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", text(&output));
        assert!(text(&output).contains(expected), "{name}: {}", text(&output));
        assert!(!text(&output).contains("panicked"), "{name}: {}", text(&output));
    }
}

#[test]
fn wrong_flags_are_usage_errors() {
    for (args, expected) in [
        (&["--nope"][..], "unexpected argument '--nope'"),
        (&[][..], "no input"),
        (&["-o", "xml", "x"][..], "possible values: table, json, yaml"),
        (&["--zones", "1", "x"][..], "--zones: expected letters"),
        (&["/no/such/file"][..], "/no/such/file"),
        (&["--context", "x"][..], "--live"),
    ] {
        let output = simulate(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", text(&output));
        assert!(text(&output).contains(expected), "{args:?}: {}", text(&output));
    }
}

#[test]
fn a_policies_configmap_decides_and_a_wrong_one_is_refused() {
    let defaults = example("policies/defaults.yaml");
    let (pools, burst) = (example("nodepool.yaml"), example("burst.yaml"));
    let good = simulate(&[&pools, &burst, "--policies", &defaults]);
    assert_eq!(good.status.code(), Some(0), "{}", text(&good));
    let broken =
        std::fs::read_to_string(&defaults).expect("the example is there").replace("builtin: price", "builtin: prize");
    let output = simulate(&[&pools, &burst, "--policies", &file("policies", &broken)]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("prize"), "{}", text(&output));
}
