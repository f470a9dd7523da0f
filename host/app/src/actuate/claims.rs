//! The reconciler of NodeClaims and their Nodes: reads both, asks [`lifecycle`] or [`termination`] what to do, does it.
//! One worker per claim at a time, so the claim and its Node have one writer here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use mortise_api::condition::{Conditions, nodeclaim as kind};
use mortise_api::{NodeClaim, NodePool, annotations, finalizers, labels};
use mortise_kube::record::{NodeRecord, PodRecord};
use mortise_kube::status::WriteError;

use super::launch::{Due, Ending};
use super::lifecycle::{self, Deletion, Milestone, pool_of, since};
use super::nodeedit::NodeEdit;
use super::termination::{self, Attached, Machine, Step};
use super::{disrupted, eviction};
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::{Note, Subject};
use crate::queue::Next;

/// Until tagging an instance is tried again.
const TAG_RETRY: Duration = Duration::from_secs(30);

/// What is reconciled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A NodeClaim by name, with its Node.
    Claim(Arc<str>),
    /// A Node of which no NodeClaim is known.
    Node(Arc<str>),
}

/// A claim with what belongs to it.
struct View {
    claim: Arc<NodeClaim>,
    nodes: Vec<Arc<NodeRecord>>,
    pool: Option<Arc<NodePool>>,
    pod_event: Option<i64>,
}

/// Reconciles one key.
pub(crate) async fn reconcile(ctx: Arc<Context>, key: Key) -> Next {
    let result = match &key {
        Key::Claim(name) => claim(&ctx, name).await,
        Key::Node(name) => orphan(&ctx, name).await,
    };
    match result {
        Ok(next) => next,
        Err(WriteError::NotFound) => Next::Done,
        Err(WriteError::Conflict(_)) => {
            ctx.metrics.inc(Id::WriteConflictsTotal, &["nodeclaim.lifecycle"]);
            Next::Retry
        }
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["nodeclaim.lifecycle"]);
            tracing::error!(controller = "nodeclaim.lifecycle", key = ?key, %error, "reconciler error");
            Next::Retry
        }
    }
}

async fn claim(ctx: &Arc<Context>, name: &str) -> Result<Next, WriteError> {
    let Some(view) = ctx.state.with(|s| {
        let claim = s.nodeclaim(name)?.clone();
        let provider = claim.status.as_ref().and_then(|s| s.provider_id.as_deref()).unwrap_or_default();
        let nodes = if provider.is_empty() { Vec::new() } else { s.nodes_by_provider(provider) };
        let pool = s.nodepool(pool_of(&claim)).cloned();
        let pod_event = s.last_pod_event(name);
        Some(View { claim, nodes, pool, pod_event })
    }) else {
        return Ok(Next::Done);
    };
    if !view.claim.spec.node_class_ref.is_ec2() {
        return Ok(Next::Done);
    }
    if view.claim.metadata.deletion_timestamp.is_some() { terminate(ctx, &view).await } else { live(ctx, &view).await }
}

/// A claim that is to live.
async fn live(ctx: &Arc<Context>, view: &View) -> Result<Next, WriteError> {
    let claim = &view.claim;
    let uid = claim.uid().unwrap_or_default();
    if let Some(ending) = ctx.launcher.ending(&uid) {
        return end(ctx, claim, ending).await;
    }
    let (launch, retry_in) = ctx.launcher.state(&uid);
    let plan = lifecycle::plan(&lifecycle::Input {
        claim,
        nodes: &view.nodes,
        pool: view.pool.as_deref(),
        launch,
        pod_event_unix_ms: view.pod_event,
        now: ctx.clock.now(),
    });
    ctx.notify(plan.notes);
    if let Some(deletion) = plan.delete {
        return delete(ctx, claim, deletion).await;
    }
    if let Some(edit) = &plan.node {
        // The Node first: a claim that says Registered while its Node is not would hide the node's taints.
        ctx.writer.node(edit).await?;
    }
    let written = ctx.writer.apply(&**claim, &plan.claim).await?;
    let written_nothing = written.is_none();
    let latest = match written {
        Some(object) => {
            let object = Arc::new(object);
            ctx.state.own_claim(object.clone());
            object
        }
        None => claim.clone(),
    };
    for milestone in plan.milestones {
        reached(ctx, &latest, milestone, view);
    }
    if plan.launch && latest.finalizers().iter().any(|f| f == finalizers::TERMINATION) {
        ctx.launcher.launch(Due { claim: latest.clone(), fresh: false, batch_closed: None });
    }
    let settled = written_nothing && latest.is_true(kind::REGISTERED);
    let tagged = if settled { tag(ctx, &latest).await? } else { None };
    let again = plan.again.into_iter().chain(retry_in).chain(tagged).min();
    Ok(again.map_or(Next::Done, |wait| Next::After(wait.max(Duration::from_millis(50)))))
}

/// Tags the instance with what only its registration told, once. Returns when to try again if it failed.
async fn tag(ctx: &Context, claim: &NodeClaim) -> Result<Option<Duration>, WriteError> {
    let done = |key: &str| claim.annotations().get(key).is_some_and(|v| v == annotations::TRUE);
    if done(annotations::TAGGED) && done(annotations::CLUSTER_NAME_TAGGED) {
        return Ok(None);
    }
    let status = claim.status.as_ref();
    let (Some(id), Some(node)) =
        (status.and_then(|s| s.provider_id.as_deref()), status.and_then(|s| s.node_name.as_deref()))
    else {
        return Ok(None);
    };
    let tags = BTreeMap::from([
        (Arc::from("Name"), Arc::from(node)),
        (Arc::from("karpenter.sh/nodeclaim"), Arc::from(claim.name_any())),
        (Arc::from("eks:eks-cluster-name"), Arc::from(ctx.settings.cluster_name.as_str())),
    ]);
    if let Err(error) = ctx.provider.tag(id, &tags).await {
        if error.is_not_found() {
            return Ok(None);
        }
        tracing::error!(NodeClaim = claim.name_any(), "provider-id" = id, %error, "failed tagging instance");
        return Ok(Some(TAG_RETRY));
    }
    let mut wanted = claim.clone();
    for key in [annotations::TAGGED, annotations::CLUSTER_NAME_TAGGED] {
        wanted.annotations_mut().insert(key.to_owned(), annotations::TRUE.to_owned());
    }
    if let Some(object) = ctx.writer.apply(claim, &wanted).await? {
        ctx.state.own_claim(Arc::new(object));
    }
    Ok(None)
}

/// Metrics and logs of a stage reached.
fn reached(ctx: &Context, claim: &NodeClaim, milestone: Milestone, view: &View) {
    let (name, pool) = (claim.name_any(), pool_of(claim));
    let node = view.nodes.first().map(|n| &*n.name).unwrap_or_default();
    match milestone {
        Milestone::Launched => {}
        Milestone::Registered => {
            let zone = claim.labels().get(labels::ZONE).map(String::as_str).unwrap_or_default();
            ctx.metrics.inc(Id::NodesCreatedTotal, &[pool, zone]);
            ctx.metrics.inc(Id::NodeclaimsRegistered, &[pool]);
            tracing::info!(NodeClaim = name, Node = node, "registered nodeclaim");
        }
        Milestone::Initialized => tracing::info!(NodeClaim = name, Node = node, "initialized nodeclaim"),
    }
}

/// A launch that ended the claim.
async fn end(ctx: &Context, claim: &NodeClaim, ending: Ending) -> Result<Next, WriteError> {
    let name = claim.name_any();
    let reason = match ending {
        Ending::InsufficientCapacity(message) => {
            ctx.notify([Note::InsufficientCapacity { claim: name.clone(), message: lifecycle::cut(&message) }]);
            "insufficient_capacity"
        }
        Ending::ClassNotReady(message) => {
            ctx.notify([Note::NodeClassNotReady { claim: name.clone(), message: lifecycle::cut(&message) }]);
            "nodeclass_not_ready"
        }
    };
    remove(ctx, claim).await?;
    disrupted::count(ctx, claim, reason, "", 0);
    Ok(Next::Done)
}

async fn delete(ctx: &Context, claim: &NodeClaim, deletion: Deletion) -> Result<Next, WriteError> {
    remove(ctx, claim).await?;
    let name = claim.name_any();
    if let Some(reason) = deletion.metric() {
        let pods = ctx.state.with(|s| disrupted::reschedulable_pods(s, claim));
        disrupted::count(ctx, claim, reason, "", pods);
        tracing::info!(NodeClaim = name, reason, "deleting nodeclaim");
    } else {
        tracing::info!(NodeClaim = name, "deleting nodeclaim, its node is being deleted");
    }
    Ok(Next::Done)
}

/// Deletes the claim object; its finalizer does the rest.
pub(crate) async fn remove(ctx: &Context, claim: &NodeClaim) -> Result<(), WriteError> {
    ctx.writer.delete::<NodeClaim>(&claim.name_any(), claim.uid().as_deref()).await?;
    Ok(())
}

/// A claim that is being deleted.
async fn terminate(ctx: &Arc<Context>, view: &View) -> Result<Next, WriteError> {
    let claim = &view.claim;
    let (name, uid) = (claim.name_any(), claim.uid().unwrap_or_default());
    if !claim.finalizers().iter().any(|f| f == finalizers::TERMINATION) {
        return Ok(Next::Done);
    }
    if ctx.launcher.in_flight(&uid) {
        // Its outcome brings this claim back here.
        return Ok(Next::After(Duration::from_secs(5)));
    }
    let (mut attached, mut machine) = (Attached::NotAsked, Machine::NotAsked);
    // Each turn answers one question; there are two, and a call to terminate in between.
    for _ in 0..6 {
        let pods = pods_of(ctx, view);
        let plan = termination::plan(&termination::Input {
            claim,
            nodes: &view.nodes,
            pods: &pods,
            attached: attached.clone(),
            machine,
            now: ctx.clock.now(),
        });
        match plan.step {
            Step::AskVolumes => {
                let node = view.nodes.first().map(|n| n.name.clone()).unwrap_or_default();
                attached = Attached::Volumes(super::volumes::attached(ctx, &node, &pods).await);
                continue;
            }
            Step::AskMachine => {
                machine = ask(ctx, claim).await;
                continue;
            }
            Step::Terminate if machine == Machine::NotAsked => {
                // What is known so far is written before the instance goes.
                write(ctx, view, &plan, false).await?;
                machine = stop_instance(ctx, claim).await?;
                if machine == Machine::Gone {
                    continue;
                }
                return Ok(Next::After(termination::poll_instance(&plan.claim, ctx.clock.now())));
            }
            _ => {}
        }
        let again = match &plan.step {
            Step::DeleteNodes(nodes) => {
                write(ctx, view, &plan, false).await?;
                for node in nodes {
                    let uid = view.nodes.iter().find(|n| n.name == *node).map(|n| n.uid.to_string());
                    ctx.writer.delete::<k8s_openapi::api::core::v1::Node>(node, uid.as_deref()).await?;
                }
                return Ok(Next::Done);
            }
            Step::Drain(removals) => {
                write(ctx, view, &plan, true).await?;
                let node = view.nodes.first().map(|n| n.name.clone()).unwrap_or_default();
                eviction::ask(ctx, &node, claim, removals);
                Duration::from_secs(1)
            }
            Step::Wait(wait) => {
                write(ctx, view, &plan, true).await?;
                *wait
            }
            Step::Release => return release(ctx, view).await,
            Step::Terminate => termination::poll_instance(&plan.claim, ctx.clock.now()),
            Step::AskVolumes | Step::AskMachine => return Ok(Next::Retry),
        };
        tracing::debug!(NodeClaim = name, step = ?plan.step, "terminating nodeclaim");
        return Ok(Next::After(again));
    }
    Ok(Next::Retry)
}

/// Writes the node's and the claim's changes and counts what they mean.
async fn write(ctx: &Context, view: &View, plan: &termination::Plan, node_first: bool) -> Result<(), WriteError> {
    ctx.notify(plan.notes.iter().cloned());
    if let (Some(edit), true) = (&plan.node, node_first)
        && ctx.writer.node(edit).await?
    {
        tracing::info!(Node = edit.name(), "tainted node");
    }
    if let Some(object) = ctx.writer.apply(&*view.claim, &plan.claim).await? {
        ctx.state.own_claim(Arc::new(object));
    }
    if plan.drained {
        ctx.metrics.inc(Id::NodesDrainedTotal, &[pool_of(&view.claim)]);
    }
    Ok(())
}

fn pods_of(ctx: &Context, view: &View) -> Vec<Arc<PodRecord>> {
    let Some(node) = view.nodes.first() else { return Vec::new() };
    ctx.state.with(|s| s.pods_on(&node.name))
}

/// Asks whether the instance exists.
async fn ask(ctx: &Context, claim: &NodeClaim) -> Machine {
    let Some(provider) = claim.status.as_ref().and_then(|s| s.provider_id.clone()) else { return Machine::Exists };
    match ctx.provider.get(&provider).await {
        Err(error) if error.is_not_found() => Machine::Gone,
        _ => Machine::Exists,
    }
}

/// Terminates the instance of the claim, if there is one, and says whether it is gone.
async fn stop_instance(ctx: &Context, claim: &NodeClaim) -> Result<Machine, WriteError> {
    let uid = claim.uid().unwrap_or_default();
    let known = claim.status.as_ref().and_then(|s| s.provider_id.clone());
    let known = known.or_else(|| ctx.launcher.instance(&uid).map(|i| i.provider_id.to_string()));
    let provider_id = match known {
        Some(id) => id,
        // Ended for lack of capacity: the provider said that nothing was started.
        None if ctx.launcher.ending(&uid).is_some() => return Ok(Machine::Gone),
        None => match ctx.provider.find_by_claim(&uid).await {
            Ok(Some(instance)) => instance.provider_id.to_string(),
            Ok(None) => return Ok(Machine::Gone),
            Err(error) => return Err(WriteError::Unavailable(format!("looking for the claim's instance: {error}"))),
        },
    };
    let labels = ["nodeclaim.lifecycle", "Delete", ctx.provider.name()];
    let started = tokio::time::Instant::now();
    let answer = ctx.provider.terminate(&provider_id).await;
    ctx.metrics.observe_duration(Id::CloudproviderDuration, &labels, started.elapsed());
    match answer {
        Ok(()) => match ctx.provider.get(&provider_id).await {
            Err(error) if error.is_not_found() => Ok(Machine::Gone),
            _ => Ok(Machine::Exists),
        },
        Err(error) if error.is_not_found() => Ok(Machine::Gone),
        Err(error) => {
            let [controller, method, provider] = labels;
            ctx.metrics.inc(Id::CloudproviderErrorsTotal, &[controller, method, provider, "unknown", pool_of(claim)]);
            Err(WriteError::Unavailable(format!("terminating {provider_id}: {error}")))
        }
    }
}

/// Lets the node and the claim go.
async fn release(ctx: &Context, view: &View) -> Result<Next, WriteError> {
    let claim = &view.claim;
    let (name, pool, now) = (claim.name_any(), pool_of(claim), ctx.clock.now());
    for node in &view.nodes {
        if node.deletion_unix_ms.is_some() && drop_node_finalizer(ctx, node).await? {
            let zone = node.labels.get(labels::ZONE).map(|z| &**z).unwrap_or_default();
            ctx.metrics.inc(Id::NodesTerminatedTotal, &[pool, zone]);
            let deleted = crate::clock::timestamp(node.deletion_unix_ms.unwrap_or_default());
            ctx.metrics.observe_duration(Id::NodesTerminationDuration, &[pool], since(now, deleted));
            let age = since(now, crate::clock::timestamp(node.created_unix_ms));
            ctx.metrics.observe_duration(Id::NodesLifetimeDuration, &[pool], age);
            tracing::info!(Node = %node.name, NodeClaim = name, "deleted node");
        }
    }
    let mut end = NodeClaim::clone(claim);
    end.finalizers_mut().retain(|f| f != finalizers::TERMINATION);
    ctx.writer.apply(&**claim, &end).await?;
    ctx.launcher.forget(&claim.uid().unwrap_or_default());
    ctx.notify([Note::Finalized { subject: Subject::Claim(name.clone()) }]);
    let label = |key: &str| claim.labels().get(key).map(String::as_str).unwrap_or_default();
    let labels = [pool, label(labels::CAPACITY_TYPE), label(labels::ZONE)];
    ctx.metrics.inc(Id::NodeclaimsTerminatedTotal, &labels);
    ctx.metrics.observe_duration(Id::NodeclaimsTerminationDuration, &[pool], termination::deleting_for(claim, now));
    if let Some(asked) =
        lifecycle::transition(claim, kind::INSTANCE_TERMINATING).filter(|_| claim.is_true(kind::INSTANCE_TERMINATING))
    {
        ctx.metrics.observe_duration(Id::NodeclaimsInstanceTerminationDuration, &[pool], since(now, asked));
    }
    tracing::info!(NodeClaim = name, "deleted nodeclaim");
    Ok(Next::Done)
}

async fn drop_node_finalizer(ctx: &Context, node: &Arc<NodeRecord>) -> Result<bool, WriteError> {
    let mut edit = NodeEdit::of(node);
    edit.drop_finalizer(finalizers::TERMINATION);
    match ctx.writer.node(&edit).await {
        Err(WriteError::NotFound) => Ok(true),
        other => other,
    }
}

/// A Node of ours without a NodeClaim: when somebody deletes it there is nothing to terminate, and it may go.
async fn orphan(ctx: &Context, name: &str) -> Result<Next, WriteError> {
    let Some((node, claim)) = ctx.state.with(|s| Some((s.node(name)?.clone(), s.claim_of_node(name).cloned()))) else {
        return Ok(Next::Done);
    };
    if let Some(claim) = claim {
        // It has got one meanwhile.
        ctx.queues.claims.add(Key::Claim(claim.name_any().into()));
        return Ok(Next::Done);
    }
    if node.deletion_unix_ms.is_some() && node.finalizers.iter().any(|f| &**f == finalizers::TERMINATION) {
        drop_node_finalizer(ctx, &node).await?;
        tracing::info!(Node = name, "deleted node that has no nodeclaim");
    }
    Ok(Next::Done)
}
