//! Placing the queue: existing nodes, then claims of this round, then new claims, relaxing step by step.
//!
//! A group without topology is placed in bulk ([`bulk`]); one whose pods spread, attract or repel goes pod by pod, where the
//! counts of the moment let it ([`choosing`]).

mod bulk;
mod choosing;
mod open;
mod planned;

use std::sync::Arc;

use super::claim::{Narrowed, OpenClaim, Surroundings, least, slots_among};
use super::dra::Devices;
use super::existing::ExistingNodes;
use super::finish::Outcome;
use super::fullness::Fullness;
use super::group::{Group, RequirementSets};
use super::pool::Pool;
use super::prices::Prices;
use super::reservations::Reservations;
use super::topology::{Around, Site, Topology};
use super::unplaced::Rejected;
use crate::batch::{Batch, Run};
use crate::catalog::View;
use crate::explain::Blocker;
use crate::symbol::{SymbolSet, Symbols, ValueSet, id_of};
use crate::taint::untolerated;

/// The state of one round's placing.
#[derive(Debug)]
pub(crate) struct Placer<'r, 'a> {
    pub(crate) pools: &'r mut [Pool<'a>],
    pub(crate) views: &'r [View<'a>],
    pub(crate) symbols: &'r Symbols,
    pub(crate) sets: &'r RequirementSets,
    pub(crate) nodes: &'r mut ExistingNodes<'a>,
    pub(crate) groups: &'r mut [Group<'a>],
    pub(crate) min_values: MinValues,
    pub(crate) claims: Vec<OpenClaim>,
    /// What a fresh claim of a pool looks like under a requirement set; by pool, then set.
    pub(crate) fresh: Vec<Vec<Option<Fresh>>>,
    pub(crate) topology: Topology<'a>,
    /// By view; empty without topology.
    pub(crate) prices: Vec<Prices>,
    /// The claims by number of pods.
    pub(crate) fullness: Fullness,
    pub(crate) reservations: Reservations,
    pub(crate) devices: Devices<'a>,
}

/// What minValues mean for what is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MinValues {
    /// A new claim that does not meet them is not opened.
    Strict,
    /// A new claim starts with as many values as its first pod leaves, and keeps those.
    BestEffort,
    /// They keep no pod from being placed.
    GivenUp,
}

/// A NodePool's template narrowed by a requirement set.
#[derive(Clone, Debug)]
pub(crate) enum Fresh {
    /// No type is left.
    Nothing,
    /// What is left, before the group's filtered offerings, limits and fit.
    Some(Box<Narrowed>),
}

impl<'a> Placer<'_, 'a> {
    /// Places the queue; returns the places in it that found none, in order.
    pub(crate) fn run(&mut self, runs: Vec<Run>) -> Vec<Run> {
        let mut queue = runs;
        loop {
            let mut left = Vec::new();
            let mut progress = false;
            for mut run in queue {
                let placed = self.place(run);
                progress |= placed > 0;
                run.from += placed;
                if run.len() > 0 {
                    left.push(run);
                }
            }
            if left.is_empty() || !progress {
                return left;
            }
            queue = left;
        }
    }

    /// Places pods of one group from the front of the run; returns how many.
    fn place(&mut self, run: Run) -> u32 {
        let mut placed = 0;
        while placed < run.len() {
            let rest = Run { from: run.from + placed, ..run };
            let count = self.place_some(rest);
            if count == 0 {
                break;
            }
            placed += count;
        }
        placed
    }

    /// Places one pod or more at the first step that has room for one.
    fn place_some(&mut self, run: Run) -> u32 {
        let Some(group) = self.groups.get(run.group as usize) else { return 0 };
        if group.refused.is_some() {
            return 0;
        }
        for level in 0..group.levels.len() {
            let free = self.groups.get(run.group as usize).is_none_or(|group| group.demand.is_free());
            let placed = if free { self.place_in_bulk(run, level) } else { self.place_choosing(run, level) };
            if placed > 0 {
                return placed;
            }
        }
        0
    }

    /// Takes back the claims that cannot be launched. If the pods of one may find another way (`retry`), they come back
    /// as runs and their groups lose the offerings that policies removed; otherwise they are rejected. The other claims
    /// stay open.
    pub(crate) fn withdraw(
        &mut self,
        claims: Vec<OpenClaim>,
        outcomes: &[Outcome],
        (retry, batch): (bool, &Batch<'_>),
        rejected: &mut Vec<Rejected>,
    ) -> Vec<Run> {
        let mut back: Vec<u32> = Vec::new();
        for (mut claim, outcome) in claims.into_iter().zip(outcomes) {
            let Outcome::Rejected(blocker, removed) = outcome else {
                self.claims.push(claim);
                continue;
            };
            let Some(pool) = self.pools.get_mut(claim.pool) else { continue };
            let view = pool.view;
            pool.limits.refund(&mut claim.load.charge);
            self.reservations.release(claim.load.ticket);
            self.devices.withdraw(claim.load.devices);
            if !(retry && outcome.leaves_another_way()) {
                rejected.push((claim.pods, Arc::clone(&pool.source.name), blocker.clone()));
                continue;
            }
            for pod in claim.pods.iter().filter_map(|at| batch.pods.get(*at as usize)) {
                if let Some(group) = self.groups.get_mut(pod.group as usize) {
                    group.drop_offerings(view, removed);
                }
            }
            back.extend(claim.pods);
        }
        // Indexes of claims moved and limits came back: what is remembered about both is void.
        for level in self.groups.iter_mut().flat_map(|group| &mut group.levels) {
            level.forget_claims();
        }
        if retry {
            self.count_anew(batch);
        }
        batch.runs(back)
    }

    /// Lets minValues, where they are but a wish, no longer keep a pod pending. Returns whether that may place further ones.
    pub(crate) fn give_up_min_values(&mut self) -> bool {
        let wished = self.pools.iter().any(|pool| pool.template.has_min_values());
        if self.min_values != MinValues::BestEffort || !wished {
            return false;
        }
        self.min_values = MinValues::GivenUp;
        for at in 0..self.claims.len() {
            if let Some(claim) = self.claims.get_mut(at).filter(|claim| claim.requirements.has_min_values()) {
                claim.requirements = claim.requirements.without_min_values();
                self.charge(id_of(at));
            }
        }
        for level in self.groups.iter_mut().flat_map(|group| &mut group.levels) {
            level.forget_claims();
        }
        true
    }

    /// Wishes again for the minValues of the NodePools; what the claims do not have is lowered when they are finished.
    pub(crate) fn wish_for_min_values(&mut self, claims: &mut [OpenClaim]) {
        if self.min_values != MinValues::GivenUp {
            return;
        }
        self.min_values = MinValues::BestEffort;
        for claim in claims {
            let Some(pool) = self.pools.get(claim.pool) else { continue };
            for (key, wished) in pool.template.iter().filter(|(_, values)| values.min_values.is_some()) {
                let own = claim.requirements.get(key).cloned().unwrap_or_default();
                claim.requirements.set(key, ValueSet { min_values: wished.min_values, ..own });
            }
        }
    }

    /// Orders and counts the claims that are left, and the pods on nodes, from the beginning.
    fn count_anew(&mut self, batch: &Batch<'_>) {
        self.topology.reset();
        self.fullness = Fullness::default();
        for at in 0..self.claims.len() {
            let Some(claim) = self.claims.get(at) else { continue };
            let pods = claim.pods.clone();
            self.fullness.changed(id_of(at), None, claim.len());
            self.narrowed(id_of(at));
            for pod in pods {
                if let Some(pod) = batch.pods.get(pod as usize) {
                    self.record(pod.group, Site::Claim(id_of(at)), 1);
                }
            }
        }
        for at in 0..self.nodes.nodes.len() {
            let pods = self.nodes.nodes.get(at).map(|node| node.pods.clone()).unwrap_or_default();
            for pod in pods {
                if let Some(pod) = batch.pods.get(pod as usize) {
                    self.record(pod.group, Site::Node(id_of(at)), 1);
                }
            }
        }
    }

    /// A claim's requirements, types or pods changed.
    fn narrowed(&mut self, claim: u32) {
        self.charge(claim);
        if let Some((open, pool)) = self.claims.get(claim as usize).and_then(|c| Some((c, self.pools.get(c.pool)?))) {
            self.devices.keep(open.load.devices, pool.view, &open.types);
        }
        if self.topology.is_empty() {
            return;
        }
        let around = Around { pools: self.pools, views: self.views, symbols: self.symbols, sets: self.sets };
        if let Some(open) = self.claims.get(claim as usize) {
            self.topology.narrowed(claim, &open.requirements, around);
        }
    }

    /// Charges a claim for what it has become: its NodePool's limits, and a slot of a reservation.
    fn charge(&mut self, at: u32) {
        let Some(pool_at) = self.claims.get(at as usize).map(|claim| claim.pool) else { return };
        let Some(around) = surroundings(self.pools, self.views, self.symbols, (pool_at, &self.reservations)) else {
            return;
        };
        let Some(claim) = self.claims.get_mut(at as usize) else { return };
        let among =
            claim.load.reserved.then(|| slots_among(around, (&claim.requirements, &claim.offerings), &claim.types));
        if !around.pool.limits.is_unlimited() {
            let new = least(around, &claim.requirements, &claim.types);
            if let Some(pool) = self.pools.get_mut(pool_at) {
                pool.limits.recharge(&mut claim.load.charge, new);
            }
        }
        if let Some(among) = among {
            self.reservations.hold(&mut claim.load.ticket, among);
        }
    }

    /// Counts placed pods of a group wherever somebody counts them.
    fn record(&mut self, group: u32, site: Site, pods: u32) {
        let Some(group) = self.groups.get(group as usize) else { return };
        if group.demand.is_uncounted() {
            return;
        }
        let claim = match site {
            Site::Claim(at) => self.claims.get(at as usize),
            Site::Node(_) => None,
        };
        let pool = claim.and_then(|claim| self.pools.get(claim.pool));
        let symbols = self.symbols;
        self.topology.record(&group.demand, site, pods, |sets, filter| {
            let (Some(claim), Some(pool)) = (claim, pool) else { return false };
            let meets = |set: &SymbolSet| claim.requirements.compatible(set, &pool.allow_undefined, symbols).is_ok();
            (sets.is_empty() || sets.iter().any(meets))
                && filter.tolerations.is_none_or(|ours| untolerated(&pool.source.taints, ours, true).is_none())
        });
    }

    /// What the constraints of a group, fully relaxed, leave of a NodePool.
    pub(crate) fn explain(&self, group: &Group<'_>, pool: Surroundings<'_, '_>) -> Option<Blocker> {
        let level = group.levels.last()?;
        let around = Around { pools: self.pools, views: self.views, symbols: self.symbols, sets: self.sets };
        let constraints = group.demand.constraints.get(..level.constraints)?;
        let nodes = id_of(self.nodes.nodes.len() + self.claims.len());
        self.topology.explain(constraints, *level.strict.last()?, around, pool, nodes)
    }

    /// Pods went onto a claim that had `before` pods, or none because it is new.
    fn went_in(&mut self, group: u32, claim: u32, before: Option<u32>, pods: u32) {
        let now = self.claims.get(claim as usize).map_or(0, OpenClaim::len);
        self.fullness.changed(claim, before, now);
        self.narrowed(claim);
        self.record(group, Site::Claim(claim), pods);
    }

    fn surroundings(&self, pool: usize) -> Option<Surroundings<'_, 'a>> {
        surroundings(self.pools, self.views, self.symbols, (pool, &self.reservations))
    }
}

fn surroundings<'r, 'a>(
    pools: &'r [Pool<'a>],
    views: &'r [View<'a>],
    symbols: &'r Symbols,
    (pool, reservations): (usize, &'r Reservations),
) -> Option<Surroundings<'r, 'a>> {
    let pool = pools.get(pool)?;
    Some(Surroundings { pool, view: views.get(pool.view)?, symbols, reservations: Some(reservations) })
}
