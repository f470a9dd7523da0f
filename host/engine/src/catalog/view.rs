//! A prepared catalogue seen through the symbols of one round.

use std::sync::Arc;

use super::prepared::{LocalSet, Prepared};
use super::{Catalog, Offering};
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, ValueId, ValueSet, id_of};

/// Stands for "not known to this catalogue".
const NONE: u32 = u32::MAX;

/// Translates requirements in a round's symbols to a catalogue's own columns.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) columns: Arc<Prepared>,
    /// Own key id by round key id.
    own_key: Vec<KeyId>,
    /// By own key: own value id by round value id.
    own_value: Vec<Vec<ValueId>>,
    /// By own key: round key id and round value id by own value id.
    round: Vec<(KeyId, Vec<ValueId>)>,
    /// Keys of the catalogue, in round ids: a new node may be asked for them although its NodePool says nothing.
    pub(crate) known_keys: Bits,
}

impl<'a> View<'a> {
    /// Interns everything the catalogue knows into the round's symbols.
    pub(crate) fn new(catalog: &'a Arc<Catalog>, symbols: &mut Symbols) -> Self {
        let columns = Arc::clone(catalog.prepared());
        let mut view = Self {
            catalog,
            own_key: Vec::new(),
            own_value: Vec::new(),
            round: Vec::new(),
            known_keys: Bits::default(),
            columns: Arc::clone(&columns),
        };
        for (own, name) in columns.symbols.keys() {
            let key = symbols.key(name);
            view.known_keys.insert(key);
            put(&mut view.own_key, key, own);
            let mut own_value = Vec::new();
            let mut round = Vec::new();
            for (own, value) in columns.symbols.values(own).iter().enumerate() {
                let value = symbols.value(key, value);
                put(&mut own_value, value, id_of(own));
                round.push(value);
            }
            view.own_value.push(own_value);
            view.round.push((key, round));
        }
        view
    }

    fn own(&self, key: KeyId) -> Option<KeyId> {
        self.own_key.get(key as usize).copied().filter(|own| *own != NONE)
    }

    fn localise(&self, own: KeyId, set: &ValueSet) -> LocalSet {
        let table = self.own_value.get(own as usize).map_or(&[][..], Vec::as_slice);
        let mut admits_unknown = set.complement;
        let mut bits = Bits::default();
        for value in set.bits.iter() {
            match table.get(value as usize).copied().filter(|own| *own != NONE) {
                Some(own) => bits.insert(own),
                None => admits_unknown = true,
            }
        }
        LocalSet { allows_absence: set.allows_absence(), admits_unknown, set: ValueSet { bits, ..set.clone() } }
    }

    /// Types whose own requirement on the key agrees with `asked`.
    pub(crate) fn types_agreeing(&self, key: KeyId, asked: &ValueSet) -> Bits {
        match self.own(key) {
            Some(own) => self.columns.types_agreeing(own, &self.localise(own, asked)),
            None => Bits::all(self.columns.types()),
        }
    }

    /// Offerings that `asked` admits; `None` when the key says nothing about offerings.
    pub(crate) fn offerings_agreeing(&self, key: KeyId, asked: &ValueSet) -> Option<Bits> {
        let own = self.own(key)?;
        let narrows = self.columns.narrows_offerings(own);
        narrows.then(|| self.columns.offerings_agreeing(own, &self.localise(own, asked)))
    }

    /// Types and offerings that meet every requirement. Offerings are those that can be launched.
    pub(crate) fn matching(&self, requirements: &SymbolSet) -> (Bits, Bits) {
        let mut types = Bits::all(self.columns.types());
        let mut offerings = self.columns.launchable.clone();
        for (key, values) in requirements.iter() {
            types.and(&self.types_agreeing(key, values));
            if let Some(agreeing) = self.offerings_agreeing(key, values) {
                offerings.and(&agreeing);
            }
        }
        (types, offerings)
    }

    /// Drops offerings of other types and types without an offering.
    pub(crate) fn settle(&self, types: &mut Bits, offerings: &mut Bits) {
        types.and(&self.columns.types_with(offerings));
        offerings.retain(|offering| {
            self.columns.type_of.get(offering as usize).is_some_and(|of_type| types.contains(*of_type))
        });
    }

    /// Distinct values of a key among these types that `asked` admits.
    pub(crate) fn distinct_values(&self, key: KeyId, asked: &ValueSet, types: &Bits) -> u32 {
        self.own(key).map_or(0, |own| self.columns.distinct_values(own, &self.localise(own, asked), types))
    }

    /// An offering of a type by its id in the columns.
    pub(crate) fn offering(&self, of_type: u32, offering: u32) -> Option<&Offering> {
        let own = offering.checked_sub(self.columns.offerings_of(of_type).start)?;
        self.catalog.types.get(of_type as usize)?.offerings.get(own as usize)
    }

    /// Values that types or offerings have for a key, sorted.
    pub(crate) fn values_of(&self, key: KeyId) -> Vec<Arc<str>> {
        let mut values = self.own(key).map_or_else(Vec::new, |own| self.columns.symbols.values(own).to_vec());
        values.sort();
        values
    }

    /// Values that types or offerings have for a key, in the round's ids.
    pub(crate) fn known_values(&self, key: KeyId) -> &[ValueId] {
        self.own(key).and_then(|own| self.round.get(own as usize)).map_or(&[], |(_, values)| values)
    }

    /// Whether some type or offering has this key.
    pub(crate) fn defines(&self, key: &str) -> bool {
        self.columns.symbols.find_key(key).is_some()
    }

    /// What these types together say about a key, in the round's symbols: the values one of them may have. `None` when
    /// one says nothing or only something open.
    pub(crate) fn union(&self, key: KeyId, types: &Bits) -> Option<ValueSet> {
        let own = self.own(key)?;
        let (_, round) = self.round.get(own as usize)?;
        let mut union = ValueSet { present: true, ..ValueSet::default() };
        for of_type in types.iter() {
            let set = self.columns.requirement(of_type, own)?;
            // Open, or of some types absent: what the key will be is not known.
            if set.complement || set.allows_absence() {
                return None;
            }
            for value in set.bits.iter() {
                union.bits.insert(*round.get(value as usize)?);
            }
        }
        Some(union)
    }
}

/// Sets `table[at]`, filling what is between with [`NONE`].
fn put(table: &mut Vec<u32>, at: u32, value: u32) {
    let at = at as usize;
    if table.len() <= at {
        table.resize(at + 1, NONE);
    }
    table[at] = value;
}
