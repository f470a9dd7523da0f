//! Is the Node fit for its pods for the first time?

use mortise_api::condition::{Conditions, Status, nodeclaim as kind};
use mortise_api::{labels, taints};
use mortise_engine::quantity::Quantity;
use mortise_kube::record::NodeRecord;

use super::{Input, Milestone, Plan};
use crate::actuate::nodeedit::NodeEdit;

/// The initialisation stage; sees the Node with the changes of the registration stage.
pub(super) fn initialize(input: &Input<'_>, plan: &mut Plan) {
    let now = input.now;
    if !plan.claim.is_true(kind::REGISTERED) {
        return;
    }
    if plan.claim.is_true(kind::INITIALIZED) {
        plan.claim.set_true(kind::INITIALIZED, now);
        return;
    }
    let [node] = input.nodes else {
        plan.claim.set_condition(
            kind::INITIALIZED,
            Status::Unknown,
            "NodeNotFound",
            "Node not registered with cluster",
            now,
        );
        return;
    };
    let mut edit = plan.node.take().unwrap_or_else(|| NodeEdit::of(node));
    if let Some((reason, message)) = obstacle(plan, node, &edit) {
        plan.claim.set_condition(kind::INITIALIZED, Status::Unknown, reason, &message, now);
        plan.node = Some(edit);
        return;
    }
    edit.label(labels::INITIALIZED, "true");
    plan.node = Some(edit);
    plan.claim.set_true(kind::INITIALIZED, now);
    plan.milestones.push(Milestone::Initialized);
}

/// What keeps the node from being initialised: reason and message.
fn obstacle(plan: &Plan, node: &NodeRecord, edit: &NodeEdit) -> Option<(&'static str, String)> {
    if !node.ready() {
        return Some(("NodeNotReady", "Node status is not Ready".into()));
    }
    let startup = &plan.claim.spec.startup_taints;
    for taint in edit.taints() {
        let effect = super::super::nodeedit::effect(taint.effect);
        if startup.iter().any(|s| s.key == *taint.key && s.effect.as_str() == effect) {
            return Some(("StartupTaintsExist", format!("Startup taint {}:{effect} is still on the node", taint.key)));
        }
    }
    for taint in edit.taints() {
        let effect = super::super::nodeedit::effect(taint.effect);
        if taints::is_ephemeral(&taint.key, effect) {
            let message = format!("Taint {}:{effect} is still on the node", taint.key);
            return Some(("KnownEphemeralTaintsExist", message));
        }
    }
    for (name, amount) in &plan.claim.spec.resources.requests {
        let wanted = amount.0.parse::<Quantity>().is_ok_and(|q| q.milli() > 0);
        if wanted && node.allocatable.get(name) == 0 {
            return Some(("ResourceNotRegistered", format!("Resource {name} was requested but is not registered")));
        }
    }
    None
}
