//! CapacityBuffers: nodes for nobody, which stay, take real pods at once, and go with the buffer.

use crate::installation::open_gates;
use crate::objects::{deployment, manifests, node_class, only, pool};
use crate::world::World;
use anyhow::{Result, ensure};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::wait;
use serde_json::json;
use std::time::Duration;

pub(crate) async fn room_is_kept_and_taken(world: &mut World) -> Result<()> {
    open_gates(world).await?;
    world.begin().await?;
    let app = deployment("app", 2, "1500m", "1Gi");
    let template = json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "app", "namespace": "default"},
        "template": app["spec"]["template"],
    });
    let buffer = json!({
        "apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer",
        "metadata": {"name": "room", "namespace": "default"},
        "spec": {"podTemplateRef": {"name": "app"}, "replicas": 2},
    });
    let objects = [node_class("default", CLUSTER_NAME), only(pool("default"), "m5.large"), template, buffer];
    world.cluster.kubectl.apply(&manifests(&objects)).await?;
    let (reason, _) = world.condition("CapacityBuffer", "room", "ReadyForProvisioning", "True").await?;
    ensure!(reason == "Resolved", "{reason}");
    let (reason, _) = world.condition("CapacityBuffer", "room", "Provisioning", "True").await?;
    ensure!(reason == "FitsExistingCapacity", "{reason}");
    ensure!(world.consistent().await? == 2, "two pods of 1.5 CPU that do not exist need two m5.large");
    // Empty nodes of this pool go after a second, once that was held for fifteen.
    wait::holds("two nodes that run nothing", Duration::from_secs(30), async || {
        let living = world.living().await?.len();
        ensure!(living == 2, "{living} instances");
        Ok(())
    })
    .await?;
    world.cluster.kubectl.apply(&manifests(&[app])).await?;
    world.running("app", 2).await?;
    wait::until("the room that was taken is made again", Duration::from_secs(60), async || {
        let living = world.living().await?.len();
        ensure!(living == 4, "{living} instances");
        Ok(Some(()))
    })
    .await?;
    world.cluster.kubectl.run(&["delete", "cb", "room", "-n", "default"]).await?;
    wait::until("the nodes of the buffer to go", Duration::from_secs(90), async || {
        let living = world.living().await?.len();
        ensure!(living == 2, "{living} instances");
        Ok(Some(()))
    })
    .await?;
    ensure!(world.consistent().await? == 2, "claims, nodes and instances do not agree");
    world.running("app", 2).await?;
    ensure!(world.panics().is_empty(), "{:?}", world.panics());
    Ok(())
}
