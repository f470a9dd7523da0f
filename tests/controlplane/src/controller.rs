//! Our binary as a process beside the control plane: with the chart's environment and the chart's ServiceAccount, never
//! as an administrator.

use crate::cluster::Cluster;
use crate::control_plane::kubeconfig;
use crate::helm::Installation;
use crate::process::Daemon;
use crate::wait;
use crate::workspace::free_port;
use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// One replica.
#[derive(Debug)]
pub struct Controller {
    /// Its name, as a pod's.
    pub name: String,
    /// The process; its log is in the workspace.
    pub daemon: Daemon,
    /// Port of `/metrics`.
    pub metrics_port: u16,
    /// Port of `/healthz` and `/readyz`.
    pub health_port: u16,
}

/// How a replica differs from what the chart rendered.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Environment variables on top of the chart's.
    pub env: Vec<(String, String)>,
    /// Arguments on top of the chart's.
    pub args: Vec<String>,
}

/// The binary under test: `MORTISE_BIN`, or the newest of the profiles that `make` and developers build.
///
/// # Errors
/// There is none.
pub fn binary() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("MORTISE_BIN") {
        return Ok(PathBuf::from(path));
    }
    let own = std::env::current_exe().context("finding the running test binary")?;
    // <target>/<profile>/[deps/]<test>
    let target = own
        .ancestors()
        .skip(1)
        .find(|directory| directory.join("CACHEDIR.TAG").exists())
        .context("the test binary is not in a target directory: set MORTISE_BIN")?;
    ["debug", "release"]
        .iter()
        .map(|profile| target.join(profile).join("mortise"))
        .filter_map(|path| Some((path.metadata().ok()?.modified().ok()?, path)))
        .max()
        .map(|(_, path)| path)
        .context("the controller is not built: run `make test-e2e`")
}

impl Controller {
    /// Starts a replica: the chart's environment, a token of the chart's ServiceAccount, the proxy as AWS endpoint.
    ///
    /// # Errors
    /// The token is refused or the binary cannot be started.
    pub async fn start(cluster: &Cluster, installed: &Installation, name: &str, overrides: &Overrides) -> Result<Self> {
        let token = service_account_token(cluster, installed).await?;
        let config = cluster.workspace.write(
            &format!("{name}.kubeconfig"),
            kubeconfig(&cluster.plane.server, &cluster.plane.ca_pem, &installed.service_account, &token)?,
        )?;
        let (metrics_port, health_port) = (free_port()?, free_port()?);
        let mut command = Command::new(binary()?);
        clean_environment(&mut command);
        command.args(&installed.args).envs(installed.env.iter().cloned());
        command
            .env("KUBECONFIG", &config)
            .env("POD_NAME", name)
            .env("HOSTNAME", name)
            // Several replicas share this machine's ports, which they do not in a cluster.
            .env("METRICS_PORT", metrics_port.to_string())
            .env("HEALTH_PROBE_PORT", health_port.to_string())
            .env("EXTRA_METRICS_PORT", "0");
        if let Some(aws) = &cluster.aws {
            command.env("AWS_ENDPOINT_URL", &aws.proxy.endpoint);
        }
        command.envs(crate::cluster::AWS_ENVIRONMENT);
        command.envs(overrides.env.iter().cloned()).args(&overrides.args);
        let log = cluster.workspace.file(&format!("{name}.log"));
        let daemon = Daemon::spawn(name, command, &log)?;
        Ok(Self { name: name.to_owned(), daemon, metrics_port, health_port })
    }

    /// Waits until `/readyz` answers 200.
    ///
    /// # Errors
    /// The process ends or is not ready in time; the message carries the end of its log.
    pub async fn ready(&mut self) -> Result<()> {
        let port = self.health_port;
        let waited = wait::until("the controller to be ready", Duration::from_secs(60), async || {
            self.daemon.check()?;
            let (status, _) = get(port, "/readyz").await?;
            Ok((status == 200).then_some(()))
        })
        .await;
        waited.with_context(|| format!("the end of its log:\n{}", self.daemon.log_tail(20)))
    }

    /// The text of `/metrics`.
    ///
    /// # Errors
    /// The endpoint does not answer.
    pub async fn metrics(&self) -> Result<String> {
        Ok(get(self.metrics_port, "/metrics").await?.1)
    }

    /// The sum of all samples of a metric whose labels contain every text of `labels`.
    ///
    /// # Errors
    /// The endpoint does not answer.
    pub async fn metric(&self, name: &str, labels: &[&str]) -> Result<f64> {
        let text = self.metrics().await?;
        Ok(text
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
            .filter(|line| labels.iter().all(|label| line.contains(label)))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum())
    }

    /// Lines of the log that say that something panicked.
    pub fn panics(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.daemon.log()).unwrap_or_default();
        log.lines().filter(|line| line.contains("panicked at")).map(str::to_owned).collect()
    }
}

/// Takes away what the developer's shell says about clouds and clusters.
pub fn clean_environment(command: &mut Command) {
    for (name, _) in std::env::vars() {
        if ["AWS_", "KUBE", "KARPENTER", "CLUSTER_", "MORTISE_"].iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
}

/// A token as the kubelet would mount it.
///
/// # Errors
/// The ServiceAccount does not exist.
pub async fn service_account_token(cluster: &Cluster, installed: &Installation) -> Result<String> {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client.clone(), &installed.namespace);
    let request = serde_json::json!({"spec": {"audiences": [], "expirationSeconds": 7200}});
    let answer: TokenRequest = accounts
        .create_subresource("token", &installed.service_account, &PostParams::default(), &request)
        .await
        .with_context(|| format!("asking for a token of the ServiceAccount {}", installed.service_account))?;
    answer.status.and_then(|status| status.token).context("the TokenRequest brought no token")
}

/// Plain HTTP GET on loopback: status and body.
///
/// # Errors
/// Nothing listens.
pub async fn get(port: u16, path: &str) -> Result<(u16, String)> {
    use http_body_util::{BodyExt, Empty};
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let request = http::Request::get(format!("http://127.0.0.1:{port}{path}")).body(Empty::<bytes::Bytes>::new())?;
    let response = client.request(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}
