//! How long a plugin has taken: by its own thread's CPU, so that it is not blamed for a busy machine.

use std::time::{Duration, Instant};

/// How much longer than its deadline a call may take by the wall clock. A guest cannot sleep, so more than this means a
/// machine that gives it a tenth of a core: then a native answer is better than waiting on.
const WALL_FACTOR: u32 = 10;

/// The deadline of a call: CPU time of the calling thread, and as a backstop ten times that by the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    cpu: Duration,
    wall: Instant,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self { cpu: thread_time(), wall: Instant::now() }
    }

    /// CPU time since the start, when asked on the same thread.
    pub(crate) fn elapsed(&self) -> Duration {
        thread_time().saturating_sub(self.cpu)
    }

    pub(crate) fn is_past(&self, deadline: Duration) -> bool {
        self.elapsed() >= deadline || self.wall.elapsed() >= deadline.saturating_mul(WALL_FACTOR)
    }
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_not_work_but_not_for_ever() {
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(60));
        assert!(watch.elapsed() < Duration::from_millis(40), "sleeping takes no CPU");
        assert!(watch.is_past(Duration::from_millis(5)), "ten times the deadline by the wall clock");
        let watch = Stopwatch::start();
        while !watch.is_past(Duration::from_millis(5)) {
            std::hint::spin_loop();
        }
        assert!(watch.elapsed() > Duration::ZERO);
    }
}
