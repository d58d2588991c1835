//! Holds garbage collection to a number of bytes a second, that of `Options::gc_bytes_per_second` until another is set.

use std::time::Duration;

use crate::base::sync::{AtomicU64, Mutex, Ordering};

/// Bytes that may be copied at once.
pub const PACE_BYTES: u64 = 1 << 20;

/// The pace of all collections of a cube together. Lock rank: a leaf.
#[derive(Debug)]
pub struct Pace {
    /// Bytes a second; 0 is no limit.
    rate: AtomicU64,
    /// When everything copied so far will have been paid for.
    paid_until: Mutex<Duration>,
}

impl Pace {
    /// A pace of `rate` bytes a second; 0 is no limit.
    pub fn new(rate: u64) -> Self {
        Self { rate: AtomicU64::new(rate), paid_until: Mutex::default() }
    }

    /// Bytes a second; 0 is no limit.
    pub fn rate(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    /// Changes the pace to `rate` bytes a second; 0 is no limit. Who waits already waits as long as it was told to.
    pub fn set_rate(&self, rate: u64) {
        self.rate.store(rate, Ordering::Relaxed);
        *self.paid_until.lock() = Duration::ZERO;
    }

    /// How long to wait after having copied `bytes`, at time `now`.
    pub fn after(&self, bytes: u64, now: impl FnOnce() -> Duration) -> Duration {
        let rate = self.rate();
        if rate == 0 {
            return Duration::ZERO;
        }
        let now = now();
        let mut paid_until = self.paid_until.lock();
        *paid_until = (*paid_until).max(now) + Duration::from_secs_f64(bytes as f64 / rate as f64);
        *paid_until - now
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn copies_are_paid_for_one_after_the_other() {
        let pace = Pace::new(1000);
        let at = |seconds| move || Duration::from_secs(seconds);
        assert_eq!(pace.after(500, at(10)), Duration::from_millis(500));
        assert_eq!(pace.after(1000, at(10)), Duration::from_millis(1500));
        assert_eq!(pace.after(100, at(20)), Duration::from_millis(100), "time that passed is not saved up");
        pace.after(1 << 40, at(20));
        pace.set_rate(2000);
        assert_eq!(
            pace.after(1000, at(20)),
            Duration::from_millis(500),
            "what was owed at another pace is let off"
        );
        assert_eq!(Pace::new(0).after(u64::MAX, || unreachable!("no clock is read")), Duration::ZERO);
    }
}
