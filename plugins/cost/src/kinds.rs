//! Kinds of node: slots that differ in nothing that matters are one, and those that another beats drop out.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::model::{Kind, Left, Part};
use crate::{Problem, model};

/// Costs from here on mean unknown or dropped: such a slot is not planned with.
const NO_COST: i64 = i64::MAX - 1;

/// The resources that some pod asks for, as columns.
pub(crate) struct Columns<'a> {
    problem: &'a Problem<'a>,
    /// Names of the further resources asked for; `None` where the slots say nothing of one.
    extra: Vec<(&'a [u64], Option<&'a [u64]>)>,
    gpu: bool,
    /// Bits that amounts are shifted right by, so that they fit 32.
    shift: Vec<u32>,
}

impl<'a> Columns<'a> {
    pub(crate) fn new(problem: &'a Problem<'a>) -> Self {
        let slots = |name: &str| problem.slots.extra.iter().find(|(other, _)| *other == name).map(|(_, room)| *room);
        let asked = problem.pods.extra.iter().filter(|(_, needs)| needs.iter().any(|need| *need > 0));
        let extra: Vec<_> = asked.map(|(name, needs)| (*needs, slots(name))).collect();
        let shift = |room: &[u64]| {
            let bits = 64 - room.iter().copied().max().unwrap_or(0).leading_zeros();
            bits.saturating_sub(31)
        };
        let mut shifts = alloc::vec![shift(problem.slots.cpu_milli), shift(problem.slots.memory_mib)];
        shifts.extend(extra.iter().map(|(_, room)| room.map_or(0, shift)));
        Self { problem, extra, gpu: problem.pods.gpu.iter().any(|gpu| *gpu > 0), shift: shifts }
    }

    /// Number of resources.
    pub(crate) fn dims(&self) -> usize {
        3 + usize::from(self.gpu) + self.extra.len()
    }

    /// Requests of one pod of the group; `None` when it asks for what no slot speaks of.
    pub(crate) fn need(&self, group: usize) -> Option<Vec<u32>> {
        let pods = &self.problem.pods;
        let up = |amount: u64, at: usize| {
            let shift = self.shift.get(at).copied().unwrap_or(0);
            let rounded = (amount >> shift) + u64::from(amount & ((1 << shift) - 1) != 0);
            u32::try_from(rounded).unwrap_or(u32::MAX)
        };
        let mut need = Vec::with_capacity(self.dims());
        need.push(1);
        need.push(up(pods.cpu_milli.get(group).copied()?, 0));
        need.push(up(pods.memory_mib.get(group).copied()?, 1));
        if self.gpu {
            need.push(pods.gpu.get(group).copied()?);
        }
        for (at, (needs, room)) in self.extra.iter().enumerate() {
            let amount = needs.get(group).copied().unwrap_or(0);
            if amount > 0 && room.is_none() {
                return None;
            }
            need.push(up(amount, at + 2));
        }
        Some(need)
    }

    /// What a node of the slot holds.
    fn room(&self, slot: usize) -> impl Iterator<Item = u32> + '_ {
        let slots = &self.problem.slots;
        let down = move |amount: Option<&u64>, at: usize| {
            let amount = amount.copied().unwrap_or(0) >> self.shift.get(at).copied().unwrap_or(0);
            u32::try_from(amount).unwrap_or(u32::MAX)
        };
        let pods = slots.pods.get(slot).copied().unwrap_or(0);
        let gpu = self.gpu.then(|| slots.gpu.get(slot).copied().unwrap_or(0));
        let extra = self.extra.iter().enumerate();
        [pods, down(slots.cpu_milli.get(slot), 0), down(slots.memory_mib.get(slot), 1)]
            .into_iter()
            .chain(gpu)
            .chain(extra.map(move |(at, (_, room))| down(room.and_then(|room| room.get(slot)), at + 2)))
    }

    pub(crate) fn fits(&self, slot: usize, need: &[u32]) -> bool {
        self.room(slot).zip(need).all(|(room, need)| *need <= room)
    }
}

/// Slots of one tier that a node may be opened on.
pub(crate) struct TierSlots {
    usable: Vec<bool>,
}

impl TierSlots {
    pub(crate) fn usable(&self, slot: usize) -> bool {
        self.usable.get(slot).copied().unwrap_or(false)
    }
}

/// Slots of the tier with a known cost, whose pool may open one.
pub(crate) fn slots_of_tier(problem: &Problem<'_>, left: &Left, tier: u32) -> TierSlots {
    let usable = |slot: usize| {
        let cost = problem.slots.cost.get(slot).copied().unwrap_or(i64::MAX);
        let Some(pool) = problem.slots.nodepool.get(slot) else { return false };
        let kind = kind(problem, slot, 0);
        cost < NO_COST
            && model::weight(problem, *pool) == tier
            && kind.nodes > 0
            && left.pools.get(*pool as usize).is_some_and(|left| left.allows(&kind))
    };
    TierSlots { usable: (0..problem.slots.cost.len()).map(usable).collect() }
}

fn kind(problem: &Problem<'_>, slot: usize, class: usize) -> Kind {
    let slots = &problem.slots;
    let cost = slots.cost.get(slot).copied().unwrap_or(i64::MAX).saturating_add(problem.node_cost_micro_usd);
    Kind {
        slot,
        pool: slots.nodepool.get(slot).map_or(usize::MAX, |pool| *pool as usize),
        class,
        cost: cost as f64,
        cpu_charged: slots.cpu_charged_milli.get(slot).copied().unwrap_or(0),
        memory_charged: slots.memory_charged_mib.get(slot).copied().unwrap_or(0),
        nodes: slots.nodes.get(slot).copied().unwrap_or(u32::MAX),
    }
}

/// Kinds, cheapest first, their room, and the parts that each class of kinds may hold.
pub(crate) fn kinds(
    problem: &Problem<'_>,
    columns: &Columns<'_>,
    slots: &TierSlots,
    (parts, need): (&[Part], &[u32]),
) -> (Vec<Kind>, Vec<u32>, Vec<Vec<u32>>) {
    let dims = columns.dims();
    let classes = classes(problem, slots, parts);
    let mut masks: Vec<Vec<u64>> = Vec::new();
    let mut demand: Vec<Vec<u32>> = Vec::new();
    let mut all: Vec<(Kind, Vec<u32>)> = Vec::new();
    for (class, (mask, members)) in classes.into_iter().enumerate() {
        // More room than all its pods ask for is no advantage.
        let mut total = alloc::vec![0_u32; dims];
        for part in (0..parts.len()).filter(|part| model::contains(&mask, *part)) {
            let count = parts.get(part).map_or(0, |part| part.count);
            let needs = need.get(part * dims..(part + 1) * dims).unwrap_or(&[]);
            for (total, need) in total.iter_mut().zip(needs) {
                *total = total.saturating_add(need.saturating_mul(count));
            }
        }
        for slot in members {
            let room = columns.room(slot).zip(&total).map(|(room, total)| room.min(*total)).collect();
            all.push((kind(problem, slot, class), room));
        }
        masks.push(mask);
        demand.push(total);
    }
    all.sort_by(|(a, a_room), (b, b_room)| {
        a.cost.total_cmp(&b.cost).then_with(|| b_room.cmp(a_room)).then(a.slot.cmp(&b.slot))
    });
    let limited = |kind: &Kind| {
        kind.nodes != u32::MAX
            || problem.pools.nodes_left.get(kind.pool).is_some_and(|left| *left != u32::MAX)
            || problem.pools.cpu_left_milli.get(kind.pool).is_some_and(|left| *left != u64::MAX)
            || problem.pools.memory_left_mib.get(kind.pool).is_some_and(|left| *left != u64::MAX)
    };
    let mut kept: Vec<(Kind, Vec<u32>)> = Vec::new();
    'slots: for (kind, room) in all {
        let small = room.iter().zip(demand.get(kind.class).into_iter().flatten());
        if small.into_iter().any(|(room, total)| *room == 0 && *total > 0) && room.first() == Some(&0) {
            continue;
        }
        for (better, more) in &kept {
            let same_pool = better.pool == kind.pool;
            let no_dearer_to_limits = !limited(better)
                || (same_pool
                    && better.nodes == u32::MAX
                    && better.cpu_charged <= kind.cpu_charged
                    && better.memory_charged <= kind.memory_charged);
            let covers = better.class == kind.class
                || masks.get(better.class).zip(masks.get(kind.class)).is_some_and(|(a, b)| model::covers(a, b));
            if no_dearer_to_limits && covers && more.iter().zip(&room).all(|(more, room)| more >= room) {
                continue 'slots;
            }
        }
        kept.push((kind, room));
    }
    let parts_of = |mask: &Vec<u64>| -> Vec<u32> {
        (0..parts.len()).filter(|part| model::contains(mask, *part)).map(|part| part as u32).collect()
    };
    let classes = masks.iter().map(parts_of).collect();
    let room = kept.iter().flat_map(|(_, room)| room.iter().copied()).collect();
    (kept.into_iter().map(|(kind, _)| kind).collect(), room, classes)
}

/// Usable slots by the parts that they may hold.
fn classes(problem: &Problem<'_>, slots: &TierSlots, parts: &[Part]) -> BTreeMap<Vec<u64>, Vec<usize>> {
    let slot_count = problem.slots.cost.len();
    // Of each distinct set of candidates, the slots in it.
    let sets: Vec<Vec<u64>> = problem
        .candidates
        .sets
        .iter()
        .map(|row| {
            let mut mask = model::mask(slot_count);
            row.iter().for_each(|slot| model::set(&mut mask, *slot as usize));
            mask
        })
        .collect();
    let own: Vec<Option<&Vec<u64>>> = parts
        .iter()
        .map(|part| problem.candidates.set_of.get(part.group).and_then(|set| sets.get(*set as usize)))
        .collect();
    let mut out: BTreeMap<Vec<u64>, Vec<usize>> = BTreeMap::new();
    let mut known: BTreeMap<(Vec<u64>, u32), Vec<u64>> = BTreeMap::new();
    for slot in (0..slot_count).filter(|slot| slots.usable(*slot)) {
        let zone = problem.slots.zone.get(slot).copied().unwrap_or(u32::MAX);
        let mut signature = model::mask(sets.len());
        for (at, _) in sets.iter().enumerate().filter(|(_, set)| model::contains(set, slot)) {
            model::set(&mut signature, at);
        }
        let mask = known.entry((signature, zone)).or_insert_with(|| {
            let mut mask = model::mask(parts.len());
            for (at, part) in parts.iter().enumerate() {
                let candidate = own.get(at).copied().flatten().is_some_and(|set| model::contains(set, slot));
                if candidate && part.zone.is_none_or(|own| own == zone) {
                    model::set(&mut mask, at);
                }
            }
            mask
        });
        if mask.iter().any(|word| *word != 0) {
            out.entry(mask.clone()).or_default().push(slot);
        }
    }
    out
}
