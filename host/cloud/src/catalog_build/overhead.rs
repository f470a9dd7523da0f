//! What of a node's capacity pods do not get: kube-reserved, system-reserved, eviction threshold.

use mortise_engine::quantity::Resources;

use super::capacity::{GIB, MIB, eni_pods};
use super::row::TypeRow;
use super::shape::{ClassShape, Threshold};

/// CPU that the kubelet is given, in bands of the node's size: 6 % of the first CPU, 1 % of the second, 0.5 % of the
/// next two, 0.25 % of the rest, each truncated to whole millicores.
#[must_use]
pub fn default_kube_reserved_cpu_milli(cpu_milli: i64) -> i64 {
    // Start, end, share in hundredths of a percent.
    const BANDS: [(i64, i64, i64); 4] = [(0, 1000, 600), (1000, 2000, 100), (2000, 4000, 50), (4000, i64::MAX, 25)];
    BANDS
        .iter()
        .map(|&(start, end, share)| cpu_milli.min(end).saturating_sub(start).max(0).saturating_mul(share) / 10_000)
        .sum()
}

/// Memory that the kubelet is given: 11 MiB a pod and 255 MiB.
fn kube_reserved_memory(row: &TypeRow, shape: &ClassShape, pods: i64) -> i64 {
    let pods = if shape.family.reserves_by_eni() { eni_pods(row, 0) } else { pods };
    pods.saturating_mul(11).saturating_add(255).saturating_mul(MIB)
}

/// A threshold in absolute terms.
fn threshold(value: Option<Threshold>, capacity: i64, default: i64) -> i64 {
    match value {
        None => default,
        Some(Threshold::Amount(amount)) => amount,
        // All of it would leave nothing: the kubelet takes 100 % as "off".
        Some(Threshold::PartsPerMillion(1_000_000)) => 0,
        Some(Threshold::PartsPerMillion(ppm)) => parts(capacity, ppm),
    }
}

/// `ceil(capacity × ppm / 1,000,000)`.
fn parts(capacity: i64, ppm: u32) -> i64 {
    let product = i128::from(capacity) * i128::from(ppm) + 999_999;
    i64::try_from(product / 1_000_000).unwrap_or(i64::MAX)
}

/// Capacity less overhead, never below zero.
pub(super) fn allocatable(row: &TypeRow, shape: &ClassShape, capacity: &Resources) -> Resources {
    let kube = &shape.kube_reserved;
    let system = &shape.system_reserved;
    let cpu = kube
        .cpu_milli
        .unwrap_or_else(|| default_kube_reserved_cpu_milli(capacity.cpu_milli))
        .saturating_add(system.cpu_milli.unwrap_or(0));
    let memory = kube
        .memory
        .unwrap_or_else(|| kube_reserved_memory(row, shape, capacity.pods))
        .saturating_add(system.memory.unwrap_or(0))
        .saturating_add(threshold(shape.eviction_memory, capacity.memory, 100 * MIB));
    let storage_default = parts(capacity.ephemeral_storage, 100_000);
    let storage = kube
        .ephemeral_storage
        .unwrap_or(GIB)
        .saturating_add(system.ephemeral_storage.unwrap_or(0))
        .saturating_add(threshold(shape.eviction_storage, capacity.ephemeral_storage, storage_default));
    Resources {
        cpu_milli: capacity.cpu_milli.saturating_sub(cpu).max(0),
        memory: capacity.memory.saturating_sub(memory).max(0),
        ephemeral_storage: capacity.ephemeral_storage.saturating_sub(storage).max(0),
        pods: capacity.pods,
        extended: capacity.extended.clone(),
    }
}
