//! The world for one decision: the cluster state with everything that feature gates add to it.

use crate::catalogs;
use crate::context::Context;
use mortise_engine::snapshot::Snapshot;

/// The cluster at this moment, on overlaid catalogues, with the pods that stand for CapacityBuffers among those that wait.
pub(crate) async fn take(ctx: &Context) -> Snapshot {
    let catalogs = catalogs::current(ctx).await;
    let now = ctx.clock.now_ms();
    let mut snapshot = ctx.state.with(|s| s.snapshot(now, &catalogs));
    if let Some(overlays) = &ctx.overlays {
        overlays.overlay(&mut snapshot.nodepools);
    }
    if let Some(buffers) = &ctx.buffers {
        buffers.join(&mut snapshot);
    }
    snapshot
}
