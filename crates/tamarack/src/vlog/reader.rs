//! Gives the value for a pointer.
//!
//! One positional read fetches the whole record: the pointer tells its place and the stored length, and whoever
//! follows a pointer has the key. Checksum of header and key, key, kind and length are checked on every read;
//! only the value's checksum can be skipped (I-08).

use std::ops::{Deref, Range};

use super::cold::relocation_key;
use super::format::{RECORD_HEADER_BYTES, RecordHeader, RecordKind, check_head, mend_record, record_len};
use super::open_segments::{OpenSegment, OpenSegments};
use super::queues::Queues;
use super::relocation::Relocations;
use crate::base::cache::{Cache, Weighter};
use crate::base::checksum::Checksum;
use crate::base::codec::Codec;
use crate::base::comparator::Bytewise;
use crate::base::error::{Error, Result};
use crate::base::ids::SegmentId;
use crate::base::keys::KeyOrder;
use crate::base::pointer::ValuePointer;
use crate::base::scarcity::Scarcity;
use crate::base::segment::Relocate;
use crate::base::shared_value::{HEAD_BYTES, SharedValue, shared_zeros};
use crate::base::sync::{Arc, AtomicU64, Ordering};

/// Where a value lies among bytes that were read, and how it is stored there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// How it is stored.
    pub codec: Codec,
    /// Where.
    pub range: Range<usize>,
}

/// What reading values has cost so far.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// Reads from segment files.
    pub reads: AtomicU64,
    /// Bytes of those reads.
    pub bytes: AtomicU64,
}

/// Of so many places in the log one tells whether memory is scarce. Asking costs a call if the bytes are not there.
const PLACES_PER_TELLING: u32 = 64;

/// Bytes of a typical table, from which the cache guesses how many it will hold.
const RELOCATION_BYTES_TYPICAL: u64 = 256 << 10;

#[derive(Debug, Clone)]
struct RelocationWeight;

impl Weighter<(SegmentId, u32), LoadedRelocations> for RelocationWeight {
    fn weight(&self, _place: &(SegmentId, u32), loaded: &LoadedRelocations) -> u64 {
        loaded.relocations.memory_bytes() as u64
    }
}

/// A relocation table that was read.
#[derive(Debug, Clone)]
struct LoadedRelocations {
    relocations: Arc<Relocations>,
    /// What was wrong before one byte was mended. More damaged bytes of a long table may look like one, so what it says is good for reading alone:
    /// a record at a wrong place has not the key that is looked for. Who writes down where a pointer leads is given the damage.
    mended: Option<Error>,
}

impl LoadedRelocations {
    fn for_good(self) -> Result<Arc<Relocations>> {
        self.mended.map_or(Ok(self.relocations), Err)
    }
}

/// Every segment of a cube, for reading.
#[derive(Debug)]
pub struct SegmentReader {
    segments: OpenSegments,
    order: KeyOrder,
    /// Relocation tables by the place of their record. Ids are not used again while the reader lives.
    relocations: Cache<(SegmentId, u32), LoadedRelocations, RelocationWeight>,
    relocation_order: KeyOrder,
    queues: Arc<Queues>,
    counters: ReadCounters,
    scarcity: Arc<Scarcity>,
}

impl SegmentReader {
    /// A reader of `segments`, with keys in `order`, that keeps at most `relocation_bytes_max` of relocation tables in memory: one that is
    /// not there costs a read of the device.
    pub fn new(segments: OpenSegments, order: KeyOrder, relocation_bytes_max: u64) -> Self {
        // Under shuttle no table stays in memory: one that did would hide that its file is gone.
        let relocation_bytes_max = if cfg!(shuttle) { 0 } else { relocation_bytes_max };
        let tables = (relocation_bytes_max / RELOCATION_BYTES_TYPICAL).max(1) as usize;
        Self {
            queues: Queues::new(Arc::clone(segments.fs())),
            segments,
            order,
            relocations: Cache::with_weighter(tables, relocation_bytes_max, RelocationWeight),
            relocation_order: KeyOrder::new(Arc::new(Bytewise)),
            counters: ReadCounters::default(),
            scarcity: Arc::default(),
        }
    }

    /// The segments that it reads.
    pub fn segments(&self) -> &OpenSegments {
        &self.segments
    }

    /// What reading has cost so far.
    pub fn counters(&self) -> &ReadCounters {
        &self.counters
    }

    /// Whether what is read is in the system's cache of files. What is read past it does not tell.
    pub fn scarcity(&self) -> &Arc<Scarcity> {
        &self.scarcity
    }

    /// For several reads at a time.
    pub(super) fn queues(&self) -> &Arc<Queues> {
        &self.queues
    }

    /// Bytes of memory that relocation tables take.
    pub fn relocation_bytes(&self) -> u64 {
        self.relocations.weight()
    }

    /// Replaces `value` by the value that `pointer` points to, which was written under `key`. One device read.
    ///
    /// # Errors
    /// `Io`; `Corruption` when the record is not whole, or is not that of `key`. `value` is then empty.
    pub fn read(&self, pointer: ValuePointer, key: &[u8], verify: bool, value: &mut Vec<u8>) -> Result<()> {
        let segment = self.segments.for_values(pointer.segment)?;
        let result = self.read_from(&segment, pointer, key, verify, value);
        if result.is_err() {
            value.clear();
        }
        result
    }

    fn read_from(
        &self,
        segment: &OpenSegment,
        pointer: ValuePointer,
        key: &[u8],
        verify: bool,
        value: &mut Vec<u8>,
    ) -> Result<()> {
        let stored = self.read_record(segment, pointer, key, verify, value, 0)?;
        if stored.codec == Codec::None {
            value.copy_within(stored.range.clone(), 0);
            value.truncate(stored.range.len());
            return Ok(());
        }
        let packed = value[stored.range].to_vec();
        self.unpack(pointer, stored.codec, &packed, value)
    }

    /// The value that `pointer` points to, which was written under `key`, in memory of its own. One device read; nothing is copied
    /// unless it is compressed.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_shared(&self, pointer: ValuePointer, key: &[u8], verify: bool) -> Result<SharedValue> {
        let segment = self.segments.for_values(pointer.segment)?;
        let mut record = Arc::default();
        let StoredValue { codec, range } =
            self.read_record(&segment, pointer, key, verify, &mut record, 0)?;
        if codec == Codec::None {
            return Ok(SharedValue::new(record, range.start));
        }
        let (stored, corrupt) = (&record[range], |found| self.bad_packing(pointer, found));
        let mut value = SharedValue::zeroed(key, codec.credible_raw_len(stored).map_err(corrupt)?);
        codec.decompress(stored, value.value_mut()).map_err(corrupt)?;
        Ok(value)
    }

    /// Reads the put that `pointer` means, all of it, to the place `at` of `bytes`, which grow if need be, and checks it.
    /// Tells where in `bytes` its value lies.
    ///
    /// # Errors
    /// `Io`; `Corruption` when the record is not whole, or is not that of `key`.
    pub(super) fn read_record(
        &self,
        segment: &OpenSegment,
        pointer: ValuePointer,
        key: &[u8],
        verify: bool,
        bytes: &mut impl Room,
        at: usize,
    ) -> Result<StoredValue> {
        let offset = u64::from(pointer.offset);
        let mut len = record_len(key.len(), u64::from(pointer.stored_len)) as usize;
        segment.check_room(offset, len)?;
        if !(tells(offset) && self.read_bytes_cached(segment, offset, bytes.room(at, len))) {
            self.read_bytes(segment, offset, bytes.room(at, len))?;
        }
        if let Some(written) = self.other_spelling(key, &bytes[at..]) {
            // The record's length follows from the key as it was written.
            len = record_len(written, u64::from(pointer.stored_len)) as usize;
            self.read_bytes(segment, offset, bytes.room(at, len))?;
        }
        let record = &bytes[at..at + len];
        let header = check_record(segment, &self.order, RecordKind::Put, pointer, key, record, verify)?;
        let head_len = RECORD_HEADER_BYTES + usize::from(header.key_len);
        Ok(StoredValue { codec: header.codec, range: at + head_len..at + len })
    }

    /// The length of the key in `record` if it is another spelling of `key`, equal to it in the cube's order.
    fn other_spelling(&self, key: &[u8], record: &[u8]) -> Option<usize> {
        let written = usize::from(u16::from_le_bytes([record[12], record[13]]));
        (written != key.len() && !self.order.comparator().equal_means_identical()).then_some(written)
    }

    /// Replaces `value` by the value that is stored as `stored` in the record at `pointer`, which was checked.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn unpack(
        &self,
        pointer: ValuePointer,
        codec: Codec,
        stored: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<()> {
        value.clear();
        codec.decompress_into(stored, value).map_err(|found| self.bad_packing(pointer, found))
    }

    fn bad_packing(&self, pointer: ValuePointer, found: String) -> Error {
        let path = self.segments.path(pointer.segment);
        Error::corruption(&path, u64::from(pointer.offset), "a compressed value", found)
    }

    /// Reads the put that `pointer` means, all of it, into `record`, which has its length, and checks every checksum.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn read_put(
        &self,
        segment: &OpenSegment,
        pointer: ValuePointer,
        key: &[u8],
        record: &mut [u8],
    ) -> Result<RecordHeader> {
        self.read_bytes(segment, u64::from(pointer.offset), record)?;
        self.check_put(segment, pointer, key, record)
    }

    /// Checks that `record`, bytes read from where `pointer` says, is the put that it means: every checksum.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn check_put(
        &self,
        segment: &OpenSegment,
        pointer: ValuePointer,
        key: &[u8],
        record: &[u8],
    ) -> Result<RecordHeader> {
        check_record(segment, &self.order, RecordKind::Put, pointer, key, record, true)
    }

    /// The relocation table at `table`, if it is in memory, and no byte of it was mended.
    pub fn relocations_in_memory(&self, table: ValuePointer) -> Option<Arc<Relocations>> {
        self.relocations.get(&(table.segment, table.offset)).and_then(|loaded| loaded.for_good().ok())
    }

    /// The relocation table that the record at `table` holds, for segment `id`, for those who write down where pointers lead.
    ///
    /// # Errors
    /// `Io`, `Corruption`, also where one damaged byte was mended for readers.
    pub fn relocations(&self, table: ValuePointer, id: SegmentId) -> Result<Arc<Relocations>> {
        self.load_relocations(table, id)?.for_good()
    }

    fn load_relocations(&self, table: ValuePointer, id: SegmentId) -> Result<LoadedRelocations> {
        self.relocations.get_or_insert_with(&(table.segment, table.offset), || {
            let segment = self.segments.get(table.segment)?;
            let key = relocation_key(id);
            let len = record_len(key.len(), u64::from(table.stored_len)) as usize;
            segment.check_room(u64::from(table.offset), len)?;
            let mut record = vec![0; len];
            self.read_bytes(&segment, u64::from(table.offset), &mut record)?;
            // Keys of relocation tables are ids: they are compared byte by byte, whatever the order of user keys.
            let check = |record: &[u8]| {
                let (order, kind) = (&self.relocation_order, RecordKind::Relocations);
                check_record(&segment, order, kind, table, &key, record, true)
            };
            let head_len = RECORD_HEADER_BYTES + key.len();
            let mended = check(&record).err();
            if let Some(error) = &mended {
                // One byte must not cost every record that the table leads to.
                if !mend_record(segment.seed(), u64::from(table.offset), &mut record, head_len) {
                    return Err(error.clone());
                }
                check(&record)?;
            }
            let corrupt = || {
                let found = "bytes that encode none";
                Error::corruption(segment.path(), u64::from(table.offset), "a relocation table", found)
            };
            let relocations = Relocations::decode(&record[head_len..]).ok_or_else(corrupt)?;
            Ok(LoadedRelocations { relocations: Arc::new(relocations), mended })
        })
    }

    /// Where the value lies in `bytes`, which were read from where `pointer` says, begin with its record and may reach
    /// beyond it. `None` if they end before the record does: it has another length than `key` lets one expect, and must
    /// be read by itself.
    ///
    /// # Errors
    /// `Corruption`, as for [`read`](Self::read).
    pub(super) fn find_value(
        &self,
        segment: &OpenSegment,
        pointer: ValuePointer,
        key: &[u8],
        verify: bool,
        bytes: &[u8],
    ) -> Result<Option<StoredValue>> {
        if self.other_spelling(key, bytes).is_some() {
            return Ok(None);
        }
        let record = &bytes[..record_len(key.len(), u64::from(pointer.stored_len)) as usize];
        let header = check_record(segment, &self.order, RecordKind::Put, pointer, key, record, verify)?;
        let head_len = RECORD_HEADER_BYTES + usize::from(header.key_len);
        Ok(Some(StoredValue { codec: header.codec, range: head_len..record.len() }))
    }

    /// Fills `bytes` if that is possible without waiting for the device; returns whether it was.
    pub(super) fn read_bytes_cached(&self, segment: &OpenSegment, offset: u64, bytes: &mut [u8]) -> bool {
        // What is wrong is told by those who read it then.
        let found = segment.file().read_cached(bytes, offset).unwrap_or(false);
        if found {
            self.count_read(bytes.len() as u64);
        }
        if tells(offset) && !self.segments.are_direct() {
            self.scarcity.note(found);
        }
        found
    }

    pub(super) fn count_read(&self, bytes: u64) {
        self.counters.reads.fetch_add(1, Ordering::Relaxed);
        self.counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn read_bytes(&self, segment: &OpenSegment, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.count_read(bytes.len() as u64);
        let read = segment.file().read_at(bytes, offset);
        let read = read.map_err(|error| Error::io("read", segment.path(), error))?;
        if read == bytes.len() {
            return Ok(());
        }
        let expected = format!("a record of {} bytes", bytes.len());
        let found = format!("the end of the file at {}", offset + read as u64);
        Err(Error::corruption(segment.path(), offset, expected, found))
    }
}

/// For reading: what may have been mended is followed.
impl Relocate for SegmentReader {
    fn relocate(&self, table: ValuePointer, pointer: ValuePointer) -> Result<Option<ValuePointer>> {
        let loaded = self.load_relocations(table, pointer.segment)?;
        let now = loaded.relocations.find(pointer.offset);
        Ok(now.map(|offset| ValuePointer { segment: table.segment, offset, ..pointer }))
    }
}

/// Whether what is at `offset` tells, whoever reads it.
pub(super) fn tells(offset: u64) -> bool {
    // The upper bits of this product are evenly spread (Knuth, volume 3, section 6.4).
    (offset as u32).wrapping_mul(2_654_435_769) < u32::MAX / PLACES_PER_TELLING
}

/// Memory that a record is read into.
pub(super) trait Room: Deref<Target = [u8]> {
    /// The part that begins at `at` and has `len` bytes: those that it has, and zeros as far as it has not.
    fn room(&mut self, at: usize, len: usize) -> &mut [u8];
}

impl Room for Vec<u8> {
    fn room(&mut self, at: usize, len: usize) -> &mut [u8] {
        if self.len() < at + len {
            self.resize(at + len, 0);
        }
        &mut self[at..at + len]
    }
}

/// A value at its end is not to have anything behind it, so it is exactly as long as it was asked to be.
impl Room for Arc<[u8]> {
    fn room(&mut self, at: usize, len: usize) -> &mut [u8] {
        if self.len() != at + len {
            *self = shared_zeros(at + len);
        }
        &mut Arc::get_mut(self).expect("nobody else holds what is still being read")[at..]
    }
}

/// A value that was read with its record lies as [`SharedValue`] says.
const _: () = assert!(HEAD_BYTES == RECORD_HEADER_BYTES);

/// I-08: checks that `record` is the one of `kind` that `pointer` means, under `key`; `verify` includes the value's
/// checksum.
fn check_record(
    segment: &OpenSegment,
    order: &KeyOrder,
    kind: RecordKind,
    pointer: ValuePointer,
    key: &[u8],
    record: &[u8],
    verify: bool,
) -> Result<RecordHeader> {
    let offset = u64::from(pointer.offset);
    let corrupt =
        |expected: String, found: String| Error::corruption(segment.path(), offset, expected, found);
    let header = RecordHeader::decode(record.first_chunk().expect("records are longer than their header"))
        .map_err(|found| corrupt("a record".into(), found))?;
    let head_len = RECORD_HEADER_BYTES + usize::from(header.key_len);
    if header.stored_len != pointer.stored_len || header.record_len() != record.len() as u64 {
        let expected = format!("a key of {} and a value of {} bytes", key.len(), pointer.stored_len);
        return Err(corrupt(expected, format!("{} and {} bytes", header.key_len, header.stored_len)));
    }
    check_head(segment.seed(), offset, &record[..head_len]).map_err(|(stored, computed)| {
        corrupt(format!("record checksum {stored:#010x}"), format!("{computed:#010x}"))
    })?;
    let written_key = &record[RECORD_HEADER_BYTES..head_len];
    if written_key != key && order.compare_user(written_key, key).is_ne() {
        return Err(corrupt(format!("key {key:02x?}"), format!("key {written_key:02x?}")));
    }
    if header.kind != kind {
        return Err(corrupt(format!("a record of kind {kind:?}"), format!("{:?}", header.kind)));
    }
    if verify {
        let computed = Checksum::unseeded().with(&record[head_len..]).finish();
        if computed != header.value_checksum {
            let expected = format!("value checksum {:#010x}", header.value_checksum);
            return Err(corrupt(expected, format!("{computed:#010x}")));
        }
    }
    Ok(header)
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
