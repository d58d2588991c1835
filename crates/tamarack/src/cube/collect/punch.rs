//! Gives the space of large dead values back without copying what is alive beside them: by holes in the segment's file.
//!
//! # The protocol
//!
//! 1. **Mark**, as for copying: what tables reference in the victim, under all of its ids, less what is hidden from every
//!    reader for good; and the relocation tables in it that are still needed.
//! 2. **Decide** ([`decide`], pure): between the records that are alive there are gaps of whole records; those that hold
//!    enough blocks become the victim's *dead ranges*. Holes must cost less than copying, and leave a segment that is not
//!    worth collecting any more; else it is copied. A *hole* is what of a dead range is whole blocks: the range is the
//!    log's affair, the hole the file system's.
//! 3. **Install** one edit with the dead ranges. What justifies each death is durable by then, as for every segment that
//!    goes: it is said by tables of a version, and those are written when the log is durable up to them (I-07, I-09).
//!    From then on nobody who begins to read reaches what is in the ranges.
//! 4. **Wait** for those who began before: the versions before the edit hold another handle of the file, and the last
//!    holder of that releases the ranges (I-06).
//! 5. **Punch**, in the background, after the edit is durable (I-04), if no checkpoint shares the file (I-12). It need not be
//!    synced: what comes back after a crash is dead all the same.
//!
//! A crash between 3 and 5 leaves a file that takes more than it should: opening notices that, and 5 is done again.
//! A file that is shared waits until the other name is gone. A file system that cannot punch says so once; its segments
//! are copied from then on, those that have dead ranges as well: they count as what they take.
//!
//! # What could go wrong, and why it does not
//!
//! *Zeros are read as data.* Whoever follows a pointer asks the version's dead ranges first (I-13), and gets a corruption
//! error if they have a part of the record. Records begin and end where dead ranges do, so a walk over a segment goes on
//! behind each range; header and footer are never in one. Recovery reads only segments from the log head on, and those
//! have none.
//! *A hidden record is given back while a table still points to it.* It counts as left behind, like one that a
//! collection has not copied (I-11): compactions that meet it drop the entry after they have seen the newer version,
//! and `check` asks for that, too.
//! *The segment is collected later.* What is in dead ranges is left behind again; pointers to it are in no
//! relocation table. When the segment moves, or is dropped, its ranges are forgotten with its file.
//! *A checkpoint is made.* The version that it copies has the ranges, or holds the handle that keeps them in place.
//!
//! # What it costs
//!
//! Measured on files of 32 MiB, written and synced like segments, in which half of the records are dead at random: on
//! ext4 (mounted with `discard`, two cores that had other work to do), medians of nine files. Copying is read, written
//! and synced, holes are synced; a cold read is one of a live value afterwards, beside one from the copy.
//!
//! | value | holes | a call | all holes | copying | unlinking it, the copy | cold read, from the copy |
//! |-------|-------|--------|-----------|---------|------------------------|--------------------------|
//! | 4 KiB | 1000 | 83 µs | 111 ms | 86 ms | 87 ms, 3 ms | 56 µs, 51 µs |
//! | 16 KiB | 493 | 134 µs | 365 ms | 91 ms | 74 ms, 4 ms | 78 µs, 75 µs |
//! | 32 KiB | 250 | 123 µs | 58 ms | 86 ms | 24 ms, 4 ms | 111 µs, 97 µs |
//! | 64 KiB | 130 | 200 µs | 100 ms | 139 ms | 68 ms, 5 ms | 175 µs, 162 µs |
//! | 256 KiB | 29 | 222 µs | 9 ms | 45 ms | 17 ms, 6 ms | 469 µs, 444 µs |
//! | 1 MiB | 9 | 583 µs | 7 ms | 49 ms | 12 ms, 5 ms | 1.8 ms, 1.8 ms |
//!
//! So the size of a hole hardly matters, their number does; what a segment with holes costs when it goes is about as much
//! again; reads do not suffer. With copies at 5.4 ms/MiB a hole costs as much as copying 20 to 210 KiB, and where it
//! is dearest, with the largest values, there are few. On tmpfs it is 10 to 30 KiB below 64 KiB, and the same above.

use std::ops::Range;

use super::super::Cube;
use super::survivors::Victim;
use crate::base::dead_ranges::{DeadRanges, FIRST_RECORD, hole};
use crate::base::error::{Error, Result};
use crate::base::ids::Sequence;
use crate::base::options::GcPolicy;
use crate::base::sync::Ordering;
use crate::index::Collection;
use crate::vlog::cold::relocation_key;
use crate::vlog::format::record_len;
use crate::vlog::heads::{Head, HeadReader};

/// A hole gives back at least so much. A smaller one costs more than it is worth: see the table above. Under shuttle, where
/// values are small, any block will do.
const HOLE_BYTES_MIN: u64 = if cfg!(shuttle) { 512 } else { 32 << 10 };

/// Copying so many bytes of live records takes as long as punching one hole and unlinking it one day: see the table above.
const HOLE_COPY_BYTES: u64 = if cfg!(shuttle) { 512 } else { 128 << 10 };

/// So much of what is left must be alive: then the segment is not collected again before more has died.
const LIVE_SHARE_MIN: f64 = if cfg!(shuttle) { 0.3 } else { 0.9 };

/// Dead ranges of one segment, at most: they are in memory, and in every manifest that is begun.
const RANGES_MAX: usize = 16 << 10;

/// Segments whose records are smaller on average are copied without looking for large gaps.
const RECORD_BYTES_MIN: u64 = HOLE_BYTES_MIN / 2;

/// What is known of a victim.
#[derive(Debug)]
struct Findings<'a> {
    /// Bytes that copying would free if nothing were alive, but for what was given back already.
    bytes: u64,
    /// Where its records end.
    end: u64,
    /// Where the records are that are needed, in any order.
    alive: Vec<Range<u64>>,
    /// Its dead ranges so far.
    dead: &'a DeadRanges,
    /// Bytes of a block.
    block: u64,
}

/// The dead ranges that the victim should have, or `None` if it should be copied.
fn decide(mut findings: Findings<'_>) -> Option<DeadRanges> {
    let Findings { bytes, end, dead, block, .. } = findings;
    let alive = &mut findings.alive;
    alive.sort_unstable_by_key(|record| record.start);
    alive.dedup();
    let alive_bytes: u64 = alive.iter().map(|record| record.end - record.start).sum();
    let mut ranges = Vec::new();
    let mut start = FIRST_RECORD;
    for record in alive.iter().cloned().chain(std::iter::once(end..end)) {
        let gap = start..record.start;
        let given = hole(&gap, block).is_some_and(|hole| hole.end - hole.start >= HOLE_BYTES_MIN);
        // A gap around an old range is one whatever the file system says about blocks now.
        if given || dead.find(&gap).is_some() {
            ranges.push(gap);
        }
        start = start.max(record.end);
    }
    let holes = ranges.iter().filter(|range| dead.iter().all(|old| old != **range)).count() as u64;
    let ranges = DeadRanges::new(ranges).ok()?;
    let gained = ranges.hole_bytes(block).saturating_sub(dead.hole_bytes(block));
    let left = bytes.saturating_sub(gained);
    let worthwhile = gained > 0
        && ranges.count() <= RANGES_MAX
        && ranges.cover(dead)
        && holes.saturating_mul(HOLE_COPY_BYTES) <= alive_bytes
        && alive_bytes as f64 >= left as f64 * LIVE_SHARE_MIN;
    worthwhile.then_some(ranges)
}

impl Cube {
    /// The dead ranges to give `victim`, or `None` if what is alive in it should be copied.
    pub(super) fn plan_holes(
        &self,
        collection: &Collection,
        victim: &Victim,
        snapshots: &[Sequence],
    ) -> Result<Option<DeadRanges>> {
        let meta = &victim.meta;
        let small = meta.value_record_bytes / meta.value_records.max(1) < RECORD_BYTES_MIN;
        if small || self.options.gc == GcPolicy::Tail || !self.index.files().can_punch() {
            return Ok(None);
        }
        let links = victim.segment.file().links();
        if links.map_err(|error| Error::io("look at", victim.segment.path(), error))? > 1 {
            return Ok(None);
        }
        let segments = collection.version().segments();
        let dead = segments.dead_ranges(meta.id).cloned().unwrap_or_default();
        Ok(decide(Findings {
            bytes: (meta.end - FIRST_RECORD.min(meta.end)).saturating_sub(segments.hole_bytes(meta.id)),
            end: meta.end,
            alive: self.needed_records(collection, victim, snapshots)?,
            dead: &dead,
            block: self.index.files().block_bytes(),
        }))
    }

    /// Where the records of `victim` are that somebody may want.
    fn needed_records(
        &self,
        collection: &Collection,
        victim: &Victim,
        snapshots: &[Sequence],
    ) -> Result<Vec<Range<u64>>> {
        let mut needed = Vec::new();
        let mut heads = HeadReader::of_large_records(&victim.segment, victim.meta.end);
        for record in &victim.referenced {
            if self.maintenance.cancelled.load(Ordering::Relaxed) {
                return Err(Error::closed());
            }
            let start = u64::from(record.at);
            let Head { header, key, .. } = heads.read(start)?;
            if !self.index.is_hidden(collection, record.reference, key, header.sequence, snapshots)? {
                needed.push(start..start + header.record_len());
            }
        }
        for (former, moved) in collection.version().segments().moved_to(victim.meta.id) {
            let start = u64::from(moved.table.offset);
            let len = record_len(relocation_key(former).len(), u64::from(moved.table.stored_len));
            needed.push(start..start + len);
        }
        Ok(needed)
    }

    /// Gives back to the file system what nobody can reach; see [`Files::punch`](crate::index::version::Files::punch).
    pub(in super::super) fn punch_holes(&self, retry: bool) {
        if !self.options.read_only {
            self.index.files().punch(retry);
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is what is meant")]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;
    const KIB: u64 = 1024;

    /// Decides about a segment of records of `len` bytes, of which `alive` says which are.
    fn decided(len: u64, alive: &[bool], dead: &DeadRanges) -> Option<DeadRanges> {
        let end = FIRST_RECORD + len * alive.len() as u64;
        let place = |number: u64| FIRST_RECORD + number * len..FIRST_RECORD + (number + 1) * len;
        let alive = (0..).zip(alive).filter(|(_, alive)| **alive).map(|(number, _)| place(number)).collect();
        let bytes = end - FIRST_RECORD - dead.hole_bytes(BLOCK);
        decide(Findings { bytes, end, alive, dead, block: BLOCK })
    }

    fn places(len: u64, ranges: &[Range<u64>]) -> DeadRanges {
        let place = |range: &Range<u64>| FIRST_RECORD + range.start * len..FIRST_RECORD + range.end * len;
        DeadRanges::new(ranges.iter().map(place).collect()).expect("in order")
    }

    #[test]
    fn large_dead_values_are_punched_where_they_stand() {
        let len = 256 * KIB;
        let alive = [false, true, true, false, false, true, true, false];
        let first = decided(len, &alive, &DeadRanges::default()).expect("is cheap");
        assert_eq!(first, places(len, &[0..1, 3..5, 7..8]), "gaps are joined, also at both ends");
        assert_eq!(decided(len, &alive, &first), None, "nothing is left to gain");
        let alive = [false, true, false, false, false, true, true, false];
        let second = decided(len, &alive, &first).expect("more has died");
        assert_eq!(second, places(len, &[0..1, 2..5, 7..8]), "an old range grows");
    }

    #[test]
    fn what_is_cheaper_to_copy_is_copied() {
        let none = DeadRanges::default();
        assert_eq!(decided(256 * KIB, &[true; 8], &none), None, "nothing is dead");
        assert_eq!(decided(256 * KIB, &[false; 8], &none), None, "nothing is alive: the file can go");
        let every_other = [true, false].repeat(100);
        assert_eq!(decided(16 * KIB, &every_other, &none), None, "holes would be too small");
        assert_eq!(
            decided(100 * KIB, &every_other, &none),
            None,
            "holes would cost more than the copies they spare"
        );
        assert!(decided(160 * KIB, &every_other, &none).is_some());
        let few = [&[true; 5][..], &[false; 40]].concat();
        assert!(decided(30 * KIB, &few, &none).is_some(), "one hole for all");
        let most = [&[true][..], &[false; 40]].concat();
        assert_eq!(decided(30 * KIB, &most, &none), None, "one hole costs more than one small value");
    }

    #[test]
    fn what_would_be_left_must_be_worth_keeping() {
        // Single records are too small for a hole, the last twenty together are not.
        let scattered = |alive: usize, times: usize| {
            let part = [vec![true; alive], vec![false]].concat();
            [part.repeat(times), vec![true], vec![false; 20]].concat()
        };
        assert_eq!(decided(20 * KIB, &scattered(5, 20), &DeadRanges::default()), None);
        assert!(decided(20 * KIB, &scattered(12, 8), &DeadRanges::default()).is_some());
    }
}
