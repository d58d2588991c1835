//! The bytes of a segment file: header, records, footer. `docs/formats/segment.md` describes them; nothing else
//! encodes or decodes them. Pure functions over byte slices; no I/O.

use crate::base::checksum::{Checksum, FileKind, Seed, mend_one_byte};
use crate::base::codec::Codec;
use crate::base::coding::{put_bytes, put_varint, take_bytes, take_varint, take_varint_u32, u32_at, u64_at};
use crate::base::dead_ranges::FIRST_RECORD;
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};

/// Bytes of a segment's header; its first record begins here.
pub const SEGMENT_HEADER_BYTES: u64 = 80;

const _: () = assert!(SEGMENT_HEADER_BYTES == FIRST_RECORD, "dead ranges spare the header");
/// Bytes of a record before its key.
pub const RECORD_HEADER_BYTES: usize = 24;
/// Bytes at the very end of a sealed segment.
pub const FOOTER_TRAILER_BYTES: usize = 32;
/// Bytes of a whole mark record.
pub const MARK_RECORD_BYTES: usize = RECORD_HEADER_BYTES + MARK_VALUE_BYTES;
const MARK_VALUE_BYTES: usize = 12;

const SEGMENT_MAGIC: [u8; 8] = *b"TAMAVLOG";
const FOOTER_MAGIC: [u8; 8] = *b"TAMASEAL";
const VERSION: u32 = 1;

const FLAG_FIRST: u8 = 0x10;
const FLAG_LAST: u8 = 0x20;
const KIND_MASK: u8 = 0x0f;

/// What a segment says about itself and its place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The cube it belongs to.
    pub cube: CubeId,
    /// Its id.
    pub id: SegmentId,
    /// A random number that no value stored in the segment can know: part of every checksum's seed.
    pub salt: u64,
    /// Where the log stood before this segment: the previous segment and the end of its records there. The
    /// default position for the first segment of a log.
    pub predecessor: LogPosition,
    /// The smallest sequence number its records can have. In a cold segment, about the middle of those they have.
    pub first_sequence: Sequence,
    /// A position up to which the log was known to be durable when the segment was begun.
    pub durable: LogPosition,
}

/// Why a segment header was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderFault {
    /// All zeros: the segment was reserved and never begun.
    Blank,
    /// Whole, but of a version this build does not read.
    Version(u32),
    /// Anything else; the text says what was found.
    Damaged(String),
}

impl SegmentHeader {
    /// The seed of every checksum in the segment.
    pub fn seed(&self) -> Seed {
        Seed::new(self.cube, FileKind::Segment, u64::from(self.id.0), self.salt)
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut out = [0; SEGMENT_HEADER_BYTES as usize];
        out[..8].copy_from_slice(&SEGMENT_MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&self.id.0.to_le_bytes());
        out[16..24].copy_from_slice(&self.cube.0.to_le_bytes());
        out[24..32].copy_from_slice(&self.salt.to_le_bytes());
        out[32..36].copy_from_slice(&self.predecessor.segment.0.to_le_bytes());
        out[36..40].copy_from_slice(&self.durable.segment.0.to_le_bytes());
        out[40..48].copy_from_slice(&self.predecessor.offset.to_le_bytes());
        out[48..56].copy_from_slice(&self.durable.offset.to_le_bytes());
        out[56..64].copy_from_slice(&self.first_sequence.0.to_le_bytes());
        let crc = Checksum::unseeded().with(&out[..76]).finish();
        out[76..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header in bytes that do not decode, if one of them is damaged and the rest is that of segment `id` of `cube`.
    /// Without its salt nobody could check a record of the segment; with a wrong one, nobody takes any for whole.
    pub fn mend(bytes: &[u8; SEGMENT_HEADER_BYTES as usize], cube: CubeId, id: SegmentId) -> Option<Self> {
        let mut fields = *bytes.first_chunk::<76>()?;
        let (stored, computed) = (u32_at(bytes, 76), Checksum::unseeded().with(&fields).finish());
        if !mend_one_byte(&mut fields, stored, computed) {
            return None;
        }
        let mut mended = *bytes;
        mended[..76].copy_from_slice(&fields);
        mended[76..].copy_from_slice(&Checksum::unseeded().with(&fields).finish().to_le_bytes());
        Self::decode(&mended).ok().filter(|header| header.cube == cube && header.id == id)
    }

    /// Decodes a header.
    pub fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES as usize]) -> Result<Self, HeaderFault> {
        if bytes.iter().all(|&byte| byte == 0) {
            return Err(HeaderFault::Blank);
        }
        let crc = Checksum::unseeded().with(&bytes[..76]).finish();
        if crc != u32_at(bytes, 76) {
            return Err(HeaderFault::Damaged(format!(
                "checksum {:#010x} over bytes that give {crc:#010x}",
                u32_at(bytes, 76)
            )));
        }
        if bytes[..8] != SEGMENT_MAGIC {
            return Err(HeaderFault::Damaged(format!("magic {:02x?}", &bytes[..8])));
        }
        if u32_at(bytes, 8) != VERSION {
            return Err(HeaderFault::Version(u32_at(bytes, 8)));
        }
        let position = |segment: usize, offset: usize| LogPosition {
            segment: SegmentId(u32_at(bytes, segment)),
            offset: u64_at(bytes, offset),
        };
        Ok(Self {
            cube: CubeId(u64_at(bytes, 16)),
            id: SegmentId(u32_at(bytes, 12)),
            salt: u64_at(bytes, 24),
            predecessor: position(32, 40),
            durable: position(36, 48),
            first_sequence: Sequence(u64_at(bytes, 56)),
        })
    }
}

/// What a record does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum RecordKind {
    /// Sets its key to its value.
    Put = 1,
    /// Removes its key; it has no value.
    Delete = 2,
    /// A mark: its value is a position up to which the log was durable when the mark was written.
    Mark = 3,
    /// A relocation table, in cold segments alone: its key is the id of the segment that was moved.
    Relocations = 4,
}

/// Where a record stands in its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    /// The batch begins here.
    pub first: bool,
    /// The batch ends here.
    pub last: bool,
}

impl BatchPlace {
    /// A batch of one.
    pub const ONLY: Self = Self { first: true, last: true };

    /// The place of operation `index` of `count`.
    pub fn of(index: usize, count: usize) -> Self {
        Self { first: index == 0, last: index + 1 == count }
    }
}

/// Everything in a record but its key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// What it does.
    pub kind: RecordKind,
    /// Its place in its batch.
    pub place: BatchPlace,
    /// How its value is stored.
    pub codec: Codec,
    /// Bytes of its key.
    pub key_len: u16,
    /// Bytes of its stored value.
    pub stored_len: u32,
    /// Its place in the order of operations.
    pub sequence: Sequence,
    /// CRC-32C of the stored value. The header's own checksum, which is seeded with the record's place, binds
    /// it there.
    pub value_checksum: u32,
}

impl RecordHeader {
    /// The header of a record at `offset`, its checksum computed over itself and `key`.
    pub fn encode(&self, seed: Seed, offset: u64, key: &[u8]) -> [u8; RECORD_HEADER_BYTES] {
        debug_assert_eq!(usize::from(self.key_len), key.len());
        let mut out = [0; RECORD_HEADER_BYTES];
        out[4..8].copy_from_slice(&self.value_checksum.to_le_bytes());
        out[8..12].copy_from_slice(&self.stored_len.to_le_bytes());
        out[12..14].copy_from_slice(&self.key_len.to_le_bytes());
        let first = if self.place.first { FLAG_FIRST } else { 0 };
        let last = if self.place.last { FLAG_LAST } else { 0 };
        out[14] = self.kind as u8 | first | last;
        out[15] = self.codec as u8;
        out[16..24].copy_from_slice(&self.sequence.0.to_le_bytes());
        let checksum = Checksum::seeded(seed, offset).with(&out[4..]).with(key).finish();
        out[..4].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads the fields of a header without checking its checksum; the error says what is impossible in it.
    #[inline]
    pub fn decode(bytes: &[u8; RECORD_HEADER_BYTES]) -> Result<Self, String> {
        let kind = match bytes[14] & KIND_MASK {
            1 => RecordKind::Put,
            2 => RecordKind::Delete,
            3 => RecordKind::Mark,
            4 => RecordKind::Relocations,
            other => return Err(format!("record kind {other}")),
        };
        if bytes[14] & !(KIND_MASK | FLAG_FIRST | FLAG_LAST) != 0 {
            return Err(format!("record flags {:#04x}", bytes[14]));
        }
        let sequence = Sequence(u64_at(bytes, 16));
        if sequence > Sequence::MAX {
            return Err(format!("sequence number {sequence}"));
        }
        Ok(Self {
            kind,
            place: BatchPlace { first: bytes[14] & FLAG_FIRST != 0, last: bytes[14] & FLAG_LAST != 0 },
            codec: Codec::from_byte(bytes[15]).ok_or_else(|| format!("codec {}", bytes[15]))?,
            key_len: u16::from_le_bytes([bytes[12], bytes[13]]),
            stored_len: u32_at(bytes, 8),
            sequence,
            value_checksum: u32_at(bytes, 4),
        })
    }

    /// Bytes of the whole record.
    pub fn record_len(&self) -> u64 {
        record_len(usize::from(self.key_len), u64::from(self.stored_len))
    }
}

/// Bytes of a record with a key and a stored value of these lengths.
pub fn record_len(key_len: usize, stored_len: u64) -> u64 {
    RECORD_HEADER_BYTES as u64 + key_len as u64 + stored_len
}

/// Checks the checksum of header and key. `head` is the record's first `RECORD_HEADER_BYTES + key_len` bytes.
/// The error is (stored, computed).
pub fn check_head(seed: Seed, offset: u64, head: &[u8]) -> Result<(), (u32, u32)> {
    let computed = Checksum::seeded(seed, offset).with(&head[4..]).finish();
    let stored = u32_at(head, 0);
    if stored == computed { Ok(()) } else { Err((stored, computed)) }
}

/// Makes a record right again of which one byte is damaged: its whole bytes, those before the value being `head_len`.
/// Whether its checksums are right then.
#[must_use]
pub fn mend_record(seed: Seed, offset: u64, record: &mut [u8], head_len: usize) -> bool {
    let (head, value) = record.split_at_mut(head_len);
    if let Err((stored, computed)) = check_head(seed, offset, head) {
        if !mend_one_byte(&mut head[4..], stored, computed) {
            return false;
        }
        let checksum = Checksum::seeded(seed, offset).with(&head[4..]).finish();
        head[..4].copy_from_slice(&checksum.to_le_bytes());
    }
    let (stored, computed) = (u32_at(head, 4), Checksum::unseeded().with(value).finish());
    stored == computed || mend_one_byte(value, stored, computed)
}

/// A whole mark record at `offset`, saying that the log is durable up to `durable`.
pub fn encode_mark(
    seed: Seed,
    offset: u64,
    sequence: Sequence,
    durable: LogPosition,
) -> [u8; MARK_RECORD_BYTES] {
    let mut value = [0; MARK_VALUE_BYTES];
    value[..4].copy_from_slice(&durable.segment.0.to_le_bytes());
    value[4..].copy_from_slice(&durable.offset.to_le_bytes());
    let header = RecordHeader {
        kind: RecordKind::Mark,
        place: BatchPlace::ONLY,
        codec: Codec::None,
        key_len: 0,
        stored_len: MARK_VALUE_BYTES as u32,
        sequence,
        value_checksum: Checksum::unseeded().with(&value).finish(),
    };
    let mut out = [0; MARK_RECORD_BYTES];
    out[..RECORD_HEADER_BYTES].copy_from_slice(&header.encode(seed, offset, &[]));
    out[RECORD_HEADER_BYTES..].copy_from_slice(&value);
    out
}

/// The position in a mark's value; `None` if the value cannot be a mark's.
pub fn decode_mark(value: &[u8]) -> Option<LogPosition> {
    (value.len() == MARK_VALUE_BYTES)
        .then(|| LogPosition { segment: SegmentId(u32_at(value, 0)), offset: u64_at(value, 4) })
}

/// Kind and place of a mark.
const MARK_FLAGS: u8 = RecordKind::Mark as u8 | FLAG_FIRST | FLAG_LAST;

/// A whole, valid mark at the front of `bytes`, which stand at `offset`; `None` for anything else.
pub fn find_mark(seed: Seed, offset: u64, bytes: &[u8]) -> Option<LogPosition> {
    let head = bytes.get(..RECORD_HEADER_BYTES).filter(|head| head[14] == MARK_FLAGS)?;
    check_head(seed, offset, head).ok()?;
    guess_mark(bytes)
}

/// A mark at the front of `bytes` as far as can be told without the segment's seed: everything but the head's
/// checksum is right.
pub fn guess_mark(bytes: &[u8]) -> Option<LogPosition> {
    let record: &[u8; MARK_RECORD_BYTES] = bytes.first_chunk()?;
    let plausible = record[14] == MARK_FLAGS
        && u32_at(record, 8) == MARK_VALUE_BYTES as u32
        && (record[12], record[13], record[15]) == (0, 0, 0);
    let value = &record[RECORD_HEADER_BYTES..];
    (plausible && Checksum::unseeded().with(value).finish() == u32_at(record, 4))
        .then(|| decode_mark(value))
        .flatten()
}

/// What a sealed segment knows about its records, so that nobody has to read values to find keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footer {
    /// Where the records end.
    pub records_end: u64,
    /// Records that carry a value.
    pub value_records: u64,
    /// Bytes of those records.
    pub value_record_bytes: u64,
    /// The smallest key of a put or delete, in the cube's order; `None` if there is none.
    pub smallest: Option<Vec<u8>>,
    /// The largest such key.
    pub largest: Option<Vec<u8>>,
    /// The offset of every record, ascending, marks included.
    pub offsets: Vec<u32>,
}

impl Footer {
    /// The footer's bytes, which stand at `records_end`: payload, then trailer.
    pub fn encode(&self, seed: Seed) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.offsets.len() * 2 + 256);
        put_varint(&mut out, self.value_records);
        put_varint(&mut out, self.value_record_bytes);
        for key in [&self.smallest, &self.largest] {
            out.push(u8::from(key.is_some()));
            put_bytes(&mut out, key.as_deref().unwrap_or(&[]));
        }
        put_varint(&mut out, self.offsets.len() as u64);
        let mut previous = 0;
        for &offset in &self.offsets {
            put_varint(&mut out, u64::from(offset - previous));
            previous = offset;
        }
        let payload_len = out.len() as u64;
        let payload_crc = Checksum::seeded(seed, self.records_end).with(&out).finish();
        let mut trailer = [0; FOOTER_TRAILER_BYTES];
        trailer[..8].copy_from_slice(&self.records_end.to_le_bytes());
        trailer[8..16].copy_from_slice(&payload_len.to_le_bytes());
        trailer[16..20].copy_from_slice(&payload_crc.to_le_bytes());
        let crc = Checksum::seeded(seed, self.records_end + payload_len).with(&trailer[..20]).finish();
        trailer[20..24].copy_from_slice(&crc.to_le_bytes());
        trailer[24..].copy_from_slice(&FOOTER_MAGIC);
        out.extend_from_slice(&trailer);
        out
    }

    /// Reads a footer's trailer, the last bytes of a file of `file_len` bytes: where the payload begins, how
    /// long it is and its checksum. `None` if these are not a trailer: the segment is not sealed.
    pub fn decode_trailer(
        seed: Seed,
        file_len: u64,
        trailer: &[u8; FOOTER_TRAILER_BYTES],
    ) -> Option<(u64, u64, u32)> {
        let (records_end, payload_len) = (u64_at(trailer, 0), u64_at(trailer, 8));
        let trailer_at = file_len.checked_sub(FOOTER_TRAILER_BYTES as u64)?;
        let crc = Checksum::seeded(seed, trailer_at).with(&trailer[..20]).finish();
        let whole = trailer[24..] == FOOTER_MAGIC
            && crc == u32_at(trailer, 20)
            && records_end.checked_add(payload_len) == Some(trailer_at)
            && records_end >= SEGMENT_HEADER_BYTES;
        whole.then(|| (records_end, payload_len, u32_at(trailer, 16)))
    }

    /// Reads a payload that stands at `records_end`. The error says what was found.
    pub fn decode_payload(
        seed: Seed,
        records_end: u64,
        payload: &[u8],
        checksum: u32,
    ) -> Result<Self, String> {
        let computed = Checksum::seeded(seed, records_end).with(payload).finish();
        if computed != checksum {
            return Err(format!("bytes with checksum {computed:#010x} where {checksum:#010x} is recorded"));
        }
        Self::decode_fields(records_end, payload).ok_or_else(|| "a footer whose fields do not fit".into())
    }

    fn decode_fields(records_end: u64, mut input: &[u8]) -> Option<Self> {
        let input = &mut input;
        let value_records = take_varint(input)?;
        let value_record_bytes = take_varint(input)?;
        let mut key = || {
            let present = crate::base::coding::take_u8(input)? == 1;
            let bytes = take_bytes(input)?;
            Some(present.then(|| bytes.to_vec()))
        };
        let smallest = key()?;
        let largest = key()?;
        let count = usize::try_from(take_varint(input)?).ok()?;
        if count > input.len() {
            return None;
        }
        let mut offsets = Vec::with_capacity(count);
        let mut previous = 0_u32;
        for _ in 0..count {
            previous = previous.checked_add(take_varint_u32(input)?)?;
            offsets.push(previous);
        }
        let whole = input.is_empty() && offsets.last().is_none_or(|&last| u64::from(last) < records_end);
        let possible = value_record_bytes <= records_end && value_records <= value_record_bytes;
        (whole && possible).then_some(Self {
            records_end,
            value_records,
            value_record_bytes,
            smallest,
            largest,
            offsets,
        })
    }
}

const _: () = assert!(MARK_RECORD_BYTES == 36);

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
