//! Whatever order events come in, with relists in between, the state equals one built from the final objects at once.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Pod { id: u8, node: u8, kind: u8 },
    PodGone(u8),
    Node { id: u8, provider: u8, stage: u8 },
    NodeGone(u8),
    Claim { id: u8, provider: u8, deleting: bool },
    ClaimGone(u8),
    Pdb { id: u8, allowed: u8 },
    PdbGone(u8),
    Relist(u8),
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..12u8, 0..5u8, 0..7u8).prop_map(|(id, node, kind)| Step::Pod { id, node, kind }),
        2 => (0..12u8).prop_map(Step::PodGone),
        3 => (0..4u8, 0..4u8, 0..4u8).prop_map(|(id, provider, stage)| Step::Node { id, provider, stage }),
        1 => (0..4u8).prop_map(Step::NodeGone),
        3 => (0..4u8, 0..4u8, any::<bool>()).prop_map(|(id, provider, deleting)| Step::Claim { id, provider, deleting }),
        1 => (0..4u8).prop_map(Step::ClaimGone),
        1 => (0..2u8, 0..2u8).prop_map(|(id, allowed)| Step::Pdb { id, allowed }),
        1 => (0..2u8).prop_map(Step::PdbGone),
        1 => (0..4u8).prop_map(Step::Relist),
        1 => Just(Step::Snapshot),
    ]
}

/// The objects there are, as the API server has them.
#[derive(Default)]
struct World {
    pods: BTreeMap<u8, PodRecord>,
    nodes: BTreeMap<u8, NodeRecord>,
    claims: BTreeMap<u8, NodeClaim>,
    pdbs: BTreeMap<u8, PdbRecord>,
    version: u64,
}

fn provider(id: u8) -> String {
    if id == 0 { String::new() } else { format!("aws:///a/i-{id}") }
}

impl World {
    fn events(&self) -> [Event; 4] {
        [
            Event::Pod(Delta::replaced(self.pods.values().filter(|p| !p.terminal()).cloned())),
            Event::Node(Delta::replaced(self.nodes.values().cloned())),
            Event::NodeClaim(Delta::replaced(self.claims.values().cloned())),
            Event::Pdb(Delta::replaced(self.pdbs.values().cloned())),
        ]
    }

    /// Changes the world; returns what the watch tells, unless the change is one that only a relist will show.
    fn take(&mut self, step: &Step) -> Option<Event> {
        self.version += 1;
        let version = self.version.to_string();
        match step {
            Step::Pod { id, node, kind } => {
                let node = if *node == 0 { String::new() } else { format!("ip-{node}") };
                let name = format!("p-{id}");
                let record = match kind {
                    0 | 1 => pod(&name, &node),
                    2 => daemon_pod(&name, &node),
                    3 => {
                        let mut value = pod_json(&name, &node);
                        value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                        pod_record(value)
                    }
                    4 | 5 => {
                        let mut value = pod_json(&name, &node);
                        let claim = json!({"claimName": format!("data-{kind}")});
                        value["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": claim}]);
                        pod_record(value)
                    }
                    _ => {
                        let mut value = pod_json(&name, &node);
                        value["status"]["phase"] = json!("Failed");
                        pod_record(value)
                    }
                };
                self.pods.insert(*id, record.clone());
                Some(Event::Pod(Delta::Applied(Arc::new(record))))
            }
            Step::PodGone(id) => {
                self.pods.remove(id);
                Some(Event::Pod(Delta::Deleted(ObjectName::new("default", format!("p-{id}")))))
            }
            Step::Node { id, provider: p, stage } => {
                let mut record = managed_node(&format!("ip-{id}"), &provider(*p), *stage > 0, *stage > 1);
                record.resource_version = version.into();
                record.created_unix_ms = i64::from(*id);
                self.nodes.insert(*id, record.clone());
                Some(Event::Node(Delta::Applied(Arc::new(record))))
            }
            Step::NodeGone(id) => {
                self.nodes.remove(id);
                Some(Event::Node(Delta::Deleted(ObjectName::new("", format!("ip-{id}")))))
            }
            Step::Claim { id, provider: p, deleting } => {
                let mut value = claim_json(&format!("c-{id}"), &provider(*p));
                value["metadata"]["resourceVersion"] = json!(version);
                if *deleting {
                    value["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
                let claim = claim_from(value);
                self.claims.insert(*id, claim.clone());
                Some(Event::NodeClaim(Delta::Applied(Arc::new(claim))))
            }
            Step::ClaimGone(id) => {
                self.claims.remove(id);
                Some(Event::NodeClaim(Delta::Deleted(ObjectName::new("", format!("c-{id}")))))
            }
            Step::Pdb { id, allowed } => {
                let pdb: objects::Pdb =
                    serde_json::from_value(json!({"metadata": {"namespace": "default", "name": format!("b-{id}")},
                    "spec": {"selector": {"matchLabels": {"app": "web"}}}, "status": {"disruptionsAllowed": allowed}}))
                    .unwrap();
                let record = Converter::default().pdb(&pdb);
                self.pdbs.insert(*id, record.clone());
                Some(Event::Pdb(Delta::Applied(Arc::new(record))))
            }
            Step::PdbGone(id) => {
                self.pdbs.remove(id);
                Some(Event::Pdb(Delta::Deleted(ObjectName::new("default", format!("b-{id}")))))
            }
            Step::Relist(kind) => self.events().into_iter().nth(usize::from(*kind)),
            Step::Snapshot => None,
        }
    }
}

/// A cluster with the claims that pods share.
fn with_claims() -> ClusterState {
    let mut state = ClusterState::new();
    let class = json!({"metadata": {"name": "gp3"}, "provisioner": "ebs.csi.aws.com", "volumeBindingMode": "WaitForFirstConsumer"});
    let class: objects::StorageClass = serde_json::from_value(class).unwrap();
    let claims = [4, 5].map(|i| -> objects::PersistentVolumeClaim {
        let claim = json!({"metadata": {"namespace": "default", "name": format!("data-{i}")}, "spec": {"storageClassName": "gp3"}});
        serde_json::from_value(claim).unwrap()
    });
    let mut converter = Converter::default();
    state.apply(Event::StorageClass(Delta::replaced([converter.storage_class(&class)])), NOW);
    state.apply(Event::Pvc(Delta::replaced(claims.iter().map(|claim| converter.pvc(claim)))), NOW);
    state
}

/// Nodes, waiting pods, usage.
type Comparable = (BTreeMap<Arc<str>, Node>, Vec<Pod>, BTreeMap<Arc<str>, Usage>);

/// Everything but what only this process remembers.
fn comparable(state: &mut ClusterState) -> Comparable {
    let snapshot = state.view(NOW);
    let nodes = snapshot.nodes.iter().map(|(name, node)| {
        let mut node = Node::clone(node);
        node.last_pod_event_unix_ms = None;
        (Arc::clone(name), node)
    });
    (nodes.collect(), snapshot.pending.clone(), state.usage(NOW))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn equals_a_rebuild(steps in proptest::collection::vec((step(), 0..8u8), 1..60)) {
        let mut world = World::default();
        let mut state = with_claims();
        let mut missed = [false; 4];
        for (step, luck) in &steps {
            let kind = match step {
                Step::Pod { .. } | Step::PodGone(_) => 0,
                Step::Node { .. } | Step::NodeGone(_) => 1,
                Step::Claim { .. } | Step::ClaimGone(_) => 2,
                _ => 3,
            };
            let event = world.take(step);
            match (step, event) {
                (Step::Snapshot, _) => { state.view(NOW); }
                // One event in eight is lost: the watch was down, and a relist follows at the end.
                (_, Some(_)) if *luck == 0 && !matches!(step, Step::Relist(_)) => missed[kind] = true,
                (_, Some(event)) => { state.apply(event, NOW); }
                (_, None) => {}
            }
        }
        for (event, missed) in world.events().into_iter().zip(missed) {
            if missed {
                state.apply(event, NOW);
            }
        }
        let mut rebuilt = with_claims();
        for event in world.events() {
            rebuilt.apply(event, NOW);
        }
        prop_assert_eq!(comparable(&mut state), comparable(&mut rebuilt));
    }
}
