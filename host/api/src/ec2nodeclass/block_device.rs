//! Volumes of an instance.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::open_enum::open_enum;

/// One volume of the instance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// Device name, as in /dev/xvda.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_name: Option<String>,
    /// The EBS volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<BlockDevice>,
    /// The volume that the kubelet's root directory is on; its size is the node's ephemeral storage. One at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_volume: Option<bool>,
}

open_enum! {
    /// EBS volume type.
    pub enum VolumeType {
        /// Magnetic.
        Standard = "standard",
        /// Provisioned IOPS, first generation.
        Io1 = "io1",
        /// Provisioned IOPS, second generation.
        Io2 = "io2",
        /// General purpose, second generation.
        Gp2 = "gp2",
        /// Cold disk.
        Sc1 = "sc1",
        /// Throughput-optimised disk.
        St1 = "st1",
        /// General purpose, third generation.
        Gp3 = "gp3",
    }
}

/// An EBS volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDevice {
    /// Delete it with the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_on_termination: Option<bool>,
    /// Encrypt it. A volume from an encrypted snapshot is encrypted anyhow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// I/O operations per second, for io1, io2 and gp3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<i64>,
    /// KMS key of an encrypted volume: id, alias or ARN.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    pub kms_key_id: Option<String>,
    /// Snapshot to make it from.
    #[serde(default, rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Throughput in MiB/s, for gp3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<i64>,
    /// Rate in MiB/s at which the snapshot is loaded. Only with snapshotID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 300))]
    pub volume_initialization_rate: Option<i32>,
    /// Size, in Gi, G, Ti or T. Needed unless there is a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = crate::crd::VOLUME_SIZE))]
    pub volume_size: Option<String>,
    /// Volume type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<VolumeType>,
}
