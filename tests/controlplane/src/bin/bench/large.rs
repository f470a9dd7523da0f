//! Memory at rest and with a large cluster watched.

use crate::subject::Subject;
use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::PostParams;
use mortise_controlplane_tests::measure::usage;
use serde_json::json;
use std::time::Duration;

/// Requests in flight while the cluster is filled.
const PARALLEL: usize = 48;

pub(crate) async fn run(nodes: u32, pods: u32) -> Result<()> {
    let subject = Subject::OursInProcess;
    let mut cluster = subject.cluster("bench-large").await?;
    let running = subject.start(&cluster).await?;
    cluster.kubectl.apply(&subject.manifests()).await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let idle = usage(running.daemon.pid())?;
    println!("\nMemory of the controller's process alone (target ≤ 150 MiB)");
    println!("{:<28} {:>9.0} MiB", "at rest", idle.rss_mib);

    let node_api: Api<Node> = Api::all(cluster.client.clone());
    let pod_api: Api<Pod> = Api::namespaced(cluster.client.clone(), "default");
    let create_node = |number: u32| {
        let api = node_api.clone();
        async move { api.create(&PostParams::default(), &node(number)?).await.map(drop).map_err(anyhow::Error::from) }
    };
    stream::iter(0..nodes).map(create_node).buffer_unordered(PARALLEL).try_collect::<()>().await?;
    let create_pod = |number: u32| {
        let api = pod_api.clone();
        async move { api.create(&PostParams::default(), &pod(number, nodes)?).await.map(drop).map_err(anyhow::Error::from) }
    };
    stream::iter(0..pods).map(create_pod).buffer_unordered(PARALLEL).try_collect::<()>().await?;
    tokio::time::sleep(Duration::from_secs(15)).await;
    let full = usage(running.daemon.pid())?;
    println!(
        "{:<28} {:>9.0} MiB, peak {:.0} MiB",
        format!("{nodes} nodes, {pods} pods"),
        full.rss_mib,
        full.peak_rss_mib
    );
    println!("{:<28} {:>9.2} CPU-s", "to take them in", full.cpu_seconds - idle.cpu_seconds);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let later = usage(running.daemon.pid())?;
    println!("{:<28} {:>9.3} CPU-s a second", "at rest with them", (later.cpu_seconds - full.cpu_seconds) / 10.0);
    cluster.check()
}

/// A node as a real one looks: what EKS writes about it is most of its size.
fn node(number: u32) -> Result<Node> {
    let name = format!("large-{number}");
    let zone = ["us-east-1a", "us-east-1b", "us-east-1c"][number as usize % 3];
    let size = json!({"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "20959212Ki"});
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Kubelet", "message": "kubelet says so",
               "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "us-east-1",
            "node.kubernetes.io/instance-type": "m6i.4xlarge", "eks.amazonaws.com/nodegroup": "large",
            "eks.amazonaws.com/capacityType": "ON_DEMAND", "topology.k8s.aws/zone-id": "use1-az1",
        }},
        "spec": {"providerID": format!("aws:///{zone}/i-{number:017x}")},
        "status": {
            "capacity": size, "allocatable": size,
            "conditions": [
                condition("Ready", "True"), condition("MemoryPressure", "False"), condition("DiskPressure", "False"),
                condition("PIDPressure", "False"),
            ],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
        },
    }))?)
}

fn pod(number: u32, nodes: u32) -> Result<Pod> {
    let app = format!("app-{}", number / 50);
    let environment: Vec<_> =
        (0..12).map(|it| json!({"name": format!("VARIABLE_{it}"), "value": "some value or other"})).collect();
    Ok(serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{app}-{number}"), "labels": {"app": app, "pod-template-hash": "6d4b75cb6d", "team": "large"},
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Workload", "name": app,
                                 "uid": format!("00000000-0000-0000-0000-{:012x}", number / 50), "controller": true}],
        },
        "spec": {
            "nodeName": format!("large-{}", number % nodes),
            "containers": [{"name": "main", "image": "registry.example.com/team/service:1.2.3", "env": environment,
                "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}}}],
        },
    }))?)
}
