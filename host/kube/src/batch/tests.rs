use super::*;

fn uid(text: &str) -> Arc<str> {
    Arc::from(text)
}

async fn at(ms: u64, start: Instant) {
    tokio::time::sleep_until(start + Duration::from_millis(ms)).await;
}

#[tokio::test(start_paused = true)]
async fn closes_after_the_idle_time() {
    let (mut batcher, trigger) = Batcher::new(Windows::default());
    let start = Instant::now();
    trigger.trigger(&uid("a"));
    let batch = batcher.wait().await;
    assert_eq!(batch, Batch { triggers: 1, open_for: Duration::from_secs(1) });
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_extends_the_window_and_the_same_pod_does_not() {
    let (mut batcher, trigger) = Batcher::new(Windows::default());
    let start = Instant::now();
    trigger.trigger(&uid("a"));
    let feeder = tokio::spawn(async move {
        at(500, start).await;
        trigger.trigger(&uid("b"));
        at(1200, start).await;
        trigger.trigger(&uid("a"));
        trigger.trigger(&uid("b"));
    });
    let batch = batcher.wait().await;
    assert_eq!(start.elapsed(), Duration::from_millis(1500));
    assert_eq!(batch.triggers, 2);
    feeder.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn never_longer_than_the_maximum() {
    let (mut batcher, trigger) = Batcher::new(Windows::default());
    let start = Instant::now();
    let feeder = tokio::spawn(async move {
        for i in 0..40 {
            trigger.trigger(&uid(&format!("pod-{i}")));
            at(i * 500 + 500, start).await;
        }
    });
    let batch = batcher.wait().await;
    assert_eq!(batch.open_for, Duration::from_secs(10));
    assert!(batch.triggers >= 19 && batch.triggers <= 21, "{}", batch.triggers);
    let next = batcher.wait().await;
    assert!(next.triggers >= 19, "the rest is in the next window: {}", next.triggers);
    feeder.abort();
}

#[tokio::test(start_paused = true)]
async fn waits_for_ever_without_a_trigger_and_forgets_nothing_between_windows() {
    let (mut batcher, trigger) = Batcher::new(Windows::default());
    assert!(tokio::time::timeout(Duration::from_secs(3600), batcher.wait()).await.is_err());
    trigger.trigger(&uid("a"));
    batcher.wait().await;
    // The same pod counts again in the next window, also when it came while nobody waited.
    trigger.trigger(&uid("a"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    let before = Instant::now();
    assert_eq!(batcher.wait().await.triggers, 1);
    assert_eq!(before.elapsed(), Duration::from_secs(1));
    trigger.trigger_now();
    trigger.trigger_now();
    assert_eq!(batcher.wait().await.triggers, 2);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_loses_nothing() {
    let (mut batcher, trigger) = Batcher::new(Windows::default());
    trigger.trigger(&uid("a"));
    assert!(tokio::time::timeout(Duration::from_millis(300), batcher.wait()).await.is_err());
    assert_eq!(batcher.wait().await.triggers, 1);
}
