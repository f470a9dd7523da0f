use super::*;

#[test]
fn bound_pods_use_their_node_and_waiting_ones_are_pending() {
    let mut state = ClusterState::listed();
    // Pods before their node: nothing is lost.
    state.pod_in(pod("a", "ip-1"));
    state.pod_in(daemon_pod("d", "ip-1"));
    let changes = state.pod_in(pod("w", ""));
    assert!(changes.contains(&Change::Provisionable(key("w"))));
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    let node = state.only_node();
    assert_eq!((node.used.cpu_milli, node.used.pods, node.daemon_used.cpu_milli), (2000, 2, 1000));
    assert_eq!(node.pods.len(), 1, "the DaemonSet's pod does not move");
    let snapshot = state.view(NOW);
    assert_eq!(snapshot.pending.len(), 1);
    assert_eq!(snapshot.pending[0].key, key("w"));
    // Bound now.
    state.pod_in(pod("w", "ip-1"));
    assert_eq!(state.only_node().used.cpu_milli, 3000);
    assert!(state.view(NOW).pending.is_empty());
    // Rebound under the same name, terminal, gone.
    state.pod_in(pod("w", "ip-2"));
    assert_eq!(state.only_node().used.cpu_milli, 2000);
    let mut done = pod_json("a", "ip-1");
    done["status"]["phase"] = json!("Succeeded");
    state.pod_in(pod_record(done));
    assert_eq!(state.only_node().used.cpu_milli, 1000);
    state.apply(Event::Pod(Delta::Deleted(ObjectName::new("default", "d"))), NOW);
    assert!(state.only_node().used.is_zero());
    assert_eq!(state.pods_on("ip-2").len(), 1);
}

#[test]
fn what_is_provisionable() {
    let mut state = ClusterState::listed();
    let mut cases = Vec::new();
    let mut other_reason = pod_json("gated", "");
    other_reason["status"]["conditions"][0]["reason"] = json!("SchedulingGated");
    cases.push(other_reason);
    let mut nominated = pod_json("nominated", "");
    nominated["status"]["nominatedNodeName"] = json!("ip-1");
    cases.push(nominated);
    let mut mirror = pod_json("mirror", "");
    mirror["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]);
    cases.push(mirror);
    for case in cases {
        state.pod_in(pod_record(case));
    }
    state.pod_in(daemon_pod("daemon", ""));
    let mut refuses = pod_json("refuses", "");
    refuses["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}]}}});
    state.pod_in(pod_record(refuses));
    assert!(state.view(NOW).pending.is_empty());
    assert_eq!(state.refusing().count(), 1);
}

#[test]
fn a_promised_pod_is_not_placed_again_until_the_promise_ends() {
    let mut state = ClusterState::listed();
    state.pod_in(pod("w", ""));
    // The claim was created and is not in the watch yet.
    state.nominate("c", &[key("w")], NOW + 20_000);
    assert!(state.view(NOW).pending.is_empty());
    assert_eq!(state.view(NOW + 20_000).pending.len(), 1, "a claim that never shows up holds nobody");
    state.claim_in(claim("c", ""));
    state.nominate("c", &[key("w")], NOW + 20_000);
    let snapshot = state.view(NOW + 60_000);
    assert!(snapshot.pending.is_empty(), "in flight: the promise holds beyond its time");
    assert_eq!(snapshot.nodes["c"].used.cpu_milli, 1000);
    assert_eq!(state.promised_to(&ObjectName::new("default", "w")).map(AsRef::as_ref), Some("c"));
    // Launched, registered under another name: still the same promise.
    state.claim_in(claim("c", "aws:///a/i-1"));
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, false));
    assert_eq!(state.view(NOW + 60_000).nodes["ip-1"].used.cpu_milli, 1000);
    // Initialised and still unbound after its time: looked at again.
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    let snapshot = state.view(NOW + 60_000);
    assert_eq!((snapshot.pending.len(), snapshot.nodes["ip-1"].used.cpu_milli), (1, 0));
    // Promised to an existing node by its name, then bound elsewhere.
    state.nominate("ip-1", &[key("w")], NOW + 90_000);
    assert_eq!(state.view(NOW + 60_000).nodes["ip-1"].used.cpu_milli, 1000);
    state.pod_in(pod("w", "ip-9"));
    assert!(state.view(NOW + 60_000).nodes["ip-1"].used.is_zero());
}

#[test]
fn a_promise_ends_with_its_claim_and_with_a_mark() {
    for how in 0..3 {
        let mut state = ClusterState::listed();
        state.pod_in(pod("w", ""));
        state.claim_in(claim("c", ""));
        state.nominate("c", &[key("w")], NOW + 20_000);
        assert!(state.view(NOW).pending.is_empty());
        match how {
            0 => {
                state.apply(Event::NodeClaim(Delta::Deleted(ObjectName::new("", "c"))), NOW);
            }
            1 => {
                state.mark_for_deletion("c");
            }
            _ => {
                let mut going = claim_json("c", "");
                going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                state.claim_in(claim_from(going));
            }
        }
        assert_eq!(state.view(NOW).pending.len(), 1, "case {how}");
    }
}

#[test]
fn pods_of_a_node_that_goes_stay_with_it() {
    let mut state = ClusterState::listed();
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    state.claim_in(claim("c", "aws:///a/i-1"));
    state.pod_in(pod("a", "ip-1"));
    state.mark_for_deletion("c");
    state.claim_in(claim("new", ""));
    state.nominate("new", &[key("a")], NOW + 20_000);
    let snapshot = state.view(NOW);
    assert!(snapshot.nodes["new"].used.is_zero(), "not counted twice: it is found on its own node");
    assert_eq!(snapshot.nodes["ip-1"].pods.len(), 1);
}

#[test]
fn pod_events_are_dated_on_managed_nodes_after_the_first_list() {
    let mut state = ClusterState::new();
    state.claim_in(claim("c", "aws:///a/i-1"));
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    let event = |changes: &[Change]| changes.contains(&Change::PodEvent { claim: "c".into() });
    let first = state.apply(Event::Pod(Delta::replaced([pod("old", "ip-1")])), NOW);
    assert!(!event(&first) && state.last_pod_event("c").is_none(), "what was there before us is no news");
    assert!(event(&state.pod_in(pod("a", "ip-1"))));
    assert_eq!(state.only_node().last_pod_event_unix_ms, Some(NOW));
    let mut labelled = pod_json("a", "ip-1");
    labelled["metadata"]["labels"]["x"] = json!("y");
    assert!(!event(&state.pod_in(pod_record(labelled.clone()))));
    assert!(!event(&state.pod_in(daemon_pod("d", "ip-1"))));
    labelled["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(event(&state.pod_in(pod_record(labelled))));
    let later = NOW + 5_000;
    assert!(event(&state.apply(Event::Pod(Delta::Deleted(ObjectName::new("default", "a"))), later)));
    assert_eq!(state.last_pod_event("c"), Some(later));
    // A relist that misses a pod is its deletion; one that changes nothing is no event.
    assert!(event(&state.apply(Event::Pod(Delta::replaced([daemon_pod("d", "ip-1")])), later)));
    let quiet = state.apply(Event::Pod(Delta::replaced([daemon_pod("d", "ip-1")])), later);
    assert_eq!(quiet, [Change::Listed(Kind::Pod)]);
}

#[test]
fn budgets_block_as_the_eviction_api_does() {
    let pdb = |name: &str, allowed: i64, more: Value| {
        let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
        for (k, v) in more.as_object().unwrap() {
            spec[k] = v.clone();
        }
        json!({"metadata": {"namespace": "default", "name": name}, "spec": spec, "status": {"disruptionsAllowed": allowed}})
    };
    let mut state = ClusterState::listed();
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    state.pod_in(pod("a", "ip-1"));
    let blocked = |state: &mut ClusterState| {
        let node = state.only_node();
        (node.pods[0].blocked_by_pdb.as_deref().map(str::to_owned), node.pods[0].fully_blocked)
    };
    assert_eq!(blocked(&mut state), (None, false));
    state.pdb_in(pdb("one", 0, json!({})));
    assert_eq!(blocked(&mut state), (Some("one".into()), false));
    state.pdb_in(pdb("one", 1, json!({})));
    assert_eq!(blocked(&mut state), (None, false));
    state.pdb_in(pdb("two", 1, json!({})));
    assert_eq!(blocked(&mut state), (Some("one, two".into()), true), "two budgets: the API refuses");
    state.apply(Event::Pdb(Delta::Deleted(ObjectName::new("default", "two"))), NOW);
    state.pdb_in(pdb("one", 0, json!({"maxUnavailable": 0})));
    assert_eq!(blocked(&mut state), (Some("one".into()), true));
    state.pdb_in(pdb("one", 0, json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"})));
    assert_eq!(blocked(&mut state), (Some("one".into()), false), "a healthy pod");
    let mut unhealthy = pod_json("a", "ip-1");
    unhealthy["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    state.pod_in(pod_record(unhealthy));
    assert_eq!(blocked(&mut state), (None, false));
    // Another namespace's budget is not ours.
    state.pod_in(pod("a", "ip-1"));
    state.apply(Event::Pdb(Delta::replaced([])), NOW);
    let mut other = pdb("one", 0, json!({}));
    other["metadata"]["namespace"] = json!("other");
    state.pdb_in(other);
    assert_eq!(blocked(&mut state), (None, false));
}

#[test]
fn protection_by_time_ends_without_an_event() {
    let mut state = ClusterState::listed();
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    let mut held = pod_json("a", "ip-1");
    held["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "1h"});
    state.pod_in(pod_record(held));
    assert!(state.view(NOW).nodes["ip-1"].pods[0].do_not_disrupt);
    assert!(state.view(NOW + 3_599_999).nodes["ip-1"].pods[0].do_not_disrupt);
    assert!(!state.view(NOW + 3_600_000).nodes["ip-1"].pods[0].do_not_disrupt);
    let mut daemon = pod_json("d", "ip-1");
    daemon["metadata"]["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
    daemon["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "ds"}]);
    state.pod_in(pod_record(daemon));
    let node = state.only_node();
    assert_eq!((node.pods.len(), node.blocking_pods.len()), (1, 1));
}

#[test]
fn daemonset_shapes_follow_the_newest_pod_with_the_templates_affinity() {
    let set = |cpu: &str| -> DaemonSetRecord {
        let ds: objects::DaemonSet = serde_json::from_value(json!({"metadata": {"namespace": "default", "name": "cni", "uid": "ds"}, "spec": {"template": {"spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": [{"hostPort": 80}]}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}}}}})).unwrap();
        Converter::default().daemonset(&ds)
    };
    let mut state = ClusterState::listed();
    state.apply(Event::DaemonSet(Delta::replaced([set("100m")])), NOW);
    let shape = |state: &mut ClusterState| Arc::clone(&state.view(NOW).daemons[0]);
    assert_eq!(shape(&mut state).requests.cpu_milli, 100);
    let mut newer = pod_json("d-2", "ip-2");
    newer["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "ds"}]);
    newer["metadata"]["creationTimestamp"] = json!("2026-01-02T00:00:00Z");
    newer["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("3");
    state.pod_in(daemon_pod("d-1", "ip-1"));
    assert_eq!(shape(&mut state).requests.cpu_milli, 1000);
    state.pod_in(pod_record(newer));
    let newest = shape(&mut state);
    assert_eq!(newest.requests.cpu_milli, 3000);
    assert_eq!(&*newest.required_affinity[0][0].key, "a");
    assert!(newest.unsupported.is_empty());
    assert!(Arc::ptr_eq(&newest, &shape(&mut state)), "shared from one snapshot to the next");
    state.apply(Event::Pod(Delta::Deleted(ObjectName::new("default", "d-2"))), NOW);
    assert_eq!(shape(&mut state).requests.cpu_milli, 1000);
    state.apply(Event::DaemonSet(Delta::replaced([])), NOW);
    assert!(state.view(NOW).daemons.is_empty());
}

#[test]
fn volumes_constrain_or_explain() {
    let mut state = ClusterState::listed();
    let mut with = pod_json("w", "");
    with["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]);
    state.pod_in(pod_record(with));
    let reason = |state: &mut ClusterState| state.view(NOW).pending[0].shape.unsupported.join(";");
    assert!(reason(&mut state).contains("\"data\" does not exist"));
    let pvc = |spec: Value, annotations: Value| {
        let pvc: objects::PersistentVolumeClaim = serde_json::from_value(
            json!({"metadata": {"namespace": "default", "name": "data", "annotations": annotations}, "spec": spec}),
        )
        .unwrap();
        Event::Pvc(Delta::Applied(Arc::new(Converter::default().pvc(&pvc))))
    };
    state.apply(pvc(json!({}), json!({})), NOW);
    assert!(reason(&mut state).contains("names no storageClassName"));
    state.apply(pvc(json!({"storageClassName": "gp3"}), json!({})), NOW);
    assert!(reason(&mut state).contains("\"gp3\", which does not exist"));
    let class = |mode: &str, topologies: Value| {
        let class: objects::StorageClass = serde_json::from_value(
            json!({"metadata": {"name": "gp3"}, "volumeBindingMode": mode, "allowedTopologies": topologies}),
        )
        .unwrap();
        Event::StorageClass(Delta::Applied(Arc::new(Converter::default().storage_class(&class))))
    };
    state.apply(class("Immediate", json!(null)), NOW);
    assert!(reason(&mut state).contains("binds at once"));
    state.apply(class("WaitForFirstConsumer", json!(null)), NOW);
    assert_eq!(reason(&mut state), "");
    assert!(state.view(NOW).pending[0].shape.volume_alternatives.is_empty());
    let zones =
        |zs: Value| json!([{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": zs}]}]);
    state.apply(class("WaitForFirstConsumer", zones(json!(["a", "b"]))), NOW);
    let alternatives = state.view(NOW).pending[0].shape.volume_alternatives.clone();
    assert_eq!((alternatives.len(), &*alternatives[0][0].key), (1, "topology.kubernetes.io/zone"));
    state.apply(
        pvc(json!({"volumeName": "pv", "storageClassName": "gp3"}), json!({"pv.kubernetes.io/bind-completed": "yes"})),
        NOW,
    );
    assert!(reason(&mut state).contains("PersistentVolume \"pv\", which does not exist"));
    let pv: objects::PersistentVolume = serde_json::from_value(
        json!({"metadata": {"name": "pv"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["c"]}]}]}}}}),
    )
    .unwrap();
    state.apply(Event::Pv(Delta::Applied(Arc::new(Converter::default().pv(&pv)))), NOW);
    assert_eq!(reason(&mut state), "");
    assert_eq!(&*state.view(NOW).pending[0].shape.volume_alternatives[0][0].values[0], "c");
}
