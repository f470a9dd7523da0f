//! A NodeClaim being filled: a set of instance types and offerings that shrinks as pods are added.

mod decide;
mod load;

pub(crate) use decide::{Deciding, Offer};
pub(crate) use load::{Load, least, slots_among};

use super::amounts::times_fitting;
use super::group::Group;
use super::holdings::holds_nothing;
use super::pool::Pool;
use super::reservations::Reservations;
use crate::catalog::View;
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, id_of};

/// A claim opened in this round.
#[derive(Clone, Debug)]
pub(crate) struct OpenClaim {
    /// Index of its NodePool.
    pub(crate) pool: usize,
    pub(crate) requirements: SymbolSet,
    pub(crate) types: Bits,
    /// May hold offerings of types that are gone; they are dropped at the end.
    pub(crate) offerings: Bits,
    /// What its pods take.
    pub(crate) load: Load,
    /// Pods, as places in the queue.
    pub(crate) pods: Vec<u32>,
    /// Requirement sets that its requirements already contain, and groups whose filtered offerings are gone.
    absorbed: Vec<(u32, u32)>,
    /// Most of each resource that a further pod may ask for, when last worked out; it only shrinks.
    slack: Vec<i64>,
    /// Requirement sets that it cannot take.
    refused: Bits,
    /// minValues were lowered.
    pub(crate) min_values_relaxed: bool,
}

/// A claim as it would be with a further pod's requirements.
#[derive(Clone, Debug)]
pub(crate) struct Narrowed {
    pub(crate) requirements: SymbolSet,
    pub(crate) types: Bits,
    pub(crate) offerings: Bits,
}

/// Whatever the placing of one group on one claim looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings<'r, 'a> {
    pub(crate) pool: &'r Pool<'a>,
    pub(crate) view: &'r View<'a>,
    pub(crate) symbols: &'r Symbols,
    /// Reservations of the round; `None` where nothing is placed.
    pub(crate) reservations: Option<&'r Reservations>,
}

impl OpenClaim {
    /// A claim with its first pod's requirements and no pod yet.
    pub(crate) fn new(pool: usize, narrowed: Narrowed, load: Load, set: u32, group: u32) -> Self {
        Self {
            pool,
            requirements: narrowed.requirements,
            types: narrowed.types,
            offerings: narrowed.offerings,
            slack: vec![i64::MAX; load.used.len()],
            load,
            pods: Vec::new(),
            absorbed: vec![(set, group)],
            refused: Bits::default(),
            min_values_relaxed: false,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        id_of(self.pods.len())
    }

    /// Adds pods `from..` of the queue, at most `most`, that require `asked` (the set with id `set`); returns how many
    /// went in.
    pub(crate) fn add(
        &mut self,
        around: Surroundings<'_, '_>,
        (group, group_id): (&Group<'_>, u32),
        (asked, set): (&SymbolSet, u32),
        from: u32,
        most: u32,
    ) -> u32 {
        if self.surely_refuses(group, set) {
            return 0;
        }
        let known = self.absorbed.contains(&(set, group_id));
        let narrowed = if known {
            None
        } else {
            let dropped = group.dropped_of(around.pool.view);
            match narrow(around, (&self.requirements, &self.types, &self.offerings), asked, dropped) {
                Some(narrowed) => Some(narrowed),
                None => {
                    if dropped.is_none() {
                        self.refused.insert(set);
                    }
                    return 0;
                }
            }
        };
        let (types, asking) = match &narrowed {
            Some(narrowed) => (&narrowed.types, (&narrowed.requirements, &narrowed.offerings)),
            None => (&self.types, (&self.requirements, &self.offerings)),
        };
        let (count, fitting) = fit(around, asking, &self.load, group, types, most);
        if count == 0 {
            self.slack = self.slack(around.pool);
            return 0;
        }
        if let Some(narrowed) = narrowed {
            self.requirements = narrowed.requirements;
            self.offerings = narrowed.offerings;
            self.absorbed.push((set, group_id));
        }
        self.types = fitting;
        self.load.take(group, count);
        self.pods.extend(from..from + count);
        count
    }

    /// Adds one pod, as [`Self::add`] does.
    pub(crate) fn add_one(
        &mut self,
        around: Surroundings<'_, '_>,
        group: (&Group<'_>, u32),
        asked: (&SymbolSet, u32),
        at: u32,
    ) -> Offer {
        if self.add(around, group, asked, at, 1) > 0 { Offer::Taken } else { Offer::Never }
    }

    /// It is known without looking closer that no pod of the group goes in with these requirements.
    pub(crate) fn surely_refuses(&self, group: &Group<'_>, set: u32) -> bool {
        self.refused.contains(set)
            || group.asked.iter().any(|(at, amount)| self.slack.get(*at).is_some_and(|slack| amount > slack))
    }

    /// Of each resource, what the roomiest type has left.
    fn slack(&self, pool: &Pool<'_>) -> Vec<i64> {
        let left = |(column, used): (&Vec<i64>, &i64)| {
            let most = self.types.iter().filter_map(|of_type| column.get(of_type as usize)).max();
            most.map_or(-1, |most| most.saturating_sub(*used))
        };
        pool.room.iter().zip(&self.load.used).map(left).collect()
    }
}

/// Requirements, types and offerings with `asked` added; `None` when nothing is left.
pub(crate) fn narrow(
    around: Surroundings<'_, '_>,
    (requirements, types, offerings): (&SymbolSet, &Bits, &Bits),
    asked: &SymbolSet,
    dropped: Option<&Bits>,
) -> Option<Narrowed> {
    requirements.compatible(asked, &around.pool.allow_undefined, around.symbols).ok()?;
    let mut out = Narrowed { requirements: requirements.clone(), types: types.clone(), offerings: offerings.clone() };
    let mut offerings_changed = false;
    for (key, values) in asked.iter() {
        out.requirements.add(key, values, around.symbols);
        let (before, after) = (requirements.get(key), out.requirements.get(key));
        if before == after {
            continue;
        }
        let Some(after) = after else { continue };
        out.types.and(&around.view.types_agreeing(key, after));
        if let Some(agreeing) = around.view.offerings_agreeing(key, after) {
            out.offerings.and(&agreeing);
            offerings_changed = true;
        }
    }
    if let Some(dropped) = dropped {
        out.offerings.and_not(dropped);
        offerings_changed = true;
    }
    if offerings_changed {
        out.types.and(&around.view.columns.types_with(&out.offerings));
    }
    (!out.types.is_empty()).then_some(out)
}

/// How many pods of the group fit on top of `load`, at most `most`, and the types that hold them. What [`Load::holds`] of
/// the claim stays true.
pub(crate) fn fit(
    around: Surroundings<'_, '_>,
    (requirements, offerings): (&SymbolSet, &Bits),
    load: &Load,
    group: &Group<'_>,
    types: &Bits,
    most: u32,
) -> (u32, Bits) {
    let used = |resource: usize| load.used.get(resource).copied().unwrap_or(0);
    let holds_nothing = holds_nothing(group.shape);
    let taken = if holds_nothing { Bits::default() } else { around.pool.ports_taken(group.shape) };
    if most == 1 && holds_nothing && !load.is_delicate(around, requirements) {
        let mut fitting = types.clone();
        for (resource, amount) in &group.asked {
            let column = around.pool.room.get(*resource).map_or(&[][..], Vec::as_slice);
            let needed = used(*resource).saturating_add(*amount);
            fitting.retain(|of_type| column.get(of_type as usize).copied().unwrap_or(0) >= needed);
        }
        return (u32::from(!fitting.is_empty()), fitting);
    }
    let times = |of_type: u32| {
        if taken.contains(of_type) {
            return 0;
        }
        let room = |resource: usize| {
            let column = around.pool.room.get(resource).map_or(&[][..], Vec::as_slice);
            column.get(of_type as usize).copied().unwrap_or(0)
        };
        let times = times_fitting(&group.asked, used, room, most);
        if holds_nothing || times == 0 {
            return times;
        }
        let limit = |driver: &str| around.view.catalog.types.get(of_type as usize)?.volume_limits.get(driver).copied();
        load.held.fitting(group.shape, limit, times)
    };
    let counts: Vec<(u32, u32)> = types.iter().map(|of_type| (times(of_type), of_type)).collect();
    let holding = |count: u32| -> Bits {
        counts.iter().filter(|(times, _)| *times >= count).map(|(_, of_type)| *of_type).collect()
    };
    let largest = counts.iter().map(|(times, _)| *times).max().unwrap_or(0);
    if largest == 0 || !load.is_delicate(around, requirements) {
        return (largest, if largest == 0 { Bits::default() } else { holding(largest) });
    }
    // The more pods, the fewer types: the last count that keeps the bounds is found by halving.
    let met = |count: u32| load.holds(around, (requirements, offerings), &holding(count));
    if met(largest) {
        return (largest, holding(largest));
    }
    if !met(1) {
        return (0, Bits::default());
    }
    let (mut good, mut bad) = (1, largest);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if met(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    (good, holding(good))
}

/// The first key whose minValues these types do not reach, and how many values they have.
pub(crate) fn first_unmet(
    around: Surroundings<'_, '_>,
    requirements: &SymbolSet,
    types: &Bits,
) -> Option<(KeyId, u32)> {
    requirements.iter().find_map(|(key, values)| {
        let wanted = values.min_values?;
        // What the pods themselves have closed (a zone, say) does not count against the NodePool's wish for choice.
        let open = around.pool.template.get(key).unwrap_or(values);
        let have = around.view.distinct_values(key, open, types);
        (have < wanted).then_some((key, have))
    })
}
