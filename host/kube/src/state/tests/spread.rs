//! Default topology spread.

use mortise_engine::pod::Spread;

use super::*;

fn zones() -> Spread {
    Spread { topology_key: "topology.kubernetes.io/zone".into(), max_skew: 1, ..Spread::default() }
}

fn owned(name: &str, node: &str, kind: &str) -> PodRecord {
    let mut value = pod_json(name, node);
    let version = if kind == "ReplicationController" { "v1" } else { "apps/v1" };
    value["metadata"]["ownerReferences"] =
        json!([{"apiVersion": version, "kind": kind, "name": "web", "uid": "u", "controller": true}]);
    pod_record(value)
}

fn workload(kind: &str) -> Event {
    let labels = json!({"app": "web"});
    let object =
        |selector: Value| json!({"metadata": {"namespace": "default", "name": "web"}, "spec": {"selector": selector}});
    let mut c = Converter::default();
    match kind {
        "ReplicaSet" => {
            let set: objects::ReplicaSet = serde_json::from_value(object(
                json!({"matchLabels": labels, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}),
            ))
            .unwrap();
            Event::ReplicaSet(Delta::Applied(Arc::new(c.replica_set(&set))))
        }
        "StatefulSet" => {
            let set: objects::StatefulSet = serde_json::from_value(object(json!({"matchLabels": labels}))).unwrap();
            Event::StatefulSet(Delta::Applied(Arc::new(c.stateful_set(&set))))
        }
        _ => {
            let rc: objects::ReplicationController = serde_json::from_value(object(labels)).unwrap();
            Event::ReplicationController(Delta::Applied(Arc::new(c.replication_controller(&rc))))
        }
    }
}

fn service(name: &str, selector: Value) -> Event {
    let object: objects::Service = serde_json::from_value(
        json!({"metadata": {"namespace": "default", "name": name}, "spec": {"selector": selector}}),
    )
    .unwrap();
    Event::Service(Delta::Applied(Arc::new(Converter::default().service(&object))))
}

/// The selector of the first pending pod's first constraint, as text.
fn selector(state: &mut ClusterState) -> Vec<String> {
    let pending = state.view(NOW).pending;
    let spread = pending[0].shape.spread.first();
    let requirements = spread.and_then(|s| s.selector.as_ref()).map(|s| s.requirements.as_slice()).unwrap_or_default();
    requirements.iter().map(ToString::to_string).collect()
}

#[test]
fn the_owners_selector_and_the_services_that_select_the_pod_are_joined() {
    for (kind, expected) in [
        ("ReplicaSet", &["app In [web]", "x DoesNotExist"][..]),
        ("StatefulSet", &["app In [web]"]),
        ("ReplicationController", &["app In [web]"]),
    ] {
        let mut state = ClusterState::listed();
        state.pod_in(owned("p", "", kind));
        state.apply(workload(kind), NOW);
        assert!(selector(&mut state).is_empty(), "off from the start");
        state.set_default_spread(vec![zones()]);
        assert_eq!(selector(&mut state), expected, "{kind}");
        state.apply(service("other", json!({"app": "db"})), NOW);
        state.apply(service("headless", json!(null)), NOW);
        assert_eq!(selector(&mut state), expected, "{kind}");
        state.apply(service("web", json!({"app": "web"})), NOW);
        assert_eq!(selector(&mut state), expected, "the same label is asked for once");
    }
}

#[test]
fn a_pod_without_owner_and_service_or_with_constraints_of_its_own_takes_none() {
    let mut state = ClusterState::listed();
    state.set_default_spread(vec![zones(), Spread { schedule_anyway: true, ..zones() }]);
    state.pod_in(pod("p", ""));
    assert!(state.view(NOW).pending[0].shape.spread.is_empty());
    state.apply(service("web", json!({"app": "web"})), NOW);
    assert_eq!(state.view(NOW).pending[0].shape.spread.len(), 2);
    assert_eq!(selector(&mut state), ["app In [web]"]);
    let mut own = pod_json("p", "");
    own["spec"]["topologySpreadConstraints"] =
        json!([{"maxSkew": 5, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}]);
    state.pod_in(pod_record(own));
    let spread = state.view(NOW).pending[0].shape.spread.clone();
    assert_eq!((spread.len(), spread[0].max_skew), (1, 5));
}

#[test]
fn pods_on_nodes_take_them_too_and_follow_what_changes() {
    let mut state = ClusterState::listed();
    state.set_default_spread(vec![zones()]);
    state.node_in(node_record(node_json("ip-1", "", json!({}))));
    state.pod_in(owned("p", "ip-1", "ReplicaSet"));
    let spread = |state: &mut ClusterState| state.only_node().pods[0].shape.spread.len();
    assert_eq!(spread(&mut state), 0);
    state.apply(workload("ReplicaSet"), NOW);
    assert_eq!(spread(&mut state), 1);
    let before = state.only_node();
    let mut elsewhere = workload("StatefulSet");
    state.apply(elsewhere.clone(), NOW);
    assert!(Arc::ptr_eq(&before, &state.only_node()), "another kind's object of the same name is no reason to build");
    elsewhere = Event::ReplicaSet(Delta::replaced([]));
    state.apply(elsewhere, NOW);
    assert_eq!(spread(&mut state), 0);
    state.apply(service("web", json!({"app": "web"})), NOW);
    assert_eq!(spread(&mut state), 1);
}
