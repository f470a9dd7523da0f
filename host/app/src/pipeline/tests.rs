use mortise_api::nodepool::NodePoolSpec;
use mortise_engine::quantity::Resources;
use mortise_engine::requirement::{Operator, Requirement};

use super::*;

fn decided() -> Claim {
    Claim {
        nodepool: "default".into(),
        nodepool_uid: "pool-uid".into(),
        node_class: ("karpenter.k8s.aws".into(), "EC2NodeClass".into(), "default".into()),
        labels: [("karpenter.sh/nodepool".into(), "default".into())].into(),
        annotations: BTreeMap::new(),
        requirements: vec![Requirement {
            key: "topology.kubernetes.io/zone".into(),
            operator: Operator::In,
            values: vec!["us-east-1a".into()],
            min_values: None,
        }],
        requests: Resources { cpu_milli: 1500, memory: 1 << 30, pods: 3, ..Default::default() },
        taints: vec![Taint { key: "t".into(), value: "".into(), effect: Effect::NoExecute }],
        startup_taints: Vec::new(),
        expire_after: Some("720h".into()),
        termination_grace_period: Some("1h".into()),
        pods: Vec::new(),
        buffer_pods: 0,
        cheapest: None,
    }
}

#[test]
fn decision_becomes_a_claim() {
    let pool = NodePool::new("default", NodePoolSpec::default());
    let claim = node_claim(&decided(), &pool, "default-x");
    let json = serde_json::to_value(&claim).unwrap();
    assert_eq!(json["metadata"]["finalizers"], serde_json::json!([finalizers::TERMINATION]));
    assert_eq!(json["metadata"]["ownerReferences"][0]["uid"], "pool-uid");
    assert_eq!(json["metadata"]["ownerReferences"][0]["blockOwnerDeletion"], true);
    assert_eq!(json["spec"]["nodeClassRef"]["name"], "default");
    assert_eq!(
        json["spec"]["resources"]["requests"],
        serde_json::json!({"cpu": "1500m", "memory": "1Gi", "pods": "3"})
    );
    assert_eq!(json["spec"]["requirements"][0]["values"], serde_json::json!(["us-east-1a"]));
    assert_eq!(json["spec"]["taints"], serde_json::json!([{"key": "t", "effect": "NoExecute"}]));
    assert_eq!(json["spec"]["expireAfter"], "720h");
    assert_eq!(json["spec"]["terminationGracePeriod"], "1h");
}

#[test]
fn names_are_valid_and_differ() {
    let long = "a".repeat(70);
    for pool in ["default", "gpu.pool", long.as_str()] {
        let name = name(pool);
        assert!(name.len() <= 63, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.'), "{name}");
        assert!(name.starts_with(pool.get(..7).unwrap()));
    }
    assert_ne!(name("default"), name("default"));
}
