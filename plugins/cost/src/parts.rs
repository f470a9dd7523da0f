//! Pod groups as parts: a group that must spread over zones is planned zone by zone.

use alloc::vec::Vec;

use crate::kinds::{Columns, TierSlots};
use crate::model::{Left, Part};
use crate::{Problem, model};

/// Parts of the groups that some slot of the tier can hold, and the requests of one pod of each.
pub(crate) fn parts(
    problem: &Problem<'_>,
    left: &Left,
    columns: &Columns<'_>,
    slots: &TierSlots,
) -> (Vec<Part>, Vec<u32>) {
    let mut out: Vec<Part> = Vec::new();
    let mut turn = 0;
    for group in 0..problem.pods.count.len() {
        let count = left.pods.get(group).copied().unwrap_or(0);
        let most = problem.max_per_node.get(group).copied().unwrap_or(u32::MAX);
        let Some(need) = columns.need(group).filter(|_| count > 0 && most > 0) else { continue };
        let own = || problem.candidates.row(group).iter().map(|slot| *slot as usize);
        let holds = |slot: &usize| slots.usable(*slot) && columns.fits(*slot, &need);
        let skew = problem.zone_skew.get(group).copied().unwrap_or(0);
        let part = |zone, count| Part { group, zone, count, most, skew, siblings: (0, 0), conflicts: Vec::new() };
        if skew == 0 {
            if own().any(|slot| holds(&slot)) {
                out.push(part(None, count));
            }
            continue;
        }
        // A group that a higher tier has begun to spread is left to the host, which knows where those pods went.
        if problem.pods.count.get(group) != Some(&count) {
            continue;
        }
        let zone = |slot: usize| problem.slots.zone.get(slot).copied();
        let mut zones: Vec<u32> = own().filter_map(zone).collect();
        zones.sort_unstable();
        zones.dedup();
        let mut open: Vec<u32> = own().filter(holds).filter_map(zone).collect();
        open.sort_unstable();
        open.dedup();
        if open.is_empty() {
            continue;
        }
        let size = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let (mut share, mut over) = (count / size, count % size);
        if open.len() < zones.len() && (share >= skew) {
            // A zone that stays empty holds the others down to the skew.
            (share, over) = (skew, 0);
        }
        let from = out.len();
        for (at, zone) in open.iter().enumerate() {
            let extra = u32::from((at as u32 + size - turn % size) % size < over);
            out.push(part(Some(*zone), share + extra));
        }
        turn = (turn + over) % size;
        let to = out.len();
        out.iter_mut().skip(from).for_each(|part| part.siblings = (from, to));
    }
    let need: Vec<u32> = out.iter().flat_map(|part| columns.need(part.group).unwrap_or_default()).collect();
    add_conflicts(problem, &mut out);
    (out, need)
}

/// Conflicts between groups, both ways, as conflicts between their parts.
fn add_conflicts(problem: &Problem<'_>, parts: &mut [Part]) {
    if problem.conflicts.member.is_empty() {
        return;
    }
    let groups = problem.pods.count.len();
    let mut against: Vec<Vec<u64>> = (0..groups).map(|_| model::mask(groups)).collect();
    for (group, row) in problem.conflicts.iter().enumerate() {
        for other in row.iter().map(|other| *other as usize).filter(|other| *other < groups && group < groups) {
            if let Some(mask) = against.get_mut(group) {
                model::set(mask, other);
            }
            if let Some(mask) = against.get_mut(other) {
                model::set(mask, group);
            }
        }
    }
    let of: Vec<usize> = parts.iter().map(|part| part.group).collect();
    for (at, part) in parts.iter_mut().enumerate() {
        let Some(mask) = against.get(part.group) else { continue };
        let conflicting = of.iter().enumerate().filter(|(other, group)| *other != at && model::contains(mask, **group));
        part.conflicts = conflicting.filter_map(|(other, _)| u32::try_from(other).ok()).collect();
        // A group against itself is one on a node.
        if model::contains(mask, part.group) {
            part.most = 1;
        }
    }
}
