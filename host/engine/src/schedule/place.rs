//! Placing the queue: existing nodes, then claims of this round, then new claims, relaxing step by step.

use std::cmp::Reverse;
use std::sync::Arc;

use super::claim::{Narrowed, OpenClaim, Surroundings, first_unmet, fit, narrow};
use super::existing::ExistingNodes;
use super::finish::Outcome;
use super::group::{Group, RequirementSets};
use super::pool::Pool;
use super::unplaced::Rejected;
use crate::batch::{Batch, Run};
use crate::catalog::View;
use crate::symbol::{Bits, Symbols, id_of};
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
    pub(crate) best_effort_min_values: bool,
    pub(crate) claims: Vec<OpenClaim>,
    /// What a fresh claim of a pool looks like under a requirement set; by pool, then set.
    pub(crate) fresh: Vec<Vec<Option<Fresh>>>,
}

/// A NodePool's template narrowed by a requirement set.
#[derive(Clone, Debug)]
pub(crate) enum Fresh {
    /// No type is left.
    Nothing,
    /// What is left, before the group's filtered offerings, limits and fit.
    Some(Box<Narrowed>),
}

impl Placer<'_, '_> {
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
            let placed = match self.on_nodes(run, level) {
                0 => match self.on_claims(run, level) {
                    0 => self.on_new_claim(run, level),
                    placed => placed,
                },
                placed => placed,
            };
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
        let mut back: Vec<Run> = Vec::new();
        for (claim, outcome) in claims.into_iter().zip(outcomes) {
            let Outcome::Rejected(blocker, removed) = outcome else {
                self.claims.push(claim);
                continue;
            };
            let Some(pool) = self.pools.get_mut(claim.pool) else { continue };
            let view = pool.view;
            pool.limits.refund(&claim.charged);
            if !(retry && outcome.leaves_another_way()) {
                rejected.push((claim.pods, Arc::clone(&pool.source.name), blocker.clone()));
                continue;
            }
            for at in claim.pods {
                let Some(pod) = batch.pods.get(at as usize) else { continue };
                match back.last_mut() {
                    Some(Run { group, to, .. }) if *group == pod.group && *to == at => *to += 1,
                    _ => back.push(Run { group: pod.group, from: at, to: at + 1 }),
                }
                if let Some(group) = self.groups.get_mut(pod.group as usize) {
                    group.drop_offerings(view, removed);
                }
            }
        }
        // Indexes of claims moved and limits came back: what is remembered about both is void.
        for level in self.groups.iter_mut().flat_map(|group| &mut group.levels) {
            level.claims.clear();
            level.claims_seen = 0;
            level.dead_pools = Bits::default();
        }
        back
    }

    /// First existing node that takes one; as many pods as it takes.
    fn on_nodes(&mut self, run: Run, level: usize) -> u32 {
        let Some(group) = self.groups.get_mut(run.group as usize) else { return 0 };
        let Some(level) = group.levels.get_mut(level) else { return 0 };
        while level.node < self.nodes.nodes.len() {
            let at = level.node;
            let fitting = self.nodes.fitting(at, &group.asked, run.len());
            let suits = fitting > 0
                && self.nodes.tolerated(at, &group.shape.tolerations, level.ignore_preferred_taints)
                && level.alternatives.iter().any(|set| {
                    self.sets.sets.get(*set as usize).is_some_and(|set| self.nodes.meets(at, set, self.symbols))
                });
            if suits {
                self.nodes.place(at, &group.asked, run.from, fitting);
                return fitting;
            }
            level.node += 1;
        }
        0
    }

    /// Claims of this round, the one with fewest pods first; as many pods as go in before another has fewer.
    fn on_claims(&mut self, run: Run, level_at: usize) -> u32 {
        let Some(group) = self.groups.get_mut(run.group as usize) else { return 0 };
        let Some(level) = group.levels.get_mut(level_at) else { return 0 };
        let mut heap = std::mem::take(&mut level.claims);
        let first_new = level.claims_seen;
        level.claims_seen = id_of(self.claims.len());
        let Some(group) = self.groups.get(run.group as usize) else { return 0 };
        let Some(level) = group.levels.get(level_at) else { return 0 };
        let unseen = self.claims.iter().enumerate().skip(first_new as usize);
        // Claims that are known to be too full are not even queued: there may be many, and many groups.
        heap.extend(
            unseen
                .filter(|(_, claim)| !level.alternatives.iter().all(|set| claim.surely_refuses(group, *set)))
                .map(|(at, claim)| Reverse((claim.len(), id_of(at)))),
        );
        let mut placed = 0;
        while let Some(Reverse((seen, at))) = heap.pop() {
            let Some(claim) = self.claims.get_mut(at as usize) else { continue };
            if claim.len() != seen {
                heap.push(Reverse((claim.len(), at)));
                continue;
            }
            let Some(around) = surroundings(self.pools, self.views, self.symbols, claim.pool) else { continue };
            // Up to and including the pod with which the next claim becomes the emptier one.
            let most = match heap.peek() {
                Some(Reverse((next, next_at))) => next.saturating_sub(seen) + u32::from(at < *next_at),
                None => run.len(),
            };
            if untolerated(&around.pool.source.taints, &group.shape.tolerations, level.ignore_preferred_taints)
                .is_some()
            {
                continue;
            }
            let most = most.clamp(1, run.len());
            placed = level
                .alternatives
                .iter()
                .filter_map(|set| Some((self.sets.sets.get(*set as usize)?, *set)))
                .map(|asked| claim.add(around, (group, run.group), asked, run.from, most))
                .find(|count| *count > 0)
                .unwrap_or(0);
            if placed > 0 {
                heap.push(Reverse((claim.len(), at)));
                break;
            }
        }
        if let Some(level) = self.groups.get_mut(run.group as usize).and_then(|group| group.levels.get_mut(level_at)) {
            level.claims = heap;
        }
        placed
    }

    /// A new claim of the first NodePool that can host one pod, with that pod.
    fn on_new_claim(&mut self, run: Run, level_at: usize) -> u32 {
        for pool_at in 0..self.pools.len() {
            let Some(level) = self.groups.get(run.group as usize).and_then(|group| group.levels.get(level_at)) else {
                return 0;
            };
            if level.dead_pools.contains(id_of(pool_at)) {
                continue;
            }
            if let Some(mut claim) = self.open(run, level_at, pool_at) {
                if let Some(pool) = self.pools.get_mut(pool_at)
                    && let Some(view) = self.views.get(pool.view)
                {
                    claim.charged = pool.limits.charge(&view.columns.capacity, &claim.types);
                }
                self.claims.push(claim);
                return 1;
            }
            if let Some(level) = self.groups.get_mut(run.group as usize).and_then(|g| g.levels.get_mut(level_at)) {
                level.dead_pools.insert(id_of(pool_at));
            }
        }
        0
    }

    fn open(&mut self, run: Run, level_at: usize, pool_at: usize) -> Option<OpenClaim> {
        let alternatives = {
            let group = self.groups.get(run.group as usize)?;
            let level = group.levels.get(level_at)?;
            let pool = self.pools.get(pool_at)?;
            let taints = &pool.source.taints;
            if pool.limits.no_nodes_left()
                || untolerated(taints, &group.shape.tolerations, level.ignore_preferred_taints).is_some()
            {
                return None;
            }
            level.alternatives.clone()
        };
        alternatives.into_iter().find_map(|set| self.open_with(run, pool_at, set))
    }

    fn open_with(&mut self, run: Run, pool_at: usize, set: u32) -> Option<OpenClaim> {
        let Fresh::Some(narrowed) = self.fresh(pool_at, set)? else { return None };
        let mut narrowed = (**narrowed).clone();
        let around = surroundings(self.pools, self.views, self.symbols, pool_at)?;
        let group = self.groups.get(run.group as usize)?;
        if let Some(dropped) = group.dropped_of(around.pool.view) {
            narrowed.offerings.and_not(dropped);
            narrowed.types.and(&around.view.columns.types_with(&narrowed.offerings));
        }
        around.pool.limits.restrict(&around.view.columns.capacity, &mut narrowed.types);
        narrowed.types.and(&around.pool.holds_daemons);
        let resources = group.requests.len();
        let mut claim = OpenClaim::new(pool_at, narrowed, resources, set, run.group);
        if self.best_effort_min_values && claim.requirements.has_min_values() {
            let without = claim.requirements.without_min_values();
            let (_, types) = fit(around, &without, &claim.used, group, &claim.types, 1);
            while let Some((key, have)) = first_unmet(around, &claim.requirements, &types) {
                let mut values = claim.requirements.get(key).cloned().unwrap_or_default();
                values.min_values = Some(have);
                claim.requirements.set(key, values);
                claim.min_values_relaxed = true;
            }
        }
        let asked = self.sets.sets.get(set as usize)?;
        (claim.add(around, (group, run.group), (asked, set), run.from, 1) > 0).then_some(claim)
    }

    /// The pool's template under a requirement set, worked out once.
    pub(crate) fn fresh(&mut self, pool_at: usize, set: u32) -> Option<&Fresh> {
        let slot = self.fresh.get_mut(pool_at)?.get_mut(set as usize)?;
        if slot.is_none() {
            let around = surroundings(self.pools, self.views, self.symbols, pool_at)?;
            let start = (&around.pool.template, &around.pool.types, &around.pool.offerings);
            *slot = Some(match narrow(around, start, self.sets.sets.get(set as usize)?, None) {
                Some(narrowed) => Fresh::Some(Box::new(narrowed)),
                None => Fresh::Nothing,
            });
        }
        slot.as_ref()
    }
}

fn surroundings<'r, 'a>(
    pools: &'r [Pool<'a>],
    views: &'r [View<'a>],
    symbols: &'r Symbols,
    pool: usize,
) -> Option<Surroundings<'r, 'a>> {
    let pool = pools.get(pool)?;
    Some(Surroundings { pool, view: views.get(pool.view)?, symbols })
}
