//! What an event changed, for those who act on it.

use std::sync::Arc;

use mortise_engine::pod::PodKey;

use crate::record::{ObjectName, PolicyData};
use crate::watch::Kind;

/// One thing that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A pod waits for capacity: it is new, or it changed. Trigger for the batch window, by its UID.
    Provisionable(PodKey),
    /// A pod was added, changed or went.
    Pod {
        /// Which.
        name: ObjectName,
        /// The node it is, or was, bound to.
        node: Option<Arc<str>>,
        /// It is gone, or terminal.
        gone: bool,
    },
    /// A Node was added, changed or went.
    Node {
        /// Its name.
        name: Arc<str>,
        /// NodeClaim of the same slot.
        claim: Option<Arc<str>>,
    },
    /// A NodeClaim was added, changed or went.
    NodeClaim(Arc<str>),
    /// A NodePool was added, changed or went.
    NodePool(Arc<str>),
    /// An EC2NodeClass was added, changed or went.
    NodeClass(Arc<str>),
    /// A DaemonSet was added, changed or went.
    DaemonSet(ObjectName),
    /// A PodDisruptionBudget was added, changed or went.
    Pdb(ObjectName),
    /// A volume, claim or class changed.
    Storage,
    /// A pod came to, or left, a managed node: `status.lastPodEventTime` of this NodeClaim is due.
    PodEvent {
        /// The NodeClaim.
        claim: Arc<str>,
    },
    /// The policy ConfigMap changed; `None` when it is gone.
    Policies(Option<Arc<PolicyData>>),
    /// An object exists that cannot be read.
    Undecodable {
        /// Its kind.
        kind: Kind,
        /// Which.
        name: ObjectName,
        /// Why.
        message: Arc<str>,
    },
    /// The kind was listed in whole.
    Listed(Kind),
}

/// Reports the objects of a list that could not be read.
pub(super) fn undecodable(kind: Kind, found: Vec<(ObjectName, Arc<str>)>, out: &mut Vec<Change>) {
    out.extend(found.into_iter().map(|(name, message)| Change::Undecodable { kind, name, message }));
}
