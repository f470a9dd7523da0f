//! Devices of the pods of a claim of this round.

use super::Devices;
use super::ledger::Holder;
use super::search::Ground;
use crate::schedule::claim::{Offer, OpenClaim, Surroundings, narrow};
use crate::symbol::{Bits, SymbolSet};

impl Devices<'_> {
    /// Adds a pod to a claim by `go`, if its devices can be had on some of the claim's types before and after.
    pub(crate) fn offer(
        &mut self,
        claim: &mut OpenClaim,
        around: Surroundings<'_, '_>,
        (group, asked): (u32, &SymbolSet),
        go: impl FnOnce(&mut OpenClaim) -> Offer,
    ) -> Offer {
        let before = claim.clone();
        let id = claim.load.devices.unwrap_or(self.next_holder);
        let answer = self.offer_to(claim, around, (group, asked, Holder::Claim(id)), go);
        if answer == Offer::Taken {
            claim.load.devices = Some(id);
            self.next_holder = self.next_holder.max(id + 1);
        } else {
            *claim = before;
        }
        answer
    }

    fn offer_to(
        &mut self,
        claim: &mut OpenClaim,
        around: Surroundings<'_, '_>,
        (group, asked, holder): (u32, &SymbolSet, Holder),
        go: impl FnOnce(&mut OpenClaim) -> Offer,
    ) -> Offer {
        let Some(wanted) = self.groups.get(group as usize).cloned().flatten() else { return Offer::Never };
        let allow_undefined = &around.pool.allow_undefined;
        let start = Ground::Claim(claim.requirements.clone(), allow_undefined);
        // What devices ask of the node comes before the choice of a domain, which may leave just one.
        let Some(ground) = start.within(asked, around.symbols) else { return Offer::Never };
        let profiles = self.profiles_of(around.pool.view, claim.types.iter());
        let Some(plan) = self.plan(holder, &wanted, ground, &profiles, around.symbols) else { return Offer::Never };
        if !self.narrow_to(claim, around, (&plan.requirements, &plan.taken.keys().copied().collect())) {
            return Offer::Never;
        }
        let answer = go(claim);
        if answer != Offer::Taken {
            return answer;
        }
        let profiles = self.profiles_of(around.pool.view, claim.types.iter());
        let ground = Ground::Claim(claim.requirements.clone(), allow_undefined);
        let Some(plan) = self.plan(holder, &wanted, ground, &profiles, around.symbols) else { return Offer::NotNow };
        if !self.narrow_to(claim, around, (&plan.requirements, &plan.taken.keys().copied().collect()))
            || !claim.load.holds(around, (&claim.requirements, &claim.offerings), &claim.types)
        {
            return Offer::NotNow;
        }
        self.commit(holder, plan, around.symbols);
        Offer::Taken
    }

    /// Leaves a claim what devices leave it; returns whether that is anything.
    fn narrow_to(
        &self,
        claim: &mut OpenClaim,
        around: Surroundings<'_, '_>,
        (requirements, profiles): (&Option<SymbolSet>, &Bits),
    ) -> bool {
        if let Some(requirements) = requirements {
            let start = (&claim.requirements, &claim.types, &claim.offerings);
            let Some(narrowed) = narrow(around, start, requirements, None) else { return false };
            claim.requirements = narrowed.requirements;
            claim.types = narrowed.types;
            claim.offerings = narrowed.offerings;
        }
        let of_types = self.profile_of.get(around.pool.view);
        claim.types.retain(|of_type| {
            of_types.and_then(|of_types| of_types.get(of_type as usize)).is_some_and(|own| profiles.contains(*own))
        });
        !claim.types.is_empty()
    }

    /// A claim has only these types left: devices that it held for others are free again.
    pub(crate) fn keep(&mut self, holder: Option<u32>, view: usize, types: &Bits) {
        let Some(holder) = holder.map(Holder::Claim) else { return };
        let live = self.profiles_of(view, types.iter());
        if self.ledger.keep(&self.stock, holder, &live) {
            for held in self.held.values_mut().filter(|held| held.holder == holder) {
                held.requirements.retain(|profile, _| live.contains(profile));
            }
        }
    }

    /// A claim is taken back.
    pub(crate) fn withdraw(&mut self, holder: Option<u32>) {
        let Some(holder) = holder.map(Holder::Claim) else { return };
        self.held.retain(|_, held| held.holder != holder);
        self.ledger.keep(&self.stock, holder, &std::collections::BTreeSet::new());
    }
}
