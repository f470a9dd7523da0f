//! Bad input to the binary, and `simulate` on files and on the live cluster.

use crate::objects::{deployment, manifests, node_class, pool, require};
use crate::world::World;
use anyhow::{Result, ensure};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::controller::{binary, clean_environment};
use mortise_controlplane_tests::process::{self, Output};
use std::process::Command;

async fn mortise(arguments: &[&str], env: &[(&str, &str)], input: Option<&str>) -> Result<Output> {
    let mut command = Command::new(binary()?);
    clean_environment(&mut command);
    command.args(arguments).envs(env.iter().copied());
    process::output(command, input).await
}

fn says(output: &Output, code: i32, words: &[&str]) -> Result<()> {
    let text = format!("{}{}", output.stdout, output.stderr);
    ensure!(output.code == Some(code), "exit code {:?} and not {code}: {output:?}", output.code);
    ensure!(!text.contains("panicked at"), "it panicked: {text}");
    for word in words {
        ensure!(text.contains(word), "it does not say {word:?}: {text}");
    }
    Ok(())
}

pub(crate) async fn wrong_flags_and_settings_are_named(_: &mut World) -> Result<()> {
    let named = ("CLUSTER_NAME", "x");
    says(&mortise(&["--no-such-flag"], &[named], None).await?, 2, &["--no-such-flag"])?;
    says(&mortise(&["frobnicate"], &[named], None).await?, 2, &["frobnicate"])?;
    says(&mortise(&[], &[], None).await?, 2, &["CLUSTER_NAME", "required"])?;
    says(&mortise(&["--metrics-port=banana"], &[named], None).await?, 2, &["METRICS_PORT", "banana"])?;
    says(&mortise(&[], &[named, ("BATCH_IDLE_DURATION", "soon")], None).await?, 2, &["BATCH_IDLE_DURATION", "soon"])?;
    says(
        &mortise(&[], &[named, ("PREFERENCE_POLICY", "Maybe")], None).await?,
        2,
        &["PREFERENCE_POLICY", "Maybe", "Respect"],
    )?;
    says(&mortise(&[], &[named, ("KUBECONFIG", "/no/such/file")], None).await?, 1, &["/no/such/file"])
}

pub(crate) async fn simulate_tells_what_is_wrong_with_its_input(_: &mut World) -> Result<()> {
    says(&mortise(&["simulate", "-"], &[], Some("garbage: [")).await?, 2, &["stdin", "YAML"])?;
    says(&mortise(&["simulate", "/no/such/file"], &[], None).await?, 2, &["/no/such/file"])?;
    let odd = r#"{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"odd"},"spec":{"limits":7}}"#;
    says(&mortise(&["simulate", "-"], &[], Some(odd)).await?, 2, &["odd", "limits"])?;
    says(&mortise(&["simulate", "--output", "xml", "-"], &[], Some("")).await?, 2, &["xml", "json"])
}

pub(crate) async fn simulate_plans_manifests(_: &mut World) -> Result<()> {
    let good = manifests(&[node_class("default", CLUSTER_NAME), pool("default"), deployment("app", 20, "1", "1Gi")]);
    let output = mortise(&["simulate", "-", "-o", "json"], &[], Some(&good)).await?;
    says(&output, 0, &[])?;
    let plan: serde_json::Value = serde_json::from_str(&output.stdout)?;
    ensure!(plan.to_string().contains("default"), "the plan names no pool: {plan}");
    let zone = require(pool("default"), "topology.kubernetes.io/zone", "In", &["us-west-9z"]);
    let bad = manifests(&[node_class("default", CLUSTER_NAME), zone, deployment("app", 1, "1", "1Gi")]);
    says(&mortise(&["simulate", "-"], &[], Some(&bad)).await?, 1, &["us-west-9z"])
}

pub(crate) async fn simulate_plans_for_the_live_cluster(world: &mut World) -> Result<()> {
    let mark = world.begin().await?;
    world.cluster.kubectl.apply(&manifests(&[node_class("default", CLUSTER_NAME), pool("default")])).await?;
    world.condition("NodePool", "default", "Ready", "True").await?;
    // No replica may act on the pods before the plan is made.
    world.kill_all();
    world.cluster.kubectl.apply(&manifests(&[deployment("app", 3, "1", "1Gi")])).await?;
    world.pods_exist("app", 3).await?;
    let kubeconfig = world.cluster.plane.kubeconfig().display().to_string();
    let output = mortise(&["simulate", "--live"], &[("KUBECONFIG", &kubeconfig)], None).await?;
    says(&output, 0, &["default"])?;
    ensure!(world.claims().await?.is_empty(), "a plan created something");
    ensure!(world.proxy()?.calls_since(mark, "CreateFleet").is_empty(), "a plan launched something");
    Ok(())
}
