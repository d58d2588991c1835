//! When values are sorted: while nothing is written or read, when scans have read much, or when somebody asks for it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::super::Cube;
use super::super::collect::{Effort, Replacing, Sorted, ToCopies, do_readers_hold_much};
use super::super::headroom::Patience;
use super::super::order::Obstacle;
use super::super::space::{Demand, Space};
use super::State;
use super::idle::Watch;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::SegmentId;
use crate::base::options::GcPolicy;
use crate::base::sync::{Arc, Ordering};
use crate::env::panic_message;
use crate::env::pool::Priority;
use crate::index::ManualTurn;

/// From this much on, flushes and compactions that are behind are worth giving way to.
const DEBT_MAX: f64 = 0.5;
/// The end of the log is sealed and flushed for the sake of sorting, while nothing is written, if it is this part of a full
/// segment at least.
const EXPOSED_PART: u64 = 8;

/// What has come of starting to sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A job has begun.
    Begun,
    /// There is nothing to do.
    IsSorted,
    /// It is not to be done now.
    MustNot,
}

/// Which segments there were when nothing was left to sort.
#[derive(Debug, Clone, Copy)]
pub struct Surveyed {
    /// The log's head.
    head: SegmentId,
    /// How many were sealed, and the last of these.
    sealed: usize,
    last: Option<SegmentId>,
    /// With which effort.
    effort: Effort,
}

impl Surveyed {
    /// Whether there is nothing to do at `present`, either.
    fn covers(&self, present: Self) -> bool {
        let segments = |surveyed: &Self| (surveyed.head, surveyed.sealed, surveyed.last);
        segments(self) == segments(&present) && present.effort <= self.effort
    }
}

impl Cube {
    /// Starts sorting values with that `effort` if no other job runs, none is wanted at that `demand`, and it may gain
    /// something.
    pub(super) fn start_sorting(&self, space: &Space, demand: Demand, effort: Effort) -> Start {
        let Some(this) = self.this.upgrade() else { return Start::MustNot };
        if !self.may_sort() || do_readers_hold_much(space) || space.is_over_goal(demand) {
            return Start::MustNot;
        }
        // It would give way at once, and begin again at the next look.
        if self.are_writers_held_up() {
            return Start::MustNot;
        }
        let surveyed = self.surveyed(effort);
        let mut state = self.maintenance.state.lock();
        if state.is_busy() || state.gc_pauses > 0 {
            return Start::MustNot;
        }
        if state.closing || self.maintenance.cancelled.load(Ordering::Relaxed) || self.health.is_poisoned() {
            return Start::MustNot;
        }
        if state.surveyed.is_some_and(|last| last.covers(surveyed)) {
            return Start::IsSorted;
        }
        // Nobody would have pointers lead to the copies.
        if state.compaction_stopped.stays() {
            return Start::MustNot;
        }
        state.sorting = true;
        let end = |state: &mut State| state.sorting = false;
        this.start(&mut state, Priority::Low, end, move |cube| cube.sorting_job(effort));
        Start::Begun
    }

    /// Starts sorting values while the database is used, if scans have cost the device as much as a job does since the last
    /// one began: what reorders values for scans never takes the device for longer than they do. Where all is sorted but
    /// the log's end, which is not flushed, that is brought about, unless it has failed with so many `log_bytes` written.
    pub(super) fn sort_for_scans(&self, watch: &mut Watch, log_bytes: u64) {
        let cost = self.counters.scan_cost_bytes.load(Ordering::Relaxed);
        if !self.may_sort() || cost - watch.scans_paid_for < self.cost_of_sorting(Effort::ForScans) {
            return;
        }
        match self.start_sorting(&self.space(), Demand::Busy, Effort::ForScans) {
            Start::Begun => watch.scans_paid_for = cost,
            Start::IsSorted if watch.unflushable != Some(log_bytes) && !self.is_flushing_stopped() => {
                let exposed = self.expose_log(self.sorting_job_bytes(Effort::ForScans));
                watch.unflushable = exposed.is_err().then_some(log_bytes);
            }
            Start::IsSorted | Start::MustNot => {}
        }
    }

    fn is_flushing_stopped(&self) -> bool {
        self.maintenance.state.lock().stopped.is_some()
    }

    fn surveyed(&self, effort: Effort) -> Surveyed {
        let version = self.index.version();
        let segments = version.segments();
        let last = segments.sealed().next_back().map(|entry| entry.meta.id);
        Surveyed { head: version.numbers().log_head.segment, sealed: segments.sealed().count(), last, effort }
    }

    fn sorting_job(&self, effort: Effort) {
        let surveyed = self.surveyed(effort);
        let done = self.sort_some_values(effort);
        if let Err(error) = &done
            && error.kind() != ErrorKind::Closed
        {
            self.health.warn(format!("values could not be sorted: {error}"));
        }
        // What failed is not tried again before something has changed.
        let is_over = !matches!(done, Ok(Sorted::Copied(_) | Sorted::GaveWay));
        let replacing = done.ok().and_then(Sorted::into_replacing);
        self.end_copying(replacing, is_over.then_some(surveyed));
    }

    /// Ends the copying part of a job: if anything was copied, the other part begins.
    fn end_copying(&self, replacing: Option<Box<Replacing>>, surveyed: Option<Surveyed>) {
        let mut given_up = None;
        self.end_job(|state| {
            if surveyed.is_some() {
                state.surveyed = surveyed;
            }
            if state.closing || state.compaction_stopped.stays() {
                given_up = replacing;
                state.sorting = false;
            } else {
                state.sorting = replacing.is_some();
                state.replacing = replacing;
            }
        });
        drop(given_up);
    }

    /// Has tables rewritten as long as some point into segments that were sorted. Once none does, these are dropped.
    pub(super) fn start_replacing(&self, this: &Arc<Self>, state: &mut State) {
        if state.compaction_stopped.holds(|| self.env.clock.monotonic()) {
            return;
        }
        while state.compacting < self.options.background_threads {
            let Some(replacing) = &state.replacing else { return };
            // Before the version is loaded for which it is to hold.
            let lease = self.leases.take(&self.reader);
            match self.index.next_replacing(&replacing.homes) {
                // It is looked again when the compaction that is in the way has ended.
                ManualTurn::Blocked => return,
                ManualTurn::Run(compaction) => {
                    let relocate = ToCopies { lease, held: Arc::clone(&replacing.held) };
                    state.compacting += 1;
                    let end = |state: &mut State| state.compacting -= 1;
                    this.start(state, Priority::Low, end, move |cube| {
                        cube.compaction_job(
                            compaction,
                            Arc::new(relocate),
                            Some(&cube.counters.sorting_index_bytes),
                        );
                    });
                }
                ManualTurn::Done => {
                    let replaced = state.replacing.take();
                    let end = |state: &mut State| state.sorting = false;
                    this.start(state, Priority::High, end, move |cube| {
                        // What is dropped with it may be sorted again.
                        drop(replaced);
                        let dropped = cube.drop_dead_segments();
                        if let Err(error) = dropped {
                            cube.health
                                .warn(format!("segments that were sorted could not be dropped: {error}"));
                        }
                        cube.end_job(|state| state.sorting = false);
                    });
                }
            }
        }
    }

    /// Has the log sealed and flushed up to its end, where that is `bytes_min` or more and much beside the index: only then can
    /// its values be sorted. Called while no job runs.
    pub(super) fn expose_log(&self, bytes_min: u64) -> Result<()> {
        if !self.may_sort() {
            return Ok(());
        }
        let state = self.current.load();
        let active = self.order.active_segment().map_or(0, |(_, end)| end);
        let log = state.unflushed_log_bytes(self.order.log_bytes()).max(active);
        let index = state.version.tables().map(|(_, table)| table.file_bytes).sum::<u64>();
        drop(state);
        if log >= index.max(bytes_min) {
            self.end_segment()?;
            self.order.rotate_memtable(|turn| self.next_memtable(turn))?;
            self.schedule();
        }
        Ok(())
    }

    /// As much of the log as is worth a flush while nothing is written.
    pub(super) fn exposed_bytes_min(&self) -> u64 {
        self.options.segment_bytes_max / EXPOSED_PART
    }

    fn may_sort(&self) -> bool {
        self.options.value_runs_max > 0 && self.options.gc != GcPolicy::Off && !self.options.read_only
    }

    /// Ends the active segment, if anything is in it.
    fn end_segment(&self) -> Result<()> {
        let mut patience = Patience::default();
        while !self.order.end_segment(|turn| self.clear(Obstacle::Segment(turn), &mut patience))? {
            self.clear(Obstacle::Others, &mut patience)?;
        }
        Ok(())
    }

    /// Sorts values until no more than [`Options::value_runs_max`](crate::Options) runs lie over any key. See
    /// `Db::sort_values`.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `Corruption`, `ReadOnly`, `Closed`.
    pub fn sort_values(&self) -> Result<()> {
        self.check_may_write()?;
        self.maintenance.check_open()?;
        if self.options.value_runs_max == 0 {
            return Ok(());
        }
        self.end_segment()?;
        self.flush()?;
        self.retry_on_request();
        let _at_work = self.maintenance.at_work.begin();
        loop {
            self.begin_copying()?;
            let panicked = |state: &mut State| state.sorting = false;
            let sorted = match catch_unwind(AssertUnwindSafe(|| self.sort_some_values(Effort::Whole))) {
                Ok(sorted) => sorted,
                Err(payload) => {
                    self.end_panicked(panicked, &panic_message(&*payload));
                    resume_unwind(payload);
                }
            };
            let is_over = matches!(sorted, Ok(Sorted::Nothing));
            let (replacing, failed) = match sorted {
                Ok(sorted) => (sorted.into_replacing(), None),
                Err(error) => (None, Some(error)),
            };
            self.end_copying(replacing, None);
            if let Some(error) = failed {
                return Err(error);
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Waits until no values are being sorted, and takes the turn.
    fn begin_copying(&self) -> Result<()> {
        let mut state = self.maintenance.state.lock();
        loop {
            self.health.check_writable()?;
            if state.closing {
                return Err(Error::closed());
            }
            if let Some(error) = state.compaction_stopped.why() {
                return Err(error.clone());
            }
            if !state.sorting {
                state.sorting = true;
                return Ok(());
            }
            self.maintenance.changed.wait(&mut state);
        }
    }

    /// Whether writers wait for something that sorting keeps from being done.
    pub(in super::super) fn are_writers_held_up(&self) -> bool {
        self.debt() > DEBT_MAX || self.space().debt() > 0.0
    }
}
