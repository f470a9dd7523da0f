//! What a node of a type has: CPU, memory, disk, pods, devices.

use std::collections::BTreeMap;
use std::sync::Arc;

use mortise_engine::quantity::Resources;

use super::intern::Interner;
use super::row::TypeRow;
use super::shape::ClassShape;

pub(super) const MIB: i64 = 1 << 20;
pub(super) const GIB: i64 = 1 << 30;
/// Memory that arm64 instances never show to Linux (EFI and friends), MiB.
const ARM_HIDDEN_MIB: i64 = 64;
/// Pods per node where addresses do not bound them.
const FLAT_PODS: i64 = 110;

/// Pods that secondary addresses allow: every usable interface but its own address, plus the two host-network pods
/// (VPC CNI and kube-proxy). `unusable` interfaces are reserved or carry EFA only.
#[must_use]
pub fn eni_pods(row: &TypeRow, unusable: u32) -> i64 {
    let usable = i64::from(row.default_card_interfaces().saturating_sub(unusable));
    if usable == 0 {
        return 0;
    }
    usable.saturating_mul(i64::from(row.ipv4_per_eni).saturating_sub(1)).saturating_add(2)
}

/// Pod slots of a node of this type and class.
#[must_use]
pub fn pod_capacity(row: &TypeRow, shape: &ClassShape) -> i64 {
    let count = match shape.max_pods {
        Some(pods) => i64::from(pods),
        None if shape.family.eni_limited() => {
            eni_pods(row, shape.reserved_enis.saturating_add(shape.efa_only_on_card(0)))
        }
        None => FLAT_PODS,
    };
    match shape.pods_per_core {
        Some(per_core) if per_core > 0 && shape.family.has_pods_per_core() => {
            count.min(i64::from(per_core).saturating_mul(i64::from(row.vcpus)))
        }
        _ => count,
    }
}

/// Memory that the node will report: as sold, less what the hypervisor keeps. MiB.
fn memory_mib(row: &TypeRow, shape: &ClassShape) -> i64 {
    let sold = i64::try_from(row.memory_mib).unwrap_or(i64::MAX);
    let arm = row.architectures.first().is_some_and(|a| a == "arm64");
    let base = if arm { sold.saturating_sub(ARM_HIDDEN_MIB) } else { sold };
    let kept = base.saturating_mul(i64::from(shape.vm_memory_overhead_ppm)).saturating_add(999_999) / 1_000_000;
    base.saturating_sub(kept).max(0)
}

/// Disk for pods, bytes.
fn ephemeral_storage(row: &TypeRow, shape: &ClassShape) -> i64 {
    match row.instance_store_gb {
        Some(gb) if shape.raid0 && gb > 0 => i64::try_from(gb).unwrap_or(i64::MAX).saturating_mul(1_000_000_000),
        _ => shape.root_volume,
    }
}

fn count_of(row: &TypeRow, manufacturer: &str) -> i64 {
    row.gpus.iter().filter(|g| g.manufacturer == manufacturer).map(|g| i64::from(g.count)).sum()
}

/// Capacity. Resources of which there are none are left out.
pub(super) fn capacity(row: &TypeRow, shape: &ClassShape, names: &mut Interner) -> Resources {
    let mut extended: BTreeMap<Arc<str>, i64> = BTreeMap::new();
    let mut put = |name: &str, count: i64| {
        if count > 0 {
            extended.insert(names.get(name), count);
        }
    };
    put("nvidia.com/gpu", count_of(row, "NVIDIA"));
    put("amd.com/gpu", count_of(row, "AMD"));
    put("habana.ai/gaudi", count_of(row, "Habana"));
    put("aws.amazon.com/neuron", row.neuron.iter().map(|n| i64::from(n.count)).sum());
    let cores = row.neuron.first().map_or(0, |n| i64::from(n.count).saturating_mul(i64::from(n.cores)));
    put("aws.amazon.com/neuroncore", cores);
    let efa = shape.efa_only_total().unwrap_or(row.efa_max);
    put("vpc.amazonaws.com/efa", i64::from(efa));
    Resources {
        cpu_milli: i64::from(row.vcpus).saturating_mul(1000),
        memory: memory_mib(row, shape).saturating_mul(MIB),
        ephemeral_storage: ephemeral_storage(row, shape),
        pods: pod_capacity(row, shape),
        extended,
    }
}
