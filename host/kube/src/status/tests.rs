use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use mortise_api::NodePool;
use mortise_api::condition::{Conditions, nodepool as conditions};
use serde_json::{Value, json};

use super::*;
use crate::testing;

fn pool(version: &str, nodes: i64) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": {"name": "general", "uid": "p", "resourceVersion": version, "finalizers": ["a"]},
        "spec": {"template": {"spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": []}}},
        "status": {"nodes": nodes},
    })
}

fn read(value: Value) -> NodePool {
    serde_json::from_value(value).unwrap()
}

/// Requests and their bodies.
type Log = Arc<Mutex<Vec<(String, Value)>>>;

/// A writer over a fake API server that answers patches as `patch` says and reads with version 7 of the pool.
fn writer(
    patch: impl Fn(u32, &Value) -> http::Response<kube::client::Body> + Clone + Send + Sync + 'static,
) -> (Writer, Log) {
    let seen = Log::default();
    let log = Arc::clone(&seen);
    let count = Arc::new(AtomicU32::new(0));
    let client = testing::client(move |method, path, body| {
        log.lock().unwrap().push((format!("{method} {path}"), body.clone()));
        let answer = if method == "GET" {
            testing::answer(200, &pool("7", 1))
        } else {
            patch(count.fetch_add(1, Ordering::Relaxed), &body)
        };
        async move { answer }
    });
    (Writer::new(client, 4), seen)
}

#[tokio::test]
async fn sends_only_what_differs_and_only_for_the_version_it_came_from() {
    let (writer, seen) = writer(|_, _| testing::answer(200, &pool("6", 3)));
    let known = read(pool("5", 1));
    let written = writer.status(&known, |p| p.status.get_or_insert_default().nodes = 3).await.unwrap();
    assert_eq!(written.unwrap().metadata.resource_version.as_deref(), Some("6"));
    let (request, body) = seen.lock().unwrap()[0].clone();
    assert!(request.starts_with("PATCH /apis/karpenter.sh/v1/nodepools/general/status"), "{request}");
    assert_eq!(body, json!({"metadata": {"resourceVersion": "5", "uid": "p"}, "status": {"nodes": 3}}));
}

#[tokio::test]
async fn a_change_of_nothing_is_not_sent() {
    let (writer, seen) = writer(|_, _| panic!("nothing to write"));
    let known = read(pool("5", 1));
    assert!(writer.status(&known, |p| p.status.get_or_insert_default().nodes = 1).await.unwrap().is_none());
    // A change of another part is not this call's business either.
    assert!(writer.status(&known, |p| p.metadata.finalizers = None).await.unwrap().is_none());
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_conflict_reads_again_and_an_overloaded_server_is_given_time() {
    let (writer, seen) = writer(|n, _| match n {
        0 => testing::status(409, "Conflict", "changed"),
        1 => testing::status(429, "TooManyRequests", "later"),
        2 => testing::status(500, "InternalError", "oops"),
        _ => testing::answer(200, &pool("8", 3)),
    });
    let known = read(pool("5", 1));
    let now = jiff::Timestamp::UNIX_EPOCH;
    let written = writer
        .status(&known, |p| {
            p.set_true(conditions::VALIDATION_SUCCEEDED, now);
        })
        .await
        .unwrap();
    assert!(written.is_some());
    let seen = seen.lock().unwrap();
    let verbs: Vec<&str> = seen.iter().map(|(r, _)| r.split(' ').next().unwrap()).collect();
    assert_eq!(verbs, ["PATCH", "GET", "PATCH", "PATCH", "PATCH"]);
    assert_eq!(seen[2].1["metadata"]["resourceVersion"], "7");
}

#[tokio::test(start_paused = true)]
async fn gives_up_with_the_right_reason() {
    let known = read(pool("5", 1));
    let mut change = |p: &mut NodePool| p.metadata.finalizers = Some(vec!["b".into()]);
    for (code, reason, expected) in [
        (404, "NotFound", "NotFound"),
        (422, "Invalid", "Refused"),
        (403, "Forbidden", "Refused"),
        (409, "Conflict", "Conflict"),
        (503, "x", "Unavailable"),
    ] {
        let (writer, _) = writer(move |_, _| testing::status(code, reason, "why"));
        let error = writer.object(&known, &mut change).await.unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{code}: {error:?}");
    }
}

#[tokio::test]
async fn an_object_of_the_same_name_and_another_uid_is_left_alone() {
    let (writer, _) = writer(|_, _| testing::status(409, "Conflict", "uid"));
    let mut other = pool("5", 1);
    other["metadata"]["uid"] = json!("older");
    let result = writer.object(&read(other), |p| p.metadata.finalizers = None).await;
    assert!(matches!(result, Err(WriteError::NotFound)));
}

#[tokio::test]
async fn deleting_what_is_gone_is_no_error() {
    let (gone, _) = writer(|_, _| testing::status(404, "NotFound", "x"));
    assert!(!gone.delete::<NodePool>("general", Some("p")).await.unwrap());
    let (there, seen) = writer(|_, _| testing::answer(200, &pool("5", 1)));
    assert!(there.delete::<NodePool>("general", Some("p")).await.unwrap());
    assert_eq!(seen.lock().unwrap()[0].1["preconditions"]["uid"], "p");
}

#[test]
fn merge_patches() {
    let cases = [
        (json!({"a": 1}), json!({"a": 1}), None),
        (json!({"a": 1, "b": 2}), json!({"b": 3}), Some(json!({"a": null, "b": 3}))),
        (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": 1, "z": 3}}), Some(json!({"a": {"y": null, "z": 3}}))),
        (json!({"l": [1, 2]}), json!({"l": [2]}), Some(json!({"l": [2]}))),
        (json!({}), json!({"a": {"b": {}}}), Some(json!({"a": {"b": {}}}))),
        (json!({"a": {"b": 1}}), json!({"a": {}}), Some(json!({"a": {"b": null}}))),
    ];
    for (from, to, expected) in cases {
        assert_eq!(merge_patch(&from, &to), expected, "{from} -> {to}");
    }
}
