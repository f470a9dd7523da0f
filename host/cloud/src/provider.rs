//! The one trait that the controller knows of a cloud.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use mortise_api::EC2NodeClass;
use mortise_engine::catalog::Catalog;
use tokio::sync::watch;

use crate::class::{ClassResolution, Finalize};
use crate::error::CloudError;
use crate::instance::Instance;
use crate::launch::{LaunchError, LaunchRequest};

/// A source of machines. Every method may be called concurrently; every call inside has a timeout, so every future ends.
#[async_trait]
pub trait CloudProvider: Send + Sync {
    /// Short name for logs and the `provider` metric label: `aws`, `sim`, `kwok`.
    fn name(&self) -> &'static str;

    /// Whether the provider can be reached with the permissions at hand; asked once at start.
    ///
    /// # Errors
    /// The reason, which the binary prints before it ends.
    async fn check(&self) -> Result<(), CloudError> {
        Ok(())
    }

    /// Work in the background: refresh of types and prices, expiry of insufficient-capacity marks, deletion of unused
    /// launch templates. Runs until dropped; one call per process. `leader` is true while this replica may write.
    async fn run(&self, leader: watch::Receiver<bool>);

    /// Looks up everything that a node class selects. Never fails as a whole: each part has its own outcome.
    async fn resolve(&self, class: &EC2NodeClass) -> ClassResolution;

    /// Removes what was made for a node class that is being deleted. `claims_left` are the NodeClaims that refer to it.
    ///
    /// # Errors
    /// A provider error; call again.
    async fn finalize(&self, class: &EC2NodeClass, claims_left: &[Arc<str>]) -> Result<Finalize, CloudError>;

    /// What can be bought with this class now, from its status. Cached: the same `Arc` as long as nothing changed.
    ///
    /// # Errors
    /// [`CloudError::Class`] when the class has no subnets or is wrong in itself; transient errors when types are not
    /// known yet.
    async fn catalog(&self, class: &EC2NodeClass) -> Result<Arc<Catalog>, CloudError>;

    /// Moves whenever some catalog may have changed: types, prices, stock.
    fn catalog_changed(&self) -> watch::Receiver<u64>;

    /// Starts one machine for one claim, or finds the one that an earlier attempt started.
    ///
    /// # Errors
    /// See [`LaunchError`].
    async fn launch(&self, request: &LaunchRequest) -> Result<Instance, LaunchError>;

    /// The live machine launched for the NodeClaim of this UID, by its tag. `None` is a firm no only some seconds after
    /// the launch: EC2's listing lags.
    ///
    /// # Errors
    /// A provider error.
    async fn find_by_claim(&self, claim_uid: &str) -> Result<Option<Instance>, CloudError>;

    /// One machine, fresh. One that is terminated counts as not found.
    ///
    /// # Errors
    /// [`CloudError::NotFound`], or a provider error.
    async fn get(&self, provider_id: &str) -> Result<Instance, CloudError>;

    /// All machines of this cluster that are not terminated.
    ///
    /// # Errors
    /// A provider error. Never a partial list.
    async fn list(&self) -> Result<Vec<Instance>, CloudError>;

    /// Asks for termination. Ok also when it is already on its way; call [`CloudProvider::get`] until not found.
    ///
    /// # Errors
    /// [`CloudError::NotFound`] when it is gone, or a provider error.
    async fn terminate(&self, provider_id: &str) -> Result<(), CloudError>;

    /// Adds tags where the key is absent.
    ///
    /// # Errors
    /// [`CloudError::NotFound`], or a provider error.
    async fn tag(&self, provider_id: &str, tags: &BTreeMap<Arc<str>, Arc<str>>) -> Result<(), CloudError>;
}
