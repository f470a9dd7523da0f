//! Ragged columns as iterators, borrowed from whoever holds the vectors: a plugin its arguments, the host its snapshot.

use crate::types::{Choices, Groups};

/// A ragged list of lists. A malformed one reads as shorter rows, never as a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rows<'a> {
    /// End of each row.
    pub end: &'a [u32],
    /// Members of all rows.
    pub member: &'a [u32],
}

impl<'a> Rows<'a> {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// There are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end.is_empty()
    }

    /// Members of row `index`; empty when there is no such row.
    #[must_use]
    pub fn row(&self, index: usize) -> &'a [u32] {
        let start = match index {
            0 => 0,
            i => self.end.get(i - 1).copied().unwrap_or(u32::MAX) as usize,
        };
        let end = self.end.get(index).copied().unwrap_or(0) as usize;
        self.member.get(start..end).unwrap_or(&[])
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let rows = *self;
        (0..rows.len()).map(move |i| rows.row(i))
    }
}

impl<'a> From<&'a Groups> for Rows<'a> {
    fn from(groups: &'a Groups) -> Self {
        Self { end: &groups.end, member: &groups.member }
    }
}

/// What each row may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidates<'a> {
    /// Distinct sets.
    pub sets: Rows<'a>,
    /// Set of each row.
    pub set_of: &'a [u32],
}

impl<'a> Candidates<'a> {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.set_of.len()
    }

    /// There are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set_of.is_empty()
    }

    /// Candidates of row `index`.
    #[must_use]
    pub fn row(&self, index: usize) -> &'a [u32] {
        self.set_of.get(index).map_or(&[], |set| self.sets.row(*set as usize))
    }

    /// Candidates of all rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u32]> + use<'a> {
        let candidates = *self;
        (0..candidates.len()).map(move |i| candidates.row(i))
    }

    /// Candidates over all rows: the length of `base` and of a scorer's answer.
    #[must_use]
    pub fn count(&self) -> usize {
        self.iter().map(<[u32]>::len).sum()
    }
}

impl<'a> From<&'a Choices> for Candidates<'a> {
    fn from(choices: &'a Choices) -> Self {
        Self { sets: (&choices.sets).into(), set_of: &choices.set_of }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_at_their_ends() {
        let rows = Rows { end: &[2, 2, 3], member: &[7, 8, 9] };
        assert_eq!(rows.iter().collect::<alloc::vec::Vec<_>>(), [&[7, 8][..], &[], &[9]]);
        assert!(rows.row(3).is_empty());
    }

    #[test]
    fn malformed_ends_read_as_empty_rows() {
        let rows = Rows { end: &[2, 1, 9], member: &[7, 8] };
        assert_eq!(rows.iter().collect::<alloc::vec::Vec<_>>(), [&[7, 8][..], &[], &[]]);
    }

    #[test]
    fn equal_sets_are_shared() {
        let candidates = Candidates { sets: Rows { end: &[1, 3], member: &[5, 6, 7] }, set_of: &[1, 0, 1, 4] };
        assert_eq!(candidates.iter().collect::<alloc::vec::Vec<_>>(), [&[6, 7][..], &[5], &[6, 7], &[]]);
        assert_eq!(candidates.count(), 5);
    }
}
