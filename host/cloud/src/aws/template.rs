//! Launch templates: one per resolved configuration, named by its hash.

mod data;
mod store;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mortise_api::EC2NodeClass;
use mortise_api::ec2nodeclass::{
    BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, EnclaveOptions, MetadataOptions, NetworkInterface,
    VolumeType,
};
use mortise_engine::catalog::CapacityType;
use serde::Serialize;

use super::hash::short_hash;
use crate::catalog_build::AmiFamily;

pub(crate) use store::Templates;

/// Prefix of our templates' names, Karpenter's too.
pub(crate) const PREFIX: &str = "karpenter.k8s.aws/";

/// Everything that goes into a launch template. Two that are equal are one template.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Template {
    pub(crate) image_id: String,
    /// Base64.
    pub(crate) user_data: Option<String>,
    pub(crate) instance_profile: String,
    /// Sorted.
    pub(crate) security_groups: Vec<String>,
    pub(crate) block_devices: Vec<BlockDeviceMapping>,
    pub(crate) spot: bool,
    pub(crate) dedicated: bool,
    /// EFA interfaces to attach when the claim asks for them; 0 = none.
    pub(crate) efa: u32,
    pub(crate) ipv6: bool,
    /// `spec` fields that go through as they are: options of metadata, CPU, enclaves, connection tracking, interfaces.
    pub(crate) options: Options,
    /// Tags of the template and of what it makes.
    pub(crate) tags: BTreeMap<String, String>,
}

impl Template {
    /// Name by content.
    pub(crate) fn name(&self) -> String {
        // Maps are ordered and there is no float, so equal templates give equal text.
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{PREFIX}{}", short_hash(&[&text]))
    }
}

/// `spec` fields that a template takes as they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Options {
    associate_public_ip: Option<bool>,
    ip_prefixes: Option<i32>,
    monitoring: Option<bool>,
    metadata: MetadataOptions,
    tracking: Option<ConnectionTracking>,
    cpu: Option<CpuOptions>,
    enclaves: Option<EnclaveOptions>,
    interfaces: Vec<NetworkInterface>,
}

impl Options {
    pub(crate) fn of(class: &EC2NodeClass) -> Self {
        let spec = &class.spec;
        Self {
            associate_public_ip: spec.associate_public_ip_address,
            ip_prefixes: spec.ip_prefix_count,
            monitoring: spec.detailed_monitoring,
            metadata: spec.metadata_options.clone(),
            tracking: spec.connection_tracking.clone(),
            cpu: spec.cpu_options.clone(),
            enclaves: spec.enclave_options.clone(),
            interfaces: spec.network_interfaces.clone(),
        }
    }
}

/// Volumes of a class, or of its family where it names none.
pub(crate) fn block_devices(class: &EC2NodeClass, family: AmiFamily) -> Vec<BlockDeviceMapping> {
    if !class.spec.block_device_mappings.is_empty() {
        return class.spec.block_device_mappings.clone();
    }
    family
        .default_devices()
        .iter()
        .map(|(device, gib)| BlockDeviceMapping {
            device_name: Some((*device).to_owned()),
            ebs: Some(BlockDevice {
                encrypted: Some(true),
                volume_size: Some(format!("{gib}Gi")),
                volume_type: Some(VolumeType::Gp3),
                ..BlockDevice::default()
            }),
            root_volume: None,
        })
        .collect()
}

/// `karpenter.sh/capacity-type` of a market.
pub(crate) fn market_label(capacity_type: CapacityType) -> &'static str {
    match capacity_type {
        CapacityType::Reserved => "reserved",
        CapacityType::Spot => "spot",
        CapacityType::OnDemand => "on-demand",
    }
}
