//! Runs one collection.

use std::collections::HashMap;
use std::time::Duration;

use super::super::Cube;
use super::super::headroom::{Claim, Promise};
use super::super::inventory::Content;
use super::batch::{Batch, Survivor};
use super::pace::PACE_BYTES;
use super::progress::Progress;
use super::survivors::Victim;
use super::{Candidate, GcReport, choose};
use crate::base::dead_ranges::DeadRanges;
use crate::base::error::{Error, Result};
use crate::base::ids::{LogPosition, SegmentId, Sequence};
use crate::base::listener::GcEvent;
use crate::base::names::FileName;
use crate::base::segment::SegmentMove;
use crate::base::sync::{Arc, Ordering};
use crate::index::Collection;
use crate::index::version::{FileHandle, SegmentEntry, Version};
use crate::vlog::cold::{ColdWriter, Original};
use crate::vlog::format::{SEGMENT_HEADER_BYTES, SegmentHeader, record_len};
use crate::vlog::relocation::Relocations;

/// Records of at most so many bytes stay in memory from when their heads are read until they are copied.
const KEPT_BYTES_MAX: u64 = 4096;

/// What is promised to a cold segment, divided by this: a file that is not needed any more may have so much more to become
/// it. The rest is given back to the file system, which takes as long as removing it.
const BLANK_EXCESS_PART: u64 = 8;

/// What a collection does with its victims.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Those whose survivors are copied.
    pub victims: Vec<Victim>,
    /// Those of which these ranges are given back.
    pub dead: Vec<(SegmentId, DeadRanges)>,
}

impl Cube {
    /// Every segment of `version` that may be collected now.
    pub(in super::super) fn collection_candidates(&self, version: &Version) -> Vec<Candidate> {
        let now = version.numbers().last_sequence.0;
        let quarantined = self.collector.quarantined();
        let unpunchable = self.index.files().unpunchable();
        let candidate = |content: Content<'_>| {
            let meta = &content.entry.meta;
            let age = now.saturating_sub(meta.written.0);
            // What the copies of its records would take, if all were alive, is all that a cold segment ever takes.
            let bytes = if meta.id.is_cold() { meta.value_record_bytes } else { meta.end };
            // What holes have given back, or are about to, copying would not free.
            let stuck = unpunchable.iter().filter(|(id, _)| *id == meta.id).map(|(_, bytes)| bytes).sum();
            let holes = version.segments().hole_bytes(meta.id).saturating_sub(stuck);
            Candidate { id: meta.id, bytes: bytes.saturating_sub(holes), live_bytes: content.live, age }
        };
        let contents = self.contents(version).into_iter();
        let collectable = contents.filter(|content| version.is_collectable(content.entry.meta.id));
        // A relocation table begins in the first 4 GiB of the segment, behind all copies: values that leave no room for it stay.
        let fits = |candidate: &Candidate| candidate.live_bytes < u64::from(u32::MAX) - SEGMENT_HEADER_BYTES;
        let candidates = collectable.map(candidate).filter(fits);
        candidates.filter(|candidate| !quarantined.contains(&candidate.id)).collect()
    }

    /// Collects what is most worth it of the segments of which at most `live_share_max` is alive; `None` if there
    /// is no such segment. The space is there once the victims are removed, in the background. Blocks on the device.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `Corruption`; `Closed` if it was cancelled. Nothing has changed then.
    pub(in super::super) fn collect(&self, live_share_max: f64) -> Result<Option<GcReport>> {
        let output_bytes_max = self.collection_bytes_max();
        let mut estimates = HashMap::new();
        let collection = self.index.begin_collection(|version, collecting| {
            let mut candidates = self.collection_candidates(version);
            candidates.retain(|candidate| !collecting.holds(candidate.id));
            estimates.extend(candidates.iter().map(|candidate| (candidate.id, candidate.live_bytes)));
            choose(&candidates, self.options.gc, live_share_max, output_bytes_max)
        });
        let Some(collection) = collection else { return Ok(None) };
        // Listed after the version was loaded: what is not in the list sees the newest version of everything in it.
        let snapshots = self.snapshots.list();
        let prepared = self.prepare(&collection, &snapshots, output_bytes_max);
        let mut progress = Progress::begin(self, &collection, prepared.as_ref().ok(), &estimates);
        let done = prepared.map_err(|(id, error)| {
            self.quarantine(progress.job(), &error, id);
            error
        });
        let done = done.and_then(|Prepared { victims, dead }| {
            let promise = self.promise("a collection", progress.live_bytes(), Claim::Collection)?;
            let mut done = self.give_back(&collection, dead)?;
            // The files stay until every lease has the relocation tables in them.
            let copied = |entry: &&SegmentEntry| victims.iter().any(|victim| victim.meta.id == entry.meta.id);
            let held: Vec<_> = collection.victims().iter().filter(copied).cloned().collect();
            if !victims.is_empty() {
                done.add(&self.copy_and_install(
                    collection,
                    &victims,
                    &snapshots,
                    &promise,
                    &mut progress,
                )?);
            }
            // What it wrote is in the version by now, and the room for it is open to what becomes of the victims.
            drop(promise);
            drop(held);
            Ok(done)
        });
        let done = done.inspect(|done| self.count_collection(done));
        progress.end(&done);
        self.punch_holes(true);
        done.map(Some)
    }

    /// What is to become of the first victims of `collection`, as many as fit into `output_bytes_max`, or one. They were
    /// chosen by estimates; what is left for later is chosen again. An error says in which segment.
    fn prepare(
        &self,
        collection: &Collection,
        snapshots: &[Sequence],
        output_bytes_max: u64,
    ) -> std::result::Result<Prepared, (SegmentId, Error)> {
        let mut prepared = Prepared::default();
        let (mut output_bytes, mut noted_bytes) = (0, 0);
        for entry in collection.victims() {
            let id = entry.meta.id;
            self.check_not_cancelled().map_err(|error| (id, error))?;
            let victim = self.victim(collection, entry).map_err(|error| (id, error))?;
            let holes = self.plan_holes(collection, &victim, snapshots);
            if let Some(ranges) = holes.map_err(|error| (id, error))? {
                prepared.dead.push((id, ranges));
                continue;
            }
            output_bytes += victim.survivor_bytes_max();
            noted_bytes += size_of_val(&victim.referenced[..]) as u64;
            let is_too_much = output_bytes > output_bytes_max || noted_bytes > self.memory.batch_bytes;
            if !prepared.victims.is_empty() && is_too_much {
                break;
            }
            prepared.victims.push(victim);
        }
        Ok(prepared)
    }

    /// Declares `dead` to be dead ranges of victims of `collection`.
    fn give_back(&self, collection: &Collection, dead: Vec<(SegmentId, DeadRanges)>) -> Result<GcReport> {
        if dead.is_empty() {
            return Ok(GcReport::default());
        }
        let ids: Vec<_> = dead.iter().map(|(id, _)| *id).collect();
        let next_table = collection.version().numbers().next_table_id;
        let holes = |version: &Version| ids.iter().map(|&id| version.segments().hole_bytes(id)).sum::<u64>();
        let before = holes(collection.version());
        let after = holes(&*self.index.give_back(collection, dead)?);
        ids.iter().for_each(|&id| self.hidden.collected(id, next_table));
        self.show_version();
        Ok(GcReport { punched: ids.len() as u64, hole_bytes: after - before, ..GcReport::default() })
    }

    fn copy_and_install(
        &self,
        collection: Collection,
        victims: &[Victim],
        snapshots: &[Sequence],
        promise: &Promise<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<GcReport> {
        let metas = || victims.iter().map(|victim| &victim.meta);
        let mut done = GcReport {
            segments: victims.len() as u64,
            bytes_before: metas().map(|meta| meta.file_bytes).sum(),
            ..GcReport::default()
        };
        let written = metas().map(|meta| meta.written.0).sum::<u64>() / done.segments;
        let (mut output, id, handle) = self.begin_cold_segment(Sequence(written), Some(promise))?;
        let mut copier = Copier {
            cube: self,
            collection: &collection,
            snapshots,
            victims,
            promise,
            progress,
            moved: vec![Vec::new(); victims.len()],
            range: None,
        };
        copier.run(&mut output)?;
        if let Some((smallest, largest)) = &copier.range {
            output.note_range(smallest, largest);
        }
        let mut moves = Vec::new();
        for (victim, pairs) in victims.iter().zip(copier.moved) {
            done.records += pairs.len() as u64;
            done.hidden += (victim.referenced.len() - pairs.len()) as u64;
            let onward = Relocations::new(pairs);
            for (former, _, relocations) in &victim.moved {
                let table = output.add_relocations(*former, &relocations.then(&onward))?;
                moves.push(SegmentMove { id: *former, table });
            }
            moves.push(SegmentMove {
                id: victim.meta.id,
                table: output.add_relocations(victim.meta.id, &onward)?,
            });
        }
        let meta = output.finish()?;
        done.bytes_after = meta.file_bytes;
        // If this fails, nobody knows what the manifest says: the file is removed by the next open if it is not there.
        let next_table = collection.version().numbers().next_table_id;
        if self.index.finish_collection(collection, meta, moves)?.is_none() {
            handle.mark_obsolete(meta.file_bytes);
            return Ok(done);
        }
        let retired: Vec<_> = (victims.iter().flat_map(|victim| &victim.moved))
            .map(|(_, place, relocations)| (*place, Arc::clone(relocations)))
            .collect();
        self.leases.retire(&retired);
        self.hidden.collected(id, next_table);
        self.show_version();
        Ok(done)
    }

    /// Begins a cold segment of records that were `written` about then. It is made of a file that is not needed any more, if
    /// there is one that it will about fill.
    pub(super) fn begin_cold_segment(
        &self,
        written: Sequence,
        promise: Option<&Promise<'_>>,
    ) -> Result<(ColdWriter<'_>, SegmentId, Arc<FileHandle>)> {
        let id = self.collector.next_id()?;
        let handle = self.index.files().segment(id);
        let salt = self.env.rng.random_u64();
        let header = SegmentHeader {
            cube: self.id,
            id,
            salt: salt.map_err(|error| Error::io("draw a salt for", &self.directory, error))?,
            predecessor: LogPosition::default(),
            first_sequence: written,
            durable: LogPosition::default(),
        };
        let path = FileName::Segment(id).path(&self.directory);
        let fs = &*self.env.fs;
        let promised = promise.map_or(0, Promise::bytes);
        let writer = match self.index.files().recycle(handle.name(), promised + promised / BLANK_EXCESS_PART)
        {
            Some((file, bytes)) => {
                promise.inspect(|promise| promise.fill_blank(bytes));
                ColdWriter::of(fs, file, bytes, path, header)
            }
            None => {
                if self.limit_stock(promised) {
                    self.index.files().finish_removal();
                }
                ColdWriter::create(fs, path, header)?
            }
        };
        Ok((writer, id, handle))
    }

    /// Keeps a segment and leaves it alone from now on if `error` says that it is damaged. Other errors pass, also
    /// damage to a table that was met on the way.
    pub(super) fn quarantine(&self, job: u64, error: &Error, victim: SegmentId) {
        if self.is_damage_to(error, victim) {
            self.collector.quarantine(victim);
            let name = FileName::Segment(victim);
            self.health.warn(format!("{name} is damaged and is not collected any more: {error}"));
            self.events.gc(|| GcEvent::Quarantined { job, segment: victim.0, error: error.clone() });
        }
    }

    /// Another `bytes` have been copied for the job of `promise`: they take space, and time if there is a pace to keep.
    pub(super) fn account(&self, promise: &Promise<'_>, bytes: u64) {
        promise.written().fetch_add(bytes, Ordering::Relaxed);
        self.follow_space();
        self.keep_pace(bytes);
    }

    /// Waits as long as `bytes` copied take at the pace that was asked for, or until another is or the cube is closed.
    fn keep_pace(&self, bytes: u64) {
        let (pace, clock) = (&self.collector.pace, &self.env.clock);
        let mut left = pace.after(bytes, || clock.monotonic());
        while !left.is_zero() && !self.maintenance.cancelled.load(Ordering::Relaxed) {
            let slice = left.min(Duration::from_millis(50));
            clock.sleep(slice);
            left = (left - slice).min(pace.owed(clock.monotonic()));
        }
    }

    /// A close wants jobs to end.
    pub(super) fn check_not_cancelled(&self) -> Result<()> {
        if self.maintenance.cancelled.load(Ordering::Relaxed) { Err(Error::closed()) } else { Ok(()) }
    }

    pub(super) fn is_damage_to(&self, error: &Error, segment: SegmentId) -> bool {
        error.as_corruption().is_some_and(|place| place.file == self.reader.segments().path(segment))
    }

    /// Whether `error` is damage to a segment that is left alone, so that others can be collected.
    pub(in super::super) fn is_in_quarantine(&self, error: &Error) -> bool {
        self.collector.quarantined().iter().any(|&segment| self.is_damage_to(error, segment))
    }
}

/// The copying part of one collection.
struct Copier<'a, 'cube> {
    cube: &'a Cube,
    collection: &'a Collection,
    snapshots: &'a [Sequence],
    victims: &'a [Victim],
    promise: &'a Promise<'a>,
    progress: &'a mut Progress<'cube>,
    /// By victim, where its records were and are.
    moved: Vec<Vec<(u32, u32)>>,
    /// The smallest and the largest key copied.
    range: Option<(Vec<u8>, Vec<u8>)>,
}

impl Copier<'_, '_> {
    fn run(&mut self, output: &mut ColdWriter<'_>) -> Result<()> {
        let mut batch = Batch::default();
        // Survivors are sorted by key within what fits.
        let bytes_max = self.cube.memory.batch_bytes as usize;
        for (number, victim) in self.victims.iter().enumerate() {
            let mut from = 0;
            while from < victim.referenced.len() {
                self.cube.check_not_cancelled()?;
                from = Cube::add_referenced((number, victim), from, &mut batch, bytes_max, KEPT_BYTES_MAX)
                    .inspect_err(|error| self.cube.quarantine(self.progress.job(), error, victim.meta.id))?;
                if batch.memory_bytes() >= bytes_max {
                    self.copy(&mut batch, output)?;
                }
            }
        }
        self.copy(&mut batch, output)
    }

    /// Copies what is in `batch` and not hidden, sorted by key, and empties it.
    fn copy(&mut self, batch: &mut Batch, output: &mut ColdWriter<'_>) -> Result<()> {
        let hidden = self.cube.sift(self.collection, self.victims, self.snapshots, batch)?;
        self.progress.advance(hidden);
        let survivors = std::mem::take(&mut batch.survivors);
        let mut unpaid = 0;
        for survivor in &survivors {
            self.cube.check_not_cancelled()?;
            if unpaid >= PACE_BYTES {
                self.cube.account(self.promise, std::mem::take(&mut unpaid));
            }
            let victim = &self.victims[survivor.victim as usize];
            let record = victim.referenced[survivor.record as usize];
            let key = batch.key(survivor);
            let original = Original {
                segment: &victim.segment,
                offset: record.at,
                key,
                stored_len: survivor.stored_len,
                record: batch.record(survivor),
            };
            let now = output
                .copy(&self.cube.reader, original)
                .inspect_err(|error| self.cube.quarantine(self.progress.job(), error, victim.meta.id))?;
            self.moved[survivor.victim as usize].push((record.at, now));
            self.progress.advance(1);
            unpaid += record_len(key.len(), u64::from(survivor.stored_len));
        }
        self.cube.account(self.promise, unpaid);
        self.note_range(&survivors, batch);
        batch.survivors = survivors;
        batch.clear();
        Ok(())
    }

    fn note_range(&mut self, sorted: &[Survivor], batch: &Batch) {
        let (Some(first), Some(last)) = (sorted.first(), sorted.last()) else { return };
        let (first, last) = (batch.key(first), batch.key(last));
        let order = &self.cube.keys;
        let (smallest, largest) = self.range.get_or_insert_with(|| (first.to_vec(), last.to_vec()));
        if order.compare_user(first, smallest).is_lt() {
            first.clone_into(smallest);
        }
        if order.compare_user(last, largest).is_gt() {
            last.clone_into(largest);
        }
    }
}
