use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use mortise_api::nodeclaim::NodeClaimSpec;
use mortise_api::nodepool::NodePoolSpec;
use mortise_api::taints;
use mortise_cloud::InstanceState;
use mortise_engine::catalog::CapacityType;
use mortise_engine::quantity::Resources;
use mortise_engine::taint::{Effect, Taint};
use mortise_kube::record::NodeCondition;

use super::*;

const ID: &str = "aws:///us-east-1a/i-1";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn claim() -> NodeClaim {
    let mut claim = NodeClaim::new("default-a", NodeClaimSpec { expire_after: "Never".into(), ..Default::default() });
    claim.metadata.uid = Some("uid-1".into());
    claim.metadata.generation = Some(1);
    claim.metadata.creation_timestamp = Some(Time(at(0)));
    claim.metadata.finalizers = Some(vec![finalizers::TERMINATION.into()]);
    claim.metadata.labels =
        Some([(labels::NODEPOOL.to_owned(), "default".to_owned()), ("team".into(), "a".into())].into());
    claim
}

fn instance() -> Instance {
    Instance {
        provider_id: ID.into(),
        instance_type: "m6i.large".into(),
        zone: "us-east-1a".into(),
        capacity_type: CapacityType::Spot,
        image_id: "ami-1".into(),
        claim_name: None,
        claim_uid: None,
        nodepool: None,
        node_class: None,
        labels: [("team".into(), "b".into()), (labels::ZONE.into(), "us-east-1a".into())].into(),
        annotations: [("note".into(), "x".into())].into(),
        capacity: Resources { cpu_milli: 2000, ..Default::default() },
        allocatable: Resources { cpu_milli: 1900, ..Default::default() },
        launched_at_unix_ms: 0,
        state: InstanceState::Pending,
        subnet: None,
        security_groups: Vec::new(),
        tags: BTreeMap::new(),
    }
}

fn taint(key: &str, effect: Effect) -> Taint {
    Taint { key: key.into(), value: "".into(), effect }
}

fn node() -> NodeRecord {
    NodeRecord {
        name: "ip-10-0-0-1".into(),
        uid: "node-uid".into(),
        resource_version: "7".into(),
        provider_id: Some(ID.into()),
        taints: vec![taint(taints::UNREGISTERED, Effect::NoExecute)],
        conditions: vec![NodeCondition {
            kind: "Ready".into(),
            status: "True".into(),
            reason: "KubeletReady".into(),
            since_unix_ms: None,
        }],
        allocatable: Resources { cpu_milli: 1900, ..Default::default() },
        ..NodeRecord::default()
    }
}

fn pool(after: &str) -> NodePool {
    let mut spec = NodePoolSpec::default();
    spec.disruption.consolidate_after = after.into();
    NodePool::new("default", spec)
}

/// Plans with one node, and carries the result over to the next plan.
struct Case {
    claim: NodeClaim,
    nodes: Vec<Arc<NodeRecord>>,
    pool: Option<NodePool>,
    launch: Launch,
    pod_event: Option<i64>,
}

impl Case {
    fn new() -> Self {
        Self { claim: claim(), nodes: Vec::new(), pool: Some(pool("30s")), launch: Launch::NotAsked, pod_event: None }
    }

    fn plan(&mut self, seconds: i64) -> Plan {
        let plan = plan(&Input {
            claim: &self.claim,
            nodes: &self.nodes,
            pool: self.pool.as_ref(),
            launch: self.launch.clone(),
            pod_event_unix_ms: self.pod_event,
            now: at(seconds),
        });
        self.claim = plan.claim.clone();
        plan
    }

    fn launched(mut self) -> Self {
        self.launch = Launch::Done(Arc::new(instance()));
        self.plan(2);
        self
    }

    fn reason(&self, type_: &str) -> (String, String) {
        self.claim.condition(type_).map(|c| (c.status.clone(), c.reason.clone())).unwrap_or_default()
    }
}

fn pair(status: &str, reason: &str) -> (String, String) {
    (status.into(), reason.into())
}

#[test]
fn nothing_is_launched_before_the_finalizer_is_asked_for() {
    let mut case = Case::new();
    case.claim.metadata.finalizers = None;
    let plan = case.plan(1);
    assert_eq!(plan.claim.metadata.finalizers, Some(vec![finalizers::TERMINATION.to_owned()]));
    // The driver launches only once the written claim carries it.
    assert!(plan.launch);
}

#[test]
fn launch_is_asked_for_and_failures_are_told() {
    let mut case = Case::new();
    let plan = case.plan(1);
    assert!(plan.launch && plan.delete.is_none());
    assert_eq!(case.reason(kind::LAUNCHED).0, "Unknown");
    case.launch = Launch::Failed { reason: "AMINotFound".into(), message: "x".repeat(5000) };
    let plan = case.plan(10);
    assert!(plan.launch);
    assert_eq!(case.reason(kind::LAUNCHED), pair("Unknown", "AMINotFound"));
    assert_eq!(case.claim.condition(kind::LAUNCHED).unwrap().message.len(), MESSAGE_LIMIT);
    // The condition's time is that of the creation, whatever was tried since.
    assert_eq!(transition(&case.claim, kind::LAUNCHED), Some(at(0)));
}

#[test]
fn instance_is_taken_over() {
    let case = Case::new().launched();
    let status = case.claim.status.as_ref().unwrap();
    assert_eq!(status.provider_id.as_deref(), Some(ID));
    assert_eq!(status.image_id.as_deref(), Some("ami-1"));
    assert_eq!(status.capacity.get("cpu"), Some(&Quantity("2".into())));
    assert_eq!(status.allocatable.get("cpu"), Some(&Quantity("1900m".into())));
    // The claim's own labels win, the instance's fill in.
    assert_eq!(case.claim.labels().get("team").map(String::as_str), Some("a"));
    assert_eq!(case.claim.labels().get(labels::ZONE).map(String::as_str), Some("us-east-1a"));
    assert_eq!(case.claim.annotations().get("note").map(String::as_str), Some("x"));
    assert_eq!(case.reason(kind::LAUNCHED), pair("True", "Launched"));
    assert_eq!(case.reason(kind::REGISTERED), pair("Unknown", "NodeNotFound"));
}

#[test]
fn node_is_registered_and_initialized_in_one_pass() {
    let mut case = Case::new();
    case.claim.spec.taints = vec![taints::Taint::new("dedicated", Some("a"), taints::Effect::NoSchedule)];
    let mut case = case.launched();
    case.nodes = vec![Arc::new(node())];
    let plan = case.plan(30);
    assert_eq!(plan.milestones, [Milestone::Registered, Milestone::Initialized]);
    let patch = plan.node.unwrap().patch().unwrap();
    assert_eq!(
        patch["spec"]["taints"],
        serde_json::json!([{"key": "dedicated", "value": "a", "effect": "NoSchedule"}])
    );
    assert_eq!(patch["metadata"]["labels"][labels::REGISTERED], "true");
    assert_eq!(patch["metadata"]["labels"][labels::INITIALIZED], "true");
    assert_eq!(patch["metadata"]["labels"]["team"], "a");
    assert_eq!(patch["metadata"]["finalizers"], serde_json::json!([finalizers::TERMINATION]));
    assert_eq!(patch["metadata"]["ownerReferences"][0]["uid"], "uid-1");
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(case.claim.status.as_ref().unwrap().node_name.as_deref(), Some("ip-10-0-0-1"));
    assert_eq!(case.reason("Ready"), pair("True", "Ready"));
    assert!(plan.notes.is_empty());
}

#[test]
fn initialization_waits_and_says_for_what() {
    let not_ready = {
        let mut n = node();
        n.conditions.clear();
        n
    };
    let startup = {
        let mut n = node();
        n.taints.push(taint("startup", Effect::NoSchedule));
        n
    };
    let ephemeral = {
        let mut n = node();
        n.taints.push(taint("node.kubernetes.io/not-ready", Effect::NoExecute));
        n
    };
    let no_gpu = node();
    for (n, reason) in [
        (not_ready, "NodeNotReady"),
        (startup, "StartupTaintsExist"),
        (ephemeral, "KnownEphemeralTaintsExist"),
        (no_gpu, "ResourceNotRegistered"),
    ] {
        let mut case = Case::new();
        case.claim.spec.startup_taints = vec![taints::Taint::new("startup", None, taints::Effect::NoSchedule)];
        if reason == "ResourceNotRegistered" {
            case.claim.spec.startup_taints.clear();
            case.claim.spec.resources.requests = [("nvidia.com/gpu".to_owned(), Quantity("1".into()))].into();
        }
        let mut case = case.launched();
        // The node registers first; its startup taints are merged at that moment and must go later.
        let mut n = n;
        if reason != "StartupTaintsExist" {
            n.labels.insert(labels::DO_NOT_SYNC_TAINTS.into(), "true".into());
        }
        case.nodes = vec![Arc::new(n)];
        let plan = case.plan(30);
        assert_eq!(plan.milestones, [Milestone::Registered], "{reason}");
        assert_eq!(case.reason(kind::INITIALIZED), pair("Unknown", reason));
        assert_ne!(case.reason("Ready").0, "True");
    }
}

#[test]
fn missing_taint_is_told_and_several_nodes_are_refused() {
    let mut case = Case::new().launched();
    let mut bare = node();
    bare.taints.clear();
    case.nodes = vec![Arc::new(bare)];
    let plan = case.plan(30);
    assert!(matches!(plan.notes.as_slice(), [Note::UnregisteredTaintMissing { .. }]));
    let mut case = Case::new().launched();
    case.nodes = vec![Arc::new(node()), Arc::new(NodeRecord { name: "other".into(), ..node() })];
    case.plan(30);
    assert_eq!(case.reason(kind::REGISTERED), pair("False", "MultipleNodesFound"));
}

#[test]
fn timeouts() {
    let mut case = Case::new();
    assert_eq!(case.plan(299).delete, None);
    assert_eq!(case.plan(300).delete, Some(Deletion::LaunchTimeout));
    // A call under way decides first.
    case.launch = Launch::InFlight;
    assert_eq!(case.plan(400).delete, None);
    let mut case = Case::new().launched();
    assert_eq!(case.plan(899).delete, None);
    assert_eq!(case.plan(900).delete, Some(Deletion::RegistrationTimeout));
}

#[test]
fn expiry_and_deleted_nodes() {
    let mut case = Case::new();
    case.claim.spec.expire_after = "1h".into();
    let mut case = case.launched();
    case.nodes = vec![Arc::new(node())];
    let plan = case.plan(60);
    assert_eq!((plan.delete, plan.again), (None, Some(Duration::from_secs(30))));
    assert_eq!(case.plan(3600).delete, Some(Deletion::Expired));
    case.nodes = vec![Arc::new(NodeRecord { deletion_unix_ms: Some(1), ..node() })];
    assert_eq!(case.plan(70).delete, Some(Deletion::NodeDeleted));
}

#[test]
fn consolidatable_after_quiet() {
    let mut case = Case::new().launched();
    case.nodes = vec![Arc::new(node())];
    let plan = case.plan(30);
    assert!(!case.claim.is_true(kind::CONSOLIDATABLE));
    assert_eq!(plan.again, Some(Duration::from_secs(30)));
    case.plan(60);
    assert!(case.claim.is_true(kind::CONSOLIDATABLE));
    // A pod comes: back to waiting, and the time is kept.
    case.pod_event = Some(at(70).as_millisecond());
    case.plan(71);
    assert!(!case.claim.is_true(kind::CONSOLIDATABLE));
    assert_eq!(case.claim.status.as_ref().unwrap().last_pod_event_time, Some(Time(at(70))));
    // The next one within ten seconds counts, but is not written.
    case.pod_event = Some(at(75).as_millisecond());
    let plan = case.plan(76);
    assert_eq!(case.claim.status.as_ref().unwrap().last_pod_event_time, Some(Time(at(70))));
    assert_eq!(plan.again, Some(Duration::from_secs(29)));
    case.pool = Some(pool("Never"));
    case.plan(500);
    assert!(!case.claim.is_true(kind::CONSOLIDATABLE));
}

/// A second look at the same facts changes nothing: no patch is sent.
#[test]
fn settled_claims_are_left_alone() {
    let mut case = Case::new().launched();
    case.nodes = vec![Arc::new(node())];
    case.plan(30);
    let before = case.claim.clone();
    let mut settled = node();
    settled.taints.clear();
    settled.finalizers = vec![finalizers::TERMINATION.into()];
    settled.owners = vec!["default-a".into()];
    case.nodes = vec![Arc::new(settled)];
    let plan = case.plan(40);
    assert_eq!(case.claim, before);
    assert!(plan.node.is_none_or(|n| n.patch().is_none()));
    assert!(plan.milestones.is_empty());
}
