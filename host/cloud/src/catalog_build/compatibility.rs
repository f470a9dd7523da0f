//! Types that a node class cannot use. Their offerings stay listed, none of them available.

use super::row::TypeRow;
use super::shape::{AmiFamily, ClassShape};

/// Why this class cannot use this type, if so.
#[must_use]
pub fn incompatible(row: &TypeRow, shape: &ClassShape) -> Option<&'static str> {
    if shape.family == AmiFamily::Al2023 && row.family() == "a1" {
        return Some("AL2023 does not support a1");
    }
    if shape.nested_virtualization && !row.nested_virtualization {
        return Some("no nested virtualization");
    }
    if shape.enclaves && !row.enclaves {
        return Some("no Nitro Enclaves");
    }
    if shape.connection_tracking && row.hypervisor != "nitro" {
        return Some("connection tracking needs the nitro hypervisor");
    }
    interfaces(row, shape)
}

/// The network interfaces asked for must exist on the type.
fn interfaces(row: &TypeRow, shape: &ClassShape) -> Option<&'static str> {
    if shape.interfaces.is_empty() {
        return None;
    }
    if !row.ena {
        return Some("no ENA");
    }
    for wanted in &shape.interfaces {
        let Some(card) = row.cards.iter().find(|c| c.index == wanted.card) else {
            return Some("too few network cards");
        };
        if wanted.device >= card.interfaces {
            return Some("too few interfaces on a network card");
        }
    }
    if shape.efa_only_total().unwrap_or(0) > row.efa_max {
        return Some("too few EFA interfaces");
    }
    None
}
