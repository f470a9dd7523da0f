//! The window in which pending pods are gathered before a round (karpenter-algorithms §1.3).
//!
//! The first trigger opens it. It closes when nothing new has come for the idle time, or at the latest when the maximum
//! has passed. The same pod triggers only once per window, so a pod that is updated again and again does not hold it open.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a window lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Closes after this time without a new trigger (`BATCH_IDLE_DURATION`).
    pub idle: Duration,
    /// Closes after this time in any case (`BATCH_MAX_DURATION`).
    pub max: Duration,
}

impl Default for Windows {
    fn default() -> Self {
        Self { idle: Duration::from_secs(1), max: Duration::from_secs(10) }
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// What has triggered in this window.
    seen: HashSet<Arc<str>>,
    /// Counts triggers that were not repetitions.
    count: u64,
}

#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    wake: Notify,
}

/// Triggers windows. Clones trigger the same one.
#[derive(Clone, Debug, Default)]
pub struct Trigger(Arc<Shared>);

impl Trigger {
    /// Something that wants a round, by UID: repeated in one window it does nothing.
    pub fn trigger(&self, uid: &Arc<str>) {
        self.0.with(|inner| {
            if inner.seen.insert(Arc::clone(uid)) {
                inner.count += 1;
                self.0.wake.notify_one();
            }
        });
    }

    /// Wants a round without being anything in particular.
    pub fn trigger_now(&self) {
        self.0.with(|inner| {
            inner.count += 1;
            self.0.wake.notify_one();
        });
    }
}

impl Shared {
    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        f(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A window that has closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Distinct things that triggered in it.
    pub triggers: u64,
    /// From its first trigger to its end.
    pub open_for: Duration,
}

/// Waits for windows. There is one; triggers are many.
#[derive(Debug)]
pub struct Batcher {
    shared: Arc<Shared>,
    windows: Windows,
    /// Triggers that belong to windows already returned.
    served: u64,
}

impl Batcher {
    /// A batcher and what triggers it.
    pub fn new(windows: Windows) -> (Self, Trigger) {
        let trigger = Trigger::default();
        (Self { shared: Arc::clone(&trigger.0), windows, served: 0 }, trigger)
    }

    /// Waits for a first trigger, then for the window to close. Triggers that come later open the next one. May be
    /// dropped while waiting: nothing is lost, the window starts over.
    pub async fn wait(&mut self) -> Batch {
        let mut count = self.count();
        while count == self.served {
            self.shared.wake.notified().await;
            count = self.count();
        }
        let opened = Instant::now();
        let latest = opened + self.windows.max;
        let mut quiet = opened + self.windows.idle;
        loop {
            let woken = tokio::time::timeout_at(quiet.min(latest), self.shared.wake.notified()).await;
            if woken.is_err() {
                break;
            }
            let now = self.count();
            if now != count {
                count = now;
                quiet = Instant::now() + self.windows.idle;
            }
        }
        let total = self.shared.with(|inner| {
            inner.seen.clear();
            inner.count
        });
        let triggers = total - self.served;
        self.served = total;
        Batch { triggers, open_for: opened.elapsed() }
    }

    fn count(&self) -> u64 {
        self.shared.with(|inner| inner.count)
    }
}

#[cfg(test)]
mod tests;
