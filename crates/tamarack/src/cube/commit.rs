//! A write, from the caller's batch to its acknowledgement. The protocol is described in `order`.

use std::time::Duration;

use super::Cube;
use super::headroom::{Claim, Patience};
use super::order::{Cleared, Grant, Need, Obstacle};
use crate::base::batch::{Operation, WriteBatch};
use crate::base::checksum::Checksum;
use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::ids::{LogPosition, Sequence};
use crate::base::keys::EntryKind;
use crate::base::options::WriteOptions;
use crate::base::pointer::{POINTER_BYTES, ValuePointer};
use crate::base::sync::{Arc, Ordering};
use crate::env::pool::Priority;
use crate::index::memtable::Memtable;
use crate::vlog::format::{BatchPlace, RecordHeader, RecordKind, SEGMENT_HEADER_BYTES, record_len};

use super::durability::Synced;
use crate::vlog::segment::Segment;

/// A writer that is slowed down looks so often whether it still is.
const WAIT_SLICE: Duration = Duration::from_millis(50);

/// One operation with its value as it will be stored.
#[derive(Debug, Clone, Copy)]
struct Entry<'a> {
    operation: Operation<'a>,
    stored: &'a [u8],
    codec: Codec,
}

impl<'a> Entry<'a> {
    fn plain(operation: Operation<'a>) -> Self {
        Self { operation, stored: operation.value(), codec: Codec::None }
    }

    fn header(&self, sequence: Sequence, place: BatchPlace) -> RecordHeader {
        RecordHeader {
            kind: match self.operation {
                Operation::Put { .. } => RecordKind::Put,
                Operation::Delete { .. } => RecordKind::Delete,
            },
            place,
            codec: self.codec,
            key_len: self.operation.key().len() as u16,
            stored_len: self.stored.len() as u32,
            sequence,
            value_checksum: Checksum::unseeded().with(self.stored).finish(),
        }
    }

    fn record_len(&self) -> u64 {
        record_len(self.operation.key().len(), self.stored.len() as u64)
    }
}

impl Cube {
    /// Applies one operation.
    ///
    /// # Errors
    /// See [`write`](Self::write).
    pub fn write_one(&self, operation: Operation<'_>, options: &WriteOptions) -> Result<()> {
        operation.check()?;
        let entry = Entry::plain(operation);
        let user_bytes = operation.key().len() + operation.value().len();
        match self.compressed(&entry)? {
            None => self.commit(std::iter::once(entry), user_bytes, options),
            Some(stored) => {
                let entry = Entry { stored: &stored, codec: self.options.value_codec, ..entry };
                self.commit(std::iter::once(entry), user_bytes, options)
            }
        }
    }

    /// Applies a batch: wholly or, when it fails, not at all. Returns when the batch is visible and safe against
    /// the death of the process; with `sync`, when it is safe against that of the machine.
    ///
    /// # Errors
    /// `InvalidArgument`, `NoSpace`, `Closed`: nothing was written. `ReadOnly`: nothing was, unless another's write or sync failed meanwhile. `Io`
    /// from a plain write: in doubt until the database is opened again. With `sync`, any error of the sync itself leaves the batch visible but not known
    /// to be durable.
    pub fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        if batch.is_empty() {
            return if options.sync { self.sync() } else { self.health.check_writable() };
        }
        if self.options.value_codec == Codec::None {
            return self.commit(batch.iter().map(Entry::plain), batch.user_bytes(), options);
        }
        let packed: Vec<Option<Vec<u8>>> =
            batch.iter().map(|operation| self.compressed(&Entry::plain(operation))).collect::<Result<_>>()?;
        let codec = self.options.value_codec;
        let entries = batch.iter().zip(&packed).map(|(operation, packed)| match packed {
            Some(stored) => Entry { operation, stored, codec },
            None => Entry::plain(operation),
        });
        self.commit(entries, batch.user_bytes(), options)
    }

    /// Makes everything acknowledged so far durable. Blocks on the device, unless all of it is durable already.
    ///
    /// # Errors
    /// `Io`; the cube then takes no more writes.
    pub fn sync(&self) -> Result<()> {
        let (end, ticket) = self.order.end_of_batches();
        self.publisher.wait_for(ticket)?;
        self.sync_to(end)
    }

    /// Makes the log durable up to `position`, below which everything is published, and marks it.
    pub(super) fn sync_to(&self, position: LogPosition) -> Result<()> {
        self.health.check_writable()?;
        let synced = self.durability.sync_to(&self.env, position).inspect_err(|error| self.poison(error))?;
        if let Synced::Now(durable) = synced {
            // The log is as durable without its mark, which serves to tell damage from a torn tail.
            if let Err(error) = self.order.append_mark(durable) {
                self.health.warn(format!("no mark was written after a sync: {error}"));
            }
        }
        Ok(())
    }

    /// The compressed value of an operation, if compression is on and worth it.
    fn compressed(&self, entry: &Entry<'_>) -> Result<Option<Vec<u8>>> {
        let value = entry.operation.value();
        if self.options.value_codec == Codec::None || value.len() <= self.options.inline_value_max {
            return Ok(None);
        }
        self.options.value_codec.compress(value)
    }

    fn commit<'a>(
        &self,
        entries: impl ExactSizeIterator<Item = Entry<'a>> + Clone,
        user_bytes: usize,
        options: &WriteOptions,
    ) -> Result<()> {
        self.check_may_write()?;
        let need = self.measure(entries.clone())?;
        self.rows.prefetch_marks(entries.clone().map(|entry| entry.operation.key()));
        if need.claim == Claim::Data
            && let Some(refusal) = self.throttle.refusal()
        {
            self.check_space(refusal)?;
        }
        let wait = self.throttle.admit(need.log_bytes, || self.env.clock.monotonic());
        if !wait.is_zero() {
            self.wait_out(wait);
        }
        let mut patience = Patience::default();
        let grant = self.order.grant(&need, |obstacle| match obstacle {
            Obstacle::PlainWrite(grant) => self.write_plainly(&grant, entries.clone(), &need),
            other => self.clear(other, &mut patience),
        })?;
        let unfinished = Unfinished { cube: self };
        self.fill(&grant, entries.clone());
        let last = Sequence(grant.first_sequence.0 + need.operations - 1);
        let published = self.publisher.publish(grant.ticket, last);
        std::mem::forget(unfinished);
        published?;
        if self.rows.are_worth_renewing() {
            self.renew_rows(grant.first_sequence, entries);
        }
        if let Some(range) = grant.prefault.clone() {
            self.prefault(Arc::clone(&grant.segment), range);
        }
        self.counters.user_bytes.fetch_add(user_bytes as u64, Ordering::Relaxed);
        self.counters.operations.fetch_add(need.operations, Ordering::Relaxed);
        if options.sync {
            let end =
                LogPosition { segment: grant.segment.header().id, offset: grant.offset + need.log_bytes };
            self.sync_to(end)?;
        }
        Ok(())
    }

    /// Waits for as long as the throttle says, or until the cube is being closed or takes no more writes.
    #[cold]
    fn wait_out(&self, wait: Duration) {
        let (clock, begin) = (&self.env.clock, self.env.clock.monotonic());
        let mut left = wait;
        while !left.is_zero() && !self.maintenance.is_ending() && !self.health.is_poisoned() {
            let slice = left.min(WAIT_SLICE);
            clock.sleep(slice);
            left = (left - slice).min(self.throttle.left(begin + wait, clock.monotonic()));
        }
        self.throttle.note_wait(clock.monotonic() - begin);
    }

    /// Has the page faults of a range further on taken in the background.
    fn prefault(&self, segment: Arc<Segment>, range: std::ops::Range<u64>) {
        // A fault that cannot be taken ahead is taken, and reported, by the writer.
        let job = Box::new(move || drop(segment.prefault(range.start, range.end)));
        self.workers.submit(Priority::High, job);
    }

    /// What a batch takes of log and memtable.
    fn measure<'a>(&self, entries: impl ExactSizeIterator<Item = Entry<'a>>) -> Result<Need> {
        let (operations, claim) = (entries.len() as u64, Claim::Deletions);
        let mut need = Need { log_bytes: 0, memtable_bytes: 0, operations, claim };
        let mut last_record = 0;
        for entry in entries {
            last_record = entry.record_len();
            need.log_bytes += last_record;
            let payload = self.payload_len(&entry);
            need.memtable_bytes += Memtable::entry_bytes_max(entry.operation.key().len(), payload);
            if matches!(entry.operation, Operation::Put { .. }) {
                need.claim = Claim::Data;
            }
        }
        let last_offset = SEGMENT_HEADER_BYTES + need.log_bytes - last_record;
        if last_offset > u64::from(u32::MAX) {
            return Err(Error::invalid_argument(format!(
                "a batch of {} bytes of log: every record must begin in the first 4 GiB; split the batch",
                need.log_bytes
            )));
        }
        Ok(need)
    }

    fn payload_len(&self, entry: &Entry<'_>) -> usize {
        let value = entry.operation.value().len();
        if value <= self.options.inline_value_max { value } else { POINTER_BYTES }
    }

    /// Writes the records of a batch to a segment with plain writes.
    fn write_plainly<'a>(
        &self,
        grant: &Grant,
        entries: impl ExactSizeIterator<Item = Entry<'a>>,
        need: &Need,
    ) -> Result<Cleared> {
        let mut bytes = Vec::with_capacity(usize::try_from(need.log_bytes).expect("a batch is in memory"));
        let count = entries.len();
        for (index, entry) in entries.enumerate() {
            let sequence = Sequence(grant.first_sequence.0 + index as u64);
            let header = entry.header(sequence, BatchPlace::of(index, count));
            let offset = grant.offset + bytes.len() as u64;
            grant.segment.encode_record(&mut bytes, offset, &header, entry.operation.key(), entry.stored);
        }
        self.order.write_plainly(&grant.segment, grant.offset, &bytes)?;
        Ok(Cleared::PlainWrite)
    }

    /// Has rows of what was put say so, those that are asked for.
    fn renew_rows<'a>(&self, first: Sequence, entries: impl Iterator<Item = Entry<'a>>) {
        for (sequence, entry) in (first.0..).map(Sequence).zip(entries) {
            if let Operation::Put { key, value } = entry.operation {
                self.rows.renew(key, value, sequence);
            }
        }
    }

    /// Copies the records of a batch into the mapped segment, and each after that into the memtable.
    fn fill<'a>(&self, grant: &Grant, entries: impl ExactSizeIterator<Item = Entry<'a>>) {
        let count = entries.len();
        let segment = &grant.segment;
        let mut offset = grant.offset;
        for (index, entry) in entries.enumerate() {
            let sequence = Sequence(grant.first_sequence.0 + index as u64);
            let key = entry.operation.key();
            let memtable = &grant.memtable;
            memtable.prefetch(key);
            let pointer = match entry.operation {
                Operation::Put { value, .. } if value.len() > self.options.inline_value_max => {
                    Some(ValuePointer {
                        segment: segment.header().id,
                        offset: u32::try_from(offset).expect("batches are measured before they are granted"),
                        stored_len: entry.stored.len() as u32,
                    })
                }
                _ => None,
            };
            // I-15, I-16: before the operation is published.
            self.rows.note_write(key, sequence, pointer);
            let prepared = match (entry.operation, pointer) {
                (Operation::Delete { .. }, _) => memtable.prepare(key, sequence, EntryKind::Delete, &[]),
                (Operation::Put { .. }, Some(pointer)) => {
                    memtable.prepare(key, sequence, EntryKind::Pointer, &pointer.to_bytes())
                }
                (Operation::Put { value, .. }, None) => {
                    memtable.prepare(key, sequence, EntryKind::Inline, value)
                }
            };
            if segment.is_mapped() {
                let header = entry.header(sequence, BatchPlace::of(index, count));
                segment.write_record(offset, &header, key, entry.stored);
            }
            // I-01: the record is in the log before anything points to it.
            memtable.link(prepared);
            offset += entry.record_len();
        }
    }
}

/// Present while a granted batch is being filled: if that panics (a comparator may), its ticket will never be
/// done, so everybody who waits behind it must be told and the cube takes no more writes.
struct Unfinished<'a> {
    cube: &'a Cube,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let cause = Error::invalid_argument("a panic while a batch was being written");
        self.cube.poison(&cause);
    }
}
