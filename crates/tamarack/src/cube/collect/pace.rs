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

    /// Changes the pace to `rate` bytes a second; 0 is no limit. What is owed at the old one is let off.
    pub fn set_rate(&self, rate: u64) {
        let mut paid_until = self.paid_until.lock();
        self.rate.store(rate, Ordering::Relaxed);
        *paid_until = Duration::ZERO;
    }

    /// How long to wait after having copied `bytes`, at time `now`.
    pub fn after(&self, bytes: u64, now: impl FnOnce() -> Duration) -> Duration {
        if self.rate() == 0 {
            return Duration::ZERO;
        }
        let mut paid_until = self.paid_until.lock();
        // Another one may have been set, and all that was owed let off.
        let (rate, now) = (self.rate(), now());
        if rate == 0 {
            return Duration::ZERO;
        }
        *paid_until = (*paid_until).max(now) + Duration::from_secs_f64(bytes as f64 / rate as f64);
        *paid_until - now
    }

    /// How long everybody together still has to wait at time `now`.
    pub fn owed(&self, now: Duration) -> Duration {
        self.paid_until.lock().saturating_sub(now)
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
        assert!(pace.owed(Duration::from_secs(30)) > Duration::from_secs(1 << 30));
        pace.set_rate(2000);
        assert_eq!(pace.owed(Duration::from_secs(20)), Duration::ZERO, "it is let off at another pace");
        assert_eq!(pace.after(1000, at(20)), Duration::from_millis(500));
        assert_eq!(Pace::new(0).after(u64::MAX, || unreachable!("no clock is read")), Duration::ZERO);
    }
}
