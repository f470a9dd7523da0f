//! The cluster state, shared by the task that feeds it and the reconcilers that read it. Access is by closure, so no
//! lock can be held across an await.

use std::sync::{Arc, Mutex, PoisonError};

use mortise_api::NodeClaim;
use mortise_kube::state::{Change, ClusterState};
use mortise_kube::watch::{Delta, Event};
use tokio::sync::mpsc;

use crate::clock::Clock;

/// Handle to the state.
#[derive(Clone)]
pub(crate) struct Shared {
    state: Arc<Mutex<ClusterState>>,
    changes: mpsc::UnboundedSender<Vec<Change>>,
    clock: Clock,
}

impl Shared {
    /// An empty state, and the stream of what changes in it.
    pub(crate) fn new(clock: Clock) -> (Self, mpsc::UnboundedReceiver<Vec<Change>>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        (Self { state: Arc::new(Mutex::new(ClusterState::new())), changes, clock }, receiver)
    }

    /// Looks at the state, or changes what only this process knows (nominations, marks).
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut ClusterState) -> R) -> R {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes events, from a watch or from the answer to a write of our own, and passes on what changed.
    pub(crate) fn apply(&self, events: impl IntoIterator<Item = Event>) {
        let now = self.clock.now_ms();
        let changes: Vec<Change> = self.with(|state| events.into_iter().flat_map(|e| state.apply(e, now)).collect());
        if !changes.is_empty() {
            // The receiver lives as long as the controller; after that nobody cares.
            let _ = self.changes.send(changes);
        }
    }

    /// Takes a NodeClaim as just written by us, so that the next look sees it before the watch brings it. Left out when
    /// the watch has already told something newer, or that the claim is gone: it would come back as a ghost.
    pub(crate) fn own_claim(&self, claim: Arc<NodeClaim>) {
        let version = |c: &NodeClaim| c.metadata.resource_version.as_deref().and_then(|v| v.parse::<u64>().ok());
        let newer = self.with(|state| {
            let held = state.nodeclaim(claim.metadata.name.as_deref().unwrap_or_default());
            held.is_some_and(|h| h.metadata.uid == claim.metadata.uid && version(h) < version(&claim))
        });
        if newer {
            self.apply([Event::NodeClaim(Delta::Applied(claim))]);
        }
    }
}
