//! When collections run in the background.

use super::super::Cube;
use super::super::collect::{Candidate, GcReport, choose};
use super::super::space::{Demand, Space};
use super::super::throttle::RATE_END;
use super::State;
use crate::base::error::{Error, Result};
use crate::base::options::GcPolicy;
use crate::base::sync::{Arc, MutexGuard, Ordering};
use crate::env::pool::Priority;

/// Segments of which a larger part is alive are left alone: collecting them would mostly copy.
const LIVE_SHARE_MAX: f64 = 0.9;
/// The same once most of the slack is used up.
const LIVE_SHARE_MAX_URGENT: f64 = 0.97;
/// Debt of space from which every thread collects: what is collected later copies less.
const DEBT_FOR_ALL: f64 = 0.2;
/// Bytes a second that collections must be allowed to copy to free what writers write that are slowed down most: a quarter of a
/// victim is dead where space is short.
const PACE_MIN: u64 = 4 * RATE_END as u64;
/// Share of the goal, in bytes on disk, from which memtables are flushed early so that what they hide is seen.
const EARLY_FLUSH_SHARE: f64 = 0.85;
/// What a byte of log must hide for that.
const EARLY_FLUSH_HIDDEN: f64 = 0.1;
/// Part of the live bytes that a memtable may hide then.
const EARLY_FLUSH_PART: u64 = 64;

impl Cube {
    /// Starts collections as long as space is wanted and something is worth collecting. Returns whether one runs, or waits
    /// for room.
    pub(super) fn start_collections(
        &self,
        this: &Arc<Self>,
        state: &mut MutexGuard<'_, State>,
        space: &Space,
        demand: Demand,
    ) -> bool {
        let off = self.options.gc == GcPolicy::Off || state.gc_pauses > 0;
        if off || state.collection_stopped.holds(|| self.env.clock.monotonic()) {
            return state.collecting > 0;
        }
        // Copies and what they are made from are both there: that passes.
        if state.sorting && demand == Demand::Idle {
            return state.collecting > 0;
        }
        // Where there is a pace, more of them would only wait for it together, on threads that others need.
        let paced = self.collector.pace.rate() > 0;
        let jobs_max = if (space.debt() > DEBT_FOR_ALL || space.calls_for_more_collections()) && !paced {
            self.options.background_threads
        } else {
            1
        };
        let share = if space.debt() > 0.8 { LIVE_SHARE_MAX_URGENT } else { LIVE_SHARE_MAX };
        // Who is about to make room is waited for; while nothing is written, only as long as somebody surely does.
        let leaves = space.removing > space.stock && (demand == Demand::Busy || self.is_removing());
        let soon = state.collecting > 0 || leaves;
        let wanted = space.calls_for_collection(demand) && state.collecting < jobs_max;
        let next = if wanted { self.bytes_to_copy(share) } else { None };
        let fits = !soon || next.is_none_or(|bytes| space.has_room(bytes));
        if fits && next.is_some() {
            state.collecting += 1;
            let end = |state: &mut State| state.collecting -= 1;
            this.start(state, Priority::Low, end, move |cube| cube.collection_job(share));
        }
        state.collecting > 0 || wanted && !fits
    }

    /// About how many bytes the next collection would copy; `None` if nothing is worth it.
    fn bytes_to_copy(&self, live_share_max: f64) -> Option<u64> {
        let version = self.index.version();
        let mut candidates = self.collection_candidates(&version);
        candidates.retain(|candidate| !self.index.is_collecting(candidate.id));
        let victims = choose(&candidates, self.options.gc, live_share_max, self.options.segment_bytes_max);
        let is_victim = |candidate: &&Candidate| victims.contains(&candidate.id);
        let bytes = candidates.iter().filter(is_victim).map(|candidate| candidate.live_bytes).sum();
        (!victims.is_empty()).then_some(bytes)
    }

    fn collection_job(&self, live_share_max: f64) {
        let done = self.collect(live_share_max).and_then(|_| self.drop_dead_segments());
        self.give_up_stock_after(&done);
        let now = self.env.clock.monotonic();
        // Damage to a victim was told, and the others can be collected.
        let done = done.or_else(|error| if self.is_in_quarantine(&error) { Ok(()) } else { Err(error) });
        self.end_job(|state| {
            state.collecting -= 1;
            // Whoever gets the error finds the warning, too.
            if let Some(error) = state.collection_stopped.note(done, now) {
                self.health.warn(format!("garbage could not be collected: {error}"));
            }
        });
    }

    /// What keeps garbage from being collected, and what to do about it; `None` if nothing does.
    pub(in super::super) fn what_hinders_collections(&self) -> Option<String> {
        let state = self.maintenance.state.lock();
        let [collection, compaction] = [&state.collection_stopped, &state.compaction_stopped]
            .map(|stopped| stopped.failed().map(ToString::to_string));
        drop(state);
        let failed =
            |what: &str, why| format!("{what} failed ({why}); remove the cause, or open the database again");
        let quarantined = self.collector.quarantined().len();
        if let Some(why) = collection {
            Some(failed("it", why))
        } else if let Some(why) = compaction {
            Some(failed("a compaction, which would tell what is dead,", why))
        } else if quarantined > 0 {
            Some(format!(
                "{quarantined} damaged segments are left alone; see what `check` says of them, and repair the database"
            ))
        } else {
            let rate = Some(self.collector.pace.rate()).filter(|rate| (1..PACE_MIN).contains(rate));
            rate.map(|rate| format!("it may copy {rate} bytes a second; raise gc_bytes_per_second"))
        }
    }

    /// One collection for a caller, on its thread. A close ends it early and waits for it; others do not.
    ///
    /// # Errors
    /// `Closed`; otherwise as for those.
    pub(in super::super) fn collect_here(&self, live_share_max: f64) -> Result<Option<GcReport>> {
        let mut state = self.maintenance.state.lock();
        if state.closing {
            return Err(Error::closed());
        }
        state.requested += 1;
        drop(state);
        let collect = || {
            let Some(done) = self.collect(live_share_max)? else { return Ok(None) };
            self.drop_dead_segments()?;
            Ok(Some(done))
        };
        self.removing_here(|| self.run_here(|state| state.requested -= 1, collect))
    }

    /// Bytes of log that a memtable may stand for before it is flushed.
    pub(super) fn memtable_log_max(&self, space: &Space) -> u64 {
        let longest = self.options.recovery_log_max / 4;
        let near = space.used() as f64 > space.goal as f64 * EARLY_FLUSH_SHARE;
        if !near || self.hidden_per_log_byte() < EARLY_FLUSH_HIDDEN || self.options.gc == GcPolicy::Off {
            return longest;
        }
        (space.live / EARLY_FLUSH_PART).max(self.options.segment_bytes_max).min(longest)
    }

    /// Counts what a collection did.
    pub(in super::super) fn count_collection(&self, done: &GcReport) {
        let counters = &self.counters;
        counters.collections.fetch_add(1, Ordering::Relaxed);
        counters.collected_segments.fetch_add(done.segments, Ordering::Relaxed);
        counters.collection_bytes_read.fetch_add(done.bytes_before, Ordering::Relaxed);
        counters.collection_bytes_written.fetch_add(done.bytes_after, Ordering::Relaxed);
        counters.collected_records.fetch_add(done.records, Ordering::Relaxed);
        counters.punched_segments.fetch_add(done.punched, Ordering::Relaxed);
        counters.hidden_records.fetch_add(done.hidden, Ordering::Relaxed);
    }

    /// Lets collections copy `rate` bytes a second from now on; 0 is no limit.
    pub fn set_gc_rate(&self, rate: u64) {
        self.collector.pace.set_rate(rate);
    }

    /// Keeps collections from beginning in the background until [`resume_gc`](Self::resume_gc) has been called as often.
    pub fn pause_gc(&self) {
        self.maintenance.state.lock().gc_pauses += 1;
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// `InvalidArgument` if there is none.
    pub fn resume_gc(&self) -> Result<()> {
        let mut state = self.maintenance.state.lock();
        let pauses = state.gc_pauses.checked_sub(1).ok_or_else(|| {
            Error::invalid_argument("garbage collection is not paused: resume it once for each pause")
        })?;
        state.gc_pauses = pauses;
        drop(state);
        self.schedule();
        Ok(())
    }
}
