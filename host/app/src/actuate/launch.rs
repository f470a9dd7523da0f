//! From NodeClaim to instance. Claims that are due together get their launch lists in one call of the engine, then each
//! is launched by itself; what becomes of a launch is kept by the claim's UID until the claim has taken it over.
//!
//! Nothing is launched twice: a UID has at most one call under way; a claim that this process has not created a moment
//! ago, or whose last call ended in doubt, is looked for by its tag first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use mortise_api::condition::{self, Conditions, READY, Status};
use mortise_api::labels::capacity_type as capacity_types;
use mortise_api::{EC2NodeClass, NodeClaim};
use mortise_cloud::{CloudError, Instance, LaunchError, LaunchRequest as CloudRequest};
use mortise_engine::catalog::{CapacityType, Catalog};
use mortise_engine::decision::LaunchList;
use mortise_engine::explain::Blocker;
use mortise_engine::launch::{LaunchInput, LaunchRequest, launch_lists};
use mortise_kube::convert::{api_requirements, api_resources};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::lifecycle::engine_taint;
use super::lifecycle::{Launch, pool_of};
use crate::context::Context;
use crate::metrics::Id;
use crate::pipeline::pace::Endings;
use crate::{catalogs, overlays};

/// Launch calls under way at once. The provider gathers calls of a moment into one request where its API allows.
const CONCURRENT: usize = 200;
/// Claims that come within this time share one call of the engine. Long enough for the claims of one round, which are
/// created in parallel; short enough not to be seen in the time from batch to launch.
const GATHER: Duration = Duration::from_millis(3);
/// Pauses after a launch that failed: at first, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// A claim to launch.
pub(crate) struct Due {
    /// The claim.
    pub claim: Arc<NodeClaim>,
    /// Created by this process a moment ago: nobody can have launched it.
    pub fresh: bool,
    /// When the batch that it comes from closed, for the latency metric.
    pub batch_closed: Option<Instant>,
}

/// Outcome that ends a claim.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    /// Nothing can be had of what it may be.
    InsufficientCapacity(String),
    /// Its class cannot be used.
    ClassNotReady(String),
}

#[derive(Clone, Debug)]
enum Entry {
    InFlight,
    Done(Arc<Instance>),
    Failed { reason: Arc<str>, message: String, failures: u32, due: Instant, doubt: bool },
    Ended(Ending),
}

/// Takes claims to launch and keeps what became of them.
#[derive(Clone)]
pub(crate) struct Launcher {
    entries: Arc<Mutex<BTreeMap<String, Entry>>>,
    endings: Arc<Mutex<Endings>>,
    line: mpsc::UnboundedSender<(Due, u32)>,
}

impl Launcher {
    /// A launcher, and the line that [`run`] works off.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<(Due, u32)>) {
        let (line, receiver) = mpsc::unbounded_channel();
        (Self { entries: Arc::default(), endings: Arc::default(), line }, receiver)
    }

    fn with<R>(&self, f: impl FnOnce(&mut BTreeMap<String, Entry>) -> R) -> R {
        f(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks for a launch, unless one is under way, done or not yet due again.
    pub(crate) fn launch(&self, mut due: Due) {
        let Some(uid) = due.claim.uid() else { return };
        let failures = self.with(|entries| {
            let failures = match entries.get(&uid) {
                None => 0,
                Some(Entry::Failed { failures, due: at, doubt, .. }) if *at <= Instant::now() => {
                    due.fresh &= !doubt;
                    *failures
                }
                Some(_) => return None,
            };
            entries.insert(uid, Entry::InFlight);
            Some(failures)
        });
        if let Some(failures) = failures {
            let _ = self.line.send((due, failures));
        }
    }

    /// Where the launch of a claim stands, and when to ask again if it failed.
    pub(crate) fn state(&self, uid: &str) -> (Launch, Option<Duration>) {
        self.with(|entries| match entries.get(uid) {
            None => (Launch::NotAsked, None),
            Some(Entry::InFlight | Entry::Ended(_)) => (Launch::InFlight, None),
            Some(Entry::Done(instance)) => (Launch::Done(instance.clone()), None),
            Some(Entry::Failed { reason, message, due, .. }) => (
                Launch::Failed { reason: reason.clone(), message: message.clone() },
                Some(due.saturating_duration_since(Instant::now())),
            ),
        })
    }

    /// The claim is at its end, if so.
    pub(crate) fn ending(&self, uid: &str) -> Option<Ending> {
        self.with(|entries| match entries.get(uid) {
            Some(Entry::Ended(ending)) => Some(ending.clone()),
            _ => None,
        })
    }

    /// Is a call under way?
    pub(crate) fn in_flight(&self, uid: &str) -> bool {
        self.with(|entries| matches!(entries.get(uid), Some(Entry::InFlight)))
    }

    /// The instance, if this process launched one for the claim.
    pub(crate) fn instance(&self, uid: &str) -> Option<Arc<Instance>> {
        self.with(|entries| match entries.get(uid) {
            Some(Entry::Done(instance)) => Some(instance.clone()),
            _ => None,
        })
    }

    /// Forgets everything, what waits in the line included, so that claims ask anew: at the beginning and end of a term,
    /// while nobody asks. (Emptying the line later would lose launches already asked for in the new term.)
    pub(crate) fn reset(&self, line: &mut mpsc::UnboundedReceiver<(Due, u32)>) {
        while line.try_recv().is_ok() {}
        self.with(BTreeMap::clear);
    }

    /// Forgets a claim that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.with(|entries| entries.remove(uid));
    }

    /// Forgets claims that are gone, by those that exist.
    pub(crate) fn retain(&self, exists: impl Fn(&str) -> bool) {
        self.with(|entries| entries.retain(|uid, entry| matches!(entry, Entry::InFlight) || exists(uid)));
    }

    /// How launches ended so far.
    pub(crate) fn endings(&self) -> Endings {
        *self.endings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, uid: &str, entry: Entry) {
        let mut endings = self.endings.lock().unwrap_or_else(PoisonError::into_inner);
        match &entry {
            Entry::Ended(_) => endings.failed += 1,
            Entry::Done(_) => endings.launched += 1,
            Entry::InFlight | Entry::Failed { .. } => {}
        }
        drop(endings);
        self.with(|entries| entries.insert(uid.to_owned(), entry));
    }
}

/// Works off the line until stopped; calls under way are then waited for, so that their outcome is not lost.
pub(crate) async fn run(ctx: Arc<Context>, line: &mut mpsc::UnboundedReceiver<(Due, u32)>, stop: CancellationToken) {
    let permits = Arc::new(tokio::sync::Semaphore::new(CONCURRENT));
    let mut calls = tokio::task::JoinSet::new();
    loop {
        let first = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = calls.join_next() => continue,
            first = line.recv() => match first {
                Some(first) => first,
                None => break,
            },
        };
        let batch = gather(first, line).await;
        for (due, failures, list, catalog) in lists(&ctx, batch).await {
            let (ctx, permits) = (ctx.clone(), permits.clone());
            calls.spawn(async move {
                let _permit = permits.acquire_owned().await;
                one(&ctx, due, failures, list, catalog.as_deref()).await;
            });
        }
    }
    while calls.join_next().await.is_some() {}
}

/// The claims that are due together with the first.
async fn gather(first: (Due, u32), line: &mut mpsc::UnboundedReceiver<(Due, u32)>) -> Vec<(Due, u32)> {
    let mut batch = vec![first];
    let deadline = Instant::now() + GATHER;
    while let Ok(Some(next)) = tokio::time::timeout_at(deadline, line.recv()).await {
        batch.push(next);
    }
    batch
}

/// A claim with its failures so far, its launch list, and the catalogue that this is from.
type Listed = (Due, u32, Result<LaunchList, Refusal>, Option<Arc<Catalog>>);

/// Why there is no launch list.
#[derive(Clone)]
enum Refusal {
    /// The class is gone or going.
    Gone(String),
    /// The class has not been judged yet.
    Unknown(String),
    /// The policies and the catalogue leave nothing.
    Nothing(Blocker),
    /// The class is not ready.
    Class(String),
    /// The catalogue is not there.
    Catalog(CloudError),
}

/// Launch lists of a batch, in one call of the engine.
async fn lists(ctx: &Arc<Context>, batch: Vec<(Due, u32)>) -> Vec<Listed> {
    let now_unix_ms = ctx.clock.now_ms();
    let mut catalogs: BTreeMap<String, Result<Arc<Catalog>, Refusal>> = BTreeMap::new();
    for (due, _) in &batch {
        let class = &due.claim.spec.node_class_ref.name;
        if !catalogs.contains_key(class) {
            catalogs.insert(class.clone(), catalog(ctx, class).await);
        }
    }
    let requests: Vec<LaunchRequest> = batch.iter().map(|(due, _)| engine_request(&due.claim, now_unix_ms)).collect();
    let mut chosen: Vec<Option<Arc<Catalog>>> = batch
        .iter()
        .map(|(due, _)| catalogs.get(&due.claim.spec.node_class_ref.name).and_then(|c| c.as_ref().ok().cloned()))
        .collect();
    overlay(ctx, &batch, &mut chosen).await;
    let started = Instant::now();
    let work = {
        let (ctx, chosen) = (ctx.clone(), chosen.clone());
        tokio::task::spawn_blocking(move || engine_lists(&ctx, &requests, &chosen))
    };
    // A panic of the engine loses this batch's lists only: its claims are tried again.
    let mut answers = work.await.unwrap_or_default().into_iter();
    ctx.metrics.observe_duration(Id::EngineDuration, &["launch"], started.elapsed());
    batch
        .into_iter()
        .zip(chosen)
        .map(|((due, failures), catalog)| {
            let list = match answers.next().flatten() {
                Some(answer) => answer.map_err(Refusal::Nothing).map(|mut list| {
                    if let Some(catalog) = &catalog {
                        overlays::prioritize(&mut list, catalog);
                    }
                    list
                }),
                None => Err(match catalogs.get(&due.claim.spec.node_class_ref.name) {
                    Some(Err(refusal)) => refusal.clone(),
                    _ => Refusal::Unknown("the launch list could not be worked out".into()),
                }),
            };
            (due, failures, list, catalog)
        })
        .collect()
}

/// Puts claims of NodePools on the catalogues that overlays make for those.
async fn overlay(ctx: &Context, batch: &[(Due, u32)], chosen: &mut [Option<Arc<Catalog>>]) {
    let Some(overlays) = &ctx.overlays else { return };
    // All of them: whether an overlay is in effect does not depend on who asks.
    let catalogs = catalogs::current(ctx).await;
    let mut pools = ctx.state.with(|s| s.pools(&catalogs));
    overlays.overlay(&mut pools);
    for ((due, _), chosen) in batch.iter().zip(chosen) {
        let (pool, class) = (pool_of(&due.claim), due.claim.spec.node_class_ref.name.as_str());
        let own = pools.iter().find(|p| &*p.name == pool && &*p.node_class.2 == class);
        if let (Some(chosen), Some(own)) = (chosen.as_mut(), own.filter(|p| !p.catalog.types.is_empty())) {
            *chosen = Arc::clone(&own.catalog);
        }
    }
}

/// Runs the engine for the claims whose catalogue is known; blocking.
fn engine_lists(
    ctx: &Context,
    requests: &[LaunchRequest],
    catalogs: &[Option<Arc<Catalog>>],
) -> Vec<Option<Result<LaunchList, Blocker>>> {
    let inputs: Vec<LaunchInput<'_>> = requests
        .iter()
        .zip(catalogs)
        .filter_map(|(request, catalog)| Some(LaunchInput { request, catalog: catalog.as_ref()? }))
        .collect();
    let policies = ctx.policies.current();
    let mut answers = launch_lists(&inputs, &ctx.engine_options(), &*policies).into_iter();
    catalogs.iter().map(|catalog| catalog.as_ref().and_then(|_| answers.next())).collect()
}

/// The claim as the engine asks about it.
fn engine_request(claim: &NodeClaim, now_unix_ms: i64) -> LaunchRequest {
    // What cannot be read was reported where the claim was made; launching with less would buy the wrong machine, but
    // an unknown operator cannot pass the API server's schema.
    let (requirements, _) = api_requirements(&claim.spec.requirements);
    LaunchRequest {
        nodepool: pool_of(claim).into(),
        requirements,
        requests: api_resources(&claim.spec.resources.requests, "spec.resources.requests", &mut Vec::new()),
        replaces: false,
        now_unix_ms,
    }
}

/// The catalogue of a class, if the class can be launched with.
async fn catalog(ctx: &Context, name: &str) -> Result<Arc<Catalog>, Refusal> {
    let Some(class) = ctx.state.with(|s| s.node_class(name).cloned()) else {
        return Err(Refusal::Gone(format!("EC2NodeClass {name} does not exist")));
    };
    if class.metadata.deletion_timestamp.is_some() {
        return Err(Refusal::Gone(format!("EC2NodeClass {name} is being deleted")));
    }
    match class.condition(READY) {
        Some(ready) if condition::is_true(ready) && class.is_current_true(READY) => {}
        Some(ready) if ready.status == Status::False.as_str() => {
            return Err(Refusal::Class(format!("EC2NodeClass {name}: {}", ready.message)));
        }
        // Unknown, or judged before the last change of the class: its own reconciler is about to find out.
        _ => return Err(Refusal::Unknown(format!("EC2NodeClass {name} has not been checked yet"))),
    }
    ctx.provider.catalog(&class).await.map_err(Refusal::Catalog)
}

/// One launch.
async fn one(ctx: &Context, due: Due, failures: u32, list: Result<LaunchList, Refusal>, catalog: Option<&Catalog>) {
    let claim = &due.claim;
    let (Some(uid), name) = (claim.uid(), claim.name_any()) else { return };
    let mut settled = Settled { launcher: &ctx.launcher, uid: &uid, failures, entry: None };
    let entry = match list {
        Ok(list) => match call(ctx, &due, failures, list).await {
            Entry::Done(instance) => Entry::Done(with_overlays(instance, catalog)),
            other => other,
        },
        Err(refusal) => refused(refusal, failures),
    };
    match &entry {
        Entry::Done(instance) => {
            ctx.metrics.inc(Id::NodeclaimsLaunched, &[pool_of(claim)]);
            tracing::info!(
                NodeClaim = name, "provider-id" = %instance.provider_id, "instance-type" = %instance.instance_type,
                zone = %instance.zone, "capacity-type" = capacity_type(instance.capacity_type), "launched nodeclaim"
            );
        }
        Entry::Ended(Ending::InsufficientCapacity(message)) => {
            tracing::info!(NodeClaim = name, error = message, "insufficient capacity, trying another offering");
        }
        Entry::Ended(Ending::ClassNotReady(message)) | Entry::Failed { message, .. } => {
            tracing::error!(NodeClaim = name, error = message, "failed launching nodeclaim");
        }
        Entry::InFlight => {}
    }
    settled.entry = Some(entry);
    drop(settled);
    ctx.queues.claims.add(super::claims::Key::Claim(name.into()));
}

/// Takes the claim out of flight, also when the call's task panics or is aborted: the claim is then looked for and tried
/// again.
struct Settled<'a> {
    launcher: &'a Launcher,
    uid: &'a str,
    failures: u32,
    entry: Option<Entry>,
}

impl Drop for Settled<'_> {
    fn drop(&mut self) {
        let entry = self.entry.take().unwrap_or_else(|| {
            failed("LaunchFailed".into(), "the launch broke off".to_owned(), self.failures, None, true)
        });
        self.launcher.put(self.uid, entry);
    }
}

/// Calls the provider.
async fn call(ctx: &Context, due: &Due, failures: u32, list: LaunchList) -> Entry {
    let claim = &due.claim;
    let Some(class) = ctx.state.with(|s| s.node_class(&claim.spec.node_class_ref.name).cloned()) else {
        return refused(Refusal::Gone("its EC2NodeClass does not exist".into()), failures);
    };
    let request = cloud_request(claim, class, list, !due.fresh);
    if let Some(closed) = due.batch_closed {
        ctx.metrics.observe_duration(Id::BatchToLaunch, &[], closed.elapsed());
    }
    ctx.metrics.add(Id::LaunchesInFlight, &[], 1.0);
    let started = Instant::now();
    let answer = ctx.provider.launch(&request).await;
    ctx.metrics.add(Id::LaunchesInFlight, &[], -1.0);
    let labels = ["nodeclaim.lifecycle", "Create", ctx.provider.name()];
    ctx.metrics.observe_duration(Id::CloudproviderDuration, &labels, started.elapsed());
    let error = match answer {
        Ok(instance) => return Entry::Done(Arc::new(instance)),
        Err(error) => error,
    };
    let kind = match &error {
        LaunchError::InsufficientCapacity { .. } => "InsufficientCapacityError",
        LaunchError::ClassNotReady { .. } => "NodeClassNotReadyError",
        _ => "unknown",
    };
    let [controller, method, provider] = labels;
    ctx.metrics.inc(Id::CloudproviderErrorsTotal, &[controller, method, provider, kind, pool_of(claim)]);
    match error {
        LaunchError::InsufficientCapacity { message, offerings, .. } => {
            for o in &offerings {
                let labels = [&*o.zone, "", capacity_type(o.capacity_type), &*o.code];
                ctx.metrics.inc(Id::InstanceLaunchFailuresTotal, &labels);
            }
            Entry::Ended(Ending::InsufficientCapacity(message))
        }
        LaunchError::ClassNotReady { message } => Entry::Ended(Ending::ClassNotReady(message)),
        LaunchError::Create { reason, message } => {
            ctx.metrics.inc(Id::InstanceLaunchFailuresTotal, &["", "", "", &reason]);
            failed(reason, message, failures, None, false)
        }
        LaunchError::Transient { reason, message, retry_after } => failed(reason, message, failures, retry_after, true),
    }
}

/// The instance with what overlays add to its type, which the provider does not know.
fn with_overlays(instance: Arc<Instance>, catalog: Option<&Catalog>) -> Arc<Instance> {
    let Some(catalog) = catalog else { return instance };
    let added = overlays::added(catalog, &instance.instance_type, &instance.capacity);
    if added.is_zero() {
        return instance;
    }
    let mut instance = Arc::unwrap_or_clone(instance);
    instance.capacity = instance.capacity.saturating_add(&added);
    instance.allocatable = instance.allocatable.saturating_add(&added);
    Arc::new(instance)
}

fn refused(refusal: Refusal, failures: u32) -> Entry {
    match refusal {
        // As the reference has it: a class that is gone counts as lack of capacity, so that pods move to other pools.
        Refusal::Gone(message) => Entry::Ended(Ending::InsufficientCapacity(message)),
        Refusal::Nothing(blocker) => {
            Entry::Ended(Ending::InsufficientCapacity(format!("no offering is left for its requirements: {blocker}")))
        }
        Refusal::Class(message) => Entry::Ended(Ending::ClassNotReady(message)),
        Refusal::Unknown(message) => failed("NodeClassReadinessUnknown".into(), message, failures, None, false),
        Refusal::Catalog(error) => {
            failed("InstanceTypeResolutionFailed".into(), error.to_string(), failures, None, false)
        }
    }
}

fn failed(reason: Arc<str>, message: String, failures: u32, wait: Option<Duration>, doubt: bool) -> Entry {
    let failures = failures.saturating_add(1);
    let (first, max) = BACKOFF;
    let pause = first.saturating_mul(1_u32.checked_shl(failures - 1).unwrap_or(u32::MAX)).min(max);
    let due = Instant::now() + pause.max(wait.unwrap_or_default()).min(max);
    Entry::Failed { reason, message, failures, due, doubt }
}

fn cloud_request(claim: &NodeClaim, class: Arc<EC2NodeClass>, list: LaunchList, may_exist: bool) -> CloudRequest {
    let engine = engine_request(claim, 0);
    CloudRequest {
        claim_name: claim.name_any().into(),
        claim_uid: claim.uid().unwrap_or_default().into(),
        nodepool: pool_of(claim).into(),
        class,
        labels: claim.labels().iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect(),
        taints: claim.spec.taints.iter().filter_map(engine_taint).collect(),
        startup_taints: claim.spec.startup_taints.iter().filter_map(engine_taint).collect(),
        requirements: engine.requirements,
        requests: engine.requests,
        list,
        may_exist,
    }
}

/// Value of the label `karpenter.sh/capacity-type`.
pub(crate) fn capacity_type(capacity: CapacityType) -> &'static str {
    match capacity {
        CapacityType::Reserved => capacity_types::RESERVED,
        CapacityType::Spot => capacity_types::SPOT,
        CapacityType::OnDemand => capacity_types::ON_DEMAND,
    }
}

#[cfg(test)]
mod tests {
    use mortise_api::nodeclaim::NodeClaimSpec;

    use super::*;

    fn due(uid: &str) -> Due {
        let mut claim = NodeClaim::new(uid, NodeClaimSpec::default());
        claim.metadata.uid = Some(uid.to_owned());
        Due { claim: Arc::new(claim), fresh: false, batch_closed: None }
    }

    fn asked(line: &mut mpsc::UnboundedReceiver<(Due, u32)>) -> Vec<String> {
        std::iter::from_fn(|| line.try_recv().ok()).filter_map(|(due, _)| due.claim.uid()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_term_forgets_the_old_one_and_loses_nothing_of_its_own() {
        let (launcher, mut line) = Launcher::new();
        launcher.launch(due("old"));
        launcher.reset(&mut line);
        assert_eq!(asked(&mut line), Vec::<String>::new());
        assert!(!launcher.in_flight("old"));
        // Claims are looked at before the line's worker has begun: they are in flight, so they must be in the line.
        for uid in ["old", "new"] {
            launcher.launch(due(uid));
        }
        let first = line.recv().await.unwrap();
        let batch = gather(first, &mut line).await;
        let uids: Vec<_> = batch.iter().filter_map(|(due, _)| due.claim.uid()).collect();
        assert_eq!(uids, ["old", "new"]);
        assert!(uids.iter().all(|uid| launcher.in_flight(uid)));
    }

    #[tokio::test]
    async fn a_launch_that_breaks_off_is_in_doubt() {
        let (launcher, mut line) = Launcher::new();
        launcher.launch(due("a"));
        assert_eq!(asked(&mut line), ["a"]);
        drop(Settled { launcher: &launcher, uid: "a", failures: 0, entry: None });
        assert!(!launcher.in_flight("a"));
        assert!(matches!(launcher.with(|e| e.get("a").cloned()), Some(Entry::Failed { doubt: true, failures: 1, .. })));
    }

    #[tokio::test]
    async fn a_claim_has_one_launch_at_a_time() {
        let (launcher, mut line) = Launcher::new();
        launcher.launch(due("a"));
        launcher.launch(due("a"));
        assert_eq!(asked(&mut line), ["a"]);
        launcher.put("a", failed("LaunchFailed".into(), String::new(), 0, None, true));
        launcher.launch(due("a"));
        assert_eq!(asked(&mut line), Vec::<String>::new(), "before its pause is over");
    }
}
