//! When operations are due that come at a rate of their own, however fast the store is.
//!
//! Without one, a thread begins an operation as soon as the one before has ended: a store that stops for a second is asked for nothing
//! meanwhile, and one operation of a million shows it. With one, those that would have come meanwhile wait, and their latencies
//! count from when each was due.

use std::thread;
use std::time::{Duration, Instant};

/// Waits that are longer than this are slept through, but for as much: a sleep ends late by some part of it. The rest is spent
/// looking at the clock.
const WATCHED: Duration = Duration::from_micros(200);

/// The operations of one thread among several, in turn.
#[derive(Debug)]
pub struct Pace {
    begin: Instant,
    /// Operations a second of all threads together.
    rate: u64,
    threads: u64,
    /// The number of the next operation among those of all threads.
    next: u64,
}

impl Pace {
    /// Those of thread number `thread` of `threads`, which have `rate` operations a second together.
    pub fn new(begin: Instant, rate: u64, thread: u64, threads: u64) -> Self {
        Self { begin, rate, threads, next: thread }
    }

    /// When the next operation is due, which goes on to the one behind it.
    pub fn advance(&mut self) -> Instant {
        let number = self.next;
        self.next += self.threads;
        let within = Duration::from_nanos(number % self.rate * 1_000_000_000 / self.rate);
        self.begin + Duration::from_secs(number / self.rate) + within
    }
}

/// Waits until `due`, if it is not over.
pub fn wait_until(due: Instant) {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        if left > WATCHED {
            thread::sleep(left - WATCHED);
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_of_all_threads_are_due_at_the_rate() {
        let begin = Instant::now();
        let mut paces = [0, 1, 2].map(|thread| Pace::new(begin, 3000, thread, 3));
        for second in 0..2 {
            for millisecond in 0..1000 {
                for (thread, pace) in (0..).zip(&mut paces) {
                    let due = (pace.advance() - begin).as_nanos();
                    assert_eq!(due, second * 1_000_000_000 + (millisecond * 3 + thread) * 1_000_000 / 3);
                }
            }
        }
    }

    #[test]
    fn nobody_waits_for_what_is_over() {
        let due = Instant::now() + Duration::from_millis(3);
        wait_until(due);
        assert!(Instant::now() >= due);
        wait_until(due);
    }
}
