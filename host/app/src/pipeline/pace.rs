//! No hot loop while nothing can be had: when claim after claim comes to nothing, rounds slow down.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Rounds that failed in a row and still bring the next one at once: each of them taught the provider more offerings
/// that are out of stock, so the next list is another one.
const FREE: u32 = 5;
/// First and longest pause.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Launches that came to nothing and that succeeded, since the start of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Endings {
    /// Came to nothing.
    pub failed: u64,
    /// Succeeded.
    pub launched: u64,
}

/// The pace of rounds.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    seen: Endings,
    failures: u32,
    last: Option<Instant>,
}

impl Pace {
    /// How long to hold the next round.
    pub(super) fn hold(&mut self, endings: Endings, now: Instant) -> Option<Duration> {
        let (failed, launched) = (endings.failed > self.seen.failed, endings.launched > self.seen.launched);
        self.seen = endings;
        let quiet = self.last.replace(now).is_some_and(|last| now.duration_since(last) > PAUSE.1 * 2);
        if launched || quiet {
            self.failures = 0;
        } else if failed {
            self.failures = self.failures.saturating_add(1);
        }
        let over = self.failures.checked_sub(FREE).filter(|n| *n > 0)?;
        if !failed {
            return None;
        }
        let (first, max) = PAUSE;
        Some(first.saturating_mul(1_u32.checked_shl(over - 1).unwrap_or(u32::MAX)).min(max))
    }
}

/// One pace, and the end of the wait that has begun.
type Paced = (Pace, Option<Instant>);

/// The pace of each of several things, by name.
#[derive(Debug, Default)]
pub(crate) struct Paces {
    each: Mutex<BTreeMap<Arc<str>, Paced>>,
}

impl Paces {
    /// How long this one has to wait still. A wait once begun is waited out, however often it is asked about.
    pub(crate) fn hold(&self, name: &Arc<str>, endings: Endings) -> Option<Duration> {
        let now = Instant::now();
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        let (pace, until) = each.entry(Arc::clone(name)).or_default();
        if let Some(left) = until.and_then(|until| until.checked_duration_since(now)).filter(|left| !left.is_zero()) {
            return Some(left);
        }
        let hold = pace.hold(endings, now);
        *until = hold.map(|hold| now + hold);
        hold
    }

    /// Forgets what is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.each.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn slows_down_and_recovers() {
        let mut pace = Pace::default();
        let mut endings = Endings::default();
        let mut holds = Vec::new();
        for _ in 0..12 {
            tokio::time::advance(Duration::from_secs(1)).await;
            holds.push(pace.hold(endings, Instant::now()).map_or(0, |h| h.as_secs()));
            endings.failed += 3;
        }
        assert_eq!(holds, [0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 30]);
        endings.launched += 1;
        assert_eq!(pace.hold(endings, Instant::now()), None);
        endings.failed += 1;
        assert_eq!(pace.hold(endings, Instant::now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_waited_out_by_each_alone() {
        let (paces, a, b) = (Paces::default(), Arc::from("a"), Arc::from("b"));
        let mut failed = 0;
        let hold = loop {
            failed += 1;
            match paces.hold(&a, Endings { failed, launched: 0 }) {
                Some(hold) => break hold,
                None => tokio::time::advance(Duration::from_secs(1)).await,
            }
        };
        tokio::time::advance(hold / 2).await;
        assert_eq!(paces.hold(&a, Endings { failed, launched: 0 }), Some(hold / 2));
        assert_eq!(paces.hold(&b, Endings { failed, launched: 0 }), None);
        tokio::time::advance(hold / 2).await;
        assert_eq!(paces.hold(&a, Endings { failed, launched: 0 }), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_minute_forgets() {
        let mut pace = Pace::default();
        for failed in 0..9 {
            pace.hold(Endings { failed, launched: 0 }, Instant::now());
        }
        assert!(pace.hold(Endings { failed: 9, launched: 0 }, Instant::now()).is_some());
        tokio::time::advance(Duration::from_secs(120)).await;
        assert_eq!(pace.hold(Endings { failed: 10, launched: 0 }, Instant::now()), None);
    }
}
