//! Groups whose pods look at where others are: one at a time, by the counts of the moment.

use super::{Placer, surroundings};
use crate::batch::Run;
use crate::schedule::claim::{Deciding, Offer, OpenClaim};
use crate::schedule::topology::{Around, Axis, Constraint, Site, Verdict};
use crate::symbol::{Bits, id_of};
use crate::taint::untolerated;

impl Placer<'_, '_> {
    /// Places one pod at one step of the ladder, if any place is allowed now; returns how many were placed.
    pub(super) fn place_choosing(&mut self, run: Run, level_at: usize) -> u32 {
        let Some(group) = self.groups.get(run.group as usize) else { return 0 };
        let Some(level) = group.levels.get(level_at) else { return 0 };
        let constraints = group.demand.constraints.get(..level.constraints).unwrap_or_default().to_vec();
        let strict = level.strict.clone();
        let failed_at = level.failed_at;
        if failed_at == Some(self.state_of(&constraints)) {
            return 0;
        }
        for set in &strict {
            self.settle_for(&constraints, *set);
        }
        let around = Around { pools: self.pools, views: self.views, symbols: self.symbols, sets: self.sets };
        let verdicts: Vec<Option<Verdict>> =
            strict.iter().map(|set| self.topology.verdict(&constraints, *set, around).ok()).collect();
        if verdicts.iter().any(Option::is_some)
            && (self.on_allowed_node(run, level_at, &verdicts)
                || self.on_allowed_claim(run, level_at, &verdicts)
                || self.on_new_claim(run, level_at, Some(&verdicts)) > 0)
        {
            return 1;
        }
        let state = self.state_of(&constraints);
        if let Some(level) = self.groups.get_mut(run.group as usize).and_then(|group| group.levels.get_mut(level_at)) {
            level.failed_at = Some(state);
        }
        0
    }

    /// What a failure depends on: while neither the counts nor the number of claims change, it fails again.
    fn state_of(&self, constraints: &[Constraint]) -> (u64, u32) {
        (self.topology.version(constraints), id_of(self.claims.len()))
    }

    /// Makes claims decide on a domain where undecided ones stand in the way: all that hold pods to be kept away from, and
    /// one that holds a pod to be joined.
    fn settle_for(&mut self, constraints: &[Constraint], strict: u32) {
        for constraint in constraints {
            let around = Around { pools: self.pools, views: self.views, symbols: self.symbols, sets: self.sets };
            let Some(set) = self.sets.sets.get(strict as usize) else { continue };
            let Some(all) = self.topology.waits_for(*constraint, set, around) else { continue };
            let Some(counter) = self.topology.counter(constraint.counter) else { continue };
            let Axis::Key(axis) = counter.axis else { continue };
            let Some(key) = self.topology.axes.get(axis as usize).map(|axis| axis.key) else { continue };
            // Where one has to be kept away from is best where others are already.
            let better = if all { counter.taken().clone() } else { Bits::default() };
            let own = set.get(key).cloned();
            for at in self.topology.waiting(constraint.counter) {
                let Some(claim) = self.claims.get_mut(at as usize) else { continue };
                let Some(around) = surroundings(self.pools, self.views, self.symbols, (claim.pool, &self.reservations))
                else {
                    continue;
                };
                let Some(prices) = self.prices.get(around.pool.view) else { continue };
                let integers = self.symbols.integers(key);
                let among = |value: u32| all || own.as_ref().is_none_or(|own| own.has(value, integers));
                let decided = claim.settle(around, prices, key, (among, &better));
                if decided {
                    self.narrowed(at);
                    if !all {
                        break;
                    }
                }
            }
        }
    }

    /// The first existing node that the constraints allow and that takes the pod.
    fn on_allowed_node(&mut self, run: Run, level_at: usize, verdicts: &[Option<Verdict>]) -> bool {
        let Some(group) = self.groups.get_mut(run.group as usize) else { return false };
        let Some(level) = group.levels.get_mut(level_at) else { return false };
        let mut open = Bits::all(self.nodes.nodes.len());
        open.and_not(&level.refused_nodes);
        if open.is_empty() {
            return false;
        }
        let allowed = |verdict: &Option<Verdict>| {
            verdict.as_ref().map(|verdict| self.topology.nodes(verdict, &open)).unwrap_or_default()
        };
        let by_alternative: Vec<Bits> = verdicts.iter().map(allowed).collect();
        let mut some = Bits::default();
        by_alternative.iter().for_each(|nodes| some.or(nodes));
        for node in some.iter() {
            let at = node as usize;
            let meets = |set: &u32| {
                self.sets.sets.get(*set as usize).is_some_and(|set| self.nodes.meets(at, set, self.symbols))
            };
            if self.nodes.fitting(at, (&group.asked, group.shape), 1) == 0
                || !self.nodes.tolerated(at, &group.shape.tolerations, level.ignore_preferred_taints)
                || !level.alternatives.iter().any(meets)
            {
                level.refused_nodes.insert(node);
                continue;
            }
            let mut suiting = level.alternatives.iter().zip(&by_alternative);
            if suiting.any(|(set, nodes)| nodes.contains(node) && meets(set))
                && self.devices.on_node(run.group, self.nodes, at, self.symbols)
            {
                self.nodes.place(at, group, run.from, 1);
                self.record(run.group, Site::Node(node), 1);
                return true;
            }
        }
        false
    }

    /// The emptiest claim that the constraints allow, or that can decide for what they allow, and that takes the pod.
    fn on_allowed_claim(&mut self, run: Run, level_at: usize, verdicts: &[Option<Verdict>]) -> bool {
        let Some(group) = self.groups.get_mut(run.group as usize) else { return false };
        let Some(level) = group.levels.get_mut(level_at) else { return false };
        let mut refused = std::mem::take(&mut level.refused_claims);
        let Some(group) = self.groups.get(run.group as usize) else { return false };
        let Some(level) = group.levels.get(level_at) else { return false };
        let allowed = |verdict: &Option<Verdict>| {
            let claims = |verdict| self.topology.claims(verdict, self.claims.len(), &refused);
            verdict.as_ref().map(claims).unwrap_or_default()
        };
        let by_alternative: Vec<Bits> = verdicts.iter().map(allowed).collect();
        let mut some = Bits::default();
        by_alternative.iter().for_each(|claims| some.or(claims));
        let (mut from, mut host) = ((0, 0), None);
        while let Some((pods, at)) = self.fullness.next_in(from, &some) {
            from = (pods, at + 1);
            let Some(claim) = self.claims.get_mut(at as usize) else { continue };
            let Some(around) = surroundings(self.pools, self.views, self.symbols, (claim.pool, &self.reservations))
            else {
                continue;
            };
            let Some(prices) = self.prices.get(around.pool.view) else { continue };
            let taints = &around.pool.source.taints;
            if untolerated(taints, &group.shape.tolerations, level.ignore_preferred_taints).is_some() {
                refused.insert(at);
                continue;
            }
            let deciding = Deciding { around, topology: &self.topology, prices, claim: Some(at) };
            let mut never = true;
            for ((set, claims), verdict) in level.alternatives.iter().zip(&by_alternative).zip(verdicts) {
                let (Some(asked), Some(verdict)) = (self.sets.sets.get(*set as usize), verdict) else {
                    never = false;
                    continue;
                };
                if !claims.contains(at) {
                    never = false;
                    continue;
                }
                let go =
                    |claim: &mut OpenClaim| claim.offer(deciding, (group, run.group), (asked, *set), verdict, run.from);
                let answer = if self.devices.wants(run.group) {
                    self.devices.offer(claim, around, (run.group, asked), go)
                } else {
                    go(claim)
                };
                match answer {
                    Offer::Taken => {
                        host = Some((at, pods));
                        break;
                    }
                    Offer::NotNow => never = false,
                    Offer::Never => {}
                }
            }
            if host.is_some() {
                break;
            }
            if never {
                refused.insert(at);
            }
        }
        if let Some(level) = self.groups.get_mut(run.group as usize).and_then(|group| group.levels.get_mut(level_at)) {
            level.refused_claims = refused;
        }
        let Some((at, before)) = host else { return false };
        self.went_in(run.group, at, Some(before), 1);
        true
    }
}
