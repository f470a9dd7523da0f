//! Asking for one machine, and why it may not come.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mortise_api::EC2NodeClass;
use mortise_engine::catalog::CapacityType;
use mortise_engine::decision::LaunchList;
use mortise_engine::quantity::Resources;
use mortise_engine::requirement::Requirement;
use mortise_engine::taint::Taint;

/// One NodeClaim to be turned into one machine.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    /// `metadata.name` of the NodeClaim.
    pub claim_name: Arc<str>,
    /// `metadata.uid` of the NodeClaim. The machine carries it from its first moment, so a lost reply is found again.
    pub claim_uid: Arc<str>,
    /// NodePool; empty for a NodeClaim that belongs to none.
    pub nodepool: Arc<str>,
    /// Node class with the status last written.
    pub class: Arc<EC2NodeClass>,
    /// Labels of the NodeClaim.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Startup taints.
    pub startup_taints: Vec<Taint>,
    /// Requirements of the NodeClaim (tenancy and the like are read from here).
    pub requirements: Vec<Requirement>,
    /// Requests of the NodeClaim.
    pub requests: Resources,
    /// What to buy, best first.
    pub list: LaunchList,
    /// An earlier attempt may have reached the cloud and its answer been lost (first look after a leader change or a
    /// restart, or after [`LaunchError::Transient`]): the provider looks for the machine by its tag first.
    pub may_exist: bool,
}

/// An offering that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Exhausted {
    /// Instance type.
    pub instance_type: Arc<str>,
    /// Zone.
    pub zone: Arc<str>,
    /// Market.
    pub capacity_type: CapacityType,
    /// Provider's error code.
    pub code: Arc<str>,
}

/// Why a launch brought no machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// None of the offerings could be had. They are marked; the claim is deleted and its pods are scheduled again on
    /// what is left.
    #[error("insufficient capacity: {message}")]
    InsufficientCapacity {
        /// Condition reason.
        reason: Arc<str>,
        /// What was tried and what the provider said.
        message: String,
        /// Offerings marked.
        offerings: Vec<Exhausted>,
    },
    /// The node class is not usable now; the claim is deleted.
    #[error("node class is not ready: {message}")]
    ClassNotReady {
        /// Which part and why.
        message: String,
    },
    /// The request was refused as such. The claim stays, `Launched` is Unknown with this reason, and it is tried again
    /// until the launch timeout.
    #[error("{reason}: {message}")]
    Create {
        /// Condition reason, e.g. `Unauthorized` or `AMINotFound`.
        reason: Arc<str>,
        /// Provider's words.
        message: String,
    },
    /// Throttled, timed out or cut off. It is not known whether a machine was started: the claim must not be deleted
    /// before [`crate::CloudProvider::find_by_claim`] has said no, and the next try sets `may_exist`.
    #[error("{message}")]
    Transient {
        /// Condition reason, e.g. `RequestLimitExceeded`.
        reason: Arc<str>,
        /// What happened.
        message: String,
        /// Least time to wait before the next try.
        retry_after: Option<Duration>,
    },
}

impl LaunchError {
    /// Reason for the NodeClaim's `Launched` condition.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::InsufficientCapacity { reason, .. }
            | Self::Create { reason, .. }
            | Self::Transient { reason, .. } => reason,
            Self::ClassNotReady { .. } => "NodeClassNotReady",
        }
    }
}
