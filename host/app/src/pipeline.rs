//! The provisioning loop: pending pods → batch → snapshot → engine → NodeClaims.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use mortise_api::nodeclaim::{NodeClaimSpec, Resources as ApiResources};
use mortise_api::requirement::NodeClassReference;
use mortise_api::{NodeClaim, NodePool, annotations, finalizers, taints};
use mortise_engine::decision::{Claim, Schedule};
use mortise_engine::explain::PoolReason;
use mortise_engine::pod::PodKey;
use mortise_engine::schedule::schedule;
use mortise_engine::snapshot::Snapshot;
use mortise_engine::taint::{Effect, Taint};
use mortise_kube::batch::Batcher;
use mortise_kube::convert::to_api_requirements;
use mortise_kube::status::WriteError;
use mortise_kube::watch::{Delta, Event};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::actuate::launch::Due;
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::Note;
use crate::overlays;
use crate::quantity::quantities;
use crate::snapshots;

pub(crate) mod pace;
#[cfg(test)]
mod tests;

/// NodeClaims created at once.
const CREATING: usize = 32;
/// While pods wait, a round runs at least so often: time alone may change what is possible.
const RETRY: Duration = Duration::from_secs(10);
/// Events about single pods per round; the rest is in logs and metrics.
const EVENTS_PER_ROUND: usize = 500;

/// Provisions until stopped.
pub(crate) async fn run(ctx: Arc<Context>, batcher: &mut Batcher, stop: CancellationToken) {
    let mut pace = pace::Pace::default();
    let mut told = Told::default();
    loop {
        let batch = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            batch = batcher.wait() => batch,
        };
        let closed = Instant::now();
        ctx.metrics.observe_duration(Id::BatchDuration, &[], batch.open_for);
        if let Some(hold) = pace.hold(ctx.launcher.endings(), Instant::now()) {
            // Every claim of late came to nothing: what is asked for cannot be had just now.
            tracing::info!(controller = "provisioner", wait = ?hold, "recent nodeclaims could not be launched, waiting before the next try");
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(hold) => {}
            }
        }
        if !ctx.state.with(|s| s.synced()) {
            continue;
        }
        round(&ctx, closed, &stop, &mut told).await;
    }
}

/// What the log said last of pods without a place: the same every ten seconds is no news.
#[derive(Default)]
struct Told {
    last: Option<(Instant, usize, String)>,
}

impl Told {
    /// After this time it is said again.
    const REPEAT: Duration = Duration::from_secs(300);

    fn is_news(&mut self, pods: usize, reason: &str) -> bool {
        let same = |(at, count, said): &(Instant, usize, String)| {
            *count == pods && said == reason && at.elapsed() < Self::REPEAT
        };
        if self.last.as_ref().is_some_and(same) {
            return false;
        }
        self.last = Some((Instant::now(), pods, reason.to_owned()));
        true
    }
}

/// Triggers a batch while pods wait that nothing was promised to.
pub(crate) async fn retrigger(ctx: Arc<Context>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RETRY) => {}
        }
        let now = ctx.clock.now_ms();
        if ctx.state.with(|s| !s.provisionable(now).is_empty()) {
            ctx.trigger.trigger_now();
        }
    }
}

async fn round(ctx: &Arc<Context>, closed: Instant, stop: &CancellationToken, told: &mut Told) {
    let now = ctx.clock.now();
    let snapshot = Arc::new(snapshots::take(ctx).await);
    let moving = snapshot.nodes.values().any(|n| n.deleting && !n.pods.is_empty());
    if snapshot.pending.is_empty() && !moving {
        ctx.metrics.set(Id::SchedulerUnschedulablePods, &["provisioner"], 0.0);
        buffer_news(ctx, &snapshot, &Schedule::default());
        return;
    }
    let started = Instant::now();
    let work = {
        let (ctx, snapshot) = (ctx.clone(), snapshot.clone());
        tokio::task::spawn_blocking(move || schedule(&snapshot, &ctx.engine_options(), &*ctx.policies.current()))
    };
    let mut plan = match work.await {
        Ok(plan) => plan,
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["provisioner"]);
            tracing::error!(controller = "provisioner", %error, "scheduling ended abnormally");
            return;
        }
    };
    let took = started.elapsed();
    ctx.metrics.observe_duration(Id::SchedulingDuration, &["provisioner"], took);
    ctx.metrics.observe_duration(Id::EngineDuration, &["schedule"], took);
    buffer_news(ctx, &snapshot, &plan);
    overlays::annotate(&snapshot, &mut plan.claims);
    report(ctx, &snapshot, &plan, took, told);
    if stop.is_cancelled() {
        return;
    }
    let until = nominated_until(ctx, now);
    for (node, pods) in &plan.nominations {
        ctx.state.with(|s| s.nominate(node, pods, until));
    }
    let pools: BTreeMap<Arc<str>, Arc<NodePool>> = ctx.state.with(|s| s.nodepools().clone());
    futures::stream::iter(&plan.claims)
        .for_each_concurrent(CREATING, |claim| create(ctx, claim, &pools, until, closed, stop))
        .await;
    let waiting: std::collections::BTreeSet<&PodKey> = snapshot.pending.iter().map(|p| &p.key).collect();
    nominated_events(ctx, &plan, &waiting);
}

/// Until when pods are expected where they were placed: twice the longest batch, at least ten seconds.
fn nominated_until(ctx: &Context, now: Timestamp) -> i64 {
    let window = (ctx.settings.batch_max * 2).max(Duration::from_secs(10));
    now.as_millisecond().saturating_add(i64::try_from(window.as_millis()).unwrap_or(i64::MAX))
}

/// Metrics, logs and Events of a round.
fn report(ctx: &Context, snapshot: &Snapshot, plan: &Schedule, took: Duration, told: &mut Told) {
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    ctx.metrics.set(Id::SchedulerUnschedulablePods, &["provisioner"], count(plan.unplaced.len()));
    ctx.metrics.set(Id::SchedulerIgnoredPods, &[], count(ctx.state.with(|s| s.refusing().count())));
    policy_faults(ctx, &plan.policy_faults);
    let waiting = || snapshot.pending.iter().filter(|pod| pod.buffer.is_none());
    for pod in waiting() {
        // First decision about a pod: it was created no longer ago than two windows.
        let age = snapshot.now_unix_ms.saturating_sub(pod.created_unix_ms);
        let window = i64::try_from((ctx.settings.batch_max * 2).as_millis()).unwrap_or(i64::MAX);
        if (0..window).contains(&age) {
            let age = Duration::from_millis(u64::try_from(age).unwrap_or_default());
            ctx.metrics.observe_duration(Id::PodsSchedulingDecisionDuration, &[], age);
        }
    }
    if waiting().next().is_some() {
        let existing: usize = plan.nominations.iter().map(|(_, pods)| pods.len()).sum();
        tracing::info!(
            controller = "provisioner", pods = waiting().count(), nodeclaims = plan.claims.len(),
            "pods-on-existing-nodes" = existing, "pods-unplaced" = plan.unplaced.len(), duration = ?took,
            "found provisionable pod(s)"
        );
    }
    for (pool, reason) in &plan.pools {
        if let PoolReason::NoInstanceTypes(blocker) = reason {
            let message =
                format!("NodePool requirements filtered out all compatible available instance types: {blocker}");
            ctx.notify([Note::NoCompatibleInstanceTypes { pool: pool.to_string(), message }]);
        }
    }
    for (pod, reason) in plan.unplaced.iter().take(EVENTS_PER_ROUND) {
        let message = reason.to_string();
        tracing::debug!(Pod = format!("{}/{}", pod.namespace, pod.name), error = message, "could not schedule pod");
        ctx.notify([Note::FailedScheduling {
            namespace: pod.namespace.to_string(),
            pod: pod.name.to_string(),
            message,
        }]);
    }
    if let Some((pod, reason)) = plan.unplaced.first()
        && told.is_news(plan.unplaced.len(), &reason.to_string())
    {
        tracing::error!(
            controller = "provisioner", Pod = format!("{}/{}", pod.namespace, pod.name), pods = plan.unplaced.len(),
            error = %reason, "could not schedule pod(s)"
        );
    }
}

/// Keeps what a round made of CapacityBuffers, and has those looked at whose lot has changed.
fn buffer_news(ctx: &Context, snapshot: &Snapshot, plan: &Schedule) {
    if let Some(buffers) = &ctx.buffers {
        buffers.judged(snapshot, plan).into_iter().for_each(|name| ctx.queues.buffers.add(name));
    }
}

fn hosted(ctx: &Context, claim: &str, standing_in: u32) {
    if let Some(buffers) = &ctx.buffers {
        buffers.hosted(claim, standing_in);
    }
}

/// Counts policies that did not answer.
pub(crate) fn policy_faults(ctx: &Context, faults: &[String]) {
    for fault in faults {
        ctx.metrics.inc(Id::PolicyFaultsTotal, &[]);
        tracing::error!(error = fault, "a policy did not answer, its fallback stood in");
    }
    if !faults.is_empty() {
        ctx.policy_news.notify_one();
    }
}

fn nominated_events(ctx: &Context, plan: &Schedule, waiting: &std::collections::BTreeSet<&PodKey>) {
    for (node, pods) in &plan.nominations {
        for pod in pods.iter().filter(|p| waiting.contains(p)) {
            ctx.notify([nominated(pod, node, true)]);
        }
    }
}

fn nominated(pod: &PodKey, target: &str, existing: bool) -> Note {
    Note::Nominated {
        namespace: pod.namespace.to_string(),
        pod: pod.name.to_string(),
        target: target.to_owned(),
        existing,
    }
}

/// Creates one NodeClaim, promises its pods to it, and has it launched.
async fn create(
    ctx: &Arc<Context>,
    decided: &Claim,
    pools: &BTreeMap<Arc<str>, Arc<NodePool>>,
    until: i64,
    closed: Instant,
    stop: &CancellationToken,
) {
    if stop.is_cancelled() {
        return;
    }
    let Some(pool) = pools.get(&decided.nodepool).filter(|p| p.metadata.uid.as_deref() == Some(&*decided.nodepool_uid))
    else {
        // Deleted, or made anew, since the snapshot: its pods come round again.
        return;
    };
    let wanted = node_claim(decided, pool, &name(&decided.nodepool));
    let created = match ctx.writer.create(&wanted).await {
        Ok(created) => created,
        // Names are random in 2^38, so this one is ours and its first answer was lost. The watch brings it and has it
        // launched; its pods are promised to it already.
        Err(WriteError::AlreadyExists) => {
            ctx.state.with(|s| s.nominate(&wanted.name_any(), &decided.pods, until));
            hosted(ctx, &wanted.name_any(), decided.buffer_pods);
            return;
        }
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["provisioner"]);
            tracing::error!(controller = "provisioner", NodePool = %decided.nodepool, %error, "failed creating nodeclaim");
            return;
        }
    };
    let claim = Arc::new(created);
    let name = claim.name_any();
    hosted(ctx, &name, decided.buffer_pods);
    ctx.state.apply([Event::NodeClaim(Delta::Applied(claim.clone()))]);
    ctx.state.with(|s| s.nominate(&name, &decided.pods, until));
    ctx.launcher.launch(Due { claim: claim.clone(), fresh: true, batch_closed: Some(closed) });
    let relaxed = claim.annotations().get(annotations::NODECLAIM_MIN_VALUES_RELAXED).map_or("false", String::as_str);
    ctx.metrics.inc(Id::NodeclaimsCreatedTotal, &["provisioned", &decided.nodepool, relaxed]);
    let (instance, price) = match &decided.cheapest {
        Some(choice) => (&*choice.instance_type, choice.price.map(|p| p.0).unwrap_or_default()),
        None => ("", 0),
    };
    tracing::info!(
        controller = "provisioner", NodePool = %decided.nodepool, NodeClaim = name, pods = decided.pods.len(),
        requests = requests(decided), "cheapest-instance-type" = instance, "price-micro-usd" = price, "created nodeclaim"
    );
    for pod in &decided.pods {
        ctx.notify([nominated(pod, &name, false)]);
    }
}

/// Requests for the log.
fn requests(decided: &Claim) -> String {
    quantities(&decided.requests).iter().map(|(k, v)| format!("{k}: {}", v.0)).collect::<Vec<_>>().join(", ")
}

/// `<nodepool>-<eight letters>`: chosen here and not by the API server, so that a creation whose answer is lost can be
/// repeated without a second claim.
fn name(pool: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut random = mortise_kube::backoff::random_u64();
    let mut suffix = String::with_capacity(8);
    for _ in 0..8 {
        let n = LETTERS.len() as u64;
        let at = usize::try_from(random % n).unwrap_or_default();
        random /= n;
        suffix.push(LETTERS.get(at).map_or('b', |b| char::from(*b)));
    }
    // A claim's name becomes a label value in places, which ends at 63 characters.
    let mut pool = pool;
    while pool.len() > 54 {
        pool = pool.get(..pool.len() - 1).unwrap_or_default();
    }
    format!("{}-{suffix}", pool.trim_end_matches(['-', '.']))
}

/// The object for a decision.
pub(crate) fn node_claim(decided: &Claim, pool: &NodePool, name: &str) -> NodeClaim {
    let (group, kind, class) = &decided.node_class;
    let text = |map: &BTreeMap<Arc<str>, Arc<str>>| map.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let spec = NodeClaimSpec {
        node_class_ref: NodeClassReference {
            group: group.to_string(),
            kind: kind.to_string(),
            name: class.to_string(),
        },
        requirements: to_api_requirements(&decided.requirements),
        resources: ApiResources { requests: quantities(&decided.requests) },
        taints: decided.taints.iter().map(api_taint).collect(),
        startup_taints: decided.startup_taints.iter().map(api_taint).collect(),
        expire_after: decided
            .expire_after
            .as_deref()
            .map(Into::into)
            .unwrap_or_else(|| pool.spec.template.spec.expire_after.clone()),
        termination_grace_period: decided.termination_grace_period.as_deref().map(Into::into),
    };
    let mut claim = NodeClaim::new(name, spec);
    claim.metadata.labels = Some(text(&decided.labels));
    claim.metadata.annotations = Some(text(&decided.annotations));
    claim.metadata.finalizers = Some(vec![finalizers::TERMINATION.to_owned()]);
    claim.metadata.owner_references = Some(vec![OwnerReference {
        api_version: NodePool::api_version(&()).into_owned(),
        kind: NodePool::kind(&()).into_owned(),
        name: decided.nodepool.to_string(),
        uid: decided.nodepool_uid.to_string(),
        block_owner_deletion: Some(true),
        controller: None,
    }]);
    claim
}

fn api_taint(taint: &Taint) -> taints::Taint {
    let effect = match taint.effect {
        Effect::NoSchedule => taints::Effect::NoSchedule,
        Effect::PreferNoSchedule => taints::Effect::PreferNoSchedule,
        Effect::NoExecute => taints::Effect::NoExecute,
    };
    taints::Taint::new(&*taint.key, Some(&*taint.value).filter(|v| !v.is_empty()), effect)
}
