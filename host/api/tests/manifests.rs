//! The manifests under tests/fixtures/crd against the types: what an API server accepts is read and written back
//! without loss, and every CEL rule has a manifest that it refuses (the control-plane tests show that it does).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

use mortise_api::{CapacityBuffer, EC2NodeClass, NodeClaim, NodeOverlay, NodePool, crd, validation};
use serde::Deserialize as _;
use serde_json::Value;

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/crd").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_norway::Deserializer::from_str(&text).map(|document| Value::deserialize(document).unwrap()).collect()
}

/// Reads and writes one manifest with its type.
fn through_the_type(manifest: &Value) -> Value {
    let value = manifest.clone();
    match manifest["kind"].as_str().unwrap() {
        "NodePool" => serde_json::to_value(serde_json::from_value::<NodePool>(value).unwrap()).unwrap(),
        "NodeClaim" => serde_json::to_value(serde_json::from_value::<NodeClaim>(value).unwrap()).unwrap(),
        "EC2NodeClass" => serde_json::to_value(serde_json::from_value::<EC2NodeClass>(value).unwrap()).unwrap(),
        "NodeOverlay" => serde_json::to_value(serde_json::from_value::<NodeOverlay>(value).unwrap()).unwrap(),
        "CapacityBuffer" => serde_json::to_value(serde_json::from_value::<CapacityBuffer>(value).unwrap()).unwrap(),
        other => panic!("{other}"),
    }
}

/// Everything of `before` is in `after`, where quantities may have become text.
fn assert_kept(before: &Value, after: &Value, path: &str) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let path = format!("{path}.{key}");
                let empty = value.as_array().is_some_and(Vec::is_empty);
                match after.get(key) {
                    Some(kept) => assert_kept(value, kept, &path),
                    None => assert!(empty, "{path} got lost"),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            assert_eq!(before.len(), after.len(), "{path}");
            before.iter().zip(after).enumerate().for_each(|(i, (b, a))| assert_kept(b, a, &format!("{path}[{i}]")));
        }
        (Value::Number(number), Value::String(text)) => assert_eq!(&number.to_string(), text, "{path}"),
        _ => assert_eq!(before, after, "{path}"),
    }
}

#[test]
fn good_manifests_go_through_the_types_without_loss() {
    for (path, manifest) in files("good").iter().flat_map(|path| documents(path).into_iter().map(move |d| (path, d))) {
        let after = through_the_type(&manifest);
        assert_kept(&manifest, &after, &path.display().to_string());
        assert_eq!(through_the_type(&after), after, "the second time nothing changes");
    }
}

#[test]
fn defaults_are_those_of_the_schema_without_an_api_server_too() {
    let pool: NodePool = serde_json::from_str(
        r#"{"metadata":{},"spec":{"template":{"spec":{"nodeClassRef":{"group":"","kind":"","name":""},"requirements":[]}}}}"#,
    )
    .unwrap();
    let value = serde_json::to_value(&pool.spec).unwrap();
    assert_eq!(
        value["disruption"],
        serde_json::json!({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmptyOrUnderutilized", "budgets": [{"nodes": "10%"}]})
    );
    assert_eq!(value["template"]["spec"]["expireAfter"], "720h");
    let partly: NodePool = serde_json::from_str(
        r#"{"metadata":{},"spec":{"disruption":{"budgets":[]},"template":{"spec":{"nodeClassRef":{"group":"","kind":"","name":""},"requirements":[]}}}}"#,
    )
    .unwrap();
    assert!(partly.spec.disruption.budgets.is_empty(), "no budget is not the default budget");
    assert_eq!(partly.spec.disruption.consolidate_after.as_str(), "0s");
}

#[test]
fn good_manifests_pass_run_time_validation() {
    for (path, manifest) in files("good").iter().flat_map(|path| documents(path).into_iter().map(move |d| (path, d))) {
        let errors = match manifest["kind"].as_str().unwrap() {
            "NodePool" => validation::node_pool(&serde_json::from_value(manifest).unwrap()).errors,
            "EC2NodeClass" => validation::ec2_node_class(&serde_json::from_value(manifest).unwrap(), false).1.errors,
            "NodeOverlay" => validation::node_overlay(&serde_json::from_value(manifest).unwrap()).errors,
            _ => Vec::new(),
        };
        assert!(errors.is_empty(), "{}: {}", path.display(), validation::joined(&errors));
    }
}

#[test]
fn every_rule_has_a_manifest_that_it_refuses() {
    let refused: Vec<(String, String)> = files("bad")
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let expected = text.lines().next().unwrap().strip_prefix("# expect: ").expect("first line").to_string();
            let kind = documents(path).pop().unwrap()["kind"].as_str().unwrap().to_string();
            (kind, expected)
        })
        .collect();
    let missing: Vec<_> = crd::rules()
        .into_iter()
        .filter(|(kind, rule)| !refused.iter().any(|(k, expected)| k == kind && rule.message.contains(expected)))
        .map(|(kind, rule)| format!("{kind} {}: {}", rule.at, rule.message))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn an_object_of_a_newer_version_is_read() {
    let pool: NodePool = serde_json::from_str(
        r#"{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a","newMeta":1},"spec":{"template":{"spec":{
        "nodeClassRef":{"group":"g","kind":"k","name":"n","newField":true},
        "requirements":[{"key":"a","operator":"Near","values":["b"],"new":{}}]}},
        "disruption":{"consolidationPolicy":"WhenCheap","budgets":[{"nodes":"1","reasons":["Moody"]}]},"brandNew":{"x":[1]}}}"#,
    )
    .unwrap();
    assert_eq!(pool.spec.disruption.consolidation_policy.as_str(), "WhenCheap");
    let errors = validation::node_pool(&pool).message();
    for word in ["Near", "WhenCheap", "Moody"] {
        assert!(errors.contains(word), "{errors}");
    }
}
