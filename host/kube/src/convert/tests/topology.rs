//! Topology spread, pod affinity and host ports as they arrive at the engine.

use mortise_engine::pod::{HostPort, PodTerm, Spread};
use mortise_engine::requirement::{Operator, Requirement};
use mortise_engine::selector::LabelSelector;

use super::*;

fn labelled(labels: Value, spec: Value) -> PodRecord {
    read_with(json!({"labels": labels}), spec, json!({}))
}

fn spread_over(constraint: Value) -> Value {
    let mut all = json!({"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}});
    all.as_object_mut().unwrap().extend(constraint.as_object().unwrap().clone());
    json!({ "topologySpreadConstraints": [all] })
}

fn anti(term: Value) -> Value {
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

#[test]
fn every_field_of_a_spread_constraint_arrives() {
    let r = labelled(
        json!({"app": "web"}),
        spread_over(json!({"maxSkew": 2, "topologyKey": "failure-domain.beta.kubernetes.io/zone", "minDomains": 3,
            "whenUnsatisfiable": "ScheduleAnyway", "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}})),
    );
    assert_eq!(problems(&r), "");
    let selector = LabelSelector {
        requirements: vec![
            Requirement::new("app", Operator::In, ["web"]),
            Requirement::new("tier", Operator::DoesNotExist, [] as [&str; 0]),
        ],
    };
    let expected = Spread {
        topology_key: "topology.kubernetes.io/zone".into(),
        max_skew: 2,
        schedule_anyway: true,
        selector: Some(selector),
        min_domains: Some(3),
        ignore_node_affinity: true,
        honor_node_taints: true,
    };
    assert_eq!(r.shape.spread, [expected]);
    let r =
        read(spread_over(json!({"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Ignore", "labelSelector": null})));
    let spread = &r.shape.spread[0];
    assert_eq!((spread.ignore_node_affinity, spread.honor_node_taints, spread.min_domains), (false, false, None));
    assert_eq!(spread.selector, None, "a missing selector selects nothing, not everything");
    let r = read(spread_over(json!({"labelSelector": {}})));
    assert_eq!(r.shape.spread[0].selector, Some(LabelSelector::default()), "an empty one selects everything");
}

#[test]
fn match_label_keys_are_merged_once() {
    let own = json!({"app": "web", "pod-template-hash": "abc"});
    let selector = |r: &PodRecord| -> Vec<String> {
        r.shape.spread[0].selector.as_ref().unwrap().requirements.iter().map(ToString::to_string).collect()
    };
    let keys = json!(["pod-template-hash", "missing", "pod-template-hash"]);
    let r = labelled(own.clone(), spread_over(json!({"matchLabelKeys": ["pod-template-hash", "missing"]})));
    assert_eq!(selector(&r), ["app In [web]", "pod-template-hash In [abc]"]);
    // What an API server of 1.34 stores: merged already, the keys still there.
    let stored = json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "pod-template-hash", "operator": "In", "values": ["old"]}]});
    let r = labelled(own, spread_over(json!({"matchLabelKeys": keys, "labelSelector": stored})));
    assert_eq!(selector(&r), ["app In [web]", "pod-template-hash In [old]"], "the label may have changed since");

    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["pod-template-hash"], "mismatchLabelKeys": ["team"]});
    let r = labelled(json!({"app": "web", "pod-template-hash": "abc", "team": "a"}), anti(term));
    let merged: Vec<String> =
        r.shape.pod_anti_affinity[0].selector.as_ref().unwrap().requirements.iter().map(ToString::to_string).collect();
    assert_eq!(merged, ["app In [web]", "pod-template-hash In [abc]", "team NotIn [a]"]);
}

#[test]
fn pod_affinity_terms_keep_namespaces_weights_and_order() {
    let term = |key: &str| json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": "db"}}});
    let mut wide = term("beta.kubernetes.io/arch");
    wide["namespaces"] = json!(["b", "a", "b"]);
    wide["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    let weighted = |weight: i32, key: &str| json!({"weight": weight, "podAffinityTerm": term(key)});
    let r = read(json!({"affinity": {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [wide],
            "preferredDuringSchedulingIgnoredDuringExecution": [weighted(1, "one"), weighted(100, "two")]},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term("kubernetes.io/hostname")],
            "preferredDuringSchedulingIgnoredDuringExecution": [weighted(5, "three")]},
    }}));
    assert_eq!(problems(&r), "");
    let expected = PodTerm {
        topology_key: "kubernetes.io/arch".into(),
        selector: Some(LabelSelector::labels([("app", "db")])),
        namespaces: vec!["a".into(), "b".into()],
        namespace_selector: Some(LabelSelector::labels([("team", "x")])),
    };
    assert_eq!(r.shape.pod_affinity, [expected]);
    let weights = |terms: &[(i32, PodTerm)]| -> Vec<(i32, String)> {
        terms.iter().map(|(w, t)| (*w, t.topology_key.to_string())).collect()
    };
    assert_eq!(weights(&r.shape.preferred_pod_affinity), [(1, "one".into()), (100, "two".into())]);
    assert_eq!(weights(&r.shape.preferred_pod_anti_affinity), [(5, "three".into())]);
    let own = &r.shape.pod_anti_affinity[0];
    assert!(own.namespaces.is_empty() && own.namespace_selector.is_none(), "its own namespace");
    let all = read(anti(json!({"topologyKey": "z", "labelSelector": {}, "namespaceSelector": {}})));
    assert_eq!(all.shape.pod_anti_affinity[0].namespace_selector, Some(LabelSelector::default()));
}

#[test]
fn what_kubernetes_would_refuse_is_explained() {
    let selecting = |expression: Value| spread_over(json!({"labelSelector": {"matchExpressions": [expression]}}));
    for (spec, expected) in [
        (spread_over(json!({"maxSkew": 0})), "spec.topologySpreadConstraints[0].maxSkew is 0"),
        (spread_over(json!({"minDomains": -1})), "minDomains is -1"),
        (spread_over(json!({"topologyKey": ""})), "topologyKey: \"\" is not a label key"),
        (spread_over(json!({"whenUnsatisfiable": "Maybe"})), "use DoNotSchedule or ScheduleAnyway"),
        (spread_over(json!({"nodeAffinityPolicy": "Perhaps"})), "nodeAffinityPolicy \"Perhaps\" is unknown"),
        (spread_over(json!({"nodeTaintsPolicy": "Perhaps"})), "nodeTaintsPolicy"),
        (selecting(json!({"key": "a", "operator": "Gt", "values": ["1"]})), "operator \"Gt\""),
        (selecting(json!({"key": "a", "operator": "In"})), "needs a value"),
        (selecting(json!({"key": "a", "operator": "Exists", "values": ["1"]})), "takes no values"),
        (selecting(json!({"key": "a b", "operator": "Exists"})), "not a label key"),
        (spread_over(json!({"labelSelector": {"matchLabels": {"a": "-"}}})), "not a label value"),
        (
            anti(json!({"labelSelector": {}})),
            "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        ),
        (
            anti(
                json!({"topologyKey": "z", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}),
            ),
            "namespaceSelector: operator \"Near\"",
        ),
        (json!({"containers": [{"name": "c", "ports": [{"hostPort": 70000}]}]}), "hostPort 70000 is not a port"),
    ] {
        let found = problems(&read(spec.clone()));
        assert!(found.contains(expected), "{spec}: {found:?} lacks {expected:?}");
    }
}

#[test]
fn ports_of_containers_and_sidecars_are_the_nodes() {
    let container = |ports: Value| json!({"name": "c", "ports": ports});
    let port = |ip: &str, port: u16, protocol: &str| HostPort { ip: ip.into(), port, protocol: protocol.into() };
    let mut sidecar = container(json!([{"containerPort": 53, "hostPort": 53, "protocol": "UDP"}]));
    sidecar["restartPolicy"] = json!("Always");
    let spec = json!({
        "containers": [container(json!([{"containerPort": 80, "hostPort": 8080}, {"containerPort": 81}])),
            container(json!([{"hostPort": 8080, "hostIP": "0.0.0.0", "protocol": "TCP"}, {"hostPort": 9, "hostIP": "10.0.0.1"}]))],
        "initContainers": [sidecar, container(json!([{"hostPort": 1234}]))],
    });
    let r = read(spec);
    assert_eq!(r.shape.host_ports, [port("", 53, "UDP"), port("", 8080, "TCP"), port("10.0.0.1", 9, "TCP")]);
    // A template is not defaulted by the API server as a pod is.
    let r = read(json!({"hostNetwork": true, "containers": [container(json!([{"containerPort": 9100}]))]}));
    assert_eq!(r.shape.host_ports, [port("", 9100, "TCP")]);
    assert_eq!(problems(&r), "");
}
