//! Pods of CapacityBuffers: they stand for pods to come, give way to every real one, and promise nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::existing::ExistingNodes;
use crate::batch::Batch;
use crate::decision::{BufferFit, Schedule};
use crate::pod::PodKey;

/// Real pods among these places in the queue, and the number of the others.
pub(crate) fn real(batch: &Batch<'_>, places: &[u32]) -> (Vec<PodKey>, u32) {
    let pods = || places.iter().filter_map(|at| batch.pods.get(*at as usize));
    let keys: Vec<PodKey> = pods().filter(|pod| pod.buffer.is_none()).map(|pod| pod.key.clone()).collect();
    let others = crate::symbol::id_of(pods().count() - keys.len());
    (keys, others)
}

/// Says of every buffer where its pods fit, and takes them out of what is reported of real pods.
///
/// `opened`: pods of the claims to be created, as places in the queue.
pub(crate) fn report<'p>(
    batch: &Batch<'_>,
    nodes: &ExistingNodes<'_>,
    opened: impl Iterator<Item = &'p u32>,
    schedule: &mut Schedule,
) {
    if batch.real as usize == batch.pods.len() {
        return;
    }
    let mut buffers: BTreeMap<Arc<str>, BufferFit> = BTreeMap::new();
    let of = |at: &u32| batch.pods.get(*at as usize).and_then(|pod| pod.buffer);
    for pod in &batch.pods {
        if let Some(name) = pod.buffer {
            buffers.entry(Arc::clone(name)).or_default().pods += 1;
        }
    }
    for name in nodes.nodes.iter().flat_map(|node| &node.pods).filter_map(of) {
        buffers.entry(Arc::clone(name)).or_default().on_nodes += 1;
    }
    for name in opened.filter_map(of) {
        buffers.entry(Arc::clone(name)).or_default().on_claims += 1;
    }
    let owner: BTreeMap<&PodKey, &Arc<str>> =
        batch.pods.iter().filter_map(|pod| Some((pod.key, pod.buffer?))).collect();
    let unplaced = std::mem::take(&mut schedule.unplaced);
    for (pod, reason) in unplaced {
        match owner.get(&pod).and_then(|name| buffers.get_mut(&**name)) {
            Some(fit) => {
                fit.unplaced += 1;
                fit.reason.get_or_insert(reason);
            }
            None => schedule.unplaced.push((pod, reason)),
        }
    }
    schedule.buffers = buffers;
    let hosts = nodes.nodes.iter().map(|node| (Arc::clone(node.name), real(batch, &node.pods).1));
    schedule.buffer_nodes = hosts.filter(|(_, pods)| *pods > 0).collect();
}
