//! EC2NodeClass: how to build a node on EC2.
#![allow(clippy::duplicated_attributes, reason = "the keys of one printcolumn are taken for repeats of another's")]

mod block_device;
mod kubelet;
mod selector;
mod status;

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use block_device::{BlockDevice, BlockDeviceMapping, VolumeType};
pub use kubelet::{ManagedKubelet, MaxPods};
pub use selector::{
    AmiSelectorTerm, CapacityReservationSelectorTerm, InstanceMatchCriteria, PlacementGroupSelector,
    SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
pub use status::{
    Ami, CapacityReservation, CapacityReservationState, CapacityReservationType, EC2NodeClassStatus, SecurityGroup,
    Subnet,
};

use crate::open_enum::open_enum;

/// How to build a node on EC2.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "karpenter.k8s.aws",
    version = "v1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    doc = "EC2NodeClass says how to build nodes on EC2: image, network, identity, storage and kubelet settings.",
    status = "EC2NodeClassStatus",
    derive = "PartialEq",
    category = "karpenter",
    shortname = "ec2nc",
    shortname = "ec2ncs",
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Role", type_ = "string", json_path = ".spec.role", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct EC2NodeClassSpec {
    /// Subnets that instances may be launched in. A subnet is used if any term matches it.
    #[schemars(length(max = 30))]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Security groups of the instances. All that any term matches are attached.
    #[schemars(length(max = 30))]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Capacity reservations that may be used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// Placement group of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group_selector: Option<PlacementGroupSelector>,
    /// Whether instances get a public IPv4 address. Absent leaves it to the subnet.
    #[serde(default, rename = "associatePublicIPAddress", skip_serializing_if = "Option::is_none")]
    pub associate_public_ip_address: Option<bool>,
    /// Number of IPv4 prefixes of the primary network interface.
    #[serde(default, rename = "ipPrefixCount", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ip_prefix_count: Option<i32>,
    /// Images to launch from.
    #[schemars(length(max = 30))]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// Family of the image, which decides user data and block devices. Needed unless an alias says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// User data, merged with what the family needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<String>,
    /// IAM role of the nodes; an instance profile is made for it. Give this or instanceProfile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Existing instance profile of the nodes. Give this or role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// Tags of everything that is created on EC2 for this class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Kubelet settings, named as in KubeletConfiguration of kubelet.config.k8s.io/v1beta1. The controller checks them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "open_object")]
    pub kubelet: BTreeMap<String, Value>,
    /// Volumes of the instances. Absent takes those of the image family.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// What to do with instance-store disks. RAID0 makes them the node's ephemeral storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Network interfaces to launch with. Absent leaves the choice to the controller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 150))]
    pub network_interfaces: Vec<NetworkInterface>,
    /// One-minute CloudWatch metrics instead of five-minute ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detailed_monitoring: Option<bool>,
    /// Access to the instance metadata service.
    #[serde(default)]
    pub metadata_options: MetadataOptions,
    /// Idle timeouts of security-group connection tracking. Restricts instance types to those on Nitro.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_tracking: Option<ConnectionTracking>,
    /// Reserved field of EC2 Fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// CPU options of the instances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_options: Option<CpuOptions>,
    /// Nitro Enclaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enclave_options: Option<EnclaveOptions>,
}

open_enum! {
    /// Family of an image.
    pub enum AmiFamily {
        /// Amazon Linux 2.
        Al2 = "AL2",
        /// Amazon Linux 2023.
        Al2023 = "AL2023",
        /// Bottlerocket.
        Bottlerocket = "Bottlerocket",
        /// Nothing is known of the image: user data goes through as it is.
        Custom = "Custom",
        /// Windows Server 2019.
        Windows2019 = "Windows2019",
        /// Windows Server 2022.
        Windows2022 = "Windows2022",
        /// Windows Server 2025.
        Windows2025 = "Windows2025",
    }
}

open_enum! {
    /// What to do with instance-store disks.
    pub enum InstanceStorePolicy {
        /// One RAID0 array for pods, images and logs.
        Raid0 = "RAID0",
    }
}

open_enum! {
    /// Kind of a network interface.
    pub enum InterfaceType {
        /// An ordinary one.
        Interface = "interface",
        /// Elastic fabric adapter without IP.
        EfaOnly = "efa-only",
    }
}

open_enum! {
    /// On or off, as EC2 words it.
    pub enum Toggle {
        /// On.
        Enabled = "enabled",
        /// Off.
        Disabled = "disabled",
    }
}

open_enum! {
    /// Whether metadata requests need a session token.
    pub enum HttpTokens {
        /// They do: IMDSv2 only.
        Required = "required",
        /// They may do without.
        Optional = "optional",
    }
}

/// One network interface to launch with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInterface {
    /// Network card that it sits on.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
    /// Device index on that card.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// Kind of interface.
    pub interface_type: InterfaceType,
}

/// Access to the instance metadata service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MetadataOptions {
    /// Whether the service answers at all.
    pub http_endpoint: Toggle,
    /// Whether it answers on IPv6.
    #[serde(rename = "httpProtocolIPv6")]
    pub http_protocol_ipv6: Toggle,
    /// How many network hops an answer survives: 1 keeps it from pods without host network.
    #[schemars(range(min = 1, max = 64))]
    pub http_put_response_hop_limit: i64,
    /// Whether requests need a session token.
    pub http_tokens: HttpTokens,
}

impl Default for MetadataOptions {
    fn default() -> Self {
        Self {
            http_endpoint: Toggle::Enabled,
            http_protocol_ipv6: Toggle::Disabled,
            http_put_response_hop_limit: 1,
            http_tokens: HttpTokens::Required,
        }
    }
}

/// Idle timeouts of security-group connection tracking, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionTracking {
    /// Established TCP connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432_000))]
    pub tcp_established_timeout: Option<i32>,
    /// UDP flows with more than one request and response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// UDP flows with a single request or response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// CPU options of the instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuOptions {
    /// Whether the instances may run virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nested_virtualization: Option<Toggle>,
}

/// Nitro Enclaves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnclaveOptions {
    /// Whether enclaves can be made. True restricts instance types to those that support them.
    pub enabled: bool,
}

impl EC2NodeClassSpec {
    /// The family that decides user data and block devices: as written, else that of the alias. `None` when neither
    /// says it, which the schema refuses.
    pub fn resolved_ami_family(&self) -> Option<AmiFamily> {
        self.ami_family.clone().or_else(|| self.alias().and_then(Alias::family))
    }

    /// The alias among the AMI selector terms. The schema allows one, alone.
    pub fn alias(&self) -> Option<Alias<'_>> {
        self.ami_selector_terms.iter().find_map(|term| term.alias.as_deref()).and_then(Alias::parse)
    }
}

/// `al2023@v20240807`: a published image family and its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias<'a> {
    /// Family as written, in any case.
    pub family: &'a str,
    /// Version, or `latest`.
    pub version: &'a str,
}

impl<'a> Alias<'a> {
    /// Follow the newest image.
    pub const LATEST: &'static str = "latest";

    /// Splits at the `@`; `None` when a side is empty.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (family, version) = text.split_once('@')?;
        (!family.is_empty() && !version.is_empty()).then_some(Self { family, version })
    }

    /// The family, if there is an alias of that name.
    pub fn family(self) -> Option<AmiFamily> {
        Some(match self.family.to_ascii_lowercase().as_str() {
            "al2" => AmiFamily::Al2,
            "al2023" => AmiFamily::Al2023,
            "bottlerocket" => AmiFamily::Bottlerocket,
            "windows2019" => AmiFamily::Windows2019,
            "windows2022" => AmiFamily::Windows2022,
            "windows2025" => AmiFamily::Windows2025,
            _ => return None,
        })
    }

    /// Whether it follows the newest image.
    pub fn is_latest(self) -> bool {
        self.version == Self::LATEST
    }
}

/// An object of any shape.
fn open_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}
