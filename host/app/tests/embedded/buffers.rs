//! CapacityBuffers: room is made and kept while nobody needs it, real pods take it at once, and it goes with the buffer.

use k8s_openapi::api::core::v1::{Node, PodTemplate};
use kube::api::{DeleteParams, Patch, PatchParams};
use mortise_api::{CapacityBuffer, NodeClaim};
use serde_json::{Value, json};

use super::world::World;

const GATE: &[&str] = &["CapacityBuffer"];

async fn buffer(world: &World, spec: Value) {
    let object = json!({"metadata": {"name": "room"}, "spec": spec});
    world.create::<CapacityBuffer>(object).await;
}

/// Status and reason of a condition of the buffer.
async fn condition(world: &World, type_: &str) -> Option<(String, String)> {
    let status = world.local::<CapacityBuffer>().get("room").await.unwrap().status?;
    let found = status.conditions.into_iter().find(|c| c.type_ == type_)?;
    Some((found.status, found.reason))
}

async fn until(world: &World, type_: &str, reason: &str) {
    let is = async || (condition(world, type_).await?.1 == reason).then_some(());
    world.until(&format!("{type_} for {reason}"), is).await;
}

/// Nodes come for nobody, stay though they are empty, take real pods without a new node, and go when the buffer does.
#[tokio::test(start_paused = true)]
async fn a_buffer_keeps_room_that_real_pods_take() {
    let world = World::start_gated(GATE).await;
    world.pool("default", json!({})).await;
    let container =
        json!({"name": "c", "image": "pause:3.9", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}});
    world.create::<PodTemplate>(json!({"metadata": {"name": "web"}, "template": template})).await;
    buffer(&world, json!({"podTemplateRef": {"name": "web"}, "replicas": 3})).await;
    until(&world, "ReadyForProvisioning", "Resolved").await;
    until(&world, "Provisioning", "FitsExistingCapacity").await;
    world.until("a node is there", async || (!world.list::<Node>().await.is_empty()).then_some(())).await;
    let status = world.local::<CapacityBuffer>().get("room").await.unwrap().status.unwrap();
    assert_eq!((status.replicas, status.pod_template_ref.map(|r| r.name)), (Some(3), Some("web".to_owned())));
    let claims = world.list::<NodeClaim>().await.len();

    // Longer than any node stays that nothing needs.
    tokio::time::sleep(std::time::Duration::from_secs(300)).await;
    assert_eq!(world.list::<NodeClaim>().await.len(), claims, "neither fewer nor more");
    let events = world.events().await;
    assert!(!events.iter().any(|r| r == "Nominated" || r == "FailedScheduling"), "no pod, no Event of one: {events:?}");

    world.deploy("web", 2, json!({"cpu": "1", "memory": "1Gi"})).await;
    world.until("real pods run", async || (world.running("web").await == 2).then_some(())).await;
    // The room that they took is made again.
    until(&world, "Provisioning", "FitsExistingCapacity").await;
    world.scale("web", 0).await;

    world.local::<CapacityBuffer>().delete("room", &DeleteParams::default()).await.unwrap();
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;
    world.stop().await;
}

/// A share of a workload follows it; a workload that is gone takes the room with it.
#[tokio::test(start_paused = true)]
async fn a_buffer_of_a_share_follows_its_workload() {
    let world = World::start_gated(GATE).await;
    world.pool("default", json!({})).await;
    world.deploy("web", 4, json!({"cpu": "1"})).await;
    let spec = json!({"scalableRef": {"kind": "Deployment", "name": "web"}, "percentage": 30, "limits": {"cpu": "3"}});
    buffer(&world, spec).await;
    let replicas = async |wanted: i32| {
        let status = world.local::<CapacityBuffer>().get("room").await.unwrap().status?;
        (status.replicas == Some(wanted)).then_some(())
    };
    world.until("thirty percent of four, rounded up", async || replicas(2).await).await;
    world.scale("web", 9).await;
    world.until("thirty percent of nine", async || replicas(3).await).await;
    world.scale("web", 40).await;
    world.until("no more than the limits", async || replicas(3).await).await;

    let gone = json!({"spec": {"scalableRef": {"kind": "Deployment", "name": "gone"}}});
    let buffers = world.local::<CapacityBuffer>();
    buffers.patch("room", &PatchParams::default(), &Patch::Merge(gone)).await.unwrap();
    until(&world, "ReadyForProvisioning", "ScalableRefNotFound").await;
    until(&world, "Provisioning", "NotReadyForProvisioning").await;
    world.scale("web", 0).await;
    world.until("everything is gone", async || world.is_empty().await.then_some(())).await;
    world.stop().await;
}
