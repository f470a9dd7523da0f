//! What a claim's pods take, and what must stay true of the claim with more of them: minValues, the NodePool's limits, and
//! a slot of a reservation.

use super::{Surroundings, first_unmet};
use crate::schedule::group::Group;
use crate::schedule::holdings::Held;
use crate::schedule::limits::Charge;
use crate::symbol::{Bits, SymbolSet};

/// What the pods of a claim take, and what the claim holds for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// Requests, by resource.
    pub(crate) used: Vec<i64>,
    /// Host ports and volumes.
    pub(crate) held: Held,
    /// What it is charged against its NodePool's limits.
    pub(crate) charge: Charge,
    /// It is open to reserved offerings only.
    pub(crate) reserved: bool,
    /// Its slot of a reservation.
    pub(crate) ticket: Option<u32>,
    /// Its number among those whose pods have devices.
    pub(crate) devices: Option<u32>,
}

impl Load {
    pub(crate) fn new(resources: usize, reserved: bool) -> Self {
        Self { used: vec![0; resources], reserved, ..Self::default() }
    }

    /// Adds pods of a group.
    pub(crate) fn take(&mut self, group: &Group<'_>, count: u32) {
        for (resource, amount) in &group.asked {
            if let Some(used) = self.used.get_mut(*resource) {
                *used = used.saturating_add(amount.saturating_mul(i64::from(count)));
            }
        }
        self.held.take(group.shape, count);
    }

    /// Fewer types or offerings may be too few: [`Self::holds`] has to be asked.
    pub(crate) fn is_delicate(&self, around: Surroundings<'_, '_>, requirements: &SymbolSet) -> bool {
        requirements.has_min_values() || self.reserved || !around.pool.limits.is_unlimited()
    }

    /// Whether a claim with these requirements, offerings and types is one that can be launched within all bounds.
    pub(crate) fn holds(
        &self,
        around: Surroundings<'_, '_>,
        (requirements, offerings): (&SymbolSet, &Bits),
        types: &Bits,
    ) -> bool {
        if first_unmet(around, requirements, types).is_some() {
            return false;
        }
        let limits = &around.pool.limits;
        if !limits.is_unlimited() && !limits.admits(&self.charge, &least(around, requirements, types)) {
            return false;
        }
        !self.reserved
            || around.reservations.is_none_or(|reservations| {
                reservations.admits(self.ticket, &slots_among(around, (requirements, offerings), types))
            })
    }
}

/// The least that a claim open to these types is charged.
pub(crate) fn least(around: Surroundings<'_, '_>, requirements: &SymbolSet, types: &Bits) -> Charge {
    let capacity = &around.view.columns.capacity;
    let enough = |types: &Bits| !requirements.has_min_values() || first_unmet(around, requirements, types).is_none();
    around.pool.limits.least(capacity, types, enough)
}

/// Reservations from which a claim can be launched: each alone must keep minValues, since the claim will hold just one.
pub(crate) fn slots_among(
    around: Surroundings<'_, '_>,
    (requirements, offerings): (&SymbolSet, &Bits),
    types: &Bits,
) -> Bits {
    let Some(reservations) = around.reservations else { return Bits::default() };
    let mut among = reservations.among(around.pool.view, around.view, offerings, types);
    if requirements.has_min_values() {
        among.retain(|id| {
            let own = reservations.types_of(around.pool.view, around.view, (offerings, types), id);
            first_unmet(around, requirements, &own).is_none()
        });
    }
    among
}
