//! Folds single lookups into one request: waits a little for more, answers each asker.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::error::CloudError;

/// Waits this long for another item,
const IDLE: Duration = Duration::from_millis(100);
/// and this long in all.
const MAX: Duration = Duration::from_secs(1);
/// Items of one request: as many values as an EC2 filter takes.
const ITEMS: usize = 200;

/// Answers by item. An item without an answer is taken as not found.
pub(crate) type Answers<T> = BTreeMap<String, Result<T, CloudError>>;
type Job<T> = Pin<Box<dyn Future<Output = Answers<T>> + Send>>;
type Asked<T> = (String, oneshot::Sender<Result<T, CloudError>>);

/// The asking side; cheap to clone.
pub(crate) struct Batcher<T>(mpsc::UnboundedSender<Asked<T>>);

impl<T: Clone + Send + 'static> Batcher<T> {
    /// Starts the collector on the current runtime. It ends when every handle is gone.
    pub(crate) fn start(ask: impl Fn(Vec<String>) -> Job<T> + Send + Sync + 'static) -> Self {
        Self::with_windows(IDLE, MAX, ask)
    }

    fn with_windows(
        idle: Duration,
        max: Duration,
        ask: impl Fn(Vec<String>) -> Job<T> + Send + Sync + 'static,
    ) -> Self {
        let (sender, mut receiver) = mpsc::unbounded_channel::<Asked<T>>();
        let ask = std::sync::Arc::new(ask);
        tokio::spawn(async move {
            while let Some(first) = receiver.recv().await {
                let mut batch = vec![first];
                let end = Instant::now() + max;
                while batch.len() < ITEMS {
                    let wait = (Instant::now() + idle).min(end);
                    match tokio::time::timeout_at(wait, receiver.recv()).await {
                        Ok(Some(more)) => batch.push(more),
                        Ok(None) | Err(_) => break,
                    }
                }
                let ask = std::sync::Arc::clone(&ask);
                // The next batch collects while this one is asked.
                tokio::spawn(async move {
                    let mut waiting: BTreeMap<String, Vec<oneshot::Sender<_>>> = BTreeMap::new();
                    for (item, sender) in batch {
                        waiting.entry(item).or_default().push(sender);
                    }
                    let mut answers = ask(waiting.keys().cloned().collect()).await;
                    for (item, senders) in waiting {
                        let answer = answers.remove(&item).unwrap_or(Err(CloudError::NotFound { what: item.clone() }));
                        for sender in senders {
                            // Whoever stopped waiting needs no answer.
                            let _gone = sender.send(answer.clone());
                        }
                    }
                });
            }
        });
        Self(sender)
    }

    /// Asks for one item.
    pub(crate) async fn ask(&self, item: &str) -> Result<T, CloudError> {
        let stopped = || CloudError::Transient {
            call: "batch",
            message: "the collector of requests has stopped".to_owned(),
            retry_after: None,
        };
        let (sender, receiver) = oneshot::channel();
        self.0.send((item.to_owned(), sender)).map_err(|_| stopped())?;
        receiver.await.map_err(|_| stopped())?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn many_askers_one_request() {
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        let batcher = Batcher::with_windows(IDLE, MAX, move |items| {
            seen.fetch_add(1, Ordering::SeqCst);
            Box::pin(async move { items.into_iter().filter(|i| i != "gone").map(|i| (i.clone(), Ok(i))).collect() })
        });
        let names = ["a", "b", "a", "gone"];
        let answers = futures::future::join_all(names.iter().map(|n| batcher.ask(n))).await;
        assert_eq!(answers[0].as_deref(), Ok("a"));
        assert_eq!(answers[2].as_deref(), Ok("a"));
        assert!(answers[3].as_ref().is_err_and(CloudError::is_not_found));
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn a_full_batch_does_not_wait() {
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        let batcher = Batcher::with_windows(IDLE, MAX, move |items| {
            seen.fetch_add(1, Ordering::SeqCst);
            assert!(items.len() <= ITEMS);
            Box::pin(async move { items.into_iter().map(|i| (i, Ok(()))).collect() })
        });
        let names: Vec<String> = (0..450).map(|i| i.to_string()).collect();
        let answers = futures::future::join_all(names.iter().map(|n| batcher.ask(n))).await;
        assert!(answers.iter().all(Result::is_ok));
        assert_eq!(calls.load(Ordering::SeqCst), 3);
    }
}
