//! Which attempt a NodeClaim is at, and so which client token its next call carries.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::aws::hash::short_hash;

/// A machine that a mismatched attempt started is listed by EC2 within this time, if there is one.
const LISTED_WITHIN: Duration = Duration::from_secs(120);
/// A claim that nobody asked for in this time is gone: launches are given up after five minutes.
const FORGET: Duration = Duration::from_secs(3600);

#[derive(Debug)]
struct Attempt {
    number: u32,
    mismatch_since: Option<Instant>,
    seen: Instant,
}

/// Attempts by claim UID.
///
/// A token counts only the attempts that EC2 answered with nothing. A refused call used up no token and an unanswered
/// one may have been heard, so both are repeated with the same one. A process that starts anew begins at zero, is given
/// the old answers one by one, and so arrives at the attempt that is open.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<BTreeMap<String, Attempt>>);

impl Attempts {
    fn with<T>(&self, uid: &str, change: impl FnOnce(&mut Attempt) -> T) -> T {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let attempt = map.entry(uid.to_owned()).or_insert(Attempt { number: 0, mismatch_since: None, seen: now });
        attempt.seen = now;
        let out = change(attempt);
        if map.len() > 1024 {
            map.retain(|_, a| now.saturating_duration_since(a.seen) < FORGET);
        }
        out
    }

    /// Token for the next call.
    pub(crate) fn token(&self, uid: &str) -> String {
        self.with(uid, |a| short_hash(&["mortise-launch", uid, &a.number.to_string()]))
    }

    /// EC2 answered that nothing was started: the token is used up.
    pub(crate) fn exhausted(&self, uid: &str) {
        self.with(uid, |a| {
            a.number = a.number.saturating_add(1);
            a.mismatch_since = None;
        });
    }

    /// EC2 knows the token with another request, and lists no machine. After a while there will be none.
    pub(crate) fn mismatched(&self, uid: &str) {
        self.with(uid, |a| {
            let since = *a.mismatch_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= LISTED_WITHIN {
                a.number = a.number.saturating_add(1);
                a.mismatch_since = None;
            }
        });
    }

    /// There is a machine.
    pub(crate) fn settled(&self, uid: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_answer_uses_up_a_token() {
        let attempts = Attempts::default();
        let first = attempts.token("uid");
        assert_eq!(attempts.token("uid"), first, "a repeated call is the same call");
        attempts.mismatched("uid");
        assert_eq!(attempts.token("uid"), first, "the machine may still be listed");
        attempts.exhausted("uid");
        let second = attempts.token("uid");
        assert_ne!(second, first);
        let restarted = Attempts::default();
        assert_eq!(restarted.token("uid"), first);
        restarted.exhausted("uid");
        assert_eq!(restarted.token("uid"), second, "the next process walks the same chain");
        assert_ne!(restarted.token("other"), second);
        assert!(first.len() <= 64, "EC2's limit for client tokens");
    }
}
