//! Cluster time that runs at a multiple of real time: tokio's clock, paused and pushed on.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

/// Between two pushes, real time.
const TICK: Duration = Duration::from_millis(10);
/// A machine that cannot keep up slows cluster time down instead of seeing it jump.
const MOST: Duration = Duration::from_millis(50);

/// Pushes tokio's clock on, `speed` times as fast as real time, until dropped. Every timer of the process follows: the
/// controller's waits, boot times, leases, timestamps. The runtime must be a current-thread one with a paused clock.
pub async fn drive(speed: watch::Receiver<f64>) {
    let (tick, mut ticks) = mpsc::channel::<()>(1);
    // While a blocking task is under way, tokio does not jump to the next timer by itself. This one lasts as long as
    // somebody listens.
    tokio::task::spawn_blocking(move || {
        while tick.blocking_send(()).is_ok() {
            std::thread::sleep(TICK);
        }
    });
    let mut last = Instant::now();
    while ticks.recv().await.is_some() {
        let real = last.elapsed().min(MOST);
        last = Instant::now();
        let factor = *speed.borrow();
        if factor.is_finite() && factor > 0.0 {
            tokio::time::advance(real.mul_f64(factor)).await;
        }
    }
}
