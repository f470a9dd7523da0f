//! From what EC2 says of an instance type to what a node of it offers: labels, capacity, overhead, offerings.
//!
//! ```text
//! TypeRow (plain facts) + ClassShape (what the node class asks) + Market (zones, prices, stock) ─build─► InstanceType
//! ```
//!
//! No SDK and no I/O: the AWS provider, the demo and the tests share it, so all of them agree to the byte.

mod capacity;
mod class;
mod compatibility;
mod intern;
mod offerings;
mod overhead;
mod requirements;
mod row;
mod shape;

#[cfg(test)]
mod tests;

use mortise_engine::catalog::{Catalog, InstanceType};

use intern::Interner;

pub use capacity::{eni_pods, pod_capacity};
pub use class::{ShapeSettings, volume_bytes};
pub use compatibility::incompatible;
pub use offerings::{Market, Quote};
pub use overhead::default_kube_reserved_cpu_milli;
pub use requirements::arch_label;
pub use row::{Accelerator, Gpu, NetworkCard, NeuronDevice, TypeRow};
pub use shape::{
    AmiFamily, ClassShape, DEFAULT_VM_MEMORY_OVERHEAD_PPM, Interface, Reserved, ShapeError, Threshold, Zone,
};

/// One instance type of one node class.
#[must_use]
pub fn build(row: &TypeRow, shape: &ClassShape, market: &dyn Market) -> InstanceType {
    build_with(row, shape, market, &mut Interner::default())
}

fn build_with(row: &TypeRow, shape: &ClassShape, market: &dyn Market, names: &mut Interner) -> InstanceType {
    let capacity = capacity::capacity(row, shape, names);
    InstanceType {
        name: names.get(&row.name),
        requirements: requirements::requirements(row, shape, market, names),
        allocatable: overhead::allocatable(row, shape, &capacity),
        capacity,
        offerings: offerings::offerings(row, shape, market, names),
        ..InstanceType::default()
    }
}

/// The catalogue of one node class: types that this program can run nodes on, sorted by name.
#[must_use]
pub fn build_catalog(rows: &[TypeRow], shape: &ClassShape, market: &dyn Market, generation: u64) -> Catalog {
    let mut names = Interner::default();
    let types = rows.iter().filter(|r| r.is_usable()).map(|r| build_with(r, shape, market, &mut names)).collect();
    Catalog::new(generation, types)
}
