//! Facts about an instance type, as DescribeInstanceTypes gives them, without its types.

use serde::{Deserialize, Serialize};

/// One instance type. Absent facts are zero, empty or `None`; nothing here depends on a node class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct TypeRow {
    /// `m5.large`.
    pub name: String,
    /// Architectures in EC2's words and order: `x86_64`, `arm64`, `i386`, …
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// Default vCPUs.
    pub vcpus: u32,
    /// Memory as sold, MiB.
    pub memory_mib: u64,
    /// `nitro`, `xen` or empty (bare metal).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hypervisor: String,
    /// `intel`, `amd`, `aws`, … in EC2's spelling.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cpu_manufacturer: String,
    /// Sustained clock speed, MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<u32>,
    /// Can be bought on demand.
    pub on_demand: bool,
    /// Can be bought as spot.
    pub spot: bool,
    /// Largest EBS bandwidth in Mbps, if EBS optimisation is on by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ebs_mbps: Option<u32>,
    /// Baseline network bandwidth in Mbps, summed over the cards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_mbps: Option<u32>,
    /// Instance store in total, GB (decimal).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_store_gb: Option<u64>,
    /// The instance store is NVMe.
    #[serde(skip_serializing_if = "is_false")]
    pub nvme: bool,
    /// Traffic between instances is encrypted.
    #[serde(skip_serializing_if = "is_false")]
    pub encryption_in_transit: bool,
    /// Addresses per interface.
    pub ipv4_per_eni: u32,
    /// Index of the network card that the primary interface sits on.
    #[serde(skip_serializing_if = "is_zero")]
    pub default_card: u32,
    /// Network cards in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<NetworkCard>,
    /// Largest number of EFA interfaces.
    #[serde(skip_serializing_if = "is_zero")]
    pub efa_max: u32,
    /// ENA is supported or required.
    #[serde(skip_serializing_if = "is_false")]
    pub ena: bool,
    /// GPUs, one entry per model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// Inference accelerators.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accelerators: Vec<Accelerator>,
    /// Neuron devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub neuron: Vec<NeuronDevice>,
    /// Nitro Enclaves are supported.
    #[serde(skip_serializing_if = "is_false")]
    pub enclaves: bool,
    /// Nested virtualisation is supported.
    #[serde(skip_serializing_if = "is_false")]
    pub nested_virtualization: bool,
    /// Placement group strategies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub placement_strategies: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(v: &bool) -> bool {
    !*v
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(v: &u32) -> bool {
    *v == 0
}

/// One network card.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkCard {
    /// Index.
    pub index: u32,
    /// Interfaces it carries.
    pub interfaces: u32,
}

/// GPUs of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// `T4`.
    pub name: String,
    /// `NVIDIA`.
    pub manufacturer: String,
    /// How many.
    pub count: u32,
    /// Memory of each, MiB.
    pub memory_mib: u64,
}

/// Inference accelerators of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Accelerator {
    /// `Inferentia`.
    pub name: String,
    /// `AWS`.
    pub manufacturer: String,
    /// How many.
    pub count: u32,
}

/// Neuron devices of one model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct NeuronDevice {
    /// `Inferentia2`.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Cores of each.
    pub cores: u32,
}

impl TypeRow {
    /// Nodes can run on it: it has an architecture that Kubernetes images exist for, and a name of the usual form.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        super::arch_label(self).is_some() && self.vcpus > 0 && self.memory_mib > 0 && self.name.contains('.')
    }

    /// Part before the dot.
    #[must_use]
    pub fn family(&self) -> &str {
        self.name.split_once('.').map_or(&*self.name, |(family, _)| family)
    }

    /// Part after the dot.
    #[must_use]
    pub fn size(&self) -> &str {
        self.name.split_once('.').map_or("", |(_, size)| size)
    }

    /// Interfaces that the default network card carries.
    #[must_use]
    pub fn default_card_interfaces(&self) -> u32 {
        self.cards.iter().find(|c| c.index == self.default_card).map_or(0, |c| c.interfaces)
    }
}
