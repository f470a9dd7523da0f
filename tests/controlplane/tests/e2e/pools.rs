//! Scenario 2 and bad input: a broken pool or class says why and stops nobody else.

use crate::objects::{deployment, manifests, node_class, only, pool, require, with};
use crate::world::World;
use anyhow::{Result, ensure};
use kube::ResourceExt as _;
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::wait;
use serde_json::json;
use std::time::Duration;

pub(crate) async fn weights_decide_and_broken_pools_say_why(world: &mut World) -> Result<()> {
    world.begin().await?;
    let weighted = |name: &str, weight: u32| with(only(pool(name), "m5.large"), "/spec/weight", json!(weight));
    let dark = with(weighted("dark", 90), "/spec/template/spec/nodeClassRef/name", json!("dark"));
    let impossible = require(
        with(pool("impossible"), "/spec/weight", json!(80)),
        "karpenter.k8s.aws/instance-category",
        "In",
        &["zz"],
    );
    let classless = with(weighted("classless", 70), "/spec/template/spec/nodeClassRef/name", json!("missing"));
    world
        .cluster
        .kubectl
        .apply(&manifests(&[
            node_class("default", CLUSTER_NAME),
            node_class("dark", "no-such-subnet"),
            dark,
            impossible,
            classless,
            weighted("first", 50),
            weighted("second", 10),
            deployment("app", 4, "1500m", "1Gi"),
        ]))
        .await?;
    world.running("app", 4).await?;
    ensure!(world.consistent().await? == 4, "four pods of 1.5 CPU need four m5.large");
    for node in world.nodes().await? {
        let pool = node.labels().get("karpenter.sh/nodepool").cloned().unwrap_or_default();
        ensure!(pool == "first", "{} is of the pool {pool} and not of the heaviest that works", node.name_any());
    }
    let (reason, message) = world.condition("EC2NodeClass", "dark", "SubnetsReady", "False").await?;
    ensure!(reason == "SubnetsNotFound" && !message.is_empty(), "{reason}: {message}");
    world.condition("EC2NodeClass", "dark", "Ready", "False").await?;
    world.condition("NodePool", "dark", "NodeClassReady", "False").await?;
    world.condition("NodePool", "dark", "Ready", "False").await?;
    let (_, message) = world.condition("NodePool", "classless", "NodeClassReady", "False").await?;
    ensure!(message.contains("missing"), "it does not name the class that is not there: {message}");
    let message = world.event("NodePool", "impossible", "NoCompatibleInstanceTypes").await?;
    ensure!(
        message.contains("instance-category") || message.contains("zz"),
        "it does not name the requirement: {message}"
    );
    Ok(())
}

pub(crate) async fn pods_that_fit_nowhere_are_told_why(world: &mut World) -> Result<()> {
    world.begin().await?;
    let zone = "us-west-9z";
    let wrong_zone = require(pool("wrong-zone"), "topology.kubernetes.io/zone", "In", &[zone]);
    let wrong_type = require(pool("wrong-type"), "node.kubernetes.io/instance-type", "In", &["m5.lrage"]);
    let good = only(pool("default"), "m5.large");
    let selector = |name: &str, key: &str, value: &str| {
        with(deployment(name, 1, "100m", "64Mi"), "/spec/template/spec/nodeSelector", json!({key: value}))
    };
    world
        .cluster
        .kubectl
        .apply(&manifests(&[
            node_class("default", CLUSTER_NAME),
            wrong_zone,
            wrong_type,
            good,
            selector("zone", "topology.kubernetes.io/zone", zone),
            selector("label", "example.com/unknown", "x"),
            deployment("huge", 1, "4000", "1Gi"),
            deployment("fine", 1, "100m", "64Mi"),
        ]))
        .await?;
    world.running("fine", 1).await?;
    for (app, word) in [("zone", zone), ("label", "example.com/unknown"), ("huge", "cpu")] {
        let message = world.event("Pod", app, "FailedScheduling").await?;
        let own = wait::until(&format!("our own FailedScheduling about {app}"), Duration::from_secs(30), async || {
            let all = world.events("Pod", app, "FailedScheduling").await?;
            Ok(all.into_iter().find_map(|event| {
                let component =
                    event.source.and_then(|it| it.component).or(event.reporting_component).unwrap_or_default();
                (component == "karpenter").then_some(event.message).flatten()
            }))
        })
        .await?;
        ensure!(own.contains(word), "{app}: the Event does not name {word:?}: {own} (the scheduler says: {message})");
    }
    for (pool, word) in [("wrong-zone", zone), ("wrong-type", "m5.lrage")] {
        let message = world.event("NodePool", pool, "NoCompatibleInstanceTypes").await?;
        ensure!(message.contains(word), "{pool}: {message}");
    }
    ensure!(world.panics().is_empty(), "{:?}", world.panics());
    Ok(())
}

pub(crate) async fn limits_stop_a_pool(world: &mut World) -> Result<()> {
    world.begin().await?;
    let limited = with(only(pool("default"), "m5.large"), "/spec/limits", json!({"cpu": "4"}));
    world
        .cluster
        .kubectl
        .apply(&manifests(&[node_class("default", CLUSTER_NAME), limited, deployment("app", 4, "1500m", "1Gi")]))
        .await?;
    wait::until("two nodes", Duration::from_secs(60), async || {
        let running = world.pods("app").await?.iter().filter(|pod| crate::world::phase(pod) == "Running").count();
        Ok((running == 2).then_some(()))
    })
    .await?;
    wait::holds("a limit of 4 CPUs", Duration::from_secs(12), async || {
        let living = world.living().await?.len();
        ensure!(living == 2, "{living} instances of 2 CPUs");
        Ok(())
    })
    .await?;
    ensure!(world.consistent().await? == 2, "the claims do not agree");
    Ok(())
}
