//! NodePools with `spec.replicas`: that many nodes, whatever pods there are.
//!
//! Never one too many: a node of the pool has a *seat*, a number whose hash is the claim's name. A creation whose answer is
//! lost takes the same seat again, and the API server says that it is taken.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::ResourceExt;
use mortise_api::{NodeClaim, NodePool};
use mortise_engine::decision::Claim;
use mortise_engine::snapshot::Snapshot;
use mortise_engine::static_pool::plan;
use mortise_kube::status::WriteError;
use mortise_kube::watch::{Delta, Event};

use super::launch::Due;
use super::{claims, disrupted};
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::Note;
use crate::pipeline::node_claim;
use crate::queue::Next;
use crate::snapshots;

mod seat;

/// Between two looks at a pool that has its nodes.
const RESYNC: Duration = Duration::from_secs(60);
/// Between two looks at a pool whose limit on nodes is reached.
const AT_LIMIT: Duration = Duration::from_secs(30);
/// NodeClaims created or deleted at once.
const AT_ONCE: usize = 32;
/// After a change: the rest of a large one, and claims of ours that the watch has not brought yet.
const SOON: Duration = Duration::from_secs(1);

/// Reconciles one NodePool. Those without replicas are none of its business.
pub(crate) async fn reconcile(ctx: Arc<Context>, name: Arc<str>) -> Next {
    if !ctx.settings.gate("StaticCapacity") {
        return Next::Done;
    }
    let Some(pool) = ctx.state.with(|s| s.nodepool(&name).cloned()) else {
        ctx.static_pace.forget(&name);
        return Next::Done;
    };
    if !pool.is_static() || pool.metadata.deletion_timestamp.is_some() {
        return Next::Done;
    }
    let snapshot = snapshots::take(&ctx).await;
    let Some(engine) = snapshot.nodepools.iter().find(|p| p.name == name) else { return Next::After(RESYNC) };
    let plan = plan(&snapshot, engine, chosen(&ctx, &name));
    if !plan.remove.is_empty() {
        return remove_all(&ctx, &snapshot, &plan.remove).await;
    }
    if plan.create.is_empty() {
        return Next::After(if plan.held_back > 0 { AT_LIMIT } else { RESYNC });
    }
    match ctx.static_pace.hold(&name, ctx.launcher.endings()) {
        Some(hold) => Next::After(hold),
        None => create_all(&ctx, &pool, plan.create).await,
    }
}

/// Claims chosen for deletion that nobody has deleted yet: what chose them sees to it.
fn chosen(ctx: &Context, pool: &str) -> u32 {
    let count = ctx.state.with(|s| {
        let claims = s.claims_of_pool(pool).filter(|c| c.metadata.deletion_timestamp.is_none());
        claims.filter(|c| s.marked_for_deletion(&c.name_any())).count()
    });
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Creates these claims and has them launched.
async fn create_all(ctx: &Arc<Context>, pool: &NodePool, decided: Vec<Claim>) -> Next {
    let name = pool.name_any();
    let taken: BTreeSet<String> = ctx.state.with(|s| s.claims_of_pool(&name).map(|c| c.name_any()).collect());
    let seats = seat::free(&name, &pool.uid().unwrap_or_default(), &taken, decided.len());
    let results: Vec<Result<(), WriteError>> = futures::stream::iter(seats.into_iter().zip(decided))
        .map(|(seat, decided)| async move { create(ctx, pool, &decided, &seat).await })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    if results.iter().any(Result::is_err) { Next::Retry } else { Next::After(SOON) }
}

/// Takes one seat, unless a claim that has not been seen yet has it.
async fn create(ctx: &Arc<Context>, pool: &NodePool, decided: &Claim, seat: &str) -> Result<(), WriteError> {
    let wanted = node_claim(decided, pool, seat);
    let claim = match ctx.writer.create(&wanted).await {
        Ok(claim) => Arc::new(claim),
        // The watch brings it and has it launched.
        Err(WriteError::AlreadyExists) => return Ok(()),
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["static.provisioning"]);
            tracing::error!(controller = "static.provisioning", NodePool = %decided.nodepool, %error, "failed creating nodeclaim");
            return Err(error);
        }
    };
    ctx.state.apply([Event::NodeClaim(Delta::Applied(claim.clone()))]);
    ctx.launcher.launch(Due { claim, fresh: true, batch_closed: None });
    ctx.metrics.inc(Id::NodeclaimsCreatedTotal, &["provisioned", &decided.nodepool, "false"]);
    tracing::info!(controller = "static.provisioning", NodePool = %decided.nodepool, NodeClaim = seat, "created nodeclaim");
    Ok(())
}

/// Has the claims of these nodes deleted. They drain as any other.
async fn remove_all(ctx: &Arc<Context>, snapshot: &Snapshot, nodes: &[Arc<str>]) -> Next {
    let names = nodes.iter().filter_map(|node| snapshot.nodes.get(node)?.node_claim.clone());
    let going: Vec<Arc<NodeClaim>> = ctx.state.with(|s| {
        let claims: Vec<Arc<NodeClaim>> = names.filter_map(|name| s.nodeclaim(&name).cloned()).collect();
        for claim in &claims {
            // Counted as going from here on, whenever the watch says so.
            s.mark_for_deletion(&claim.name_any());
        }
        claims
    });
    let results: Vec<Result<(), WriteError>> =
        futures::stream::iter(going).map(|claim| remove(ctx, claim)).buffer_unordered(AT_ONCE).collect().await;
    if results.iter().any(Result::is_err) { Next::Retry } else { Next::After(SOON) }
}

async fn remove(ctx: &Arc<Context>, claim: Arc<NodeClaim>) -> Result<(), WriteError> {
    let name = claim.name_any();
    let (node, pods) = ctx
        .state
        .with(|s| (s.node_of_claim(&name).map(|n| n.name.to_string()), disrupted::reschedulable_pods(s, &claim)));
    if let Err(error) = claims::remove(ctx, &claim).await {
        ctx.state.with(|s| s.unmark(&name));
        ctx.metrics.inc(Id::ReconcileErrorsTotal, &["static.deprovisioning"]);
        tracing::error!(controller = "static.deprovisioning", NodeClaim = name, %error, "failed deleting nodeclaim");
        return Err(error);
    }
    if let Some(node) = node {
        let reason = "its static NodePool has more nodes than replicas".to_owned();
        ctx.notify([Note::DisruptionTerminating { node, claim: name.clone(), reason }]);
    }
    disrupted::count(ctx, &claim, "overprovisioned", "", pods);
    tracing::info!(controller = "static.deprovisioning", NodeClaim = name, pods, "deleting nodeclaim");
    Ok(())
}
