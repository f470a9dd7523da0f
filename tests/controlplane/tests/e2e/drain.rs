//! Scenario 7: a drain that may not evict waits, says so, and keeps nobody else waiting.

use crate::objects::{deployment, manifests, node_class, only, pool, with};
use crate::world::{LIMIT, World};
use anyhow::{Context, Result, ensure};
use kube::ResourceExt as _;
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::wait;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

async fn nodes_of(world: &World, app: &str) -> Result<BTreeSet<String>> {
    Ok(world.pods(app).await?.into_iter().filter_map(|pod| pod.spec.and_then(|spec| spec.node_name)).collect())
}

pub(crate) async fn a_budget_that_allows_nothing_holds_one_node_only(world: &mut World) -> Result<()> {
    world.begin().await?;
    let guard = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guarded", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}},
    });
    world
        .cluster
        .kubectl
        .apply(&manifests(&[
            node_class("default", CLUSTER_NAME),
            only(pool("default"), "m5.large"),
            guard,
            deployment("guarded", 1, "1500m", "1Gi"),
            deployment("free", 2, "1500m", "1Gi"),
        ]))
        .await?;
    world.running("guarded", 1).await?;
    world.running("free", 2).await?;
    ensure!(world.consistent().await? == 3, "three pods of 1.5 CPU need three m5.large");
    let guarded = nodes_of(world, "guarded").await?.pop_first().context("no node")?;
    let before = nodes_of(world, "free").await?;
    world.cluster.kubectl.run(&["delete", "nodeclaims", "--all", "--wait=false"]).await?;

    // The free pods move to new nodes and their old nodes go, while the guarded one stays where it is.
    wait::until("the free pods to run elsewhere and their nodes to go", LIMIT, async || {
        let now = nodes_of(world, "free").await?;
        let running = world.pods("free").await?.iter().filter(|pod| crate::world::phase(pod) == "Running").count();
        let names: BTreeSet<String> = world.nodes().await?.iter().map(|node| node.name_any()).collect();
        Ok((running == 2 && now.is_disjoint(&before) && names.is_disjoint(&before)).then_some(()))
    })
    .await
    .context(world.situation().await)?;
    ensure!(nodes_of(world, "guarded").await?.contains(&guarded), "the guarded pod was moved");
    world.running("guarded", 1).await?;
    let message = world.event("Node", &guarded, "FailedDraining").await?;
    ensure!(message.contains("guarded"), "the Event does not name the budget: {message}");
    let node = world.nodes().await?.into_iter().find(|node| node.name_any() == guarded).context("the node is gone")?;
    let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
    ensure!(taints.iter().any(|taint| taint.key == "karpenter.sh/disrupted"), "{taints:?}");
    wait::holds("the guarded node", Duration::from_secs(10), async || {
        ensure!(nodes_of(world, "guarded").await?.contains(&guarded), "the guarded pod was moved");
        Ok(())
    })
    .await?;

    world.cluster.kubectl.run(&["delete", "pdb", "guarded"]).await?;
    wait::until("the guarded node to go once it may", LIMIT, async || {
        let names: BTreeSet<String> = world.nodes().await?.iter().map(|node| node.name_any()).collect();
        Ok((!names.contains(&guarded)).then_some(()))
    })
    .await?;
    world.running("guarded", 1).await?;
    Ok(())
}

pub(crate) async fn a_grace_period_ends_even_a_forbidden_drain(world: &mut World) -> Result<()> {
    world.begin().await?;
    let pool = with(only(pool("default"), "m5.large"), "/spec/template/spec/terminationGracePeriod", json!("15s"));
    let guard = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guarded", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "guarded"}}},
    });
    world
        .cluster
        .kubectl
        .apply(&manifests(&[
            node_class("default", CLUSTER_NAME),
            pool,
            guard,
            deployment("guarded", 1, "1500m", "1Gi"),
        ]))
        .await?;
    world.running("guarded", 1).await?;
    world.consistent().await?;
    let node = nodes_of(world, "guarded").await?.pop_first().context("no node")?;
    world.cluster.kubectl.run(&["delete", "nodeclaims", "--all", "--wait=false"]).await?;
    wait::holds("the guarded pod before the grace period is over", Duration::from_secs(8), async || {
        ensure!(nodes_of(world, "guarded").await?.contains(&node), "the pod went early");
        Ok(())
    })
    .await?;
    wait::until("the node to go when the grace period is over", LIMIT, async || {
        let names: BTreeSet<String> = world.nodes().await?.iter().map(|node| node.name_any()).collect();
        Ok((!names.contains(&node)).then_some(()))
    })
    .await
    .context(world.situation().await)?;
    world.running("guarded", 1).await?;
    ensure!(world.consistent().await? == 1, "not one node");
    Ok(())
}

pub(crate) async fn do_not_disrupt_keeps_an_otherwise_empty_node(world: &mut World) -> Result<()> {
    world.begin().await?;
    let annotated = with(
        deployment("kept", 1, "100m", "64Mi"),
        "/spec/template/metadata/annotations",
        json!({"karpenter.sh/do-not-disrupt": "true"}),
    );
    world
        .cluster
        .kubectl
        .apply(&manifests(&[
            node_class("default", CLUSTER_NAME),
            only(pool("default"), "m5.large"),
            annotated,
            deployment("other", 1, "1700m", "1Gi"),
        ]))
        .await?;
    world.running("kept", 1).await?;
    world.running("other", 1).await?;
    world.consistent().await?;
    world.cluster.kubectl.run(&["scale", "deployment", "other", "--replicas=0"]).await?;
    let kept = nodes_of(world, "kept").await?;
    wait::until("the node without the annotated pod to go", LIMIT, async || {
        let names: BTreeSet<String> = world.nodes().await?.iter().map(|node| node.name_any()).collect();
        Ok((names == kept).then_some(()))
    })
    .await?;
    wait::holds("the node of the annotated pod", Duration::from_secs(10), async || {
        ensure!(nodes_of(world, "kept").await? == kept, "it was moved");
        Ok(())
    })
    .await
}

pub(crate) async fn a_machine_that_never_joins_does_not_count_as_capacity_for_ever(world: &mut World) -> Result<()> {
    world.begin().await?;
    world.aws()?.joiner.pause(true);
    world
        .cluster
        .kubectl
        .apply(&manifests(&[
            node_class("default", CLUSTER_NAME),
            only(pool("default"), "m5.large"),
            deployment("app", 1, "1500m", "1Gi"),
        ]))
        .await?;
    wait::until("a launched claim", LIMIT, async || {
        let claims = world.claims().await?;
        let launched =
            claims.iter().any(|it| crate::objects::condition(it, "Launched").is_some_and(|it| it.0 == "True"));
        Ok(launched.then_some(()))
    })
    .await?;
    // The claim says what it waits for, and no second instance is started for the same pod meanwhile.
    wait::holds("one instance for one pod", Duration::from_secs(20), async || {
        ensure!(world.living().await?.len() == 1, "{} instances", world.living().await?.len());
        Ok(())
    })
    .await?;
    let claim = world.claims().await?.into_iter().next().context("no claim")?;
    let registered = crate::objects::condition(&claim, "Registered").map(|it| (it.0, it.1));
    ensure!(
        registered.as_ref().is_some_and(|it| it.0 == "Unknown" && !it.1.is_empty()),
        "Registered is {registered:?}"
    );
    world.aws()?.joiner.pause(false);
    world.running("app", 1).await?;
    ensure!(world.consistent().await? == 1, "not one node");
    Ok(())
}
