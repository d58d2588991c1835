//! Flushing and compacting: the entry points for the cube's background work.

use crate::base::error::Result;
use crate::base::ids::{SegmentId, Sequence};
use crate::base::segment::Relocate;
use crate::base::sync::{Arc, Mutex};

use super::compact::{
    Coming, CompactionJob, CompactionOptions, CompactionPlan, CompactionStats, Due, InProgress,
    ManualCompaction, ManualStep, RunAll, Signals, Ticket, coming, pick, pick_replacing,
};
use super::flush::flush;
use super::memtable::Memtable;
use super::open::Index;
use super::version::{TableMeta, Version, VersionEdit};

/// A compaction that was picked and is registered as running, until it is dropped.
#[derive(Debug)]
pub struct Compaction {
    plan: Arc<CompactionPlan>,
    ticket: Ticket,
    in_progress: Arc<Mutex<InProgress>>,
}

impl Compaction {
    /// Bytes that it may write.
    pub fn output_bytes_max(&self) -> u64 {
        self.plan.output_bytes_max()
    }

    /// What it does.
    pub fn plan(&self) -> &CompactionPlan {
        &self.plan
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        self.in_progress.lock().finish(self.ticket);
    }
}

/// The next step of compactions that somebody waits for.
#[derive(Debug)]
pub enum ManualTurn {
    /// Run this, then ask again.
    Run(Compaction),
    /// A running compaction is in the way: ask again when one has ended.
    Blocked,
    /// All is done.
    Done,
}

impl Index {
    /// Writes `memtables`, oldest first, which nobody writes to any more, into tables of L0, which are there once
    /// they are [`install`](Self::install)ed. There are none for empty memtables.
    ///
    /// `snapshots` are sorted; every entry must be visible to readers that come later. The log must be durable up
    /// to the newest entry, because tables that point into it are durable when this returns. Only one flush may
    /// run at a time.
    ///
    /// # Errors
    /// Whatever writing tables ends with.
    pub fn flush(
        &self,
        memtables: &[Arc<Memtable>],
        snapshots: &[Sequence],
    ) -> Result<Vec<(u8, Arc<TableMeta>)>> {
        let tables = flush(&self.options.table.order, memtables, snapshots, &self.destination)?;
        Ok(tables.into_iter().map(|table| (0, table)).collect())
    }

    /// Picks the most urgent compaction whose level is due, and registers it as running.
    pub fn pick(&self, due: Due) -> Option<Compaction> {
        let options = CompactionOptions { due, ..self.compaction_options() };
        self.register(|version, in_progress| pick(version, in_progress, &options))
    }

    /// The next compaction of level 0.
    pub fn coming(&self) -> Coming {
        let version;
        let in_progress = self.in_progress.lock();
        version = self.version();
        coming(&version, &in_progress, &self.options.compaction)
    }

    /// Begins to compact the user keys from `start` to `end`; `None` is open.
    pub fn start_manual(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> ManualCompaction {
        ManualCompaction::new(&self.in_progress.lock(), start, end)
    }

    /// The next step of a manual compaction.
    pub fn next_manual(&self, manual: &mut ManualCompaction) -> ManualTurn {
        let options = &self.options.compaction;
        self.register_step(|version, in_progress| manual.next(version, in_progress, options))
    }

    /// The next compaction that rewrites tables which point into the segments `homes`, under whatever id. It must be run
    /// with a [`Relocate`] that leads [`onward`](Relocate::onward) out of them. Once it is done, no table points there, and
    /// none ever will, as no memtable does; but for pointers that damaged relocation tables keep as they are.
    pub fn next_replacing(&self, homes: &[SegmentId]) -> ManualTurn {
        let options = self.compaction_options();
        self.register_step(|version, in_progress| {
            let segments = version.segments();
            let moved = segments.moved().filter(|(_, moved)| homes.contains(&moved.table.segment));
            let moved = moved.map(|(id, _)| id).filter(|id| !options.unreadable.contains(id));
            let mut ids: Vec<_> = moved.chain(homes.iter().copied()).collect();
            ids.sort_unstable();
            pick_replacing(version, in_progress, &options, &ids)
        })
    }

    /// With what compactions have found to be damaged.
    fn compaction_options(&self) -> CompactionOptions {
        let unreadable = self.unreadable.lock().clone();
        CompactionOptions { unreadable, ..self.options.compaction.clone() }
    }

    fn register_step(&self, step: impl FnOnce(&Arc<Version>, &InProgress) -> ManualStep) -> ManualTurn {
        let mut turn = ManualTurn::Done;
        let compaction = self.register(|version, in_progress| {
            match step(version, in_progress) {
                ManualStep::Plan(plan) => return Some(plan),
                ManualStep::Blocked => turn = ManualTurn::Blocked,
                ManualStep::Done => {}
            }
            None
        });
        compaction.map_or(turn, ManualTurn::Run)
    }

    /// Runs `compaction` in up to `parts_max` parts. Its outcome counts once the edit is
    /// [`install`](Self::install)ed, before the compaction is dropped.
    ///
    /// `snapshots` are the sorted sequence numbers held now; every entry in tables must be visible to readers that
    /// come later. Readers that come later and read at an older sequence number without a snapshot may miss what
    /// this drops, see [`lookup`](Self::lookup).
    ///
    /// # Errors
    /// `Closed` if it was cancelled; whatever reading and writing tables ends with. Outputs are removed.
    pub fn run(
        &self,
        compaction: &Compaction,
        snapshots: &[Sequence],
        signals: &Signals,
        relocate: &Arc<dyn Relocate>,
        parts_max: usize,
        run_all: RunAll<'_>,
    ) -> Result<(VersionEdit, CompactionStats)> {
        let job = CompactionJob {
            plan: compaction.plan.clone(),
            snapshots: snapshots.to_vec(),
            signals: signals.clone(),
            tables: self.tables.clone(),
            destination: self.destination.clone(),
            relocate: relocate.clone(),
            table_bytes_max: self.options.compaction.table_bytes_max,
        };
        let (edit, stats) = job.run(parts_max, run_all)?;
        if !stats.unreadable.is_empty() {
            self.unreadable.lock().extend(&stats.unreadable);
        }
        Ok((edit, stats))
    }

    /// How many compactions run.
    #[cfg(test)]
    pub fn running_compactions(&self) -> usize {
        self.in_progress.lock().len()
    }

    /// Loads the version and plans under the register's lock: a compaction is installed before it leaves the
    /// register, so whoever does not see it running sees its outcome.
    fn register(
        &self,
        plan: impl FnOnce(&Arc<Version>, &InProgress) -> Option<CompactionPlan>,
    ) -> Option<Compaction> {
        let version;
        let registered = {
            let mut in_progress = self.in_progress.lock();
            version = self.version();
            plan(&version, &in_progress).map(|plan| {
                let ticket = in_progress.start(&plan);
                (ticket, CompactionPlan { version: Arc::new(plan.version.without_values()), ..plan })
            })
        };
        registered.map(|(ticket, plan)| Compaction {
            plan: Arc::new(plan),
            ticket,
            in_progress: self.in_progress.clone(),
        })
    }
}
