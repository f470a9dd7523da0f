use mortise_api::nodeclaim::{NodeClaimSpec, NodeClaimStatus};
use mortise_cloud::InstanceState;
use mortise_engine::catalog::CapacityType;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn instance(id: &str, uid: Option<&str>, launched: i64) -> Instance {
    Instance {
        provider_id: id.into(),
        instance_type: "m6i.large".into(),
        zone: "a".into(),
        capacity_type: CapacityType::Spot,
        image_id: "ami".into(),
        claim_name: None,
        claim_uid: uid.map(Into::into),
        nodepool: None,
        node_class: None,
        labels: Default::default(),
        annotations: Default::default(),
        capacity: Default::default(),
        allocatable: Default::default(),
        launched_at_unix_ms: at(launched).as_millisecond(),
        state: InstanceState::Running,
        subnet: None,
        security_groups: Vec::new(),
        tags: Default::default(),
    }
}

fn claim(uid: &str, provider: Option<&str>) -> Arc<NodeClaim> {
    let mut claim = NodeClaim::new(uid, NodeClaimSpec::default());
    claim.metadata.uid = Some(uid.into());
    claim.status = Some(NodeClaimStatus { provider_id: provider.map(Into::into), ..Default::default() });
    if provider.is_some() {
        claim.set_true(kind::LAUNCHED, at(0));
        claim.set_true(kind::REGISTERED, at(0));
    }
    Arc::new(claim)
}

#[test]
fn only_old_instances_of_nobody_are_collected() {
    let instances = [
        instance("i-known", Some("u1"), 0),
        instance("i-unlaunched", Some("u2"), 0),
        instance("i-young", Some("gone"), 80),
        instance("i-orphan", Some("gone"), 0),
        instance("i-untagged", None, 0),
        Instance { state: InstanceState::ShuttingDown, ..instance("i-going", None, 0) },
    ];
    let claims = [claim("u1", Some("i-known")), claim("u2", None)];
    let ids: Vec<&str> = orphans(&instances, &claims, at(100)).iter().map(|i| &*i.provider_id).collect();
    assert_eq!(ids, ["i-orphan", "i-untagged"]);
}

#[test]
fn registered_claims_without_an_instance() {
    let going = {
        let mut c = NodeClaim::clone(&claim("u3", Some("i-3")));
        c.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)));
        Arc::new(c)
    };
    let claims = [claim("u1", Some("i-1")), claim("u2", Some("i-2")), going, claim("u4", None)];
    let listed = [instance("i-1", None, 0)];
    let names = |at| widows(&claims, &listed, at).iter().map(|c| c.name_any()).collect::<Vec<_>>();
    assert_eq!(names(at(100)), ["u2"]);
    // Just launched: the list may not show it yet.
    assert!(names(at(10)).is_empty());
}
