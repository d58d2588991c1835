//! The walk over the log from its head to the first thing that is not whole.

use super::super::format::{RecordKind, SEGMENT_HEADER_BYTES};
use super::super::scan::{End, ScannedRecord, Scanner, Values};
use super::evidence::Candidate;
use super::{Effect, Replayed, Task};
use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::ids::{LogPosition, SegmentId, Sequence};
use crate::base::pointer::ValuePointer;
use crate::base::recovery::RecoveryReport;

/// What the walk saw of one segment.
#[derive(Debug)]
pub struct Walked {
    /// The segment.
    pub id: SegmentId,
    /// Its place among the candidates.
    pub candidate: usize,
    /// Where the walk began in it.
    pub start: u64,
    /// Where its whole batches end.
    pub end: u64,
    /// Records with a value that were walked over.
    pub value_records: u64,
    /// Their bytes.
    pub value_record_bytes: u64,
}

/// An operation of a batch whose last record has not been met yet.
#[derive(Debug)]
struct Pending {
    sequence: Sequence,
    key: Vec<u8>,
    effect: PendingEffect,
}

#[derive(Debug)]
enum PendingEffect {
    Delete,
    Inline(Vec<u8>),
    Pointer(ValuePointer),
}

/// The walk.
#[derive(Debug)]
pub struct Walk<'a> {
    task: &'a Task<'a>,
    candidates: &'a [Candidate],
    durable: LogPosition,
    position: LogPosition,
    last_sequence: Sequence,
    batches: u64,
    operations: u64,
    fault: Option<String>,
    pending: Vec<Pending>,
}

impl<'a> Walk<'a> {
    /// A walk that reads the values behind `durable`.
    pub fn new(task: &'a Task<'a>, candidates: &'a [Candidate], durable: LogPosition) -> Self {
        Self {
            task,
            candidates,
            durable,
            position: task.head,
            last_sequence: task.last_sequence,
            batches: 0,
            operations: 0,
            fault: None,
            pending: Vec::new(),
        }
    }

    /// Where the whole batches end.
    pub fn position(&self) -> LogPosition {
        self.position
    }

    /// The last operation of a whole batch.
    pub fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }

    /// What stands at the end of the walk, if it is neither zeros nor the end of a segment.
    pub fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// What a user is told of the walk.
    pub fn report(&self, walked: &[Walked]) -> RecoveryReport {
        RecoveryReport {
            log_bytes: walked.iter().map(|walked| walked.end - walked.start).sum(),
            batches: self.batches,
            operations: self.operations,
            ..RecoveryReport::default()
        }
    }

    /// Walks from the head on, giving every operation of a whole batch to `apply`.
    pub fn run(&mut self, apply: &mut dyn FnMut(Replayed<'_>) -> Result<()>) -> Result<Vec<Walked>> {
        let mut walked = Vec::new();
        let mut next = self.first()?;
        while let Some((index, start)) = next {
            let part = self.segment(index, start, apply)?;
            self.position = LogPosition { segment: part.id, offset: part.end };
            walked.push(part);
            next = self.successor().map(|index| (index, SEGMENT_HEADER_BYTES));
        }
        Ok(walked)
    }

    /// The segment and offset at which the walk begins.
    fn first(&self) -> Result<Option<(usize, u64)>> {
        let head = self.task.head;
        if head == LogPosition::default() {
            return Ok(self.successor().map(|index| (index, SEGMENT_HEADER_BYTES)));
        }
        let missing = |found: String| {
            let path = crate::base::names::FileName::Segment(head.segment).path(self.task.directory);
            Error::corruption(&path, 0, format!("the segment in which the log begins, at {head}"), found)
        };
        let index = self
            .candidates
            .iter()
            .position(|candidate| candidate.id == head.segment)
            .ok_or_else(|| missing("no file".into()))?;
        let candidate = &self.candidates[index];
        match &candidate.header {
            Err(fault) => Err(missing(fault.to_string())),
            Ok(_) if head.offset < SEGMENT_HEADER_BYTES => Err(missing("a place inside its header".into())),
            Ok(_) if candidate.len < head.offset => {
                Err(missing(format!("a file of {} bytes", candidate.len)))
            }
            Ok(_) if candidate.records_end() < head.offset => {
                Err(missing(format!("a footer at {}", candidate.records_end())))
            }
            Ok(_) => Ok(Some((index, head.offset))),
        }
    }

    /// The segment that was begun where the walk stands.
    fn successor(&self) -> Option<usize> {
        self.candidates.iter().position(|candidate| {
            candidate.id > self.position.segment
                && candidate.header.as_ref().is_ok_and(|header| header.predecessor == self.position)
        })
    }

    /// Walks over one segment.
    fn segment(
        &mut self,
        index: usize,
        start: u64,
        apply: &mut dyn FnMut(Replayed<'_>) -> Result<()>,
    ) -> Result<Walked> {
        let candidate = &self.candidates[index];
        let header = candidate.header.as_ref().expect("only segments with a header are walked");
        let limit = candidate.records_end();
        let mut walked = Walked {
            id: candidate.id,
            candidate: index,
            start,
            end: start,
            value_records: 0,
            value_record_bytes: 0,
        };
        let file = candidate.open(self.task.fs)?;
        let mut scanner = Scanner::new(&*file, &candidate.path, header.seed(), start, limit);
        if let Some(footer) = candidate.footer.as_ref().filter(|_| self.task.mend) {
            scanner = scanner.mending(&footer.offsets);
        }
        let mut misfit = None;
        loop {
            let here = LogPosition { segment: candidate.id, offset: scanner.offset() };
            let check_all = self.task.check_values || here >= self.durable;
            let inline_max = self.task.inline_value_max as u32;
            let record = scanner.next_with(|header| {
                let inline = header.codec == Codec::None && header.stored_len <= inline_max;
                if check_all || inline { Values::Check } else { Values::Skip }
            })?;
            let Some(record) = record else { break };
            misfit = self.misfit(&record);
            if misfit.is_some() {
                break;
            }
            if record.header.kind == RecordKind::Put {
                walked.value_records += 1;
                walked.value_record_bytes += record.header.record_len();
            }
            let end = record.offset + record.header.record_len();
            if self.record(candidate.id, &record, apply)? {
                walked.end = end;
            }
        }
        self.fault = misfit.or_else(|| match scanner.end() {
            End::Invalid { expected, found, .. } => Some(format!("{found} in place of {expected}")),
            End::Blank { .. } if !self.pending.is_empty() => Some("zeros inside a batch".into()),
            End::Blank { .. } | End::Limit => None,
        });
        self.pending.clear();
        Ok(walked)
    }

    /// Why a whole record does not belong behind those before it. A plain write that failed may leave some where the machine then dies
    /// before the device has heard that they were [cut](super::super::segment::Segment::cut) off: their place was given to the next batch.
    fn misfit(&self, record: &ScannedRecord<'_>) -> Option<String> {
        if record.header.kind == RecordKind::Mark {
            return None;
        }
        if record.header.kind == RecordKind::Relocations {
            return Some("a relocation table, which has no place in the log".into());
        }
        let (sequence, next) =
            (record.header.sequence.0, self.last_sequence.0 + 1 + self.pending.len() as u64);
        let fits = record.header.place.first == self.pending.is_empty() && sequence == next;
        (!fits)
            .then(|| format!("operation {sequence} in place of operation {next}, or inside of another batch"))
    }

    /// Takes one record that fits. Returns whether the log is whole up to its end, that is, whether no batch is open.
    fn record(
        &mut self,
        segment: SegmentId,
        record: &ScannedRecord<'_>,
        apply: &mut dyn FnMut(Replayed<'_>) -> Result<()>,
    ) -> Result<bool> {
        if record.header.kind == RecordKind::Mark {
            return Ok(self.pending.is_empty());
        }
        let place = record.header.place;
        let effect = self.effect(segment, record);
        if place == super::super::format::BatchPlace::ONLY {
            apply(Replayed { sequence: record.header.sequence, key: record.key, effect })?;
            (self.batches, self.operations) = (self.batches + 1, self.operations + 1);
            self.last_sequence = record.header.sequence;
            return Ok(true);
        }
        self.pending.push(Pending {
            sequence: record.header.sequence,
            key: record.key.to_vec(),
            effect: match effect {
                Effect::Delete => PendingEffect::Delete,
                Effect::Inline(value) => PendingEffect::Inline(value.to_vec()),
                Effect::Pointer(pointer) => PendingEffect::Pointer(pointer),
            },
        });
        if place.last {
            self.finish_batch(apply)?;
        }
        Ok(place.last)
    }

    fn finish_batch(&mut self, apply: &mut dyn FnMut(Replayed<'_>) -> Result<()>) -> Result<()> {
        for pending in &self.pending {
            let effect = match &pending.effect {
                PendingEffect::Delete => Effect::Delete,
                PendingEffect::Inline(value) => Effect::Inline(value),
                PendingEffect::Pointer(pointer) => Effect::Pointer(*pointer),
            };
            apply(Replayed { sequence: pending.sequence, key: &pending.key, effect })?;
        }
        self.batches += 1;
        self.operations += self.pending.len() as u64;
        self.last_sequence = Sequence(self.last_sequence.0 + self.pending.len() as u64);
        self.pending.clear();
        Ok(())
    }

    fn effect<'r>(&self, segment: SegmentId, record: &ScannedRecord<'r>) -> Effect<'r> {
        let header = &record.header;
        match record.stored {
            _ if header.kind == RecordKind::Delete => Effect::Delete,
            // Whoever reads a mended record is to meet the damage: a pointer leads there, an inline value would not.
            Some(value)
                if !record.mended
                    && header.codec == Codec::None
                    && value.len() <= self.task.inline_value_max =>
            {
                Effect::Inline(value)
            }
            _ => Effect::Pointer(ValuePointer {
                segment,
                offset: u32::try_from(record.offset).expect("records begin in the first 4 GiB"),
                stored_len: header.stored_len,
            }),
        }
    }
}
