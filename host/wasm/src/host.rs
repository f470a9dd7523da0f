//! The policy host: what is active, and how it is replaced.

use std::sync::Arc;

use arc_swap::ArcSwap;
use mortise_engine::policy::{Fleet, PolicyRound, PolicySet, RoundCatalog};

use crate::native::NativePolicies;
use crate::{ConfigMapData, PolicyStatus, Rejection};

/// Settings of the policy host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostSettings {}

/// Why the policy host cannot start.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The sandbox cannot be set up on this machine.
    #[error("setting up the Wasm engine: {0}")]
    Engine(String),
    /// A built-in component does not pass its own admission: a broken build.
    #[error("built-in policy {name}: {message}")]
    Builtin {
        /// Name.
        name: String,
        /// What is wrong.
        message: String,
    },
}

/// A ConfigMap that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its revision, as in [`PolicyStatus::revision`].
    pub revision: String,
    /// False when the very same content was active already.
    pub changed: bool,
}

/// Runs policies. Cheap to share: put it in an `Arc`.
pub struct PolicyHost {
    active: ArcSwap<ActivePolicies>,
}

/// The policies of one revision. A round that began with it ends with it, whatever is admitted meanwhile.
pub struct ActivePolicies {
    native: NativePolicies,
}

impl PolicyHost {
    /// Compiles the built-in policies and makes them active.
    ///
    /// # Errors
    /// When the Wasm engine or a built-in component is unusable.
    pub fn new(settings: HostSettings) -> Result<Self, HostError> {
        let HostSettings {} = settings;
        Ok(Self { active: ArcSwap::from_pointee(ActivePolicies { native: NativePolicies }) })
    }

    /// The active policies: take once per round.
    #[must_use]
    pub fn current(&self) -> Arc<ActivePolicies> {
        self.active.load_full()
    }

    /// Takes a ConfigMap: runs the whole admission pipeline, then swaps the active set in one step. Blocking (it
    /// compiles): call it off the async threads. On error nothing but `disruption: paused` has changed.
    ///
    /// # Errors
    /// Everything that is wrong with it, by key path.
    pub fn admit(&self, config_map: &ConfigMapData) -> Result<Admitted, Vec<Rejection>> {
        let _ = config_map;
        Err(vec![Rejection { path: "policies.yaml".into(), message: "policies are not loaded by this build yet".into() }])
    }

    /// Back to the built-in policies, disruption active: what holds when there is no ConfigMap.
    pub fn reset_to_defaults(&self) {}

    /// What runs and how it fares.
    #[must_use]
    pub fn status(&self) -> PolicyStatus {
        PolicyStatus::default()
    }

    /// `disruption: paused` holds.
    #[must_use]
    pub fn disruption_paused(&self) -> bool {
        false
    }
}

impl PolicySet for ActivePolicies {
    fn begin<'a>(&'a self, catalog: &'a RoundCatalog, fleet: &'a Fleet) -> Box<dyn PolicyRound + 'a> {
        self.native.begin(catalog, fleet)
    }
}
