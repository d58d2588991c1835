//! The log of a damaged cube: where it begins if the manifest does not say, and what is whole of one that cannot be
//! replayed.
//!
//! Where it begins. Flushes go in the order of the log, so what tables have is everything up to some operation, and what
//! they do not have stands behind it in segments that follow one another up to the newest. The largest sequence number in
//! any table therefore tells where the log begins; operations behind it that were in tables, and have been dropped from
//! them, were deletions or hidden by such, and these are replayed with them.
//!
//! What is whole. As far as the log was known to be durable every whole record counts, and what is missing between is
//! told, by its sequence numbers. Behind that, only whole batches count, up to the first damage, as after a crash.

use std::ops::Range;
use std::path::Path;

use super::report::RepairReport;
use super::segments::Segments;
use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};
use crate::base::keys::EntryKind;
use crate::base::pointer::ValuePointer;
use crate::env::Fs;
use crate::index::repair::Runs;
use crate::vlog::format::{RecordKind, SEGMENT_HEADER_BYTES, decode_mark};
use crate::vlog::salvage::{Salvaged, Wreck};

/// Where the log begins, and the last operation before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// The position.
    pub head: LogPosition,
    /// The last operation before it.
    pub last: Sequence,
}

/// Finds where the log begins, if tables have everything up to operation `newest`. `None` if there is no log.
///
/// # Errors
/// `Io`, `Unsupported`.
pub fn find_begin(
    fs: &dyn Fs,
    directory: &Path,
    cube: CubeId,
    ids: &[SegmentId],
    newest: Sequence,
) -> Result<Option<Begin>> {
    let mut chain: Vec<Wreck> = Vec::new();
    for &id in ids.iter().rev().filter(|id| !id.is_cold()) {
        let wreck = Wreck::open(fs, directory, cube, id, &[])?;
        let Ok(header) = &wreck.header else {
            // What was made ready and never begun is no part of the log.
            if chain.is_empty() { continue } else { break }
        };
        let follows =
            |next: &Wreck| next.header.as_ref().is_ok_and(|next| next.predecessor.segment == header.id);
        if !chain.last().is_none_or(follows) {
            break;
        }
        let begins = header.first_sequence <= newest;
        chain.push(wreck);
        if begins {
            break;
        }
    }
    let Some(first) = chain.last() else { return Ok(None) };
    let first_sequence = first.header.as_ref().map_or(1, |header| header.first_sequence.0);
    let head = LogPosition { segment: first.id, offset: SEGMENT_HEADER_BYTES };
    let mut begin = Begin { head, last: Sequence(first_sequence.saturating_sub(1)) };
    for wreck in chain.iter().rev() {
        let (mut batch, mut next, mut done) = (Sequence(0), Sequence(0), false);
        wreck.walk(&wreck.stretches(None, None), &mut |record| {
            if matches!(record.header.kind, RecordKind::Put | RecordKind::Delete) {
                // The head of a batch may be damaged: what goes on with another number is part of one that has not been seen.
                if record.header.place.first || record.header.sequence != next {
                    batch = record.header.sequence;
                }
                next = Sequence(record.header.sequence.0.saturating_add(1));
                done |= batch > newest;
                if record.header.place.last && !done {
                    let offset = u64::from(record.offset) + record.header.record_len();
                    let head = LogPosition { segment: wreck.id, offset };
                    begin = Begin { head, last: record.header.sequence };
                }
            }
            Ok(())
        })?;
        if done {
            break;
        }
    }
    begin.last = begin.last.max(newest);
    Ok(Some(begin))
}

/// Operations of a batch whose end has not been met.
#[derive(Debug, Default)]
struct Pending(Vec<(Vec<u8>, Sequence, EntryKind, Vec<u8>)>);

/// What is taken from the log.
struct Taking<'a, 'w> {
    runs: &'a mut Runs<'w>,
    report: &'a mut RepairReport,
    inline_value_max: usize,
    durable: LogPosition,
    last: Sequence,
    pending: Pending,
    /// The last record met, whatever its kind.
    met: LogPosition,
    /// Records of which the key is whole and the value is not: if no newer one is found, the key is told.
    damaged_values: u64,
    ended: bool,
}

/// Puts into `runs` every operation behind `begin` that is whole and counts; returns the last. Of a log that recovery has
/// refused something is missing, which is told in any case.
///
/// # Errors
/// `Io`, `NoSpace`.
pub fn salvage(
    segments: &mut Segments<'_>,
    (begin, sealed_end): (Begin, LogPosition),
    was_refused: bool,
    inline_value_max: usize,
    runs: &mut Runs<'_>,
    report: &mut RepairReport,
) -> Result<Sequence> {
    let in_log = |id: &SegmentId| !id.is_cold() && *id >= begin.head.segment;
    let ids: Vec<SegmentId> = segments.files.keys().copied().filter(in_log).collect();
    let mut durable = begin.head.max(sealed_end);
    for &id in &ids {
        let Some(wreck) = segments.wreck(id)? else { continue };
        if wreck.is_foreign() {
            report.doubt((None, None), None, &format!("the file of segment {id} is another one"));
        }
        if let Ok(header) = &wreck.header {
            durable = durable.max(header.durable);
        }
        if let Some(footer) = &wreck.footer {
            durable = durable.max(LogPosition { segment: id, offset: footer.records_end });
        }
        wreck.walk(&stretch(segments, &wreck, begin.head), &mut |record| {
            let mark = record.stored.filter(|_| record.header.kind == RecordKind::Mark).and_then(decode_mark);
            durable = durable.max(mark.unwrap_or_default());
            Ok(())
        })?;
    }
    let told = report.lost.len();
    let mut taking = Taking {
        runs,
        report,
        inline_value_max,
        durable,
        last: begin.last,
        pending: Pending::default(),
        met: begin.head,
        damaged_values: 0,
        ended: false,
    };
    for &id in &ids {
        let Some(wreck) = segments.wreck(id)? else { continue };
        let stretches = stretch(segments, &wreck, begin.head);
        let damage = wreck.walk(&stretches, &mut |record| taking.take(id, &record))?;
        taking.end_segment(id, &damage);
    }
    let Taking { last, durable, damaged_values, .. } = taking;
    if ids.last().is_none_or(|&id| id < durable.segment) {
        report.doubt((None, None), None, "the end of the log is missing");
    }
    if was_refused && damaged_values == 0 && report.lost.len() == told {
        report.doubt((None, None), None, "the log was durable beyond what is left of it");
    }
    Ok(last)
}

fn stretch(segments: &Segments<'_>, wreck: &Wreck, head: LogPosition) -> Vec<Range<u64>> {
    let mut stretches = segments.stretches(wreck);
    if let Some(first) = stretches.first_mut().filter(|_| wreck.id == head.segment) {
        first.start = head.offset.min(first.end);
    }
    stretches
}

impl Taking<'_, '_> {
    fn take(&mut self, segment: SegmentId, record: &Salvaged<'_>) -> Result<()> {
        let header = &record.header;
        if self.ended || header.kind == RecordKind::Relocations {
            return Ok(());
        }
        let here = LogPosition { segment, offset: u64::from(record.offset) };
        let is_durable = here < self.durable;
        self.met = here;
        if header.kind == RecordKind::Mark {
            // It has the number of the last operation before it.
            let gap = header.sequence.0.saturating_sub(self.last_met().0);
            if gap > 0 && is_durable {
                self.finish_batch()?;
                let reason = format!("damage in the log before {here}");
                self.report.doubt((None, None), Some(gap), &reason);
                self.last = header.sequence;
            }
            return Ok(());
        }
        if header.sequence <= self.last_met() {
            // Left by a write that failed, whose place was given to a shorter one.
            return Ok(());
        }
        let gap = header.sequence.0 - self.last_met().0 - 1;
        if gap > 0 || (!is_durable && record.stored.is_none()) {
            if !is_durable {
                self.ended = true;
                return Ok(());
            }
            // What came before was durable as well: it counts though its batch has lost other parts.
            self.finish_batch()?;
            if gap > 0 {
                let reason = format!("damage in the log before {here}");
                self.report.doubt((None, None), Some(gap), &reason);
            }
        }
        self.damaged_values += u64::from(record.stored.is_none());
        let at = ValuePointer { segment, offset: record.offset, stored_len: header.stored_len };
        let (kind, payload) = match record.stored {
            _ if header.kind == RecordKind::Delete => (EntryKind::Delete, Vec::new()),
            Some(value) if header.codec == Codec::None && value.len() <= self.inline_value_max => {
                (EntryKind::Inline, value.to_vec())
            }
            _ => (EntryKind::Pointer, at.to_bytes().to_vec()),
        };
        self.pending.0.push((record.key.to_vec(), header.sequence, kind, payload));
        if header.place.last || is_durable {
            self.finish_batch()?;
        }
        Ok(())
    }

    /// Damage behind everything that was met, where the log was durable, has taken operations of which nothing tells.
    fn end_segment(&mut self, id: SegmentId, damage: &[Error]) {
        let places = damage.iter().filter_map(Error::as_corruption);
        let behind = places.map(|place| LogPosition { segment: id, offset: place.offset });
        match behind.filter(|&place| place > self.met).max() {
            Some(place) if place < self.durable => {
                self.report.doubt((None, None), None, &format!("damage in the log at {place}"));
            }
            Some(_) => self.ended = true,
            None => {}
        }
    }

    fn last_met(&self) -> Sequence {
        self.pending.0.last().map_or(self.last, |pending| pending.1)
    }

    fn finish_batch(&mut self) -> Result<()> {
        for (key, sequence, kind, payload) in std::mem::take(&mut self.pending.0) {
            self.runs.add(&key, sequence, kind, &payload)?;
            self.report.log_operations += 1;
            self.last = sequence;
        }
        Ok(())
    }
}
