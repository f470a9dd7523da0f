//! Matching a claim to its Node and making the Node what the claim says.

use mortise_api::condition::{Conditions, Status, nodeclaim as kind};
use mortise_api::taints::{self, UNREGISTERED};
use mortise_api::{finalizers, labels};
use mortise_engine::taint::{Effect, Taint};

use super::{Input, Milestone, Plan};
use crate::actuate::nodeedit::NodeEdit;
use crate::notes::Note;

/// The registration stage.
pub(super) fn register(input: &Input<'_>, plan: &mut Plan) {
    let now = input.now;
    if plan.claim.is_true(kind::REGISTERED) {
        plan.claim.set_true(kind::REGISTERED, now);
        return;
    }
    let node = match input.nodes {
        [] => {
            plan.claim.set_condition(
                kind::REGISTERED,
                Status::Unknown,
                "NodeNotFound",
                "Node not registered with cluster",
                now,
            );
            return;
        }
        [node] => node,
        several => {
            let names: Vec<&str> = several.iter().map(|n| &*n.name).collect();
            let message = format!("Several nodes have this provider id: {}", names.join(", "));
            plan.claim.set_condition(kind::REGISTERED, Status::False, "MultipleNodesFound", &message, now);
            return;
        }
    };
    let registered = node.labels.get(labels::REGISTERED).is_some_and(|v| &**v == "true");
    if !registered && !node.taints.iter().any(is_unregistered) {
        plan.notes.push(Note::UnregisteredTaintMissing { claim: plan.claim.metadata.name.clone().unwrap_or_default() });
    }
    let mut edit = NodeEdit::of(node);
    edit.finalizer(finalizers::TERMINATION);
    edit.owner(&plan.claim);
    for (key, value) in plan.claim.metadata.labels.iter().flatten() {
        edit.label(key, value);
    }
    for (key, value) in plan.claim.metadata.annotations.iter().flatten() {
        edit.annotation(key, value);
    }
    if node.labels.get(labels::DO_NOT_SYNC_TAINTS).is_none_or(|v| &**v != "true") {
        for taint in plan.claim.spec.taints.iter().chain(&plan.claim.spec.startup_taints) {
            if let Some(taint) = engine_taint(taint) {
                edit.taint(taint);
            }
        }
    }
    edit.untaint(is_unregistered);
    edit.label(labels::REGISTERED, "true");
    plan.node = Some(edit);
    plan.claim.status.get_or_insert_default().node_name = Some(node.name.to_string());
    plan.claim.set_true(kind::REGISTERED, now);
    plan.milestones.push(Milestone::Registered);
}

/// `karpenter.sh/unregistered:NoExecute`.
fn is_unregistered(taint: &Taint) -> bool {
    &*taint.key == UNREGISTERED && taint.effect == Effect::NoExecute
}

/// A claim's taint as the engine has it; `None` for an effect nobody knows, which the API server would refuse too.
pub(crate) fn engine_taint(taint: &taints::Taint) -> Option<Taint> {
    let effect = match taint.effect {
        taints::Effect::NoSchedule => Effect::NoSchedule,
        taints::Effect::PreferNoSchedule => Effect::PreferNoSchedule,
        taints::Effect::NoExecute => Effect::NoExecute,
        taints::Effect::Other(_) => return None,
    };
    Some(Taint { key: taint.key.as_str().into(), value: taint.value.as_deref().unwrap_or_default().into(), effect })
}
