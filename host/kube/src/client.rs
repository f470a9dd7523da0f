//! The client of the API server: where from, how many requests a second, and how many there were.

mod limit;

use std::path::PathBuf;
use std::sync::Arc;

use http::header::{HeaderValue, USER_AGENT};
use kube::client::ClientBuilder;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

pub use limit::{Limit, LimitLayer, Observed, Requests};

/// How to reach the API server.
#[derive(Clone, Debug)]
pub struct Options {
    /// A kubeconfig file; `None` = the pod's service account, else `KUBECONFIG` and `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    pub context: Option<String>,
    /// Requests a second (`KUBE_CLIENT_QPS`); zero or less = no limit.
    pub qps: f64,
    /// Requests that may go out at once after a quiet time (`KUBE_CLIENT_BURST`).
    pub burst: u32,
    /// `User-Agent`.
    pub user_agent: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            qps: 200.0,
            burst: 300,
            user_agent: concat!("mortise/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The kubeconfig does not do.
    #[error("kubeconfig {path}: {source}; check the path, the context and the file's contents")]
    Kubeconfig {
        /// File.
        path: String,
        /// What is wrong.
        source: kube::config::KubeconfigError,
    },
    /// Neither a service account nor a kubeconfig was found.
    #[error("no way to reach a Kubernetes API server: {0}; set KUBECONFIG, or run in a pod with a service account")]
    NoConfig(#[from] kube::config::InferConfigError),
    /// The client cannot be made from the configuration (certificates, credentials).
    #[error("the client for the Kubernetes API cannot be made: {0}")]
    Build(#[from] kube::Error),
    /// The user agent cannot be sent.
    #[error("user agent {0:?} is not a valid header value")]
    UserAgent(String),
}

/// Makes a client. The second part counts what goes through it.
///
/// # Errors
/// See [`ClientError`].
pub async fn build(options: &Options) -> Result<(Client, Arc<Requests>), ClientError> {
    let mut config = config(options).await?;
    let agent =
        HeaderValue::from_str(&options.user_agent).map_err(|_| ClientError::UserAgent(options.user_agent.clone()))?;
    config.headers.push((USER_AGENT, agent));
    // kube's own retries of 429 go on for minutes inside one call: an eviction that a budget forbids would keep its worker
    // and never see that the grace period is over. Everybody who calls has a back-off of their own.
    config.default_retry = false;
    let requests = Arc::new(Requests::default());
    let layer = LimitLayer::new(options.qps, options.burst, Arc::clone(&requests));
    let client = ClientBuilder::try_from(config)?.with_layer(&layer).build();
    Ok((client, requests))
}

async fn config(options: &Options) -> Result<Config, ClientError> {
    let choice = KubeConfigOptions { context: options.context.clone(), ..KubeConfigOptions::default() };
    if let Some(path) = &options.kubeconfig {
        let wrap = |source| ClientError::Kubeconfig { path: path.display().to_string(), source };
        let file = Kubeconfig::read_from(path).map_err(wrap)?;
        return Config::from_custom_kubeconfig(file, &choice).await.map_err(wrap);
    }
    if options.context.is_none()
        && let Ok(config) = Config::incluster()
    {
        return Ok(config);
    }
    if options.context.is_some() {
        let wrap = |source| ClientError::Kubeconfig { path: "(default)".to_owned(), source };
        return Config::from_kubeconfig(&choice).await.map_err(wrap);
    }
    Ok(Config::infer().await?)
}
