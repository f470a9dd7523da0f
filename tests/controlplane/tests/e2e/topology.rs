//! Pods that other pods, ports and volumes tie to a place: what is launched is what the real scheduler then uses.

use crate::objects::{deployment, manifests, node_class, only, pool, with};
use crate::world::World;
use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::{Api, ResourceExt as _};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::wait;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const EBS: &str = "ebs.csi.aws.com";
const SPEC: &str = "/spec/template/spec";

fn labelled(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

fn require_pods(deployment: Value, kind: &str, key: &str, app: &str) -> Value {
    let terms = json!([{"topologyKey": key, "labelSelector": labelled(app)}]);
    let rule = json!({ kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms} });
    with(deployment, &format!("{SPEC}/affinity"), rule)
}

/// The class and one pool of m5.large on demand, beside what a scenario adds.
async fn apply(world: &World, objects: &[Value]) -> Result<()> {
    let mut all = vec![node_class("default", CLUSTER_NAME), only(pool("default"), "m5.large")];
    all.extend_from_slice(objects);
    world.cluster.kubectl.apply(&manifests(&all)).await.map(drop)
}

/// How many of these pods are in each zone.
async fn zones(world: &World, pods: &[Pod]) -> Result<BTreeMap<String, usize>> {
    let nodes: BTreeMap<String, Node> = world.nodes().await?.into_iter().map(|n| (n.name_any(), n)).collect();
    let mut zones = BTreeMap::new();
    for pod in pods {
        let node = node_of(pod)?;
        let labels = nodes.get(node).with_context(|| format!("{node} is no node of a pool"))?.labels();
        let zone = labels.get(ZONE).with_context(|| format!("{node} has no zone"))?;
        *zones.entry(zone.clone()).or_default() += 1;
    }
    Ok(zones)
}

fn node_of(pod: &Pod) -> Result<&str> {
    pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).with_context(|| format!("{} is not bound", pod.name_any()))
}

fn hosts(pods: &[Pod]) -> Result<BTreeSet<String>> {
    pods.iter().map(|pod| node_of(pod).map(str::to_owned)).collect()
}

pub(crate) async fn pods_are_spread_over_three_zones(world: &mut World) -> Result<()> {
    world.begin().await?;
    let spread = json!([{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": labelled("web"), "minDomains": 3}]);
    // All of them would fit one node.
    let web = with(deployment("web", 6, "100m", "64Mi"), &format!("{SPEC}/topologySpreadConstraints"), spread);
    apply(world, &[web]).await?;
    let pods = world.running("web", 6).await?;
    let zones = zones(world, &pods).await?;
    ensure!(zones.len() == 3 && zones.values().all(|count| *count == 2), "two pods in each of three zones: {zones:?}");
    ensure!(world.consistent().await? == 3, "one node in each zone is enough");
    Ok(())
}

pub(crate) async fn pods_that_keep_apart_get_a_node_each(world: &mut World) -> Result<()> {
    world.begin().await?;
    let web = require_pods(deployment("web", 3, "100m", "64Mi"), "podAntiAffinity", HOSTNAME, "web");
    apply(world, &[web]).await?;
    let pods = world.running("web", 3).await?;
    ensure!(hosts(&pods)?.len() == 3, "each on a node of its own");
    ensure!(world.consistent().await? == 3, "and no further node");
    Ok(())
}

pub(crate) async fn pods_follow_others_into_their_zone(world: &mut World) -> Result<()> {
    world.begin().await?;
    let database = deployment("db", 1, "1500m", "1Gi");
    let web = require_pods(deployment("web", 3, "1500m", "1Gi"), "podAffinity", ZONE, "db");
    apply(world, &[database, web]).await?;
    let mut pods = world.running("web", 3).await?;
    pods.extend(world.running("db", 1).await?);
    let zones = zones(world, &pods).await?;
    ensure!(zones.len() == 1, "all in the zone of the database: {zones:?}");
    ensure!(world.consistent().await? == 4, "m5.large has room for one of them each");
    Ok(())
}

pub(crate) async fn a_host_port_is_given_once_a_node(world: &mut World) -> Result<()> {
    world.begin().await?;
    let ports = json!([{"containerPort": 8080, "hostPort": 8080}]);
    let web = with(deployment("web", 2, "100m", "64Mi"), &format!("{SPEC}/containers/0/ports"), ports);
    apply(world, &[web]).await?;
    let pods = world.running("web", 2).await?;
    ensure!(hosts(&pods)?.len() == 2, "one port, two nodes");
    ensure!(world.consistent().await? == 2, "and no further node");
    Ok(())
}

/// A volume of this driver that is bound to a claim, in any zone or in one.
fn volume(name: &str, claim: &str, class: &str, zone: Option<&str>) -> Value {
    let place = zone.map(|zone| {
        let terms = json!([{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]);
        json!({"required": {"nodeSelectorTerms": terms}})
    });
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": class, "csi": {"driver": EBS, "volumeHandle": name}, "nodeAffinity": place,
            "claimRef": {"namespace": "default", "name": claim},
        },
    })
}

fn claim(name: &str, class: &str, volume: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": class, "volumeName": volume,
        },
    })
}

fn mounting(deployment: Value, claim: &str) -> Value {
    let volumes = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    with(deployment, &format!("{SPEC}/volumes"), volumes)
}

/// What `World::begin` does not know of.
async fn without_volumes(world: &World) -> Result<()> {
    let kubectl = &world.cluster.kubectl;
    kubectl.run(&["delete", "deployments,pods", "--all", "-n", "default", "--wait=false"]).await?;
    kubectl.run(&["delete", "pvc", "--all", "-n", "default", "--wait=false"]).await?;
    kubectl.run(&["delete", "pv,csinodes,storageclasses", "--all", "--wait=false"]).await?;
    Ok(())
}

pub(crate) async fn a_volume_not_made_yet_decides_the_zone(world: &mut World) -> Result<()> {
    world.begin().await?;
    let zone = format!("{}c", mortise_controlplane_tests::aws::REGION);
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
        "provisioner": EBS, "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}],
    });
    let web = mounting(deployment("web", 1, "100m", "64Mi"), "data");
    apply(world, &[class, claim("data", "late", None), web]).await?;
    // The scheduler chose the node; the provisioner's part is ours.
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(world.cluster.client.clone());
    wait::until("the scheduler to choose a node for the volume", Duration::from_secs(90), async || {
        Ok(claims.get("data").await?.annotations().get("volume.kubernetes.io/selected-node").cloned())
    })
    .await?;
    world.cluster.kubectl.apply(&manifests(&[volume("made", "data", "late", Some(&zone))])).await?;
    let pods = world.running("web", 1).await?;
    let zones = zones(world, &pods).await?;
    ensure!(zones.keys().eq([&zone]), "in the zone that the class allows: {zones:?}");
    ensure!(world.consistent().await? == 1, "one node");
    without_volumes(world).await
}

pub(crate) async fn a_full_attach_limit_asks_for_another_node(world: &mut World) -> Result<()> {
    world.begin().await?;
    let pair = |name: &str| {
        let volume_name = format!("{name}-volume");
        [volume(&volume_name, name, "", None), claim(name, "", Some(&volume_name))]
    };
    let mut objects = Vec::from(pair("one"));
    objects.push(mounting(deployment("first", 1, "100m", "64Mi"), "one"));
    apply(world, &objects).await?;
    let pods = world.running("first", 1).await?;
    let node = node_of(&pods[0])?.to_owned();
    let drivers = json!([{"name": EBS, "nodeID": node, "topologyKeys": [], "allocatable": {"count": 1}}]);
    let limits = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node}, "spec": {"drivers": drivers},
    });
    world.cluster.kubectl.apply(&manifests(&[limits])).await?;
    let mut objects = Vec::from(pair("two"));
    objects.push(mounting(deployment("second", 1, "100m", "64Mi"), "two"));
    world.cluster.kubectl.apply(&manifests(&objects)).await?;
    let second = world.running("second", 1).await?;
    ensure!(node_of(&second[0])? != node, "the first node can attach one volume only");
    ensure!(world.consistent().await? == 2, "two nodes");
    without_volumes(world).await
}
