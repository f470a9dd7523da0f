//! What was left behind: instances without a NodeClaim, NodeClaims without an instance.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use mortise_api::NodeClaim;
use mortise_api::condition::{Conditions, nodeclaim as kind};
use mortise_cloud::Instance;
use tokio_util::sync::CancellationToken;

use super::lifecycle::{since, transition};
use super::{claims, disrupted};
use crate::clock::timestamp;
use crate::context::Context;
use crate::metrics::Id;

#[cfg(test)]
mod tests;

/// An instance younger than this may belong to a claim whose status is still being written.
const MIN_AGE: Duration = Duration::from_secs(30);
/// Between rounds: the first so many, then all others. Early rounds are frequent because a restart is when instances are
/// lost.
const INTERVALS: (u32, Duration, Duration) = (20, Duration::from_secs(10), Duration::from_secs(120));

/// Collects until stopped.
pub(crate) async fn run(ctx: Arc<Context>, stop: CancellationToken) {
    let (early, short, long) = INTERVALS;
    let mut rounds = 0_u32;
    loop {
        let wait = if rounds < early { short } else { long };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        match round(&ctx).await {
            Ok(()) => rounds = rounds.saturating_add(1),
            Err(error) => {
                ctx.metrics.inc(Id::ReconcileErrorsTotal, &["instance.garbagecollection"]);
                tracing::error!(controller = "instance.garbagecollection", error, "reconciler error");
            }
        }
    }
}

async fn round(ctx: &Arc<Context>) -> Result<(), String> {
    // The instances first: one that is launched after this list has its claim in the state that is read later.
    let listed_at = ctx.clock.now();
    let instances = ctx.provider.list().await.map_err(|e| format!("listing instances: {e}"))?;
    let all: Vec<Arc<NodeClaim>> = ctx.state.with(|s| s.nodeclaims().cloned().collect());
    ctx.launcher.retain(|uid| all.iter().any(|c| c.metadata.uid.as_deref() == Some(uid)));
    for instance in orphans(&instances, &all, ctx.clock.now()) {
        collect(ctx, instance).await;
    }
    for claim in widows(&all, &instances, listed_at) {
        let ready = ctx.state.with(|s| s.node_of_claim(&claim.name_any()).is_some_and(|n| n.ready()));
        if ready {
            continue;
        }
        let pods = ctx.state.with(|s| disrupted::reschedulable_pods(s, claim));
        if let Err(error) = claims::remove(ctx, claim).await {
            return Err(format!("deleting NodeClaim {}: {error}", claim.name_any()));
        }
        disrupted::count(ctx, claim, "garbage_collected", "", pods);
        tracing::info!(NodeClaim = claim.name_any(), "garbage collected nodeclaim, its instance is gone");
    }
    Ok(())
}

/// Instances that no claim has or will have: old enough, and neither their id nor the claim they were launched for is
/// known.
fn orphans<'a>(instances: &'a [Instance], claims: &[Arc<NodeClaim>], now: Timestamp) -> Vec<&'a Instance> {
    let ids: BTreeSet<&str> =
        claims.iter().filter_map(|c| c.status.as_ref().and_then(|s| s.provider_id.as_deref())).collect();
    let uids: BTreeSet<&str> = claims.iter().filter_map(|c| c.metadata.uid.as_deref()).collect();
    instances
        .iter()
        .filter(|i| !i.state.is_gone() && !ids.contains(&*i.provider_id))
        .filter(|i| since(now, timestamp(i.launched_at_unix_ms)) >= MIN_AGE)
        .filter(|i| i.claim_uid.as_ref().is_none_or(|uid| !uids.contains(&**uid)))
        .collect()
}

/// Registered claims whose instance is not listed.
fn widows<'a>(claims: &'a [Arc<NodeClaim>], instances: &[Instance], listed_at: Timestamp) -> Vec<&'a Arc<NodeClaim>> {
    let alive: BTreeSet<&str> = instances.iter().filter(|i| !i.state.is_gone()).map(|i| &*i.provider_id).collect();
    claims
        .iter()
        .filter(|c| c.metadata.deletion_timestamp.is_none() && c.is_true(kind::REGISTERED))
        .filter(|c| transition(c, kind::LAUNCHED).is_some_and(|t| since(listed_at, t) >= MIN_AGE))
        .filter(|c| {
            let id = c.status.as_ref().and_then(|s| s.provider_id.as_deref());
            id.is_some_and(|id| !alive.contains(id))
        })
        .collect()
}

async fn collect(ctx: &Context, instance: &Instance) {
    let id = &instance.provider_id;
    match ctx.provider.terminate(id).await {
        Ok(()) => {
            let claim = instance.claim_name.as_deref().unwrap_or_default();
            tracing::info!("provider-id" = %id, NodeClaim = claim, "garbage collected instance");
        }
        Err(error) if error.is_not_found() => {}
        Err(error) => {
            tracing::error!("provider-id" = %id, %error, "failed garbage collecting instance");
            return;
        }
    }
    for node in ctx.state.with(|s| s.nodes_by_provider(id)) {
        if let Err(error) = ctx.writer.delete::<Node>(&node.name, Some(&node.uid)).await {
            tracing::error!(Node = %node.name, %error, "failed deleting the node of a collected instance");
        }
    }
}
