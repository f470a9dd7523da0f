//! Groups whose pods go wherever they fit: many at once.

use super::{Placer, surroundings};
use crate::batch::Run;
use crate::schedule::claim::{Offer, OpenClaim};
use crate::schedule::topology::Site;
use crate::symbol::id_of;
use crate::taint::untolerated;

impl Placer<'_, '_> {
    /// Places pods from the front of the run at one step of the ladder; returns how many.
    pub(super) fn place_in_bulk(&mut self, run: Run, level: usize) -> u32 {
        match self.on_nodes(run, level) {
            0 => match self.on_claims(run, level) {
                0 => self.on_new_claim(run, level, None),
                placed => placed,
            },
            placed => placed,
        }
    }

    /// First existing node that takes one; as many pods as it takes.
    fn on_nodes(&mut self, run: Run, level: usize) -> u32 {
        let Some(group) = self.groups.get_mut(run.group as usize) else { return 0 };
        let Some(level) = group.levels.get_mut(level) else { return 0 };
        while level.node < self.nodes.nodes.len() {
            let at = level.node;
            let most = if self.devices.wants(run.group) { 1 } else { run.len() };
            let fitting = self.nodes.fitting(at, (&group.asked, group.shape), most);
            let suits = fitting > 0
                && self.nodes.tolerated(at, &group.shape.tolerations, level.ignore_preferred_taints)
                && level.alternatives.iter().any(|set| {
                    self.sets.sets.get(*set as usize).is_some_and(|set| self.nodes.meets(at, set, self.symbols))
                })
                && self.devices.on_node(run.group, self.nodes, at, self.symbols);
            if suits {
                self.nodes.place(at, group, run.from, fitting);
                self.record(run.group, Site::Node(id_of(at)), fitting);
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
        let mut refused = std::mem::take(&mut level.refused_claims);
        let Some(group) = self.groups.get(run.group as usize) else { return 0 };
        let Some(level) = group.levels.get(level_at) else { return 0 };
        let (mut placed, mut from) = (0, (0, 0));
        let mut host = 0;
        while let Some((seen, at)) = self.fullness.next_not_in(from, &refused) {
            from = (seen, at + 1);
            let Some(claim) = self.claims.get_mut(at as usize) else { continue };
            let Some(around) = surroundings(self.pools, self.views, self.symbols, (claim.pool, &self.reservations))
            else {
                continue;
            };
            let taints = &around.pool.source.taints;
            if level.alternatives.iter().all(|set| claim.surely_refuses(group, *set))
                || untolerated(taints, &group.shape.tolerations, level.ignore_preferred_taints).is_some()
            {
                refused.insert(at);
                continue;
            }
            // Up to and including the pod with which the next claim becomes the emptier one.
            let most = match self.fullness.next_not_in(from, &refused) {
                Some((next, next_at)) => next.saturating_sub(seen) + u32::from(at < next_at),
                None => run.len(),
            };
            let wants_devices = self.devices.wants(run.group);
            let most = if wants_devices { 1 } else { most.clamp(1, run.len()) };
            placed = level
                .alternatives
                .iter()
                .filter_map(|set| Some((self.sets.sets.get(*set as usize)?, *set)))
                .map(|asked| {
                    if !wants_devices {
                        return claim.add(around, (group, run.group), asked, run.from, most);
                    }
                    let add = |claim: &mut OpenClaim| claim.add_one(around, (group, run.group), asked, run.from);
                    u32::from(self.devices.offer(claim, around, (run.group, asked.0), add) == Offer::Taken)
                })
                .find(|count| *count > 0)
                .unwrap_or(0);
            if placed > 0 {
                host = at;
                break;
            }
            refused.insert(at);
        }
        if let Some(level) = self.groups.get_mut(run.group as usize).and_then(|group| group.levels.get_mut(level_at)) {
            level.refused_claims = refused;
        }
        if placed > 0 {
            let before = self.claims.get(host as usize).map(|claim| claim.len() - placed);
            self.went_in(run.group, host, before, placed);
        }
        placed
    }
}
