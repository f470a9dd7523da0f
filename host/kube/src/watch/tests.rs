use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::testing;

/// Answers for requests whose path contains a word, in order; afterwards (and for all other kinds) an empty list, and a
/// watch on which nothing happens.
type Script = Arc<Mutex<VecDeque<(u16, String)>>>;

fn start(
    word: &'static str,
    script: Vec<(u16, String)>,
) -> (Watches, mpsc::Receiver<Event>, Script, Arc<Mutex<Vec<String>>>) {
    let script: Script = Arc::new(Mutex::new(script.into()));
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let (answers, requests) = (Arc::clone(&script), Arc::clone(&log));
    let client = testing::client(move |_method, path, _body| {
        let next = if path.contains(word) {
            requests.lock().unwrap().push(path.clone());
            answers.lock().unwrap().pop_front()
        } else {
            None
        };
        async move {
            match next {
                Some((code, text)) => {
                    http::Response::builder().status(code).body(kube::client::Body::from(text.into_bytes())).unwrap()
                }
                None if path.contains("watch=true") => std::future::pending().await,
                None => testing::answer(200, &list("1", None, &[])),
            }
        }
    });
    let options = Options { policies: Some(("karpenter".into(), "policies".into())), ..Options::default() };
    let (watches, events) = Watches::start(&client, &options);
    (watches, events, script, log)
}

fn list(version: &str, more: Option<&str>, items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": version, "continue": more}, "items": items})
}

fn pod(name: &str, version: &str) -> Value {
    let mut pod = testing::pod_json(name, name);
    pod["metadata"]["resourceVersion"] = json!(version);
    pod
}

fn events(lines: &[(&str, Value)]) -> String {
    lines.iter().map(|(kind, object)| format!("{}\n", json!({"type": kind, "object": object}))).collect()
}

fn ok(value: &Value) -> (u16, String) {
    (200, value.to_string())
}

/// The next event of pods.
async fn next(events: &mut mpsc::Receiver<Event>) -> Delta<PodRecord> {
    loop {
        if let Event::Pod(delta) = tokio::time::timeout(Duration::from_secs(600), events.recv()).await.unwrap().unwrap()
        {
            return delta;
        }
    }
}

fn names(delta: &Delta<PodRecord>) -> Vec<String> {
    match delta {
        Delta::Replaced { objects, .. } => objects.iter().map(|p| p.key.name.to_string()).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn pages_are_gathered_and_the_watch_goes_on_from_there() {
    let script = vec![
        ok(&list("", Some("next"), &[pod("a", "1"), pod("b", "2")])),
        ok(&list("10", None, &[pod("c", "3")])),
        (
            200,
            events(&[
                ("ADDED", pod("d", "11")),
                ("BOOKMARK", json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "20"}})),
                ("DELETED", pod("a", "21")),
            ]),
        ),
        (200, events(&[("MODIFIED", pod("b", "22"))])),
    ];
    let (_watches, mut receiver, _, log) = start("/pods", script);
    assert_eq!(names(&next(&mut receiver).await), ["a", "b", "c"]);
    assert!(matches!(next(&mut receiver).await, Delta::Applied(p) if &*p.key.name == "d"));
    assert!(matches!(next(&mut receiver).await, Delta::Deleted(n) if &*n.name == "a" && &*n.namespace == "default"));
    assert!(matches!(next(&mut receiver).await, Delta::Applied(p) if &*p.key.name == "b"));
    let log = log.lock().unwrap();
    assert!(log[0].contains("limit=500") && !log[0].contains("resourceVersion="), "a consistent list: {}", log[0]);
    assert!(log[0].contains("fieldSelector=status.phase%21%3DSucceeded"), "{}", log[0]);
    assert!(log[2].contains("resourceVersion=10") && log[3].contains("resourceVersion=21"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_lists_anew_and_what_vanished_is_deleted() {
    let gone = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "too old", "reason": "Expired", "code": 410});
    let script = vec![
        ok(&list("10", None, &[pod("a", "1"), pod("b", "2")])),
        (200, events(&[("ERROR", gone.clone())])),
        (410, gone.to_string()),
        ok(&list("50", None, &[pod("b", "2"), pod("c", "40")])),
    ];
    let (_watches, mut receiver, ..) = start("/pods", script);
    let mut state = crate::state::ClusterState::new();
    state.apply(Event::Pod(next(&mut receiver).await), 0);
    let again = next(&mut receiver).await;
    assert_eq!(names(&again), ["b", "c"]);
    let changes = state.apply(Event::Pod(again), 0);
    assert!(
        changes.iter().any(|c| matches!(c, crate::state::Change::Pod { name, gone: true, .. } if &*name.name == "a"))
    );
    assert_eq!(state.pods().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_asked_again_with_growing_pauses() {
    let refused = || {
        (500, json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "InternalError", "code": 500, "metadata": {}}).to_string())
    };
    let mut script: Vec<_> = (0..6).map(|_| refused()).collect();
    script.push(ok(&list("10", None, &[pod("a", "1")])));
    let (_watches, mut receiver, _, log) = start("/pods", script);
    let started = tokio::time::Instant::now();
    assert_eq!(names(&next(&mut receiver).await), ["a"]);
    assert_eq!(log.lock().unwrap().iter().filter(|r| !r.contains("watch=true")).count(), 7);
    assert!(started.elapsed() > Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_relist_can_be_asked_for() {
    let script = vec![ok(&list("10", None, &[pod("a", "1")]))];
    let (watches, mut receiver, script, _) = start("/pods", script);
    assert_eq!(names(&next(&mut receiver).await), ["a"]);
    script.lock().unwrap().push_back(ok(&list("11", None, &[pod("b", "1")])));
    // Let the first watch request be on its way, so that it does not take the answer.
    tokio::time::sleep(Duration::from_secs(1)).await;
    if script.lock().unwrap().is_empty() {
        script.lock().unwrap().push_back(ok(&list("11", None, &[pod("b", "1")])));
    }
    watches.relist(&[Kind::Pod]);
    loop {
        let delta = next(&mut receiver).await;
        if matches!(delta, Delta::Replaced { .. }) {
            assert_eq!(names(&delta), ["b"]);
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_unreadable_claim_does_not_hide_the_others() {
    let claim = |name: &str, spec: Value| json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": name, "uid": name, "resourceVersion": "1", "managedFields": [{"manager": "x"}]}, "spec": spec});
    let good = json!({"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}, "requirements": [
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large", "m5.xlarge"]}]});
    let script = vec![
        ok(&list(
            "10",
            None,
            &[claim("good", good.clone()), claim("bad", json!({"requirements": 7})), claim("twin", good)],
        )),
        (200, events(&[("MODIFIED", claim("good", json!("nonsense")))])),
    ];
    let (_watches, mut receiver, ..) = start("/nodeclaims", script);
    let mut seen = 0;
    while seen < 2 {
        let Event::NodeClaim(delta) = receiver.recv().await.unwrap() else { continue };
        seen += 1;
        match delta {
            Delta::Replaced { objects, undecodable } => {
                assert_eq!(objects.len(), 2);
                assert_eq!(&*undecodable[0].0.name, "bad");
                assert!(objects[0].metadata.managed_fields.is_none());
                let values = |i: usize| &objects[i].spec.requirements[0].values;
                assert!(Arc::ptr_eq(values(0), values(1)), "equal lists are one allocation");
            }
            Delta::Undecodable { name, message } => {
                assert_eq!(&*name.name, "good");
                assert!(!message.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn everything_is_listed_and_dropping_the_watches_ends_them() {
    let (watches, mut receiver, ..) = start("/nothing", vec![]);
    let mut state = crate::state::ClusterState::new();
    while !state.synced() {
        state.apply(receiver.recv().await.unwrap(), 0);
    }
    drop(watches);
    assert!(receiver.recv().await.is_none());
}
