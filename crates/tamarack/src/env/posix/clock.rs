//! The system's clocks.

use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::env::Clock;

/// The monotonic clock counted from the moment this value was made, and the wall clock.
#[derive(Debug)]
pub struct PosixClock {
    start: Instant,
}

impl PosixClock {
    /// A clock whose monotonic time begins now.
    pub fn starting_now() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for PosixClock {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn wall(&self) -> Duration {
        // A machine whose clock stands before 1970 has no better answer than the epoch itself.
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        thread::sleep(duration);
    }
}
