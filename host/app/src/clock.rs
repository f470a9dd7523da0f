//! Time of the controller: the wall clock at start, carried forward by tokio's clock, so that a test which pauses or
//! advances tokio's clock governs every deadline here.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    wall: Timestamp,
    since: Instant,
}

impl Clock {
    /// Starts now. Needs a tokio runtime when its clock is paused.
    #[must_use]
    pub fn start() -> Self {
        Self { wall: Timestamp::now(), since: Instant::now() }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.since.elapsed()).unwrap_or(SignedDuration::ZERO);
        // A machine that slept or whose clock was set: tokio's clock does not notice, and the API server's times would
        // run away from ours, so the wall clock wins unless tokio's was moved on purpose.
        let carried = self.wall.saturating_add(elapsed).unwrap_or(self.wall);
        let wall = Timestamp::now();
        if cfg!(test) || carried.duration_since(wall).unsigned_abs() < std::time::Duration::from_secs(1) {
            return carried;
        }
        if carried > wall { carried } else { wall }
    }

    /// Now, Unix milliseconds.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now().as_millisecond()
    }
}

/// The time so many milliseconds after the Unix epoch; the epoch itself when out of range.
#[must_use]
pub fn timestamp(unix_ms: i64) -> Timestamp {
    Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH)
}
