//! Opening the nodes that a planner wants: the same checks as for any other claim.

use super::{Placer, surroundings};
use crate::batch::{Batch, Run};
use crate::schedule::claim::{Deciding, Offer};
use crate::schedule::plan::PlannedNode;
use crate::schedule::topology::{Around, Verdict};
use crate::symbol::Bits;

impl Placer<'_, '_> {
    /// Opens a claim for the node and puts its pods there, as far as every constraint holds. Returns how many went
    /// in.
    pub(crate) fn open_planned(&mut self, node: &PlannedNode, batch: &Batch<'_>) -> u32 {
        let Some(pool) = self.pools.get(node.pool) else { return 0 };
        let view = pool.view;
        let mut others = pool.offerings.clone();
        others.and_not(&node.allowed);
        // While the node is filled its groups may use nothing else.
        let before: Vec<(u32, Vec<Bits>)> = node
            .pods
            .iter()
            .filter_map(|(group, _)| Some((*group, self.groups.get(*group as usize)?.dropped.clone())))
            .collect();
        for (group, _) in &node.pods {
            if let Some(group) = self.groups.get_mut(*group as usize) {
                group.drop_offerings(view, &others);
            }
        }
        let mut claim = None;
        let mut placed = 0;
        let places = node.pods.iter().flat_map(|(_, places)| places.iter().copied());
        for mut run in batch.runs(places) {
            while run.len() > 0 {
                let count = self.put_planned(run, node.pool, &mut claim);
                if count == 0 {
                    break;
                }
                placed += count;
                run.from += count;
            }
        }
        for (group, dropped) in before {
            if let Some(group) = self.groups.get_mut(group as usize) {
                group.dropped = dropped;
            }
        }
        placed
    }

    /// Puts pods from the front of the run on the claim, or opens it with one; returns how many.
    fn put_planned(&mut self, run: Run, pool_at: usize, claim: &mut Option<u32>) -> u32 {
        let Some(group) = self.groups.get(run.group as usize) else { return 0 };
        let Some((level, set)) = group.levels.first().and_then(|level| Some((level, *level.alternatives.first()?)))
        else {
            return 0;
        };
        let verdict = if group.demand.is_free() {
            None
        } else {
            let constraints = group.demand.constraints.get(..level.constraints).unwrap_or_default();
            let Some(strict) = level.strict.first() else { return 0 };
            let around = Around { pools: self.pools, views: self.views, symbols: self.symbols, sets: self.sets };
            let Ok(verdict) = self.topology.verdict(constraints, *strict, around) else { return 0 };
            Some(verdict)
        };
        let Some(at) = *claim else {
            let verdicts = verdict.map(|verdict| [Some(verdict)]);
            let Ok(opened) = self.open(run, 0, pool_at, verdicts.as_ref().map(<[Option<Verdict>; 1]>::as_slice)) else {
                return 0;
            };
            *claim = Some(self.opened(run.group, opened));
            return 1;
        };
        let Some(group) = self.groups.get(run.group as usize) else { return 0 };
        let Some(open) = self.claims.get_mut(at as usize) else { return 0 };
        let Some(asked) = self.sets.sets.get(set as usize) else { return 0 };
        let Some(around) = surroundings(self.pools, self.views, self.symbols, (pool_at, &self.reservations)) else {
            return 0;
        };
        let before = open.len();
        let count = match &verdict {
            None => open.add(around, (group, run.group), (asked, set), run.from, run.len()),
            Some(verdict) => {
                if !self.topology.claims(verdict, at as usize + 1, &Bits::default()).contains(at) {
                    return 0;
                }
                let Some(prices) = self.prices.get(around.pool.view) else { return 0 };
                let deciding = Deciding { around, topology: &self.topology, prices, claim: Some(at) };
                let offer = open.offer(deciding, (group, run.group), (asked, set), verdict, run.from);
                u32::from(offer == Offer::Taken)
            }
        };
        if count > 0 {
            self.went_in(run.group, at, Some(before), count);
        }
        count
    }
}
