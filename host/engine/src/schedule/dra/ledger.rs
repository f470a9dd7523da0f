//! Who has which devices.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::stock::Stock;
use crate::device::Allocated;
use crate::quantity::Quantity;
use crate::symbol::SymbolSet;

/// A node, or a NodeClaim of this round, whose pods have devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// By place among the existing nodes.
    Node(u32),
    /// By a number of its own, which it keeps.
    Claim(u32),
}

/// A device, by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Which {
    /// Of the cluster.
    Published(u32),
    /// Of the holder's own node, once it is there.
    Template(u32),
}

/// A device that was given to a pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Taken {
    pub(super) which: Which,
    /// Of a device that can be shared: the share.
    pub(super) share: Option<Vec<(Arc<str>, Quantity)>>,
    /// `<request>` or `<request>/<sub-request>`.
    pub(super) request: Arc<str>,
    /// Place of its claim among those that were allocated together.
    pub(super) claim: usize,
}

impl Taken {
    pub(super) fn template(&self) -> Option<u32> {
        match self.which {
            Which::Template(at) => Some(at),
            Which::Published(_) => None,
        }
    }
}

/// A ResourceClaim that was given devices in this round.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) holder: Holder,
    /// A device of it is the holder's alone.
    pub(super) is_local: bool,
    /// By profile: what its devices ask of nodes.
    pub(super) requirements: BTreeMap<u32, SymbolSet>,
}

/// Devices in use, and what holders took in this round.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Published devices that ResourceClaims have as a whole.
    whole: BTreeSet<u32>,
    /// Shares of published devices that ResourceClaims have.
    shares: BTreeMap<(u32, Arc<str>), Quantity>,
    /// What devices in use take of counters.
    counted: BTreeMap<u32, Quantity>,
    /// By holder and profile.
    taken: BTreeMap<Holder, BTreeMap<u32, Vec<Taken>>>,
    /// By published device, those who may come to use it.
    users: BTreeMap<u32, BTreeSet<Holder>>,
    /// Most that each holder takes of a share or counter, whatever type it becomes.
    of_shares: BTreeMap<(u32, Arc<str>), BTreeMap<Holder, Quantity>>,
    of_counters: BTreeMap<u32, BTreeMap<Holder, Quantity>>,
}

impl Ledger {
    /// Devices that a ResourceClaim has.
    pub(super) fn allocated(&mut self, stock: &Stock<'_>, devices: &[Allocated]) {
        for allocated in devices {
            let found = stock.devices.iter().position(|entry| entry.is(&allocated.id));
            let Some((at, entry)) = found.and_then(|at| Some((crate::symbol::id_of(at), stock.devices.get(at)?)))
            else {
                continue;
            };
            let counted = self.whole.contains(&at) || self.shares.keys().any(|(device, _)| *device == at);
            match &allocated.consumed {
                Some(consumed) if entry.device.shareable => {
                    for (name, amount) in consumed {
                        let sum = self.shares.entry((at, Arc::clone(name))).or_default();
                        *sum = sum.saturating_add(*amount);
                    }
                }
                _ => {
                    self.whole.insert(at);
                }
            }
            if !counted {
                for (counter, amount) in &entry.consumes {
                    let sum = self.counted.entry(*counter).or_default();
                    *sum = sum.saturating_add(*amount);
                }
            }
        }
    }

    /// A published device is in use by somebody else than this holder.
    pub(super) fn in_use(&self, device: u32, holder: Holder) -> bool {
        self.whole.contains(&device)
            || self.users.get(&device).is_some_and(|users| users.iter().any(|user| *user != holder))
    }

    /// What others have of a share of a published device.
    pub(super) fn share_used(&self, device: u32, name: &Arc<str>, holder: Holder) -> Quantity {
        let key = (device, Arc::clone(name));
        let allocated = self.shares.get(&key).copied().unwrap_or_default();
        sum_of_others(self.of_shares.get(&key), holder).saturating_add(allocated)
    }

    /// What others take of a counter.
    pub(super) fn counter_used(&self, counter: u32, holder: Holder) -> Quantity {
        let allocated = self.counted.get(&counter).copied().unwrap_or_default();
        sum_of_others(self.of_counters.get(&counter), holder).saturating_add(allocated)
    }

    /// What a holder has if it becomes a type of this profile.
    pub(super) fn own(&self, holder: Holder, profile: u32) -> &[Taken] {
        self.taken.get(&holder).and_then(|by_profile| by_profile.get(&profile)).map_or(&[], Vec::as_slice)
    }

    /// What a holder has, by profile.
    pub(super) fn of(&self, holder: Holder) -> impl Iterator<Item = (u32, &[Taken])> {
        self.taken.get(&holder).into_iter().flatten().map(|(profile, taken)| (*profile, taken.as_slice()))
    }

    /// Everything that was taken.
    #[cfg(test)]
    pub(super) fn all(&self) -> &BTreeMap<Holder, BTreeMap<u32, Vec<Taken>>> {
        &self.taken
    }

    /// Writes down what a holder takes in addition, by profile.
    pub(super) fn take(&mut self, stock: &Stock<'_>, holder: Holder, more: BTreeMap<u32, Vec<Taken>>) {
        let own = self.taken.entry(holder).or_default();
        for (profile, taken) in more {
            own.entry(profile).or_default().extend(taken);
        }
        self.sum_up(stock, holder);
    }

    /// Forgets what a holder has on profiles that it can no longer become; returns whether there were any.
    pub(super) fn keep(&mut self, stock: &Stock<'_>, holder: Holder, live: &BTreeSet<u32>) -> bool {
        let Some(own) = self.taken.get_mut(&holder) else { return false };
        let before = own.len();
        own.retain(|profile, _| live.contains(profile));
        let changed = own.len() != before;
        if changed {
            self.sum_up(stock, holder);
        }
        changed
    }

    fn sum_up(&mut self, stock: &Stock<'_>, holder: Holder) {
        for users in self.users.values_mut() {
            users.remove(&holder);
        }
        let maps = self.of_shares.values_mut().chain(self.of_counters.values_mut());
        maps.for_each(|by_holder| {
            by_holder.remove(&holder);
        });
        for taken in self.taken.get(&holder).into_iter().flat_map(BTreeMap::values) {
            let mut shares: BTreeMap<(u32, Arc<str>), Quantity> = BTreeMap::new();
            let mut counters: BTreeMap<u32, Quantity> = BTreeMap::new();
            let mut seen: BTreeSet<u32> = BTreeSet::new();
            for one in taken {
                let Which::Published(at) = one.which else { continue };
                match &one.share {
                    Some(share) => {
                        for (name, amount) in share {
                            let sum = shares.entry((at, Arc::clone(name))).or_default();
                            *sum = sum.saturating_add(*amount);
                        }
                    }
                    None => {
                        self.users.entry(at).or_default().insert(holder);
                    }
                }
                let consumes = stock.devices.get(at as usize).map_or(&[][..], |entry| &entry.consumes);
                let first = seen.insert(at);
                for (counter, amount) in consumes.iter().filter(|_| first) {
                    let sum = counters.entry(*counter).or_default();
                    *sum = sum.saturating_add(*amount);
                }
            }
            for (key, amount) in shares {
                let most = self.of_shares.entry(key).or_default().entry(holder).or_default();
                *most = amount.max(*most);
            }
            for (counter, amount) in counters {
                let most = self.of_counters.entry(counter).or_default().entry(holder).or_default();
                *most = amount.max(*most);
            }
        }
        self.users.retain(|_, users| !users.is_empty());
        self.of_shares.retain(|_, by_holder| !by_holder.is_empty());
        self.of_counters.retain(|_, by_holder| !by_holder.is_empty());
    }
}

fn sum_of_others(by_holder: Option<&BTreeMap<Holder, Quantity>>, holder: Holder) -> Quantity {
    let others = by_holder.into_iter().flatten().filter(|(other, _)| **other != holder);
    others.fold(Quantity::default(), |sum, (_, amount)| sum.saturating_add(*amount))
}
