//! The CRDs on the real API server: every good manifest goes in, every bad one is refused with the words that help.

use crate::objects::dynamic;
use crate::world::{NAMESPACE, World};
use anyhow::{Context, Result, ensure};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use mortise_controlplane_tests::helm::charts;
use serde::Deserialize as _;
use std::path::{Path, PathBuf};

fn fixtures(folder: &str) -> Result<Vec<PathBuf>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/crd").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&directory)
        .with_context(|| format!("reading {}", directory.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    ensure!(!files.is_empty(), "no fixtures in {}", directory.display());
    Ok(files)
}

fn documents(yaml: &str) -> Result<Vec<DynamicObject>> {
    serde_norway::Deserializer::from_str(yaml)
        .map(|document| Ok(serde_json::from_value(serde_json::Value::deserialize(document)?)?))
        .collect()
}

pub(crate) async fn chart_installs_them(world: &mut World) -> Result<()> {
    let cluster = &world.cluster;
    cluster.helm.install("mortise-crd", NAMESPACE, &charts().join("mortise-crd"), &[]).await?;
    cluster
        .kubectl
        .run(&[
            "wait",
            "--for=condition=established",
            "crd/nodepools.karpenter.sh",
            "crd/nodeclaims.karpenter.sh",
            "crd/ec2nodeclasses.karpenter.k8s.aws",
            "crd/nodeoverlays.karpenter.sh",
            "crd/capacitybuffers.autoscaling.x-k8s.io",
            "--timeout=20s",
        ])
        .await?;
    // Short names and printer columns as users know them.
    let columns = cluster.kubectl.run(&["get", "nodepools,nodeclaims,ec2nodeclasses,overlays,cb"]).await;
    ensure!(columns.is_ok(), "{columns:?}");
    Ok(())
}

pub(crate) async fn good_manifests_go_in(world: &mut World) -> Result<()> {
    for path in fixtures("good")? {
        let text = std::fs::read_to_string(&path)?;
        let file = path.display().to_string();
        // As a user does it: client-side first, then server-side over it.
        world.cluster.kubectl.run(&["apply", "-f", &file]).await.with_context(|| format!("{text}\n{file}"))?;
        world.cluster.kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &file]).await?;
        world.cluster.kubectl.run(&["delete", "-f", &file]).await?;
    }
    Ok(())
}

pub(crate) async fn bad_manifests_are_refused_with_words_that_help(world: &mut World) -> Result<()> {
    let mut complaints = Vec::new();
    for path in fixtures("bad")? {
        let text = std::fs::read_to_string(&path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let expected = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("# expect: "))
            .with_context(|| format!("{name} does not begin with `# expect: `"))?;
        let refusal = refused(world, &text).await.with_context(|| name.clone())?;
        match refusal {
            None => complaints.push(format!("{name} went in, expected: {expected}")),
            Some(message) if !message.contains(expected) => {
                complaints.push(format!("{name}: expected {expected:?}, got {message:?}"))
            }
            Some(_) => {}
        }
    }
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

/// Creates the first version of each object and replaces it by later ones; the last message of the API server, if the last
/// document was refused.
async fn refused(world: &World, yaml: &str) -> Result<Option<String>> {
    let mut created: Vec<(String, String)> = Vec::new();
    let mut answer = None;
    for object in documents(yaml)? {
        let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
        let name = object.metadata.name.clone().unwrap_or_default();
        let api = dynamic(&world.cluster.client, &kind);
        let outcome = if created.contains(&(kind.clone(), name.clone())) {
            let mut object = object;
            object.metadata.resource_version = api.get(&name).await?.metadata.resource_version;
            api.replace(&name, &PostParams::default(), &object).await.map(drop)
        } else {
            api.create(&PostParams::default(), &object).await.map(|_| created.push((kind.clone(), name.clone())))
        };
        answer = match outcome {
            Ok(()) => None,
            Err(kube::Error::Api(status)) => Some(status.message.clone()),
            Err(other) => return Err(other.into()),
        };
    }
    for (kind, name) in created {
        dynamic(&world.cluster.client, &kind).delete(&name, &DeleteParams::default()).await?;
    }
    Ok(answer)
}

pub(crate) async fn the_v1beta1_policy_is_refused_by_name(world: &mut World) -> Result<()> {
    let good =
        fixtures("good")?.into_iter().find(|path| path.ends_with("article-1.yaml")).context("no article-1.yaml")?;
    let text = std::fs::read_to_string(good)?.replace("WhenEmptyOrUnderutilized", "WhenUnderutilized");
    let output = world.cluster.kubectl.try_run(&["apply", "-f", "-"], Some(&text)).await?;
    world.cluster.kubectl.run(&["delete", "nodepools,ec2nodeclasses", "--all"]).await?;
    ensure!(!output.success && output.stderr.contains("WhenEmptyOrUnderutilized"), "{output:?}");
    Ok(())
}
