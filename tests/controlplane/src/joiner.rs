//! Turns running instances into nodes, as nodeadm and the kubelet do on the machine.
//!
//! Everything it knows comes from what the instance sees: user data, type, zone, addresses. It never looks at a
//! NodeClaim, so a node that lacks a label lacks it because the controller did not put it into the user data.

mod nodeadm;

use crate::aws::{AwsClient, Instance};
use crate::kwok;
use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use nodeadm::{Machine, NodeConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How often instances are looked at. Each look makes moto write all of them out, so it must not be often.
const PERIOD: Duration = Duration::from_millis(700);
/// For one look at all instances. A call that is never answered must not keep every later machine from joining.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the joiner needs.
#[derive(Clone)]
pub struct Options {
    /// Where instances are described. Not the proxy: these calls are the machines' own, not the controller's.
    pub aws: AwsClient,
    /// A client that may do what kubelets do.
    pub client: kube::Client,
    /// The only API server that nodes can reach.
    pub server: String,
    /// Its certificate authority, PEM.
    pub ca_pem: String,
    /// Kubernetes version that nodes report.
    pub version: String,
}

/// The running joiner. It stops on drop; nodes stay.
#[derive(Debug)]
pub struct Joiner {
    task: JoinHandle<()>,
    paused: Arc<AtomicBool>,
    refused: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Joiner {
    /// Starts looking.
    pub fn start(options: Options) -> Self {
        let paused = Arc::new(AtomicBool::new(false));
        let refused = Arc::default();
        let mut worker = Worker {
            options,
            paused: Arc::clone(&paused),
            refused: Arc::clone(&refused),
            machines: BTreeMap::new(),
            joined: BTreeMap::new(),
        };
        let task = tokio::spawn(async move {
            loop {
                // The API server or moto may be away for a while, or never answer; machines keep trying too.
                tokio::time::timeout(PATIENCE, worker.look()).await.ok();
                tokio::time::sleep(PERIOD).await;
            }
        });
        Self { task, paused, refused }
    }

    /// While paused, instances boot but never join.
    pub fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Instances that could not join, with the reason that would stand in their boot log.
    pub fn refused(&self) -> BTreeMap<String, String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Joiner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Worker {
    options: Options,
    paused: Arc<AtomicBool>,
    refused: Arc<Mutex<BTreeMap<String, String>>>,
    machines: BTreeMap<String, Machine>,
    /// Instance id to node name.
    joined: BTreeMap<String, String>,
}

impl Worker {
    async fn look(&mut self) -> Result<()> {
        let instances = self.options.aws.instances("").await?;
        let living: BTreeSet<&str> = instances.iter().filter(|it| it.lives()).map(|it| it.id.as_str()).collect();
        let ended: Vec<(String, String)> = self
            .joined
            .iter()
            .filter(|(id, _)| !living.contains(id.as_str()))
            .map(|(id, node)| (id.clone(), node.clone()))
            .collect();
        for (id, node) in ended {
            self.power_off(&node).await?;
            self.joined.remove(&id);
        }
        if self.paused.load(Ordering::Relaxed) {
            return Ok(());
        }
        for instance in instances.iter().filter(|it| it.state == "running") {
            if self.joined.contains_key(&instance.id) || self.refused().contains_key(&instance.id) {
                continue;
            }
            match self.boot(instance).await {
                Ok(node) => {
                    self.joined.insert(instance.id.clone(), node);
                }
                Err(BootError::Config(reason)) => {
                    self.refused().insert(instance.id.clone(), reason);
                }
                Err(BootError::Later(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn refused(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn boot(&mut self, instance: &Instance) -> Result<String, BootError> {
        let user_data = self.options.aws.user_data(&instance.id).await?;
        let config = NodeConfig::parse(&user_data).map_err(|error| BootError::Config(format!("{error:#}")))?;
        config
            .reaches(&self.options.server, &self.options.ca_pem)
            .map_err(|error| BootError::Config(format!("{error:#}")))?;
        let machine = self.machine(&instance.instance_type).await?;
        let node = nodeadm::node(instance, &config, &machine, &self.options.version)
            .map_err(|error| BootError::Config(format!("{error:#}")))?;
        let nodes: Api<Node> = Api::all(self.options.client.clone());
        match nodes.create(&PostParams::default(), &node).await {
            Ok(_) => {}
            // The kubelet updates its node if it is there already.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(BootError::Later(error.into())),
        }
        Ok(instance.private_dns.clone())
    }

    async fn machine(&mut self, instance_type: &str) -> Result<Machine> {
        if let Some(machine) = self.machines.get(instance_type) {
            return Ok(machine.clone());
        }
        let xml = self.options.aws.ec2("DescribeInstanceTypes", &[("InstanceType.1", instance_type)]).await?;
        let number = |element: &str| -> Result<u64> {
            xml.text(element)?.parse().with_context(|| format!("<{element}> of {instance_type} is no number"))
        };
        let machine = Machine {
            vcpus: number("defaultVCpus")?,
            memory_mib: number("sizeInMiB")?,
            architecture: if xml.0.contains("<item>arm64</item>") { "arm64" } else { "amd64" }.to_owned(),
            interfaces: number("maximumNetworkInterfaces")?,
            addresses: number("ipv4AddressesPerInterface")?,
        };
        self.machines.insert(instance_type.to_owned(), machine.clone());
        Ok(machine)
    }

    /// The kubelet stops: nobody renews the Lease any more and the node lifecycle controller will find out.
    async fn power_off(&self, node: &str) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.options.client.clone());
        let patch = serde_json::json!({"metadata": {"annotations": {kwok::ANNOTATION: "off"}}});
        match nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

enum BootError {
    /// The machine will never join: its configuration is wrong.
    Config(String),
    Later(anyhow::Error),
}

impl From<anyhow::Error> for BootError {
    fn from(error: anyhow::Error) -> Self {
        Self::Later(error)
    }
}

/// Names of the nodes that run on living instances, for assertions.
///
/// # Errors
/// The API server cannot be reached.
pub async fn node_names(client: &kube::Client) -> Result<Vec<String>> {
    let nodes: Api<Node> = Api::all(client.clone());
    Ok(nodes.list(&ListParams::default()).await?.items.into_iter().filter_map(|node| node.metadata.name).collect())
}
