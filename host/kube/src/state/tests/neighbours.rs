//! What the engine is told of the pods on a node: those that stay, their ports, their volumes.

use super::*;

const EBS: &str = "ebs.csi.aws.com";

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A pod with volumes: `(name, claim)`.
fn with_claims(mut pod: Value, claims: &[&str]) -> PodRecord {
    let volumes: Vec<Value> = claims
        .iter()
        .enumerate()
        .map(|(i, claim)| json!({"name": format!("v{i}"), "persistentVolumeClaim": {"claimName": claim}}))
        .collect();
    pod["spec"]["volumes"] = json!(volumes);
    pod_record(pod)
}

impl ClusterState {
    fn claim_of_class(&mut self, name: &str, class: &str) {
        let pvc: objects::PersistentVolumeClaim =
            read(json!({"metadata": {"namespace": "default", "name": name}, "spec": {"storageClassName": class}}));
        self.apply(Event::Pvc(Delta::Applied(Arc::new(Converter::default().pvc(&pvc)))), NOW);
    }
    fn class(&mut self, name: &str, provisioner: &str, default_since: Option<&str>) {
        let annotations = default_since.map(|_| json!({"storageclass.kubernetes.io/is-default-class": "true"}));
        let class: objects::StorageClass = read(
            json!({"metadata": {"name": name, "annotations": annotations, "creationTimestamp": default_since.unwrap_or("2026-01-01T00:00:00Z")},
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}),
        );
        self.apply(Event::StorageClass(Delta::Applied(Arc::new(Converter::default().storage_class(&class)))), NOW);
    }
    fn csi_node(&mut self, name: &str, count: Value) {
        let node: objects::CsiNode = read(
            json!({"metadata": {"name": name}, "spec": {"drivers": [{"name": EBS, "allocatable": {"count": count}}]}}),
        );
        self.apply(Event::CsiNode(Delta::Applied(Arc::new(Converter::default().csi_node(&node)))), NOW);
    }
    /// What the pod of this name on the only node attaches.
    fn attached(&mut self, pod: &str) -> (Vec<(String, u32)>, Vec<String>) {
        let node = self.only_node();
        let shape = &node.pods.iter().find(|p| &*p.key.name == pod).unwrap().shape;
        let own = shape.attachments.own.iter().map(|(driver, n)| (driver.to_string(), *n)).collect();
        (own, shape.attachments.shared.iter().map(|(driver, claim)| format!("{driver} {claim}")).collect())
    }
}

#[test]
fn pods_that_stay_are_told_by_shape() {
    let mut state = ClusterState::listed();
    state.node_in(node_record(node_json("ip-1", "", json!({}))));
    state.pod_in(pod("web", "ip-1"));
    let mut daemon = pod_json("cni", "ip-1");
    daemon["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "cni", "uid": "ds"}]);
    daemon["spec"]["containers"][0]["ports"] = json!([{"containerPort": 9100, "hostPort": 9100}]);
    state.pod_in(pod_record(daemon));
    let node = state.only_node();
    assert_eq!((node.pods.len(), node.fixed_pods.len()), (1, 1));
    assert_eq!(node.fixed_pods[0].host_ports[0].port, 9100);
    state.apply(Event::Pod(Delta::Deleted(ObjectName::new("default", "cni"))), NOW);
    assert!(state.only_node().fixed_pods.is_empty());
}

#[test]
fn a_promised_pod_counts_for_its_neighbours_until_it_is_bound() {
    let mut state = ClusterState::listed();
    state.claim_in(claim("c", ""));
    state.pod_in(pod("p", ""));
    state.nominate("c", &[key("p")], NOW + 60_000);
    let node = state.only_node();
    assert_eq!(node.fixed_pods.len(), 1);
    assert_eq!(&*node.fixed_pods[0].labels["app"], "web");
    state.pod_in(pod("p", "elsewhere"));
    assert!(state.only_node().fixed_pods.is_empty());
}

#[test]
fn limits_come_from_the_csi_node_of_the_node() {
    let mut state = ClusterState::listed();
    state.csi_node("ip-1", json!(26));
    state.node_in(node_record(node_json("ip-1", "", json!({}))));
    assert_eq!(state.only_node().volume_limits[EBS], Some(26));
    state.csi_node("ip-1", json!(null));
    assert_eq!(state.only_node().volume_limits[EBS], None, "the driver is there and has no limit");
    state.apply(Event::CsiNode(Delta::replaced([])), NOW);
    assert!(state.only_node().volume_limits.is_empty());
}

#[test]
fn a_claim_is_shared_while_several_pods_use_it() {
    let mut state = ClusterState::listed();
    state.node_in(node_record(node_json("ip-1", "", json!({}))));
    state.class("gp3", "kubernetes.io/aws-ebs", None);
    state.class("nfs", "kubernetes.io/no-provisioner", None);
    for (claim, class) in [("data", "gp3"), ("logs", "gp3"), ("share", "nfs")] {
        state.claim_of_class(claim, class);
    }
    state.pod_in(with_claims(pod_json("a", "ip-1"), &["data", "logs", "logs", "share", "missing"]));
    let own = |n| (vec![(EBS.to_owned(), n)], Vec::new());
    assert_eq!(state.attached("a"), own(2), "a claim counts once, what is not attached not at all");
    // A pod that still waits is a user as well.
    state.pod_in(with_claims(pod_json("b", ""), &["data"]));
    let shared = format!("{EBS} default/data");
    assert_eq!(state.attached("a"), (vec![(EBS.to_owned(), 1)], vec![shared.clone()]));
    let pending = Arc::clone(&state.view(NOW).pending[0].shape);
    assert_eq!(&*pending.attachments.shared[0].1, "default/data");
    state.pod_in(with_claims(pod_json("c", "ip-1"), &["data"]));
    state.apply(Event::Pod(Delta::Deleted(ObjectName::new("default", "b"))), NOW);
    assert_eq!(state.attached("c"), (Vec::new(), vec![shared]));
    state.apply(Event::Pod(Delta::Deleted(ObjectName::new("default", "c"))), NOW);
    assert_eq!(state.attached("a"), own(2));
}

#[test]
fn the_driver_is_the_volumes_once_bound_and_equal_pods_are_one_shape() {
    let mut state = ClusterState::listed();
    state.node_in(node_record(node_json("ip-1", "", json!({}))));
    let pv: objects::PersistentVolume =
        read(json!({"metadata": {"name": "pv"}, "spec": {"csi": {"driver": "fsx.csi.aws.com"}}}));
    state.apply(Event::Pv(Delta::Applied(Arc::new(Converter::default().pv(&pv)))), NOW);
    for name in ["a", "b"] {
        let pvc: objects::PersistentVolumeClaim = read(
            json!({"metadata": {"namespace": "default", "name": name, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "pv"}}),
        );
        state.apply(Event::Pvc(Delta::Applied(Arc::new(Converter::default().pvc(&pvc)))), NOW);
    }
    let mut converter = Converter::default();
    for name in ["a", "b"] {
        let mut value = pod_json(name, "ip-1");
        value["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
        let record = converter.pod(&read::<objects::Pod>(value));
        state.pod_in(record);
    }
    assert_eq!(state.attached("a").0, [("fsx.csi.aws.com".to_owned(), 1)]);
    let node = state.only_node();
    assert!(Arc::ptr_eq(&node.pods[0].shape, &node.pods[1].shape));
    assert!(node.pods[0].shape.unsupported.is_empty());
}

#[test]
fn ephemeral_volumes_take_their_class_or_the_newest_default() {
    let mut state = ClusterState::listed();
    state.node_in(node_record(node_json("ip-1", "", json!({}))));
    state.class("old", "old.example.com", Some("2026-01-01T00:00:00Z"));
    state.class("new", "new.example.com", Some("2026-01-02T00:00:00Z"));
    state.class("other", "other.example.com", None);
    for (name, class) in [("explicit", json!("other")), ("default", json!(null)), ("none", json!(""))] {
        let mut value = pod_json(name, "ip-1");
        value["spec"]["volumes"] =
            json!([{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": class}}}}]);
        state.pod_in(pod_record(value));
    }
    let driver =
        |state: &mut ClusterState, pod: &str| state.attached(pod).0.into_iter().map(|(d, _)| d).collect::<String>();
    assert_eq!(driver(&mut state, "explicit"), "other.example.com");
    assert_eq!(driver(&mut state, "default"), "new.example.com");
    assert_eq!(driver(&mut state, "none"), "");
    // The claim that the controller made says more than the template.
    state.claim_of_class("default-v", "old");
    assert_eq!(driver(&mut state, "default"), "old.example.com");
}

#[test]
fn a_broken_claim_holds_up_its_own_pod_only() {
    let mut state = ClusterState::listed();
    state.class("gp3", EBS, None);
    state.claim_of_class("good", "gp3");
    state.claim_of_class("none", "");
    state.pod_in(with_claims(pod_json("a", ""), &["good"]));
    state.pod_in(with_claims(pod_json("b", ""), &["gone"]));
    state.pod_in(with_claims(pod_json("c", ""), &["none"]));
    state.pod_in(pod("d", ""));
    let why: Vec<String> = state.view(NOW).pending.iter().map(|p| p.shape.unsupported.join(";")).collect();
    assert_eq!((why[0].as_str(), why[3].as_str()), ("", ""));
    assert!(why[1].contains("\"gone\" does not exist"), "{why:?}");
    assert!(why[2].contains("names no storageClassName"), "{why:?}");
}

#[test]
fn namespaces_are_their_labels() {
    let mut state = ClusterState::listed();
    let namespace = |labels: Value| -> Event {
        let object: objects::Namespace = read(json!({"metadata": {"name": "default", "labels": labels}}));
        Event::Namespace(Delta::Applied(Arc::new(Converter::default().namespace(&object))))
    };
    state.apply(namespace(json!({"team": "a"})), NOW);
    assert_eq!(&*state.view(NOW).namespaces["default"]["team"], "a");
    state.apply(namespace(json!({"team": "b"})), NOW);
    assert_eq!(&*state.view(NOW).namespaces["default"]["team"], "b");
    state.apply(Event::Namespace(Delta::replaced([])), NOW);
    assert!(state.view(NOW).namespaces.is_empty());
}
