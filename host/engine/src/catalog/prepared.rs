//! A catalogue as columns: instance types and offerings are bit positions. Prepared once per catalogue and shared by
//! every round that sees it.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::{CapacityType, Catalog, InstanceType};
use crate::policy::Tables;
use crate::quantity::Resources;
use crate::requirement::{Requirement, key};
use crate::symbol::{Bits, KeyId, SymbolSet, Symbols, ValueId, ValueSet, id_of};

/// Columns of one catalogue. Type `t` has the offerings `start[t]..start[t + 1]`.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Keys and values of the types and offerings.
    pub(crate) symbols: Symbols,
    /// By key id of `symbols`.
    keys: Vec<KeyColumn>,
    /// Per type.
    requirements: Vec<SymbolSet>,
    pub(crate) start: Vec<u32>,
    /// Per offering.
    pub(crate) type_of: Vec<u32>,
    pub(crate) capacity_type: Vec<CapacityType>,
    /// Offerings that may be launched: available, and a reservation has room.
    pub(crate) launchable: Bits,
    /// Offerings that are healthy: a full reservation counts.
    pub(crate) available: Bits,
    /// Allocatable and capacity per type, by resource name.
    pub(crate) allocatable: ResourceColumns,
    pub(crate) capacity: ResourceColumns,
    /// Types whose allocatable is nowhere negative.
    pub(crate) sound: Bits,
    /// The same as policies see it.
    tables: OnceLock<Tables>,
}

/// What types and offerings say about one key.
#[derive(Clone, Debug, Default)]
struct KeyColumn {
    /// Types that admit a value, by value id.
    types: Vec<Bits>,
    /// Types that say nothing about the key.
    types_undefined: Bits,
    /// Types for which the key does not exist.
    types_absent: Bits,
    /// Types with a complement or bounds, which only the algebra can judge.
    types_open: Vec<u32>,
    /// Offerings by value id.
    offerings: Vec<Bits>,
    /// Offerings that say nothing about the key.
    offerings_undefined: Bits,
}

/// One column per resource that some type has.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResourceColumns {
    columns: BTreeMap<Arc<str>, Vec<i64>>,
}

impl ResourceColumns {
    fn new<'a>(rows: impl ExactSizeIterator<Item = &'a Resources> + Clone) -> Self {
        let len = rows.len();
        let mut columns: BTreeMap<Arc<str>, Vec<i64>> = BTreeMap::new();
        for (at, row) in rows.enumerate() {
            for (name, amount) in row.iter() {
                if let Some(column) = columns.get_mut(name) {
                    column[at] = amount;
                } else {
                    let mut column = vec![0; len];
                    column[at] = amount;
                    columns.insert(Arc::from(name), column);
                }
            }
        }
        Self { columns }
    }

    /// The column of a resource; `None` = zero everywhere.
    pub(crate) fn get(&self, name: &str) -> Option<&[i64]> {
        self.columns.get(name).map(Vec::as_slice)
    }
}

impl Prepared {
    pub(crate) fn new(catalog: &Catalog) -> Self {
        let mut symbols = Symbols::default();
        let requirements: Vec<SymbolSet> =
            catalog.types.iter().map(|of_type| type_requirements(of_type, &mut symbols)).collect();
        let count = catalog.types.len();
        let offerings = catalog.types.iter().map(|of_type| of_type.offerings.len()).sum::<usize>();
        let mut prepared = Self {
            keys: Vec::new(),
            requirements,
            start: vec![0],
            type_of: Vec::with_capacity(offerings),
            capacity_type: Vec::with_capacity(offerings),
            launchable: Bits::none(offerings),
            available: Bits::none(offerings),
            allocatable: ResourceColumns::new(catalog.types.iter().map(|of_type| &of_type.allocatable)),
            capacity: ResourceColumns::new(catalog.types.iter().map(|of_type| &of_type.capacity)),
            sound: Bits::none(count),
            tables: OnceLock::new(),
            symbols,
        };
        let labels = prepared.offerings(catalog);
        prepared.columns(count, offerings, &labels);
        for (at, of_type) in catalog.types.iter().enumerate() {
            if of_type.allocatable.iter().all(|(_, amount)| amount >= 0) {
                prepared.sound.insert(id_of(at));
            }
        }
        prepared
    }

    /// Fills the offering columns and returns each offering's labels as symbols.
    fn offerings(&mut self, catalog: &Catalog) -> Vec<Vec<(KeyId, ValueId)>> {
        let zone: Arc<str> = Arc::from(key::ZONE);
        let market: Arc<str> = Arc::from(key::CAPACITY_TYPE);
        let mut rows = Vec::new();
        for (at, of_type) in catalog.types.iter().enumerate() {
            for offering in &of_type.offerings {
                let id = id_of(rows.len());
                let mut labels = Vec::with_capacity(offering.labels.len() + 2);
                let capacity_type: Arc<str> = Arc::from(offering.capacity_type.as_str());
                let own = [(&zone, &offering.zone), (&market, &capacity_type)];
                for (key, value) in own.into_iter().chain(&offering.labels) {
                    let key = self.symbols.key(key);
                    labels.push((key, self.symbols.value(key, value)));
                }
                rows.push(labels);
                self.type_of.push(id_of(at));
                self.capacity_type.push(offering.capacity_type);
                if offering.available {
                    self.available.insert(id);
                    if offering.capacity_type != CapacityType::Reserved || offering.reserved_left != Some(0) {
                        self.launchable.insert(id);
                    }
                }
            }
            self.start.push(id_of(rows.len()));
        }
        rows
    }

    /// Turns rows into one column per key.
    fn columns(&mut self, types: usize, offerings: usize, labels: &[Vec<(KeyId, ValueId)>]) {
        self.keys = self
            .symbols
            .keys()
            .map(|(key, _)| {
                let values = self.symbols.values(key).len();
                KeyColumn {
                    types: vec![Bits::none(types); values],
                    types_undefined: Bits::all(types),
                    types_absent: Bits::none(types),
                    types_open: Vec::new(),
                    offerings: vec![Bits::default(); values],
                    offerings_undefined: Bits::all(offerings),
                }
            })
            .collect();
        for (at, requirements) in self.requirements.iter().enumerate() {
            let at = id_of(at);
            for (key, values) in requirements.iter() {
                let Some(column) = self.keys.get_mut(key as usize) else { continue };
                column.types_undefined.remove(at);
                if values.complement {
                    column.types_open.push(at);
                } else if values.allows_absence() {
                    column.types_absent.insert(at);
                } else {
                    for value in values.bits.iter() {
                        if let Some(bits) = column.types.get_mut(value as usize) {
                            bits.insert(at);
                        }
                    }
                }
            }
        }
        for (at, labels) in labels.iter().enumerate() {
            let at = id_of(at);
            for (key, value) in labels {
                let Some(column) = self.keys.get_mut(*key as usize) else { continue };
                column.offerings_undefined.remove(at);
                if let Some(bits) = column.offerings.get_mut(*value as usize) {
                    bits.insert(at);
                }
            }
        }
    }

    /// The tables that policies see, for this catalogue alone.
    pub(crate) fn tables(&self, catalog: &Catalog) -> &Tables {
        self.tables.get_or_init(|| {
            let mut tables = Tables::default();
            tables.add_catalog(catalog);
            tables
        })
    }

    pub(crate) fn types(&self) -> usize {
        self.requirements.len()
    }

    pub(crate) fn offerings_of(&self, of_type: u32) -> std::ops::Range<u32> {
        let at = of_type as usize;
        self.start.get(at).copied().unwrap_or(0)..self.start.get(at + 1).copied().unwrap_or(0)
    }

    /// What a type says about a key.
    pub(crate) fn requirement(&self, of_type: u32, key: KeyId) -> Option<&ValueSet> {
        self.requirements.get(of_type as usize)?.get(key)
    }

    /// Types whose own requirement on `key` (an id of this catalogue) agrees with `asked` (on this catalogue's values).
    pub(crate) fn types_agreeing(&self, key: KeyId, asked: &LocalSet) -> Bits {
        let Some(column) = self.keys.get(key as usize) else { return Bits::all(self.types()) };
        let mut types = column.types_undefined.clone();
        if asked.allows_absence {
            types.or(&column.types_absent);
        }
        let integers = self.symbols.integers(key);
        for (value, bits) in column.types.iter().enumerate() {
            if asked.set.has(id_of(value), integers) {
                types.or(bits);
            }
        }
        for at in &column.types_open {
            if self.requirement(*at, key).is_some_and(|own| asked.agrees(own, integers)) {
                types.insert(*at);
            }
        }
        types
    }

    /// How many distinct values of `key` these types offer that `asked` admits.
    pub(crate) fn distinct_values(&self, key: KeyId, asked: &LocalSet, types: &Bits) -> u32 {
        let integers = self.symbols.integers(key);
        let Some(column) = self.keys.get(key as usize) else { return 0 };
        let values = column.types.iter().enumerate();
        id_of(values.filter(|(value, bits)| asked.set.has(id_of(*value), integers) && bits.intersects(types)).count())
    }

    /// Offerings whose label on `key` satisfies `asked`. Of those that have none, the ones whose type says what the label
    /// will be, or all where the label may be absent.
    pub(crate) fn offerings_agreeing(&self, key: KeyId, asked: &LocalSet) -> Bits {
        let Some(column) = self.keys.get(key as usize) else { return Bits::all(self.type_of.len()) };
        let integers = self.symbols.integers(key);
        let mut offerings = column.offerings_undefined.clone();
        if !asked.allows_absence {
            let says = |of_type: &u32| !column.types_undefined.contains(*of_type);
            offerings.retain(|offering| self.type_of.get(offering as usize).is_some_and(says));
        }
        for (value, bits) in column.offerings.iter().enumerate() {
            if asked.set.has(id_of(value), integers) {
                offerings.or(bits);
            }
        }
        offerings
    }

    /// Whether a column exists for offerings on this key (it narrows them).
    pub(crate) fn narrows_offerings(&self, key: KeyId) -> bool {
        self.keys.get(key as usize).is_some_and(|column| column.offerings.iter().any(|bits| !bits.is_empty()))
    }

    /// Types that have one of these offerings.
    pub(crate) fn types_with(&self, offerings: &Bits) -> Bits {
        let mut types = Bits::none(self.types());
        for offering in offerings.iter() {
            if let Some(of_type) = self.type_of.get(offering as usize) {
                types.insert(*of_type);
            }
        }
        types
    }
}

/// A requirement translated to a catalogue's own value ids. Values that the catalogue does not know are gone from it, so
/// what depends on them is kept beside.
#[derive(Clone, Debug)]
pub(crate) struct LocalSet {
    pub(crate) set: ValueSet,
    /// The original allows the key's absence.
    pub(crate) allows_absence: bool,
    /// The original admits a value that this catalogue does not know: it meets any open requirement without bounds.
    pub(crate) admits_unknown: bool,
}

impl LocalSet {
    fn agrees(&self, own: &ValueSet, integers: &[Option<i64>]) -> bool {
        (self.allows_absence && own.allows_absence())
            || self.set.intersects(own, integers)
            || (self.admits_unknown && own.complement && !own.is_bounded())
    }
}

/// A type's requirements, with its name pinned down whether or not it says so itself.
fn type_requirements(of_type: &InstanceType, symbols: &mut Symbols) -> SymbolSet {
    let mut set = SymbolSet::new(&of_type.requirements, symbols);
    let name = Requirement {
        key: Arc::from(key::INSTANCE_TYPE),
        operator: crate::requirement::Operator::In,
        values: vec![Arc::clone(&of_type.name)],
        min_values: None,
    };
    set.add_requirement(&name, symbols);
    set
}
