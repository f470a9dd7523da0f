use std::sync::Mutex as StdMutex;

use serde_json::Value;

use super::*;
use crate::testing;

type Log = Arc<StdMutex<Vec<(String, Value)>>>;

fn recorder(code: u16) -> (Recorder, Log) {
    let log = Log::default();
    let seen = Arc::clone(&log);
    let client = testing::client(move |method, path, body| {
        seen.lock().unwrap().push((format!("{method} {path}"), body));
        let answer = if code == 200 {
            testing::answer(200, &serde_json::json!({"metadata": {}, "involvedObject": {}}))
        } else {
            testing::status(code, "x", "x")
        };
        async move { answer }
    });
    (Recorder::start(client, Options::default()), log)
}

fn pod_ref(name: &str) -> ObjectReference {
    pod(&PodKey { namespace: "ns".into(), name: name.into(), uid: format!("uid-{name}").into() })
}

#[tokio::test(start_paused = true)]
async fn equal_events_are_left_out_within_their_window_and_counted_after() {
    let (recorder, log) = recorder(200);
    let failed = || Event::warning(pod_ref("a"), "FailedScheduling", "no room");
    assert!(recorder.publish(failed()));
    assert!(!recorder.publish(failed()));
    assert!(recorder.publish(Event::warning(pod_ref("b"), "FailedScheduling", "no room")));
    assert!(recorder.publish(Event::warning(pod_ref("a"), "FailedScheduling", "another reason")));
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert!(!recorder.publish(failed()), "five minutes for this reason");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(recorder.publish(failed()));
    recorder.flush(Duration::from_secs(5)).await;
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 4);
    assert_eq!(log[0].0.split('?').next(), Some("POST /api/v1/namespaces/ns/events"));
    let body = &log[0].1;
    assert_eq!(
        (&body["involvedObject"]["uid"], &body["type"], &body["source"]["component"]),
        (&"uid-a".into(), &"Warning".into(), &"karpenter".into())
    );
    assert!(body["metadata"]["name"].as_str().unwrap().starts_with("a."));
    let (request, patch) = &log[3];
    assert!(request.starts_with("PATCH /api/v1/namespaces/ns/events/a."), "{request}");
    assert_eq!(patch["count"], 2);
    assert_eq!(recorder.counts(), (4, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn keys_replace_the_message_and_windows_can_be_set() {
    let (recorder, _log) = recorder(200);
    let blocked =
        |n: u32| Event::normal(ObjectReference::default(), "DisruptionBlocked", format!("{n} nodes")).keyed(["budget"]);
    assert!(recorder.publish(blocked(1)) && !recorder.publish(blocked(2)));
    let always = || Event::normal(ObjectReference::default(), "Ready", "changed").within(Duration::ZERO);
    assert!(recorder.publish(always()) && recorder.publish(always()));
}

#[tokio::test(start_paused = true)]
async fn nominations_are_bounded_over_all_pods() {
    let (recorder, _log) = recorder(200);
    let sent = |from: u32| {
        (from..from + 50).filter(|i| recorder.publish(Event::normal(pod_ref(&i.to_string()), "Nominated", "x"))).count()
    };
    assert_eq!(sent(0), 10);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(sent(100), 5);
}

#[tokio::test(start_paused = true)]
async fn a_refusing_server_and_a_full_queue_lose_events_and_block_nobody() {
    let (recorder, _log) = recorder(403);
    for i in 0..3000 {
        recorder.publish(Event::normal(pod_ref(&i.to_string()), "Evicted", "x"));
    }
    recorder.flush(Duration::from_secs(5)).await;
    let (sent, _, dropped) = recorder.counts();
    assert_eq!((sent, dropped), (0, 3000));
    assert!(!recorder.publish(Event::normal(pod_ref("late"), "Evicted", "x")));
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_objects_report_in_the_default_namespace_and_messages_are_cut() {
    let (recorder, log) = recorder(200);
    let record = NodeRecord { name: "ip-1".into(), uid: "u".into(), ..NodeRecord::default() };
    recorder.publish(Event::warning(node(&record), "FailedDraining", "ä".repeat(2000)));
    recorder.flush(Duration::from_secs(5)).await;
    let log = log.lock().unwrap();
    assert!(log[0].0.starts_with("POST /api/v1/namespaces/default/events"));
    assert_eq!(log[0].1["message"].as_str().unwrap().len(), 1024);
}
