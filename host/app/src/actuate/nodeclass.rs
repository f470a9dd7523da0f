//! EC2NodeClasses: finalizer, hash annotations, what their selectors resolve to, and their end.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use mortise_api::condition::{Conditions, Status, ec2nodeclass as kind};
use mortise_api::{EC2NodeClass, annotations, finalizers, hash};
use mortise_cloud::{ClassResolution, Finalize, Verdict};
use mortise_kube::status::WriteError;

use super::nodepool::condition_changes;
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::{Note, Subject};
use crate::queue::Next;

#[cfg(test)]
mod tests;

/// How often a class that waits for its NodeClaims is looked at, besides when one of them goes.
const FINALIZE: Duration = Duration::from_secs(600);

/// Reconciles one EC2NodeClass.
pub(crate) async fn reconcile(ctx: Arc<Context>, name: Arc<str>) -> Next {
    let Some(class) = ctx.state.with(|s| s.node_class(&name).cloned()) else { return Next::Done };
    let result = if class.metadata.deletion_timestamp.is_some() {
        finalize(&ctx, &class).await
    } else {
        resolve(&ctx, &class).await
    };
    match result {
        Ok(next) => next,
        Err(WriteError::NotFound) => Next::Done,
        Err(WriteError::Conflict(_)) => {
            ctx.metrics.inc(Id::WriteConflictsTotal, &["nodeclass"]);
            Next::Retry
        }
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["nodeclass"]);
            tracing::error!(controller = "nodeclass", EC2NodeClass = %name, %error, "reconciler error");
            Next::Retry
        }
    }
}

async fn resolve(ctx: &Context, class: &Arc<EC2NodeClass>) -> Result<Next, WriteError> {
    if !class.finalizers().iter().any(|f| f == finalizers::EC2NODECLASS_TERMINATION) {
        // Before anything is made for it. Its own change brings it back here.
        let mut wanted = EC2NodeClass::clone(class);
        wanted.finalizers_mut().push(finalizers::EC2NODECLASS_TERMINATION.into());
        ctx.writer.apply(&**class, &wanted).await?;
        return Ok(Next::Done);
    }
    let resolution = ctx.provider.resolve(class).await;
    let wanted = desired(class, &resolution, ctx.settings.cluster_ca_bundle.as_deref(), ctx.clock.now());
    if ctx.writer.apply(&**class, &wanted).await?.is_some() {
        ctx.notify(condition_changes(Subject::Class(class.name_any()), &**class, &wanted));
        match resolution.first_trouble() {
            None => tracing::info!(EC2NodeClass = class.name_any(), "resolved node class"),
            Some((part, reason, message)) => {
                tracing::error!(
                    EC2NodeClass = class.name_any(),
                    condition = part,
                    reason,
                    error = message,
                    "node class is not ready"
                );
            }
        }
    }
    Ok(Next::After(resolution.requeue_after.max(Duration::from_secs(1))))
}

/// The class as it should be, given what its selectors resolve to.
fn desired(class: &EC2NodeClass, found: &ClassResolution, ca_bundle: Option<&str>, now: Timestamp) -> EC2NodeClass {
    let mut wanted = class.clone();
    let notes = wanted.annotations_mut();
    notes.insert(annotations::EC2NODECLASS_HASH.into(), hash::ec2_node_class(class, ca_bundle.unwrap_or_default()));
    notes.insert(annotations::EC2NODECLASS_HASH_VERSION.into(), hash::VERSION.into());
    let conditions = class.status.as_ref().map(|s| s.conditions.clone()).unwrap_or_default();
    let mut status = found.status.clone();
    status.conditions = conditions;
    wanted.status = Some(status);
    wanted.initialize_conditions(now);
    for outcome in &found.conditions {
        match &outcome.verdict {
            Verdict::Ready => wanted.set_true(outcome.condition, now),
            Verdict::NotReady { reason, message } => {
                wanted.set_condition(outcome.condition, Status::False, reason, message, now)
            }
            Verdict::Unknown { reason, message } => {
                wanted.set_condition(outcome.condition, Status::Unknown, reason, message, now)
            }
            Verdict::Unasked { reason, message } => {
                let never_judged =
                    wanted.condition(outcome.condition).is_none_or(|c| c.status == Status::Unknown.as_str());
                never_judged && wanted.set_condition(outcome.condition, Status::Unknown, reason, message, now)
            }
        };
    }
    if !found.conditions.iter().any(|c| c.condition == kind::PLACEMENT_GROUP_READY)
        && class.spec.placement_group_selector.is_none()
    {
        // A class without a placement group has nothing to wait for.
        wanted.set_true(kind::PLACEMENT_GROUP_READY, now);
    }
    wanted
}

async fn finalize(ctx: &Context, class: &Arc<EC2NodeClass>) -> Result<Next, WriteError> {
    let name = class.name_any();
    if !class.finalizers().iter().any(|f| f == finalizers::EC2NODECLASS_TERMINATION) {
        return Ok(Next::Done);
    }
    let mut left: Vec<Arc<str>> = ctx.state.with(|s| s.claims_of_class(&name).map(|c| c.name_any().into()).collect());
    left.sort();
    match ctx.provider.finalize(class, &left).await {
        Ok(Finalize::WaitingForClaims { claims }) => {
            let shown: Vec<&str> = claims.iter().take(5).map(|c| &**c).collect();
            let more = claims.len().saturating_sub(shown.len());
            let suffix = if more > 0 { format!(" and {more} more") } else { String::new() };
            let claims = format!("{}{suffix}", shown.join(", "));
            ctx.notify([Note::WaitingOnNodeClaimTermination { class: name, claims }]);
            Ok(Next::After(FINALIZE))
        }
        Ok(Finalize::Done) => {
            let mut wanted = EC2NodeClass::clone(class);
            wanted.finalizers_mut().retain(|f| f != finalizers::EC2NODECLASS_TERMINATION);
            ctx.writer.apply(&**class, &wanted).await?;
            ctx.notify([Note::Finalized { subject: Subject::Class(name.clone()) }]);
            tracing::info!(EC2NodeClass = name, "deleted node class");
            Ok(Next::Done)
        }
        Err(error) => Err(WriteError::Unavailable(format!("finalizing node class {name}: {error}"))),
    }
}
