//! The policies of one revision.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mortise_engine::policy::{Fleet, PolicyRound, PolicySet, RoundCatalog};

use crate::round::Round;
use crate::slot::Slot;

/// Which slot answers which hook, as indices, in the order of the ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    pub filters: Vec<usize>,
    pub scorers: Vec<usize>,
    pub consolidator: Option<usize>,
}

/// The policies of one revision. A round that began with it ends with it, whatever is admitted meanwhile.
pub struct ActivePolicies {
    /// Digest of the ConfigMap, or `defaults`.
    pub(crate) revision: String,
    pub(crate) since_unix_ms: u64,
    /// Every plugin once, in the order in which the ConfigMap names them first.
    pub(crate) slots: Vec<Slot>,
    pub(crate) chains: Chains,
    pub(crate) round_deadline: Duration,
    /// The kill switch, shared with the host: it holds for rounds that run already.
    pub(crate) paused: Arc<AtomicBool>,
    label_keys: Vec<String>,
    annotation_keys: Vec<String>,
}

impl ActivePolicies {
    pub(crate) fn new(
        revision: String,
        since_unix_ms: u64,
        slots: Vec<Slot>,
        chains: Chains,
        round_deadline: Duration,
        paused: Arc<AtomicBool>,
    ) -> Self {
        let keys = |of: fn(&crate::plugin::Manifest) -> &Vec<String>| {
            let mut keys: Vec<String> = slots.iter().flat_map(|s| of(&s.seat.plugin.manifest).clone()).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        Self {
            revision,
            since_unix_ms,
            chains,
            round_deadline,
            paused,
            label_keys: keys(|m| &m.label_keys),
            annotation_keys: keys(|m| &m.annotation_keys),
            slots,
        }
    }

    /// Digest of the ConfigMap that this came from (first 12 hex digits of its sha256), or `defaults`.
    #[must_use]
    pub fn revision(&self) -> &str {
        &self.revision
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }
}

impl PolicySet for ActivePolicies {
    fn begin<'a>(&'a self, catalog: &'a RoundCatalog, fleet: &'a Fleet) -> Box<dyn PolicyRound + 'a> {
        Box::new(Round::new(self, catalog, fleet))
    }

    fn label_keys(&self) -> &[String] {
        &self.label_keys
    }

    fn annotation_keys(&self) -> &[String] {
        &self.annotation_keys
    }
}
