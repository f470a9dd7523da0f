//! The rules, one module each.

pub(crate) mod accounting;
pub(crate) mod fit;
pub(crate) mod instance_types;
pub(crate) mod limits;
pub(crate) mod min_values;
pub(crate) mod node_affinity;
pub(crate) mod pod_affinity;
pub(crate) mod ports;
pub(crate) mod reservations;
pub(crate) mod spread;
pub(crate) mod taints;
pub(crate) mod volumes;

#[cfg(test)]
pub(crate) mod cases;

use crate::model::world::World;
use crate::violation::Violation;

/// Judges by every rule.
pub(crate) fn check(world: &World<'_>) -> Vec<Violation> {
    [
        accounting::check,
        instance_types::check,
        fit::check,
        taints::check,
        node_affinity::check,
        volumes::check,
        ports::check,
        spread::check,
        pod_affinity::check,
        limits::check,
        reservations::check,
        min_values::check,
    ]
    .iter()
    .flat_map(|rule| rule(world))
    .collect()
}
