//! What the scenarios share.

use anyhow::Result;
use mortise_controlplane_tests::cluster::{Cluster, Options};

/// The cluster and what runs on it.
pub(crate) struct World {
    pub cluster: Cluster,
}

impl World {
    pub(crate) async fn start() -> Result<Self> {
        Ok(Self { cluster: Cluster::start(Options::named("e2e")).await? })
    }

    /// What the whole run says at its end.
    pub(crate) fn closing_words(&self) -> String {
        String::new()
    }
}
