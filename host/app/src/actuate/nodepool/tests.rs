use mortise_api::condition::ec2nodeclass;
use mortise_api::nodepool::NodePoolSpec;
use mortise_api::requirement::NodeClassReference;
use mortise_engine::quantity::Resources;

use super::*;

fn now() -> Timestamp {
    Timestamp::from_second(1_000_000).unwrap()
}

fn pool() -> NodePool {
    let mut spec = NodePoolSpec::default();
    spec.template.spec.node_class_ref = NodeClassReference::ec2("default");
    let mut pool = NodePool::new("default", spec);
    pool.metadata.generation = Some(3);
    pool
}

fn class(ready: bool) -> EC2NodeClass {
    let mut class = EC2NodeClass::new("default", Default::default());
    class.metadata.generation = Some(1);
    class.initialize_conditions(now());
    for kind in EC2NodeClass::DEPENDENTS {
        class.set_true(kind, now());
    }
    if !ready {
        let message = "spec.subnetSelectorTerms select nothing";
        class.set_condition(ec2nodeclass::SUBNETS_READY, Status::False, "SubnetsNotFound", message, now());
    }
    class
}

fn judged(pool: &NodePool, class: Option<&EC2NodeClass>) -> NodePool {
    desired(pool, class, &Usage::default(), false, now())
}

fn condition(pool: &NodePool, kind: &str) -> (String, String, String) {
    let c = pool.condition(kind).unwrap();
    (c.status.clone(), c.reason.clone(), c.message.clone())
}

#[test]
fn ready_pool() {
    let usage = Usage { resources: Resources { cpu_milli: 4000, ..Default::default() }, nodes: 2 };
    let wanted = desired(&pool(), Some(&class(true)), &usage, false, now());
    assert!(wanted.is_true(READY));
    let status = wanted.status.as_ref().unwrap();
    assert_eq!(status.nodes, 2);
    assert_eq!(status.resources["cpu"].0, "4");
    assert_eq!(status.resources["memory"].0, "0");
    assert_eq!(status.resources["nodes"].0, "2");
    assert_eq!(wanted.annotations()[annotations::NODEPOOL_HASH_VERSION], hash::VERSION);
    // Judged again: nothing to write.
    let again = desired(&wanted, Some(&class(true)), &usage, false, Timestamp::from_second(1_000_100).unwrap());
    assert_eq!(again, wanted);
}

#[test]
fn trouble_with_the_class_is_told_with_its_reason() {
    let wanted = judged(&pool(), None);
    assert_eq!(condition(&wanted, kind::NODE_CLASS_READY).1, "NodeClassNotFound");
    let wanted = judged(&pool(), Some(&class(false)));
    let (status, reason, message) = condition(&wanted, kind::NODE_CLASS_READY);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "SubnetsNotFound"));
    assert!(message.contains("select nothing"), "{message}");
    assert!(!wanted.is_true(READY));
    let unknown = EC2NodeClass::new("default", Default::default());
    let wanted = judged(&pool(), Some(&unknown));
    assert_eq!(condition(&wanted, kind::NODE_CLASS_READY).0, "Unknown");
    let mut going = class(true);
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    assert_eq!(condition(&judged(&pool(), Some(&going)), kind::NODE_CLASS_READY).1, "NodeClassTerminating");
}

#[test]
fn invalid_pools_say_why() {
    let mut bad = pool();
    bad.spec.template.metadata.labels = [("karpenter.sh/nodepool".to_owned(), "x".to_owned())].into();
    let wanted = judged(&bad, Some(&class(true)));
    let (status, reason, message) = condition(&wanted, kind::VALIDATION_SUCCEEDED);
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NodePoolValidationFailed"));
    assert!(message.contains("karpenter.sh/nodepool"), "{message}");
    let mut fixed = pool();
    fixed.spec.replicas = Some(3);
    let (status, _, message) = condition(&judged(&fixed, Some(&class(true))), kind::VALIDATION_SUCCEEDED);
    assert_eq!(status, "False");
    assert!(message.contains("spec.replicas"), "{message}");
}

#[test]
fn changes_are_events() {
    let old = pool();
    let new = judged(&old, None);
    let told: Vec<String> = changes(&old, &new).iter().map(|n| n.render().message).collect();
    assert!(told.iter().any(|m| m.contains("NodeClassReady") && m.contains("Unknown -> False")), "{told:?}");
    assert!(changes(&new, &new).is_empty());
}
