//! Sorting values: segments in which walking over keys jumps to and fro are rewritten in the order of their keys, in the
//! background, so that a long scan of small values reads what it wants from front to back.
//!
//! Values lie in the order in which they came. Where that is not the order of the keys, a walk over keys reads each value
//! by itself (the paper, section 4.2, has it lose to LevelDB by a factor of twelve with small values loaded
//! at random). Garbage collection repairs that only where something has died. So where too many *runs* lie over a key,
//! segments are merged that are wholly alive.
//!
//! # Runs
//!
//! A run is a sequence of records with ascending keys. What a segment contributes is known from its *shape*: the
//! key range in its footer, and the keys of some records spread over it, which tell whether they ascend (one run), ascend
//! in stretches (a few), or do not (as many as half the samples). Nothing on disk says so and nothing needs to: shapes are read
//! when the values of a database are first sorted, some 30 small reads for each segment, and kept in memory.
//! Segments that are disjoint in key range, each sorted, form one run together. [`Options::value_runs_max`](crate::Options)
//! bounds how many lie over one key; [`runs`] (pure) decides what is merged to keep that bound.
//!
//! # The job
//!
//! 1. **Choose** ([`runs`]) whole segments, and register them as victims of a [`Collection`](crate::index::Collection):
//!    nobody else collects them.
//! 2. **Mark** what is alive in them, as for every collection.
//! 3. **Copy** ([`copy`]) all of it into new cold segments, sorted as a whole, of usual size and disjoint in key range; each record
//!    checked down to its value. Damage ends the job and quarantines the victim.
//! 4. **Install** one edit that adds these segments, synced before. Nothing points to them yet; while the job lasts they
//!    are neither dropped nor collected.
//! 5. **Replace pointers**: compactions rewrite the tables that point into victims. As they pass, they look each of
//!    the pointers up in the [`Copies`](copies), which are in memory alone, as they do for records that were moved in relocation tables.
//!    Each of these compactions is a compaction like any other, one edit, whole in itself.
//! 6. Once no table points into the victims, they are dropped like all dead segments (I-04, I-06, I-07).
//!
//! Relocation tables would not do here: a segment that was moved has one home, and what was written in random order
//! must go to many, one for each part of the keys, for only so does a job stay small that merges some part. In
//! return the index is rewritten as far as the victims' keys reach. That is some forty bytes for each value, and
//! while jobs run in the background, it is done only for victims that have at least as many bytes themselves: fresh
//! segments of a large database, which have keys from everywhere, wait until they are enough.
//!
//! # A crash
//!
//! Before 4 it leaves files that no manifest mentions, which are removed. After it, every pointer leads to the victim or to
//! the copy, by the edit that is last, and both are sealed segments of the version: whatever is not pointed to is dead in the one, or
//! in the other, and is collected like other garbage; a copy to which nothing points at all is dropped.
//! The same holds if the job fails or is ended by a close.
//!
//! # What could go wrong, and why it does not
//!
//! *A compaction runs while pointers are replaced.* It may write pointers to victims, which it read before. The job waits
//! for its end and rewrites its outputs, too; a victim is dropped only when no running compaction can come to it.
//! *A hidden record is left behind.* Compactions that do not find it in the copies see the newer version first, or fail (I-11).
//! *Readers.* Those of older versions go on in the victims' files, which they hold. While readers hold much of what is gone
//! already, no job begins, so that readers are given a part of the slack to hold, and the victims of one job.
//! *A compaction fails while others replace pointers.* No more of them begin, and each that runs keeps the copies and the victims in place
//! until its outputs are installed.
//! *Space.* Copies and victims are there together for a while: a job takes no more than what the bound on space leaves, and the slack.
//!
//! # When
//!
//! While nothing is written or read and nothing else is to be done ([`maintain::sort`](super::super::maintain)); while the
//! database is used, when reading values for scans has cost the device as much since the last job as one will; or on request
//! (`Db::sort_values`). So scans pay about twice what would have been the least, if all is in as much disorder as what they
//! read. A job for scans takes less than others, so that they gain by it soon, and what it takes fits into memory where no
//! budget says less and the index is not larger: so it reads its victims once, which may have to come from the device while
//! much else is read. A job in the background gives way, and forgets what it has done, when
//! writers come to wait for space or flushes before pointers are replaced; beside those who read single values, and gain nothing by
//! it, it rests most of the time. `Options::gc_bytes_per_second`,
//! `Db::pause_gc` and `GcPolicy::Off` hold for it as for all collections.
//!
//! # What it costs
//!
//! A job holds keys and notes of its records in memory, 64 MiB of them or what the budget allows, and a portion of their
//! values beside them, 128 MiB or what the budget allows. It reads each victim as often as there are portions, and once for the
//! keys if there are several, writes what is alive once, and the index over it once.
//! 500,000 values of 1 KiB that were loaded in random order became two runs by two jobs: 533 MB of copies and 20 MB of
//! tables for 532 MB of log. A cold scan took 0.49 to 0.94 s of processor time then, 1.29 to 1.63 s before, and 0.32 to 0.38 s of
//! values that had been loaded in order; it read 680 to 758 MB/s where little else went on, 277 to 323 before, 542 to 809 in order.
//!
//! Because the keys of a job must fit into memory, and are to be worth the index over them, fresh segments of values of 1 KiB
//! are sorted in the background up to some 20 GB of values, and more of larger ones; beyond that only on request.

mod copies;
mod copy;
mod courtesy;
mod runs;
mod survey;

pub use copies::{Copies, HeldCopies, ToCopies};
pub use courtesy::Reads;
pub use survey::{SCATTERED_BYTES_MAX, Shapes};

use std::collections::HashMap;

use copy::{Copied, Copier, Written};
use courtesy::Courtesy;
use runs::{Limits, choose, most_runs};

use super::super::Cube;
use super::super::headroom::Claim;
use super::super::space::Space;
use super::GcReport;
use super::job::Prepared;
use super::progress::Progress;
use crate::base::error::{Error, Result};
use crate::base::ids::{SegmentId, Sequence};
use crate::base::sync::{Arc, Ordering};
use crate::index::Collection;
use crate::index::version::{SegmentEntry, Version};

/// A job takes at most so many full segments, or as many bytes as the index has, if these are more.
const JOB_SEGMENTS: u64 = 16;
/// One that scans wait for takes what fits into memory, but so many segments at least.
const JOB_SEGMENTS_FOR_SCANS: u64 = 4;
/// Writing a byte costs the device as much as reading so many in sequence.
const WRITE_COST: u64 = 2;
/// Parts of the slack that the copies of a job may take beyond the goal: fewer than those from which writers are slowed down.
const SLACK_PARTS_TAKEN: (u64, u64) = (3, 8);
/// No values are sorted while readers hold more than this part of the slack in files that only they need.
const HELD_PART_OF_SLACK: u64 = 4;

/// What sorting values may cost, less first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// It is done beside scans, which are to gain by it soon: by jobs that are small, unless the index is large.
    ForScans,
    /// It is done in passing: what gains little waits.
    Spare,
    /// Somebody waits for it.
    Whole,
}

/// How one job went, as far as copies are concerned.
#[derive(Debug)]
pub enum Sorted {
    /// Values were sorted: pointers are to be replaced. There may be more to sort.
    Copied(Box<Replacing>),
    /// Nothing is to be done, or nothing that is worth it.
    Nothing,
    /// Something was to be done, and had to give way, or to wait for others.
    GaveWay,
}

impl Sorted {
    /// What is left to do, if anything was copied.
    pub fn into_replacing(self) -> Option<Box<Replacing>> {
        match self {
            Self::Copied(replacing) => Some(replacing),
            Self::Nothing | Self::GaveWay => None,
        }
    }
}

/// Segments whose records have copies, until no pointer leads into them any more. What it holds goes with it, and with the compactions
/// that are replacing pointers.
#[derive(Debug)]
pub struct Replacing {
    /// The segments.
    pub homes: Vec<SegmentId>,
    /// Where their records are.
    pub held: Arc<HeldCopies>,
}

impl Cube {
    /// Sorts the values of the segments that are most worth it. Blocks on the device.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `Corruption`; `Closed` if it was cancelled. Nothing is lost.
    pub(in super::super) fn sort_some_values(&self, effort: Effort) -> Result<Sorted> {
        let victims = self.choose_unsorted(effort)?;
        if victims.is_empty() {
            return Ok(Sorted::Nothing);
        }
        let collection = self.index.begin_collection(|version, collecting| {
            let there = |id: &SegmentId| version.segments().get(*id).is_some() && !collecting.holds(*id);
            if victims.iter().all(there) { victims } else { Vec::new() }
        });
        // While they were chosen, others have begun to collect them.
        let Some(collection) = collection else { return Ok(Sorted::GaveWay) };
        let snapshots = self.snapshots.list();
        let prepared = self.prepare_sorting(&collection);
        let estimates: HashMap<SegmentId, u64> =
            collection.victims().iter().map(|entry| (entry.meta.id, entry.meta.value_record_bytes)).collect();
        let mut progress = Progress::begin(self, &collection, prepared.as_ref().ok(), &estimates);
        let done = prepared.map_err(|(id, error)| {
            self.quarantine(progress.job(), &error, id);
            error
        });
        let done = done
            .and_then(|prepared| self.copy_sorted(collection, prepared, &snapshots, &mut progress, effort));
        let report = done.as_ref().map(|(report, _)| *report).map_err(Error::clone);
        progress.end(&report);
        let (report, sorted) = done?;
        if report.segments > 0 {
            let counters = &self.counters;
            counters.sortings.fetch_add(1, Ordering::Relaxed);
            counters.sorted_bytes.fetch_add(report.bytes_before, Ordering::Relaxed);
            counters.sorting_bytes_written.fetch_add(report.bytes_after, Ordering::Relaxed);
        }
        Ok(sorted)
    }

    /// The victims of the next job; empty if there is none.
    fn choose_unsorted(&self, effort: Effort) -> Result<Vec<SegmentId>> {
        let version = self.index.version();
        let pieces = self.survey(&version)?;
        self.collector.most_runs.store(u64::from(most_runs(&pieces)), Ordering::Relaxed);
        let bytes_max = self.sorting_bytes_max(&version, effort);
        let noted_bytes_max = self.memory.sorted_bytes;
        let limits = Limits { runs_max: self.options.value_runs_max, bytes_max, noted_bytes_max };
        let bytes: HashMap<SegmentId, u64> = pieces.iter().map(|piece| (piece.id, piece.bytes)).collect();
        let is_worth = |victims: &[SegmentId]| {
            let copied = victims.iter().map(|victim| bytes[victim]).sum::<u64>();
            effort == Effort::Whole || index_bytes_over(&version, victims) <= copied
        };
        Ok(choose(&pieces, limits, is_worth))
    }

    /// Bytes that a job takes if nothing is in the way and the index is not larger.
    pub(in super::super) fn sorting_job_bytes(&self, effort: Effort) -> u64 {
        let segments = |count: u64| count * self.options.segment_bytes_max;
        match effort {
            Effort::ForScans => {
                self.memory.portion_bytes.clamp(segments(JOB_SEGMENTS_FOR_SCANS), segments(JOB_SEGMENTS))
            }
            Effort::Spare | Effort::Whole => segments(JOB_SEGMENTS),
        }
    }

    /// What such a job costs the device, as bytes that it could have read in sequence meanwhile: values are read once, or once for
    /// their keys and once for each portion; and written, as the index is.
    pub(in super::super) fn cost_of_sorting(&self, effort: Effort) -> u64 {
        let index = self.index.version().tables().map(|(_, table)| table.file_bytes).sum::<u64>();
        let values = self.sorting_job_bytes(effort).max(index);
        let portions = values.div_ceil(self.memory.portion_bytes);
        let reads = if portions > 1 { portions + 1 } else { 1 };
        values * (reads + WRITE_COST) + index * (1 + WRITE_COST)
    }

    /// Live bytes that the victims of a job may have.
    fn sorting_bytes_max(&self, version: &Version, effort: Effort) -> u64 {
        let space = self.space();
        if do_readers_hold_much(&space) {
            return 0;
        }
        let (parts, of) = SLACK_PARTS_TAKEN;
        let allowed = (space.goal + space.slack / of * parts).saturating_sub(space.used());
        let index = version.tables().map(|(_, table)| table.file_bytes).sum::<u64>();
        let most = self.sorting_job_bytes(effort).max(index);
        self.copied_bytes_max(most.min(allowed))
    }

    /// What is alive in the victims. An error says in which.
    fn prepare_sorting(&self, collection: &Collection) -> std::result::Result<Prepared, (SegmentId, Error)> {
        let prepare = |entry: &SegmentEntry| {
            self.check_not_cancelled()
                .and_then(|()| self.victim(collection, entry))
                .map_err(|error| (entry.meta.id, error))
        };
        let victims = collection.victims().iter().map(prepare).collect::<std::result::Result<_, _>>()?;
        Ok(Prepared { victims, dead: Vec::new() })
    }

    /// Copies what is alive in the victims, and adds the copies to the version.
    fn copy_sorted<'a>(
        &'a self,
        mut collection: Collection,
        prepared: Prepared,
        snapshots: &[Sequence],
        progress: &mut Progress<'a>,
        effort: Effort,
    ) -> Result<(GcReport, Sorted)> {
        let victims = prepared.victims;
        let give_way = || effort < Effort::Whole && self.are_writers_held_up();
        let promise = self.promise("a sorting of values", progress.live_bytes(), Claim::Compaction)?;
        let courtesy = Courtesy::new(self, effort < Effort::Whole);
        let mut copier = Copier::new(self, &collection, snapshots, &victims, &promise, progress, courtesy);
        match copier.run(&give_way)? {
            Copied::All => {}
            Copied::GaveWay => return Ok((GcReport::default(), Sorted::GaveWay)),
            Copied::TooManyKeys => return Ok((GcReport::default(), Sorted::Nothing)),
        }
        let Copier { copies, outputs, .. } = copier;
        // If the edit fails, nobody knows what the manifest says: files that are not in it are removed by the next open.
        let outputs: Vec<_> = outputs.into_iter().map(Written::keep).collect();
        let referenced = victims.iter().map(|victim| victim.referenced.len() as u64).sum::<u64>();
        let report = GcReport {
            segments: victims.len() as u64,
            bytes_before: victims.iter().map(|victim| victim.meta.file_bytes).sum(),
            bytes_after: outputs.iter().map(|meta| meta.file_bytes).sum(),
            records: copies.len(),
            hidden: referenced - copies.len(),
            ..GcReport::default()
        };
        let next_table = collection.version().numbers().next_table_id;
        let ids: Vec<_> = outputs.iter().map(|meta| meta.id).collect();
        self.index.add_copies(&mut collection, outputs)?;
        drop(promise);
        ids.iter().for_each(|&id| self.hidden.collected(id, next_table));
        self.show_version();
        let homes = victims.iter().map(|victim| victim.meta.id).collect();
        let replacing = Replacing { homes, held: Arc::new(HeldCopies::new(copies, collection)) };
        Ok((report, Sorted::Copied(Box::new(replacing))))
    }
}

/// Whether readers hold so much in files that only they need that they should not be given more.
pub fn do_readers_hold_much(space: &Space) -> bool {
    space.leaving > space.slack / HELD_PART_OF_SLACK
}

/// Bytes of the tables that point into `victims`, under whatever ids.
fn index_bytes_over(version: &Version, victims: &[SegmentId]) -> u64 {
    let segments = version.segments();
    let moved = segments.moved().filter(|(_, moved)| victims.contains(&moved.table.segment));
    let ids: std::collections::HashSet<_> = moved.map(|(id, _)| id).chain(victims.iter().copied()).collect();
    let tables = version.tables().map(|(_, table)| table);
    tables
        .filter(|table| table.references.iter().any(|reference| ids.contains(&reference.segment)))
        .map(|table| table.file_bytes)
        .sum()
}
