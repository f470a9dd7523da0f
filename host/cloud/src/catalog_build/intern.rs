//! One allocation per text: a catalogue says "amd64", "true" and its label keys thousands of times.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Texts seen so far.
#[derive(Default)]
pub(super) struct Interner(BTreeSet<Arc<str>>);

impl Interner {
    pub(super) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.0.get(text) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(text);
        self.0.insert(Arc::clone(&new));
        new
    }
}
