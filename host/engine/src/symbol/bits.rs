//! A growable set of small integers.

/// A set of indexes as words of 64. Bits beyond the end are zero; equality ignores trailing zero words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Every index below `len`.
    pub(crate) fn all(len: usize) -> Self {
        let mut words = vec![u64::MAX; len / 64];
        if !len.is_multiple_of(64) {
            words.push((1 << (len % 64)) - 1);
        }
        Self { words }
    }

    /// None, with room for indexes below `len`.
    pub(crate) fn none(len: usize) -> Self {
        Self { words: vec![0; len.div_ceil(64)] }
    }

    pub(crate) fn insert(&mut self, index: u32) {
        let word = index as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (index % 64);
    }

    pub(crate) fn remove(&mut self, index: u32) {
        if let Some(word) = self.words.get_mut(index as usize / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    pub(crate) fn contains(&self, index: u32) -> bool {
        self.words.get(index as usize / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Keeps what is also in `other`.
    pub(crate) fn and(&mut self, other: &Self) {
        self.words.truncate(other.words.len());
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine &= theirs;
        }
    }

    /// Adds what is in `other`.
    pub(crate) fn or(&mut self, other: &Self) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine |= theirs;
        }
    }

    /// Removes what is in `other`.
    pub(crate) fn and_not(&mut self, other: &Self) {
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            *mine &= !theirs;
        }
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.words.iter().enumerate().all(|(at, word)| word & !other.words.get(at).copied().unwrap_or(0) == 0)
    }

    /// The first index from `start` on that is also in `mask`.
    pub(crate) fn next_in(&self, start: u32, mask: &Self) -> Option<u32> {
        self.next_where(start, |at| mask.words.get(at).copied().unwrap_or(0))
    }

    /// The first index from `start` on that is not in `skip`.
    pub(crate) fn next_not_in(&self, start: u32, skip: &Self) -> Option<u32> {
        self.next_where(start, |at| !skip.words.get(at).copied().unwrap_or(0))
    }

    fn next_where(&self, start: u32, mask: impl Fn(usize) -> u64) -> Option<u32> {
        let first = start as usize / 64;
        let mut keep = u64::MAX << (start % 64);
        for (at, word) in self.words.iter().enumerate().skip(first) {
            let word = word & keep & mask(at);
            if word != 0 {
                return Some(super::id_of(at * 64) + word.trailing_zeros());
            }
            keep = u64::MAX;
        }
        None
    }

    /// Indexes in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let base = super::id_of(at * 64);
            let mut word = *word;
            std::iter::from_fn(move || {
                if word == 0 {
                    return None;
                }
                let bit = word.trailing_zeros();
                word &= word - 1;
                Some(base + bit)
            })
        })
    }

    /// Keeps the indexes for which `keep` holds.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        for (at, word) in self.words.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                if !keep(super::id_of(at * 64) + bit) {
                    *word &= !(1 << bit);
                }
            }
        }
    }

    fn trimmed(&self) -> &[u64] {
        let end = self.words.iter().rposition(|word| *word != 0).map_or(0, |at| at + 1);
        &self.words[..end]
    }
}

impl FromIterator<u32> for Bits {
    fn from_iter<I: IntoIterator<Item = u32>>(indexes: I) -> Self {
        let mut bits = Self::default();
        for index in indexes {
            bits.insert(index);
        }
        bits
    }
}

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.trimmed() == other.trimmed()
    }
}

impl Eq for Bits {}

impl PartialOrd for Bits {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bits {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.trimmed().cmp(other.trimmed())
    }
}
