//! A Deployment up and to zero.

use crate::subject::{Running, Subject};
use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ListParams;
use mortise_controlplane_tests::cluster::Cluster;
use mortise_controlplane_tests::controller::get;
use mortise_controlplane_tests::measure::{reset_peak, usage};
use mortise_controlplane_tests::wait;
use serde_json::json;
use std::time::{Duration, Instant};

/// What one run cost.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    /// CPU-seconds from the Deployment's creation until all pods run.
    pub cpu_up: f64,
    /// Highest resident memory of the whole run, MiB.
    pub peak_mib: f64,
    /// Seconds from the Deployment's creation until all pods run.
    pub seconds_up: f64,
    /// CPU-seconds from scaling to zero until no node is left.
    pub cpu_down: f64,
    /// Seconds from scaling to zero until no node is left.
    pub seconds_down: f64,
    /// Nodes that there were.
    pub nodes: usize,
}

const LIMIT: Duration = Duration::from_secs(900);

async fn nodes(cluster: &Cluster) -> Result<usize> {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    Ok(nodes.list_metadata(&ListParams::default().labels("karpenter.sh/nodepool")).await?.items.len())
}

pub(crate) async fn run(subject: Subject, pods: u32) -> Result<Measured> {
    let mut cluster = subject.cluster("bench").await?;
    let mut running = subject.start(&cluster).await?;
    cluster.kubectl.apply(&subject.manifests()).await?;
    cluster.kubectl.run(&["wait", "--for=condition=Ready", "nodepool/default", "--timeout=60s"]).await?;
    // Start-up (compiling policies, reading types and prices, filling caches) is not what is measured.
    tokio::time::sleep(Duration::from_secs(8)).await;
    let measured = measure(&cluster, &mut running, pods).await;
    if measured.is_err() {
        cluster.workspace.keep();
        eprintln!("the end of the controller's log:\n{}", running.daemon.log_tail(20));
    } else if subject != Subject::Karpenter {
        latency(running.metrics_port).await?;
    }
    cluster.check()?;
    measured
}

async fn measure(cluster: &Cluster, running: &mut Running, pods: u32) -> Result<Measured> {
    let pid = running.daemon.pid();
    reset_peak(pid)?;
    let start = usage(pid)?;
    let begun = Instant::now();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "scale", "namespace": "default"},
        "spec": {
            "replicas": pods, "selector": {"matchLabels": {"app": "scale"}},
            "template": {
                "metadata": {"labels": {"app": "scale"}},
                "spec": {
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "pause", "image": "pause", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
                },
            },
        },
    });
    cluster.kubectl.apply(&deployment.to_string()).await?;
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "default");
    let wanted = i32::try_from(pods)?;
    wait::until("all pods to run", LIMIT, async || {
        running.daemon.check()?;
        let ready = deployments.get("scale").await?.status.and_then(|status| status.ready_replicas).unwrap_or(0);
        ensure!(ready == wanted, "{ready} of {wanted} run");
        Ok(Some(()))
    })
    .await?;
    let seconds_up = begun.elapsed().as_secs_f64();
    let up = usage(pid)?;
    let count = nodes(cluster).await?;
    // The dust settles: what is done about nodes that just came is part of bringing them up.
    tokio::time::sleep(Duration::from_secs(5)).await;

    let top = usage(pid)?;
    let begun = Instant::now();
    cluster.kubectl.run(&["scale", "deployment", "scale", "--replicas=0"]).await?;
    wait::until("all nodes to go", LIMIT, async || {
        running.daemon.check()?;
        let left = nodes(cluster).await?;
        ensure!(left == 0, "{left} nodes are left");
        Ok(Some(()))
    })
    .await?;
    let seconds_down = begun.elapsed().as_secs_f64();
    let end = usage(pid)?;
    Ok(Measured {
        cpu_up: up.cpu_seconds - start.cpu_seconds,
        peak_mib: end.peak_rss_mib,
        seconds_up,
        cpu_down: end.cpu_seconds - top.cpu_seconds,
        seconds_down,
        nodes: count,
    })
}

/// The controller's own histogram of the time from the end of a batch to the launch call.
async fn latency(port: u16) -> Result<()> {
    const NAME: &str = "mortise_batch_to_launch_seconds";
    let (_, text) = get(port, "/metrics").await?;
    let mut buckets: Vec<(f64, f64)> = text
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("{NAME}_bucket{{le=\"")))
        .filter_map(|rest| {
            let (bound, count) = rest.split_once("\"} ")?;
            Some((if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? }, count.trim().parse().ok()?))
        })
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(total) = buckets.last().map(|it| it.1).filter(|total| *total > 0.0) else { return Ok(()) };
    let at = |share: f64| buckets.iter().find(|it| it.1 >= total * share).map_or(f64::INFINITY, |it| it.0 * 1e3);
    println!(
        "{:<28} {total:>6} launches: p50 ≤ {:.0} ms, p99 ≤ {:.0} ms (targets 50 and 200)",
        "  end of batch to launch",
        at(0.5),
        at(0.99)
    );
    Ok(())
}
