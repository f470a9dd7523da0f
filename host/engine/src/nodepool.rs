//! NodePools as the engine sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::requirement::Requirement;
use crate::taint::Taint;

/// A NodePool that may be used, or the reason why not.
#[derive(Clone, Debug, Default)]
pub struct NodePool {
    /// Name.
    pub name: Arc<str>,
    /// UID, for owner references.
    pub uid: Arc<str>,
    /// Higher goes first; missing = 0.
    pub weight: i32,
    /// `spec.template.spec.requirements`, keys normalised.
    pub requirements: Vec<Requirement>,
    /// `spec.template.metadata.labels`.
    pub labels: BTreeMap<Arc<str>, Arc<str>>,
    /// `spec.template.metadata.annotations`, with the hash annotations.
    pub annotations: BTreeMap<Arc<str>, Arc<str>>,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Startup taints: on the new node, but pods need not tolerate them.
    pub startup_taints: Vec<Taint>,
    /// `spec.limits` by resource, each in its base unit as in [`Resources`](crate::quantity::Resources); `None` = no limit on it.
    pub limits: Limits,
    /// NodeClass reference: group, kind, name.
    pub node_class: (Arc<str>, Arc<str>, Arc<str>),
    /// `spec.template.spec.expireAfter` as written ("720h", "Never"), carried to the claim.
    pub expire_after: Option<Arc<str>>,
    /// `spec.template.spec.terminationGracePeriod` as written, carried to the claim.
    pub termination_grace_period: Option<Arc<str>>,
    /// Instance types and offerings of its NodeClass. Shared by pools of the same class.
    pub catalog: Arc<Catalog>,
    /// Disruption settings.
    pub disruption: Disruption,
    /// `spec.replicas` is set: it gets no NodeClaims for pods and takes no part in emptiness.
    pub is_static: bool,
    /// `spec.replicas`: nodes that a static NodePool keeps.
    pub replicas: Option<u32>,
    /// Why it cannot be used now (not ready, deleting, static, class broken, a field not acted on yet); empty = usable.
    pub unusable: Vec<Arc<str>>,
}

/// Limits of a NodePool.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Per resource name (`cpu` in milli, others in base units).
    pub resources: BTreeMap<Arc<str>, i64>,
    /// `limits.nodes`.
    pub nodes: Option<i64>,
}

/// `spec.disruption`, with defaults applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Disruption {
    /// Policy.
    pub policy: ConsolidationPolicy,
    /// `consolidateAfter`, milliseconds; `None` = Never.
    pub consolidate_after_ms: Option<i64>,
    /// Budgets; empty = one of 10 %.
    pub budgets: Vec<Budget>,
}

/// `consolidationPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ConsolidationPolicy {
    /// Only empty nodes.
    WhenEmpty,
    /// Also underutilized ones.
    #[default]
    WhenEmptyOrUnderutilized,
    /// By score.
    Balanced,
}

/// One disruption budget as written; evaluated by the engine against the snapshot's time.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Budget {
    /// "10%" or "1".
    pub nodes: Arc<str>,
    /// Cron expression or macro, UTC.
    pub schedule: Option<Arc<str>>,
    /// Duration of the schedule's window, milliseconds.
    pub duration_ms: Option<i64>,
    /// Reasons it covers (`Empty`, `Underutilized`, `Drifted`, `Unhealthy`); empty = all.
    pub reasons: Vec<Arc<str>>,
}
