//! Which devices a pod would need, in numbers.

use super::ledger::Holder;
use super::request::Ask;
use super::selector::Match;
use super::{Devices, Wanted};
use crate::explain::Blocker;
use crate::symbol::{Bits, id_of};

impl Devices<'_> {
    /// The request of a group's pods that is hardest to serve on a new node of these types.
    pub(crate) fn explain(&self, group: u32, view: usize, types: &Bits) -> Option<Blocker> {
        let wanted = self.groups.get(group as usize)?.as_ref()?;
        let asked = wanted.iter().filter_map(|claim| match claim {
            Wanted::Own(asked) | Wanted::Shared(_, asked) => Some(asked),
            Wanted::Settled(_) => None,
        });
        let requests = asked.flat_map(|asked| &asked.requests).filter_map(|alternatives| alternatives.last());
        let counted = requests.map(|ask| self.count(ask, view, types));
        counted.min_by_key(|(served, _)| *served).map(|(_, blocker)| blocker)
    }

    /// How many types or devices could serve a request, and that in words.
    fn count(&self, ask: &Ask, view: usize, types: &Bits) -> (u32, Blocker) {
        let new = Holder::Claim(self.next_holder);
        let selected = |entry: &super::stock::Entry<'_>| {
            ask.selectors.iter().all(|id| self.selectors.matches(*id, entry.driver, entry.device) == Match::Yes)
        };
        let matching: Vec<u32> = (self.stock.devices.iter().enumerate())
            .filter(|(_, entry)| selected(entry))
            .map(|(at, _)| id_of(at))
            .collect();
        let free = matching.iter().filter(|at| !self.ledger.in_use(**at, new)).count();
        let enough = ask.count.unwrap_or(1);
        let brings: Vec<bool> = (self.profiles.iter())
            .map(|profile| id_of(profile.stock.devices.iter().filter(|entry| selected(entry)).count()) >= enough)
            .collect();
        let of_types = self.profile_of.get(view);
        let suits = |of_type: &u32| {
            let profile = of_types.and_then(|of_types| of_types.get(*of_type as usize));
            profile.and_then(|profile| brings.get(*profile as usize)).copied().unwrap_or(false)
        };
        let suiting = id_of(types.iter().filter(suits).count());
        let blocker = Blocker::Devices {
            request: ask.name(),
            asked: ask.count,
            published: id_of(self.stock.devices.len()),
            matching: id_of(matching.len()),
            free: id_of(free),
            types: id_of(types.len()),
            suiting,
        };
        (suiting.saturating_add(id_of(free) / enough.max(1)), blocker)
    }
}
