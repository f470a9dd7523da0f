//! NodePools with replicas: filled, scaled by `kubectl scale` within the limit of nodes, and emptied.

use crate::installation::open_gates;
use crate::objects::{manifests, node_class, only, pool, with};
use crate::world::{LIMIT, World};
use anyhow::{Result, ensure};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::wait;
use serde_json::json;
use std::time::Duration;

/// Waits until the pool has so many nodes, each with a claim and an instance, and says so.
async fn nodes(world: &World, wanted: usize) -> Result<()> {
    wait::until(&format!("{wanted} nodes"), LIMIT, async || {
        let counted = world.get("NodePool", "fixed").await?.data["status"]["nodes"].as_u64();
        let claims = world.claims().await?.len();
        ensure!(claims == wanted && counted == u64::try_from(wanted).ok(), "{claims} claims, status.nodes {counted:?}");
        Ok(Some(()))
    })
    .await?;
    ensure!(world.consistent().await? == wanted, "claims, nodes and instances do not agree");
    Ok(())
}

pub(crate) async fn keeps_its_number_of_nodes(world: &mut World) -> Result<()> {
    open_gates(world).await?;
    let mark = world.begin().await?;
    let fixed = with(only(pool("fixed"), "m5.large"), "/spec/replicas", json!(2));
    let fixed = with(fixed, "/spec/limits", json!({"nodes": 3}));
    world.cluster.kubectl.apply(&manifests(&[node_class("default", CLUSTER_NAME), fixed])).await?;
    nodes(world, 2).await?;
    world.cluster.kubectl.run(&["scale", "nodepool", "fixed", "--replicas=5"]).await?;
    nodes(world, 3).await?;
    wait::holds("three nodes that nobody needs", Duration::from_secs(15), async || {
        let living = world.living().await?.len();
        ensure!(living == 3, "{living} instances");
        Ok(())
    })
    .await?;
    world.cluster.kubectl.run(&["scale", "nodepool", "fixed", "--replicas=1"]).await?;
    nodes(world, 1).await?;
    world.cluster.kubectl.run(&["scale", "nodepool", "fixed", "--replicas=0"]).await?;
    world.gone().await?;
    let launched = world.launched_since(mark)?.len();
    ensure!(launched == 3, "{launched} instances were started for three nodes");
    ensure!(world.panics().is_empty(), "{:?}", world.panics());
    Ok(())
}
