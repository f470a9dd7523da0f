use mortise_engine::decision::BufferFit;
use mortise_engine::node::Node;
use serde_json::json;

use super::*;

fn key(namespace: &str, name: &str) -> ObjectName {
    ObjectName::new(namespace, name)
}

fn wanted(uid: &str, replicas: i32) -> Wanted {
    Wanted { uid: uid.into(), shape: Arc::default(), replicas }
}

fn snapshot() -> Snapshot {
    let node = Node { name: "n".into(), node_name: Some("n".into()), node_claim: Some("c".into()), ..Node::default() };
    Snapshot { now_unix_ms: 7, nodes: [("n".into(), Arc::new(node))].into(), ..Snapshot::default() }
}

#[test]
fn buf_001_pods_that_stand_for_a_buffer() {
    let buffers = Buffers::new();
    assert!(buffers.want(&key("ns", "b"), Some(wanted("u", 2))));
    assert!(!buffers.want(&key("ns", "b"), Some(wanted("u", 2))), "the same again is no news");
    let mut snapshot = snapshot();
    buffers.join(&mut snapshot);
    let pods: Vec<(&str, &str, Option<&str>)> =
        snapshot.pending.iter().map(|p| (&*p.key.name, &*p.key.uid, p.buffer.as_deref())).collect();
    assert_eq!(pods, [("capacity-buffer-b-1", "u-1", Some("ns/b")), ("capacity-buffer-b-2", "u-2", Some("ns/b"))]);
    assert!(snapshot.pending.iter().all(|p| p.created_unix_ms == 7 && &*p.key.namespace == "ns"));
    assert!(buffers.want(&key("ns", "b"), None) && !buffers.want(&key("ns", "b"), None));
}

#[test]
fn sta_013_hosts_are_replaced_as_a_whole() {
    let buffers = Buffers::new();
    buffers.want(&key("ns", "b"), Some(wanted("u", 3)));
    let mut before = snapshot();
    buffers.join(&mut before);
    assert_eq!(before.nodes["n"].buffer_pods, 0, "unknown is none");
    let fit = BufferFit { pods: 3, on_nodes: 1, on_claims: 1, unplaced: 1, reason: None };
    let plan =
        Schedule { buffers: [("ns/b".into(), fit)].into(), buffer_nodes: vec![("n".into(), 1)], ..Schedule::default() };
    assert_eq!(buffers.judged(&before, &plan), [key("ns", "b")]);
    assert_eq!(buffers.outcome(&key("ns", "b")), Some(Outcome { existing: 1, new: 1, unplaced: 1 }));
    let mut after = snapshot();
    buffers.join(&mut after);
    assert_eq!(after.nodes["n"].buffer_pods, 1);

    assert!(buffers.judged(&before, &plan).is_empty(), "no news");
    assert_eq!(buffers.judged(&snapshot(), &Schedule::default()), [key("ns", "b")]);
    let mut cleared = snapshot();
    buffers.join(&mut cleared);
    assert_eq!(cleared.nodes["n"].buffer_pods, 0);
}

#[tokio::test]
async fn buf_002_an_event_of_a_workload_concerns_those_that_name_it() {
    let buffers = Buffers::new();
    let object = |namespace: &str, name: &str, spec: serde_json::Value| {
        let object = json!({"metadata": {"namespace": namespace, "name": name}, "spec": spec});
        (key(namespace, name), serde_json::from_value::<CapacityBuffer>(object).unwrap())
    };
    let web = json!({"scalableRef": {"kind": "Deployment", "name": "web"}, "percentage": 10});
    buffers.objects.fill([
        object("a", "of-web", web.clone()),
        object("b", "elsewhere", web),
        object("a", "of-the-set", json!({"scalableRef": {"kind": "StatefulSet", "name": "web"}, "percentage": 10})),
        object("a", "of-the-template", json!({"podTemplateRef": {"name": "web"}, "replicas": 1})),
    ]);
    assert_eq!(buffers.naming("Deployment", &key("a", "web")), [key("a", "of-web")]);
    assert_eq!(buffers.naming("PodTemplate", &key("a", "web")), [key("a", "of-the-template")]);
    assert!(buffers.naming("Deployment", &key("a", "other")).is_empty());
}
