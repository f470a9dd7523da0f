//! Scenarios 4 to 6: replies, leaders and the API server lost in the middle of launches. Counts must be exact.

use crate::objects::{deployment, manifests, node_class, only, pool};
use crate::world::World;
use anyhow::{Result, ensure};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::controller::Overrides;
use mortise_controlplane_tests::proxy::{Effect, Fault};
use mortise_controlplane_tests::wait;
use std::time::Duration;

/// One node for each pod.
async fn burst(world: &World, pods: u32) -> Result<()> {
    let objects = [node_class("default", CLUSTER_NAME), only(pool("default"), "m5.large")];
    world.cluster.kubectl.apply(&manifests(&objects)).await?;
    world.condition("NodePool", "default", "Ready", "True").await?;
    world.cluster.kubectl.apply(&manifests(&[deployment("app", pods, "1500m", "1Gi")])).await.map(drop)
}

async fn exactly(world: &World, mark: usize, pods: usize) -> Result<()> {
    world.running("app", pods).await?;
    let living = world.consistent().await?;
    let launched = world.launched_since(mark)?.len();
    ensure!(living == pods && launched == pods, "{pods} pods, {living} living instances, {launched} ever launched");
    ensure!(world.panics().is_empty(), "{:?}", world.panics());
    Ok(())
}

async fn instances_started(world: &World, mark: usize, at_least: usize) -> Result<()> {
    wait::until("instances to be started", Duration::from_secs(30), async || {
        Ok((world.launched_since(mark)?.len() >= at_least).then_some(()))
    })
    .await
}

pub(crate) async fn a_lost_reply_launches_nothing_twice(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    world.proxy()?.inject(Fault::on("CreateFleet", Effect::LoseReply).times(2));
    burst(world, 3).await?;
    exactly(world, mark, 3).await
}

pub(crate) async fn a_refused_call_is_tried_again(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    let throttle =
        Effect::Refuse { status: 503, code: "RequestLimitExceeded".into(), message: "Request limit exceeded.".into() };
    world.proxy()?.inject(Fault::on("CreateFleet", throttle).times(2));
    burst(world, 2).await?;
    exactly(world, mark, 2).await
}

pub(crate) async fn an_instance_nobody_knows_of_is_adopted(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    // The reply stays away until its reader is dead: AWS has started the instances, nobody knows.
    world.proxy()?.inject(Fault::on("CreateFleet", Effect::Late(Duration::from_secs(120))));
    burst(world, 2).await?;
    instances_started(world, mark, 1).await?;
    world.kill_all();
    world.proxy()?.heal();
    let orphans = world.launched_since(mark)?;
    for _ in 0..2 {
        world.start_replica(&Overrides::default()).await?;
    }
    exactly(world, mark, 2).await?;
    // Past the age at which an instance without a claim is collected: the adopted ones must not be.
    wait::holds("adopted instances", Duration::from_secs(45), async || {
        let living = world.living().await?;
        ensure!(orphans.iter().all(|id| living.iter().any(|it| &it.id == id)), "of {orphans:?} live {living:?}");
        Ok(())
    })
    .await?;
    exactly(world, mark, 2).await
}

pub(crate) async fn an_instance_without_a_claim_is_collected(world: &mut World) -> Result<()> {
    world.begin().await?;
    burst(world, 1).await?;
    world.running("app", 1).await?;
    world.consistent().await?;
    // The claim vanishes without its finalizer's doing, as in a restored or mistreated cluster.
    let claims = world.claims().await?;
    world.cluster.kubectl.run(&["delete", "deployment", "app"]).await?;
    world.kill_all();
    for claim in &claims {
        let name = claim.metadata.name.clone().unwrap_or_default();
        let patch = r#"{"metadata":{"finalizers":null}}"#;
        world.cluster.kubectl.run(&["patch", "nodeclaim", &name, "--type=merge", "-p", patch]).await?;
        world.cluster.kubectl.run(&["delete", "nodeclaim", &name]).await?;
    }
    ensure!(world.living().await?.len() == 1, "the instance is gone already");
    world.start_replica(&Overrides::default()).await?;
    world.gone().await
}

pub(crate) async fn the_second_replica_finishes_what_a_killed_leader_began(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    world.proxy()?.inject(Fault::on("CreateFleet", Effect::Late(Duration::from_secs(4))));
    burst(world, 12).await?;
    instances_started(world, mark, 1).await?;
    let leader = world.leader().await?;
    world.kill(&leader);
    ensure!(world.replicas.len() == 1, "{} replicas are left", world.replicas.len());
    let successor = world.leader().await?;
    ensure!(successor != leader, "the dead leader leads");
    exactly(world, mark, 12).await
}

pub(crate) async fn a_leader_told_to_stop_hands_over_at_once(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    let leader = world.leader().await?;
    burst(world, 4).await?;
    let Some(index) = world.replicas.iter().position(|it| it.name == leader) else { anyhow::bail!("no leader") };
    let mut stopping = world.replicas.remove(index);
    let (status, took) = stopping.daemon.terminate(Duration::from_secs(20)).await;
    ensure!(
        status.is_some_and(|it| it.code() == Some(0)),
        "it ended with {status:?}:\n{}",
        stopping.daemon.log_tail(20)
    );
    ensure!(took < Duration::from_secs(15), "it took {took:?} to stop");
    let begun = std::time::Instant::now();
    world.leader().await?;
    // Not the 15 s for which a Lease lasts whose holder did not release it.
    ensure!(begun.elapsed() < Duration::from_secs(8), "the hand-over took {:?}", begun.elapsed());
    exactly(world, mark, 4).await
}

pub(crate) async fn the_api_server_restarts_in_mid_burst(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    world.proxy()?.inject(Fault::on("CreateFleet", Effect::Late(Duration::from_secs(2))));
    burst(world, 12).await?;
    instances_started(world, mark, 1).await?;
    world.cluster.plane.restart_apiserver(Duration::from_secs(2)).await?;
    exactly(world, mark, 12).await
}
