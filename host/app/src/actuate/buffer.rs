//! CapacityBuffers: what their pods would need and how many there are, and the status that says so.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use mortise_api::CapacityBuffer;
use mortise_api::capacitybuffer::{LocalReference, Size, replicas};
use mortise_api::condition::{Conditions, Status, capacitybuffer as kind};
use mortise_kube::convert::api_resources;
use mortise_kube::record::{ObjectName, TemplateRecord};
use mortise_kube::status::WriteError;

use super::nodepool::condition_changes;
use crate::buffers::{Outcome, Wanted, name_of};
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::Subject;
use crate::queue::Next;

#[cfg(test)]
mod tests;

/// Between two looks at a buffer.
const RESYNC: Duration = Duration::from_secs(30);
/// Pods that one buffer may stand for. Far beyond any use, and little enough that a slip of the pen costs one round a
/// fraction of a second and not the controller its memory.
const MOST_PODS: i32 = 10_000;

/// Reconciles one buffer. Whatever comes of it, provisioning looks at it: nodes may be missing, or needless now.
pub(crate) async fn reconcile(ctx: Arc<Context>, name: ObjectName) -> Next {
    let Some(buffers) = &ctx.buffers else { return Next::Done };
    let alive = buffers.objects.get(&name).filter(|b| b.metadata.deletion_timestamp.is_none());
    let Some(buffer) = alive else {
        if buffers.want(&name, None) {
            ctx.trigger.trigger_now();
        }
        return Next::Done;
    };
    let resolved = resolve(&buffer, |kind, object| buffers.template(kind, object));
    let uid: Arc<str> = buffer.uid().unwrap_or_default().into();
    let wanted = resolved.as_ref().ok().map(|r| Wanted {
        uid: Arc::clone(&uid),
        shape: Arc::clone(&r.template.shape),
        replicas: r.replicas,
    });
    let news = buffers.want(&name, wanted);
    let status = desired(&buffer, &resolved, buffers.outcome(&name), ctx.clock.now());
    let written = match ctx.writer.apply(&*buffer, &status).await {
        Ok(None) => false,
        Ok(Some(object)) => {
            ctx.notify(condition_changes(Subject::Buffer(name.clone()), &*buffer, &status));
            buffers.objects.own(&name, Arc::new(object));
            true
        }
        Err(WriteError::NotFound) => return Next::Done,
        Err(WriteError::Conflict(_)) => {
            ctx.metrics.inc(Id::WriteConflictsTotal, &["capacitybuffer"]);
            return Next::Retry;
        }
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["capacitybuffer"]);
            tracing::error!(controller = "capacitybuffer", CapacityBuffer = %name, %error, "reconciler error");
            return Next::Retry;
        }
    };
    // The verdict of a round changes the status too, and must not bring on the next round. A look that finds nothing new
    // asks for one: nodes may have come up, or gone.
    if news || !written || resolved.is_err() {
        ctx.trigger.trigger(&uid);
    }
    Next::After(RESYNC)
}

/// What a buffer keeps room for.
#[derive(Debug, PartialEq)]
struct Resolved {
    template: Arc<TemplateRecord>,
    replicas: i32,
}

/// Why that is not known: reason and message.
type Unresolved = (&'static str, String);

fn resolve(
    buffer: &CapacityBuffer,
    find: impl Fn(&str, &ObjectName) -> Option<Arc<TemplateRecord>>,
) -> Result<Resolved, Unresolved> {
    let spec = &buffer.spec;
    let namespace = buffer.metadata.namespace.as_deref().unwrap_or_default();
    let failed = |message: String| (kind::RESOLUTION_FAILED, message);
    let template = match (&spec.pod_template_ref, &spec.scalable_ref) {
        (Some(_), Some(_)) => return Err(failed("spec: podTemplateRef and scalableRef exclude one another".into())),
        (None, None) => return Err(failed("spec: give podTemplateRef or scalableRef".into())),
        (Some(template), None) => find("PodTemplate", &ObjectName::new(namespace, template.name.as_str()))
            .ok_or_else(|| (kind::POD_TEMPLATE_NOT_FOUND, format!("PodTemplate {:?} does not exist", template.name)))?,
        (None, Some(scalable)) => {
            let group = scalable.api_group.as_str();
            let known = matches!(scalable.kind.as_str(), "Deployment" | "ReplicaSet" | "StatefulSet");
            if !(known && matches!(group, "" | "apps")) {
                return Err(failed(format!(
                    "spec.scalableRef: {group}/{} cannot be resolved: use a Deployment, ReplicaSet or StatefulSet of apps",
                    scalable.kind
                )));
            }
            find(&scalable.kind, &ObjectName::new(namespace, scalable.name.as_str())).ok_or_else(|| {
                (kind::SCALABLE_REF_NOT_FOUND, format!("{} {:?} does not exist", scalable.kind, scalable.name))
            })?
        }
    };
    let mut problems = Vec::new();
    let limits = api_resources(&spec.limits, "spec.limits", &mut problems);
    if !problems.is_empty() {
        return Err(failed(problems.join("; ")));
    }
    let asked = |name: &str| template.shape.requests.get(name);
    let within = spec.limits.keys().filter(|name| asked(name) > 0).map(|name| limits.get(name).max(0) / asked(name));
    let size = Size { scale: template.replicas, within_limits: within.min() };
    let replicas = replicas(spec, size);
    if replicas > MOST_PODS {
        return Err(failed(format!("room for {replicas} pods is asked for; {MOST_PODS} is the most for one buffer")));
    }
    Ok(Resolved { template, replicas })
}

/// The buffer with its status as it should be.
fn desired(
    buffer: &CapacityBuffer,
    resolved: &Result<Resolved, Unresolved>,
    outcome: Option<Outcome>,
    now: Timestamp,
) -> CapacityBuffer {
    let mut wanted = buffer.clone();
    let status = wanted.status.get_or_insert_default();
    status.provisioning_strategy = Some(buffer.spec.provisioning_strategy.clone());
    let found = resolved.as_ref().ok();
    status.replicas = found.map(|r| r.replicas);
    status.pod_template_generation = found.and_then(|r| r.template.generation);
    status.pod_template_ref = found
        .filter(|r| r.template.replicas.is_none())
        .map(|r| LocalReference { name: r.template.name.name.to_string() });
    match resolved {
        Ok(_) => wanted.set_condition(kind::READY_FOR_PROVISIONING, Status::True, kind::RESOLVED, "", now),
        Err((reason, message)) => {
            wanted.set_condition(kind::READY_FOR_PROVISIONING, Status::False, reason, message, now)
        }
    };
    let provisioning = match (found.map(|r| r.replicas), outcome) {
        (None, _) => Some((Status::False, kind::NOT_READY_FOR_PROVISIONING, String::new())),
        (Some(0), _) => Some((Status::False, kind::BUFFER_EMPTY, "the buffer has no pods".to_owned())),
        // No round has looked at it yet.
        (Some(_), None) => None,
        (Some(replicas), Some(o)) if i64::from(o.existing) >= i64::from(replicas) => {
            Some((Status::True, kind::FITS_EXISTING_CAPACITY, String::new()))
        }
        (Some(replicas), Some(Outcome { existing, new, unplaced })) => {
            let mut message = format!("{existing} of {replicas} pods fit on nodes that are there");
            if new > 0 {
                message.push_str(&format!(", nodes for {new} are asked for"));
            }
            if unplaced > 0 {
                message.push_str(&format!(", {unplaced} fit nowhere"));
            }
            Some((Status::False, kind::REQUIRES_NEW_CAPACITY, message))
        }
    };
    if let Some((status, reason, message)) = provisioning {
        wanted.set_condition(kind::PROVISIONING, status, reason, &message, now);
    }
    wanted
}

/// Every buffer, at the beginning of a term.
pub(crate) fn everything(ctx: &Context) {
    if let Some(buffers) = &ctx.buffers {
        buffers.objects.all().iter().for_each(|b| ctx.queues.buffers.add(name_of(b)));
    }
}
