//! The whole loop on the embedded cluster: API server, scheduler, kubelets and EC2 in process, all on a paused clock, so
//! that minutes of cluster time take seconds and nothing depends on the machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test ends by panicking")]

mod embedded {
    mod buffers;
    mod overlays;
    mod static_pools;
    pub(crate) mod world;
}

use std::time::Duration;

use embedded::world::World;
use k8s_openapi::api::core::v1::Node;
use mortise::settings::Settings;
use mortise_api::{NodeClaim, NodePool};
use serde_json::json;

/// Pods come, nodes come; pods go, nodes go; nothing is left behind.
#[tokio::test(start_paused = true)]
async fn burst_up_and_empty_down() {
    let world = World::start().await;
    world.pool("default", json!({})).await;
    world.deploy("web", 20, json!({"cpu": "1", "memory": "1Gi"})).await;
    world.until("all pods run", async || (world.running("web").await == 20).then_some(())).await;
    let claims = world.list::<NodeClaim>().await;
    assert!(!claims.is_empty());
    for claim in &claims {
        let ready = claim.status.iter().flat_map(|s| &s.conditions).any(|c| c.type_ == "Ready" && c.status == "True");
        assert!(ready, "{claim:?}");
    }
    assert_eq!(world.machines().len(), claims.len(), "one machine per claim");
    let pool = world.get::<NodePool>("default").await;
    world
        .until("the pool counts its nodes", async || {
            let pool = world.get::<NodePool>("default").await;
            (pool.status.as_ref().map(|s| s.nodes) == i64::try_from(claims.len()).ok()).then_some(())
        })
        .await;
    assert!(pool.metadata.annotations.unwrap().contains_key("karpenter.sh/nodepool-hash"));

    world.scale("web", 0).await;
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;
    let reasons = world.events().await;
    for reason in ["Nominated", "DisruptionTerminating"] {
        assert!(reasons.iter().any(|r| r == reason), "{reason} not in {reasons:?}");
    }
    let metrics = world.metrics();
    for name in
        ["karpenter_nodeclaims_created_total", "karpenter_nodeclaims_launched", "karpenter_nodes_terminated_total"]
    {
        assert!(metrics.lines().any(|l| l.starts_with(name)), "{name} not in\n{metrics}");
    }
    world.stop().await;
}

/// `kubectl delete node` terminates the instance through its claim.
#[tokio::test(start_paused = true)]
async fn deleting_a_node_terminates_its_instance() {
    let world = World::start().await;
    world.pool("default", json!({})).await;
    world.deploy("web", 2, json!({"cpu": "1"})).await;
    world.until("pods run", async || (world.running("web").await == 2).then_some(())).await;
    world.scale("web", 0).await;
    world.until("pods are gone", async || (world.pods("web").await.is_empty()).then_some(())).await;
    for node in world.list::<Node>().await {
        world.delete::<Node>(node.metadata.name.as_deref().unwrap()).await;
    }
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;
    world.stop().await;
}

/// A budget that allows nothing holds its node; other nodes go on.
#[tokio::test(start_paused = true)]
async fn a_blocked_drain_holds_only_its_node() {
    let world = World::start().await;
    world.pool("default", json!({})).await;
    world.pool("other", json!({"taint": "other"})).await;
    world.deploy("kept", 1, json!({"cpu": "1"})).await;
    world.deploy_tolerating("free", 1, json!({"cpu": "1"}), "other").await;
    world
        .until("pods run", async || (world.running("kept").await + world.running("free").await == 2).then_some(()))
        .await;
    world.budget("kept").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let nodes = world.list::<Node>().await;
    assert_eq!(nodes.len(), 2, "one node per pool");
    world.scale("free", 0).await;
    for node in &nodes {
        world.delete::<Node>(node.metadata.name.as_deref().unwrap()).await;
    }
    world.until("the free node is gone", async || (world.list::<NodeClaim>().await.len() == 1).then_some(())).await;
    world
        .until("an event says so", async || world.events().await.iter().any(|r| r == "FailedDraining").then_some(()))
        .await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(world.running("kept").await, 1, "the pod was not evicted");
    assert_eq!(world.machines().len(), 1);
    world.drop_budget("kept").await;
    world.scale("kept", 0).await;
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;
    world.stop().await;
}

/// What is out of stock is found out, and the next offering used; when nothing is left the pods wait with the reason,
/// calls are few, and capacity that returns is used.
#[tokio::test(start_paused = true)]
async fn out_of_stock() {
    let world = World::start().await;
    world.pool("default", json!({"types": ["m5.large", "m6i.large"], "capacity": ["on-demand"]})).await;
    world.cloud().set_sold_out("m5.large", "*", None, true);
    world.deploy("web", 1, json!({"cpu": "1"})).await;
    world.until("the pod runs", async || (world.running("web").await == 1).then_some(())).await;
    assert_eq!(
        world.machines().iter().map(|m| m.instance.instance_type.to_string()).collect::<Vec<_>>(),
        ["m6i.large"]
    );
    world.scale("web", 0).await;
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;

    world.cloud().set_sold_out("m6i.large", "*", None, true);
    world.scale("web", 1).await;
    world
        .until("the reason is told", async || {
            world.events().await.iter().any(|r| r == "FailedScheduling").then_some(())
        })
        .await;
    let before = world.created();
    tokio::time::sleep(Duration::from_secs(600)).await;
    // Marks lapse after three minutes and are then found out again: a few claims, not hundreds.
    let tried = world.created() - before;
    assert!(tried < 30.0, "{tried} claims in ten minutes");
    assert_eq!(world.running("web").await, 0);
    world.cloud().set_sold_out("m6i.large", "*", None, false);
    world.until("the pod runs", async || (world.running("web").await == 1).then_some(())).await;
    world.stop().await;
}

/// A pool that cannot work does not keep another from working, and says why.
#[tokio::test(start_paused = true)]
async fn broken_pools_are_contained() {
    let world = World::start().await;
    world.pool("broken", json!({"class": "missing", "weight": 100})).await;
    world.pool("impossible", json!({"types": ["no.such"], "weight": 50})).await;
    world.pool("default", json!({})).await;
    world.deploy("web", 3, json!({"cpu": "1"})).await;
    world.until("pods run", async || (world.running("web").await == 3).then_some(())).await;
    let broken = world.get::<NodePool>("broken").await;
    let ready =
        broken.status.iter().flat_map(|s| &s.conditions).find(|c| c.type_ == "NodeClassReady").cloned().unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "NodeClassNotFound"));
    assert!(ready.message.contains("missing"));
    world
        .until("the impossible pool says so", async || {
            world.events().await.iter().any(|r| r == "NoCompatibleInstanceTypes").then_some(())
        })
        .await;
    for claim in world.list::<NodeClaim>().await {
        assert_eq!(claim.metadata.labels.unwrap()["karpenter.sh/nodepool"], "default");
    }
    world.stop().await;
}

/// The leader is stopped while launches are in flight: the next one finishes them, and there is one machine per claim.
#[tokio::test(start_paused = true)]
async fn hand_over_with_launches_in_flight() {
    let elected = || Settings { disable_leader_election: false, ..Settings::for_tests("karpenter") };
    let mut world = World::start_with(elected()).await;
    world.pool("default", json!({"types": ["m5.large", "m6i.large"]})).await;
    world.deploy("web", 12, json!({"cpu": "1", "memory": "1Gi"})).await;
    world.until("claims are there", async || (world.list::<NodeClaim>().await.len() > 5).then_some(())).await;
    world.hand_over(elected()).await;
    world.until("all pods run", async || (world.running("web").await == 12).then_some(())).await;
    assert_eq!(world.cloud().machines().len(), world.list::<NodeClaim>().await.len(), "none launched twice");
    world.scale("web", 0).await;
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;
    world.stop().await;
}

/// Node readiness is what the probe says, and the state of the policies is there to read.
#[tokio::test(start_paused = true)]
async fn status_of_the_policies_is_written() {
    let world = World::start().await;
    world.until("the status is there", async || world.config_map("karpenter", "mortise-policies-status").await).await;
    let status = world.config_map("karpenter", "mortise-policies-status").await.unwrap();
    assert!(status["status.yaml"].contains("revision: defaults"), "{status:?}");
    assert!(world.metrics().contains("mortise_policies_revision{revision=\"defaults\"} 1"));
    world
        .put_config_map(
            "karpenter",
            "mortise-policies",
            "policies.yaml",
            "apiVersion: mortise.dev/v1alpha1\nscore: 7\n",
        )
        .await;
    world
        .until("the refusal is told", async || {
            world.events().await.iter().any(|r| r == "PoliciesRefused").then_some(())
        })
        .await;
    world.stop().await;
}
