use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn claim(generation: i64) -> NodeClaim {
    let mut claim = NodeClaim::new("a", Default::default());
    claim.metadata.generation = Some(generation);
    claim
}

#[test]
fn the_transition_time_moves_only_with_the_status() {
    let mut claim = claim(1);
    assert!(claim.set_condition("Launched", Status::Unknown, "LaunchFailed", "no capacity", at(10)));
    assert!(claim.set_condition("Launched", Status::Unknown, "LaunchFailed", "still no capacity", at(20)));
    assert_eq!(claim.condition("Launched").unwrap().last_transition_time, Time(at(10)));
    assert!(claim.set_true("Launched", at(30)));
    let launched = claim.condition("Launched").unwrap();
    assert_eq!((launched.last_transition_time.clone(), launched.reason.as_str()), (Time(at(30)), "Launched"));
    assert!(!claim.set_true("Launched", at(40)), "nothing changed, nothing to write");
}

#[test]
fn a_new_generation_is_recorded_without_moving_the_time() {
    let mut claim = claim(1);
    claim.set_true("Launched", at(10));
    claim.metadata.generation = Some(2);
    assert!(!claim.is_current_true("Launched") && claim.is_true("Launched"));
    assert!(claim.set_true("Launched", at(20)));
    assert_eq!(claim.condition("Launched").unwrap().observed_generation, Some(2));
    assert_eq!(claim.condition("Launched").unwrap().last_transition_time, Time(at(10)));
}

#[test]
fn ready_follows_its_dependents() {
    let mut claim = claim(1);
    assert!(claim.initialize_conditions(at(1)));
    assert!(!claim.initialize_conditions(at(2)));
    let ready = |claim: &NodeClaim| {
        let ready = claim.condition(READY).unwrap();
        (ready.status.clone(), ready.reason.clone(), ready.message.clone())
    };
    let unknown = |message: &str| ("Unknown".to_string(), RECONCILING_DEPENDENTS.to_string(), message.to_string());
    assert_eq!(ready(&claim), unknown("Initialized=Unknown, Launched=Unknown, Registered=Unknown"));
    claim.set_true("Launched", at(3));
    claim.set_condition("Registered", Status::False, "MultipleNodesFound", "two nodes", at(3));
    assert_eq!(ready(&claim), ("False".into(), UNHEALTHY_DEPENDENTS.into(), "Registered=False".into()));
    claim.set_true("Registered", at(4));
    claim.set_true("Initialized", at(5));
    assert_eq!(ready(&claim), ("True".into(), "Ready".into(), String::new()));
    claim.set_condition("Drifted", Status::True, "NodePoolDrifted", "", at(6));
    assert_eq!(ready(&claim).0, "True", "conditions outside the dependents do not matter");
    let types: Vec<_> = claim.conditions().iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(
        types,
        ["Drifted", "Initialized", "Launched", "Ready", "Registered"],
        "ordered, so writes compare equal"
    );
}

#[test]
fn a_verdict_on_an_older_spec_does_not_count() {
    let mut claim = claim(1);
    for type_ in NodeClaim::DEPENDENTS {
        claim.set_true(type_, at(1));
    }
    assert!(claim.is_true(READY));
    claim.metadata.generation = Some(2);
    assert!(claim.set_true("Launched", at(2)));
    assert_eq!(claim.condition(READY).unwrap().status, "Unknown");
}

#[test]
fn clear_removes_one() {
    let mut claim = claim(1);
    claim.set_true("Drifted", at(1));
    assert!(clear(claim.conditions_mut(), "Drifted"));
    assert!(!clear(claim.conditions_mut(), "Drifted"));
    assert!(claim.condition("Drifted").is_none());
}
