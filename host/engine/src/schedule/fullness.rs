//! The claims of a round by number of pods: the order in which they are tried, shared by every group.

use crate::symbol::Bits;

/// Claims by number of pods, emptiest first, then by age.
#[derive(Debug, Default)]
pub(crate) struct Fullness {
    /// By number of pods: the claims that have so many.
    with: Vec<Bits>,
}

impl Fullness {
    /// A claim now has `pods` pods; `before` is what it had, if it was known.
    pub(crate) fn changed(&mut self, claim: u32, before: Option<u32>, pods: u32) {
        if let Some(bits) = before.and_then(|before| self.with.get_mut(before as usize)) {
            bits.remove(claim);
        }
        let at = pods as usize;
        if self.with.len() <= at {
            self.with.resize(at + 1, Bits::default());
        }
        if let Some(bits) = self.with.get_mut(at) {
            bits.insert(claim);
        }
    }

    /// The first claim from this place on (pods, claim) that is not in `skip`.
    pub(crate) fn next_not_in(&self, from: (u32, u32), skip: &Bits) -> Option<(u32, u32)> {
        self.next(from, |bits, start| bits.next_not_in(start, skip))
    }

    /// The first claim from this place on (pods, claim) that is in `mask`.
    pub(crate) fn next_in(&self, from: (u32, u32), mask: &Bits) -> Option<(u32, u32)> {
        self.next(from, |bits, start| bits.next_in(start, mask))
    }

    fn next(&self, (pods, claim): (u32, u32), find: impl Fn(&Bits, u32) -> Option<u32>) -> Option<(u32, u32)> {
        let mut start = claim;
        for (pods, bits) in self.with.iter().enumerate().skip(pods as usize) {
            if let Some(found) = find(bits, start) {
                return Some((crate::symbol::id_of(pods), found));
            }
            start = 0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emptiest_first_then_oldest() {
        let mut order = Fullness::default();
        for claim in 0..70 {
            order.changed(claim, None, 1);
        }
        order.changed(0, Some(1), 3);
        order.changed(69, Some(1), 2);
        let walk = |skip: &Bits| {
            let (mut found, mut from) = (Vec::new(), (0, 0));
            while let Some((pods, claim)) = order.next_not_in(from, skip) {
                found.push((pods, claim));
                from = (pods, claim + 1);
            }
            found
        };
        assert_eq!(walk(&(2..69).collect()), [(1, 1), (2, 69), (3, 0)]);
        assert_eq!(walk(&Bits::default()).len(), 70);
        assert_eq!(order.next_in((0, 0), &[0, 69].into_iter().collect()), Some((2, 69)));
        assert_eq!(order.next_in((2, 70), &[0, 69].into_iter().collect()), Some((3, 0)));
        assert_eq!(order.next_in((0, 0), &Bits::default()), None);
    }
}
