//! Running a plan: the inputs are merged into new tables, and one edit replaces the one by the other.
//!
//! Never installs anything and never removes an input. If any part fails or the job is cancelled, the outputs of
//! all parts are removed and the version stays as it is.

use std::collections::BTreeSet;

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::{SegmentId, Sequence};
use crate::base::keys::{seek_key, split_internal_key, trailer_sequence, user_key};
use crate::base::names::FileName;
use crate::base::pointer::POINTER_BYTES;
use crate::base::segment::Relocate;
use crate::base::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};
use crate::env::pool::Job;

use super::super::cache::TableCache;
use super::super::cursor::Cursor;
use super::super::hidden::{Above, is_hidden};
use super::super::level_cursor::LevelCursor;
use super::super::merge::merge;
use super::super::output::{Destination, Output, discard};
use super::super::version::{TableMeta, VersionEdit};
use super::GRANDPARENT_TABLES_MAX;
use super::decide::{Decider, Decision};
use super::plan::{CompactionPlan, PlanKind};
use super::split::{Mark, Part, split};
use super::staged::{Staged, StagedEntry};

/// A table can be cut in so many places at most.
const MARKS_MAX: usize = 64;

/// Entries are looked up together that take so many bytes of memory, which is some 40,000 ...
const STAGED_BYTES_MAX: u64 = 4 << 20;
/// ... and no more than this part of a table of full size, as a table is what a job has memory for ...
const STAGED_PART_OF_TABLE: u64 = 4;
/// ... or, where nothing was moved, than what stays in the processor's cache.
const STAGED_BYTES_UNMOVED: u64 = 16 << 10;

/// Runs every job to its end, side by side as far as there are threads.
pub type RunAll<'a> = &'a dyn Fn(Vec<Job>);

/// A plan with all that it takes to run it.
#[derive(Debug)]
pub struct CompactionJob {
    /// What to do.
    pub plan: Arc<CompactionPlan>,
    /// The snapshots held when it begins, sorted. Every entry of the inputs must be visible to readers that come
    /// later.
    pub snapshots: Vec<Sequence>,
    /// Between it and whoever started it.
    pub signals: Signals,
    /// Opens the inputs.
    pub tables: Arc<TableCache>,
    /// Where outputs go.
    pub destination: Destination,
    /// Follows pointers into segments that were moved; the outputs point to where the records are now.
    pub relocate: Arc<dyn Relocate>,
    /// Size at which an output table ends, in bytes.
    pub table_bytes_max: u64,
}

/// The payload of an entry that stays.
enum Present<'a> {
    /// As it was.
    Same(&'a [u8]),
    /// A pointer to where the record is now.
    Moved([u8; POINTER_BYTES]),
}

impl Present<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Same(payload) => payload,
            Self::Moved(pointer) => pointer,
        }
    }
}

/// What a running compaction is told, and what it tells.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// Set to end it early.
    pub cancelled: Arc<AtomicBool>,
    /// Bytes of the tables that it has finished.
    pub written: Arc<AtomicU64>,
}

impl Signals {
    fn note_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What a compaction did.
#[derive(Debug, Clone, Default)]
pub struct CompactionStats {
    /// Bytes of the input tables.
    pub bytes_read: u64,
    /// Bytes of the output tables.
    pub bytes_written: u64,
    /// Entries that were kept.
    pub kept: u64,
    /// Entries that newer versions hid from everybody.
    pub shadowed: u64,
    /// Bytes of log records to which some of these pointed, that newer versions in other tables than the inputs hide: garbage collection has left
    /// them behind.
    pub left_behind: u64,
    /// Deletions with nothing left to hide.
    pub vanished: u64,
    /// Damage to a relocation table, for which pointers were left as they are ...
    pub damage: Option<Error>,
    /// ... into these segments.
    pub unreadable: BTreeSet<SegmentId>,
}

/// What a part of a job ended with.
type PartResult = Result<(Vec<Arc<TableMeta>>, CompactionStats)>;

impl CompactionJob {
    /// Runs the plan in up to `parts_max` parts and returns the edit that puts the outputs in the inputs' place.
    /// Data and names of the outputs are durable.
    ///
    /// # Errors
    /// `Closed` if it was cancelled; whatever reading or writing a table ends with.
    pub fn run(self, parts_max: usize, run_all: RunAll<'_>) -> Result<(VersionEdit, CompactionStats)> {
        let plan = &self.plan;
        let mut edit = VersionEdit::default();
        edit.drop_tables.extend(plan.upper.iter().map(|table| (plan.level, table.id)));
        edit.drop_tables.extend(plan.lower.iter().map(|table| (plan.output_level, table.id)));
        if plan.level > 0 {
            let last = plan.upper.last().expect("a plan has inputs").largest_user_key();
            edit.compaction_cursors.push((plan.level, last.to_vec()));
        }
        let (outputs, stats) = match plan.kind {
            PlanKind::Move => (plan.upper.clone(), CompactionStats::default()),
            PlanKind::Merge => self.merge(parts_max, run_all)?,
        };
        edit.add_tables.extend(outputs.into_iter().map(|table| (self.plan.output_level, table)));
        Ok((edit, stats))
    }

    fn merge(&self, parts_max: usize, run_all: RunAll<'_>) -> PartResult {
        let parts = self.parts(parts_max)?;
        let results: Arc<Mutex<Vec<Option<PartResult>>>> =
            Arc::new(Mutex::new(parts.iter().map(|_| None).collect()));
        let jobs = parts.into_iter().enumerate().map(|(at, part)| {
            let (job, results) = (self.share(), results.clone());
            Box::new(move || {
                let result = job.merge_part(&part);
                results.lock()[at] = Some(result);
            }) as Job
        });
        run_all(jobs.collect());

        let results = std::mem::take(&mut *results.lock());
        let mut outputs = Vec::new();
        let mut stats = CompactionStats { bytes_read: self.plan.input_bytes(), ..CompactionStats::default() };
        let mut failure = None;
        for result in results {
            match result.expect("run_all returns when every job has ended") {
                Ok((tables, part)) => {
                    outputs.extend(tables);
                    stats.kept += part.kept;
                    stats.shadowed += part.shadowed;
                    stats.left_behind += part.left_behind;
                    stats.vanished += part.vanished;
                    stats.damage = stats.damage.or(part.damage);
                    stats.unreadable.extend(part.unreadable);
                }
                Err(error) => failure = Some(error),
            }
        }
        let outcome = failure.map_or_else(|| self.destination.sync_names(), Err);
        if let Err(error) = outcome {
            discard(&outputs);
            return Err(error);
        }
        stats.bytes_written = outputs.iter().map(|table| table.file_bytes).sum();
        Ok((outputs, stats))
    }

    /// What may be done side by side. All inputs are opened for that, unless they are too few to be cut.
    fn parts(&self, parts_max: usize) -> Result<Vec<Part>> {
        let (plan, mut marks) = (&self.plan, Vec::new());
        if parts_max > 1 && plan.input_bytes() / 2 >= self.table_bytes_max {
            for table in plan.inputs() {
                let keys = self.tables.get(table.id)?.marks(MARKS_MAX)?;
                let bytes = table.file_bytes / keys.len().max(1) as u64;
                marks.extend(keys.into_iter().map(|user_key| Mark { user_key, bytes }));
            }
        }
        Ok(split(plan.version.order(), &plan.range, marks, parts_max, self.table_bytes_max))
    }

    /// The same job for another thread.
    fn share(&self) -> Self {
        Self {
            plan: self.plan.clone(),
            snapshots: self.snapshots.clone(),
            signals: self.signals.clone(),
            tables: self.tables.clone(),
            destination: self.destination.clone(),
            relocate: self.relocate.clone(),
            table_bytes_max: self.table_bytes_max,
        }
    }

    fn merge_part(&self, part: &Part) -> PartResult {
        let order = self.plan.version.order();
        let mut cursor = self.cursor();
        match &part.start {
            Some(start) => cursor.seek(&seek_key(start, Sequence::MAX))?,
            None => cursor.seek_to_first()?,
        }
        let first = self.plan.upper.first().expect("a plan has inputs");
        let source = self.destination.path(FileName::Table(first.id));
        let mut output = Output::new(self.destination.clone(), source);
        let mut decider = Decider::new(order, &self.snapshots);
        let mut overlap = Overlap::new(&self.plan, self.table_bytes_max);
        let mut stats = CompactionStats::default();
        let mut staged = Staged::new(self.staged_bytes_max());
        while cursor.valid() {
            if self.signals.cancelled.load(Ordering::Relaxed) {
                return Err(Error::closed());
            }
            let key = user_key(cursor.key());
            if part.end.as_ref().is_some_and(|end| order.compare_user(key, end).is_ge()) {
                break;
            }
            // Tables end only between user keys: all versions of one stay together.
            let may_cut = !decider.is_current(key);
            match decider.decide(cursor.key(), |key| self.plan.nothing_older_outside(key)) {
                Decision::Keep => {
                    staged.push(cursor.key(), cursor.payload(), may_cut, decider.held_for());
                    if staged.is_full() {
                        self.write(&mut staged, &mut output, &mut overlap, &mut stats)?;
                    }
                }
                Decision::Shadowed => stats.shadowed += 1,
                Decision::Vanished => stats.vanished += 1,
            }
            cursor.next()?;
        }
        self.write(&mut staged, &mut output, &mut overlap, &mut stats)?;
        self.signals.note_written(output.cut()?);
        Ok((output.finish()?, stats))
    }

    /// How much is staged.
    fn staged_bytes_max(&self) -> usize {
        let has_moved = self.plan.version.segments().moved().next().is_some();
        let most = if has_moved { STAGED_BYTES_MAX } else { STAGED_BYTES_UNMOVED };
        most.min(self.table_bytes_max / STAGED_PART_OF_TABLE) as usize
    }

    /// Writes what is `staged`, but for what garbage collection has left behind.
    fn write(
        &self,
        staged: &mut Staged,
        output: &mut Output,
        overlap: &mut Overlap<'_>,
        stats: &mut CompactionStats,
    ) -> Result<()> {
        let segments = self.plan.version.segments();
        staged.look_up(
            |id| segments.relocation_table(id),
            |table, pointer| self.relocate.relocate(table, pointer),
        );
        staged.take(|entry| {
            let Some(payload) = self.present_payload(&entry, stats)? else {
                stats.shadowed += 1;
                stats.left_behind += self.destination.stored_bytes(entry.key, entry.payload);
                return Ok(());
            };
            stats.kept += 1;
            let is_long = output.open_bytes() >= self.table_bytes_max;
            if entry.may_cut && (is_long || overlap.is_too_much(user_key(entry.key))) {
                self.signals.note_written(output.cut()?);
                overlap.restart();
            }
            output.add(entry.key, payload.bytes(), entry.held)
        })
    }

    /// The payload of an entry that stays, its pointer leading to where the record is now. `None` if garbage
    /// collection has left the record behind, because the entry is hidden from everybody: so it goes, too. Where damage keeps
    /// it from being told, the payload is as it was.
    fn present_payload<'a>(
        &self,
        entry: &StagedEntry<'a>,
        stats: &mut CompactionStats,
    ) -> Result<Option<Present<'a>>> {
        let Some(pointer) = entry.pointer else { return Ok(Some(Present::Same(entry.payload))) };
        let version = &self.plan.version;
        let segments = version.segments();
        let place = match &entry.place {
            // The pointer leads where it led; whoever follows it is told. What is damaged must not hold up all the rest.
            Err(error) if error.kind() == ErrorKind::Corruption => {
                stats.damage.get_or_insert_with(|| error.clone());
                stats.unreadable.insert(pointer.segment);
                return Ok(Some(Present::Same(entry.payload)));
            }
            place => place.clone()?,
        };
        let present = place.and_then(|place| self.relocate.onward(place));
        match present.filter(|present| !segments.is_given_back(present.segment, present.offset)) {
            Some(present) if present == pointer => return Ok(Some(Present::Same(entry.payload))),
            Some(present) => return Ok(Some(Present::Moved(present.to_bytes()))),
            None => {}
        }
        let (user_key, trailer) =
            split_internal_key(entry.key).expect("decoders refuse internal keys without a trailer");
        let sequence = trailer_sequence(trailer);
        if is_hidden(&self.tables, version, Above::Everything, user_key, sequence, &self.snapshots)? {
            return Ok(None);
        }
        // I-11. Whatever the reason is: nothing that a reader may want is dropped.
        let name = |segment| self.destination.path(FileName::Segment(segment));
        Err(match (place, segments.relocation_table(pointer.segment)) {
            (None, Some(table)) => {
                let expected =
                    format!("the place of the record at {} of segment {}", pointer.offset, pointer.segment);
                Error::corruption(&name(table.segment), u64::from(table.offset), expected, "none")
            }
            _ => {
                let at = place.unwrap_or(pointer);
                let found = "one that was left behind, or a range that was given back";
                Error::corruption(&name(at.segment), u64::from(at.offset), "a record", found)
            }
        })
    }

    fn cursor(&self) -> Box<dyn Cursor> {
        let plan = &self.plan;
        let level = |tables: Vec<Arc<TableMeta>>| {
            let (order, cache) = (plan.version.order().clone(), self.tables.clone());
            Box::new(LevelCursor::new(Arc::new(tables), order, cache, false)) as Box<dyn Cursor>
        };
        let mut cursors: Vec<Box<dyn Cursor>> = Vec::new();
        if plan.level == 0 {
            cursors.extend(plan.upper.iter().map(|table| level(vec![table.clone()])));
        } else {
            cursors.push(level(plan.upper.clone()));
        }
        if !plan.lower.is_empty() {
            cursors.push(level(plan.lower.clone()));
        }
        merge(plan.version.order().clone(), cursors)
    }
}

/// How much of the level below the outputs the open output overlaps.
struct Overlap<'a> {
    plan: &'a CompactionPlan,
    /// The first grandparent that does not lie wholly before the last key.
    next: usize,
    bytes: u64,
    bytes_max: u64,
}

impl<'a> Overlap<'a> {
    fn new(plan: &'a CompactionPlan, table_bytes_max: u64) -> Self {
        Self { plan, next: 0, bytes: 0, bytes_max: GRANDPARENT_TABLES_MAX.saturating_mul(table_bytes_max) }
    }

    /// Moves on to `key`; whether the tables passed since the open output began are too much for one output.
    fn is_too_much(&mut self, key: &[u8]) -> bool {
        let order = self.plan.version.order();
        while let Some(table) = self.plan.grandparents.get(self.next)
            && order.compare_user(table.largest_user_key(), key).is_lt()
        {
            self.bytes = self.bytes.saturating_add(table.file_bytes);
            self.next += 1;
        }
        self.bytes > self.bytes_max
    }

    fn restart(&mut self) {
        self.bytes = 0;
    }
}
