use mortise_api::condition::READY;
use mortise_api::ec2nodeclass::EC2NodeClassStatus;
use mortise_cloud::ConditionOutcome;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn found(verdicts: &[(&'static str, Verdict)]) -> ClassResolution {
    ClassResolution {
        status: EC2NodeClassStatus::default(),
        conditions: verdicts.iter().map(|(condition, v)| ConditionOutcome { condition, verdict: v.clone() }).collect(),
        requeue_after: Duration::from_secs(60),
    }
}

fn all(verdict: &Verdict) -> Vec<(&'static str, Verdict)> {
    EC2NodeClass::DEPENDENTS.iter().map(|kind| (*kind, verdict.clone())).collect()
}

fn class() -> EC2NodeClass {
    let mut class = EC2NodeClass::new("default", Default::default());
    class.metadata.generation = Some(1);
    class
}

#[test]
fn ready_when_every_part_is() {
    let wanted = desired(&class(), &found(&all(&Verdict::Ready)), None, at(0));
    assert!(wanted.is_true(READY));
    assert!(wanted.annotations().contains_key(annotations::EC2NODECLASS_HASH));
    // Settled: nothing to write a minute later.
    assert_eq!(desired(&wanted, &found(&all(&Verdict::Ready)), None, at(60)), wanted);
}

#[test]
fn a_call_that_failed_changes_no_verdict() {
    let ready = desired(&class(), &found(&all(&Verdict::Ready)), None, at(0));
    let unasked = Verdict::Unasked { reason: "Throttled".into(), message: "RequestLimitExceeded".into() };
    let after = desired(&ready, &found(&all(&unasked)), None, at(60));
    assert!(after.is_true(READY));
    let fresh = desired(&class(), &found(&all(&unasked)), None, at(0));
    assert_eq!(
        fresh.condition(kind::SUBNETS_READY).map(|c| (c.status.as_str(), c.reason.as_str())),
        Some(("Unknown", "Throttled"))
    );
    let gone = Verdict::NotReady { reason: "SubnetsNotFound".into(), message: "nothing".into() };
    let after = desired(&ready, &found(&[(kind::SUBNETS_READY, gone)]), None, at(60));
    assert_eq!(after.condition(READY).map(|c| c.status.as_str()), Some("False"));
}
