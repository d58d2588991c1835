//! Gives way to those who read single values, to whom sorted ones are of no use.

use std::time::Duration;

use super::super::super::Cube;
use crate::base::error::Result;
use crate::base::sync::Ordering;

/// While single values are read, a job rests this many times as long as it works.
const REST_PER_WORK: u32 = 9;
/// It works for at least so long before it looks who reads.
const WORK_MIN: Duration = Duration::from_millis(2);
/// It rests for at most so long at once.
const REST_MAX: Duration = Duration::from_millis(500);
/// While it rests, it looks this often whether it is to end.
const SLICE: Duration = Duration::from_millis(50);

/// What has been read from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reads {
    /// How many reads there were, of single values and for scans.
    pub reads: u64,
    /// What those for scans have cost.
    scanned: u64,
}

impl Reads {
    /// Those of `cube` until now.
    pub fn of(cube: &Cube) -> Self {
        Self {
            reads: cube.reader.counters().reads.load(Ordering::Relaxed),
            scanned: cube.counters.scan_cost_bytes.load(Ordering::Relaxed),
        }
    }

    /// Whether single values have been read since `earlier`, and nothing for scans.
    fn are_single_since(self, earlier: Self) -> bool {
        self.reads != earlier.reads && self.scanned == earlier.scanned
    }
}

/// How long to rest after having `worked` while reads came from `before` to `now`.
fn rest_after(worked: Duration, before: Reads, now: Reads) -> Duration {
    if now.are_single_since(before) { (worked * REST_PER_WORK).min(REST_MAX) } else { Duration::ZERO }
}

/// A job that gives way, or one that does not because somebody waits for it.
#[derive(Debug)]
pub struct Courtesy<'cube> {
    cube: &'cube Cube,
    /// When it last rested, and what had been read by then; `None` if it does not.
    rested: Option<(Duration, Reads)>,
}

impl<'cube> Courtesy<'cube> {
    /// A job in `cube` that `rests`, or does not.
    pub fn new(cube: &'cube Cube, rests: bool) -> Self {
        Self { cube, rested: rests.then(|| (cube.env.clock.monotonic(), Reads::of(cube))) }
    }

    /// To be called every now and then: rests if others read.
    ///
    /// # Errors
    /// `Closed` if the job was cancelled.
    pub fn give_way(&mut self) -> Result<()> {
        self.cube.check_not_cancelled()?;
        let Some((since, before)) = self.rested else { return Ok(()) };
        let clock = &self.cube.env.clock;
        let worked = clock.monotonic().saturating_sub(since);
        if worked < WORK_MIN {
            return Ok(());
        }
        let mut rest = rest_after(worked, before, Reads::of(self.cube));
        while !rest.is_zero() {
            let slice = rest.min(SLICE);
            clock.sleep(slice);
            rest -= slice;
            self.cube.check_not_cancelled()?;
        }
        self.rested = Some((clock.monotonic(), Reads::of(self.cube)));
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn it_rests_while_single_values_are_read_and_not_for_scans() {
        let before = Reads { reads: 5, scanned: 700 };
        let rest = |reads, scanned| rest_after(Duration::from_millis(4), before, Reads { reads, scanned });
        assert_eq!(rest(5, 700), Duration::ZERO, "nobody reads");
        assert_eq!(rest(6, 700), Duration::from_millis(36));
        assert_eq!(rest(9, 800), Duration::ZERO, "scans gain by it");
        let long = rest_after(Duration::from_secs(1), before, Reads { reads: 6, ..before });
        assert_eq!(long, REST_MAX);
    }
}
