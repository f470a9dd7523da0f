//! Growing, jittered pauses between attempts.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Exponential back-off: doubles up to a maximum, each pause spread by ±20 % so that replicas do not move in step.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    /// Starting at `first`, never above `max` (before jitter).
    pub fn new(first: Duration, max: Duration) -> Self {
        Self { next: first.min(max), max }
    }

    /// The next pause.
    pub fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(self.max);
        pause.mul_f64(0.8 + 0.4 * random_fraction())
    }
}

/// A number in [0, 1), different on every call. Not for secrets: it spreads load and makes names unlikely to collide.
pub fn random_fraction() -> f64 {
    // 53 bits, as many as the mantissa holds exactly.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a mantissa")]
    let numerator = (random_u64() >> 11) as f64;
    numerator / 9_007_199_254_740_992.0
}

/// Sixty-four bits from the randomly keyed hasher of the standard library.
pub fn random_u64() -> u64 {
    RandomState::new().build_hasher().finish()
}
