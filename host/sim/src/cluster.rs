//! The whole embedded cluster in one value.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::apiserver::{ApiError, ApiServer};
use crate::clock::Clock;
use crate::cloud::{self, SimCloud};
use crate::{apiserver, controllers, kubelet, scheduler};

/// Settings of a [`Cluster`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Divides every simulated delay.
    pub speed: f64,
    /// Seed of ids, spot prices and latencies.
    pub seed: u64,
    /// Delays on nodes.
    pub timing: kubelet::Timing,
    /// Changes kept per resource for watches.
    pub history: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { speed: 1.0, seed: 1, timing: kubelet::Timing::default(), history: 20_000 }
    }
}

/// API server, scheduler, kubelets, controllers and EC2. Everything stops when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    server: ApiServer,
    cloud: Arc<SimCloud>,
    tasks: JoinSet<()>,
}

/// A cluster that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The CustomResourceDefinitions could not be made.
    #[error("custom resource definitions: {0}")]
    Crds(String),
    /// The API server refused something.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl Cluster {
    /// Starts with the CustomResourceDefinitions of `mortise-api` and no nodes. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The CustomResourceDefinitions cannot be served.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        let clock = Clock::new(options.speed);
        let crds = mortise_api::crd::all().map_err(|e| StartError::Crds(e.to_string()))?;
        let crds: Result<Vec<_>, _> = crds.into_iter().map(serde_json::to_value).collect();
        let server = ApiServer::new(apiserver::Options {
            crds: crds.map_err(|e| StartError::Crds(e.to_string()))?,
            history: options.history,
            seed: options.seed,
            clock: Some(clock.clone()),
            ..apiserver::Options::default()
        })?;
        let cloud = SimCloud::new(server.client_as("kubelet"), cloud::Options::sim(options.seed, clock));
        let mut tasks = JoinSet::new();
        tasks.spawn(scheduler::run(server.clone()));
        tasks.spawn(kubelet::run(server.clone(), options.timing));
        tasks.spawn(controllers::run(server.clone()));
        Ok(Self { server, cloud: Arc::new(cloud), tasks })
    }

    /// The API server.
    pub fn api(&self) -> &ApiServer {
        &self.server
    }

    /// EC2.
    pub fn cloud(&self) -> Arc<SimCloud> {
        Arc::clone(&self.cloud)
    }

    /// Number of components that still run; all of them do unless one has failed.
    pub fn components(&self) -> usize {
        self.tasks.len()
    }
}
