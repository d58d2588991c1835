//! Checks that what is on disk is what was written, without changing anything, while the cube goes on.

use std::collections::{BTreeMap, HashSet};
use std::iter::Peekable;
use std::ops::Range;

use super::Cube;
use crate::base::dead_ranges::DeadRanges;
use crate::base::error::{Error, Result};
use crate::base::ids::{LogPosition, SegmentId};
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::segment::Relocate;
use crate::index::contradictions;
use crate::index::version::{SegmentEntry, Version};
use crate::vlog::format::{FOOTER_TRAILER_BYTES, Footer, RecordKind, SEGMENT_HEADER_BYTES};
use crate::vlog::open_segments::{OpenSegment, read_footer, read_header};
use crate::vlog::scan::{End, Scanner, Values};

/// How much a check reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CheckLevel {
    /// Every file is there, has its length and its header; the manifest's counts agree with one another, and with what
    /// tables say of themselves.
    Structure,
    /// Also every byte of every table, what tables keep about their entries, and the footer of every sealed segment, which
    /// says of its values what the manifest does.
    Checksums,
    /// Also what is alive: every pointer leads to a record, those that were left behind are hidden from every reader, and
    /// the header and key of every record of the log are right.
    #[default]
    Liveness,
    /// Also every value.
    Values,
}

/// What a check has found.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
/// let report = db.check(tamarack::CheckLevel::Liveness);
/// for problem in &report.problems {
///     eprintln!("{problem}");
/// }
/// assert!(report.is_clean());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Tables looked at.
    pub tables: u64,
    /// Segments of the log looked at.
    pub segments: u64,
    /// Entries of tables read.
    pub entries: u64,
    /// Pointers of tables whose records garbage collection has left behind, because newer versions of their keys hide
    /// them from every reader.
    pub hidden_references: u64,
    /// Records of the log read.
    pub records: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Ids of the segments that garbage collection leaves alone, because it has found them damaged since the database was
    /// opened.
    pub quarantined_segments: Vec<u32>,
    /// What is wrong, each with its place.
    pub problems: Vec<Error>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    fn note<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.problems.push(error)).ok()
    }
}

impl Cube {
    /// Checks tables and log as of now. Blocks on the device; writers and readers go on.
    pub fn check(&self, level: CheckLevel) -> CheckReport {
        let quarantined_segments = self.collector.quarantined().iter().map(|id| id.0).collect();
        let mut report = CheckReport { quarantined_segments, ..CheckReport::default() };
        let state = self.current.load();
        let version = &state.version;
        if let Err(found) = version.audit() {
            let manifest = self.directory.join("CURRENT");
            report.problems.push(Error::corruption(&manifest, 0, "counts that agree", found));
        }
        let referenced = self.check_tables(version, level, &mut report);
        // The end of the log is taken before its segments are scanned; what is appended later is not looked at.
        let (tail, ticket) = self.order.tail();
        report.note(self.publisher.wait_for(ticket));
        for entry in version.segments().sealed() {
            let offsets = referenced.get(&entry.meta.id).map_or(&[][..], Vec::as_slice);
            let dead = version.segments().dead_ranges(entry.meta.id);
            let outcome = self.check_sealed(entry, dead, level, offsets, &mut report);
            report.note(outcome);
        }
        for handle in &state.unregistered {
            let FileName::Segment(id) = handle.name() else { continue };
            let offsets = referenced.get(&id).map_or(&[][..], Vec::as_slice);
            let outcome = self.check_unregistered(id, tail, level, offsets, &mut report);
            report.note(outcome);
        }
        report
    }

    /// Checks every table; returns the offsets they refer to, by segment, sorted.
    fn check_tables(
        &self,
        version: &Version,
        level: CheckLevel,
        report: &mut CheckReport,
    ) -> BTreeMap<SegmentId, Vec<u32>> {
        let mut referenced: BTreeMap<SegmentId, Vec<u32>> = BTreeMap::new();
        for (_, meta) in version.tables() {
            report.tables += 1;
            let Some(table) = report.note(self.index.tables().get(meta.id)) else { continue };
            let contradictions = report.note(contradictions(meta, &table)).unwrap_or_default();
            report.problems.extend(contradictions);
            if level == CheckLevel::Structure {
                continue;
            }
            if let Some(verified) = report.note(table.verify()) {
                report.entries += verified.entries;
                report.bytes_read += verified.bytes;
            }
            if level < CheckLevel::Liveness {
                continue;
            }
            let sets = table.references().and_then(Iterator::collect::<Result<Vec<_>>>);
            for (segment, offsets) in report.note(sets).unwrap_or_default() {
                referenced.entry(segment).or_default().extend(offsets);
            }
        }
        let mut present: BTreeMap<SegmentId, Vec<u32>> = BTreeMap::new();
        for (id, offsets) in referenced {
            match version.segments().relocation_table(id) {
                None => {
                    let there = self.check_unmoved(version, id, offsets, report);
                    present.entry(id).or_default().extend(report.note(there).unwrap_or_default());
                }
                Some(table) => {
                    let moved = self.check_moved(version, table, (id, &offsets), report);
                    present.entry(table.segment).or_default().extend(report.note(moved).unwrap_or_default());
                }
            }
        }
        present.values_mut().for_each(|offsets| offsets.sort_unstable());
        present
    }

    /// Where the records are that tables reference at `offsets` of a segment that was moved. Those that were left
    /// behind must be hidden from every reader.
    fn check_moved(
        &self,
        version: &Version,
        table: ValuePointer,
        (segment, offsets): (SegmentId, &[u32]),
        report: &mut CheckReport,
    ) -> Result<Vec<u32>> {
        let mut present = Vec::with_capacity(offsets.len());
        let mut left_behind = HashSet::new();
        for &offset in offsets {
            let pointer = ValuePointer { segment, offset, stored_len: 0 };
            let place = self.reader.relocate(table, pointer)?;
            match place.filter(|place| !version.segments().is_given_back(place.segment, place.offset)) {
                Some(pointer) => present.push(pointer.offset),
                None => drop(left_behind.insert(offset)),
            }
        }
        report.hidden_references += left_behind.len() as u64;
        if !left_behind.is_empty() {
            for offset in self.index.visible_among(version, segment, &left_behind)? {
                let expected = format!("the place of the record at {offset} of segment {segment}");
                let path = self.reader.segments().path(table.segment);
                report.problems.push(Error::corruption(&path, u64::from(table.offset), expected, "none"));
            }
        }
        Ok(present)
    }

    /// Those of `offsets`, of records of `segment`, which was not moved, that were not given back. Those that were must be
    /// hidden from every reader.
    fn check_unmoved(
        &self,
        version: &Version,
        segment: SegmentId,
        offsets: Vec<u32>,
        report: &mut CheckReport,
    ) -> Result<Vec<u32>> {
        let is_gone = |offset: &u32| version.segments().is_given_back(segment, *offset);
        let (gone, present): (Vec<u32>, Vec<u32>) = offsets.into_iter().partition(is_gone);
        let given_back: HashSet<u32> = gone.into_iter().collect();
        report.hidden_references += given_back.len() as u64;
        if !given_back.is_empty() {
            for offset in self.index.visible_among(version, segment, &given_back)? {
                let found = "a range that was given back";
                let path = self.reader.segments().path(segment);
                report.problems.push(Error::corruption(&path, u64::from(offset), "a record", found));
            }
        }
        Ok(present)
    }

    fn check_sealed(
        &self,
        entry: &SegmentEntry,
        dead: Option<&DeadRanges>,
        level: CheckLevel,
        referenced: &[u32],
        report: &mut CheckReport,
    ) -> Result<()> {
        let id = entry.meta.id;
        report.segments += 1;
        let segment = self.reader.segments().get(id)?;
        let len = file_len(&segment)?;
        if len != entry.meta.file_bytes {
            let expected = format!("a segment of {} bytes", entry.meta.file_bytes);
            return Err(Error::corruption(segment.path(), 0, expected, format!("{len} bytes")));
        }
        if level > CheckLevel::Structure
            && let Some(footer) = report.note(self.footer_of(&segment, id))
        {
            let said = (entry.meta.end, entry.meta.value_records, entry.meta.value_record_bytes);
            let found = (footer.records_end, footer.value_records, footer.value_record_bytes);
            if said != found {
                let expected = format!("end, values and their bytes {said:?}, as the manifest says");
                let found =
                    Error::corruption(segment.path(), footer.records_end, expected, format!("{found:?}"));
                report.problems.push(found);
            }
        }
        let stretches = dead.cloned().unwrap_or_default().between(SEGMENT_HEADER_BYTES..entry.meta.end);
        self.check_segment(id, &stretches, level, referenced, report)
    }

    fn check_unregistered(
        &self,
        id: SegmentId,
        tail: LogPosition,
        level: CheckLevel,
        referenced: &[u32],
        report: &mut CheckReport,
    ) -> Result<()> {
        if id > tail.segment {
            return Ok(());
        }
        report.segments += 1;
        let segment = self.reader.segments().get(id)?;
        let end = if id == tail.segment { tail.offset } else { self.end_of_full(&segment, id)? };
        self.check_segment(
            id,
            &DeadRanges::default().between(SEGMENT_HEADER_BYTES..end),
            level,
            referenced,
            report,
        )
    }

    /// Where the records of a segment end that takes no more of them: it waits to be sealed, or has a footer. One that a
    /// read-only cube has found without a footer stays so, and ends where its replay did.
    fn end_of_full(&self, segment: &OpenSegment, id: SegmentId) -> Result<u64> {
        if let Some(end) = self.maintenance.end_of_unsealed(id) {
            return Ok(end);
        }
        if self.options.read_only {
            let replayed = self.maintenance.unregistered().into_iter().find(|meta| meta.id == id);
            if let Some(meta) = replayed {
                return Ok(meta.end);
            }
        }
        Ok(self.footer_of(segment, id)?.records_end)
    }

    fn footer_of(&self, segment: &OpenSegment, id: SegmentId) -> Result<Footer> {
        let header = read_header(segment.file(), segment.path(), self.id, id)?;
        let len = file_len(segment)?;
        read_footer(segment.file(), segment.path(), &header, len)?.ok_or_else(|| {
            let trailer = len.saturating_sub(FOOTER_TRAILER_BYTES as u64);
            let (expected, found) = ("the footer of a sealed segment", "bytes that do not check");
            Error::corruption(segment.path(), trailer, expected, found)
        })
    }

    fn check_segment(
        &self,
        id: SegmentId,
        stretches: &[Range<u64>],
        level: CheckLevel,
        referenced: &[u32],
        report: &mut CheckReport,
    ) -> Result<()> {
        let segment = self.reader.segments().get(id)?;
        read_header(segment.file(), segment.path(), self.id, id)?;
        if level < CheckLevel::Liveness {
            return Ok(());
        }
        let values = if level == CheckLevel::Values { Values::Check } else { Values::Skip };
        let mut wanted = referenced.iter().copied().peekable();
        for stretch in stretches {
            check_stretch(&segment, stretch, values, &mut wanted, report)?;
        }
        report.problems.extend(wanted.map(|offset| dangling(&segment, offset)));
        Ok(())
    }

    /// Opens nothing that does not pass every check.
    pub(super) fn check_everything(&self) -> Result<()> {
        self.check(CheckLevel::Values).problems.into_iter().next().map_or(Ok(()), Err)
    }
}

/// Checks every record of `stretch`, and that those that are `wanted` there are puts.
fn check_stretch(
    segment: &OpenSegment,
    stretch: &Range<u64>,
    values: Values,
    wanted: &mut Peekable<impl Iterator<Item = u32>>,
    report: &mut CheckReport,
) -> Result<()> {
    let mut scanner =
        Scanner::new(segment.file(), segment.path(), segment.seed(), stretch.start, stretch.end);
    while let Some(record) = scanner.next(values)? {
        report.records += 1;
        let read = if values == Values::Check { record.header.record_len() } else { 24 };
        report.bytes_read += read;
        while let Some(offset) = wanted.next_if(|&offset| u64::from(offset) <= record.offset) {
            if u64::from(offset) != record.offset || record.header.kind != RecordKind::Put {
                report.problems.push(dangling(segment, offset));
            }
        }
    }
    match scanner.end() {
        End::Limit => Ok(()),
        End::Blank { at } => Err(Error::corruption(segment.path(), *at, "a record", "zeros")),
        End::Invalid { at, expected, found } => {
            Err(Error::corruption(segment.path(), *at, expected.clone(), found.clone()))
        }
    }
}

fn dangling(segment: &OpenSegment, offset: u32) -> Error {
    Error::corruption(segment.path(), u64::from(offset), "the put that a table points to", "none")
}

fn file_len(segment: &OpenSegment) -> Result<u64> {
    segment.file().len().map_err(|error| Error::io("read the length of", segment.path(), error))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
