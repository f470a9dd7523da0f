//! Numbers that look random and are the same for ever: a seed of the test must mean the same problem in ten years, which
//! no library promises.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        random.bits();
        random
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        // The bias of the remainder is of no interest for numbers as small as these.
        if end == 0 { 0 } else { usize::try_from(self.bits() % end as u64).unwrap_or_default() }
    }

    /// From `first` to `last`, both of them possible.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last.saturating_sub(first) + 1)
    }

    /// True in this many of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them. `choices` must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Some of them, at least one if there is any, in their order.
    pub fn some<'a, T>(&mut self, choices: &'a [T]) -> Vec<&'a T> {
        let mut chosen: Vec<&T> = choices.iter().filter(|_| self.chance(50)).collect();
        if chosen.is_empty() && !choices.is_empty() {
            chosen.push(self.pick(choices));
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut random = Random::new(42);
        let numbers: Vec<usize> = (0..6).map(|_| random.below(1000)).collect();
        assert_eq!(numbers, [415, 904, 879, 21, 665, 945]);
    }

    #[test]
    fn bounds_are_kept() {
        let mut random = Random::new(1);
        let drawn: Vec<usize> = (0..200).map(|_| random.between(3, 5)).collect();
        assert!([3, 4, 5].iter().all(|n| drawn.contains(n)) && drawn.iter().all(|n| (3..=5).contains(n)));
        assert_eq!(random.below(0), 0);
        assert!((0..50).all(|_| !random.some(&[1, 2, 3]).is_empty()));
    }
}
