//! The controllers that are measured, and how each is started on a fresh cluster.

use anyhow::{Context, Result};
use mortise_controlplane_tests::aws::CLUSTER_NAME;
use mortise_controlplane_tests::cluster::{Cluster, Options};
use mortise_controlplane_tests::controller::{Controller, Overrides, clean_environment, get};
use mortise_controlplane_tests::helm::{Installation, charts};
use mortise_controlplane_tests::process::Daemon;
use mortise_controlplane_tests::wait;
use mortise_controlplane_tests::workspace::free_port;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    OursInProcess,
    OursMoto,
    Karpenter,
}

/// A running controller.
pub(crate) struct Running {
    pub daemon: Daemon,
    pub metrics_port: u16,
}

impl Subject {
    pub(crate) async fn cluster(self, name: &str) -> Result<Cluster> {
        let mut options = Options::named(name);
        options.aws = self == Self::OursMoto;
        // Kubernetes' own rates: they are part of the times on record.
        options.control_plane.client_qps = None;
        options.control_plane.node_grace = Duration::from_secs(3600);
        Cluster::start(options).await
    }

    pub(crate) async fn start(self, cluster: &Cluster) -> Result<Running> {
        match self {
            Self::Karpenter => karpenter(cluster).await,
            Self::OursInProcess | Self::OursMoto => self.ours(cluster).await,
        }
    }

    async fn ours(self, cluster: &Cluster) -> Result<Running> {
        let provider = if self == Self::OursMoto { "aws" } else { "kwok" };
        cluster.helm.install("mortise-crd", "karpenter", &charts().join("mortise-crd"), &[]).await?;
        let values = json!({
            "replicas": 1, "settings": {"clusterName": CLUSTER_NAME, "cloudProvider": provider},
            // As the original's own benchmark: five cores' worth of workers, ample memory.
            "controller": {"resources": {"requests": {"cpu": "5"}, "limits": {"memory": "1Gi"}}},
            "logLevel": "error",
        });
        let values = cluster.workspace.write("values.json", values.to_string())?;
        cluster.helm.install("karpenter", "karpenter", &charts().join("mortise"), &[&values]).await?;
        let installed = Installation::read(&cluster.client, "karpenter").await?;
        // Its pods would wait for a node of their own and be counted.
        cluster.kubectl.run(&["scale", "deployment", "--all", "--replicas=0", "-n", "karpenter"]).await?;
        let mut controller = Controller::start(cluster, &installed, "mortise", &Overrides::default()).await?;
        controller.ready().await?;
        Ok(Running { metrics_port: controller.metrics_port, daemon: controller.daemon })
    }

    /// The class and the pool: every type, empty nodes go at once.
    pub(crate) fn manifests(self) -> String {
        let (group, kind, class) = match self {
            Self::Karpenter => (
                "karpenter.kwok.sh",
                "KWOKNodeClass",
                json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}),
            ),
            Self::OursInProcess | Self::OursMoto => ("karpenter.k8s.aws", "EC2NodeClass", ec2_class()),
        };
        let pool = json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"},
            "spec": {
                "template": {"spec": {
                    "nodeClassRef": {"group": group, "kind": kind, "name": "default"}, "expireAfter": "Never",
                    "requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}],
                }},
                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]},
            },
        });
        format!("{class}\n---\n{pool}")
    }
}

fn ec2_class() -> Value {
    let discovery = json!([{"tags": {"karpenter.sh/discovery": CLUSTER_NAME}}]);
    json!({
        "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"},
        "spec": {
            "role": format!("KarpenterNodeRole-{CLUSTER_NAME}"), "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": discovery, "securityGroupSelectorTerms": discovery,
        },
    })
}

async fn karpenter(cluster: &Cluster) -> Result<Running> {
    let binary = cluster.tools.karpenter()?;
    let crds = cluster.tools.cache().join("karpenter-crds").display().to_string();
    cluster.kubectl.run(&["apply", "--server-side", "-f", &crds]).await?;
    cluster.kubectl.run(&["wait", "--for=condition=established", "crd", "--all", "--timeout=30s"]).await?;
    cluster.kubectl.run(&["create", "namespace", "karpenter"]).await?;
    let (metrics_port, health_port) = (free_port()?, free_port()?);
    let mut command = Command::new(binary);
    clean_environment(&mut command);
    command
        .env("KUBECONFIG", cluster.plane.kubeconfig())
        .envs([
            ("KUBERNETES_MIN_VERSION", "1.19.0-0"),
            ("KARPENTER_SERVICE", "karpenter"),
            ("SYSTEM_NAMESPACE", "karpenter"),
            ("DISABLE_LEADER_ELECTION", "true"),
            ("FEATURE_GATES", "NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false"),
            ("MEMORY_LIMIT", "1073741824"),
            ("CPU_REQUESTS", "5000"),
            ("LOG_LEVEL", "error"),
        ])
        .env("METRICS_PORT", metrics_port.to_string())
        .env("HEALTH_PROBE_PORT", health_port.to_string());
    let mut daemon = Daemon::spawn("karpenter", command, &cluster.workspace.file("karpenter.log"))?;
    wait::until("Karpenter to be ready", Duration::from_secs(60), async || {
        daemon.check()?;
        let (status, _) = get(health_port, "/readyz").await.context("no answer")?;
        Ok((status == 200).then_some(()))
    })
    .await?;
    Ok(Running { daemon, metrics_port })
}
