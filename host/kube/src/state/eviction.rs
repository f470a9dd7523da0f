//! What PodDisruptionBudgets say about a pod (karpenter-algorithms §5.3).

use std::sync::Arc;

use super::ClusterState;
use crate::record::{ObjectName, PdbRecord, PodRecord};

/// Whether the Eviction API would let a pod go now, as far as can be told from the budgets' status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// No budget stands in the way.
    Allowed,
    /// These budgets do: one that allows no eviction now, or two and more, which the Eviction API refuses outright.
    Blocked(Vec<Arc<str>>),
}

/// Verdict on one pod.
pub(super) struct Judged {
    /// Names of the budgets in the way now.
    pub(super) blocked_by: Option<Arc<str>>,
    /// They can never give way.
    pub(super) never: bool,
}

impl ClusterState {
    /// Budgets that cover a pod.
    fn budgets<'a>(&'a self, pod: &'a PodRecord) -> impl Iterator<Item = &'a Arc<PdbRecord>> {
        let namespace = &pod.key.namespace;
        let first = ObjectName { namespace: Arc::clone(namespace), name: Arc::from("") };
        self.pdbs
            .range(first..)
            .take_while(move |(name, _)| name.namespace == *namespace)
            .map(|(_, pdb)| pdb)
            .filter(|pdb| pdb.selector.as_ref().is_some_and(|selector| selector.matches(&pod.shape.labels)))
    }

    /// What the budgets say about evicting a pod.
    pub fn eviction(&self, pod: &PodRecord) -> Eviction {
        let budgets: Vec<&Arc<PdbRecord>> = self.budgets(pod).collect();
        match budgets.as_slice() {
            [] => Eviction::Allowed,
            [one] if one.disruptions_allowed > 0 || (one.unhealthy_always && !pod.ready) => Eviction::Allowed,
            all => Eviction::Blocked(all.iter().map(|pdb| Arc::clone(&pdb.name.name)).collect()),
        }
    }

    pub(super) fn judge(&self, pod: &PodRecord, now_unix_ms: i64) -> Judged {
        if self.pdbs.is_empty() {
            return Judged { blocked_by: None, never: false };
        }
        let mut count = 0;
        let mut never = false;
        for pdb in self.budgets(pod) {
            count += 1;
            never |= pdb.never;
        }
        let never = never || count > 1;
        // A pod that no drain would evict now is not the budgets' concern.
        let blocked_by = match self.eviction(pod) {
            Eviction::Blocked(names) if pod.evictable(now_unix_ms) => Some(Arc::from(names.join(", "))),
            _ => None,
        };
        Judged { blocked_by, never }
    }
}
