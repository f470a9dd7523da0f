//! Holds a whole cluster up until Ctrl-C and prints how to reach it: for debugging the controller by hand.
//!
//! `cargo run -p mortise-controlplane-tests --bin cluster [-- --no-aws] [--install]`

use anyhow::Result;
use mortise_controlplane_tests::cluster::{AWS_ENVIRONMENT, Cluster, Options};
use mortise_controlplane_tests::helm::{Installation, charts};

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut options = Options::named("cluster");
    options.aws = !arguments.iter().any(|argument| argument == "--no-aws");
    let cluster = Cluster::start(options).await?;
    if arguments.iter().any(|argument| argument == "--install") {
        install(&cluster).await?;
    }
    let directory = cluster.workspace.path().display();
    println!("# logs and configuration: {directory}");
    println!("export KUBECONFIG={}", cluster.plane.kubeconfig().display());
    println!(
        "export PATH={}:$PATH   # kwok, helm; kubectl is `kubernetes kubectl`",
        cluster.tools.cache().join("bin").display()
    );
    if let Some(aws) = &cluster.aws {
        println!("export AWS_ENDPOINT_URL={}   # fault proxy; moto itself: {}", aws.proxy.endpoint, aws.moto.endpoint);
        for (name, value) in AWS_ENVIRONMENT {
            println!("export {name}={value}");
        }
        println!("export CLUSTER_NAME={}", mortise_controlplane_tests::aws::CLUSTER_NAME);
    }
    println!("# up; Ctrl-C ends it");
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// The chart's CRDs and roles, so that the binary can be run with the printed environment at once.
async fn install(cluster: &Cluster) -> Result<()> {
    cluster.helm.install("mortise-crd", "karpenter", &charts().join("mortise-crd"), &[]).await?;
    let values = cluster.workspace.write(
        "values.yaml",
        format!("settings:\n  clusterName: {}\n", mortise_controlplane_tests::aws::CLUSTER_NAME),
    )?;
    println!("{}", cluster.helm.install("mortise", "karpenter", &charts().join("mortise"), &[&values]).await?);
    let installed = Installation::read(&cluster.client, "karpenter").await?;
    for (name, value) in &installed.env {
        println!("export {name}='{value}'");
    }
    Ok(())
}
