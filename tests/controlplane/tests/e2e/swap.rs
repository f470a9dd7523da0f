//! Scenario 8: policies swapped while pods arrive.

use crate::objects::{deployment, manifests, node_class, only, pool};
use crate::world::{NAMESPACE, World};
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::wait;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The zone that the example scorer is told to favour. Without it equal prices are settled by name, so another wins.
const FAVOURED: &str = "us-east-1c";
const CONFIG_MAP: &str = "mortise-policies";

fn component(path: &str) -> Result<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Where the built-in policies are built too, so that the SDK is compiled once.
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("plugins");
    mortise_plugin_build::build(&root.join(path), &target).with_context(|| format!("building {path}"))
}

/// The ConfigMap with one scorer named `favour`.
fn config_map(component: &[u8], sha256: &str, config: &Value) -> Value {
    let policies = json!({
        "apiVersion": "mortise.dev/v1alpha1",
        "score": [
            {"name": "price", "source": {"builtin": "price"}},
            {"name": "favour", "source": {"inline": "favour.wasm"}, "sha256": sha256, "config": config},
        ],
    });
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": NAMESPACE, "labels": {"mortise.dev/policies": "true"}},
        "data": {"policies.yaml": policies.to_string()},
        "binaryData": {"favour.wasm": base64::engine::general_purpose::STANDARD.encode(component)},
    })
}

async fn status(world: &World) -> Result<Value> {
    let maps: Api<ConfigMap> = Api::namespaced(world.cluster.client.clone(), NAMESPACE);
    let map = maps.get(&format!("{CONFIG_MAP}-status")).await?;
    let text = map.data.and_then(|mut data| data.remove("status.yaml")).context("no status.yaml")?;
    Ok(serde_norway::from_str(&text)?)
}

async fn status_says(world: &World, what: &str, test: impl Fn(&Value) -> bool) -> Result<Value> {
    let what = format!("the status to say {what}");
    wait::until(&what, Duration::from_secs(45), async || {
        let status = status(world).await?;
        ensure!(test(&status), "it says {status}");
        Ok(Some(status))
    })
    .await
}

fn plugin<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["plugins"].as_array().into_iter().flatten().find(|it| it["name"] == name).unwrap_or(&Value::Null)
}

/// The pods of one step: three new nodes. Returns their zones and how long the slowest pod waited.
async fn wave(world: &World, name: &str) -> Result<(BTreeMap<String, u32>, Duration)> {
    let begun = Instant::now();
    world.cluster.kubectl.apply(&manifests(&[deployment(name, 3, "1500m", "1Gi")])).await?;
    let pods = world.running(name, 3).await?;
    let waited = begun.elapsed();
    let zone_of: BTreeMap<String, String> = world
        .nodes()
        .await?
        .into_iter()
        .map(|node| (node.name_any(), node.labels().get("topology.kubernetes.io/zone").cloned().unwrap_or_default()))
        .collect();
    let mut zones = BTreeMap::new();
    for pod in pods {
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        *zones.entry(zone_of.get(&node).cloned().unwrap_or_default()).or_insert(0) += 1;
    }
    Ok((zones, waited))
}

/// Pods that arrive while a ConfigMap is on its way, then the ConfigMap.
async fn apply_under_load(world: &World, step: &str, map: &Value) -> Result<()> {
    world
        .cluster
        .kubectl
        .apply(&manifests(&[deployment(&format!("load-{step}"), 2, "1500m", "1Gi"), map.clone()]))
        .await?;
    Ok(())
}

pub(crate) async fn policies_are_swapped_under_load(world: &mut World) -> Result<()> {
    world.begin().await?;
    let zone_discount = component("examples/plugins/zone-discount")?;
    let evil = component("tests/evil")?;
    let digest = |bytes: &[u8]| mortise_plugin_build::sha256(bytes);
    world
        .cluster
        .kubectl
        .apply(&manifests(&[node_class("default", CLUSTER_NAME), only(pool("default"), "m5.large")]))
        .await?;
    world.condition("NodePool", "default", "Ready", "True").await?;
    let all_there = |zones: &BTreeMap<String, u32>| zones.get(FAVOURED) == Some(&3);

    let (zones, usual) = wave(world, "defaults").await?;
    ensure!(!zones.contains_key(FAVOURED), "without the scorer {FAVOURED} won already: {zones:?}");
    let mut waits = vec![("defaults", usual)];

    // The example scorer: its zone wins from the next round on.
    let good = config_map(&zone_discount, &digest(&zone_discount), &json!({"zone": FAVOURED, "percent": 30}));
    apply_under_load(world, "favour", &good).await?;
    let active =
        status_says(world, "that the scorer is active", |it| plugin(it, "favour")["state"] == "Active").await?;
    ensure!(plugin(&active, "favour")["sha256"] == digest(&zone_discount).as_str(), "{active}");
    let (zones, waited) = wave(world, "favour").await?;
    ensure!(all_there(&zones), "the scorer favours {FAVOURED}: {zones:?}");
    waits.push(("favour", waited));
    let revision = active["revision"].clone();

    // A component that spins for ever does not pass its trial round.
    apply_under_load(world, "spin", &config_map(&evil, &digest(&evil), &json!({"mode": "spin"}))).await?;
    let refused = status_says(world, "that the spinning component is refused", |it| {
        it["rejected"]["reasons"].to_string().contains("fuel")
    })
    .await?;
    ensure!(refused["revision"] == revision, "the good revision is not the active one: {refused}");
    let (zones, waited) = wave(world, "spin").await?;
    ensure!(all_there(&zones), "last-good does not stay: {zones:?}");
    waits.push(("spin", waited));
    world.event("ConfigMap", CONFIG_MAP, "PoliciesRefused").await?;

    // One that turns bad at run time: what was good under this name stands in.
    let late = config_map(&evil, &digest(&evil), &json!({"mode": "spin", "hook": "evaluate", "since": 1}));
    apply_under_load(world, "late", &late).await?;
    status_says(world, "that the component that turns bad is admitted", |it| {
        plugin(it, "favour")["sha256"] == digest(&evil).as_str()
    })
    .await?;
    let (zones, waited) = wave(world, "late").await?;
    ensure!(all_there(&zones), "last-good does not stand in: {zones:?}");
    waits.push(("late", waited));
    let faulty = status_says(world, "the faults of the component", |it| {
        plugin(it, "favour")["faults"].as_object().is_some_and(|all| all.values().any(|count| count.as_u64() > Some(0)))
    })
    .await?;
    ensure!(plugin(&faulty, "favour")["lastError"].as_str().is_some_and(|it| !it.is_empty()), "{faulty}");

    // A truncated file.
    apply_under_load(world, "favour-again", &good).await?;
    status_says(world, "that the scorer is active again", |it| {
        plugin(it, "favour")["sha256"] == digest(&zone_discount).as_str()
    })
    .await?;
    let half = zone_discount.get(..zone_discount.len() / 2).unwrap_or_default();
    let truncated = config_map(half, &digest(&zone_discount), &json!({"zone": "us-east-1b", "percent": 30}));
    apply_under_load(world, "half", &truncated).await?;
    let refused = status_says(world, "that the truncated file is refused", |it| {
        it["rejected"]["reasons"].to_string().contains("sha256")
    })
    .await?;
    ensure!(refused["revision"] == revision, "the good revision is not the active one: {refused}");
    let (zones, waited) = wave(world, "half").await?;
    ensure!(all_there(&zones), "last-good does not stay: {zones:?}");
    waits.push(("half", waited));

    // Nothing: the defaults again.
    world.cluster.kubectl.run(&["delete", "configmap", CONFIG_MAP, "-n", NAMESPACE]).await?;
    status_says(world, "defaults", |it| it["revision"] == "defaults" && it["rejected"].is_null()).await?;
    let (zones, waited) = wave(world, "nothing").await?;
    ensure!(!zones.contains_key(FAVOURED), "the scorer still acts: {zones:?}");
    waits.push(("nothing", waited));

    // No round lost: every pod of every load runs, and none waited longer than without any swap (batch window and joining
    // vary by a second or two on a busy machine).
    for step in ["favour", "spin", "late", "favour-again", "half"] {
        world.running(&format!("load-{step}"), 2).await?;
    }
    world.consistent().await?;
    for (step, waited) in &waits {
        ensure!(
            *waited < usual + Duration::from_secs(6),
            "pods of {step} waited {waited:?}, usually {usual:?}: {waits:?}"
        );
    }
    ensure!(world.panics().is_empty(), "{:?}", world.panics());
    Ok(())
}
