//! Slows writers down smoothly when flushes and compactions fall behind.
//!
//! A token bucket: tokens are bytes, they flow in at a rate that falls as *debt* grows, and a writer whose bytes
//! are not there yet waits exactly as long as the missing ones take to flow in. Debt is a number from 0 (nothing
//! to catch up with) to 1 (as far behind as may be); [`rate_for_debt`] is a pure function of it and has no step.
//!
//! A small write is to wait for a microsecond or two, and no thread can sleep for less than some fifty. So writers owe what they should wait
//! for, until it is worth a sleep: fewer of them wait then, for longer, and those who work meanwhile are interrupted less often.
//! What a large batch owes at one rate is owed for no longer at a higher one; at a lower one for as long.

use std::time::Duration;

use super::space::Refusal;
use crate::base::sync::{AtomicBool, AtomicU64, Mutex, Ordering};

/// Debt below which writers are not slowed down at all.
const DEBT_FREE: f64 = 0.5;
/// Rate, in bytes a second, at which slowing down begins.
const RATE_BEGIN: f64 = 2e9;
/// The one it ends with at debt 1.
pub const RATE_END: f64 = 4e6;
/// Tokens that may lie in the bucket: so much may come at once, in seconds of the present rate.
const BURST_SECONDS: f64 = 0.001;
/// Writers owe less than this: where one of them waits for two fifths of its time, one in ten thousand of its writes of a kibibyte does so.
const WAIT_MIN: Duration = Duration::from_millis(6);

/// So much is owed for as long as it was, whatever becomes of the rate: what a large batch owes beyond is not.
const OWED_MAX: Duration = Duration::from_millis(50);

/// The bytes a second that writers may write at `debt`; `None` when they are not limited.
///
/// Between the two ends the rate falls exponentially, so that equal steps of debt slow writers by equal factors.
pub fn rate_for_debt(debt: f64) -> Option<f64> {
    if debt <= DEBT_FREE {
        return None;
    }
    let share = ((debt - DEBT_FREE) / (1.0 - DEBT_FREE)).min(1.0);
    Some(RATE_BEGIN * (RATE_END / RATE_BEGIN).powf(share))
}

/// The bucket of one cube. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Throttle {
    /// The rate in bytes a second; 0 when writers are not limited.
    rate: AtomicU64,
    bucket: Mutex<Bucket>,
    /// Whether there is a refusal.
    refuses: AtomicBool,
    refusal: Mutex<Option<Refusal>>,
    waits: AtomicU64,
    waited_nanos: AtomicU64,
}

#[derive(Debug, Default)]
struct Bucket {
    /// The time at which every token handed out so far has flowed in; ahead of now while writers wait.
    paid_until: Duration,
}

impl Throttle {
    /// Sets the rate for `debt`, at time `now`.
    pub fn set_debt(&self, debt: f64, now: Duration) {
        let rate = rate_for_debt(debt).map_or(0, |rate| rate as u64);
        let mut bucket = self.bucket.lock();
        let before = self.rate.swap(rate, Ordering::Relaxed);
        let owed = bucket.paid_until.saturating_sub(now);
        if owed > OWED_MAX && (rate == 0 || rate > before) {
            let share = if rate == 0 { 0.0 } else { before as f64 / rate as f64 };
            bucket.paid_until = now + owed.mul_f64(share).max(OWED_MAX);
        }
    }

    /// Why writers are to be refused, if they are: each should look whether that is still so.
    pub fn refuse(&self, refusal: Option<Refusal>) {
        *self.refusal.lock() = refusal;
        self.refuses.store(refusal.is_some(), Ordering::Relaxed);
    }

    /// What [`refuse`](Self::refuse) was told.
    pub fn refusal(&self) -> Option<Refusal> {
        if self.refuses.load(Ordering::Relaxed) { *self.refusal.lock() } else { None }
    }

    /// Takes `bytes` tokens at time `now`; returns how long the caller must wait, for them and for what others owe, usually zero; it is to be
    /// seen now and then how much of that is [left](Self::left).
    pub fn admit(&self, bytes: u64, now: impl FnOnce() -> Duration) -> Duration {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return Duration::ZERO;
        }
        let now = now();
        let mut bucket = self.bucket.lock();
        let earliest = now.saturating_sub(Duration::from_secs_f64(BURST_SECONDS));
        bucket.paid_until =
            bucket.paid_until.max(earliest) + Duration::from_secs_f64(bytes as f64 / rate as f64);
        let owed = bucket.paid_until.saturating_sub(now);
        if owed < WAIT_MIN {
            return Duration::ZERO;
        }
        owed
    }

    /// How much is left at time `now` of a wait until `end`: less than there was if the rate has risen.
    pub fn left(&self, end: Duration, now: Duration) -> Duration {
        self.bucket.lock().paid_until.min(end).saturating_sub(now)
    }

    /// Counts a wait, for `stats`.
    pub fn note_wait(&self, wait: Duration) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.waited_nanos.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
    }

    /// How many writes had to wait, and for how long in all.
    pub fn waited(&self) -> (u64, Duration) {
        let nanos = self.waited_nanos.load(Ordering::Relaxed);
        (self.waits.load(Ordering::Relaxed), Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_falls_smoothly() {
        assert_eq!(rate_for_debt(0.0), None);
        assert_eq!(rate_for_debt(DEBT_FREE), None);
        let mut previous = RATE_BEGIN;
        for step in 1..=1000 {
            let rate = rate_for_debt(0.5 + f64::from(step) / 2000.0).expect("limited");
            assert!(rate < previous && rate > previous * 0.99, "no cliff at step {step}");
            previous = rate;
        }
        assert!((rate_for_debt(7.0).expect("limited") - RATE_END).abs() < 1.0);
    }

    #[test]
    fn a_writer_waits_for_exactly_its_missing_tokens() {
        let throttle = Throttle::default();
        assert_eq!(throttle.admit(1 << 40, || unreachable!("no clock is read")), Duration::ZERO);
        throttle.set_debt(1.0, Duration::ZERO);
        let at = |ms| move || Duration::from_millis(ms);
        // 4 MB/s: 40,000 bytes take 10 ms, one of which lies in the bucket.
        assert_eq!(throttle.admit(40_000, at(1000)), Duration::from_millis(9));
        assert_eq!(throttle.admit(4_000, at(1000)), Duration::from_millis(10));
        assert_eq!(throttle.admit(4_000, at(2000)), Duration::ZERO);
    }

    #[test]
    fn what_is_owed_is_owed_for_no_longer_at_a_higher_rate() {
        let (throttle, at) = (Throttle::default(), Duration::from_secs);
        throttle.set_debt(1.0, at(1));
        let wait = throttle.admit(100_000_000, || at(1));
        assert_eq!(wait.as_secs_f64().round(), 25.0, "at 4 MB/s");
        assert_eq!(throttle.left(at(1) + wait, at(11)).as_secs_f64().round(), 15.0);
        throttle.set_debt(0.9, at(11));
        let left = throttle.left(at(1) + wait, at(11));
        assert!(left < at(5) && left > at(2), "{left:?} at {:?}", rate_for_debt(0.9));
        throttle.set_debt(1.0, at(11));
        assert_eq!(throttle.left(at(1) + wait, at(11)), left, "nor for longer at a lower one");
        throttle.set_debt(0.5, at(11));
        assert_eq!(throttle.left(at(1) + wait, at(11)), OWED_MAX);
        throttle.set_debt(1.0, at(12));
        assert_eq!(throttle.admit(4_000, || at(12)), Duration::ZERO);
    }

    #[test]
    fn small_writes_owe_what_is_not_worth_a_sleep() {
        let throttle = Throttle::default();
        throttle.set_debt(1.0, Duration::ZERO);
        let now = || Duration::from_secs(1);
        // Ten write for a millisecond each: one of these lies in the bucket.
        let waits: Vec<u128> = (0..10).map(|_| throttle.admit(4_000, now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 6, 7, 8, 9], "whoever waits, waits for all");
    }
}
