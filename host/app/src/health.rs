//! Readiness: what must have happened before this replica counts as ready.

use std::sync::atomic::{AtomicBool, Ordering};

/// Ready once CRDs are present, every watch has delivered its first list, and the policies are loaded.
#[derive(Debug, Default)]
pub struct Health {
    crds: AtomicBool,
    synced: AtomicBool,
    policies: AtomicBool,
}

impl Health {
    /// The custom resources exist.
    pub fn crds_present(&self) {
        self.crds.store(true, Ordering::Relaxed);
    }

    /// Every kind has been listed.
    pub fn synced(&self) {
        self.synced.store(true, Ordering::Relaxed);
    }

    /// Has every kind been listed?
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.synced.load(Ordering::Relaxed)
    }

    /// Some policies are active.
    pub fn policies_loaded(&self) {
        self.policies.store(true, Ordering::Relaxed);
    }

    /// What is still missing, in words.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        [
            (&self.crds, "custom resources NodePool, NodeClaim and EC2NodeClass are not installed"),
            (&self.synced, "cluster state is not synced"),
            (&self.policies, "policies are not loaded"),
        ]
        .into_iter()
        .filter(|(done, _)| !done.load(Ordering::Relaxed))
        .map(|(_, what)| what)
        .collect()
    }

    /// Is nothing missing?
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.missing().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_needs_all() {
        let health = Health::default();
        assert_eq!(health.missing().len(), 3);
        health.crds_present();
        health.synced();
        assert_eq!(health.missing(), ["policies are not loaded"]);
        health.policies_loaded();
        assert!(health.is_ready());
    }
}
