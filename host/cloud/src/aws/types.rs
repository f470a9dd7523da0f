//! Instance types and where they are sold: DescribeInstanceTypes and DescribeInstanceTypeOfferings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aws_sdk_ec2::types::{
    EbsOptimizedSupport, EnaSupport, EphemeralNvmeSupport, Filter, InstanceTypeInfo, LocationType,
    NitroEnclavesSupport, SupportedAdditionalProcessorFeature, UsageClassType,
};

use super::clients::Clients;
use super::error::ApiError;
use crate::catalog_build::{Accelerator, Gpu, NetworkCard, NeuronDevice, TypeRow};

/// Types by zone of sale: type → zones.
pub(crate) type ZonesByType = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// Every type that nodes can run on, sorted by name.
pub(crate) async fn fetch_types(clients: &Clients) -> Result<Vec<TypeRow>, ApiError> {
    let filter = |name: &str, values: &[&str]| {
        Filter::builder().name(name).set_values(Some(values.iter().map(|v| (*v).to_owned()).collect())).build()
    };
    let mut pages = clients
        .ec2
        .describe_instance_types()
        .filters(filter("supported-virtualization-type", &["hvm"]))
        .filters(filter("processor-info.supported-architecture", &["x86_64", "arm64"]))
        .max_results(100)
        .into_paginator()
        .send();
    let mut rows = Vec::new();
    while let Some(page) = clients.call("DescribeInstanceTypes", pages.try_next()).await? {
        rows.extend(page.instance_types().iter().map(row).filter(TypeRow::is_usable));
    }
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rows)
}

/// Zones in which each type is sold.
pub(crate) async fn fetch_zones(clients: &Clients) -> Result<ZonesByType, ApiError> {
    let mut pages = clients
        .ec2
        .describe_instance_type_offerings()
        .location_type(LocationType::AvailabilityZone)
        .max_results(1000)
        .into_paginator()
        .send();
    let mut zones = ZonesByType::new();
    // Zone names repeat thousands of times; one allocation each.
    let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
    while let Some(page) = clients.call("DescribeInstanceTypeOfferings", pages.try_next()).await? {
        for offering in page.instance_type_offerings() {
            let (Some(name), Some(zone)) = (offering.instance_type(), offering.location()) else { continue };
            let zone = names.get(zone).cloned().unwrap_or_else(|| {
                let zone: Arc<str> = Arc::from(zone);
                names.insert(Arc::clone(&zone));
                zone
            });
            zones.entry(Arc::from(name.as_str())).or_default().insert(zone);
        }
    }
    Ok(zones)
}

fn unsigned(n: Option<i32>) -> u32 {
    n.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

/// A decimal factor of a thousand, rounded: GHz to MHz, Gbit/s to Mbit/s.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range of u32 first")]
fn thousand(n: f64) -> u32 {
    (n * 1000.0).round().clamp(0.0, f64::from(u32::MAX)) as u32
}

/// Plain facts of one type.
fn row(info: &InstanceTypeInfo) -> TypeRow {
    let mut row = TypeRow {
        name: info.instance_type().map(|t| t.as_str().to_owned()).unwrap_or_default(),
        vcpus: unsigned(info.v_cpu_info().and_then(|v| v.default_v_cpus())),
        memory_mib: info.memory_info().and_then(|m| m.size_in_mib()).and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        hypervisor: info.hypervisor().map(|h| h.as_str().to_owned()).unwrap_or_default(),
        on_demand: info.supported_usage_classes().contains(&UsageClassType::OnDemand),
        spot: info.supported_usage_classes().contains(&UsageClassType::Spot),
        enclaves: info.nitro_enclaves_support() == Some(&NitroEnclavesSupport::Supported),
        placement_strategies: info
            .placement_group_info()
            .map(|p| p.supported_strategies().iter().map(|s| s.as_str().to_owned()).collect())
            .unwrap_or_default(),
        ..TypeRow::default()
    };
    if let Some(cpu) = info.processor_info() {
        row.architectures = cpu.supported_architectures().iter().map(|a| a.as_str().to_owned()).collect();
        row.cpu_manufacturer = cpu.manufacturer().unwrap_or_default().to_owned();
        row.clock_mhz = cpu.sustained_clock_speed_in_ghz().map(thousand);
        row.nested_virtualization =
            cpu.supported_features().contains(&SupportedAdditionalProcessorFeature::NestedVirtualization);
    }
    if let Some(ebs) = info.ebs_info().filter(|e| e.ebs_optimized_support() == Some(&EbsOptimizedSupport::Default)) {
        row.ebs_mbps =
            ebs.ebs_optimized_info().and_then(|e| e.maximum_bandwidth_in_mbps()).and_then(|n| u32::try_from(n).ok());
    }
    if let Some(store) = info.instance_storage_info() {
        row.instance_store_gb = store.total_size_in_gb().and_then(|n| u64::try_from(n).ok());
        row.nvme = store.nvme_support().is_some_and(|n| *n != EphemeralNvmeSupport::Unsupported);
    }
    network(info, &mut row);
    devices(info, &mut row);
    row
}

fn network(info: &InstanceTypeInfo, row: &mut TypeRow) {
    let Some(network) = info.network_info() else { return };
    row.ipv4_per_eni = unsigned(network.ipv4_addresses_per_interface());
    row.default_card = unsigned(network.default_network_card_index());
    row.encryption_in_transit = network.encryption_in_transit_supported().unwrap_or(false);
    row.ena = matches!(network.ena_support(), Some(EnaSupport::Supported | EnaSupport::Required));
    row.efa_max = unsigned(network.efa_info().and_then(|e| e.maximum_efa_interfaces()));
    row.cards = network
        .network_cards()
        .iter()
        .map(|c| NetworkCard {
            index: unsigned(c.network_card_index()),
            interfaces: unsigned(c.maximum_network_interfaces()),
        })
        .collect();
    let baseline: Option<f64> = network.network_cards().iter().map(|c| c.baseline_bandwidth_in_gbps()).sum();
    row.network_mbps = baseline.map(thousand).filter(|mbps| *mbps > 0);
}

fn devices(info: &InstanceTypeInfo, row: &mut TypeRow) {
    let text = |t: Option<&str>| t.unwrap_or_default().to_owned();
    if let Some(gpus) = info.gpu_info() {
        row.gpus = gpus
            .gpus()
            .iter()
            .map(|g| Gpu {
                name: text(g.name()),
                manufacturer: text(g.manufacturer()),
                count: unsigned(g.count()),
                memory_mib: u64::from(unsigned(g.memory_info().and_then(|m| m.size_in_mib()))),
            })
            .collect();
    }
    if let Some(inference) = info.inference_accelerator_info() {
        row.accelerators = inference
            .accelerators()
            .iter()
            .map(|a| Accelerator {
                name: text(a.name()),
                manufacturer: text(a.manufacturer()),
                count: unsigned(a.count()),
            })
            .collect();
    }
    if let Some(neuron) = info.neuron_info() {
        row.neuron = neuron
            .neuron_devices()
            .iter()
            .map(|n| NeuronDevice {
                name: text(n.name()),
                count: unsigned(n.count()),
                cores: unsigned(n.core_info().and_then(|c| c.count())),
            })
            .collect();
    }
}
