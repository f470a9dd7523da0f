//! The search for devices: depth first over claims, requests, alternatives and devices, within a number of steps.
//!
//! Published devices come before those that the node itself brings, so that different types differ as little as possible.
//! Devices of one request are taken in ascending order and, of devices that are the same but for their names, only the
//! first is tried in one place: what is left out would fail or succeed alike.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::capacity::share;
use super::constraint::Common;
use super::ledger::{Holder, Ledger, Taken, Which};
use super::request::{Ask, Asked, MOST_DEVICES};
use super::selector::{Match, Selectors};
use super::stock::{Entry, Profile, Reach, Stock};
use crate::quantity::Quantity;
use crate::symbol::{Bits, SymbolSet, Symbols, id_of};

/// Most devices that are tried for one pod on one node or claim, over all profiles. A pod that needs more steps is not
/// placed there: no clock is asked, so that the same input gives the same plan.
pub(super) const STEPS: u32 = 20_000;

/// Most devices of one pod: bounds the depth of the search.
const DEEPEST: usize = 256;

/// Where devices are looked for.
#[derive(Clone)]
pub(super) enum Ground<'r> {
    /// A claim with these requirements, and the keys that it need not name.
    Claim(SymbolSet, &'r Bits),
    /// A node of this name, and whether it meets requirements.
    Node(Option<Arc<str>>, &'r dyn Fn(&SymbolSet) -> bool),
}

impl Ground<'_> {
    /// With what a device asks of its node in addition; `None` if this is no such node.
    pub(super) fn within(&self, set: &SymbolSet, symbols: &Symbols) -> Option<Self> {
        match self {
            Self::Claim(requirements, allow_undefined) => {
                requirements.compatible(set, allow_undefined, symbols).ok()?;
                let mut requirements = requirements.clone();
                requirements.extend(set, symbols);
                Some(Self::Claim(requirements, allow_undefined))
            }
            Self::Node(_, meets) => meets(set).then(|| self.clone()),
        }
    }

    /// The grounds that a device leaves, one per alternative of its reach.
    pub(super) fn reached(&self, reach: &Reach<'_>, symbols: &Symbols) -> Vec<Self> {
        match (reach, self) {
            (Reach::Everywhere, _) => vec![self.clone()],
            (Reach::Node(name), Self::Node(Some(own), _)) if *name == own => vec![self.clone()],
            (Reach::Node(_) | Reach::Nowhere, _) => Vec::new(),
            (Reach::Nodes(sets), _) => sets.iter().filter_map(|set| self.within(set, symbols)).collect(),
        }
    }
}

/// Answers of selectors, by the key of what asks, profile (`None` = published) and device.
pub(super) type Answers = BTreeMap<(u32, Option<u32>, u32), Match>;

/// What a search looks at.
#[derive(Clone, Copy)]
pub(super) struct Scene<'r, 'a> {
    pub(super) stock: &'r Stock<'a>,
    pub(super) profile: (u32, &'r Profile<'a>),
    pub(super) ledger: &'r Ledger,
    pub(super) holder: Holder,
    pub(super) selectors: &'r Selectors,
    pub(super) symbols: &'r Symbols,
}

/// One search.
pub(super) struct Search<'r, 'a, 'g> {
    scene: Scene<'r, 'a>,
    claims: &'r [Arc<Asked>],
    answers: &'r mut Answers,
    steps: &'r mut u32,
    ground: Ground<'g>,
    taken: Vec<Taken>,
    /// Devices of `taken` and those that the holder has on this profile.
    used: BTreeMap<Which, u32>,
    shares: BTreeMap<(Which, Arc<str>), Quantity>,
    counters: BTreeMap<(bool, u32), Quantity>,
    /// By claim and constraint: what was found common, and how many devices agree on it.
    common: BTreeMap<(usize, usize), (Common, u32)>,
}

impl<'r, 'a, 'g> Search<'r, 'a, 'g> {
    /// Devices for all the claims on one profile, and the ground that they leave.
    pub(super) fn run(
        scene: Scene<'r, 'a>,
        claims: &'r [Arc<Asked>],
        ground: Ground<'g>,
        answers: &'r mut Answers,
        steps: &'r mut u32,
    ) -> Option<(Vec<Taken>, Ground<'g>)> {
        let (used, shares, counters, common) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut search =
            Self { scene, claims, answers, steps, ground, taken: Vec::new(), used, shares, counters, common };
        for own in scene.ledger.own(scene.holder, scene.profile.0) {
            search.book(own, true);
        }
        search.request(0, 0).then_some((search.taken, search.ground))
    }

    fn entry(&self, which: Which) -> Option<&'r Entry<'a>> {
        match which {
            Which::Published(at) => self.scene.stock.devices.get(at as usize),
            Which::Template(at) => self.scene.profile.1.stock.devices.get(at as usize),
        }
    }

    /// All that is left from this request on.
    fn request(&mut self, claim: usize, request: usize) -> bool {
        let Some(asked) = self.claims.get(claim).map(Arc::as_ref) else { return true };
        let Some(alternatives) = asked.requests.get(request) else { return self.request(claim + 1, 0) };
        for ask in alternatives {
            let done = match ask.count {
                Some(count) => self.some(ask, (claim, request), (count, 0)),
                None => self.every(ask, (claim, request)),
            };
            if done {
                return true;
            }
        }
        false
    }

    /// There is room for so many more devices of the claim.
    fn has_room(&self, claim: usize, more: usize) -> bool {
        let of_claim = self.taken.iter().filter(|taken| taken.claim == claim).count();
        of_claim + more <= MOST_DEVICES && self.taken.len() + more <= DEEPEST
    }

    /// `left` devices that match, from the candidate at `from` on, and everything after them.
    fn some(&mut self, ask: &Ask, (claim, request): (usize, usize), (left, from): (u32, u32)) -> bool {
        if left == 0 {
            return self.request(claim, request + 1);
        }
        if !self.has_room(claim, left as usize) {
            return false;
        }
        let published = id_of(self.scene.stock.devices.len());
        let all = published.saturating_add(id_of(self.scene.profile.1.stock.devices.len()));
        let mut failed: BTreeSet<(bool, u32)> = BTreeSet::new();
        for at in from..all {
            let which = if at < published { Which::Published(at) } else { Which::Template(at - published) };
            let Some(entry) = self.entry(which) else { continue };
            if !self.pool_is(which, entry, true) || failed.contains(&(at < published, entry.kind)) {
                continue;
            }
            let next = if entry.device.shareable { at } else { at + 1 };
            let tried = self.with(which, ask, claim, |search| search.some(ask, (claim, request), (left - 1, next)));
            match tried {
                Some(true) => return true,
                Some(false) if !entry.device.shareable => {
                    failed.insert((at < published, entry.kind));
                }
                _ => {}
            }
            if *self.steps == 0 {
                return false;
            }
        }
        false
    }

    /// Every device that matches, and everything after them.
    fn every(&mut self, ask: &Ask, (claim, request): (usize, usize)) -> bool {
        let mut matching = Vec::new();
        let published = (0..id_of(self.scene.stock.devices.len())).map(Which::Published);
        let templates = (0..id_of(self.scene.profile.1.stock.devices.len())).map(Which::Template);
        for which in published.chain(templates) {
            let Some(entry) = self.entry(which) else { continue };
            if self.ground.reached(&entry.reach, self.scene.symbols).is_empty() {
                continue;
            }
            if !self.pool_is(which, entry, true) {
                // What the pool has besides is not known, so that "all" is not either.
                return false;
            }
            match self.selects(ask, which, entry) {
                Match::Yes => matching.push(which),
                Match::No => {}
                Match::Failed => return false,
            }
        }
        !matching.is_empty() && self.has_room(claim, matching.len()) && self.all_of(ask, (claim, request), &matching)
    }

    fn all_of(&mut self, ask: &Ask, (claim, request): (usize, usize), matching: &[Which]) -> bool {
        let Some((which, rest)) = matching.split_first() else { return self.request(claim, request + 1) };
        self.with(*which, ask, claim, |search| search.all_of(ask, (claim, request), rest)) == Some(true)
    }

    /// The pool of the device is complete and valid.
    fn pool_is(&self, which: Which, entry: &Entry<'_>, usable: bool) -> bool {
        let stock = match which {
            Which::Published(_) => self.scene.stock,
            Which::Template(_) => &self.scene.profile.1.stock,
        };
        stock.pools.get(entry.of_pool).is_some_and(|pool| (pool.complete && pool.valid) == usable)
    }

    fn selects(&mut self, ask: &Ask, which: Which, entry: &Entry<'_>) -> Match {
        let (profile, at) = match which {
            Which::Published(at) => (None, at),
            Which::Template(at) => (Some(self.scene.profile.0), at),
        };
        let selectors = self.scene.selectors;
        *self.answers.entry((ask.key, profile, at)).or_insert_with(|| {
            let answers = ask.selectors.iter().map(|id| selectors.matches(*id, entry.driver, entry.device));
            answers.into_iter().find(|answer| *answer != Match::Yes).unwrap_or(Match::Yes)
        })
    }

    /// Takes a device, goes on, and gives it back if that fails. `None`: it cannot be taken.
    fn with(&mut self, which: Which, ask: &Ask, claim: usize, mut on: impl FnMut(&mut Self) -> bool) -> Option<bool> {
        *self.steps = self.steps.checked_sub(1)?;
        let entry = self.entry(which)?;
        if self.selects(ask, which, entry) != Match::Yes {
            return None;
        }
        let taken = self.available(which, entry, ask, claim)?;
        let pinned = self.pin(which, entry, ask, claim)?;
        let before = self.ground.clone();
        self.book(&taken, true);
        self.taken.push(taken);
        let mut done = false;
        for ground in before.reached(&entry.reach, self.scene.symbols) {
            self.ground = ground;
            done = on(self);
            if done {
                break;
            }
        }
        if !done {
            self.ground = before;
            if let Some(taken) = self.taken.pop() {
                self.book(&taken, false);
            }
            self.unpin(claim, &pinned);
        }
        Some(done)
    }

    /// The device as it would be taken, if nobody has it and its counters allow.
    fn available(&self, which: Which, entry: &Entry<'_>, ask: &Ask, claim: usize) -> Option<Taken> {
        let holder = self.scene.holder;
        let ours = self.used.contains_key(&which);
        let theirs = matches!(which, Which::Published(at) if self.scene.ledger.in_use(at, holder));
        if theirs || (ours && !entry.device.shareable) {
            return None;
        }
        let wanted = if entry.device.shareable { Some(share(entry.device, &ask.capacity)?) } else { None };
        for (name, amount) in wanted.iter().flatten() {
            let own = self.shares.get(&(which, Arc::clone(name))).copied().unwrap_or_default();
            let others = match which {
                Which::Published(at) => self.scene.ledger.share_used(at, name, holder),
                Which::Template(_) => Quantity::default(),
            };
            let whole = entry.device.capacity.get(name)?.value;
            if own.saturating_add(others).saturating_add(*amount) > whole {
                return None;
            }
        }
        let is_template = matches!(which, Which::Template(_));
        let counters = if is_template { &self.scene.profile.1.stock.counters } else { &self.scene.stock.counters };
        for (counter, amount) in entry.consumes.iter().filter(|_| !ours) {
            let own = self.counters.get(&(is_template, *counter)).copied().unwrap_or_default();
            let others =
                if is_template { Quantity::default() } else { self.scene.ledger.counter_used(*counter, holder) };
            if own.saturating_add(others).saturating_add(*amount) > *counters.get(*counter as usize)? {
                return None;
            }
        }
        Some(Taken { which, share: wanted, request: ask.name(), claim })
    }

    /// Counts a device as used, or no longer.
    fn book(&mut self, taken: &Taken, used: bool) {
        let Some(entry) = self.entry(taken.which) else { return };
        let change = |sum: &mut Quantity, amount: Quantity| {
            *sum = if used { sum.saturating_add(amount) } else { sum.saturating_sub(amount) };
        };
        for (name, amount) in taken.share.iter().flatten() {
            change(self.shares.entry((taken.which, Arc::clone(name))).or_default(), *amount);
        }
        let times = self.used.entry(taken.which).or_default();
        *times = if used { *times + 1 } else { times.saturating_sub(1) };
        let (first, gone) = (used && *times == 1, !used && *times == 0);
        if gone {
            self.used.remove(&taken.which);
        }
        if first || gone {
            for (counter, amount) in &entry.consumes {
                change(self.counters.entry((taken.template().is_some(), *counter)).or_default(), *amount);
            }
        }
    }

    /// Makes the device part of what constraints have in common; `None` if it differs. Returns the constraints.
    fn pin(&mut self, which: Which, entry: &Entry<'_>, ask: &Ask, claim: usize) -> Option<Vec<usize>> {
        let asked = self.claims.get(claim)?;
        let templates = matches!(which, Which::Template(_)).then_some(self.scene.profile.1);
        let mut pinned = Vec::new();
        for (at, (attribute, requests)) in asked.matching.iter().enumerate() {
            if !ask.is_among(requests) {
                continue;
            }
            let found = Common::of(entry, attribute, templates);
            let agrees = match (&found, self.common.get(&(claim, at))) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(found), Some((common, _))) => found == common,
            };
            let Some(found) = found.filter(|_| agrees) else {
                self.unpin(claim, &pinned);
                return None;
            };
            self.common.entry((claim, at)).or_insert((found, 0)).1 += 1;
            pinned.push(at);
        }
        Some(pinned)
    }

    fn unpin(&mut self, claim: usize, pinned: &[usize]) {
        for at in pinned {
            let Some(common) = self.common.get_mut(&(claim, *at)) else { continue };
            common.1 = common.1.saturating_sub(1);
            if common.1 == 0 {
                self.common.remove(&(claim, *at));
            }
        }
    }
}
