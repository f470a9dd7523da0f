use serde_json::{Value, json};

use super::*;
use crate::convert::Converter;
use crate::objects;
use crate::record::NodeRecord;
use mortise_api::NodeClaim;
use mortise_engine::node::Node;
use mortise_engine::pod::PodKey;

mod neighbours;
mod nodes;
mod pods;
mod random;
mod spread;

const NOW: i64 = 1_767_225_600_000;

fn pod_record(value: Value) -> PodRecord {
    let pod: objects::Pod = serde_json::from_value(value).unwrap();
    Converter::default().pod(&pod)
}

/// A pod of 1 CPU; bound when `node` is not empty, unschedulable when it is.
fn pod_json(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"namespace": "default", "name": name, "uid": format!("uid-{name}"), "labels": {"app": "web"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]},
        "status": {"phase": if node.is_empty() { "Pending" } else { "Running" }, "startTime": "2026-01-01T00:00:00Z",
            "conditions": if node.is_empty() { json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]) } else { json!([{"type": "Ready", "status": "True"}]) }},
    })
}

fn pod(name: &str, node: &str) -> PodRecord {
    pod_record(pod_json(name, node))
}

fn daemon_pod(name: &str, node: &str) -> PodRecord {
    let mut value = pod_json(name, node);
    value["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "ds"}]);
    pod_record(value)
}

fn node_json(name: &str, provider: &str, labels: Value) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels},
        "spec": {"providerID": provider},
        "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

fn node_record(value: Value) -> NodeRecord {
    let node: objects::Node = serde_json::from_value(value).unwrap();
    Converter::default().node(&node)
}

/// A node of pool `general` in the given stage.
fn managed_node(name: &str, provider: &str, registered: bool, initialized: bool) -> NodeRecord {
    let mut labels = json!({"karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m5.xlarge", "kubernetes.io/hostname": name});
    if registered {
        labels["karpenter.sh/registered"] = json!("true");
    }
    if initialized {
        labels["karpenter.sh/initialized"] = json!("true");
    }
    node_record(node_json(name, provider, labels))
}

fn claim_json(name: &str, provider: &str) -> Value {
    let status = if provider.is_empty() {
        json!({})
    } else {
        json!({"providerID": provider, "capacity": {"cpu": "4", "memory": "8Gi", "pods": "58", "nvidia.com/gpu": "1"},
            "allocatable": {"cpu": "3900m", "memory": "7Gi", "pods": "58", "nvidia.com/gpu": "1"},
            "conditions": [{"type": "Launched", "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"karpenter.sh/nodepool": "general", "team": "a"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}, {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge", "m5.2xlarge"]}],
            "taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}],
            "startupTaints": [{"key": "starting", "effect": "NoSchedule"}]},
        "status": status,
    })
}

fn claim_from(value: Value) -> NodeClaim {
    serde_json::from_value(value).unwrap()
}

fn claim(name: &str, provider: &str) -> NodeClaim {
    claim_from(claim_json(name, provider))
}

impl ClusterState {
    fn pod_in(&mut self, pod: PodRecord) -> Vec<Change> {
        self.apply(Event::Pod(Delta::Applied(Arc::new(pod))), NOW)
    }
    fn node_in(&mut self, node: NodeRecord) -> Vec<Change> {
        self.apply(Event::Node(Delta::Applied(Arc::new(node))), NOW)
    }
    fn claim_in(&mut self, claim: NodeClaim) -> Vec<Change> {
        self.apply(Event::NodeClaim(Delta::Applied(Arc::new(claim))), NOW)
    }
    fn pdb_in(&mut self, value: Value) -> Vec<Change> {
        let pdb: objects::Pdb = serde_json::from_value(value).unwrap();
        self.apply(Event::Pdb(Delta::Applied(Arc::new(Converter::default().pdb(&pdb)))), NOW)
    }
    fn view(&mut self, now: i64) -> Snapshot {
        self.snapshot(now, &BTreeMap::new())
    }
    fn only_node(&mut self) -> Arc<Node> {
        let snapshot = self.view(NOW);
        assert_eq!(snapshot.nodes.len(), 1, "{:?}", snapshot.nodes.keys());
        Arc::clone(snapshot.nodes.values().next().unwrap())
    }
    /// As after the first lists.
    fn listed() -> Self {
        let mut state = Self::new();
        state.apply(Event::Pod(Delta::replaced([])), NOW);
        state
    }
}

fn key(name: &str) -> PodKey {
    PodKey { namespace: "default".into(), name: name.into(), uid: format!("uid-{name}").into() }
}

#[test]
fn synced_once_every_kind_was_listed() {
    let mut state = ClusterState::new();
    assert_eq!(state.unsynced().len(), Kind::ALL.len());
    for event in [
        Event::Pod(Delta::replaced([])),
        Event::Node(Delta::replaced([])),
        Event::NodePool(Delta::replaced([])),
        Event::NodeClaim(Delta::replaced([])),
        Event::NodeClass(Delta::replaced([])),
        Event::DaemonSet(Delta::replaced([])),
        Event::Pdb(Delta::replaced([])),
        Event::Pvc(Delta::replaced([])),
        Event::Pv(Delta::replaced([])),
        Event::StorageClass(Delta::replaced([])),
        Event::CsiNode(Delta::replaced([])),
        Event::Namespace(Delta::replaced([])),
        Event::Service(Delta::replaced([])),
        Event::ReplicaSet(Delta::replaced([])),
        Event::StatefulSet(Delta::replaced([])),
        Event::ReplicationController(Delta::replaced([])),
    ] {
        assert!(matches!(state.apply(event, NOW).as_slice(), [Change::Listed(_)]));
        assert!(!state.synced());
    }
    state.apply(Event::Policies(Delta::replaced([])), NOW);
    assert!(state.synced());
    // An unlaunched claim does not make it unsynced again.
    state.claim_in(claim("c", ""));
    assert!(state.synced());
}

#[test]
fn policies_change_only_with_their_content() {
    let data = |version: &str, value: &str| {
        let map = [("a".to_owned(), value.to_owned())].into();
        Arc::new(PolicyData { resource_version: version.into(), data: map, ..PolicyData::default() })
    };
    let mut state = ClusterState::new();
    let changed = |changes: Vec<Change>| changes.iter().any(|c| matches!(c, Change::Policies(_)));
    assert!(changed(state.apply(Event::Policies(Delta::Applied(data("1", "x"))), NOW)));
    assert!(!changed(state.apply(Event::Policies(Delta::Applied(data("2", "x"))), NOW)));
    assert!(changed(state.apply(Event::Policies(Delta::Applied(data("3", "y"))), NOW)));
    assert!(changed(state.apply(Event::Policies(Delta::Deleted(ObjectName::default())), NOW)));
    assert!(state.policies().is_none());
}

#[test]
fn a_nodepool_is_usable_when_ready_with_a_class_and_a_catalogue() {
    let pool = |ready: &str, version: &str, replicas: Value| -> NodePool {
        serde_json::from_value(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "general", "uid": "p", "resourceVersion": version, "annotations": {"karpenter.sh/nodepool-hash": "1", "other": "x"}},
            "spec": {"replicas": replicas, "limits": {"cpu": "10", "nodes": "3"}, "weight": 7, "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                "requirements": [{"key": "beta.kubernetes.io/arch", "operator": "In", "values": ["arm64"], "minValues": 1}],
                "expireAfter": "Never"}},
                "disruption": {"consolidateAfter": "1m", "budgets": [{"nodes": "10%"}, {"nodes": "0", "schedule": "0 9 * * 1-5", "duration": "8h"}]}},
            "status": {"conditions": [{"type": "Ready", "status": ready, "reason": "r", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap()
    };
    let class: EC2NodeClass = serde_json::from_value(json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {"amiSelectorTerms": [{"alias": "al2023@latest"}], "subnetSelectorTerms": [], "securityGroupSelectorTerms": [], "role": "r"}})).unwrap();
    let mut state = ClusterState::new();
    let catalogs = BTreeMap::from([(Arc::from("default"), Arc::new(Catalog::default()))]);
    let put = |state: &mut ClusterState, pool| state.apply(Event::NodePool(Delta::Applied(Arc::new(pool))), NOW);
    assert_eq!(put(&mut state, pool("True", "1", Value::Null)), [Change::NodePool("general".into())]);
    let snapshot = state.view(NOW);
    assert!(snapshot.nodepools[0].unusable[0].contains("\"default\" does not exist"));
    state.apply(Event::NodeClass(Delta::Applied(Arc::new(class))), NOW);
    assert!(state.view(NOW).nodepools[0].unusable[0].contains("not known yet"));
    let snapshot = state.snapshot(NOW, &catalogs);
    let built = &snapshot.nodepools[0];
    assert!(built.unusable.is_empty(), "{:?}", built.unusable);
    assert_eq!((built.weight, built.limits.nodes, built.limits.resources["cpu"]), (7, Some(3), 10_000));
    assert_eq!(&*built.requirements[0].key, "kubernetes.io/arch");
    assert_eq!(built.disruption.consolidate_after_ms, Some(60_000));
    assert_eq!(built.disruption.budgets[1].duration_ms, Some(8 * 3_600_000));
    assert_eq!(built.expire_after.as_deref(), Some("Never"));
    assert_eq!(built.annotations.len(), 1);
    // Nothing changed: the same allocation.
    assert!(Arc::ptr_eq(built, &state.snapshot(NOW, &catalogs).nodepools[0]));
    put(&mut state, pool("False", "2", Value::Null));
    assert_eq!(&*state.snapshot(NOW, &catalogs).nodepools[0].unusable[0], "it is not Ready: m");
    put(&mut state, pool("True", "3", json!(2)));
    let built = Arc::clone(&state.snapshot(NOW, &catalogs).nodepools[0]);
    assert!(built.is_static && built.unusable[0].contains("spec.replicas"));
    state.apply(Event::NodePool(Delta::replaced([])), NOW);
    assert!(state.view(NOW).nodepools.is_empty());
}

#[test]
fn odd_values_in_a_nodepool_make_it_unusable_and_say_why() {
    let pool: NodePool = serde_json::from_value(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "odd"},
        "spec": {"limits": {"cpu": "many"}, "template": {"spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "KwokNodeClass", "name": "default"},
            "requirements": [{"key": "a", "operator": "Near", "values": ["b"], "minValues": -3}, {"key": "b", "operator": "Exists", "values": ["x"]}],
            "taints": [{"key": "k", "effect": "Sometimes"}],
            "expireAfter": "soon", "terminationGracePeriod": "later"}},
            "disruption": {"consolidateAfter": "never", "consolidationPolicy": "WhenUnderutilized", "budgets": [{"nodes": "half", "schedule": "x", "duration": "long"}]}},
    }))
    .unwrap();
    let mut state = ClusterState::new();
    state.apply(Event::NodePool(Delta::Applied(Arc::new(pool))), NOW);
    let built = Arc::clone(&state.view(NOW).nodepools[0]);
    let why = built.unusable.join("\n");
    for part in [
        "\"Near\"",
        "spec.limits[cpu]",
        "\"Sometimes\"",
        "KwokNodeClass",
        "consolidateAfter",
        "\"WhenUnderutilized\"",
        "not been checked",
    ] {
        assert!(why.contains(part), "{part:?} is not in {why:?}");
    }
    assert_eq!(built.disruption.consolidate_after_ms, None, "a time that cannot be read removes nothing");
    assert_eq!(&*built.disruption.budgets[0].nodes, "0", "a budget that cannot be read lets nothing through");
    assert!(built.requirements[0].values.is_empty());
}

#[test]
fn an_object_that_cannot_be_read_keeps_what_was_known() {
    let mut state = ClusterState::new();
    state.claim_in(claim("c", "aws:///a/i-1"));
    let undecodable = vec![(ObjectName::new("", "c"), Arc::from("missing field"))];
    let changes = state.apply(Event::NodeClaim(Delta::Replaced { objects: vec![], undecodable }), NOW);
    assert!(changes.iter().any(|c| matches!(c, Change::Undecodable { kind: Kind::NodeClaim, .. })));
    assert!(state.nodeclaim("c").is_some());
}
