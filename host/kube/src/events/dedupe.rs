//! Which Events are repetitions.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use tokio::time::Instant;

use super::{Event, bound, window};

/// Entries kept; when there are more, those whose window is over go first, then all.
const MAX: usize = 10_000;

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Instant,
}

/// Remembers, by hash, until when an Event is a repetition.
#[derive(Debug, Default)]
pub(super) struct Dedupe {
    hasher: RandomState,
    until: HashMap<u64, Instant>,
    buckets: HashMap<String, Bucket>,
}

impl Dedupe {
    /// Whether the Event is to be sent; remembers it if so.
    pub(super) fn admit(&mut self, event: &Event) -> bool {
        let now = Instant::now();
        let about = &event.about;
        let message = if event.key.is_empty() { Some(&event.message) } else { None };
        let key = self.hasher.hash_one((
            (&about.kind, &about.namespace, &about.name, &about.uid),
            (&event.reason, event.warning, &event.key, message),
        ));
        if self.until.get(&key).is_some_and(|until| now < *until) {
            return false;
        }
        if !self.within_bound(event, now) {
            return false;
        }
        let window = event.window.unwrap_or_else(|| window(&event.reason));
        if !window.is_zero() {
            if self.until.len() >= MAX {
                self.until.retain(|_, until| now < *until);
            }
            if self.until.len() >= MAX {
                self.until.clear();
            }
            self.until.insert(key, now + window);
        }
        true
    }

    fn within_bound(&mut self, event: &Event, now: Instant) -> bool {
        let Some((rate, burst)) = bound(&event.reason, event.about.kind.as_deref().unwrap_or_default()) else {
            return true;
        };
        let bucket = self.buckets.entry(event.reason.clone()).or_insert_with(|| Bucket { tokens: burst, filled: now });
        let since = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.tokens = (bucket.tokens + since * rate).min(burst);
        bucket.filled = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }
}
