//! Opening claims.

use super::{Fresh, MinValues, Placer, surroundings};
use crate::batch::Run;
use crate::schedule::claim::{Deciding, Load, Narrowed, Offer, OpenClaim, first_unmet, fit, narrow};
use crate::schedule::topology::Verdict;
use crate::symbol::id_of;
use crate::taint::untolerated;

impl Placer<'_, '_> {
    /// A new claim of the first NodePool that can host one pod, with that pod. `verdicts` are what the pod's constraints
    /// leave, by alternative; `None` = it has no constraint.
    pub(super) fn on_new_claim(&mut self, run: Run, level_at: usize, verdicts: Option<&[Option<Verdict>]>) -> u32 {
        for pool_at in 0..self.pools.len() {
            let Some(level) = self.groups.get(run.group as usize).and_then(|group| group.levels.get(level_at)) else {
                return 0;
            };
            if level.dead_pools.contains(id_of(pool_at)) {
                continue;
            }
            match self.open(run, level_at, pool_at, verdicts) {
                Ok(claim) => {
                    self.opened(run.group, claim);
                    return 1;
                }
                Err(Offer::Never) => {
                    if let Some(level) =
                        self.groups.get_mut(run.group as usize).and_then(|g| g.levels.get_mut(level_at))
                    {
                        level.dead_pools.insert(id_of(pool_at));
                    }
                }
                Err(_) => {}
            }
        }
        0
    }

    /// Takes a new claim with its first pod among those of the round; returns its index.
    pub(super) fn opened(&mut self, group: u32, claim: OpenClaim) -> u32 {
        if let Some(pool) = self.pools.get_mut(claim.pool) {
            pool.limits.open_node();
        }
        self.claims.push(claim);
        let at = id_of(self.claims.len() - 1);
        self.went_in(group, at, None, 1);
        at
    }

    pub(super) fn open(
        &mut self,
        run: Run,
        level_at: usize,
        pool_at: usize,
        verdicts: Option<&[Option<Verdict>]>,
    ) -> Result<OpenClaim, Offer> {
        let alternatives = {
            let group = self.groups.get(run.group as usize).ok_or(Offer::Never)?;
            let level = group.levels.get(level_at).ok_or(Offer::Never)?;
            let pool = self.pools.get(pool_at).ok_or(Offer::Never)?;
            let taints = &pool.source.taints;
            if pool.limits.no_nodes_left()
                || untolerated(taints, &group.shape.tolerations, level.ignore_preferred_taints).is_some()
            {
                return Err(Offer::Never);
            }
            level.alternatives.clone()
        };
        let mut failure = Offer::Never;
        for (at, set) in alternatives.into_iter().enumerate() {
            let verdict = match verdicts {
                None => None,
                Some(verdicts) => match verdicts.get(at).and_then(Option::as_ref) {
                    Some(verdict) if self.topology.suits_new_node(verdict) => Some(verdict),
                    _ => {
                        failure = Offer::NotNow;
                        continue;
                    }
                },
            };
            match self.open_with(run, pool_at, set, verdict) {
                Ok(claim) => return Ok(claim),
                Err(Offer::NotNow) => failure = Offer::NotNow,
                Err(_) => {}
            }
        }
        Err(failure)
    }

    fn open_with(&mut self, run: Run, pool_at: usize, set: u32, verdict: Option<&Verdict>) -> Result<OpenClaim, Offer> {
        let mut narrowed = match self.fresh(pool_at, set) {
            Some(Fresh::Some(narrowed)) => (**narrowed).clone(),
            _ => return Err(Offer::Never),
        };
        let around = self.surroundings(pool_at).ok_or(Offer::Never)?;
        let group = self.groups.get(run.group as usize).ok_or(Offer::Never)?;
        if let Some(dropped) = group.dropped_of(around.pool.view) {
            narrowed.offerings.and_not(dropped);
            narrowed.types.and(&around.view.columns.types_with(&narrowed.offerings));
        }
        narrowed.types.and(&around.pool.holds_daemons);
        let mut failure = Offer::Never;
        for way in self.reservations.ways(around.pool.view, around.view, narrowed) {
            match self.open_way(run, pool_at, set, verdict, way) {
                Ok(claim) => return Ok(claim),
                Err(Offer::NotNow) => failure = Offer::NotNow,
                Err(_) => {}
            }
        }
        Err(failure)
    }

    /// Opens a claim that uses reservations, or one that does not.
    fn open_way(
        &mut self,
        run: Run,
        pool_at: usize,
        set: u32,
        verdict: Option<&Verdict>,
        (narrowed, reserved): (Narrowed, bool),
    ) -> Result<OpenClaim, Offer> {
        let around = surroundings(self.pools, self.views, self.symbols, (pool_at, &self.reservations));
        let around = around.ok_or(Offer::Never)?;
        let group = self.groups.get(run.group as usize).ok_or(Offer::Never)?;
        let load = Load::new(group.requests.len(), reserved);
        let mut claim = OpenClaim::new(pool_at, narrowed, load, set, run.group);
        if self.min_values == MinValues::GivenUp {
            claim.requirements = claim.requirements.without_min_values();
        }
        if self.min_values == MinValues::BestEffort && claim.requirements.has_min_values() {
            let without = claim.requirements.without_min_values();
            let (_, types) = fit(around, (&without, &claim.offerings), &claim.load, group, &claim.types, 1);
            while let Some((key, have)) = first_unmet(around, &claim.requirements, &types) {
                let mut values = claim.requirements.get(key).cloned().unwrap_or_default();
                values.min_values = Some(have);
                claim.requirements.set(key, values);
                claim.min_values_relaxed = true;
            }
        }
        let asked = self.sets.sets.get(set as usize).ok_or(Offer::Never)?;
        let deciding = match verdict {
            None => None,
            Some(verdict) => {
                let prices = self.prices.get(around.pool.view).ok_or(Offer::Never)?;
                Some((Deciding { around, topology: &self.topology, prices, claim: None }, verdict))
            }
        };
        let go = |claim: &mut OpenClaim| match deciding {
            None => claim.add_one(around, (group, run.group), (asked, set), run.from),
            Some((deciding, verdict)) => claim.offer(deciding, (group, run.group), (asked, set), verdict, run.from),
        };
        let answer = if self.devices.wants(run.group) {
            self.devices.offer(&mut claim, around, (run.group, asked), go)
        } else {
            go(&mut claim)
        };
        if answer == Offer::Taken { Ok(claim) } else { Err(answer) }
    }

    /// The pool's template under a requirement set, worked out once.
    pub(crate) fn fresh(&mut self, pool_at: usize, set: u32) -> Option<&Fresh> {
        let slot = self.fresh.get(pool_at)?.get(set as usize)?;
        if slot.is_none() {
            let around = self.surroundings(pool_at)?;
            let start = (&around.pool.template, &around.pool.types, &around.pool.offerings);
            let made = match narrow(around, start, self.sets.sets.get(set as usize)?, None) {
                Some(narrowed) => Fresh::Some(Box::new(narrowed)),
                None => Fresh::Nothing,
            };
            *self.fresh.get_mut(pool_at)?.get_mut(set as usize)? = Some(made);
        }
        self.fresh.get(pool_at)?.get(set as usize)?.as_ref()
    }
}
