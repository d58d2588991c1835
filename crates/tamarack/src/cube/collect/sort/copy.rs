//! Copies the survivors of several segments into cold ones, sorted by key as a whole and disjoint in key range.
//!
//! Owns: the order in which bytes are read. First the heads of all records are read and sorted, in memory; then values
//! are read, as many as fit, in the order of their places, and written in the order of their keys. So a victim is
//! read from front to back as often as there are such portions, and nothing is written but what stays. Where all values fit,
//! they are kept when the heads are read, and a victim is read once.

use super::super::super::Cube;
use super::super::super::headroom::Promise;
use super::super::batch::{Batch, Survivor};
use super::super::pace::PACE_BYTES;
use super::super::progress::Progress;
use super::super::survivors::Victim;
use super::Copies;
use super::courtesy::Courtesy;
use crate::base::error::{Error, Result};
use crate::base::ids::{SegmentId, Sequence};
use crate::base::segment::SegmentMeta;
use crate::base::sync::Arc;
use crate::env::read_exact_at;
use crate::index::Collection;
use crate::index::version::FileHandle;
use crate::vlog::cold::{ColdWriter, Original};
use crate::vlog::format::record_len;

/// A job whose keys take so many times as much memory as there is for them, because they are not what the known ones of its segments had it
/// believe, is given up.
const MISJUDGED_TIMES: u64 = 4;

/// A gap of at most so many bytes between two records is read along ...
const GAP_BYTES_MAX: u64 = 64 << 10;
/// ... into one read of at most so many, unless a single record is larger.
const READ_BYTES_MAX: u64 = 1 << 20;

/// The copying part of one job.
pub struct Copier<'a, 'cube> {
    pub cube: &'cube Cube,
    pub collection: &'a Collection,
    pub snapshots: &'a [Sequence],
    pub victims: &'a [Victim],
    promise: &'a Promise<'a>,
    pub progress: &'a mut Progress<'cube>,
    /// About when the records were written.
    pub written: Sequence,
    pub copies: Copies,
    /// The cold segments that are finished.
    pub outputs: Vec<Written>,
    open: Option<Output<'cube>>,
    courtesy: Courtesy<'cube>,
}

/// A cold segment that no version knows yet: unless it is kept, its file goes with it.
#[derive(Debug)]
pub struct Written {
    pub meta: SegmentMeta,
    handle: Arc<FileHandle>,
    kept: bool,
}

impl Written {
    /// Leaves the file to the version.
    pub fn keep(mut self) -> SegmentMeta {
        self.kept = true;
        self.meta
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.kept {
            self.handle.mark_obsolete(self.meta.file_bytes);
        }
    }
}

/// A cold segment that is being written.
struct Output<'cube> {
    id: SegmentId,
    writer: ColdWriter<'cube>,
    handle: Arc<FileHandle>,
    smallest: Vec<u8>,
    largest: Vec<u8>,
}

/// How copying ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// All of it.
    All,
    /// Not at all: writers need the device.
    GaveWay,
    /// Not at all: the keys do not fit into memory.
    TooManyKeys,
}

impl<'a, 'cube> Copier<'a, 'cube> {
    /// Copies nothing yet.
    pub fn new(
        cube: &'cube Cube,
        collection: &'a Collection,
        snapshots: &'a [Sequence],
        victims: &'a [Victim],
        promise: &'a Promise<'a>,
        progress: &'a mut Progress<'cube>,
        courtesy: Courtesy<'cube>,
    ) -> Self {
        let written = victims.iter().map(|victim| victim.meta.written.0).sum::<u64>();
        let written = Sequence(written / victims.len().max(1) as u64);
        let copies = Copies::new(victims.iter().map(|victim| victim.meta.id));
        Self {
            cube,
            collection,
            snapshots,
            victims,
            promise,
            progress,
            written,
            copies,
            outputs: Vec::new(),
            open: None,
            courtesy,
        }
    }

    /// Copies everything that is not hidden; `give_way` says when to stop.
    ///
    /// # Errors
    /// `Io`, `NoSpace`, `Corruption`; `Closed` if it was cancelled.
    pub fn run(&mut self, give_way: &dyn Fn() -> bool) -> Result<Copied> {
        let mut batch = Batch::default();
        let bytes = self.victims.iter().map(live_bytes).sum::<u64>();
        let may_fit = bytes <= self.cube.memory.portion_bytes;
        if may_fit {
            // An estimate says that they fit: never more is kept than all of them, and never more than a portion.
            let most = |victim: &Victim| victim.meta.value_record_bytes.min(victim.meta.end);
            let all = self.victims.iter().map(most).sum::<u64>();
            let bytes_max = all.min(self.cube.memory.portion_bytes);
            batch.keep_records(usize::try_from(bytes_max).unwrap_or(usize::MAX));
        }
        let kept_bytes_max = if may_fit { u64::MAX } else { 0 };
        read_ahead(self.victims.first());
        for (number, victim) in self.victims.iter().enumerate() {
            self.cube.check_not_cancelled()?;
            if give_way() {
                return Ok(Copied::GaveWay);
            }
            self.courtesy.give_way()?;
            read_ahead(self.victims.get(number + 1));
            Cube::add_referenced((number, victim), 0, &mut batch, usize::MAX, kept_bytes_max)
                .inspect_err(|error| self.quarantine(error, victim.meta.id))?;
            if batch.noted_bytes() as u64 / MISJUDGED_TIMES > self.cube.memory.sorted_bytes {
                return Ok(Copied::TooManyKeys);
            }
        }
        let hidden = self.cube.sift(self.collection, self.victims, self.snapshots, &mut batch)?;
        self.progress.advance(hidden);
        let are_kept = batch.holds_all_records();
        let survivors = std::mem::take(&mut batch.survivors);
        let mut rest = &survivors[..];
        while !rest.is_empty() {
            if give_way() {
                return Ok(Copied::GaveWay);
            }
            let portion;
            // The victims are read about as often as this goes into their bytes.
            (portion, rest) = rest.split_at(portion_len(rest, self.cube.memory.portion_bytes));
            self.copy(portion, &batch, are_kept)?;
        }
        self.end_output()?;
        self.copies.seal();
        Ok(Copied::All)
    }

    /// Copies `portion`, which is sorted by key, and kept in `batch` or to be read.
    fn copy(&mut self, portion: &[Survivor], batch: &Batch, are_kept: bool) -> Result<()> {
        let starts: Vec<usize> = portion
            .iter()
            .scan(0, |end, survivor| {
                let start = *end;
                *end += len_of(survivor) as usize;
                Some(start)
            })
            .collect();
        let values = if are_kept { Vec::new() } else { self.read(portion, &starts)? };
        let mut unpaid = 0;
        for (survivor, &start) in portion.iter().zip(&starts) {
            self.cube.check_not_cancelled()?;
            if unpaid >= PACE_BYTES {
                self.cube.account(self.promise, std::mem::take(&mut unpaid));
                self.courtesy.give_way()?;
            }
            let len = len_of(survivor);
            let read = || &values[start..start + len as usize];
            let (key, record) = (batch.key(survivor), batch.record(survivor).unwrap_or_else(read));
            let (at, id, now) = self.write(survivor, key, record)?;
            self.copies.add(survivor.victim as usize, at, id, now);
            self.progress.advance(1);
            unpaid += len;
        }
        self.cube.account(self.promise, unpaid);
        Ok(())
    }

    /// Writes the record of `survivor`; returns where it was, and where it is.
    fn write(&mut self, survivor: &Survivor, key: &[u8], record: &[u8]) -> Result<(u32, SegmentId, u32)> {
        let bytes_max = self.cube.options.segment_bytes_max;
        // All versions of a key stay together, whichever of equal keys they were written with, so that no two outputs
        // share one: they would be merged again, for ever.
        let is_full = |output: &mut Output<'_>| {
            output.writer.bytes() + record.len() as u64 > bytes_max
                && self.cube.keys.compare_user(&output.largest, key).is_ne()
        };
        if self.open.as_mut().is_some_and(is_full) {
            self.end_output()?;
        }
        if self.open.is_none() {
            let (writer, id, handle) = self.cube.begin_cold_segment(self.written, None)?;
            self.open = Some(Output { id, writer, handle, smallest: key.to_vec(), largest: Vec::new() });
        }
        let output = self.open.as_mut().expect("there is one now");
        key.clone_into(&mut output.largest);
        let victim = &self.victims[survivor.victim as usize];
        let at = victim.referenced[survivor.record as usize].at;
        let original = Original {
            segment: &victim.segment,
            offset: at,
            key,
            stored_len: survivor.stored_len,
            record: Some(record),
        };
        let id = output.id;
        let now = output
            .writer
            .copy(&self.cube.reader, original)
            .inspect_err(|error| self.quarantine(error, victim.meta.id))?;
        Ok((at, id, now))
    }

    fn end_output(&mut self) -> Result<()> {
        let Some(Output { mut writer, handle, smallest, largest, .. }) = self.open.take() else {
            return Ok(());
        };
        writer.note_range(&smallest, &largest);
        self.outputs.push(Written { meta: writer.finish()?, handle, kept: false });
        Ok(())
    }

    /// The records of `portion`, each where `starts` says, read in the order of their places.
    fn read(&mut self, portion: &[Survivor], starts: &[usize]) -> Result<Vec<u8>> {
        let victims = self.victims;
        let place = |survivor: &Survivor| {
            (survivor.victim, victims[survivor.victim as usize].referenced[survivor.record as usize].at)
        };
        let mut by_place: Vec<usize> = (0..portion.len()).collect();
        by_place.sort_unstable_by_key(|&number| place(&portion[number]));
        let total = portion.iter().map(len_of).sum::<u64>();
        let mut records = vec![0; usize::try_from(total).expect("a portion is in memory")];
        let mut window = Vec::new();
        let mut rest = &by_place[..];
        while let Some(&first) = rest.first() {
            let (victim, start) = place(&portion[first]);
            let mut end = u64::from(start) + len_of(&portion[first]);
            let joined = 1 + rest[1..]
                .iter()
                .take_while(|&&number| {
                    let (other, at) = place(&portion[number]);
                    let next_end = u64::from(at) + len_of(&portion[number]);
                    let near = other == victim
                        && u64::from(at) <= end + GAP_BYTES_MAX
                        && next_end - u64::from(start) <= READ_BYTES_MAX;
                    if near {
                        end = next_end;
                    }
                    near
                })
                .count();
            let members;
            (members, rest) = rest.split_at(joined);
            self.courtesy.give_way()?;
            let segment = &victims[victim as usize].segment;
            window.resize(usize::try_from(end - u64::from(start)).expect("reads are bounded"), 0);
            read_exact_at(segment.file(), &mut window, start.into())
                .map_err(|error| Error::io("read", segment.path(), error))?;
            for &number in members {
                let from = (place(&portion[number]).1 - start) as usize;
                let len = len_of(&portion[number]) as usize;
                records[starts[number]..starts[number] + len].copy_from_slice(&window[from..from + len]);
            }
        }
        Ok(records)
    }

    fn quarantine(&self, error: &Error, victim: SegmentId) {
        self.cube.quarantine(self.progress.job(), error, victim);
    }
}

/// Bytes of records that are alive in `victim`, about.
fn live_bytes(victim: &Victim) -> u64 {
    let meta = &victim.meta;
    meta.value_record_bytes / meta.value_records.max(1) * victim.referenced.len() as u64
}

/// Has the device begin with what is read next. Advice: what fails is told by who reads it.
fn read_ahead(victim: Option<&Victim>) {
    if let Some(victim) = victim {
        drop(victim.segment.file().read_ahead(0, victim.meta.end));
    }
}

fn len_of(survivor: &Survivor) -> u64 {
    record_len(usize::from(survivor.key.1), u64::from(survivor.stored_len))
}

/// How many of `survivors` are copied at once: at least one.
fn portion_len(survivors: &[Survivor], bytes_max: u64) -> usize {
    let mut bytes = 0_u64;
    let fits = |survivor: &&Survivor| {
        bytes += len_of(survivor);
        bytes <= bytes_max
    };
    survivors.iter().take_while(fits).count().max(1)
}
