//! Running compactions.

use super::super::Cube;
use super::super::headroom::Claim;
use crate::base::error::{Error, Result};
use crate::base::segment::Relocate;
use crate::base::sync::{Arc, AtomicU64, Ordering};
use crate::index::{Compaction, ManualTurn, Signals};

impl Cube {
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
        let run_all = |jobs| self.workers.run_all(jobs);
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
        self.index.install(edit)?;
        drop(promise);
        drop(compaction);
        self.counters.compaction_bytes_read.fetch_add(done.bytes_read, Ordering::Relaxed);
        self.counters.compaction_bytes_written.fetch_add(done.bytes_written, Ordering::Relaxed);
        self.counters.compactions.fetch_add(1, Ordering::Relaxed);
        self.show_version();
        self.forget_estimates(gone.into_iter());
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
