//! Requirements on interned symbols.

use std::sync::Arc;

use super::{Bits, KeyId, Symbols, ValueId};
use crate::requirement::{Operator, Requirement, Values, bounds, is_impossible};

/// The values a key may take: [`Values`] on symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueSet {
    /// `bits` are the values excluded.
    pub(crate) complement: bool,
    pub(crate) bits: Bits,
    /// The key must be there.
    pub(crate) present: bool,
    pub(crate) gte: Option<i64>,
    pub(crate) lte: Option<i64>,
    pub(crate) min_values: Option<u32>,
}

impl ValueSet {
    pub(crate) fn one(value: ValueId) -> Self {
        Self { bits: std::iter::once(value).collect(), present: true, ..Self::default() }
    }

    /// What one requirement allows; interns its values.
    pub(crate) fn new(requirement: &Requirement, key: KeyId, symbols: &mut Symbols) -> Self {
        let min_values = requirement.min_values;
        if is_impossible(requirement) {
            return Self { present: true, min_values, ..Self::default() };
        }
        let mut bits = || requirement.values.iter().map(|value| symbols.value(key, value)).collect();
        match requirement.operator {
            Operator::In => Self { bits: bits(), present: true, min_values, ..Self::default() },
            Operator::NotIn => Self { complement: true, bits: bits(), min_values, ..Self::default() },
            Operator::DoesNotExist => Self { min_values, ..Self::default() },
            _ => {
                let (gte, lte) = bounds(requirement).unwrap_or_default();
                Self { complement: true, present: true, gte, lte, min_values, ..Self::default() }
            }
        }
    }

    pub(crate) fn allows_absence(&self) -> bool {
        !self.present && self.complement != self.bits.is_empty()
    }

    /// Neither a value nor the key's absence satisfies it.
    pub(crate) fn is_nothing(&self) -> bool {
        !self.complement && self.present && self.bits.is_empty()
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.gte.is_some() || self.lte.is_some()
    }

    fn within(&self, integer: Option<i64>) -> bool {
        !self.is_bounded()
            || integer
                .is_some_and(|value| self.gte.is_none_or(|gte| value >= gte) && self.lte.is_none_or(|lte| value <= lte))
    }

    /// Whether the value with this id and integer reading satisfies it.
    pub(crate) fn has(&self, value: ValueId, integers: &[Option<i64>]) -> bool {
        self.bits.contains(value) != self.complement && self.within(integers.get(value as usize).copied().flatten())
    }

    #[must_use]
    pub(crate) fn intersection(&self, other: &Self, integers: &[Option<i64>]) -> Self {
        let min_values = self.min_values.max(other.min_values);
        let present = self.present || other.present;
        let gte = self.gte.max(other.gte);
        let lte = match (self.lte, other.lte) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if matches!((gte, lte), (Some(gte), Some(lte)) if gte > lte) {
            return Self { present, min_values, ..Self::default() };
        }
        let (complement, mut bits) = match (self.complement, other.complement) {
            (true, true) => {
                let mut bits = self.bits.clone();
                bits.or(&other.bits);
                (true, bits)
            }
            (false, false) => {
                let mut bits = self.bits.clone();
                bits.and(&other.bits);
                (false, bits)
            }
            (false, true) => {
                let mut bits = self.bits.clone();
                bits.and_not(&other.bits);
                (false, bits)
            }
            (true, false) => {
                let mut bits = other.bits.clone();
                bits.and_not(&self.bits);
                (false, bits)
            }
        };
        let within = Self { gte, lte, ..Self::default() };
        if within.is_bounded() {
            bits.retain(|value| within.within(integers.get(value as usize).copied().flatten()));
        }
        let (gte, lte) = if complement { (gte, lte) } else { (None, None) };
        Self { complement, bits, present, gte, lte, min_values }
    }

    pub(crate) fn intersects(&self, other: &Self, integers: &[Option<i64>]) -> bool {
        if !self.is_bounded() && !other.is_bounded() {
            return match (self.complement, other.complement) {
                (true, true) => true,
                (false, false) => self.bits.intersects(&other.bits),
                (false, true) => !self.bits.is_subset(&other.bits),
                (true, false) => !other.bits.is_subset(&self.bits),
            };
        }
        let both = self.intersection(other, integers);
        both.complement || !both.bits.is_empty()
    }

    /// Compatible on a key that both sides define.
    pub(crate) fn agrees(&self, other: &Self, integers: &[Option<i64>]) -> bool {
        (self.allows_absence() && other.allows_absence()) || self.intersects(other, integers)
    }

    /// Every value this side can take satisfies `asked`.
    pub(crate) fn implies(&self, asked: &Self, integers: &[Option<i64>]) -> bool {
        if self.complement {
            let looser = |mine: Option<i64>, theirs: Option<i64>, tight: fn(i64, i64) -> bool| match (mine, theirs) {
                (_, None) => true,
                (None, Some(_)) => false,
                (Some(mine), Some(theirs)) => tight(mine, theirs),
            };
            return asked.complement
                && (self.present || !asked.present)
                && asked.bits.is_subset(&self.bits)
                && looser(self.gte, asked.gte, |mine, theirs| mine >= theirs)
                && looser(self.lte, asked.lte, |mine, theirs| mine <= theirs);
        }
        if self.bits.is_empty() {
            return asked.allows_absence();
        }
        self.bits.iter().all(|value| asked.has(value, integers))
    }

    /// With its values as text.
    pub(crate) fn to_values(&self, key: KeyId, symbols: &Symbols) -> Values {
        Values {
            complement: self.complement,
            values: self.bits.iter().map(|value| symbols.value_name(key, value)).collect(),
            present: self.present,
            gte: self.gte,
            lte: self.lte,
            min_values: self.min_values,
        }
    }
}

/// Requirements on several keys, sorted by key id.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SymbolSet {
    keys: Vec<(KeyId, ValueSet)>,
}

impl SymbolSet {
    pub(crate) fn new<'a>(requirements: impl IntoIterator<Item = &'a Requirement>, symbols: &mut Symbols) -> Self {
        let mut set = Self::default();
        for requirement in requirements {
            set.add_requirement(requirement, symbols);
        }
        set
    }

    pub(crate) fn add_requirement(&mut self, requirement: &Requirement, symbols: &mut Symbols) {
        let key = symbols.key(&requirement.key);
        let values = ValueSet::new(requirement, key, symbols);
        self.add(key, &values, symbols);
    }

    pub(crate) fn add_label(&mut self, key: &Arc<str>, value: &Arc<str>, symbols: &mut Symbols) {
        let key = symbols.key(key);
        let value = symbols.value(key, value);
        self.add(key, &ValueSet::one(value), symbols);
    }

    /// Tightens a key.
    pub(crate) fn add(&mut self, key: KeyId, values: &ValueSet, symbols: &Symbols) {
        match self.keys.binary_search_by_key(&key, |(known, _)| *known) {
            Ok(at) => {
                let known = &mut self.keys[at].1;
                *known = known.intersection(values, symbols.integers(key));
            }
            Err(at) => self.keys.insert(at, (key, values.clone())),
        }
    }

    /// Tightens by every key of `other`.
    pub(crate) fn extend(&mut self, other: &Self, symbols: &Symbols) {
        for (key, values) in &other.keys {
            self.add(*key, values, symbols);
        }
    }

    /// Replaces what is said about a key.
    pub(crate) fn set(&mut self, key: KeyId, values: ValueSet) {
        match self.keys.binary_search_by_key(&key, |(known, _)| *known) {
            Ok(at) => self.keys[at].1 = values,
            Err(at) => self.keys.insert(at, (key, values)),
        }
    }

    /// A key whose requirements exclude one another.
    pub(crate) fn contradiction(&self) -> Option<KeyId> {
        self.keys.iter().find(|(_, values)| values.is_nothing()).map(|(key, _)| *key)
    }

    pub(crate) fn get(&self, key: KeyId) -> Option<&ValueSet> {
        let at = self.keys.binary_search_by_key(&key, |(known, _)| *known).ok()?;
        self.keys.get(at).map(|(_, values)| values)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (KeyId, &ValueSet)> {
        self.keys.iter().map(|(key, values)| (*key, values))
    }

    #[must_use]
    pub(crate) fn without_min_values(&self) -> Self {
        let plain = |(key, values): &(KeyId, ValueSet)| (*key, ValueSet { min_values: None, ..values.clone() });
        Self { keys: self.keys.iter().map(plain).collect() }
    }

    pub(crate) fn has_min_values(&self) -> bool {
        self.keys.iter().any(|(_, values)| values.min_values.is_some())
    }

    /// Whether what this side (a node) offers can meet what `asked` (a pod) requires; keys in `allow_undefined` may be
    /// missing on this side.
    ///
    /// # Errors
    /// The first key that fails.
    pub(crate) fn compatible(&self, asked: &Self, allow_undefined: &Bits, symbols: &Symbols) -> Result<(), KeyId> {
        if let Some(key) = asked.contradiction() {
            return Err(key);
        }
        for (key, values) in &asked.keys {
            let fits = match self.get(*key) {
                Some(mine) => mine.agrees(values, symbols.integers(*key)),
                None => values.allows_absence() || allow_undefined.contains(*key),
            };
            if !fits {
                return Err(*key);
            }
        }
        Ok(())
    }
}
