//! NodeOverlays: evaluated when anything changes that they depend on, and told in their status what became of them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use mortise_api::NodeOverlay;
use mortise_api::condition::{Conditions, Status, nodeoverlay as kind};
use mortise_engine::overlay::OverlayStatus;
use mortise_kube::record::ObjectName;
use mortise_kube::status::WriteError;
use tokio_util::sync::CancellationToken;

use super::nodepool::condition_changes;
use crate::catalogs;
use crate::context::Context;
use crate::metrics::Id;
use crate::notes::Subject;
use crate::overlays::Overlays;
use crate::route::wake_pipeline;

/// Between two evaluations when nothing changes.
const RESYNC: Duration = Duration::from_secs(6 * 3600);
/// Changes of a moment are looked at together.
const SETTLE: Duration = Duration::from_millis(200);
/// After a status that could not be written.
const AGAIN: Duration = Duration::from_secs(1);

/// Evaluates until stopped.
pub(crate) async fn run(ctx: Arc<Context>, stop: CancellationToken) {
    let Some(overlays) = ctx.overlays.clone() else { return };
    let mut catalogs = ctx.provider.catalog_changed();
    loop {
        let wait = if evaluate(&ctx, &overlays).await { RESYNC } else { AGAIN };
        tokio::select! {
            () = stop.cancelled() => return,
            () = overlays.changed.notified() => tokio::time::sleep(SETTLE).await,
            Ok(()) = catalogs.changed() => tokio::time::sleep(SETTLE).await,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Evaluates once. False when it is to be done again soon.
async fn evaluate(ctx: &Arc<Context>, overlays: &Overlays) -> bool {
    let catalogs = catalogs::current(ctx).await;
    let mut pools = ctx.state.with(|s| s.pools(&catalogs));
    overlays.overlay(&mut pools);
    // Prices and capacity may have changed under pods that wait, and under nodes.
    wake_pipeline(ctx);
    ctx.disruption.notify_one();
    let statuses = overlays.statuses();
    let mut settled = true;
    for overlay in overlays.objects.all() {
        let Some(status) = statuses.get(&*overlay.name_any()) else { continue };
        settled &= write(ctx, overlays, &overlay, status).await;
    }
    settled
}

async fn write(ctx: &Arc<Context>, overlays: &Overlays, overlay: &NodeOverlay, status: &OverlayStatus) -> bool {
    let wanted = desired(overlay, status, ctx.clock.now());
    let name = overlay.name_any();
    match ctx.writer.apply(overlay, &wanted).await {
        Ok(None) | Err(WriteError::NotFound) => true,
        Ok(Some(object)) => {
            ctx.notify(condition_changes(Subject::Overlay(name.clone()), overlay, &wanted));
            overlays.objects.own(&ObjectName::new("", name.as_str()), Arc::new(object));
            true
        }
        Err(WriteError::Conflict(_)) => {
            ctx.metrics.inc(Id::WriteConflictsTotal, &["nodeoverlay"]);
            false
        }
        Err(error) => {
            ctx.metrics.inc(Id::ReconcileErrorsTotal, &["nodeoverlay"]);
            tracing::error!(controller = "nodeoverlay", NodeOverlay = name, %error, "reconciler error");
            false
        }
    }
}

/// The overlay with its status as it should be.
fn desired(overlay: &NodeOverlay, status: &OverlayStatus, now: Timestamp) -> NodeOverlay {
    let mut wanted = overlay.clone();
    let reason = match status {
        OverlayStatus::Ready => {
            wanted.set_true(kind::VALIDATION_SUCCEEDED, now);
            return wanted;
        }
        OverlayStatus::Conflict { .. } => kind::CONFLICT,
        OverlayStatus::Invalid(_) => kind::RUNTIME_VALIDATION,
    };
    wanted.set_condition(kind::VALIDATION_SUCCEEDED, Status::False, reason, &status.to_string(), now);
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(status: &OverlayStatus, type_: &str) -> String {
        let overlay = NodeOverlay::new("a", Default::default());
        let wanted = desired(&overlay, status, Timestamp::UNIX_EPOCH);
        let c = wanted.condition(type_).unwrap();
        format!("{} {} {}", c.status, c.reason, c.message)
    }

    #[test]
    fn ovl_001_conditions() {
        assert_eq!(line(&OverlayStatus::Ready, "Ready"), "True Ready ");
        let conflict = OverlayStatus::Conflict {
            with: "b".into(),
            nodepool: "p".into(),
            instance_type: "m5.large".into(),
            what: "price".into(),
        };
        let said = line(&conflict, kind::VALIDATION_SUCCEEDED);
        assert!(said.starts_with("False Conflict ") && said.contains("NodeOverlay b") && said.contains("m5.large"));
        assert!(line(&conflict, "Ready").starts_with("False UnhealthyDependents"));
        let said = line(&OverlayStatus::Invalid("spec.price: no".into()), kind::VALIDATION_SUCCEEDED);
        assert_eq!(said, "False RuntimeValidation spec.price: no");
    }
}
