//! Garbage collection on request.

use super::super::Cube;
use super::GcReport;
use crate::base::error::{Error, Result};

/// How much garbage collection is to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GcGoal {
    /// One collection of what is most worth it, if anything is dead at all.
    Once,
    /// Collections until the database takes at most so many bytes on disk for each live byte of keys and values, or
    /// no collection helps any more.
    Until(f64),
}

impl Cube {
    /// Collects garbage now, beside what happens in the background. See `Db::gc`.
    ///
    /// # Errors
    /// `InvalidArgument`, `NoSpace`, `Io`, `Corruption`, `ReadOnly`, `Closed`.
    pub fn gc(&self, goal: GcGoal) -> Result<GcReport> {
        self.check_may_write()?;
        self.maintenance.check_open()?;
        if matches!(goal, GcGoal::Until(ratio) if ratio.is_nan() || ratio < 1.0) {
            return Err(Error::invalid_argument(
                "a goal of garbage collection is bytes on disk for each live byte: it is at least 1",
            ));
        }
        // Nothing is known of the tables that were there when the cube was opened, unless one has come since.
        self.estimate_missing();
        // What is kept to become new segments is no garbage.
        self.give_up_stock();
        let mut total = GcReport::default();
        loop {
            let reached = matches!(goal, GcGoal::Until(ratio) if self.space().amplification() <= ratio);
            if reached {
                return Ok(total);
            }
            let Some(done) = self.collect_here(LIVE_SHARE_MAX)? else { return Ok(total) };
            total.add(&done);
            if goal == GcGoal::Once {
                return Ok(total);
            }
        }
    }
}

/// A segment of which a larger part is alive is not worth copying, even on request.
const LIVE_SHARE_MAX: f64 = 0.98;
