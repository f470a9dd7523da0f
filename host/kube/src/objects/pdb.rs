//! PodDisruptionBudgets and label selectors.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{Scalar, nullable};

/// A PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pdb {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification.
    #[serde(deserialize_with = "nullable")]
    pub spec: PdbSpec,
    /// Status.
    #[serde(deserialize_with = "nullable")]
    pub status: PdbStatus,
}

/// `spec` of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (policy/v1)")]
pub struct PdbSpec {
    pub selector: Option<LabelSelector>,
    pub min_available: Option<Scalar>,
    pub max_unavailable: Option<Scalar>,
    pub unhealthy_pod_eviction_policy: Option<String>,
}

/// `status` of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (policy/v1)")]
pub struct PdbStatus {
    pub disruptions_allowed: i64,
}

/// A label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (meta/v1 LabelSelector)")]
pub struct LabelSelector {
    #[serde(deserialize_with = "nullable")]
    pub match_labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<Expression>,
}

/// Key, operator, values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API")]
pub struct Expression {
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    #[serde(deserialize_with = "nullable")]
    pub operator: String,
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
}
