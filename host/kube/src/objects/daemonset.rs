//! DaemonSets.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::{PodSpec, nullable};

/// A DaemonSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSet {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification.
    #[serde(deserialize_with = "nullable")]
    pub spec: DaemonSetSpec,
}

/// `spec` of a DaemonSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetSpec {
    /// Its pods.
    #[serde(deserialize_with = "nullable")]
    pub template: PodTemplate,
}

/// A pod template.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodTemplate {
    /// Labels and annotations of the pods.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification of the pods.
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
}
