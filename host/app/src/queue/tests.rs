use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const BACKOFF: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(8) };

/// Runs the queue beside `drive` and returns the log of (key, milliseconds since start).
async fn log<W>(
    workers: usize,
    drive: impl AsyncFnOnce(Queue<u32>),
    work: impl Fn(u32) -> W + Clone + Send + 'static,
) -> Vec<(u32, u128)>
where
    W: Future<Output = Next> + Send + 'static,
{
    let queue = Queue::new(BACKOFF);
    let stop = CancellationToken::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let start = Instant::now();
    let runner = tokio::spawn({
        let (queue, stop, seen) = (queue.clone(), stop.clone(), seen.clone());
        async move {
            queue
                .run(workers, &stop, move |key| {
                    seen.lock().unwrap().push((key, start.elapsed().as_millis()));
                    work(key)
                })
                .await;
        }
    });
    drive(queue).await;
    stop.cancel();
    runner.await.unwrap();
    Arc::into_inner(seen).unwrap().into_inner().unwrap()
}

#[tokio::test(start_paused = true)]
async fn same_key_waits_for_its_worker_and_runs_once_more() {
    let seen = log(
        8,
        async |queue| {
            queue.add(1);
            tokio::time::sleep(Duration::from_millis(10)).await;
            queue.add(1);
            queue.add(1);
            queue.add(2);
            tokio::time::sleep(Duration::from_secs(1)).await;
        },
        |_| async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Next::Done
        },
    )
    .await;
    assert_eq!(seen, [(1, 0), (2, 10), (1, 100)]);
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_until_something_changes() {
    let seen = log(
        1,
        async |queue| {
            queue.add(1);
            tokio::time::sleep(Duration::from_millis(20_500)).await;
            queue.add(1);
            tokio::time::sleep(Duration::from_millis(100)).await;
        },
        |_| async { Next::Retry },
    )
    .await;
    let times: Vec<u128> = seen.iter().map(|(_, t)| *t).collect();
    assert_eq!(times.len(), 6, "{times:?}");
    for (got, want) in times.iter().zip([0, 1000, 3000, 7000, 15_000, 20_500]) {
        assert!(got.abs_diff(want) < 20, "{times:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn earliest_delay_counts() {
    let seen = log(
        1,
        async |queue| {
            queue.add_after(1, Duration::from_secs(5));
            queue.add_after(1, Duration::from_secs(2));
            queue.add_after(1, Duration::from_secs(9));
            tokio::time::sleep(Duration::from_secs(20)).await;
        },
        |_| async { Next::Done },
    )
    .await;
    assert_eq!(seen.len(), 1);
    assert!(seen[0].1.abs_diff(2000) < 20);
}

/// A worker that panics gives its key back, and other keys go on.
#[tokio::test(start_paused = true)]
async fn panic_is_a_retry() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counter = tries.clone();
    let seen = log(
        2,
        async |queue| {
            queue.add(1);
            queue.add(2);
            tokio::time::sleep(Duration::from_millis(1500)).await;
        },
        move |key| {
            let counter = counter.clone();
            async move {
                assert!(key != 1 || counter.fetch_add(1, Ordering::Relaxed) > 0, "first try of key 1 fails");
                Next::Done
            }
        },
    )
    .await;
    assert_eq!(seen.iter().filter(|(k, _)| *k == 1).count(), 2, "{seen:?}");
    assert_eq!(seen.iter().filter(|(k, _)| *k == 2).count(), 1);
}
