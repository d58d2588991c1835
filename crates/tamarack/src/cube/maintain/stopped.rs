//! Why jobs of one kind do not run, and when they are tried again.
//!
//! A device that failed once may work the next time, and a full disk may have room: after such an error jobs are tried
//! again, first soon, then more and more seldom. Damage stays: what met it is left alone until the cube is opened again,
//! so that it is not met over and over.

use std::time::Duration;

use crate::base::error::{Error, ErrorKind, Result};

/// How long after the first failure of a row jobs are tried again; it doubles with each further one ...
const RETRY_FIRST: Duration = Duration::from_secs(1);
/// ... up to this.
const RETRY_LAST: Duration = Duration::from_secs(64);

/// What is known of failures of one kind of job.
#[derive(Debug, Default)]
pub struct Stopped {
    /// Why the last job failed, if it did.
    failed: Option<Error>,
    /// Whether no job may run for that.
    holds: bool,
    /// When jobs are tried again; never by themselves if `None`.
    retry_at: Option<Duration>,
    /// Failures since a job last succeeded.
    failures: u32,
}

impl Stopped {
    /// Notes how a job ended at time `now`. Returns why it failed if it is the first of a row that did. One that a close has
    /// ended says nothing, nor does success of one that had begun before another failed.
    pub fn note(&mut self, done: Result<()>, now: Duration) -> Option<&Error> {
        match done {
            Ok(()) if self.holds => {}
            Ok(()) => *self = Self::default(),
            Err(_) if self.stays() => {}
            Err(error) if error.kind() == ErrorKind::Closed => {}
            Err(error) => return self.fail(error, now),
        }
        None
    }

    fn fail(&mut self, error: Error, now: Duration) -> Option<&Error> {
        let delay =
            RETRY_FIRST.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX)).min(RETRY_LAST);
        self.retry_at = may_pass(&error).then(|| now + delay);
        (self.failed, self.holds) = (Some(error), true);
        self.failures = self.failures.saturating_add(1);
        self.failed().filter(|_| self.failures == 1)
    }

    /// Whether no job will run any more.
    pub fn stays(&self) -> bool {
        self.holds && self.retry_at.is_none()
    }

    /// Why jobs do not run, if they do not.
    pub fn why(&self) -> Option<&Error> {
        self.failed().filter(|_| self.holds)
    }

    /// Why the last job failed, if it did, whether another one may run or not.
    pub fn failed(&self) -> Option<&Error> {
        self.failed.as_ref()
    }

    /// Whether no job may run, by the clock `now`, which is only read if one has failed.
    pub fn holds(&mut self, now: impl FnOnce() -> Duration) -> bool {
        if self.holds && self.retry_at.is_some_and(|retry_at| retry_at <= now()) {
            self.holds = false;
        }
        self.holds
    }

    /// Lets jobs run again if what failed them may have passed and `is` is true of it; returns whether they could not.
    pub fn lift_if(&mut self, is: impl FnOnce(&Error) -> bool) -> bool {
        let lifts = self.why().is_some_and(|error| may_pass(error) && is(error));
        self.holds &= !lifts;
        lifts
    }
}

/// Whether the same may succeed later.
fn may_pass(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::NoSpace)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn failed() -> Error {
        Error::io("read", std::path::Path::new("somewhere"), std::io::Error::other("failed"))
    }

    #[test]
    fn what_may_pass_is_tried_again_more_and_more_seldom() {
        let mut stopped = Stopped::default();
        assert!(!stopped.holds(|| unreachable!("no clock is read")));
        let mut now = 100;
        for (number, delay) in [1, 2, 4, 8, 16, 32, 64, 64, 64].into_iter().enumerate() {
            assert_eq!(stopped.fail(failed(), at(now)).is_some(), number == 0);
            assert!(stopped.holds(|| at(now + delay - 1)), "{delay}");
            assert!(stopped.why().is_some());
            now += delay;
            assert!(!stopped.holds(|| at(now)), "{delay}");
            assert!(stopped.why().is_none() && stopped.failed().is_some(), "it is remembered");
        }
        assert!(stopped.note(Err(Error::closed()), at(now)).is_none());
        assert!(stopped.failed().is_some() && stopped.note(Ok(()), at(now)).is_none());
        assert!(stopped.failed().is_none() && stopped.fail(failed(), at(now)).is_some(), "a new row");
        assert!(!stopped.holds(|| at(now + 1)), "begins anew");
    }

    #[test]
    fn damage_stays_whoever_asks() {
        let mut stopped = Stopped::default();
        stopped.fail(Error::corruption(std::path::Path::new("here"), 0, "a record", "another"), at(1));
        assert!(stopped.holds(|| at(1 << 40)));
        assert!(!stopped.lift_if(|_| true) && stopped.why().is_some());
    }

    #[test]
    fn those_that_were_under_way_say_nothing_of_a_failure() {
        let mut stopped = Stopped::default();
        assert!(stopped.note(Err(failed()), at(1)).is_some() && !stopped.stays());
        assert!(stopped.note(Ok(()), at(1)).is_none() && stopped.why().is_some());
        let damage = || Error::corruption(std::path::Path::new("here"), 0, "a record", "another");
        assert!(stopped.note(Err(damage()), at(1)).is_none(), "of the same row");
        assert!(stopped.note(Ok(()), at(1)).is_none() && stopped.note(Err(failed()), at(1)).is_none());
        assert!(stopped.stays() && stopped.why().is_some_and(|why| why.kind() == ErrorKind::Corruption));
    }

    #[test]
    fn whoever_knows_better_may_lift_it() {
        let mut stopped = Stopped::default();
        stopped.fail(failed(), at(1));
        assert!(!stopped.lift_if(|error| error.kind() == ErrorKind::NoSpace) && stopped.why().is_some());
        assert!(stopped.lift_if(|_| true) && !stopped.holds(|| at(1)));
        assert!(!stopped.lift_if(|_| true), "it is lifted already");
    }
}
