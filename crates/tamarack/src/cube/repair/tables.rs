//! The tables of a damaged cube, and what takes the place of what is lost of them.
//!
//! Of a damaged table the entries of every whole block are exact. Its references, where they are whole, tell exactly which
//! records the others pointed to, and a record tells its key and sequence number: so these come back exactly, too. If
//! that makes up all entries that the table had, nothing is lost. What was not a pointer, a small value or a
//! deletion, is looked for in the log, as far as segments with it are still there: as that may be old, the stretch of
//! keys is named as doubtful.
//!
//! Where the references are whole, a record of the log to which they do not lead was not the newest of its key when the
//! table was written; it comes back as a deletion, so that nothing older takes its place.

use std::collections::{BTreeMap, HashSet};

use super::report::RepairReport;
use super::segments::Segments;
use crate::base::codec::Codec;
use crate::base::error::Result;
use crate::base::ids::{SegmentId, Sequence, TableId};
use crate::base::keys::{EntryKind, KeyOrder, split_internal_key, trailer_kind, trailer_sequence};
use crate::base::pointer::ValuePointer;
use crate::base::sync::Arc;
use crate::index::repair::{Examined, Runs, Workshop};
use crate::index::version::TableMeta;
use crate::vlog::format::{RECORD_HEADER_BYTES, RecordHeader, RecordKind};

/// A stretch of user keys, bounds included; `None` is open.
type Span = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Stretches of keys of which a table has lost entries.
#[derive(Debug)]
pub struct LostPart {
    spans: Vec<Span>,
    sequences: (Sequence, Sequence),
    /// Whether the records that the entries pointed to are known.
    pointers_known: bool,
    operations: Option<u64>,
    file: String,
}

/// All tables of a cube.
#[derive(Debug, Default)]
pub struct Tables {
    /// Those that are whole.
    pub whole: Vec<Arc<TableMeta>>,
    /// Those that are damaged or missing, with what the manifest says of them.
    pub damaged: Vec<(TableId, Option<Arc<TableMeta>>)>,
    /// The largest sequence number in any of them, as far as that is known.
    pub newest: Sequence,
}

impl Tables {
    /// Reads every byte of the tables in `wanted`.
    ///
    /// # Errors
    /// `Io`, `Unsupported`, `InvalidArgument` for another order of keys.
    pub fn examine(
        workshop: &Workshop,
        wanted: &BTreeMap<TableId, Option<Arc<TableMeta>>>,
        report: &mut RepairReport,
    ) -> Result<Self> {
        let mut tables = Self::default();
        for (&id, known) in wanted {
            report.tables += 1;
            match workshop.examine(id, known.as_deref())? {
                Examined::Whole(found) => {
                    tables.newest = tables.newest.max(found.sequences.1);
                    tables.whole.push(known.clone().unwrap_or(found));
                }
                Examined::Damaged(error) => {
                    report.damaged_tables += 1;
                    report.damage.push(error);
                    if let Some(known) = known {
                        tables.newest = tables.newest.max(known.sequences.1);
                    }
                    tables.damaged.push((id, known.clone()));
                }
            }
        }
        Ok(tables)
    }

    /// Finds the largest sequence number in what is left of the damaged tables, if no manifest has told it.
    ///
    /// # Errors
    /// `Io`, `Unsupported`.
    pub fn measure(&mut self, workshop: &Workshop) -> Result<()> {
        for (id, _) in self.damaged.iter().filter(|(_, known)| known.is_none()) {
            let mut newest = self.newest;
            let remains = workshop.salvage(*id, &mut |key, _| {
                let trailer = split_internal_key(key).map_or(0, |(_, trailer)| trailer);
                newest = newest.max(trailer_sequence(trailer));
                Ok(())
            })?;
            self.newest = newest.max(remains.properties.map_or(Sequence(0), |found| found.sequences.1));
        }
        Ok(())
    }

    /// Puts into `runs` what is left of the damaged tables, but for what comes behind operation `replayed_from`, which is replayed from a
    /// log that stays; returns what is not left.
    ///
    /// # Errors
    /// `Io`, `NoSpace`, `Unsupported`.
    pub fn salvage(
        &mut self,
        workshop: &Workshop,
        segments: &mut Segments<'_>,
        replayed_from: Option<Sequence>,
        runs: &mut Runs<'_>,
        report: &mut RepairReport,
    ) -> Result<Vec<LostPart>> {
        let mut lost = Vec::new();
        for (id, known) in &self.damaged {
            let mut pointers: HashSet<(SegmentId, u32)> = HashSet::new();
            let mut entries = 0_u64;
            let remains = workshop.salvage(*id, &mut |key, payload| {
                entries += 1;
                let kind = split_internal_key(key).and_then(|(_, trailer)| trailer_kind(trailer));
                if let Some(pointer) =
                    ValuePointer::from_bytes(payload).filter(|_| kind == Some(EntryKind::Pointer))
                {
                    pointers.insert((pointer.segment, pointer.offset));
                }
                runs.add_internal(key, payload)
            })?;
            // The first error of a table is known already.
            report.damage.extend(remains.damage.into_iter().skip(1));
            for (segment, offsets) in remains.references.iter().flatten() {
                for &offset in offsets.iter().filter(|&&offset| !pointers.contains(&(*segment, offset))) {
                    if segments.is_left_behind(*segment, offset)? {
                        entries += 1;
                        continue;
                    }
                    // Without a header nothing tells that a record is the one that is meant.
                    let found = segments.find(*segment, offset)?;
                    let found = found.filter(|(place, ..)| !segments.is_headless(place.0));
                    let Some((_, header, record)) = found else { continue };
                    entries += 1;
                    // Where neither entries nor properties have told of it, the log begins before it.
                    if replayed_from.is_some_and(|last| header.sequence > last) {
                        continue;
                    }
                    self.newest = self.newest.max(header.sequence);
                    let at = ValuePointer { segment: *segment, offset, stored_len: header.stored_len };
                    runs.add(key_of(&header, &record), header.sequence, EntryKind::Pointer, &at.to_bytes())?;
                }
            }
            let properties = remains.properties.as_ref();
            let all = properties.map(|found| found.entries).or(known.as_ref().map(|known| known.entries));
            let sequences =
                properties.map(|found| found.sequences).or(known.as_ref().map(|known| known.sequences));
            self.newest = self.newest.max(sequences.map_or(Sequence(0), |(_, newest)| newest));
            if remains.lost.is_empty() || all == Some(entries) {
                continue;
            }
            let bounds = known.as_ref().map(|known| {
                (Some(known.smallest_user_key().to_vec()), Some(known.largest_user_key().to_vec()))
            });
            let bounds = bounds.or_else(|| {
                let user = |key: &[u8]| split_internal_key(key).map(|(key, _)| key.to_vec());
                properties.map(|found| (user(&found.smallest), user(&found.largest)))
            });
            let (first, last) = bounds.unwrap_or((None, None));
            let within = |(start, end): Span| (start.or_else(|| first.clone()), end.or_else(|| last.clone()));
            lost.push(LostPart {
                spans: remains.lost.into_iter().map(within).collect(),
                sequences: sequences.unwrap_or((Sequence(0), Sequence::MAX)),
                pointers_known: remains.references.is_some(),
                operations: all.map(|all| all.saturating_sub(entries)),
                file: crate::base::names::FileName::Table(*id).to_string(),
            });
        }
        Ok(lost)
    }
}

impl LostPart {
    /// Names the stretches as doubtful.
    pub fn tell(&self, report: &mut RepairReport) {
        for span in &self.spans {
            let reason = format!("entries of {}, of which the log has what it still has", self.file);
            report.doubt(span.clone(), self.operations, &reason);
        }
    }

    fn holds(&self, order: &KeyOrder, key: &[u8], sequence: Sequence) -> bool {
        (self.sequences.0..=self.sequences.1).contains(&sequence)
            && self.spans.iter().any(|(first, last)| {
                first.as_ref().is_none_or(|first| order.compare_user(key, first).is_ge())
                    && last.as_ref().is_none_or(|last| order.compare_user(key, last).is_le())
            })
    }
}

/// Puts into `runs` what the segments have of the keys that are lost, up to operation `last`: what comes behind is replayed.
///
/// # Errors
/// `Io`, `NoSpace`.
pub fn look_for(
    lost: &[LostPart],
    (order, last): (&KeyOrder, Sequence),
    inline_value_max: usize,
    segments: &mut Segments<'_>,
    runs: &mut Runs<'_>,
) -> Result<()> {
    if lost.is_empty() {
        return Ok(());
    }
    let ids: Vec<SegmentId> = segments.files.keys().copied().collect();
    for id in ids {
        let Some(wreck) = segments.wreck(id)?.filter(|_| !segments.is_headless(id)) else { continue };
        wreck.walk(&segments.stretches(&wreck), &mut |record| {
            let RecordHeader { kind, sequence, stored_len, codec, .. } = record.header;
            if !matches!(kind, RecordKind::Put | RecordKind::Delete) || sequence > last {
                return Ok(());
            }
            let holding = || lost.iter().filter(|part| part.holds(order, record.key, sequence));
            if holding().next().is_none() {
                return Ok(());
            }
            let at = ValuePointer { segment: id, offset: record.offset, stored_len };
            match record.stored {
                _ if kind == RecordKind::Delete => runs.add(record.key, sequence, EntryKind::Delete, &[]),
                Some(value) if codec == Codec::None && value.len() <= inline_value_max => {
                    runs.add(record.key, sequence, EntryKind::Inline, value)
                }
                _ if holding().all(|part| part.pointers_known) => {
                    runs.add(record.key, sequence, EntryKind::Delete, &[])
                }
                _ => runs.add(record.key, sequence, EntryKind::Pointer, &at.to_bytes()),
            }
        })?;
    }
    Ok(())
}

/// The key in a whole record.
pub fn key_of<'r>(header: &RecordHeader, record: &'r [u8]) -> &'r [u8] {
    &record[RECORD_HEADER_BYTES..RECORD_HEADER_BYTES + usize::from(header.key_len)]
}
