//! Sealing full segments and flushing frozen memtables.

use super::super::Cube;
use super::super::state::Frozen;
use super::{Seal, State};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::{LogPosition, SegmentId};
use crate::base::sync::{Arc, Ordering};
use crate::index::version::VersionEdit;

/// Full segments that may wait to be sealed.
const SEALS_MAX: usize = 64;

impl Cube {
    /// Seals every full segment, unless a flush is doing so.
    pub(super) fn seal_job(&self) {
        let mut state = self.maintenance.state.lock();
        state.seal_queued = false;
        if state.sealing {
            return;
        }
        state.sealing = true;
        drop(state);
        let result = self.seal_all();
        if let Err(error) = &result {
            self.judge(error);
            self.health.warn(format!("a log segment could not be sealed: {error}"));
        }
        self.end_job(|state| {
            state.sealing = false;
            if let Err(error) = result {
                state.stopped.get_or_insert(error);
            }
        });
    }

    fn seal_all(&self) -> Result<()> {
        loop {
            let next = self.maintenance.state.lock().seals.front_mut().map(|front| Seal {
                writing: front.writing.take(),
                file: Arc::clone(&front.file),
                ..*front
            });
            let Some(next) = next else { return Ok(()) };
            let sealed = self.seal_one(next);
            if self.give_up_stock_after(&sealed) {
                continue;
            }
            sealed?;
            let mut state = self.maintenance.state.lock();
            state.seals.pop_front();
            drop(state);
            self.maintenance.changed.notify_all();
        }
    }

    /// Seals one segment and keeps what the next manifest edit will say of it.
    pub(in super::super) fn seal_one(&self, full: Seal) -> Result<()> {
        self.publisher.wait_for(full.barrier)?;
        // Nobody writes to it any more: it is unmapped before it is synced, unless it is followed at this moment.
        drop(full.writing);
        let end = LogPosition { segment: full.file.header().id, offset: full.end };
        let meta = full.file.seal(full.end, &self.keys, || self.sync_to(end))?;
        self.maintenance.state.lock().sealed.push(meta);
        Ok(())
    }

    /// Tells the manifest of the sealed segments that it does not know.
    pub(in super::super) fn register_sealed(&self) -> Result<()> {
        let sealed = std::mem::take(&mut self.maintenance.state.lock().sealed);
        if sealed.is_empty() {
            return Ok(());
        }
        self.index.install(VersionEdit { add_segments: sealed, ..VersionEdit::default() })?;
        self.show_version();
        Ok(())
    }

    /// Flushes every frozen memtable.
    pub(super) fn flush_job(&self) {
        let mut result = Ok(());
        while result.is_ok() {
            let frozen: Vec<_> = self.current.load().frozen.iter().rev().cloned().collect();
            if frozen.is_empty() {
                break;
            }
            let flushed = self.flush_memtables(&frozen);
            if self.give_up_stock_after(&flushed) {
                continue;
            }
            result = flushed;
        }
        if let Err(error) = &result {
            self.judge(error);
            self.health.warn(format!("a memtable could not be flushed: {error}"));
        }
        self.end_job(|state| {
            state.flushing = false;
            if let Err(error) = result {
                state.stopped.get_or_insert(error);
            }
        });
    }

    /// Turns `frozen`, oldest first and none left out, into tables, and moves the log head behind them.
    fn flush_memtables(&self, frozen: &[Arc<Frozen>]) -> Result<()> {
        let newest = frozen.last().expect("called with at least one memtable");
        self.publisher.wait_for(newest.barrier)?;
        // First, because sealing unmaps a segment before it syncs it.
        self.wait_for_seals(newest.end.segment)?;
        // I-09: no table points to log bytes that are not durable.
        self.sync_to(newest.end)?;
        let memtables: Vec<_> = frozen.iter().map(|frozen| Arc::clone(&frozen.memtable)).collect();
        let sealed = std::mem::take(&mut self.maintenance.state.lock().sealed);
        let restore = |sealed| drop(self.maintenance.state.lock().sealed.splice(0..0, sealed));
        let tables = self.index.flush(&memtables, &self.snapshots.list());
        let add_tables = tables.inspect_err(|_| restore(sealed.clone()))?;
        let bytes = add_tables.iter().map(|(_, table)| table.file_bytes).sum();
        let hidden = self.estimate_tables(&add_tables);
        let edit = VersionEdit {
            add_tables,
            add_segments: sealed.clone(),
            // I-05: everything before the head is in the tables of this edit or an earlier one.
            log_head: Some(newest.end),
            last_sequence: Some(newest.last_sequence),
            next_segment_id: Some(SegmentId(newest.end.segment.0 + 1)),
            ..VersionEdit::default()
        };
        let log_bytes = self.current.peek().unflushed_log_bytes(newest.log_bytes);
        let made: Vec<_> = edit.add_tables.iter().map(|(_, table)| Arc::clone(table)).collect();
        self.index.install(edit).inspect_err(|_| {
            restore(sealed);
            self.forget_estimates(made.iter().map(|table| table.id));
        })?;
        self.show_version();
        self.counters.flush_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        self.hidden.note_flush(made.iter().map(|table| &**table), hidden, log_bytes);
        let mut state = self.maintenance.state.lock();
        // There was room for a table: a compaction or a collection that found none may try again.
        state.compaction_stopped.lift_if(|error| error.kind() == ErrorKind::NoSpace);
        state.collection_stopped.lift_if(|error| error.kind() == ErrorKind::NoSpace);
        drop(state);
        self.maintenance.changed.notify_all();
        self.drop_dead_segments()?;
        self.schedule();
        Ok(())
    }

    /// Waits until every full segment up to `segment` is sealed: the log head may not pass one that the manifest does
    /// not know.
    fn wait_for_seals(&self, segment: SegmentId) -> Result<()> {
        self.seal_while(|state| state.seals.iter().any(|seal| seal.file.header().id <= segment))
    }

    /// Waits until another segment may be full: those that are not sealed yet keep their files open, and their pages mapped.
    ///
    /// # Errors
    /// Why one cannot be sealed; it is tried again by the next call.
    pub(in super::super) fn wait_for_fewer_seals(&self) -> Result<()> {
        let many = |state: &State| state.seals.len() >= SEALS_MAX;
        if !many(&self.maintenance.state.lock()) {
            return Ok(());
        }
        let begin = self.env.clock.monotonic();
        let result = self.seal_while(many);
        self.throttle.note_wait(self.env.clock.monotonic() - begin);
        result
    }

    /// Seals segments, or waits for who does, as long as `must`.
    fn seal_while(&self, must: impl Fn(&State) -> bool) -> Result<()> {
        let mut state = self.maintenance.state.lock();
        while must(&state) {
            self.health.check_writable()?;
            if state.sealing {
                self.maintenance.changed.wait(&mut state);
                continue;
            }
            state.sealing = true;
            drop(state);
            let result = self.seal_all();
            state = self.maintenance.state.lock();
            state.sealing = false;
            result?;
        }
        Ok(())
    }

    /// Removes segments before the log head into which no table points any more.
    pub(in super::super) fn drop_dead_segments(&self) -> Result<()> {
        // I-07: they are dead by tables that are in the manifest, and each of those was written when the log was
        // durable up to its last operation.
        if self.index.drop_dead_segments()? {
            self.show_version();
        }
        Ok(())
    }

    /// Turns every memtable, the active one included, into tables.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `ReadOnly`, `Closed`. Nothing is lost.
    pub fn flush(&self) -> Result<()> {
        self.check_may_write()?;
        self.order.rotate_memtable(|turn| self.next_memtable(turn))?;
        let newest = self.current.peek().frozen.first().cloned();
        let Some(newest) = newest else { return Ok(()) };
        self.retry_for_want_of_space();
        let mut state = self.maintenance.state.lock();
        loop {
            self.health.check_writable()?;
            if !self.current.peek().frozen.iter().any(|frozen| Arc::ptr_eq(frozen, &newest)) {
                return Ok(());
            }
            if let Some(error) = state.stopped.take() {
                drop(state);
                self.schedule();
                return Err(error);
            }
            if state.closing && !state.flushing {
                return Err(Error::closed());
            }
            self.maintenance.changed.wait(&mut state);
        }
    }
}
