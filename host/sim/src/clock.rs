//! The one source of time of the embedded cluster: tokio's clock, anchored to the wall clock when it is made.
//!
//! A test that pauses tokio's clock thereby pauses every timestamp, delay and timeout here.

#[cfg(feature = "drive")]
mod drive;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

#[cfg(feature = "drive")]
pub use self::drive::drive;

/// Wall-clock time that follows tokio's clock, and a pace for simulated delays.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Anchor>);

#[derive(Debug)]
struct Anchor {
    wall: Timestamp,
    instant: Instant,
    speed: f64,
}

impl Clock {
    /// Starts at the present wall-clock time. `speed` divides every simulated delay (boot, image pull, …); values that
    /// are not positive count as 1. Must be called within a tokio runtime.
    pub fn new(speed: f64) -> Self {
        let speed = if speed.is_finite() && speed > 0.0 { speed } else { 1.0 };
        Self(Arc::new(Anchor { wall: Timestamp::now(), instant: Instant::now(), speed }))
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.0.instant.elapsed()).unwrap_or(SignedDuration::ZERO);
        self.0.wall.saturating_add(elapsed).unwrap_or(self.0.wall)
    }

    /// Now, as Kubernetes writes timestamps: whole seconds, UTC.
    pub fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// A simulated delay at this clock's speed.
    pub fn pace(&self, delay: Duration) -> Duration {
        delay.div_f64(self.0.speed)
    }

    /// Sleeps for a simulated delay.
    pub async fn sleep(&self, delay: Duration) {
        tokio::time::sleep(self.pace(delay)).await;
    }
}

/// Formats as Kubernetes writes timestamps: whole seconds, UTC.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats with microseconds, as `MicroTime` fields are written.
pub fn rfc3339_micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
