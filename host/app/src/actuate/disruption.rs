//! Voluntary disruption. One command at a time: proposed by the engine, held for fifteen seconds, validated against the
//! cluster as it is then, and only what still holds is carried out. Nothing here waits in the meantime.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use mortise_api::condition::{self, Conditions, Status, nodeclaim as kind};
use mortise_api::{NodeClaim, taints};
use mortise_engine::decision::Disrupt;
use mortise_engine::disrupt::{self, BudgetState, Disruption, NodeBlocker};
use mortise_engine::snapshot::Snapshot;
use mortise_engine::taint::{Effect, Taint};
use mortise_kube::record::NodeRecord;
use mortise_kube::status::WriteError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::nodeedit::NodeEdit;
use super::{claims, disrupted};
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::Note;
use crate::snapshots;

/// Between two looks, unless something changes.
const POLL: Duration = Duration::from_secs(10);
/// Between a proposal and its validation: pods that were about to come have come by then.
const VALIDATION_DELAY: Duration = Duration::from_secs(15);
/// Changes of a moment are looked at together.
const SETTLE: Duration = Duration::from_secs(1);

/// A command on hold.
struct Held {
    command: Disrupt,
    due: Instant,
}

/// Disrupts until stopped.
pub(crate) async fn run(ctx: Arc<Context>, stop: CancellationToken) {
    let mut held: Option<Held> = None;
    loop {
        let wake = held.as_ref().map_or_else(|| Instant::now() + POLL, |h| h.due);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep_until(wake) => {}
            () = async { ctx.disruption.notified().await; tokio::time::sleep(SETTLE).await } , if held.is_none() => {}
        }
        if !ctx.state.with(|s| s.synced()) {
            continue;
        }
        leftovers(&ctx).await;
        if ctx.policies.disruption_paused() {
            held = None;
            continue;
        }
        match held.take() {
            Some(h) if h.due > Instant::now() => held = Some(h),
            Some(h) => {
                validate(&ctx, h.command).await;
                // What else may go is looked at right away.
                ctx.disruption.notify_one();
            }
            None => held = propose(&ctx).await.map(|command| Held { command, due: Instant::now() + VALIDATION_DELAY }),
        }
    }
}

async fn snapshot(ctx: &Context) -> Arc<Snapshot> {
    Arc::new(snapshots::take(ctx).await)
}

/// Asks the engine which empty nodes may go.
async fn propose(ctx: &Arc<Context>) -> Option<Disrupt> {
    // Most looks end here: nothing can be disrupted that is not consolidatable.
    let any = ctx
        .state
        .with(|s| s.nodeclaims().any(|c| c.metadata.deletion_timestamp.is_none() && c.is_true(kind::CONSOLIDATABLE)));
    if !any {
        ctx.metrics.set(Id::VoluntaryDisruptionEligibleNodes, &["empty"], 0.0);
        return None;
    }
    let (snapshot, started) = (snapshot(ctx).await, Instant::now());
    let found = {
        let (ctx, snapshot) = (ctx.clone(), snapshot.clone());
        let work = move || disrupt::empty(&snapshot, &ctx.engine_options(), &*ctx.policies.current());
        match tokio::task::spawn_blocking(work).await {
            Ok(found) => found,
            Err(error) => {
                tracing::error!(controller = "disruption", %error, "evaluation ended abnormally");
                return None;
            }
        }
    };
    let took = started.elapsed();
    ctx.metrics.observe_duration(Id::DisruptionEvaluationDuration, &["empty", "empty"], took);
    ctx.metrics.observe_duration(Id::DisruptionEvaluationDurationOld, &["emptiness", "empty", "empty"], took);
    ctx.metrics.observe_duration(Id::EngineDuration, &["disruption"], took);
    ctx.metrics.set(Id::VoluntaryDisruptionEligibleNodes, &["empty"], f64::from(found.eligible));
    crate::pipeline::policy_faults(ctx, &found.policy_faults);
    budgets(ctx, &found.budgets);
    ctx.notify(blocked(&snapshot, &found));
    found.disrupt.into_iter().find(|command| !command.nodes.is_empty())
}

/// Gauges of budgets, and an Event for each that stands in the way.
fn budgets(ctx: &Context, budgets: &[BudgetState]) {
    for b in budgets {
        let reason = b.reason.to_lowercase();
        let allowed = if b.allowed == u32::MAX { f64::from(b.total) } else { f64::from(b.allowed) };
        ctx.metrics.set(Id::NodepoolsAllowedDisruptions, &[&b.nodepool, &reason], allowed);
        ctx.metrics.set(Id::NodepoolsNodesConsumingBudgets, &[&b.nodepool, &reason], f64::from(b.disrupting));
        if b.blocking {
            let why = b.invalid.as_ref().map(|i| format!(" ({i})")).unwrap_or_default();
            let message =
                format!("No allowed disruptions for disruption reason {} due to blocking budget{why}", b.reason);
            ctx.notify([Note::BudgetBlocked { pool: b.nodepool.to_string(), message }]);
        }
    }
}

/// Events for nodes that somebody may wonder about: what holds them is set by a person, not by time.
fn blocked(snapshot: &Snapshot, found: &Disruption) -> Vec<Note> {
    let told = |blocker: &NodeBlocker| {
        matches!(
            blocker,
            NodeBlocker::DoNotDisrupt
                | NodeBlocker::PodDoNotDisrupt(_)
                | NodeBlocker::PodDisruptionBudget(..)
                | NodeBlocker::Pod(..)
        )
    };
    let notes = found.blocked.iter().filter(|(_, b)| told(b)).filter_map(|(name, blocker)| {
        let node = snapshot.nodes.get(name)?;
        Some(Note::DisruptionBlocked {
            node: node.node_name.as_ref()?.to_string(),
            claim: node.node_claim.as_ref()?.to_string(),
            message: format!("Node isn't disruptable: {blocker}"),
        })
    });
    notes.collect()
}

/// Carries out what of the command still holds.
async fn validate(ctx: &Arc<Context>, command: Disrupt) {
    let snapshot = snapshot(ctx).await;
    let holds = disrupt::validate(&snapshot, &command);
    let lost = command.nodes.len().saturating_sub(holds.nodes.len());
    if lost > 0 {
        ctx.metrics.inc(Id::VoluntaryDisruptionFailedValidationsTotal, &["empty"]);
        tracing::info!(controller = "disruption", nodes = lost, "some nodes are no longer candidates for disruption");
    }
    if holds.nodes.is_empty() {
        return;
    }
    let reason = holds.reason.to_lowercase();
    ctx.metrics.inc(Id::VoluntaryDisruptionDecisionsTotal, &["delete", &reason, "empty"]);
    tracing::info!(
        controller = "disruption",
        command = "delete",
        reason,
        "node-count" = holds.nodes.len(),
        nodes = holds.nodes.iter().take(10).map(|n| &**n).collect::<Vec<_>>().join(", "),
        "disrupting node(s)"
    );
    for name in &holds.nodes {
        let Some(node) = snapshot.nodes.get(name) else { continue };
        let Some(claim) = &node.node_claim else { continue };
        if let Err(error) = carry_out(ctx, claim, &holds.reason).await {
            ctx.state.with(|s| s.unmark(claim));
            ctx.metrics.inc(Id::VoluntaryDisruptionQueueFailuresTotal, &["delete", &reason, "empty"]);
            // The next round proposes it again; a taint that was already set is taken back by then.
            tracing::error!(controller = "disruption", NodeClaim = %claim, %error, "failed disrupting node");
        }
    }
}

/// Taints the node, says why on the claim, deletes the claim.
async fn carry_out(ctx: &Context, name: &str, reason: &str) -> Result<(), WriteError> {
    let Some((claim, node, policy)) = ctx.state.with(|s| {
        let claim = s.nodeclaim(name)?.clone();
        let node = s.node_of_claim(name)?.clone();
        let pool = s.nodepool(super::lifecycle::pool_of(&claim));
        let policy = pool.map(|p| snake_case(p.spec.disruption.consolidation_policy.as_str())).unwrap_or_default();
        Some((claim, node, policy))
    }) else {
        return Ok(());
    };
    ctx.state.with(|s| s.mark_for_deletion(name));
    let mut edit = NodeEdit::of(&node);
    edit.taint(disrupted_taint());
    ctx.writer.node(&edit).await?;
    let mut wanted = NodeClaim::clone(&claim);
    wanted.set_condition(kind::DISRUPTION_REASON, Status::True, reason, "", ctx.clock.now());
    let latest = match ctx.writer.apply(&*claim, &wanted).await {
        Ok(Some(object)) => {
            let object = Arc::new(object);
            ctx.state.own_claim(object.clone());
            object
        }
        // Somebody changed the claim meanwhile. The reason is for people; the decision stands.
        Ok(None) | Err(WriteError::Conflict(_)) => claim,
        Err(error) => return Err(error),
    };
    ctx.notify([Note::DisruptionTerminating {
        node: node.name.to_string(),
        claim: name.to_owned(),
        reason: reason.to_owned(),
    }]);
    let pods = ctx.state.with(|s| disrupted::reschedulable_pods(s, &latest));
    claims::remove(ctx, &latest).await?;
    let lower = reason.to_lowercase();
    disrupted::count(ctx, &latest, &lower, &policy, pods);
    let pool = super::lifecycle::pool_of(&latest);
    ctx.metrics.inc(Id::VoluntaryDisruptionDecisionsByNodepoolTotal, &[pool, "delete", &lower, "empty"]);
    Ok(())
}

fn disrupted_taint() -> Taint {
    Taint { key: taints::DISRUPTED.into(), value: "".into(), effect: Effect::NoSchedule }
}

/// `WhenEmptyOrUnderutilized` → `when_empty_or_underutilized`.
fn snake_case(word: &str) -> String {
    let mut out = String::with_capacity(word.len() + 4);
    for c in word.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Is this a node that carries the taint of a disruption which no longer is under way?
fn left_over(node: &NodeRecord, claim: &NodeClaim, deleting: bool) -> bool {
    let tainted = node.taints.iter().any(|t| &*t.key == taints::DISRUPTED);
    !deleting && node.deletion_unix_ms.is_none() && (tainted || claim.is_true(kind::DISRUPTION_REASON))
}

/// Takes back taints and conditions of disruptions that did not come about (a controller that stopped half way).
async fn leftovers(ctx: &Context) {
    let found: Vec<(Arc<NodeRecord>, Arc<NodeClaim>)> = ctx.state.with(|s| {
        let nodes = s.nodes().filter_map(|node| {
            let claim = s.claim_of_node(&node.name)?;
            let deleting = s.deleting(&claim.name_any());
            left_over(node, claim, deleting).then(|| (node.clone(), claim.clone()))
        });
        nodes.collect()
    });
    for (node, claim) in found {
        let mut edit = NodeEdit::of(&node);
        edit.untaint(|t| &*t.key == taints::DISRUPTED);
        let mut wanted = NodeClaim::clone(&claim);
        condition::clear(wanted.conditions_mut(), kind::DISRUPTION_REASON);
        let result = async {
            ctx.writer.node(&edit).await?;
            ctx.writer.apply(&*claim, &wanted).await
        };
        match result.await {
            Ok(_) => {
                tracing::info!(Node = %node.name, NodeClaim = claim.name_any(), "took back an unfinished disruption")
            }
            // Conflicts are tried again with the next look.
            Err(error) => tracing::debug!(Node = %node.name, %error, "taking back an unfinished disruption"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_names_as_metric_labels() {
        for (word, label) in [
            ("WhenEmpty", "when_empty"),
            ("WhenEmptyOrUnderutilized", "when_empty_or_underutilized"),
            ("Balanced", "balanced"),
        ] {
            assert_eq!(snake_case(word), label);
        }
    }

    #[test]
    fn leftovers_are_tainted_nodes_that_nobody_deletes() {
        let tainted = NodeRecord { taints: vec![disrupted_taint()], ..NodeRecord::default() };
        let claim = NodeClaim::new("a", Default::default());
        assert!(left_over(&tainted, &claim, false));
        assert!(!left_over(&tainted, &claim, true));
        assert!(!left_over(&NodeRecord { deletion_unix_ms: Some(1), ..tainted }, &claim, false));
        assert!(!left_over(&NodeRecord::default(), &claim, false));
        let mut reasoned = claim;
        reasoned.set_condition(kind::DISRUPTION_REASON, Status::True, "Empty", "", jiff::Timestamp::UNIX_EPOCH);
        assert!(left_over(&NodeRecord::default(), &reasoned, false));
    }
}
