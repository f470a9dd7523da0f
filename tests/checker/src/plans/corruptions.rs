//! Corruptions of right plans: each is one wrong decision, seeded into the answer, and is rejected by the rule it breaks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::right::plans;
use super::{judged, set};
use crate::violation::Rule;

/// Name of the plan, what is changed in its answer, and the rule that must say so.
type Corruption = (&'static str, Vec<(&'static str, Value)>, Rule);

fn zone(values: &[&str]) -> Value {
    json!([{"key": "topology.kubernetes.io/zone", "operator": "In", "values": values}])
}

fn existing(node: &str, pod: &str) -> Value {
    json!([{"node": node, "pods": [pod]}])
}

/// The pods of the second claim go to the first.
fn together() -> Vec<(&'static str, Value)> {
    vec![("/claims/0/pods/-", json!("default/p1")), ("/claims/1", Value::Null)]
}

fn corruptions() -> Vec<Corruption> {
    const REQUIREMENTS: &str = "/claims/0/requirements";
    const TYPES: &str = "/claims/0/instanceTypes";
    let copy = |types: &[&str]| json!({"nodePool": "default", "instanceTypes": types, "pods": ["default/p0"]});
    vec![
        // Every pod is somewhere once.
        ("one claim", vec![("/claims/-", copy(&["c-4x"]))], Rule::Accounting),
        ("one claim", vec![("/claims/0/pods/-", json!("default/p0"))], Rule::Accounting),
        ("one claim", vec![("/claims/0", Value::Null)], Rule::Accounting),
        ("one claim", vec![("/claims/0/pods/0", json!("default/other"))], Rule::Accounting),
        ("one claim", vec![("/errors", json!({"default/p0": "no"}))], Rule::Accounting),
        ("one claim", vec![("/claims/0/nodePool", json!("other"))], Rule::Accounting),
        ("one claim", vec![("/claims/-", json!({"nodePool": "default", "instanceTypes": ["c-4x"]}))], Rule::Accounting),
        ("one claim", vec![("/error", json!("panicked"))], Rule::Accounting),
        ("a node with room", vec![("/existing/0/node", json!("m"))], Rule::Accounting),
        ("a node with room", vec![("/existing/0/pods/-", json!("default/old"))], Rule::Accounting),
        ("a pod too large", vec![("/errors", json!({}))], Rule::Accounting),
        (
            "a node that goes away",
            vec![("/claims/0", Value::Null), ("/existing", existing("n", "default/p0"))],
            Rule::Accounting,
        ),
        ("a node in flight", vec![("/existing/0/pods/-", json!("default/p0"))], Rule::Accounting),
        // Claims narrow their pool, and their types can be had.
        ("one claim", vec![("/claims/0/instanceTypes/0", json!("c-5x"))], Rule::InstanceTypes),
        ("one claim", vec![(TYPES, json!([]))], Rule::InstanceTypes),
        ("one claim", vec![("/claims/0/instanceTypes/-", json!("c-4x"))], Rule::InstanceTypes),
        ("one claim", vec![(REQUIREMENTS, zone(&["zone-3"]))], Rule::InstanceTypes),
        (
            "one claim",
            vec![(REQUIREMENTS, json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]))],
            Rule::InstanceTypes,
        ),
        ("types of the pool", vec![("/claims/0/instanceTypes/-", json!("c-8x"))], Rule::InstanceTypes),
        ("an offering that is gone", vec![(REQUIREMENTS, zone(&["zone-1"]))], Rule::InstanceTypes),
        ("a label of the claim", vec![(REQUIREMENTS, json!([]))], Rule::InstanceTypes),
        ("a label of the claim", vec![("/claims/0/requirements/0/values", json!(["c"]))], Rule::InstanceTypes),
        // Fit.
        ("one claim", vec![("/claims/0/requests/cpu", json!("500m"))], Rule::Fit),
        ("full claims", together(), Rule::Fit),
        ("many types", vec![(TYPES, json!(["c-4x"]))], Rule::Fit),
        ("many types", vec![(TYPES, json!(["c-8x", "c-4x"]))], Rule::Fit),
        ("a pod too large", vec![("/errors", json!({})), ("/claims", json!([copy(&["c-8x"])]))], Rule::Fit),
        // Taints, node affinity.
        ("one of two pools", vec![("/claims/0/nodePool", json!("dedicated"))], Rule::Taints),
        ("a zone", vec![(REQUIREMENTS, json!([]))], Rule::NodeAffinity),
        ("a zone", vec![(REQUIREMENTS, zone(&["zone-2"]))], Rule::NodeAffinity),
        ("a zone", vec![(REQUIREMENTS, zone(&["zone-1", "zone-2"]))], Rule::NodeAffinity),
        ("a label of the claim", vec![("/claims/0/requirements/0/values", json!(["b"]))], Rule::NodeAffinity),
        ("a label of the claim", vec![("/claims/0/requirements/0/values", json!(["a", "b"]))], Rule::NodeAffinity),
        // Volumes.
        ("volumes", vec![(REQUIREMENTS, json!([]))], Rule::Volumes),
        ("volumes", vec![(REQUIREMENTS, zone(&["zone-2"]))], Rule::Volumes),
        ("volumes one by one", together(), Rule::Volumes),
        ("a volume that is there", vec![(REQUIREMENTS, zone(&["zone-1"]))], Rule::Volumes),
        ("a volume that is there", together(), Rule::Volumes),
        // Ports.
        ("ports apart", together(), Rule::Ports),
        // Spread.
        ("zone spread", together(), Rule::Spread),
        ("zone spread", vec![("/claims/1/requirements", zone(&["zone-1"]))], Rule::Spread),
        ("zone spread", vec![("/claims/1/requirements", json!([]))], Rule::Spread),
        ("hostname spread", together(), Rule::Spread),
        ("an old imbalance", vec![(REQUIREMENTS, zone(&["zone-1"]))], Rule::Spread),
        (
            "an old imbalance",
            vec![("/claims/0", Value::Null), ("/existing", existing("n", "default/p0"))],
            Rule::Spread,
        ),
        // Pod affinity.
        ("zone affinity", vec![("/claims/1/requirements", zone(&["zone-2"]))], Rule::PodAffinity),
        ("zone affinity", vec![("/claims/1/requirements", json!([]))], Rule::PodAffinity),
        ("affinity to who runs", vec![(REQUIREMENTS, zone(&["zone-2"]))], Rule::PodAffinity),
        ("hostname anti-affinity", together(), Rule::PodAffinity),
        ("zone anti-affinity", vec![("/claims/1/requirements", zone(&["zone-1"]))], Rule::PodAffinity),
        ("zone anti-affinity", vec![("/claims/1/requirements", json!([]))], Rule::PodAffinity),
        (
            "anti-affinity of who runs",
            vec![("/claims/0", Value::Null), ("/existing", existing("n", "default/p0"))],
            Rule::PodAffinity,
        ),
        ("anti-affinity of who runs", vec![(REQUIREMENTS, json!([]))], Rule::PodAffinity),
        // Limits, reservations, minValues.
        ("a CPU limit", vec![("/claims/1/instanceTypes/-", json!("c-8x"))], Rule::Limits),
        (
            "a node limit",
            vec![
                ("/claims/0/pods/1", Value::Null),
                (
                    "/claims/-",
                    json!({
            "nodePool": "default", "instanceTypes": ["c-4x"], "pods": ["default/p1"]}),
                ),
            ],
            Rule::Limits,
        ),
        ("a reservation", vec![("/claims/1/reservations", json!(["r-1"]))], Rule::Reservations),
        ("a reservation", vec![("/claims/0/reservations", json!(["r-2"]))], Rule::Reservations),
        ("a reservation", vec![(REQUIREMENTS, zone(&["zone-2"]))], Rule::Reservations),
        ("a full reservation", vec![("/claims/0/reservations", json!(["r-1"]))], Rule::Reservations),
        ("minValues", vec![("/claims/0/instanceTypes/1", Value::Null)], Rule::MinValues),
    ]
}

/// What a pod must have to be where it is: taken away from the problem, the same answer is wrong.
fn withdrawals() -> Vec<Corruption> {
    const TOLERATIONS: &str = "/pods/0/spec/tolerations";
    vec![
        ("a tainted pool", vec![(TOLERATIONS, json!([]))], Rule::Taints),
        (
            "a tainted node",
            vec![(TOLERATIONS, json!([{"key": "own", "operator": "Exists", "effect": "NoSchedule"}]))],
            Rule::Taints,
        ),
        ("a node in flight", vec![(TOLERATIONS, json!([]))], Rule::Taints),
        (
            "one of two terms",
            vec![("/nodes/0/metadata/labels/topology.kubernetes.io~1zone", json!("zone-2"))],
            Rule::NodeAffinity,
        ),
        ("a label of the pool", vec![("/nodePools/0/spec/template/metadata", Value::Null)], Rule::NodeAffinity),
        (
            "with a DaemonSet",
            vec![
                ("/daemonSets/0/spec/template/spec/nodeSelector", json!({"kubernetes.io/os": "linux"})),
                ("/daemonSets/0/spec/template/spec/containers/0/resources/requests/cpu", json!("500m")),
            ],
            Rule::Fit,
        ),
        ("a node with room", vec![("/nodes/0/status/allocatable/cpu", json!("3"))], Rule::Fit),
        ("ports", vec![("/pods/1/spec/containers/0/ports/0/protocol", json!("TCP"))], Rule::Ports),
        ("volumes", vec![("/persistentVolumeClaims/1", Value::Null)], Rule::Volumes),
        (
            "types of the pool",
            vec![
                ("/instanceTypes/0/offerings/0/available", json!(false)),
                ("/instanceTypes/0/offerings/1/available", json!(false)),
            ],
            Rule::InstanceTypes,
        ),
        ("a startup taint", vec![("/nodePools/0/spec/replicas", json!(1))], Rule::Accounting),
        ("minValues at best", vec![("/options/minValuesPolicy", json!("Strict"))], Rule::MinValues),
    ]
}

fn rules_that_said_no(corruptions: Vec<Corruption>, of_answer: bool) -> BTreeSet<Rule> {
    let plans = plans();
    let mut rules = BTreeSet::new();
    for (name, edits, rule) in corruptions {
        let plan = plans.iter().find(|plan| plan.name == name).unwrap_or_else(|| panic!("there is no plan {name}"));
        let (mut problem, mut answer) = (plan.case.problem.clone(), plan.answer.clone());
        for (pointer, value) in &edits {
            set(if of_answer { &mut answer } else { &mut problem }, pointer, value);
        }
        let said = judged(&problem, &answer);
        let text: Vec<String> = said.iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|violation| violation.rule == rule), "{name} {edits:?}: not {rule:?} but {text:?}");
        rules.insert(rule);
    }
    rules
}

#[test]
fn every_corruption_is_rejected_by_the_rule_it_breaks() {
    let all = corruptions();
    assert!(all.len() >= 50, "{}", all.len());
    let distinct: BTreeSet<String> = all.iter().map(|(name, edits, _)| format!("{name} {edits:?}")).collect();
    assert_eq!(distinct.len(), all.len());
    let mut rules = rules_that_said_no(all, true);
    rules.extend(rules_that_said_no(withdrawals(), false));
    assert_eq!(rules.len(), 12, "each rule rejects something: {rules:?}");
}
