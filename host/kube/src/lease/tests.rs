use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::testing;

/// One Lease in a fake API server, with optimistic locking and switches for trouble.
#[derive(Default)]
struct Store {
    lease: Option<Value>,
    version: u64,
    /// Every request fails.
    down: bool,
    /// No request is ever answered.
    hangs: bool,
    /// Writes take effect, but their answers are lost.
    loses_answers: bool,
    writes: u64,
}

type Shared = Arc<Mutex<Store>>;

fn client(store: &Shared) -> Client {
    let store = Arc::clone(store);
    testing::client(move |method, _path, body| {
        let store = Arc::clone(&store);
        async move {
            let hangs = store.lock().unwrap().hangs;
            if hangs {
                std::future::pending::<()>().await;
            }
            let mut s = store.lock().unwrap();
            if s.down {
                return testing::status(503, "ServiceUnavailable", "down");
            }
            match (method.as_str(), s.lease.clone()) {
                ("GET", Some(lease)) => testing::answer(200, &lease),
                ("GET" | "PUT", None) => testing::status(404, "NotFound", "no lease"),
                ("POST", Some(_)) => testing::status(409, "AlreadyExists", "exists"),
                ("PUT", Some(lease)) if body["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"] => {
                    testing::status(409, "Conflict", "changed")
                }
                ("POST" | "PUT", _) => {
                    s.version += 1;
                    s.writes += 1;
                    let mut lease = body;
                    lease["metadata"]["resourceVersion"] = json!(s.version.to_string());
                    s.lease = Some(lease.clone());
                    if s.loses_answers {
                        return testing::status(504, "Timeout", "lost");
                    }
                    testing::answer(200, &lease)
                }
                other => panic!("unexpected {other:?}"),
            }
        }
    })
}

fn options(identity: &str) -> Options {
    Options { identity: identity.to_owned(), ..Options::new("karpenter", "host") }
}

fn start(store: &Shared, identity: &str) -> (Leader, CancellationToken) {
    let stop = CancellationToken::new();
    (Leader::start(client(store), options(identity), stop.clone()), stop)
}

async fn seconds(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

fn holder(store: &Shared) -> String {
    store.lock().unwrap().lease.as_ref().map(|l| l["spec"]["holderIdentity"].as_str().unwrap_or("").to_owned()).unwrap()
}

#[test]
fn identities_are_distinct_and_formed() {
    let (a, b) = (identity("host"), identity("host"));
    assert_ne!(a, b);
    let (host, id) = a.split_once('_').unwrap();
    assert_eq!(host, "host");
    assert_eq!(id.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
}

#[tokio::test(start_paused = true)]
async fn leads_renews_and_releases() {
    let store = Shared::default();
    let (leader, stop) = start(&store, "a");
    let leadership = leader.leadership();
    assert!(!leadership.holds());
    leadership.watch().wait_for(|leads| *leads).await.unwrap();
    assert!(leadership.holds());
    {
        let lease = store.lock().unwrap().lease.clone().unwrap();
        assert_eq!(
            (lease["spec"]["leaseDurationSeconds"].as_i64(), lease["spec"]["leaseTransitions"].as_i64()),
            (Some(15), Some(0))
        );
        assert_eq!(lease["metadata"]["name"], "karpenter-leader-election");
    }
    seconds(3600).await;
    assert!(leadership.holds());
    let writes = store.lock().unwrap().writes;
    assert!((1700..=1900).contains(&writes), "one renewal every two seconds: {writes}");
    stop.cancel();
    leader.stopped().await;
    assert!(!leadership.holds());
    assert_eq!(holder(&store), "");
}

#[tokio::test(start_paused = true)]
async fn the_second_takes_over_at_once_after_a_release_and_after_the_lease_when_the_first_vanishes() {
    let store = Shared::default();
    let (first, stop) = start(&store, "a");
    first.leadership().watch().wait_for(|leads| *leads).await.unwrap();
    let (second, _stop_second) = start(&store, "b");
    seconds(60).await;
    assert!(first.leadership().holds() && !second.leadership().holds());
    stop.cancel();
    first.stopped().await;
    let before = Instant::now();
    second.leadership().watch().wait_for(|leads| *leads).await.unwrap();
    assert!(before.elapsed() <= Duration::from_millis(4400), "{:?}", before.elapsed());
    assert_eq!(store.lock().unwrap().lease.as_ref().unwrap()["spec"]["leaseTransitions"], 1);
    // The second vanishes without a word.
    second.task.abort();
    let (third, _stop) = start(&store, "c");
    let before = Instant::now();
    third.leadership().watch().wait_for(|leads| *leads).await.unwrap();
    let took = before.elapsed();
    assert!(took > Duration::from_secs(15) && took < Duration::from_secs(21), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn leadership_is_lost_before_anybody_else_can_have_it() {
    for hangs in [false, true] {
        let store = Shared::default();
        let (leader, _stop) = start(&store, "a");
        let leadership = leader.leadership();
        leadership.watch().wait_for(|leads| *leads).await.unwrap();
        seconds(20).await;
        let last_renewal = Instant::now();
        {
            let mut s = store.lock().unwrap();
            (s.down, s.hangs) = (!hangs, hangs);
        }
        leadership.watch().wait_for(|leads| !*leads).await.unwrap();
        let took = last_renewal.elapsed();
        assert!(took <= Duration::from_secs(12), "gave up after {took:?}");
        assert!(!leadership.holds());
        // It comes back when the API server does.
        {
            let mut s = store.lock().unwrap();
            (s.down, s.hangs) = (false, false);
        }
        leadership.watch().wait_for(|leads| *leads).await.unwrap();
        assert!(leadership.holds());
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_costs_nothing_and_lost_answers_are_found_again() {
    let store = Shared::default();
    let (leader, stop) = start(&store, "a");
    let leadership = leader.leadership();
    let mut watch = leadership.watch();
    watch.wait_for(|leads| *leads).await.unwrap();
    watch.mark_unchanged();
    seconds(3).await;
    store.lock().unwrap().down = true;
    seconds(6).await;
    store.lock().unwrap().down = false;
    seconds(5).await;
    store.lock().unwrap().loses_answers = true;
    seconds(5).await;
    store.lock().unwrap().loses_answers = false;
    seconds(5).await;
    assert!(leadership.holds() && !watch.has_changed().unwrap());
    // The last renewal's answer is lost as well: the release looks again and still works.
    store.lock().unwrap().loses_answers = true;
    seconds(3).await;
    store.lock().unwrap().loses_answers = false;
    stop.cancel();
    leader.stopped().await;
    assert_eq!(holder(&store), "");
}

#[tokio::test(start_paused = true)]
async fn two_that_start_together_do_not_both_lead() {
    let store = Shared::default();
    let elections: Vec<_> = (0..5).map(|i| start(&store, &format!("r{i}"))).collect();
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let leading = elections.iter().filter(|(leader, _)| leader.leadership().holds()).count();
        assert!(leading <= 1, "{leading} lead");
    }
    assert_eq!(elections.iter().filter(|(leader, _)| leader.leadership().holds()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn taken_over_by_somebody_else_is_noticed() {
    let store = Shared::default();
    let (leader, _stop) = start(&store, "a");
    let leadership = leader.leadership();
    leadership.watch().wait_for(|leads| *leads).await.unwrap();
    {
        let mut s = store.lock().unwrap();
        s.version += 1;
        let version = s.version.to_string();
        let lease = s.lease.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("intruder");
        lease["metadata"]["resourceVersion"] = json!(version);
    }
    leadership.watch().wait_for(|leads| !*leads).await.unwrap();
    assert!(!leadership.holds());
}
