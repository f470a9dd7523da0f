//! A stream of numbers that looks random and is the same in every run.

/// xorshift64* (Vigna 2016), from a fixed start: a plan must not change with the round.
#[derive(Clone, Debug)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to below `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let high = self.next() >> 32;
        ((high * (bound as u64 & 0xFFFF_FFFF)) >> 32) as usize
    }

    /// From `low` to below `high`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        let unit = (self.next() >> 40) as f64 / 16_777_216.0;
        low + unit * (high - low)
    }
}
