//! Label requirements as written, and their algebra (karpenter `pkg/scheduling/requirement.go`, described in our words).

use std::sync::Arc;

/// Operator of a requirement. `Gte` and `Lte` are Karpenter's own additions to Kubernetes' six.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Operator {
    /// Value is one of the values.
    In,
    /// Value is none of the values, or the key is absent.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// Integer value greater than the one value.
    Gt,
    /// Integer value less than the one value.
    Lt,
    /// Integer value greater than or equal to the one value.
    Gte,
    /// Integer value less than or equal to the one value.
    Lte,
}

/// One requirement on a label, as written in a NodePool, a pod or an instance type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Requirement {
    /// Label key, already normalised (`beta.kubernetes.io/arch` arrives as `kubernetes.io/arch`).
    pub key: Arc<str>,
    /// Operator.
    pub operator: Operator,
    /// Values; exactly one integer for the comparing operators, empty for `Exists` and `DoesNotExist`.
    pub values: Vec<Arc<str>>,
    /// NodePool only: how many distinct values the launch list must keep.
    pub min_values: Option<u32>,
}
