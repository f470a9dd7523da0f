//! What a consolidation policy may choose, and what it cannot get past the engine.

use super::*;
use crate::node::Node;
use crate::nodepool::{Budget, NodePool};
use crate::policy::NoPolicy;
use crate::policy::scripted::Scripted;

fn world(count: u32, nodes_at_once: &str) -> Snapshot {
    let node = |at: u32| {
        let name: Arc<str> = format!("n{at}").into();
        let node = Node {
            name: Arc::clone(&name),
            node_name: Some(Arc::clone(&name)),
            node_claim: Some(Arc::clone(&name)),
            nodepool: Some("default".into()),
            launched: true,
            registered: true,
            initialized: true,
            ready: true,
            consolidatable: true,
            ..Node::default()
        };
        (name, Arc::new(node))
    };
    let mut pool = NodePool { name: "default".into(), ..NodePool::default() };
    pool.disruption.consolidate_after_ms = Some(0);
    pool.disruption.budgets =
        vec![Budget { nodes: nodes_at_once.into(), schedule: None, duration_ms: None, reasons: Vec::new() }];
    Snapshot { nodepools: vec![Arc::new(pool)], nodes: (0..count).map(node).collect(), ..Snapshot::default() }
}

fn change(snapshot: &mut Snapshot, name: &str, edit: impl FnOnce(&mut Node)) {
    edit(Arc::make_mut(snapshot.nodes.get_mut(name).unwrap()));
}

/// Proposes these sets once and gives every tried set this priority by row.
fn policy(sets: &[&[u32]], priorities: &[i64]) -> Scripted {
    let sets: Vec<Vec<u32>> = sets.iter().map(|set| set.to_vec()).collect();
    let priorities = priorities.to_vec();
    Scripted {
        propose: Some(Box::new(move |_, tried, _, _| {
            let mut groups = Groups::default();
            for set in sets.iter().filter(|_| tried.is_empty()) {
                groups.push(set.iter().copied());
            }
            groups
        })),
        decide: Some(Box::new(move |_, _, _| priorities.clone())),
        ..Scripted::default()
    }
}

fn taken(result: &Disruption) -> Vec<&str> {
    result.disrupt.iter().flat_map(|command| &command.nodes).map(|node| &**node).collect()
}

fn run(snapshot: &Snapshot, policy: &dyn PolicySet) -> Disruption {
    empty(snapshot, &Options::default(), policy)
}

#[test]
fn nothing_goes_without_a_policy() {
    let result = run(&world(3, "100%"), &NoPolicy);
    assert!(result.disrupt.is_empty());
    assert_eq!(result.eligible, 3);
    assert_eq!(result.blocked.iter().map(|(_, why)| why).collect::<Vec<_>>(), [&NodeBlocker::Policy; 3]);
}

#[test]
fn priorities_order_and_zero_rejects() {
    let result = run(&world(3, "100%"), &policy(&[&[0], &[1], &[2]], &[1, 9, 0]));
    assert_eq!(taken(&result), ["n1", "n0"]);
    assert_eq!(result.blocked, [("n2".into(), NodeBlocker::Policy)]);
    assert_eq!(&*result.disrupt[0].reason, EMPTY);
}

#[test]
fn the_best_go_first_when_the_budget_is_short() {
    let result = run(&world(3, "1"), &policy(&[&[0], &[1], &[2]], &[1, 9, 5]));
    assert_eq!(taken(&result), ["n1"]);
    assert!(result.budgets[0].blocking);
    assert_eq!(result.blocked.len(), 2);
}

#[test]
fn a_set_goes_as_a_whole_or_not_at_all() {
    let result = run(&world(4, "2"), &policy(&[&[0, 1, 2], &[3]], &[9, 1]));
    assert_eq!(taken(&result), ["n3"]);
}

#[test]
fn sets_that_overlap_name_nothing_or_nodes_that_are_not_there_are_refused() {
    let sets: [&[u32]; 6] = [&[0, 1], &[1, 2], &[], &[99], &[0, 0, 3], &[2, 2]];
    let result = run(&world(4, "100%"), &policy(&sets, &[9, 8, 7, 6, 5, 4]));
    assert_eq!(taken(&result), ["n0", "n1", "n2"]);
}

#[test]
fn a_used_node_is_infeasible_whatever_the_policy_says() {
    let mut snapshot = world(2, "100%");
    change(&mut snapshot, "n0", |node| {
        node.pods = vec![crate::node::NodePod { eviction_cost_milli: 1000, ..crate::node::NodePod::default() }];
    });
    let policy = Scripted {
        propose: Some(Box::new(|nodes, tried, _, _| {
            let mut groups = Groups::default();
            if tried.is_empty() {
                assert_eq!(nodes.state[0] & 1, 0);
                groups.push([0]);
                groups.push([1]);
            }
            groups
        })),
        decide: Some(Box::new(|_, _, outcomes| {
            assert_eq!((&outcomes.feasible, &outcomes.reason), (&vec![0, 1], &vec![1, 0]));
            vec![9, 9]
        })),
        ..Scripted::default()
    };
    let result = run(&snapshot, &policy);
    assert_eq!(taken(&result), ["n1"]);
    assert!(result.blocked.is_empty(), "a used node is nothing that emptiness is blocked by");
}

#[test]
fn an_endless_proposer_is_stopped_and_a_short_answer_decides_nothing_more() {
    let endless = Scripted {
        propose: Some(Box::new(|_, _, _, _| {
            let mut groups = Groups::default();
            groups.push([0]);
            groups
        })),
        decide: Some(Box::new(|_, _, _| vec![1])),
        ..Scripted::default()
    };
    let result = run(&world(1, "100%"), &endless);
    assert_eq!(taken(&result), ["n0"]);
    let asks = endless.calls.lock().unwrap().iter().filter(|(hook, _)| *hook == "propose").count();
    assert_eq!(asks, MAX_ASKS as usize);
}

#[test]
fn faults_are_reported_and_nobody_is_asked_when_nothing_is_empty() {
    let scripted = policy(&[&[0]], &[1]);
    assert_eq!(run(&world(1, "1"), &scripted).policy_faults.len(), 1);
    let scripted = policy(&[&[0]], &[1]);
    assert!(run(&world(0, "1"), &scripted).policy_faults.is_empty());
    assert!(scripted.calls.lock().unwrap().is_empty());
}

#[test]
fn validation_keeps_what_still_holds() {
    let mut snapshot = world(4, "100%");
    let command =
        Disrupt { nodes: ["n0", "n1", "n2", "n3", "gone", "n3"].map(Into::into).to_vec(), reason: EMPTY.into() };
    let whole = validate(&snapshot, &command);
    assert_eq!(whole.nodes.len(), 4);
    change(&mut snapshot, "n0", |node| node.nominated_until_unix_ms = 1);
    change(&mut snapshot, "n1", |node| {
        node.pods = vec![crate::node::NodePod { eviction_cost_milli: 1, ..Default::default() }]
    });
    change(&mut snapshot, "n2", |node| node.consolidatable = false);
    assert_eq!(validate(&snapshot, &command).nodes, [Arc::from("n3")]);
    let drifted = Disrupt { reason: "Drifted".into(), ..command };
    assert!(validate(&snapshot, &drifted).nodes.is_empty());
}

#[test]
fn validation_counts_budgets_anew() {
    let snapshot = world(4, "2");
    let command = Disrupt { nodes: ["n3", "n1", "n0"].map(Into::into).to_vec(), reason: EMPTY.into() };
    assert_eq!(validate(&snapshot, &command).nodes, ["n3", "n1"].map(Arc::from));
}

#[test]
fn dis_011_a_node_that_keeps_room_for_a_buffer_is_not_empty() {
    let mut snapshot = world(3, "100%");
    change(&mut snapshot, "n1", |node| node.buffer_pods = 2);
    let all = policy(&[&[0, 1, 2], &[0, 2]], &[1, 1]);
    let result = run(&snapshot, &all);
    assert_eq!(result.eligible, 2);
    assert!(!taken(&result).contains(&"n1"), "{:?}", taken(&result));
    change(&mut snapshot, "n1", |node| node.buffer_pods = 0);
    assert_eq!(run(&snapshot, &all).eligible, 3, "no room to keep, no protection");
}
