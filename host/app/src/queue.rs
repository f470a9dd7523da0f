//! A work queue of keys. A key is worked on by one worker at a time; added meanwhile, it runs again afterwards; errors
//! back off per key, so that one broken object never holds up another.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[cfg(test)]
mod tests;

/// What a worker wants done with the key next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until somebody adds it again.
    Done,
    /// Look again after this time, unless added before.
    After(Duration),
    /// Something failed: again after a time that grows with every failure in a row.
    Retry,
}

/// Back-off of failing keys.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// After the first failure.
    pub first: Duration,
    /// At most.
    pub max: Duration,
}

impl Backoff {
    fn after(self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.max)
    }
}

/// A queue of keys; clones share it.
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

struct Shared<K> {
    inner: Mutex<Inner<K>>,
    wake: Notify,
    backoff: Backoff,
}

struct Inner<K> {
    /// Ready to run, in order.
    ready: VecDeque<K>,
    /// Keys in `ready`, or to run again once their worker is done.
    dirty: BTreeSet<K>,
    /// Keys being worked on.
    working: BTreeSet<K>,
    /// Keys to add later; the earliest time counts.
    delayed: BTreeSet<(Instant, K)>,
    due: BTreeMap<K, Instant>,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone + Send + 'static> Queue<K> {
    /// An empty queue.
    #[must_use]
    pub fn new(backoff: Backoff) -> Self {
        let inner = Inner {
            ready: VecDeque::new(),
            dirty: BTreeSet::new(),
            working: BTreeSet::new(),
            delayed: BTreeSet::new(),
            due: BTreeMap::new(),
            failures: BTreeMap::new(),
        };
        Self { shared: Arc::new(Shared { inner: Mutex::new(inner), wake: Notify::new(), backoff }) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        self.shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the key to be worked on soon. A key that is backing off after a failure runs now: something changed.
    pub fn add(&self, key: K) {
        if self.lock().add(key) {
            self.shared.wake.notify_one();
        }
    }

    /// As [`Self::add`], but leaves a key that is being worked on, or waits for its next try, as it is.
    pub fn add_if_idle(&self, key: K) {
        let mut inner = self.lock();
        if !inner.working.contains(&key) && !inner.due.contains_key(&key) && inner.add(key) {
            drop(inner);
            self.shared.wake.notify_one();
        }
    }

    /// Asks for the key to be worked on after a time; an earlier request stands.
    pub fn add_after(&self, key: K, delay: Duration) {
        let Some(at) = Instant::now().checked_add(delay) else { return };
        let mut inner = self.lock();
        if inner.due.get(&key).is_some_and(|due| *due <= at) {
            return;
        }
        if let Some(old) = inner.due.insert(key.clone(), at) {
            inner.delayed.remove(&(old, key.clone()));
        }
        inner.delayed.insert((at, key));
        drop(inner);
        self.shared.wake.notify_one();
    }

    /// Keys waiting or being worked on, later ones left out.
    #[must_use]
    pub fn len(&self) -> usize {
        let inner = self.lock();
        inner.ready.len() + inner.working.len()
    }

    /// Nothing to do now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Works on keys, so many at once, until the token is cancelled; then waits for the work under way.
    pub async fn run<F, W>(&self, workers: usize, stop: &CancellationToken, work: F)
    where
        F: Fn(K) -> W + Clone + Send + 'static,
        W: Future<Output = Next> + Send + 'static,
    {
        let permits = Arc::new(tokio::sync::Semaphore::new(workers.max(1)));
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let permit = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                permit = permits.clone().acquire_owned() => match permit {
                    Ok(permit) => permit,
                    Err(_) => break,
                },
            };
            let key = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                key = self.next() => key,
            };
            let (queue, work) = (self.clone(), work.clone());
            tasks.spawn(async move {
                // The guard hands the key back even when the worker panics, with a retry.
                let mut guard = Working { queue: &queue, key: key.clone(), next: Next::Retry };
                guard.next = work(key).await;
                drop(guard);
                drop(permit);
            });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// The next key to work on; its worker must end with [`Self::finish`].
    async fn next(&self) -> K {
        loop {
            let woken = self.shared.wake.notified();
            let wait = {
                let mut inner = self.lock();
                inner.promote(Instant::now());
                if let Some(key) = inner.ready.pop_front() {
                    inner.dirty.remove(&key);
                    inner.working.insert(key.clone());
                    return key;
                }
                inner.delayed.first().map(|(at, _)| *at)
            };
            match wait {
                Some(at) => tokio::select! {
                    () = woken => {}
                    () = tokio::time::sleep_until(at) => {}
                },
                None => woken.await,
            }
        }
    }

    fn finish(&self, key: &K, next: Next) {
        let mut inner = self.lock();
        inner.working.remove(key);
        let mut wake = false;
        if inner.dirty.contains(key) {
            inner.ready.push_back(key.clone());
            wake = true;
        }
        let delay = match next {
            Next::Done => {
                inner.failures.remove(key);
                None
            }
            Next::After(delay) => {
                inner.failures.remove(key);
                Some(delay)
            }
            Next::Retry => {
                let failures = inner.failures.entry(key.clone()).or_insert(0);
                *failures = failures.saturating_add(1);
                Some(self.shared.backoff.after(*failures))
            }
        };
        drop(inner);
        if wake {
            self.shared.wake.notify_one();
        }
        if let Some(delay) = delay {
            self.add_after(key.clone(), delay);
        }
    }
}

struct Working<'a, K: Ord + Clone + Send + 'static> {
    queue: &'a Queue<K>,
    key: K,
    next: Next,
}

impl<K: Ord + Clone + Send + 'static> Drop for Working<'_, K> {
    fn drop(&mut self) {
        self.queue.finish(&self.key, self.next);
    }
}

impl<K: Ord + Clone> Inner<K> {
    /// Marks the key; true when it became ready.
    fn add(&mut self, key: K) -> bool {
        if let Some(at) = self.due.remove(&key) {
            self.delayed.remove(&(at, key.clone()));
        }
        if !self.dirty.insert(key.clone()) || self.working.contains(&key) {
            return false;
        }
        self.ready.push_back(key);
        true
    }

    fn promote(&mut self, now: Instant) {
        while let Some((at, key)) = self.delayed.first().cloned() {
            if at > now {
                break;
            }
            self.add(key);
        }
    }
}
