//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler on free loopback ports.

mod components;
mod credentials;

pub use credentials::kubeconfig;

use crate::process::Daemon;
use crate::tools::Tools;
use crate::wait;
use crate::workspace::{Workspace, free_port};
use anyhow::{Context, Result, bail};
use credentials::{SigningKey, token};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a control plane differs from the usual one.
#[derive(Debug, Clone)]
pub struct Options {
    /// Feature gates for every component, as `Name=true`.
    pub feature_gates: Vec<String>,
    /// Requests per second that the controller manager and the scheduler allow themselves. `None` leaves Kubernetes'
    /// own defaults (20 and 50), which measurements want; tests want it fast.
    pub client_qps: Option<u32>,
    /// How long a node may stay silent before the node lifecycle controller marks it NotReady.
    pub node_grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { feature_gates: Vec::new(), client_qps: Some(500), node_grace: Duration::from_secs(50) }
    }
}

/// A running control plane; everything ends on drop.
#[derive(Debug)]
pub struct ControlPlane {
    /// Address of the API server.
    pub server: String,
    /// Certificate authority of the API server, PEM.
    pub ca_pem: String,
    kubeconfig: PathBuf,
    audit_log: PathBuf,
    // In the order in which they are stopped: clients before the servers they talk to.
    scheduler: Daemon,
    controller_manager: Daemon,
    apiserver: Daemon,
    etcd: Daemon,
    start: components::Start,
}

/// The range of service addresses, which nodes are told.
pub const SERVICE_CIDR: &str = "10.100.0.0/16";

impl ControlPlane {
    /// Starts the four components in `workspace` and waits until the API server is ready and the default service
    /// account exists (which shows that the controller manager works).
    ///
    /// # Errors
    /// A component does not start: the message carries the end of its log.
    pub async fn start(tools: &Tools, workspace: &Workspace, options: Options) -> Result<Self> {
        let admin = token()?;
        let manager = token()?;
        let scheduler = token()?;
        workspace.write(
            "tokens.csv",
            format!(
                "{admin},admin,admin,system:masters\n\
                 {manager},system:kube-controller-manager,manager,system:masters\n\
                 {scheduler},system:kube-scheduler,scheduler,\n"
            ),
        )?;
        let key = SigningKey::generate()?;
        workspace.write("service-account.key", key.private_pem)?;
        workspace.write("service-account.pub", key.public_pem)?;
        let start = components::Start {
            tools: tools.clone(),
            directory: workspace.path().to_owned(),
            etcd_port: free_port()?,
            etcd_peer_port: free_port()?,
            port: free_port()?,
            options,
        };
        let server = format!("https://127.0.0.1:{}", start.port);

        let etcd = start.etcd()?;
        let mut apiserver = start.apiserver()?;
        let ca_pem = wait::until("the API server's certificate", Duration::from_secs(60), async || {
            apiserver.check()?;
            Ok(std::fs::read_to_string(start.directory.join("apiserver.crt")).ok().filter(|pem| pem.contains("END")))
        })
        .await?;
        let kubeconfig =
            workspace.write("admin.kubeconfig", credentials::kubeconfig(&server, &ca_pem, "admin", &admin)?)?;
        for (user, token) in [("controller-manager", &manager), ("scheduler", &scheduler)] {
            workspace.write(&format!("{user}.kubeconfig"), credentials::kubeconfig(&server, &ca_pem, user, token)?)?;
        }
        ready(&kubeconfig, &mut apiserver).await?;
        let mut plane = Self {
            controller_manager: start.controller_manager()?,
            scheduler: start.scheduler()?,
            audit_log: workspace.file("audit.log"),
            server,
            ca_pem,
            kubeconfig,
            apiserver,
            etcd,
            start,
        };
        let client = plane.client().await?;
        let accounts: kube::Api<k8s_openapi::api::core::v1::ServiceAccount> = kube::Api::namespaced(client, "default");
        wait::until("the default service account", Duration::from_secs(60), async || {
            plane.check()?;
            Ok(accounts.get_opt("default").await?)
        })
        .await?;
        Ok(plane)
    }

    /// Kubeconfig of a cluster administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The audit log, one JSON event a line.
    pub fn audit_log(&self) -> &Path {
        &self.audit_log
    }

    /// A client that may do everything.
    ///
    /// # Errors
    /// The kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        client(&self.kubeconfig).await
    }

    /// Fails if a component has ended.
    ///
    /// # Errors
    /// A component has ended: the message carries the end of its log.
    pub fn check(&mut self) -> Result<()> {
        for daemon in [&mut self.etcd, &mut self.apiserver, &mut self.controller_manager, &mut self.scheduler] {
            daemon.check()?;
        }
        Ok(())
    }

    /// Kills the API server (not the store) and starts it again after `pause` on the same port.
    ///
    /// # Errors
    /// It does not become ready again.
    pub async fn restart_apiserver(&mut self, pause: Duration) -> Result<()> {
        self.apiserver.kill();
        tokio::time::sleep(pause).await;
        self.apiserver = self.start.apiserver()?;
        ready(&self.kubeconfig, &mut self.apiserver).await
    }
}

/// A client for a kubeconfig file.
///
/// # Errors
/// The file cannot be read or names an unusable certificate authority.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig).with_context(|| format!("reading {}", kubeconfig.display()))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

async fn ready(kubeconfig: &Path, apiserver: &mut Daemon) -> Result<()> {
    let client = client(kubeconfig).await?;
    wait::until("the API server to be ready", Duration::from_secs(60), async || {
        apiserver.check()?;
        let request = http::Request::get("/readyz").body(Vec::new())?;
        match client.request_text(request).await?.as_str() {
            "ok" => Ok(Some(())),
            other => bail!("/readyz says {other}"),
        }
    })
    .await
}
