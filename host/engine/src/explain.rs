//! Reasons as data; text is rendered at the edge.

use std::sync::Arc;

/// Why one pod was not placed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PodReason {
    /// Per NodePool: which constraint removed the last candidates. Shortest message first when rendered.
    pub per_pool: Vec<(Arc<str>, Blocker)>,
    /// Reason that holds whatever the pool: an unsupported constraint, no usable NodePool, …
    pub general: Option<Blocker>,
}

/// What stood in the way, with numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Blocker {
    /// No NodePool is usable.
    NoNodePool,
    /// The pod has a constraint this version does not act on.
    Unsupported(Arc<str>),
    /// The pod asks for a label that may not be asked for, or in a way that can never hold: key and what is wrong.
    Refused {
        /// Label key.
        key: Arc<str>,
        /// In words.
        problem: Arc<str>,
    },
    /// An untolerated taint.
    Taint(Arc<str>),
    /// A label requirement that the pool cannot meet: key, and what is wrong in words ("has no value in common").
    Requirement {
        /// Label key.
        key: Arc<str>,
        /// What the pod asks.
        asked: Arc<str>,
        /// What the pool has.
        offered: Arc<str>,
        /// A similar key or value that exists, when the one asked looks like a typing error.
        hint: Option<Arc<str>>,
    },
    /// No instance type is left. Counts of types removed, by cause.
    NoInstanceType {
        /// Types considered.
        considered: u32,
        /// Lost to label requirements.
        by_requirements: u32,
        /// Too small.
        by_resources: u32,
        /// No offering available (out of stock or no subnet).
        by_offerings: u32,
        /// Removed by a policy filter.
        by_policy: u32,
        /// Resource that most types are short of, when resources were the last cause.
        short_of: Option<Arc<str>>,
    },
    /// The NodePool's limit on this resource would be exceeded.
    Limit(Arc<str>),
    /// minValues cannot be met on this key.
    MinValues(Arc<str>),
    /// The pool itself cannot be used.
    PoolUnusable(Arc<str>),
}

/// Why a NodePool offers nothing.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub enum PoolReason {
    /// As stated on the pool.
    Unusable(Vec<Arc<str>>),
    /// Its requirements leave no instance type: the key that removed the last ones.
    NoInstanceTypes(Blocker),
    /// A limit is reached.
    Limit(Arc<str>),
}
