//! NodePools: hash annotations, conditions, and the sum of their nodes in the status.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use mortise_api::condition::{Conditions, READY, Status, nodepool as kind};
use mortise_api::{EC2NodeClass, NodePool, annotations, hash, validation};
use mortise_kube::state::Usage;
use mortise_kube::status::WriteError;

use crate::context::Context;
use crate::metrics::Id;
use crate::notes::{Note, Subject};
use crate::quantity::quantities;
use crate::queue::Next;

#[cfg(test)]
mod tests;

/// Reconciles one NodePool.
pub(crate) async fn reconcile(ctx: Arc<Context>, name: Arc<str>) -> Next {
    let now = ctx.clock.now();
    let Some((pool, class, usage)) = ctx.state.with(|s| {
        let pool = s.nodepool(&name)?.clone();
        let class = s.node_class(&pool.spec.template.spec.node_class_ref.name).cloned();
        let usage = s.usage(now.as_millisecond()).remove(&name).unwrap_or_default();
        Some((pool, class, usage))
    }) else {
        for id in [Id::NodepoolsAllowedDisruptions, Id::NodepoolsNodesConsumingBudgets] {
            ctx.metrics.retain(id, |labels| labels.first().is_none_or(|pool| **pool != *name));
        }
        return Next::Done;
    };
    if pool.metadata.deletion_timestamp.is_some() {
        return Next::Done;
    }
    let wanted = desired(&pool, class.as_deref(), &usage, ctx.settings.gate("StaticCapacity"), now);
    let result = ctx.writer.apply(&*pool, &wanted).await;
    match result {
        Ok(None) => Next::Done,
        Ok(Some(_)) => {
            ctx.notify(changes(&pool, &wanted));
            Next::Done
        }
        Err(WriteError::NotFound) => Next::Done,
        Err(WriteError::Conflict(_)) => {
            ctx.metrics.inc(Id::WriteConflictsTotal, &["nodepool"]);
            Next::Retry
        }
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["nodepool"]);
            tracing::error!(controller = "nodepool", NodePool = %name, %error, "reconciler error");
            Next::Retry
        }
    }
}

/// The pool as it should be.
fn desired(
    pool: &NodePool,
    class: Option<&EC2NodeClass>,
    usage: &Usage,
    static_capacity: bool,
    now: Timestamp,
) -> NodePool {
    let mut wanted = pool.clone();
    let notes = wanted.annotations_mut();
    notes.insert(annotations::NODEPOOL_HASH.into(), hash::node_pool(pool));
    notes.insert(annotations::NODEPOOL_HASH_VERSION.into(), hash::VERSION.into());
    wanted.initialize_conditions(now);
    match invalid(pool, static_capacity) {
        None => wanted.set_true(kind::VALIDATION_SUCCEEDED, now),
        Some((reason, message)) => {
            wanted.set_condition(kind::VALIDATION_SUCCEEDED, Status::False, reason, &message, now)
        }
    };
    match class_trouble(pool, class) {
        None => wanted.set_true(kind::NODE_CLASS_READY, now),
        Some((status, reason, message)) => wanted.set_condition(kind::NODE_CLASS_READY, status, &reason, &message, now),
    };
    if wanted.condition(kind::NODE_REGISTRATION_HEALTHY).is_none() {
        let awaiting = mortise_api::condition::AWAITING_RECONCILIATION;
        let message = "no launch of this pool has been judged yet";
        wanted.set_condition(kind::NODE_REGISTRATION_HEALTHY, Status::Unknown, awaiting, message, now);
    }
    let status = wanted.status.get_or_insert_default();
    status.resources = resources(usage);
    status.nodes = usage.nodes;
    wanted
}

/// What is wrong with the pool itself: reason and message.
fn invalid(pool: &NodePool, static_capacity: bool) -> Option<(&'static str, String)> {
    let findings = validation::node_pool(pool);
    if !findings.errors.is_empty() {
        return Some(("NodePoolValidationFailed", findings.message()));
    }
    if pool.is_static() && !static_capacity {
        let message = "spec.replicas: feature gate StaticCapacity is off, so this pool launches nothing".to_owned();
        return Some(("StaticCapacityUnsupported", message));
    }
    None
}

/// Why the node class cannot be used: status, reason and message.
fn class_trouble(pool: &NodePool, class: Option<&EC2NodeClass>) -> Option<(Status, String, String)> {
    let reference = &pool.spec.template.spec.node_class_ref;
    if !reference.is_ec2() {
        let message = format!(
            "spec.template.spec.nodeClassRef is {}/{}; only {} EC2NodeClass is known",
            reference.group,
            reference.kind,
            mortise_api::labels::AWS_GROUP
        );
        return Some((Status::False, "NodeClassNotFound".into(), message));
    }
    let Some(class) = class else {
        let message = format!("EC2NodeClass {:?} does not exist", reference.name);
        return Some((Status::False, "NodeClassNotFound".into(), message));
    };
    if class.metadata.deletion_timestamp.is_some() {
        let message = format!("EC2NodeClass {:?} is being deleted", reference.name);
        return Some((Status::False, "NodeClassTerminating".into(), message));
    }
    match class.condition(READY) {
        Some(_) if class.is_current_true(READY) => None,
        Some(ready) if ready.status == Status::False.as_str() => {
            // The first part that failed says more than the root does.
            let part = class.conditions().iter().find(|c| c.status == Status::False.as_str() && c.type_ != READY);
            let said = part.unwrap_or(ready);
            Some((Status::False, said.reason.clone(), format!("EC2NodeClass {:?}: {}", reference.name, said.message)))
        }
        _ => {
            let message = format!("EC2NodeClass {:?} has not been checked yet", reference.name);
            Some((Status::Unknown, "NodeClassReadinessUnknown".into(), message))
        }
    }
}

/// `status.resources`: the usual resources even when zero, and the number of nodes.
fn resources(usage: &Usage) -> BTreeMap<String, Quantity> {
    let mut all: BTreeMap<String, Quantity> =
        ["cpu", "memory", "pods", "ephemeral-storage"].map(|name| (name.to_owned(), Quantity("0".into()))).into();
    all.extend(quantities(&usage.resources));
    all.insert("nodes".into(), Quantity(usage.nodes.to_string()));
    all
}

/// One Event per condition whose status changed.
fn changes(old: &NodePool, new: &NodePool) -> Vec<Note> {
    condition_changes(Subject::Pool(new.name_any()), old, new)
}

/// One Event per condition whose status changed.
pub(crate) fn condition_changes<K: Conditions>(subject: Subject, old: &K, new: &K) -> Vec<Note> {
    let notes = new.conditions().iter().filter_map(|c| {
        let from = old.condition(&c.type_).map_or("Unknown", |o| o.status.as_str());
        (from != c.status).then(|| {
            let mut detail = String::new();
            if !c.reason.is_empty() && c.reason != c.type_ {
                detail = format!(", Reason: {}", c.reason);
                if !c.message.is_empty() {
                    detail.push_str(&format!(", Message: {}", c.message));
                }
            }
            Note::ConditionChanged {
                subject: subject.clone(),
                condition: c.type_.clone(),
                from: from.to_owned(),
                to: c.status.clone(),
                detail,
            }
        })
    });
    notes.collect()
}
