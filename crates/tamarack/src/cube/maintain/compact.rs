//! Running compactions, once there is room for what they write.
//!
//! A compaction has its inputs and its outputs on disk for a while. Where garbage already takes what it may, one that began as soon as its
//! level is due would have writers wait until it is over. So room is made beforehand. From when the next compaction of level 0 is half due,
//! more and more of what it will write is *wanted*: collections make room for it, and writers are slowed down gently. One that is due
//! waits until there is room, as long as somebody makes some, and the longer, the more they are slowed down; and where garbage is about to
//! take room that is there now, as after a load, level 0 does not wait until it is due.

use super::super::Cube;
use super::super::headroom::Claim;
use super::super::space::{Demand, Space};
use super::State;
use crate::base::error::{Error, Result};
use crate::base::segment::Relocate;
use crate::base::sync::{Arc, AtomicU64, MutexGuard, Ordering};
use crate::env::pool::{Job, Priority};
use crate::index::{Compaction, Due, ManualTurn, Signals};

/// A compaction waits for room while at most so many jobs end, of whatever kind, ...
const JOBS_WAITED_FOR_MAX: u64 = 96;
/// ... it has waited long, for which writers are slowed down more, after so many, ...
const JOBS_WAITED_FOR_LONG: u64 = 64;
/// ... and as long as nothing else is so far behind.
const DEBT_WHILE_WAITING_MAX: f64 = 0.7;

/// Whether a compaction may wait for room, during whose wait so many jobs have ended.
fn may_wait(demand: Demand, debt: f64, jobs_ended: u64) -> bool {
    demand == Demand::Busy && debt < DEBT_WHILE_WAITING_MAX && jobs_ended < JOBS_WAITED_FOR_MAX
}

impl Cube {
    /// Starts the compactions that are due and for which there is room, and says for how much more it is wanted. Returns whether one waits.
    pub(super) fn start_compactions(
        &self,
        this: &Arc<Self>,
        state: &mut MutexGuard<'_, State>,
        space: &Space,
        demand: Demand,
    ) -> bool {
        let since = state.waits_since.unwrap_or(state.ended);
        let may_wait = may_wait(demand, self.debt(), state.ended - since);
        let fits = |bytes, begun| !may_wait || space.has_room_for_compaction(bytes, begun);
        let waiting = self.start_due(this, state, Due::USUAL, fits);
        let coming = self.index.coming();
        if waiting.is_none() && may_wait && space.is_filling(coming.bytes) {
            self.start_due(this, state, Due::COMING, fits);
        }
        state.waits_since = waiting.map(|_| since);
        let comes = demand == Demand::Busy && state.compaction_stopped.why().is_none();
        let wanted = if comes { coming.near_bytes() } else { 0 };
        let waited = (state.ended - since) * 1000 / JOBS_WAITED_FOR_LONG;
        self.headroom.want(wanted.max(waiting.unwrap_or(0)), waited);
        waiting.is_some()
    }

    /// Starts the compactions that are due, for which nobody makes room.
    pub(super) fn start_without_room(&self, this: &Arc<Self>, state: &mut MutexGuard<'_, State>) {
        state.waits_since = None;
        self.headroom.want(0, 0);
        self.start_due(this, state, Due::USUAL, |_, _| true);
    }

    /// Starts as many compactions of levels that are `due` as there are threads for, and as `fits` says there is room for, given the bytes
    /// that one may write and those of the ones begun before it. Returns those of the first that does not fit.
    pub(super) fn start_due(
        &self,
        this: &Arc<Self>,
        state: &mut MutexGuard<'_, State>,
        due: Due,
        fits: impl Fn(u64, u64) -> bool,
    ) -> Option<u64> {
        if state.compaction_stopped.holds(|| self.env.clock.monotonic()) {
            return None;
        }
        let mut begun = 0;
        while state.compacting < self.options.background_threads {
            let lease = self.leases.take(&self.reader);
            let compaction = self.index.pick(due)?;
            let bytes = compaction.output_bytes_max();
            if !fits(bytes, begun) {
                return Some(bytes);
            }
            begun += bytes;
            state.compacting += 1;
            let end = |state: &mut State| state.compacting -= 1;
            self.headroom.starting(bytes);
            this.start(state, Priority::Low, end, move |cube| {
                cube.headroom.started(bytes);
                cube.compaction_job(compaction, lease, None);
            });
        }
        None
    }

    /// Runs one compaction, and counts what it has written with `counter` as well, if there is one; the lease in `relocate`
    /// was taken before it was picked. If it fails, pointers are not replaced any more.
    pub(super) fn compaction_job(
        &self,
        compaction: Compaction,
        relocate: Arc<dyn Relocate>,
        counter: Option<&AtomicU64>,
    ) {
        let done = self.compact(compaction, relocate).map(|bytes| {
            if let Some(counter) = counter {
                counter.fetch_add(bytes, Ordering::Relaxed);
            }
        });
        self.give_up_stock_after(&done);
        let now = self.env.clock.monotonic();
        let mut given_up = None;
        self.end_job(|state| {
            state.compacting -= 1;
            // Whoever gets the error finds the warning, too.
            if let Some(error) = state.compaction_stopped.note(done, now) {
                self.health.warn(format!("a compaction failed: {error}"));
            }
            if state.compaction_stopped.why().is_some() {
                given_up = state.give_up_replacing();
            }
        });
        drop(given_up);
    }

    /// Runs one compaction; returns how many bytes it has written.
    pub(super) fn compact(&self, compaction: Compaction, relocate: Arc<dyn Relocate>) -> Result<u64> {
        let bytes = compaction.output_bytes_max();
        let promise = self.promise("a compaction", bytes, Claim::Compaction)?;
        let snapshots = self.snapshots.list();
        let parts = self.options.background_threads;
        let signals = Signals {
            cancelled: Arc::clone(&self.maintenance.cancelled),
            written: Arc::clone(promise.written()),
        };
        let run_all = |jobs: Vec<Job>| {
            let at_work = |job: Job| {
                let at_work = Arc::clone(&self.maintenance.at_work);
                Box::new(move || {
                    let _at_work = at_work.begin();
                    job();
                }) as Job
            };
            self.workers.run_all(jobs.into_iter().map(at_work).collect());
        };
        let (edit, done) = self.index.run(&compaction, &snapshots, &signals, &relocate, parts, &run_all)?;
        if let Some(damage) = &done.damage {
            let warning = format!("a compaction left pointers as they are: {damage}");
            if !self.health.warnings().contains(&warning) {
                self.health.warn(warning);
            }
        }
        // Before they are there, so that it is never forgotten what the inputs hide.
        self.estimate_tables(&edit.add_tables);
        let stays = |id| edit.add_tables.iter().any(|(_, table)| table.id == id);
        let gone: Vec<_> = edit.drop_tables.iter().map(|&(_, id)| id).filter(|&id| !stays(id)).collect();
        let outdated = self.hidden.outdate(done.left_behind);
        let made = edit.add_tables.iter().map(|(_, table)| table.id);
        let made: Vec<_> = made.filter(|made| !edit.drop_tables.iter().any(|(_, id)| id == made)).collect();
        self.index.install(edit).inspect_err(|_| self.forget_estimates(made.into_iter()))?;
        drop(promise);
        // They hide none of that any more, and what it has hidden itself is hidden by them now.
        let hiding = (done.left_behind > 0).then(|| compaction.plan().newer_outside(&self.index.version()));
        // Who does not see it running finds nothing held for it.
        drop(relocate);
        drop(compaction);
        self.counters.compaction_bytes_read.fetch_add(done.bytes_read, Ordering::Relaxed);
        self.counters.compaction_bytes_written.fetch_add(done.bytes_written, Ordering::Relaxed);
        self.counters.compactions.fetch_add(1, Ordering::Relaxed);
        self.show_version();
        self.forget_estimates(gone.into_iter());
        self.estimate_present(&hiding.unwrap_or_default());
        drop(outdated);
        self.estimate_missing();
        self.drop_dead_segments()?;
        Ok(done.bytes_written)
    }

    /// Flushes, and rewrites every table that overlaps `start..=end` down to the deepest level in use, so that
    /// nothing overwritten or deleted is left there but what snapshots see.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `Corruption`, `ReadOnly`, `Closed`.
    pub fn compact_range(self: &Arc<Self>, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.flush()?;
        self.retry_on_request();
        let mut manual = self.index.start_manual(start, end);
        loop {
            let mut state = self.maintenance.state.lock();
            self.check_may_write()?;
            if state.closing {
                return Err(Error::closed());
            }
            if let Some(error) = state.compaction_stopped.why() {
                return Err(error.clone());
            }
            let lease = self.leases.take(&self.reader);
            match self.index.next_manual(&mut manual) {
                ManualTurn::Done => return Ok(()),
                ManualTurn::Blocked => self.maintenance.changed.wait(&mut state),
                ManualTurn::Run(compaction) => {
                    state.compacting += 1;
                    drop(state);
                    self.run_here(|state| state.compacting -= 1, || self.compact(compaction, lease))?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_wait_for_room_but_not_for_ever() {
        assert!(may_wait(Demand::Busy, 0.6, 0) && may_wait(Demand::Busy, 0.6, JOBS_WAITED_FOR_MAX - 1));
        assert!(!may_wait(Demand::Busy, 0.6, JOBS_WAITED_FOR_MAX), "nobody makes enough");
        assert!(!may_wait(Demand::Busy, 0.7, 0), "level 0 is full");
        assert!(!may_wait(Demand::Idle, 0.0, 0), "nobody writes who would wait");
    }
}
