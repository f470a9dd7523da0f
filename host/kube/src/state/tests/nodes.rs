use super::*;

#[test]
fn node_and_claim_merge_by_provider_id_in_either_order() {
    for claim_first in [true, false] {
        let mut state = ClusterState::new();
        let (c, n) = (claim("general-abc", "aws:///a/i-1"), managed_node("ip-1", "aws:///a/i-1", false, false));
        if claim_first {
            state.claim_in(c);
            state.node_in(n);
        } else {
            state.node_in(n);
            state.claim_in(c);
        }
        let node = state.only_node();
        assert_eq!(&*node.name, "general-abc", "named by the claim until registered");
        assert_eq!(node.node_name.as_deref(), Some("ip-1"));
        assert_eq!(node.labels.get("team").map(AsRef::as_ref), Some("a"), "labels of the claim until registered");
        assert!(node.launched && !node.registered && !node.initialized);
        // The kubelet does not know the GPU yet: the claim does. What it knows, it knows better.
        assert_eq!((node.capacity.get("nvidia.com/gpu"), node.allocatable.pods), (1, 110));
        state.node_in(managed_node("ip-1", "aws:///a/i-1", true, false));
        let node = state.only_node();
        assert_eq!(&*node.name, "ip-1");
        assert!(node.labels.contains_key("kubernetes.io/hostname") && !node.labels.contains_key("team"));
        state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
        let node = state.only_node();
        assert!(node.initialized && node.ready);
        assert_eq!(node.capacity.get("nvidia.com/gpu"), 0, "initialised: the Node's values only");
        assert_eq!(node.nodepool.as_deref(), Some("general"));
    }
}

#[test]
fn an_unlaunched_claim_is_in_flight_with_its_requirements() {
    let mut state = ClusterState::new();
    state.claim_in(claim("c", ""));
    let node = state.only_node();
    assert_eq!(node.requirements.len(), 2);
    assert_eq!(&*node.labels["kubernetes.io/arch"], "amd64");
    assert!(!node.labels.contains_key("node.kubernetes.io/instance-type"));
    assert!(!node.launched && node.allocatable.is_zero());
    // Launched: found under its provider id, requirements final.
    state.claim_in(claim("c", "aws:///a/i-1"));
    let node = state.only_node();
    assert!(node.launched && node.requirements.is_empty());
    assert_eq!(node.allocatable.cpu_milli, 3900);
}

#[test]
fn a_managed_node_is_left_out_until_it_can_be_told_whose_it_is() {
    let mut state = ClusterState::new();
    let labels = json!({"karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m5.xlarge"});
    state.node_in(node_record(node_json("ip-1", "", labels)));
    assert!(state.view(NOW).nodes.is_empty());
    state.node_in(node_record(node_json("ip-1", "aws:///a/i-1", json!({"karpenter.sh/nodepool": "general"}))));
    assert!(state.view(NOW).nodes.is_empty(), "starting, and its type is not known");
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, false));
    assert_eq!(state.view(NOW).nodes.len(), 1);
    // Unmanaged nodes need no provider id.
    state.node_in(node_record(node_json("mine", "", json!({}))));
    let snapshot = state.view(NOW);
    assert!(snapshot.nodes["mine"].initialized && snapshot.nodes["mine"].node_claim.is_none());
}

#[test]
fn passing_taints_are_hidden_while_starting_and_real_ones_are_not() {
    let taints = json!([
        {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "karpenter.sh/unregistered", "effect": "NoExecute"},
        {"key": "readiness.k8s.io/cni", "effect": "NoSchedule"},
        {"key": "starting", "value": "other", "effect": "NoSchedule"},
        {"key": "karpenter.sh/rebooting", "effect": "NoSchedule"},
        {"key": "dedicated", "value": "x", "effect": "NoSchedule"},
    ]);
    let tainted = |registered: bool, initialized: bool| {
        let mut labels = json!({"karpenter.sh/nodepool": "general", "node.kubernetes.io/instance-type": "m5.xlarge"});
        if registered {
            labels["karpenter.sh/registered"] = json!("true");
        }
        if initialized {
            labels["karpenter.sh/initialized"] = json!("true");
        }
        let mut node = node_json("ip-1", "aws:///a/i-1", labels);
        node["spec"]["taints"] = taints.clone();
        node_record(node)
    };
    let keys = |node: &Node| node.taints.iter().map(|t| t.key.to_string()).collect::<Vec<_>>();
    let mut state = ClusterState::new();
    state.claim_in(claim("c", "aws:///a/i-1"));
    state.node_in(tainted(false, false));
    assert_eq!(keys(&state.only_node()), ["dedicated"], "the claim's own until registered");
    state.node_in(tainted(true, false));
    assert_eq!(keys(&state.only_node()), ["dedicated"]);
    state.node_in(tainted(true, true));
    assert_eq!(state.only_node().taints.len(), 6, "initialised: all count");
    // A reboot brings the node back: its fence does not count.
    let mut rebooting = claim_json("c", "aws:///a/i-1");
    rebooting["status"]["conditions"].as_array_mut().unwrap().push(json!({"type": "Rebooting", "status": "True", "reason": "r", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    state.claim_in(claim_from(rebooting));
    assert_eq!(keys(&state.only_node()), ["dedicated"]);
    // Without a claim the node is somebody else's: all count.
    state.apply(Event::NodeClaim(Delta::Deleted(ObjectName::new("", "c"))), NOW);
    assert_eq!(state.only_node().taints.len(), 6);
}

#[test]
fn deletion_of_the_claim_counts_and_of_the_node_only_without_one() {
    let mut state = ClusterState::new();
    let mut node = node_json(
        "ip-1",
        "aws:///a/i-1",
        json!({"karpenter.sh/nodepool": "general", "karpenter.sh/initialized": "true", "karpenter.sh/registered": "true"}),
    );
    node["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    state.node_in(node_record(node));
    assert!(state.only_node().deleting);
    state.claim_in(claim("c", "aws:///a/i-1"));
    assert!(!state.only_node().deleting);
    let mut going = claim_json("c", "aws:///a/i-1");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    state.claim_in(claim_from(going));
    assert!(state.only_node().deleting && state.deleting("c") && state.deleting("ip-1"));
}

#[test]
fn marks_and_nominations_survive_launch_and_end_with_the_claim() {
    let mut state = ClusterState::new();
    state.claim_in(claim("c", ""));
    state.nominate("c", &[], NOW + 20_000);
    assert!(state.mark_for_deletion("c"));
    state.claim_in(claim("c", "aws:///a/i-1"));
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    let node = state.only_node();
    assert!(node.deleting);
    assert_eq!(node.nominated_until_unix_ms, NOW + 20_000);
    assert!(state.nominated("ip-1", NOW) && !state.nominated("ip-1", NOW + 20_000));
    assert_eq!(state.usage(NOW).get("general"), None, "a marked node's capacity counts no more");
    assert!(state.unmark("c"));
    let usage = &state.usage(NOW)["general"];
    assert_eq!((usage.nodes, usage.resources.cpu_milli), (1, 4000));
    assert!(!state.mark_for_deletion("other"));
}

#[test]
fn a_provider_id_that_appears_later_joins_the_halves() {
    let mut state = ClusterState::new();
    state.claim_in(claim("c", ""));
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, false));
    assert_eq!(state.view(NOW).nodes.len(), 2);
    state.claim_in(claim("c", "aws:///a/i-1"));
    let node = state.only_node();
    assert_eq!((&*node.name, node.node_claim.as_deref()), ("ip-1", Some("c")));
    assert_eq!(state.claim_of_node("ip-1").unwrap().metadata.name.as_deref(), Some("c"));
    assert_eq!(&*state.node_of_claim("c").unwrap().name, "ip-1");
    // Deleting one half leaves the other in place.
    state.apply(Event::Node(Delta::Deleted(ObjectName::new("", "ip-1"))), NOW);
    assert_eq!(&*state.only_node().name, "c");
    state.apply(Event::NodeClaim(Delta::Deleted(ObjectName::new("", "c"))), NOW);
    assert!(state.view(NOW).nodes.is_empty());
}

#[test]
fn a_node_and_a_claim_of_one_name_are_two_nodes_until_joined() {
    let mut state = ClusterState::new();
    state.claim_in(claim("twin", ""));
    state.node_in(node_record(node_json("twin", "other:///1", json!({}))));
    assert_eq!(state.view(NOW).nodes.len(), 2);
    state.apply(Event::Node(Delta::Deleted(ObjectName::new("", "twin"))), NOW);
    assert!(state.only_node().node_claim.is_some());
}

#[test]
fn heartbeats_tell_nobody_but_keep_the_version() {
    let mut state = ClusterState::new();
    state.node_in(managed_node("ip-1", "aws:///a/i-1", true, true));
    let first = state.only_node();
    let mut again = managed_node("ip-1", "aws:///a/i-1", true, true);
    again.resource_version = "2".into();
    assert_eq!(state.node_in(again), []);
    assert_eq!(&*state.node("ip-1").unwrap().resource_version, "2");
    assert!(Arc::ptr_eq(&first, &state.only_node()), "not built again");
}

#[test]
fn an_older_version_of_a_claim_does_not_replace_a_newer() {
    let with = |version: &str, provider: &str| {
        let mut value = claim_json("c", provider);
        value["metadata"]["resourceVersion"] = json!(version);
        claim_from(value)
    };
    let mut state = ClusterState::new();
    state.claim_in(with("9", "aws:///a/i-1"));
    assert_eq!(state.claim_in(with("8", "")), []);
    assert!(state.only_node().launched);
    assert_eq!(state.claim_in(with("10", "")).len(), 1);
}
