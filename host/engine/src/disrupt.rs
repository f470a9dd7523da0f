//! Voluntary disruption: which nodes may go.

use std::sync::Arc;

use crate::decision::Disrupt;
use crate::pod::PodKey;
use crate::policy::PolicySet;
use crate::snapshot::{Options, Snapshot};

/// Result of one disruption round.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Disruption {
    /// Commands, best first; each is to be validated again before it is carried out.
    pub disrupt: Vec<Disrupt>,
    /// Managed nodes that may not be disrupted now, each with what stands in the way.
    pub blocked: Vec<(Arc<str>, NodeBlocker)>,
    /// Nodes that could be disrupted for this reason (gauge `eligible_nodes`).
    pub eligible: u32,
    /// Budget per NodePool for this reason.
    pub budgets: Vec<BudgetState>,
    /// Policies that did not answer.
    pub policy_faults: Vec<String>,
}

/// Budget of one NodePool for one reason at the time of the snapshot.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BudgetState {
    /// NodePool.
    pub nodepool: Arc<str>,
    /// `Empty`, `Underutilized`, …
    pub reason: Arc<str>,
    /// Nodes that count.
    pub total: u32,
    /// Of them, being disrupted or not ready.
    pub disrupting: u32,
    /// Further nodes that may be disrupted now; `u32::MAX` = no budget in effect.
    pub allowed: u32,
    /// Why it is zero whatever the numbers: a budget that could not be read.
    pub invalid: Option<Arc<str>>,
    /// A node was eligible and had to stay because of this budget.
    pub blocking: bool,
}

/// Why a node may not be disrupted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum NodeBlocker {
    /// Its NodeClaim has no Node yet.
    NoNode,
    /// Already being deleted.
    Deleting,
    /// Not registered or not initialised.
    NotInitialized,
    /// A pending pod was promised to it.
    Nominated,
    /// The do-not-disrupt annotation on the Node or NodeClaim.
    DoNotDisrupt,
    /// It names no NodePool, or one that does not exist.
    NoNodePool,
    /// A pod with an active do-not-disrupt annotation.
    PodDoNotDisrupt(PodKey),
    /// A pod whose PodDisruptionBudget allows no eviction now: pod and budget.
    PodDisruptionBudget(PodKey, Arc<str>),
    /// Another pod that forbids it, in words.
    Pod(PodKey, Arc<str>),
    /// `consolidateAfter: Never`.
    ConsolidateAfterNever,
    /// The NodeClaim condition Consolidatable is not True (yet).
    NotConsolidatable,
    /// The NodePool's budget is spent.
    Budget(Arc<str>),
    /// The consolidation policy decided against it.
    Policy,
}

/// Empty nodes that may go now.
pub fn empty(snapshot: &Snapshot, options: &Options, policies: &dyn PolicySet) -> Disruption {
    let _ = (snapshot, options, policies);
    Disruption::default()
}

/// What of an earlier command still holds: nodes that are still candidates, within today's budgets.
pub fn validate(snapshot: &Snapshot, command: &Disrupt) -> Disrupt {
    let _ = snapshot;
    Disrupt { nodes: Vec::new(), reason: Arc::clone(&command.reason) }
}
