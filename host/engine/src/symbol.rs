//! Interned label keys and values, and the requirement algebra on them: a requirement is a bitset over the values of its
//! key, a complement flag, integer bounds and minValues.

use std::collections::HashMap;
use std::sync::Arc;

mod bits;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use bits::Bits;
pub(crate) use set::{SymbolSet, ValueSet};

/// Index of a label key.
pub(crate) type KeyId = u32;
/// Index of a value among those of its key.
pub(crate) type ValueId = u32;

/// Interns keys, and values per key. Ids are given in order of first sight, so equal input gives equal ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    keys: Vec<Key>,
    /// Looked up only, never iterated.
    by_name: HashMap<Arc<str>, KeyId>,
}

#[derive(Clone, Debug)]
struct Key {
    name: Arc<str>,
    values: Vec<Arc<str>>,
    /// The value as an integer, for bounds.
    integers: Vec<Option<i64>>,
    by_value: HashMap<Arc<str>, ValueId>,
}

impl Symbols {
    /// Id of a key, given if new.
    pub(crate) fn key(&mut self, name: &Arc<str>) -> KeyId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = id_of(self.keys.len());
        self.keys.push(Key {
            name: Arc::clone(name),
            values: Vec::new(),
            integers: Vec::new(),
            by_value: HashMap::new(),
        });
        self.by_name.insert(Arc::clone(name), id);
        id
    }

    /// Id of a value of a key, given if new.
    pub(crate) fn value(&mut self, key: KeyId, value: &Arc<str>) -> ValueId {
        let Some(key) = self.keys.get_mut(key as usize) else { return ValueId::MAX };
        if let Some(id) = key.by_value.get(value) {
            return *id;
        }
        let id = id_of(key.values.len());
        key.values.push(Arc::clone(value));
        key.integers.push(value.parse().ok());
        key.by_value.insert(Arc::clone(value), id);
        id
    }

    /// Id of a key that is known.
    pub(crate) fn find_key(&self, name: &str) -> Option<KeyId> {
        self.by_name.get(name).copied()
    }

    /// Id of a value that is known.
    pub(crate) fn find_value(&self, key: KeyId, value: &str) -> Option<ValueId> {
        self.keys.get(key as usize)?.by_value.get(value).copied()
    }

    /// Name of a key; empty for an id of another table.
    pub(crate) fn key_name(&self, key: KeyId) -> Arc<str> {
        self.keys.get(key as usize).map(|key| Arc::clone(&key.name)).unwrap_or_default()
    }

    /// Text of a value; empty for an id of another table.
    pub(crate) fn value_name(&self, key: KeyId, value: ValueId) -> Arc<str> {
        self.values(key).get(value as usize).cloned().unwrap_or_default()
    }

    /// Every value of a key seen so far, by id.
    pub(crate) fn values(&self, key: KeyId) -> &[Arc<str>] {
        self.keys.get(key as usize).map_or(&[], |key| &key.values)
    }

    /// Every key, by id.
    pub(crate) fn keys(&self) -> impl ExactSizeIterator<Item = (KeyId, &Arc<str>)> {
        self.keys.iter().enumerate().map(|(id, key)| (id_of(id), &key.name))
    }

    /// The integers of a key's values, by id.
    pub(crate) fn integers(&self, key: KeyId) -> &[Option<i64>] {
        self.keys.get(key as usize).map_or(&[], |key| &key.integers)
    }
}

/// A table index as an id. Tables stay far below 2^32 entries; the last id stands for "too many" and matches nothing.
pub(crate) fn id_of(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
