//! Taints and tolerations.

use std::sync::Arc;

/// Effect of a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Effect {
    /// New pods are kept away.
    NoSchedule,
    /// New pods are kept away if possible.
    PreferNoSchedule,
    /// New pods are kept away and running ones evicted.
    NoExecute,
}

/// A taint on a node or in a NodePool template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Taint {
    /// Key.
    pub key: Arc<str>,
    /// Value; empty when none.
    pub value: Arc<str>,
    /// Effect.
    pub effect: Effect,
}

/// A pod's toleration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Toleration {
    /// Key; empty with `exists` tolerates every taint.
    pub key: Arc<str>,
    /// `Exists` operator: any value.
    pub exists: bool,
    /// Value for the `Equal` operator.
    pub value: Arc<str>,
    /// Effect; `None` matches all.
    pub effect: Option<Effect>,
}
