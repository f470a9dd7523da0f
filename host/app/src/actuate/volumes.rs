//! Volumes attached to a node, best effort: VolumeAttachments are listed when a drained node asks, at most once a
//! second for all nodes together, and never watched.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, ListParams};
use mortise_kube::record::PodRecord;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::context::Context;

/// How old the list may be.
const FRESH: Duration = Duration::from_secs(1);

/// PersistentVolumes attached, by node.
type ByNode = BTreeMap<String, Vec<String>>;

/// The list as last taken.
#[derive(Default)]
pub(crate) struct Attachments {
    last: Mutex<Option<(Instant, Arc<ByNode>)>>,
}

/// Volumes that are attached to the node and should be detached before it goes: those of pods that were drained. Empty
/// when the list cannot be read: volumes must not keep an instance alive for ever.
pub(crate) async fn attached(ctx: &Context, node: &str, pods: &[Arc<PodRecord>]) -> Vec<String> {
    let mut last = ctx.attachments.last.lock().await;
    let list = match &*last {
        Some((at, list)) if at.elapsed() < FRESH => list.clone(),
        _ => {
            let list = match list(ctx).await {
                Ok(list) => Arc::new(list),
                Err(error) => {
                    tracing::error!(Node = node, %error, "failed listing volume attachments, not waiting for volumes");
                    return Vec::new();
                }
            };
            *last = Some((Instant::now(), list.clone()));
            list
        }
    };
    drop(last);
    let Some(volumes) = list.get(node) else { return Vec::new() };
    // Pods that a drain leaves where they are keep their volumes.
    let now = ctx.clock.now_ms();
    let kept: Vec<Arc<str>> = ctx.state.with(|s| {
        let stay = pods.iter().filter(|p| !p.drainable(now));
        stay.flat_map(|p| p.volumes.iter().filter_map(|v| s.bound_volume(&p.key.namespace, &v.claim))).collect()
    });
    volumes.iter().filter(|v| !kept.iter().any(|k| **k == ***v)).cloned().collect()
}

async fn list(ctx: &Context) -> kube::Result<ByNode> {
    let api: Api<VolumeAttachment> = Api::all(ctx.client.clone());
    // From the API server's cache: a second's delay is nothing here.
    let params = ListParams::default().match_any();
    let mut by_node = ByNode::new();
    for attachment in api.list(&params).await? {
        if let Some(volume) = attachment.spec.source.persistent_volume_name {
            by_node.entry(attachment.spec.node_name).or_default().push(volume);
        }
    }
    Ok(by_node)
}
