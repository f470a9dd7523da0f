//! PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{NodeSelector, nullable};

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaim {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification.
    #[serde(deserialize_with = "nullable")]
    pub spec: PvcSpec,
    /// Status.
    #[serde(deserialize_with = "nullable")]
    pub status: PvcStatus,
}

/// `spec` of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1)")]
pub struct PvcSpec {
    pub volume_name: Option<String>,
    pub storage_class_name: Option<String>,
}

/// `status` of a PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1)")]
pub struct PvcStatus {
    pub phase: Option<String>,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolume {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification.
    #[serde(deserialize_with = "nullable")]
    pub spec: PvSpec,
}

/// `spec` of a PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1)")]
pub struct PvSpec {
    pub node_affinity: Option<VolumeAffinity>,
    pub local: Option<IgnoredAny>,
    pub host_path: Option<IgnoredAny>,
    pub csi: Option<CsiSource>,
    pub aws_elastic_block_store: Option<IgnoredAny>,
    pub gce_persistent_disk: Option<IgnoredAny>,
    pub azure_disk: Option<IgnoredAny>,
    pub azure_file: Option<IgnoredAny>,
    pub cinder: Option<IgnoredAny>,
    pub vsphere_volume: Option<IgnoredAny>,
    pub portworx_volume: Option<IgnoredAny>,
}

/// Volume of a CSI driver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "field of core/v1 CSIPersistentVolumeSource")]
pub struct CsiSource {
    #[serde(deserialize_with = "nullable")]
    pub driver: String,
}

/// Where a volume can be reached from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1)")]
pub struct VolumeAffinity {
    pub required: Option<NodeSelector>,
}

/// A StorageClass.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Driver that makes the volumes.
    #[serde(deserialize_with = "nullable")]
    pub provisioner: String,
    /// `Immediate` or `WaitForFirstConsumer`.
    pub volume_binding_mode: Option<String>,
    /// Where volumes may be made: alternatives.
    #[serde(deserialize_with = "nullable")]
    pub allowed_topologies: Vec<TopologyTerm>,
}

/// A CSINode: the drivers that are ready on a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CsiNode {
    /// Metadata, without managed fields.
    #[serde(deserialize_with = "super::meta::narrow")]
    pub metadata: ObjectMeta,
    /// Specification.
    #[serde(deserialize_with = "nullable")]
    pub spec: CsiNodeSpec,
}

/// `spec` of a CSINode.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (storage/v1)")]
pub struct CsiNodeSpec {
    #[serde(deserialize_with = "nullable")]
    pub drivers: Vec<CsiDriver>,
}

/// A driver on a node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (storage/v1 CSINodeDriver)")]
pub struct CsiDriver {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    pub allocatable: Option<VolumeCount>,
}

/// How many volumes can be attached.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "field of storage/v1 VolumeNodeResources")]
pub struct VolumeCount {
    pub count: Option<i64>,
}

/// One alternative of `allowedTopologies`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1)")]
pub struct TopologyTerm {
    #[serde(deserialize_with = "nullable")]
    pub match_label_expressions: Vec<TopologyExpression>,
}

/// A label and its allowed values.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "fields are named and documented by the Kubernetes API (core/v1)")]
pub struct TopologyExpression {
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    #[serde(deserialize_with = "nullable")]
    pub values: Vec<String>,
}
