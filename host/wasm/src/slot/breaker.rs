//! When to stop asking a plugin, and when to try again.

use std::collections::VecDeque;

/// Faults in a row that open the breaker.
const IN_A_ROW: u32 = 3;
/// Faults within [`WINDOW_MS`] that open it.
const IN_WINDOW: usize = 5;
/// Ten minutes.
const WINDOW_MS: u64 = 10 * 60 * 1_000;
/// Wait before the first retry; doubles with each that fails.
const FIRST_RETRY_MS: u64 = 1_000;
/// Longest wait.
const LAST_RETRY_MS: u64 = 5 * 60 * 1_000;

/// Opens after 3 faults in a row or 5 in 10 minutes. While open, the plugin is retried with growing pauses, one round at a
/// time; a good round closes it. Times are those of the rounds, so that a replay opens and closes it at the same rounds.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    in_a_row: u32,
    recent: VecDeque<u64>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    retry_at: u64,
    pause: u64,
}

impl Breaker {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn may_run(&self, now: u64) -> bool {
        self.open.as_ref().is_none_or(|open| now >= open.retry_at)
    }

    pub(super) fn fault(&mut self, now: u64) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.recent.push_back(now);
        while self.recent.len() > IN_WINDOW || self.recent.front().is_some_and(|t| now.saturating_sub(*t) > WINDOW_MS) {
            self.recent.pop_front();
        }
        let tripped = self.in_a_row >= IN_A_ROW || self.recent.len() >= IN_WINDOW;
        let pause = match &self.open {
            Some(open) => open.pause.saturating_mul(2).min(LAST_RETRY_MS),
            None if tripped => FIRST_RETRY_MS,
            None => return,
        };
        self.open = Some(Open { retry_at: now.saturating_add(pause), pause });
    }

    pub(super) fn success(&mut self) {
        self.in_a_row = 0;
        if self.open.take().is_some() {
            self.recent.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_after_three_in_a_row_and_closes_after_a_good_retry() {
        let mut breaker = Breaker::default();
        (0..2).for_each(|t| breaker.fault(t));
        assert!(breaker.may_run(2) && !breaker.is_open());
        breaker.fault(2);
        assert!(!breaker.may_run(1_001) && breaker.may_run(1_002), "first retry after a second");
        breaker.fault(1_002);
        assert!(!breaker.may_run(3_001) && breaker.may_run(3_002), "then after two");
        breaker.success();
        assert!(breaker.may_run(3_003) && !breaker.is_open());
        breaker.fault(3_004);
        assert!(!breaker.is_open(), "starts afresh");
    }

    #[test]
    fn opens_after_five_in_ten_minutes_with_good_rounds_between() {
        let minute = 60_000;
        let run = |gap: u64| {
            let mut breaker = Breaker::default();
            (0..5).for_each(|i| {
                breaker.success();
                breaker.fault(i * gap);
            });
            breaker.is_open()
        };
        assert!(run(2 * minute));
        assert!(!run(3 * minute));
    }

    #[test]
    fn pauses_are_bounded() {
        let mut breaker = Breaker::default();
        (0..40).for_each(|_| breaker.fault(0));
        assert!(breaker.may_run(LAST_RETRY_MS));
    }
}
