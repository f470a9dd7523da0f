//! What a round of provisioning made of the pods that stand for buffers.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::decision::Schedule;
use mortise_engine::snapshot::Snapshot;
use mortise_kube::record::ObjectName;

/// Where a buffer's pods are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// On nodes that are there, or on their way.
    pub existing: u32,
    /// On nodes that this round asked for.
    pub new: u32,
    /// Nowhere.
    pub unplaced: u32,
}

/// By buffer, and by the NodeClaim (else the Node) that has room.
pub(super) fn of(snapshot: &Snapshot, plan: &Schedule) -> (BTreeMap<ObjectName, Outcome>, BTreeMap<Arc<str>, u32>) {
    let outcomes = plan.buffers.iter().filter_map(|(buffer, fit)| {
        let (namespace, name) = buffer.split_once('/')?;
        let outcome = Outcome { existing: fit.on_nodes, new: fit.on_claims, unplaced: fit.unplaced };
        Some((ObjectName::new(namespace, name), outcome))
    });
    let hosts = plan.buffer_nodes.iter().map(|(node, pods)| {
        let known = snapshot.nodes.get(node).and_then(|n| n.node_claim.as_ref().or(n.node_name.as_ref()));
        (Arc::clone(known.unwrap_or(node)), *pods)
    });
    (outcomes.collect(), hosts.collect())
}
