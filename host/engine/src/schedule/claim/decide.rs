//! Deciding on domains: a claim is narrowed to one domain of each key that a pod's constraints ask about.

use super::{Load, Narrowed, OpenClaim, Surroundings, fit, narrow};
use crate::schedule::group::Group;
use crate::schedule::prices::Prices;
use crate::schedule::topology::{AxisRule, Topology, Verdict, single};
use crate::symbol::{Bits, KeyId, SymbolSet, ValueSet, id_of};

/// Most domains that are tried for one pod on one claim, over all keys together.
const MOST_TRIES: u32 = 64;

/// What became of a pod offered to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Taken,
    /// Its domains are not allowed now; that may change.
    NotNow,
    /// The claim only fills up and narrows: never.
    Never,
}

/// What deciding looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deciding<'r, 'a> {
    pub(crate) around: Surroundings<'r, 'a>,
    pub(crate) topology: &'r Topology<'a>,
    pub(crate) prices: &'r Prices,
    /// Index of the claim; `None` while it is being opened.
    pub(crate) claim: Option<u32>,
}

impl OpenClaim {
    /// Offers one pod, `at` in the queue, whose constraints leave `verdict`.
    pub(crate) fn offer(
        &mut self,
        deciding: Deciding<'_, '_>,
        (group, group_id): (&Group<'_>, u32),
        (asked, set): (&SymbolSet, u32),
        verdict: &Verdict,
        at: u32,
    ) -> Offer {
        let around = deciding.around;
        if self.surely_refuses(group, set) {
            return Offer::Never;
        }
        let known = self.absorbed.contains(&(set, group_id));
        let mut narrowed = None;
        if !known {
            let dropped = group.dropped_of(around.pool.view);
            narrowed = narrow(around, (&self.requirements, &self.types, &self.offerings), asked, dropped);
            if narrowed.is_none() {
                if dropped.is_none() {
                    self.refused.insert(set);
                }
                return Offer::Never;
            }
        }
        let (types, requirements, offerings) = match &narrowed {
            Some(narrowed) => (&narrowed.types, &narrowed.requirements, &narrowed.offerings),
            None => (&self.types, &self.requirements, &self.offerings),
        };
        let (count, fitting) = fit(around, (requirements, offerings), &self.load, group, types, 1);
        if count == 0 {
            self.slack = self.slack(around.pool);
            return Offer::Never;
        }
        let undecided = verdict.axes.iter().any(|rule| !decided(requirements, rule));
        if undecided {
            let from = Narrowed {
                requirements: requirements.clone(),
                types: fitting,
                offerings: narrowed.as_ref().map_or(&self.offerings, |narrowed| &narrowed.offerings).clone(),
            };
            let mut tries = MOST_TRIES;
            let Some(chosen) = decide(deciding, from, &verdict.axes, (&self.load, group), &mut tries) else {
                return Offer::NotNow;
            };
            self.types = chosen.types.clone();
            narrowed = Some(chosen);
        } else if verdict.axes.iter().any(|rule| !suits(deciding, requirements, rule)) {
            return Offer::NotNow;
        } else {
            self.types = fitting;
        }
        if let Some(narrowed) = narrowed {
            self.requirements = narrowed.requirements;
            self.offerings = narrowed.offerings;
            if !known {
                self.absorbed.push((set, group_id));
            }
        }
        self.load.take(group, 1);
        self.pods.push(at);
        Offer::Taken
    }

    /// Decides on a value of a key: of those in `among`, preferring those in `better`, the cheapest. Returns whether it
    /// could.
    pub(crate) fn settle(
        &mut self,
        around: Surroundings<'_, '_>,
        prices: &Prices,
        key: KeyId,
        (among, better): (impl Fn(u32) -> bool, &Bits),
    ) -> bool {
        let own = self.requirements.get(key);
        let integers = around.symbols.integers(key);
        let values = 0..id_of(around.symbols.values(key).len());
        let may = values.filter(|value| own.is_none_or(|own| own.has(*value, integers)) && among(*value));
        let mut candidates: Vec<_> = may
            .filter_map(|value| {
                let price = prices.cheapest(around.view, key, value, &self.types, &self.offerings)?;
                Some((!better.contains(value), price, around.symbols.value_name(key, value), value))
            })
            .collect();
        candidates.sort();
        for (.., value) in candidates {
            let start = (&self.requirements, &self.types, &self.offerings);
            let Some(narrowed) = narrow(around, start, &one_value(key, value, around), None) else { continue };
            if self.load.holds(around, (&narrowed.requirements, &narrowed.offerings), &narrowed.types) {
                self.requirements = narrowed.requirements;
                self.types = narrowed.types;
                self.offerings = narrowed.offerings;
                return true;
            }
        }
        false
    }
}

/// The claim will have a value of the rule's key that is settled already.
fn decided(requirements: &SymbolSet, rule: &AxisRule) -> bool {
    requirements.get(rule.key).and_then(single).is_some()
}

/// A settled value that the rule admits.
fn suits(deciding: Deciding<'_, '_>, requirements: &SymbolSet, rule: &AxisRule) -> bool {
    let value = requirements.get(rule.key).and_then(single);
    value.is_some_and(|value| deciding.topology.may_decide(rule, deciding.claim, value))
}

/// Narrows key after key; the first combination that leaves a type wins.
fn decide(
    deciding: Deciding<'_, '_>,
    from: Narrowed,
    rules: &[AxisRule],
    (load, group): (&Load, &Group<'_>),
    tries: &mut u32,
) -> Option<Narrowed> {
    let Some((rule, rest)) = rules.split_first() else { return Some(from) };
    let around = deciding.around;
    let own = from.requirements.get(rule.key);
    if decided(&from.requirements, rule) {
        return if suits(deciding, &from.requirements, rule) {
            decide(deciding, from, rest, (load, group), tries)
        } else {
            None
        };
    }
    let nowhere = own.is_none_or(crate::symbol::ValueSet::allows_absence)
        && !around.pool.allow_undefined.contains(rule.key)
        && own.is_none_or(|own| !own.complement);
    if nowhere {
        if !rule.admits_absence() {
            return None;
        }
        // A node of the pool does not get this label at all. It must stay so: a later pod that merely shuns a value would
        // open the way for one that gives the label to the nodes of two pods that keep apart.
        let absent = narrowed_to(around, &from, rule.key, ValueSet::default(), (load, group))?;
        return decide(deciding, absent, rest, (load, group), tries);
    }
    let integers = around.symbols.integers(rule.key);
    let values = 0..id_of(around.symbols.values(rule.key).len());
    let allowed: Vec<u32> = values
        .filter(|value| own.is_none_or(|own| own.has(*value, integers)))
        .filter(|value| deciding.topology.may_decide(rule, deciding.claim, *value))
        .collect();
    if !rule.decides {
        let values = match &rule.allowed {
            Some(_) => ValueSet { bits: allowed.iter().copied().collect(), present: true, ..ValueSet::default() },
            None => ValueSet { complement: true, bits: rule.blocked.clone(), ..ValueSet::default() },
        };
        let narrowed = narrowed_to(around, &from, rule.key, values, (load, group))?;
        return decide(deciding, narrowed, rest, (load, group), tries);
    }
    let mut candidates: Vec<_> = allowed
        .into_iter()
        .filter_map(|value| {
            let price = deciding.prices.cheapest(around.view, rule.key, value, &from.types, &from.offerings)?;
            Some((rule.crowd_of(value), price, value))
        })
        .collect();
    candidates.sort_by(|a, b| {
        let name = |value: u32| around.symbols.value_name(rule.key, value);
        (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| name(a.2).cmp(&name(b.2)))
    });
    for (.., value) in candidates {
        *tries = tries.checked_sub(1)?;
        let chosen = narrowed_to(around, &from, rule.key, ValueSet::one(value), (load, group))
            .and_then(|narrowed| decide(deciding, narrowed, rest, (load, group), tries));
        if chosen.is_some() {
            return chosen;
        }
    }
    None
}

/// With a key narrowed to these values and types that still hold one pod more.
fn narrowed_to(
    around: Surroundings<'_, '_>,
    from: &Narrowed,
    key: KeyId,
    values: ValueSet,
    (load, group): (&Load, &Group<'_>),
) -> Option<Narrowed> {
    let mut asked = SymbolSet::default();
    asked.set(key, values);
    let mut narrowed = narrow(around, (&from.requirements, &from.types, &from.offerings), &asked, None)?;
    if load.is_delicate(around, &narrowed.requirements) {
        let (count, fitting) =
            fit(around, (&narrowed.requirements, &narrowed.offerings), load, group, &narrowed.types, 1);
        narrowed.types = fitting;
        return (count > 0).then_some(narrowed);
    }
    Some(narrowed)
}

fn one_value(key: KeyId, value: u32, _: Surroundings<'_, '_>) -> SymbolSet {
    let mut set = SymbolSet::default();
    set.set(key, ValueSet::one(value));
    set
}
