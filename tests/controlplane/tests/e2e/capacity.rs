//! Scenario 3: offerings that are sold out.

use crate::objects::{deployment, manifests, node_class, only, pool, require};
use crate::world::{World, phase};
use anyhow::{Result, ensure};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::wait;
use std::time::Duration;

pub(crate) async fn the_next_offering_is_taken_within_a_round(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    // Spot is the first choice everywhere and sold out everywhere.
    world.proxy()?.market(|market| market.sell_out("", "", "spot", 0));
    let pool = require(pool("default"), "node.kubernetes.io/instance-type", "In", &["m5.large", "m5.xlarge"]);
    let pool = require(pool, "karpenter.sh/capacity-type", "In", &["spot", "on-demand"]);
    world
        .cluster
        .kubectl
        .apply(&manifests(&[node_class("default", CLUSTER_NAME), pool, deployment("app", 2, "1500m", "1Gi")]))
        .await?;
    world.running("app", 2).await?;
    world.consistent().await?;
    ensure!(world.living().await?.iter().all(|it| it.capacity_type == "on-demand"), "{:?}", world.living().await?);
    let calls = world.proxy()?.calls_since(mark, "CreateFleet");
    let spot =
        calls.iter().filter(|call| call.parameter("TargetCapacitySpecification.DefaultTargetCapacityType") == "spot");
    let spot = spot.count();
    ensure!(
        (1..=4).contains(&spot),
        "{spot} spot requests: sold-out offerings are asked for again and again, or never"
    );
    Ok(())
}

pub(crate) async fn sold_out_everywhere_waits_calmly_and_recovers(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    world.proxy()?.market(|market| market.sell_out("", "", "", 0));
    world
        .cluster
        .kubectl
        .apply(&manifests(&[
            node_class("default", CLUSTER_NAME),
            only(pool("default"), "m5.large"),
            deployment("app", 2, "1500m", "1Gi"),
        ]))
        .await?;
    let message = world.event("NodeClaim", "default-", "InsufficientCapacityError").await?;
    ensure!(!message.is_empty(), "the Event says nothing");
    let pod_message = wait::until("an Event of ours about the pending pods", Duration::from_secs(40), async || {
        for reason in ["FailedScheduling", "InsufficientCapacityError"] {
            for event in world.events("Pod", "app", reason).await? {
                let component =
                    event.source.and_then(|it| it.component).or(event.reporting_component).unwrap_or_default();
                if component == "karpenter" {
                    return Ok(event.message);
                }
            }
        }
        Ok(None)
    })
    .await?;
    ensure!(!pod_message.is_empty(), "the Event says nothing");
    // All offerings are known to be sold out now: nothing is asked of AWS, nothing is created, until the memory fades.
    let calm = world.proxy()?.mark();
    wait::holds("sold out everywhere", Duration::from_secs(30), async || {
        let fleets = world.proxy()?.calls_since(calm, "CreateFleet").len();
        ensure!(fleets <= 2, "{fleets} CreateFleet calls in less than 30 s");
        ensure!(world.pods("app").await?.iter().all(|pod| phase(pod) == "Pending"), "a pod is not pending");
        Ok(())
    })
    .await?;
    ensure!(world.claims().await?.len() <= 2, "claims pile up: {}", world.claims().await?.len());
    let calls = world.proxy()?.calls_since(mark, "CreateFleet").len();
    ensure!(calls <= 8, "{calls} CreateFleet calls for two pods");

    world.proxy()?.heal();
    wait::until("recovery once the three minutes are over", Duration::from_secs(230), async || {
        let pods = world.pods("app").await?;
        Ok((pods.len() == 2 && pods.iter().all(|pod| phase(pod) == "Running")).then_some(()))
    })
    .await?;
    ensure!(world.consistent().await? == 2, "two pods of 1.5 CPU need two m5.large");
    Ok(())
}
