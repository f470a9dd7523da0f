//! The chart with the values of a published installation, unchanged.

use crate::world::{LIMIT, NAMESPACE, World};
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, PostParams};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::controller::Overrides;
use mortise_controlplane_tests::helm::{Installation, charts};
use mortise_controlplane_tests::workspace::free_port;
use mortise_controlplane_tests::{controller, kwok, wait};
use serde_json::json;
use std::collections::BTreeSet;

const VALUES: &str = include_str!("../../fixtures/helm-values.yaml");

/// Two nodes as a managed node group for system pods has them, in two zones.
async fn managed_nodes(world: &World) -> Result<()> {
    let nodes: Api<Node> = Api::all(world.cluster.client.clone());
    for zone in ["us-east-1a", "us-east-1b"] {
        let name = format!("managed-{zone}");
        let size = json!({"cpu": "2", "memory": "8Gi", "pods": "29"});
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name, "annotations": {kwok::ANNOTATION: kwok::MANAGED},
                "labels": {
                    "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
                    "topology.kubernetes.io/zone": zone, "intent": "system",
                },
            },
            "spec": {"taints": [{"key": "CriticalAddonsOnly", "effect": "NoSchedule"}]},
            "status": {"capacity": size, "allocatable": size},
        });
        nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
    }
    Ok(())
}

/// Installs both charts and remembers what was rendered. Returns the notes.
pub(crate) async fn install(world: &mut World) -> Result<String> {
    managed_nodes(world).await?;
    let cluster = &world.cluster;
    cluster.helm.install("mortise-crd", NAMESPACE, &charts().join("mortise-crd"), &[]).await?;
    let values = VALUES
        .replace("${module.eks.cluster_name}", CLUSTER_NAME)
        .replace("${module.eks.cluster_endpoint}", &cluster.plane.server)
        .replace("${module.karpenter.queue_name}", CLUSTER_NAME);
    ensure!(!values.contains("${"), "a variable of the values is not filled: {values}");
    let values = cluster.workspace.write("values.yaml", values)?;
    let notes = cluster.helm.install("karpenter", NAMESPACE, &charts().join("mortise"), &[&values]).await?;
    world.installed = Some(Installation::read(&cluster.client, NAMESPACE).await?);
    Ok(notes)
}

/// Feature gates of scenarios that need them.
const GATES: &str = "settings: {featureGates: {nodeOverlay: true, capacityBuffer: true, staticCapacity: true}}\n";

/// Upgrades the release with the gates on, once; the replicas start anew with the environment and roles that go with them.
pub(crate) async fn open_gates(world: &mut World) -> Result<()> {
    if world.installed.is_none() {
        install(world).await?;
    }
    let open = |it: &Installation| it.variable("FEATURE_GATES").is_some_and(|v| v.contains("StaticCapacity=true"));
    if world.installed.as_ref().is_some_and(open) {
        return Ok(());
    }
    let cluster = &world.cluster;
    let values = cluster.workspace.file("values.yaml");
    let gates = cluster.workspace.write("gates.yaml", GATES)?;
    cluster.helm.install("karpenter", NAMESPACE, &charts().join("mortise"), &[&values, &gates]).await?;
    world.installed = Some(Installation::read(&cluster.client, NAMESPACE).await?);
    ensure!(world.installed.as_ref().is_some_and(open), "the gates are not in the environment: {:?}", world.installed);
    world.kill_all();
    Ok(())
}

pub(crate) async fn the_articles_values_install_unchanged(world: &mut World) -> Result<()> {
    let notes = install(world).await?;
    ensure!(notes.contains("interruptionQueue"), "the notes do not warn of the queue that is not read yet: {notes}");
    let installed = world.installed.clone().context("not installed")?;
    ensure!(installed.replicas == 2, "{installed:?}");
    let expected = [
        ("CLUSTER_NAME", CLUSTER_NAME),
        ("INTERRUPTION_QUEUE", CLUSTER_NAME),
        ("CPU_REQUESTS", "500"),
        ("MEMORY_LIMIT", "1073741824"),
        ("EXTRA_METRICS_PORT", "8000"),
        ("SYSTEM_NAMESPACE", NAMESPACE),
    ];
    for (name, value) in expected {
        ensure!(installed.variable(name) == Some(value), "{name} is {:?} and not {value:?}", installed.variable(name));
    }
    ensure!(installed.variable("CLUSTER_ENDPOINT") == Some(world.cluster.plane.server.as_str()), "{installed:?}");

    // The spread constraint of those values selects `karpenter`: it must spread ours.
    let pods: Api<Pod> = Api::namespaced(world.cluster.client.clone(), NAMESPACE);
    let nodes = wait::until("both replicas' pods to run", LIMIT, async || {
        let all = pods.list(&ListParams::default().labels("app.kubernetes.io/name=karpenter")).await?.items;
        let nodes: BTreeSet<String> = all
            .iter()
            .filter(|pod| crate::world::phase(pod) == "Running")
            .filter_map(|pod| pod.spec.as_ref()?.node_name.clone())
            .collect();
        ensure!(all.len() == 2 && nodes.len() == 2, "{} pods labelled karpenter run on {nodes:?}", all.len());
        Ok(Some(nodes))
    })
    .await;
    match nodes {
        Ok(_) => Ok(()),
        Err(error) => {
            let pods = world.cluster.kubectl.run(&["describe", "pods", "-n", NAMESPACE]).await?;
            Err(error.context(pods))
        }
    }
}

pub(crate) async fn wrong_values_are_refused_by_name(world: &mut World) -> Result<()> {
    let helm = &world.cluster.helm;
    let chart = charts().join("mortise").display().to_string();
    for (wrong, word) in [
        ("settings.clusterNmae=x", "clusterNmae"),
        ("settings.featureGates.nodeRepiar=true", "nodeRepiar"),
        ("replicas=two", "replicas"),
    ] {
        let arguments = ["template", "x", &chart, "--set", "settings.clusterName=x", "--set", wrong];
        let output = helm.try_run(&arguments).await?;
        ensure!(!output.success && output.stderr.contains(word), "--set {wrong} was not refused by name: {output:?}");
    }
    Ok(())
}

pub(crate) async fn replicas_answer_on_all_their_ports(world: &mut World) -> Result<()> {
    world.begin().await?;
    let extra = free_port()?;
    let overrides = Overrides { env: vec![("EXTRA_METRICS_PORT".to_owned(), extra.to_string())], args: Vec::new() };
    let replica = world.start_replica(&overrides).await?;
    let (metrics, health) = (replica.metrics_port, replica.health_port);
    for (port, path, word) in [
        (metrics, "/metrics", "karpenter_"),
        (extra, "/metrics", "karpenter_"),
        (health, "/healthz", ""),
        (health, "/readyz", ""),
    ] {
        let (status, body) = controller::get(port, path).await.with_context(|| format!("{path} on {port}"))?;
        ensure!(status == 200 && body.contains(word), "{path} on {port} says {status}: {body}");
    }
    let name = world.replicas.last().map(|it| it.name.clone()).unwrap_or_default();
    world.kill(&name);
    Ok(())
}
