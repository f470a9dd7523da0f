//! NodeOverlays: another price changes what is bought, an added resource lets pods onto nodes, and faults are told.

use mortise_api::{NodeClaim, NodeOverlay};
use serde_json::{Value, json};

use super::world::World;

const GATE: &[&str] = &["NodeOverlay"];

async fn overlay(world: &World, name: &str, types: &[&str], rest: Value) {
    let mut spec =
        json!({"requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": types}]});
    spec.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    world.create_global::<NodeOverlay>(json!({"metadata": {"name": name}, "spec": spec})).await;
}

/// Status, reason and message of `ValidationSucceeded`, once it is judged.
async fn verdict(world: &World, name: &str) -> (String, String, String) {
    world
        .until(&format!("{name} is judged"), async || {
            let status = world.get::<NodeOverlay>(name).await.status?;
            let found = status.conditions.into_iter().find(|c| c.type_ == "ValidationSucceeded")?;
            Some((found.status, found.reason, found.message))
        })
        .await
}

fn annotated(claim: &NodeClaim, what: &str) -> bool {
    claim.metadata.annotations.iter().flatten().any(|(key, value)| key.ends_with(what) && value == "true")
}

/// The dearer type is bought because an overlay says that it costs next to nothing.
#[tokio::test(start_paused = true)]
async fn another_price_changes_what_is_bought() {
    let world = World::start_gated(GATE).await;
    overlay(&world, "reserved", &["m5.8xlarge"], json!({"price": "0.0001"})).await;
    world.pool("default", json!({"types": ["m5.large", "m5.8xlarge"], "capacity": ["on-demand"]})).await;
    assert_eq!(verdict(&world, "reserved").await.0, "True");
    world.deploy("web", 1, json!({"cpu": "1"})).await;
    world.until("the pod runs", async || (world.running("web").await == 1).then_some(())).await;
    let claims = world.list::<NodeClaim>().await;
    assert_eq!(claims[0].metadata.labels.as_ref().unwrap()["node.kubernetes.io/instance-type"], "m5.8xlarge");
    assert!(annotated(&claims[0], "price-overlay-applied") && !annotated(&claims[0], "capacity-overlay-applied"));
    world.stop().await;
}

/// What an overlay adds is there for pods to ask for, and in the claim's status.
#[tokio::test(start_paused = true)]
async fn an_added_resource_is_bought_for_pods_that_ask_for_it() {
    let world = World::start_gated(GATE).await;
    overlay(&world, "dongles", &["m5.xlarge"], json!({"capacity": {"example.com/dongle": "2"}})).await;
    world.pool("default", json!({"types": ["m5.large", "m5.xlarge"]})).await;
    assert_eq!(verdict(&world, "dongles").await.0, "True");
    world.deploy("web", 1, json!({"cpu": "100m", "example.com/dongle": "1"})).await;
    let claim = world
        .until("a claim is launched", async || {
            let claims = world.list::<NodeClaim>().await;
            let launched = |c: &NodeClaim| c.status.as_ref().is_some_and(|s| s.provider_id.is_some());
            claims.into_iter().find(launched)
        })
        .await;
    assert_eq!(claim.metadata.labels.as_ref().unwrap()["node.kubernetes.io/instance-type"], "m5.xlarge");
    assert!(annotated(&claim, "capacity-overlay-applied") && !annotated(&claim, "price-overlay-applied"));
    let status = claim.status.unwrap();
    for amounts in [&status.capacity, &status.allocatable] {
        assert_eq!(amounts.get("example.com/dongle").map(|q| q.0.as_str()), Some("2"), "{amounts:?}");
    }
    world.stop().await;
}

/// Overlays that contradict one another, and one that says nonsense, are told so; the rest goes on.
#[tokio::test(start_paused = true)]
async fn faults_are_told_and_contained() {
    let world = World::start_gated(GATE).await;
    world.pool("default", json!({"types": ["m5.large", "m5.xlarge"]})).await;
    overlay(&world, "a", &["m5.large"], json!({"price": "1", "weight": 5})).await;
    overlay(&world, "b", &["m5.large"], json!({"price": "1", "weight": 5})).await;
    overlay(&world, "wrong", &["m5.large"], json!({"capacity": {"vpc.amazonaws.com/efa": 1}})).await;
    world.until("one is in conflict", async || (verdict(&world, "a").await.1 == "Conflict").then_some(())).await;
    let (status, reason, message) = verdict(&world, "a").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Conflict"));
    assert!(message.contains("NodeOverlay b") && message.contains("m5.large"), "{message}");
    assert_eq!(verdict(&world, "b").await.0, "True");
    let (status, reason, message) = verdict(&world, "wrong").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "RuntimeValidation"));
    assert!(message.contains("vpc.amazonaws.com/efa"), "{message}");
    // With the one in its way gone, the other is in effect.
    world.delete::<NodeOverlay>("b").await;
    world.until("the other is in effect", async || (verdict(&world, "a").await.0 == "True").then_some(())).await;
    world.deploy("web", 1, json!({"cpu": "1"})).await;
    world.until("the pod runs", async || (world.running("web").await == 1).then_some(())).await;
    world.stop().await;
}
