//! NodePools with replicas: filled, scaled, refilled, never one too many, and emptied from the cheapest end.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use mortise::settings::Settings;
use mortise_api::{NodeClaim, NodePool};
use serde_json::json;

use super::world::{World, gated};

const GATE: &[&str] = &["StaticCapacity"];

/// Claims that are not being deleted.
async fn living(world: &World) -> Vec<NodeClaim> {
    let claims = world.list::<NodeClaim>().await;
    claims.into_iter().filter(|c| c.metadata.deletion_timestamp.is_none()).collect()
}

/// So many claims, each with a machine, and the pool's status says so.
async fn settled(world: &World, nodes: usize) {
    world
        .until(&format!("{nodes} nodes"), async || {
            let claims = world.list::<NodeClaim>().await;
            let ready = |c: &&NodeClaim| {
                c.status.iter().flat_map(|s| &s.conditions).any(|c| c.type_ == "Ready" && c.status == "True")
            };
            let pool = world.get::<NodePool>("fixed").await;
            let counted = pool.status.map(|s| s.nodes) == i64::try_from(nodes).ok();
            (claims.len() == nodes && claims.iter().filter(ready).count() == nodes && counted).then_some(())
        })
        .await;
    assert_eq!(world.machines().len(), nodes, "one machine per claim");
}

/// Filled to the number, scaled through the scale subresource, within the limit of nodes, refilled when a node goes.
#[tokio::test(start_paused = true)]
async fn a_static_pool_keeps_its_number_of_nodes() {
    let world = World::start_gated(GATE).await;
    world.pool("fixed", json!({"replicas": 3, "limits": {"nodes": 4}})).await;
    settled(&world, 3).await;
    let pool = world.get::<NodePool>("fixed").await;
    for claim in world.list::<NodeClaim>().await {
        let owner = &claim.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!(Some(&owner.uid), pool.metadata.uid.as_ref());
        assert_eq!(claim.metadata.labels.as_ref().unwrap()["karpenter.sh/nodepool"], "fixed");
        let named = |key: &str| claim.spec.requirements.iter().any(|r| &*r.key == key);
        assert!(!named("node.kubernetes.io/instance-type"), "the template and nothing else: {claim:?}");
    }
    world.scale_pool("fixed", 10).await;
    settled(&world, 4).await;

    // Nobody needs the nodes, and they stay all the same.
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    settled(&world, 4).await;

    world.scale_pool("fixed", 3).await;
    settled(&world, 3).await;
    let gone = living(&world).await[0].metadata.name.clone().unwrap();
    world.delete::<NodeClaim>(&gone).await;
    world
        .until("another node takes its place", async || {
            let names: BTreeSet<_> = living(&world).await.into_iter().filter_map(|c| c.metadata.name).collect();
            (names.len() == 3 && !names.contains(&gone)).then_some(())
        })
        .await;
    settled(&world, 3).await;
    assert_eq!(world.cloud().machines().len(), 5, "three, a fourth, and the one in place of the one deleted");

    world.scale_pool("fixed", 0).await;
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;
    world.stop().await;
}

/// Nodes that run pods go last, and their pods move through the ordinary drain.
#[tokio::test(start_paused = true)]
async fn empty_nodes_of_a_static_pool_go_first() {
    let world = World::start_gated(GATE).await;
    world.pool("fixed", json!({"replicas": 3})).await;
    settled(&world, 3).await;
    world.deploy("web", 1, json!({"cpu": "1"})).await;
    world.until("the pod runs", async || (world.running("web").await == 1).then_some(())).await;
    assert_eq!(world.list::<NodeClaim>().await.len(), 3, "it runs on a node that was there");
    let home = |pods: Vec<Pod>| pods[0].spec.as_ref().unwrap().node_name.clone().unwrap();
    let before = home(world.pods("web").await);
    world.scale_pool("fixed", 1).await;
    settled(&world, 1).await;
    assert_eq!(home(world.pods("web").await), before, "the pod was left alone");
    let left = world.list::<NodeClaim>().await[0].status.as_ref().unwrap().node_name.clone();
    assert_eq!(left, Some(before));
    assert!(world.metrics().contains("reason=\"overprovisioned\""), "counted as what it is");
    world.stop().await;
}

/// A change of leader between creation and launch makes no node too many.
#[tokio::test(start_paused = true)]
async fn a_new_leader_of_a_static_pool_creates_none_too_many() {
    let elected = || Settings { disable_leader_election: false, ..gated(GATE) };
    let mut world = World::start_with(elected()).await;
    world.pool("fixed", json!({"replicas": 8})).await;
    world.until("claims are there", async || (!world.list::<NodeClaim>().await.is_empty()).then_some(())).await;
    world.hand_over(elected()).await;
    settled(&world, 8).await;
    assert_eq!(world.cloud().machines().len(), 8, "none launched twice");
    world.stop().await;
}

/// Without the gate the pool says why nothing happens; the dynamic pool beside it goes on.
#[tokio::test(start_paused = true)]
async fn a_static_pool_without_its_gate_says_so() {
    let world = World::start().await;
    world.pool("fixed", json!({"replicas": 3})).await;
    world.pool("default", json!({})).await;
    world.deploy("web", 1, json!({"cpu": "1"})).await;
    world.until("the pod runs", async || (world.running("web").await == 1).then_some(())).await;
    let pool = world.get::<NodePool>("fixed").await;
    let said = pool.status.iter().flat_map(|s| &s.conditions).find(|c| c.type_ == "ValidationSucceeded").unwrap();
    assert_eq!((said.status.as_str(), said.reason.as_str()), ("False", "StaticCapacityUnsupported"));
    assert!(said.message.contains("StaticCapacity"), "{said:?}");
    assert_eq!(world.list::<NodeClaim>().await.len(), 1);
    world.stop().await;
}
