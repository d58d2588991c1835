//! A clock that takes no time, and threads that nobody counts.

use std::io;
use std::time::Duration;

use crate::base::sync::{Ordering, PlainAtomicU64, spin_hint};
use crate::env::posix::PosixThreads;
use crate::env::{Clock, Join, Spawn};

/// What the wall clock shows when the monotonic one shows zero, in seconds.
const WALL_START_SECONDS: u64 = 1_700_000_000;

/// Whoever sleeps moves it on to the end of its sleep, at once, for everybody. A thread that sleeps in a loop
/// therefore makes time fly; it yields each time, so that others come first where a scheduler heeds that.
#[derive(Debug)]
pub struct SimClock {
    now_nanos: PlainAtomicU64,
}

impl SimClock {
    /// A clock that stands at `now`.
    pub fn at(now: Duration) -> Self {
        Self { now_nanos: PlainAtomicU64::new(nanos(now)) }
    }
}

impl Clock for SimClock {
    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.now_nanos.load(Ordering::Acquire))
    }

    fn wall(&self) -> Duration {
        Duration::from_secs(WALL_START_SECONDS) + self.monotonic()
    }

    fn sleep(&self, duration: Duration) {
        let end = self.now_nanos.load(Ordering::Acquire).saturating_add(nanos(duration));
        self.now_nanos.fetch_max(end, Ordering::AcqRel);
        spin_hint();
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The process's threads, or shuttle's, on a machine that is the same everywhere.
#[derive(Debug)]
pub struct SimThreads;

/// How many processors the machine has.
const PROCESSORS: usize = 2;

impl Spawn for SimThreads {
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Join>> {
        PosixThreads.spawn(name, body)
    }

    fn parallelism(&self) -> usize {
        PROCESSORS
    }

    fn yield_now(&self) {
        PosixThreads.yield_now();
    }
}
