//! The end of a NodeClaim: drain its Node, terminate its instance, let both objects go. What to do next, as a pure
//! function of claim, node, pods and time.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use mortise_api::condition::{Conditions, Status, nodeclaim as kind};
use mortise_api::nodeclaim::NodeClaim;
use mortise_api::{annotations, finalizers, taints};
use mortise_engine::taint::{Effect, Taint};
use mortise_kube::record::{NodeRecord, PodRecord};

use super::lifecycle::{since, termination_time};
use super::nodeedit::NodeEdit;
use crate::clock::timestamp;
use crate::notes::Note;

mod drain;
#[cfg(test)]
mod tests;

pub(crate) use drain::{Removal, removals};

/// A drained node waits at least so long from the start of its drain: the scheduler may not have seen the taint yet.
const SETTLE: Duration = Duration::from_secs(5);
/// How often a node that waits for pods or volumes is looked at, besides when one of them changes.
const POLL: Duration = Duration::from_secs(1);
/// Label that takes the node out of external load balancers.
const EXCLUDE_FROM_LOAD_BALANCERS: (&str, &str) =
    ("node.kubernetes.io/exclude-from-external-load-balancers", "karpenter");

/// Volumes still attached to the node that somebody must detach.
#[derive(Clone, Debug)]
pub(crate) enum Attached {
    /// Not asked yet; asked for once the drain is done.
    NotAsked,
    /// Names of the volumes; empty = none.
    Volumes(Vec<String>),
}

/// State of the instance as last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    /// Not asked yet.
    NotAsked,
    /// Exists, or cannot be told.
    Exists,
    /// There is none, or it is terminated.
    Gone,
}

/// Everything the decision depends on.
pub(crate) struct Input<'a> {
    /// The claim; being deleted.
    pub claim: &'a NodeClaim,
    /// Nodes with its provider id.
    pub nodes: &'a [Arc<NodeRecord>],
    /// Pods on the node.
    pub pods: &'a [Arc<PodRecord>],
    /// Volumes.
    pub attached: Attached,
    /// Instance.
    pub machine: Machine,
    /// Now.
    pub now: Timestamp,
}

/// What must be found out or done outside before going on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Delete these Node objects (their finalizer holds them until the drain is over).
    DeleteNodes(Vec<Arc<str>>),
    /// Evict or delete pods, then look again.
    Drain(Vec<Removal>),
    /// Ask which volumes are attached.
    AskVolumes,
    /// Ask whether the instance still exists.
    AskMachine,
    /// Terminate the instance, then ask.
    Terminate,
    /// Wait.
    Wait(Duration),
    /// Nothing is left: remove the node's finalizer, then the claim's.
    Release,
}

/// What to do.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The claim as it should be.
    pub claim: NodeClaim,
    /// Changes of its Node, before the step.
    pub node: Option<NodeEdit>,
    /// Next step.
    pub step: Step,
    /// The drain ended in this pass.
    pub drained: bool,
    /// Events.
    pub notes: Vec<Note>,
}

/// Decides what to do next with one claim that is being deleted.
pub(crate) fn plan(input: &Input<'_>) -> Plan {
    let mut plan =
        Plan { claim: input.claim.clone(), node: None, step: Step::Release, drained: false, notes: Vec::new() };
    bound(input, &mut plan);
    let Some(node) = input.nodes.first() else {
        plan.step = instance(input, &mut plan);
        return plan;
    };
    // A node that never registered is not ours to drain: nothing of ours is on it.
    if !input.claim.is_true(kind::REGISTERED) && !has_finalizer(node) {
        plan.step = instance(input, &mut plan);
        return plan;
    }
    let living: Vec<Arc<str>> =
        input.nodes.iter().filter(|n| n.deletion_unix_ms.is_none()).map(|n| n.name.clone()).collect();
    if !living.is_empty() {
        plan.step = Step::DeleteNodes(living);
        return plan;
    }
    if !has_finalizer(node) {
        // On its way out already; its deletion will be seen.
        plan.step = instance(input, &mut plan);
        return plan;
    }
    if !node.ready() && input.machine != Machine::Exists {
        if input.machine == Machine::Gone {
            // Nothing runs there any more, so there is nothing to drain.
            plan.step = Step::Release;
            return plan;
        }
        plan.step = Step::AskMachine;
        return plan;
    }
    let mut edit = NodeEdit::of(node);
    edit.untaint(|t| &*t.key == taints::DISRUPTED && t.effect != Effect::NoSchedule);
    edit.taint(Taint { key: taints::DISRUPTED.into(), value: "".into(), effect: Effect::NoSchedule });
    edit.label(EXCLUDE_FROM_LOAD_BALANCERS.0, EXCLUDE_FROM_LOAD_BALANCERS.1);
    plan.node = Some(edit);
    plan.step = match drain(input, node, &mut plan) {
        Some(step) => step,
        None => match volumes(input, node, &mut plan) {
            Some(step) => step,
            None => instance(input, &mut plan),
        },
    };
    plan
}

/// Does the node carry our finalizer?
fn has_finalizer(node: &NodeRecord) -> bool {
    node.finalizers.iter().any(|f| &**f == finalizers::TERMINATION)
}

/// Stamps the end of the drain on the claim when it sets a grace period.
fn bound(input: &Input<'_>, plan: &mut Plan) {
    let Some(grace) = input.claim.spec.termination_grace_period.as_ref().and_then(|g| g.get().ok()) else { return };
    if input.claim.annotations().contains_key(annotations::NODECLAIM_TERMINATION_TIMESTAMP) {
        return;
    }
    let deleted = input.claim.metadata.deletion_timestamp.as_ref().map_or(input.now, |t| t.0);
    let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
    let at = deleted.saturating_add(grace).unwrap_or(Timestamp::MAX).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let annotations = plan.claim.annotations_mut();
    annotations.insert(annotations::NODECLAIM_TERMINATION_TIMESTAMP.to_owned(), at.clone());
    let node = input.nodes.first().map(|n| n.name.to_string());
    plan.notes.push(Note::TerminationGracePeriodExpiring { node, claim: input.claim.name_any(), at });
}

/// The drain; `None` once it is over.
fn drain(input: &Input<'_>, node: &NodeRecord, plan: &mut Plan) -> Option<Step> {
    let now = input.now;
    if input.claim.is_true(kind::DRAINED) {
        plan.claim.set_true(kind::DRAINED, now);
        return None;
    }
    let now_ms = now.as_millisecond();
    let waiting: Vec<&Arc<PodRecord>> = input.pods.iter().filter(|p| p.drainable(now_ms)).collect();
    plan.claim.set_condition(kind::DRAINED, Status::Unknown, "Draining", "", now);
    if !waiting.is_empty() {
        let words = drain::waiting_words(&waiting);
        plan.notes.push(Note::FailedDraining { node: node.name.to_string(), message: words });
        return Some(Step::Drain(removals(&waiting, termination_time(&plan.claim), now)));
    }
    let started = plan.claim.condition(kind::DRAINED).map_or(now, |c| c.last_transition_time.0);
    // Nodes that were tainted long before their claim was deleted have waited already.
    match SETTLE.checked_sub(since(now, started)) {
        Some(left) if !left.is_zero() => Some(Step::Wait(left)),
        _ => {
            plan.claim.set_true(kind::DRAINED, now);
            plan.drained = true;
            None
        }
    }
}

/// Volumes that somebody must detach first; `None` once that is over.
fn volumes(input: &Input<'_>, node: &NodeRecord, plan: &mut Plan) -> Option<Step> {
    let now = input.now;
    if input.claim.is_true(kind::VOLUMES_DETACHED) {
        plan.claim.set_true(kind::VOLUMES_DETACHED, now);
        return None;
    }
    let past = termination_time(&plan.claim).is_some_and(|at| now >= at);
    match &input.attached {
        Attached::NotAsked => Some(Step::AskVolumes),
        Attached::Volumes(names) if names.is_empty() => {
            plan.claim.set_true(kind::VOLUMES_DETACHED, now);
            None
        }
        Attached::Volumes(_) if past => {
            plan.claim.set_condition(kind::VOLUMES_DETACHED, Status::False, "TerminationGracePeriodElapsed", "", now);
            None
        }
        Attached::Volumes(names) => {
            let message = format!(
                "Awaiting deletion of bound VolumeAttachments ({})",
                drain::listed(names.iter().map(String::as_str))
            );
            plan.claim.set_condition(
                kind::VOLUMES_DETACHED,
                Status::Unknown,
                "AwaitingVolumeDetachment",
                &message,
                now,
            );
            plan.notes.push(Note::AwaitingVolumeDetachment { node: node.name.to_string(), message });
            Some(Step::Wait(POLL))
        }
    }
}

/// The instance; ends with [`Step::Release`].
fn instance(input: &Input<'_>, plan: &mut Plan) -> Step {
    match input.machine {
        Machine::Gone => Step::Release,
        Machine::NotAsked | Machine::Exists => {
            if input.claim.status.as_ref().is_some_and(|s| s.provider_id.is_some()) {
                plan.claim.set_true(kind::INSTANCE_TERMINATING, input.now);
            }
            Step::Terminate
        }
    }
}

/// How long to wait before asking again whether the instance of a claim is gone.
pub(crate) fn poll_instance(claim: &NodeClaim, now: Timestamp) -> Duration {
    let asked = claim.condition(kind::INSTANCE_TERMINATING).map_or(now, |c| c.last_transition_time.0);
    // Quick at first, because in-process clouds answer at once; then as seldom as the reference does.
    if since(now, asked) < Duration::from_secs(3) { POLL } else { Duration::from_secs(5) }
}

/// How long the claim has been waiting since its deletion.
pub(crate) fn deleting_for(claim: &NodeClaim, now: Timestamp) -> Duration {
    claim.metadata.deletion_timestamp.as_ref().map_or(Duration::ZERO, |t| since(now, t.0))
}

/// When the pod's deletion would end, for the drain of nodes with a bound.
pub(crate) fn deletion_time(pod: &PodRecord) -> Option<Timestamp> {
    pod.deletion_unix_ms.map(timestamp)
}
