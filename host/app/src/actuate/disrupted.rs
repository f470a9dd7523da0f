//! What deleting a NodeClaim counts as.

use kube::ResourceExt;
use mortise_api::{NodeClaim, labels};
use mortise_kube::state::ClusterState;

use super::lifecycle::pool_of;
use crate::context::Context;
use crate::metrics::Id;

/// Counts one claim deleted by us. `policy` is the consolidation policy in snake case, empty for other reasons.
pub(crate) fn count(ctx: &Context, claim: &NodeClaim, reason: &str, policy: &str, pods: usize) {
    let capacity = claim.labels().get(labels::CAPACITY_TYPE).map(String::as_str).unwrap_or_default();
    let labels = [reason, pool_of(claim), capacity, policy, mode(claim)];
    ctx.metrics.inc(Id::NodeclaimsDisruptedTotal, &labels);
    ctx.metrics.inc(Id::NodeclaimsDisrupted, &[pool_of(claim), reason]);
    if pods > 0 {
        #[expect(clippy::cast_precision_loss, reason = "far fewer pods than 2^52")]
        ctx.metrics.add(Id::PodsDisruptionInitiatedTotal, &labels, pods as f64);
    }
}

/// `termination_mode` from the claim's grace period.
fn mode(claim: &NodeClaim) -> &'static str {
    match claim.spec.termination_grace_period.as_ref().map(|g| g.get()) {
        None => "graceful",
        Some(Ok(grace)) if grace.is_zero() => "forceful",
        Some(_) => "eventual",
    }
}

/// Pods on the claim's node that need another place.
pub(crate) fn reschedulable_pods(state: &ClusterState, claim: &NodeClaim) -> usize {
    let Some(node) = state.node_of_claim(&claim.name_any()) else { return 0 };
    state.pods_on(&node.name).iter().filter(|p| p.reschedulable()).count()
}
