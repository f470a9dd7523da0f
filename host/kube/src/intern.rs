//! Sharing of equal values: a thousand pods of one ReplicaSet hold one shape, a thousand nodes one copy of a label key.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Below this many entries a sweep is not worth its time.
const SWEEP_FLOOR: usize = 1024;

/// A set of shared values. Entries that nobody else holds any more are dropped in sweeps whose cost is spread over the
/// insertions between them.
#[derive(Debug)]
pub struct Interner<T: ?Sized> {
    values: HashSet<Arc<T>>,
    sweep_at: usize,
}

/// Interned strings.
pub type Strings = Interner<str>;

impl<T: ?Sized + Hash + Eq> Default for Interner<T> {
    fn default() -> Self {
        Self { values: HashSet::new(), sweep_at: SWEEP_FLOOR }
    }
}

impl<T: ?Sized + Hash + Eq> Interner<T> {
    /// Number of values held, used or not yet swept.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The shared copy of `value`.
    fn lookup<Q>(&mut self, value: Q) -> Arc<T>
    where
        Q: Borrow<T> + Into<Arc<T>>,
    {
        if let Some(found) = self.values.get::<T>(value.borrow()) {
            return Arc::clone(found);
        }
        if self.values.len() >= self.sweep_at {
            self.values.retain(|held| Arc::strong_count(held) > 1);
            self.sweep_at = (self.values.len() * 2).max(SWEEP_FLOOR);
        }
        let shared: Arc<T> = value.into();
        self.values.insert(Arc::clone(&shared));
        shared
    }
}

impl Strings {
    /// The shared copy of `text`.
    pub fn get(&mut self, text: &str) -> Arc<str> {
        self.lookup(text)
    }
}

impl<E: Hash + Eq> Interner<[E]> {
    /// The shared copy of a list.
    pub fn list(&mut self, value: Vec<E>) -> Arc<[E]> {
        self.lookup(value)
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The shared copy of `value`.
    pub fn share(&mut self, value: T) -> Arc<T> {
        self.lookup(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_allocation_and_unused_ones_go() {
        let mut strings = Strings::default();
        let a = strings.get("zone-a");
        assert!(Arc::ptr_eq(&a, &strings.get("zone-a")));
        for i in 0..5000 {
            strings.get(&format!("pod-{i}"));
        }
        assert!(strings.len() <= SWEEP_FLOOR + 1, "{} held", strings.len());
        assert!(Arc::ptr_eq(&a, &strings.get("zone-a")));
    }

    #[test]
    fn equal_shapes_are_one_allocation() {
        let mut shapes = Interner::<Vec<u8>>::default();
        let first = shapes.share(vec![1]);
        assert!(Arc::ptr_eq(&first, &shapes.share(vec![1])));
        assert!(!Arc::ptr_eq(&first, &shapes.share(vec![2])));
    }
}
