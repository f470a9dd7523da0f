use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mortise_api::nodeclaim::{NodeClaimSpec, NodeClaimStatus};
use mortise_engine::pod::PodKey;
use mortise_kube::record::{Hold, NodeCondition, Owner, Phase};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn claim() -> NodeClaim {
    let mut claim = NodeClaim::new("default-a", NodeClaimSpec::default());
    claim.metadata.uid = Some("uid-1".into());
    claim.metadata.deletion_timestamp = Some(Time(at(0)));
    claim.status = Some(NodeClaimStatus { provider_id: Some("aws:///a/i-1".into()), ..Default::default() });
    for kind in [kind::LAUNCHED, kind::REGISTERED, kind::INITIALIZED] {
        claim.set_true(kind, at(-100));
    }
    claim
}

fn node() -> NodeRecord {
    NodeRecord {
        name: "node-a".into(),
        uid: "node-uid".into(),
        resource_version: "7".into(),
        finalizers: vec![finalizers::TERMINATION.into()],
        deletion_unix_ms: Some(at(0).as_millisecond()),
        conditions: vec![NodeCondition {
            kind: "Ready".into(),
            status: "True".into(),
            reason: "".into(),
            since_unix_ms: None,
        }],
        ..NodeRecord::default()
    }
}

fn pod(name: &str) -> PodRecord {
    PodRecord {
        key: PodKey { namespace: "ns".into(), name: name.into(), uid: format!("uid-{name}").into() },
        phase: Phase::Running,
        grace_seconds: Some(30),
        ..PodRecord::default()
    }
}

struct Case {
    claim: NodeClaim,
    nodes: Vec<Arc<NodeRecord>>,
    pods: Vec<Arc<PodRecord>>,
    attached: Attached,
    machine: Machine,
}

impl Case {
    fn new() -> Self {
        Self {
            claim: claim(),
            nodes: vec![Arc::new(node())],
            pods: Vec::new(),
            attached: Attached::NotAsked,
            machine: Machine::NotAsked,
        }
    }

    fn plan(&mut self, seconds: i64) -> Plan {
        let plan = plan(&Input {
            claim: &self.claim,
            nodes: &self.nodes,
            pods: &self.pods,
            attached: self.attached.clone(),
            machine: self.machine,
            now: at(seconds),
        });
        self.claim = plan.claim.clone();
        plan
    }
}

fn evict(name: &str) -> Removal {
    Removal::Evict(pod(name).key)
}

#[test]
fn whole_way_of_an_empty_node() {
    let mut case = Case::new();
    case.nodes = vec![Arc::new(NodeRecord { deletion_unix_ms: None, ..node() })];
    assert_eq!(case.plan(0).step, Step::DeleteNodes(vec!["node-a".into()]));
    case.nodes = vec![Arc::new(node())];
    let plan = case.plan(1);
    assert_eq!(plan.step, Step::Wait(Duration::from_secs(5)));
    let patch = plan.node.unwrap().patch().unwrap();
    assert_eq!(patch["spec"]["taints"], serde_json::json!([{"key": taints::DISRUPTED, "effect": "NoSchedule"}]));
    assert_eq!(patch["metadata"]["labels"][EXCLUDE_FROM_LOAD_BALANCERS.0], "karpenter");
    // The scheduler has seen the taint by now.
    let plan = case.plan(6);
    assert!(plan.drained && case.claim.is_true(kind::DRAINED));
    assert_eq!(plan.step, Step::AskVolumes);
    case.attached = Attached::Volumes(Vec::new());
    assert_eq!(case.plan(6).step, Step::Terminate);
    assert!(case.claim.is_true(kind::VOLUMES_DETACHED) && case.claim.is_true(kind::INSTANCE_TERMINATING));
    case.machine = Machine::Gone;
    assert_eq!(case.plan(11).step, Step::Release);
}

#[test]
fn tiers_go_one_after_the_other() {
    let daemon = |p: PodRecord| PodRecord { owner: Owner::DaemonSet("ds".into()), ..p };
    let critical = |p: PodRecord| PodRecord { critical: true, ..p };
    let mut all = vec![
        Arc::new(critical(daemon(pod("d")))),
        Arc::new(critical(pod("c"))),
        Arc::new(daemon(pod("b"))),
        Arc::new(pod("a1")),
        Arc::new(pod("a2")),
    ];
    let mut tiers = Vec::new();
    while !all.is_empty() {
        let mut case = Case { pods: all.clone(), ..Case::new() };
        let Step::Drain(removals) = case.plan(1).step else { unreachable!("there are pods") };
        all.retain(|p| !removals.iter().any(|r| *r.pod() == p.key));
        tiers.push(removals);
    }
    assert_eq!(tiers, [vec![evict("a1"), evict("a2")], vec![evict("b")], vec![evict("c")], vec![evict("d")]]);
}

#[test]
fn pods_that_are_left_alone_or_waited_for() {
    let mut case = Case::new();
    // Tolerates the taint, is mirror, or is stuck: not waited for.
    case.pods = vec![
        Arc::new(PodRecord { tolerates_disrupted: true, ..pod("tolerates") }),
        Arc::new(PodRecord { owner: Owner::Node, ..pod("mirror") }),
        Arc::new(PodRecord { deletion_unix_ms: Some(at(-120).as_millisecond()), ..pod("stuck") }),
    ];
    assert_eq!(case.plan(1).step, Step::Wait(Duration::from_secs(5)));
    // Terminating, or held by its annotation: waited for, not evicted.
    for waiting in [
        PodRecord { deletion_unix_ms: Some(at(20).as_millisecond()), ..pod("going") },
        PodRecord { hold: Hold::Forever, ..pod("held") },
    ] {
        let mut case = Case { pods: vec![Arc::new(waiting)], ..Case::new() };
        let plan = case.plan(1);
        assert_eq!(plan.step, Step::Drain(Vec::new()));
        assert!(matches!(plan.notes.as_slice(), [Note::FailedDraining { .. }]));
    }
}

#[test]
fn grace_period_bounds_the_drain() {
    let mut case = Case::new();
    case.claim.spec.termination_grace_period = Some("60s".into());
    case.pods = vec![
        Arc::new(pod("quick")),
        Arc::new(PodRecord { grace_seconds: Some(3600), ..pod("slow") }),
        Arc::new(PodRecord { hold: Hold::Forever, ..pod("held") }),
    ];
    let plan = case.plan(1);
    let stamp = plan.claim.annotations().get(annotations::NODECLAIM_TERMINATION_TIMESTAMP).unwrap();
    assert_eq!(stamp.parse::<Timestamp>().unwrap(), at(60));
    assert!(plan.notes.iter().any(|n| matches!(n, Note::TerminationGracePeriodExpiring { .. })));
    // The slow pod's grace does not fit any more: it is deleted now, with what is left.
    assert_eq!(plan.step, Step::Drain(vec![Removal::Delete(pod("slow").key, 59), evict("quick")]));
    // Thirty seconds before the end the others go too, held or not.
    case.pods.remove(1);
    let Step::Drain(removals) = case.plan(31).step else { unreachable!("there are pods") };
    assert_eq!(removals, [Removal::Delete(pod("quick").key, 29), Removal::Delete(pod("held").key, 29)]);
    // Volumes are not waited for beyond it.
    case.pods.clear();
    case.plan(32);
    case.plan(40);
    case.attached = Attached::Volumes(vec!["pv-1".into()]);
    assert_eq!(case.plan(41).step, Step::Wait(Duration::from_secs(1)));
    assert_eq!(case.plan(61).step, Step::Terminate);
    assert_eq!(case.claim.condition(kind::VOLUMES_DETACHED).unwrap().reason, "TerminationGracePeriodElapsed");
}

#[test]
fn dead_machines_are_not_drained() {
    let mut dead = node();
    dead.conditions.clear();
    let mut case = Case { nodes: vec![Arc::new(dead)], pods: vec![Arc::new(pod("a"))], ..Case::new() };
    assert_eq!(case.plan(1).step, Step::AskMachine);
    case.machine = Machine::Gone;
    assert_eq!(case.plan(1).step, Step::Release);
    // It exists: a drain like any other.
    case.machine = Machine::Exists;
    assert_eq!(case.plan(1).step, Step::Drain(vec![evict("a")]));
}

#[test]
fn claims_without_a_node() {
    let mut case = Case { nodes: Vec::new(), ..Case::new() };
    assert_eq!(case.plan(1).step, Step::Terminate);
    case.machine = Machine::Gone;
    assert_eq!(case.plan(1).step, Step::Release);
    // Registered never: the node, whoever made it, is left alone.
    let mut case = Case::new();
    case.claim =
        NodeClaim { status: claim().status.map(|s| NodeClaimStatus { conditions: Vec::new(), ..s }), ..claim() };
    case.nodes = vec![Arc::new(NodeRecord { finalizers: Vec::new(), deletion_unix_ms: None, ..node() })];
    assert_eq!(case.plan(1).step, Step::Terminate);
}
