//! Scenario 1: the published burst, up, to zero, and cleaned up by hand.

use crate::objects::{self, deployment, manifests, node_class, pool, require, with};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use kube::ResourceExt as _;
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::{proxy, wait};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// A fleet request as the reference describes it, and tagged so that its instances are known from their first moment.
pub(crate) fn well_formed(call: &proxy::Call, pools: &[&str]) -> Result<()> {
    ensure!(call.parameter("Type") == "instant", "Type is {:?}", call.parameter("Type"));
    ensure!(!call.parameter("ClientToken").is_empty(), "no client token");
    let spot = call.parameter("TargetCapacitySpecification.DefaultTargetCapacityType") == "spot";
    let strategy = if spot { "SpotOptions.AllocationStrategy" } else { "OnDemandOptions.AllocationStrategy" };
    let expected = if spot { "price-capacity-optimized" } else { "lowest-price" };
    ensure!(call.parameter(strategy) == expected, "{strategy} is {:?}", call.parameter(strategy));
    let types: BTreeSet<&str> = call.values_of(".InstanceType").into_iter().collect();
    ensure!((1..=60).contains(&types.len()), "{} instance types", types.len());
    let tags = call.tags("instance");
    for key in ["karpenter.sh/nodepool", "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name"] {
        ensure!(tags.contains_key(key), "instances do not carry the tag {key}: {tags:?}");
    }
    ensure!(tags["eks:eks-cluster-name"] == CLUSTER_NAME, "{tags:?}");
    ensure!(pools.contains(&tags["karpenter.sh/nodepool"].as_str()), "{tags:?}");
    ensure!(tags.get(&format!("kubernetes.io/cluster/{CLUSTER_NAME}")).is_some_and(|it| it == "owned"), "{tags:?}");
    Ok(())
}

pub(crate) async fn up_and_to_zero(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    // Both NodePools and the EC2NodeClass of the article as they are, except that waiting times are cut and the budget
    // that forbids disruption in business hours is left to a test of its own: this one runs at any hour.
    let fast = with(
        with(article_pool("default", "apps"), "/spec/disruption/consolidateAfter", json!("2s")),
        "/spec/disruption/budgets",
        json!([{"nodes": "100%"}]),
    );
    let mut system = with(article_pool("system", "system"), "/spec/weight", json!(100));
    system = with(system, "/spec/template/spec/taints", json!([{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]));
    world.cluster.kubectl.apply(&manifests(&[node_class("default", CLUSTER_NAME), fast, system])).await?;
    world.condition("EC2NodeClass", "default", "Ready", "True").await?;
    world.condition("NodePool", "default", "Ready", "True").await?;

    world.cluster.kubectl.apply(&manifests(&[deployment("burst", 50, "250m", "256Mi")])).await?;
    let pods = world.running("burst", 50).await?;
    let count = world.consistent().await?;
    ensure!(count >= 1, "no node");
    let calls = world.proxy()?.calls_since(mark, "CreateFleet");
    ensure!(!calls.is_empty(), "no CreateFleet at the endpoint");
    for call in &calls {
        well_formed(call, &["default"])?;
    }
    ensure!(world.launched_since(mark)?.len() == count, "launched {:?}, living {count}", world.launched_since(mark)?);

    // The scheduler put every pod on a node of the pool; the nodes are as users expect them.
    let nodes = world.nodes().await?;
    let names: BTreeSet<String> = nodes.iter().map(|node| node.name_any()).collect();
    for pod in &pods {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        ensure!(names.contains(&node), "{} runs on {node:?}, which is no node of a pool", pod.name_any());
    }
    for node in &nodes {
        let labels = node.labels();
        for (key, value) in [
            ("karpenter.sh/nodepool", "default"),
            ("intent", "apps"),
            ("karpenter.sh/registered", "true"),
            ("karpenter.sh/initialized", "true"),
        ] {
            ensure!(
                labels.get(key).is_some_and(|it| it == value),
                "{}: {key} is {:?}",
                node.name_any(),
                labels.get(key)
            );
        }
        for key in [
            "karpenter.sh/capacity-type",
            "karpenter.k8s.aws/instance-category",
            "topology.kubernetes.io/zone",
            "node.kubernetes.io/instance-type",
        ] {
            ensure!(labels.contains_key(key), "{} lacks {key}", node.name_any());
        }
        let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
        ensure!(taints.is_empty(), "{} keeps taints: {taints:?}", node.name_any());
    }
    let refused = world.aws()?.joiner.refused();
    ensure!(refused.is_empty(), "machines that could not join: {refused:?}");
    for claim in world.claims().await? {
        ensure!(!objects::text(&claim, "/status/nodeName").is_empty(), "{} has no nodeName", claim.name_any());
    }

    world.cluster.kubectl.run(&["scale", "deployment", "burst", "--replicas=0"]).await?;
    world.gone().await?;
    let terminated = world.aws()?.direct.instances("karpenter.sh/nodepool").await?;
    ensure!(terminated.iter().all(|it| !it.lives()), "{terminated:?}");
    Ok(())
}

fn article_pool(name: &str, intent: &str) -> serde_json::Value {
    let mut pool = pool(name);
    pool = with(pool, "/spec/template/metadata", json!({"labels": {"intent": intent}}));
    pool = with(pool, "/spec/template/spec/expireAfter", json!("336h"));
    pool = with(pool, "/spec/weight", json!(10));
    pool = with(pool, "/spec/disruption/consolidationPolicy", json!("WhenEmptyOrUnderutilized"));
    pool = with(pool, "/spec/limits", json!({"cpu": 1000, "memory": "1000Gi"}));
    pool = with(pool, "/spec/template/spec/requirements", json!([]));
    for (key, operator, values) in [
        ("karpenter.sh/capacity-type", "In", &["spot", "on-demand"][..]),
        ("karpenter.k8s.aws/instance-category", "In", &["c", "m", "r"]),
        ("karpenter.k8s.aws/instance-generation", "Gt", &["5"]),
        ("karpenter.k8s.aws/instance-size", "NotIn", &["nano", "micro", "small"]),
        ("kubernetes.io/arch", "In", &["amd64", "arm64"]),
        ("topology.kubernetes.io/zone", "In", &["us-east-1a", "us-east-1b", "us-east-1c"]),
    ] {
        pool = require(pool, key, operator, values);
    }
    pool
}

pub(crate) async fn deleting_nodes_by_hand_ends_every_instance(world: &mut World) -> Result<()> {
    world.begin().await?;
    let stays = with(objects::only(pool("default"), "m5.large"), "/spec/disruption/consolidateAfter", json!("Never"));
    world.cluster.kubectl.apply(&manifests(&[node_class("default", CLUSTER_NAME), stays])).await?;
    world.cluster.kubectl.apply(&manifests(&[deployment("app", 3, "1500m", "1Gi")])).await?;
    world.running("app", 3).await?;
    ensure!(world.consistent().await? == 3, "three pods of 1.5 CPU need three m5.large");
    world.cluster.kubectl.run(&["scale", "deployment", "app", "--replicas=0"]).await?;
    wait::holds("empty nodes with consolidateAfter Never", Duration::from_secs(15), async || {
        let living = world.living().await?.len();
        ensure!(living == 3, "{living} instances");
        Ok(())
    })
    .await?;
    world.cluster.kubectl.run(&["delete", "nodes", "-l", "karpenter.sh/nodepool", "--timeout=60s"]).await?;
    world.gone().await
}

pub(crate) async fn a_budget_of_zero_holds_until_it_is_lifted(world: &mut World) -> Result<()> {
    world.begin().await?;
    // Open every minute for an hour: always.
    let closed = json!([{"nodes": "100%"}, {"nodes": "0", "schedule": "* * * * *", "duration": "1h"}]);
    let closed = with(objects::only(pool("default"), "m5.large"), "/spec/disruption/budgets", closed);
    world
        .cluster
        .kubectl
        .apply(&manifests(&[node_class("default", CLUSTER_NAME), closed, deployment("app", 1, "1", "1Gi")]))
        .await?;
    world.running("app", 1).await?;
    world.cluster.kubectl.run(&["scale", "deployment", "app", "--replicas=0"]).await?;
    let message = world.event("NodePool", "default", "DisruptionBlocked").await?;
    ensure!(message.to_lowercase().contains("budget"), "{message}");
    wait::holds("the empty node behind a closed budget", Duration::from_secs(15), async || {
        ensure!(world.living().await?.len() == 1, "it went");
        Ok(())
    })
    .await?;
    let patch = r#"{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}"#;
    world.cluster.kubectl.run(&["patch", "nodepool", "default", "--type=merge", "-p", patch]).await?;
    world.gone().await.context("after the budget was lifted")?;
    Ok(())
}
