//! The bytes of a table, as described in `docs/formats/table.md`. Everything here is pure: it turns structures
//! into bytes and back, and returns `None` or a [`Damage`] for bytes that encode none.
//!
//! ```text
//! table := data-block+ index-partition* reference-block* reference-directory? top-index filter? properties footer
//! block := stored bytes, codec u8, crc32c u32
//! ```

use crate::base::codec::Codec;
use crate::base::coding::{
    put_bytes, put_varint, take, take_bytes, take_u8, take_u32, take_u64, take_varint, take_varint_u32,
    varint_len,
};
use crate::base::ids::{SegmentId, Sequence};
use crate::base::keys::{self, EntryKind};
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentReference;

/// The last eight bytes of every table.
pub const MAGIC: [u8; 8] = *b"TAMTABLE";
/// The version of the format that this build writes, and the only one it reads.
pub const VERSION: u32 = 1;
/// Bytes of the footer.
pub const FOOTER_BYTES: usize = 68;
/// Bytes that follow the stored bytes of a block: codec and checksum.
pub const BLOCK_TRAILER_BYTES: usize = 5;
/// Bytes of a sorted block behind its restart points and buckets: their two counts.
pub const BLOCK_TAIL_BYTES: usize = 6;
/// A bucket that no user key of the block falls into.
pub const BUCKET_EMPTY: u8 = 0xff;
/// A bucket that user keys of several restart intervals fall into.
pub const BUCKET_COLLISION: u8 = 0xfe;
/// A block with more restart points has no hash index: buckets could not name them.
pub const HASHED_RESTARTS_MAX: usize = BUCKET_COLLISION as usize;
/// A block with more raw bytes is stored uncompressed, so that no stored length can ask for more memory.
pub const COMPRESSED_RAW_BYTES_MAX: usize = 4 << 20;
/// Raw bytes after which an index partition is closed.
pub const INDEX_PARTITION_BYTES: usize = 4096;
/// Raw bytes after which a reference block is closed.
pub const REFERENCE_BLOCK_BYTES: usize = 64 * 1024;
/// Bytes of one line of the filter, a cache line.
pub const FILTER_LINE_BYTES: usize = 64;

/// Bytes of a raw block that passed its checksum and yet encode nothing: forged, or written by a faulty build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Position in the raw block.
    pub position: usize,
    /// What should stand there.
    pub expected: &'static str,
}

/// What decoding a raw block yields.
pub type Decoded<T> = std::result::Result<T, Damage>;

/// Where a block lies: its offset in the file and the length of its stored bytes, without the trailer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockHandle {
    /// Byte offset in the file.
    pub offset: u64,
    /// Stored bytes.
    pub stored_len: u32,
}

impl BlockHandle {
    /// Where the next block begins.
    pub fn end(self) -> u64 {
        self.offset + u64::from(self.stored_len) + BLOCK_TRAILER_BYTES as u64
    }

    /// Appends offset and length as varints.
    pub fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, u64::from(self.stored_len));
    }

    /// Takes what [`put`](Self::put) wrote.
    pub fn take(input: &mut &[u8]) -> Option<Self> {
        Some(Self { offset: take_varint(input)?, stored_len: take_varint_u32(input)? })
    }

    fn put_fixed(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.stored_len.to_le_bytes());
    }

    fn take_fixed(input: &mut &[u8]) -> Option<Self> {
        Some(Self { offset: take_u64(input)?, stored_len: take_u32(input)? })
    }
}

/// The payload of an index entry: a block, and what lies before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// The data block, or in the top level of two the index partition.
    pub handle: BlockHandle,
    /// Bytes of the log records that entries in earlier data blocks point to.
    pub value_bytes_before: u64,
}

impl IndexEntry {
    /// Appends the entry's payload.
    pub fn put(self, out: &mut Vec<u8>) {
        self.handle.put(out);
        put_varint(out, self.value_bytes_before);
    }

    /// Decodes a whole payload.
    pub fn decode(mut payload: &[u8]) -> Option<Self> {
        let entry =
            Self { handle: BlockHandle::take(&mut payload)?, value_bytes_before: take_varint(&mut payload)? };
        payload.is_empty().then_some(entry)
    }
}

/// The decoded front of an entry of a sorted block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryHeader {
    /// How many bytes of the previous entry's user key this one begins with.
    pub shared: usize,
    /// Position of the rest of the user key.
    pub suffix: usize,
    /// Position of the payload, where the suffix ends.
    pub payload: usize,
    /// Position of the next entry, where the payload ends.
    pub end: usize,
    /// The internal key's trailer.
    pub trailer: u64,
}

/// Appends an entry: three lengths, the trailer with its kind in two bits, the suffix, the payload.
pub fn put_entry(out: &mut Vec<u8>, shared: usize, suffix: &[u8], trailer: u64, payload: &[u8]) {
    put_varint(out, shared as u64);
    put_varint(out, suffix.len() as u64);
    put_varint(out, payload.len() as u64);
    put_varint(out, tag(trailer));
    out.extend_from_slice(suffix);
    out.extend_from_slice(payload);
}

/// Bytes of an entry, which [`put_entry`] appends.
pub fn entry_len(shared: usize, suffix: usize, trailer: u64, payload: usize) -> usize {
    let lengths = varint_len(shared as u64) + varint_len(suffix as u64) + varint_len(payload as u64);
    lengths + varint_len(tag(trailer)) + suffix + payload
}

/// Sequence number and kind of a trailer, as entries have them.
fn tag(trailer: u64) -> u64 {
    keys::trailer_sequence(trailer).0 << 2 | trailer & 3
}

/// Decodes the front of the entry at `at`; `None` unless all of it lies inside `entries`.
#[inline]
pub fn decode_entry(entries: &[u8], at: usize) -> Option<EntryHeader> {
    let mut input = entries.get(at..)?;
    let (shared, unshared, payload_len) = match *input {
        [shared, unshared, payload_len, ref rest @ ..] if (shared | unshared | payload_len) < 0x80 => {
            input = rest;
            (usize::from(shared), usize::from(unshared), usize::from(payload_len))
        }
        _ => {
            let shared = take_varint_u32(&mut input)?;
            let unshared = take_varint_u32(&mut input)?;
            (shared as usize, unshared as usize, take_varint_u32(&mut input)? as usize)
        }
    };
    let tag = take_tag(&mut input)?;
    let sequence = tag >> 2;
    if tag & 3 == 3 || sequence > Sequence::MAX.0 || input.len() < unshared + payload_len {
        return None;
    }
    let suffix = entries.len() - input.len();
    let payload = suffix + unshared;
    Some(EntryHeader {
        shared,
        suffix,
        payload,
        end: payload + payload_len,
        trailer: sequence << 8 | tag & 3,
    })
}

/// Takes a varint as [`take_varint`] does, but one of up to eight bytes as a whole: a search decodes the tag of every
/// entry that it passes. The position of the first clear high bit ends it; its groups of seven bits are then packed
/// in pairs, fours and eights.
#[inline]
fn take_tag(input: &mut &[u8]) -> Option<u64> {
    const LAST_BYTES: u64 = 0x8080_8080_8080_8080;
    let Some(word) = input.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes)) else {
        return take_varint(input);
    };
    let ends = !word & LAST_BYTES;
    if ends == 0 {
        return take_varint(input);
    }
    let end_bit = ends.trailing_zeros();
    *input = &input[end_bit as usize / 8 + 1..];
    let sevens = word & (u64::MAX >> (63 - end_bit)) & !LAST_BYTES;
    let fourteens = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let twenty_eights = fourteens & 0x0000_3fff_0000_3fff | (fourteens & 0x3fff_0000_3fff_0000) >> 2;
    Some(twenty_eights & 0x0fff_ffff | (twenty_eights & 0x0fff_ffff_0000_0000) >> 4)
}

/// Appends a segment's id with its highest bit, which tells cold segments from those of the log, as the lowest:
/// small numbers stay short for both.
fn put_segment(out: &mut Vec<u8>, segment: SegmentId) {
    put_varint(out, u64::from(segment.0.rotate_left(1)));
}

fn take_segment(input: &mut &[u8]) -> Option<SegmentId> {
    take_varint_u32(input).map(|id| SegmentId(id.rotate_right(1)))
}

/// Appends a value pointer as tables keep it.
pub fn put_pointer(out: &mut Vec<u8>, pointer: ValuePointer) {
    put_segment(out, pointer.segment);
    put_varint(out, u64::from(pointer.offset));
    put_varint(out, u64::from(pointer.stored_len));
}

/// Decodes a payload written by [`put_pointer`].
#[inline]
pub fn decode_pointer(mut payload: &[u8]) -> Option<ValuePointer> {
    let pointer = ValuePointer {
        segment: take_segment(&mut payload)?,
        offset: take_varint_u32(&mut payload)?,
        stored_len: take_varint_u32(&mut payload)?,
    };
    payload.is_empty().then_some(pointer)
}

/// Whether a payload is one that entries of `kind` can have.
pub fn payload_fits(kind: EntryKind, payload: &[u8]) -> bool {
    match kind {
        EntryKind::Delete => payload.is_empty(),
        EntryKind::Inline => true,
        EntryKind::Pointer => decode_pointer(payload).is_some(),
    }
}

/// Appends a run of a reference block: a segment, how many offsets follow, the first, and the distances between
/// the others. `offsets` is not empty and strictly ascending.
pub fn put_reference_run(out: &mut Vec<u8>, segment: SegmentId, offsets: &[u32]) {
    put_segment(out, segment);
    put_varint(out, offsets.len() as u64);
    put_varint(out, u64::from(offsets[0]));
    for pair in offsets.windows(2) {
        put_varint(out, u64::from(pair[1] - pair[0]));
    }
}

/// The segment of the run at the front of `input`.
pub fn peek_reference_run(mut input: &[u8]) -> Option<SegmentId> {
    take_segment(&mut input)
}

/// Takes a run of `segment` and appends its offsets to those of the segment's earlier runs, which it must
/// continue in ascending order.
pub fn take_reference_run(input: &mut &[u8], segment: SegmentId, offsets: &mut Vec<u32>) -> Option<()> {
    if take_segment(input)? != segment {
        return None;
    }
    let count = take_varint(input)?;
    if count == 0 || count > input.len() as u64 {
        return None;
    }
    let mut last = take_varint_u32(input)?;
    if offsets.last().is_some_and(|&before| before >= last) {
        return None;
    }
    offsets.reserve(count as usize);
    offsets.push(last);
    for _ in 1..count {
        let distance = take_varint_u32(input)?;
        last = last.checked_add(distance).filter(|_| distance > 0)?;
        offsets.push(last);
    }
    Some(())
}

/// The way into the reference blocks: what there is for each segment, and where the blocks are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReferenceDirectory {
    /// Per segment, in ascending order.
    pub segments: Vec<SegmentReference>,
    /// The reference blocks in order, each with the segment of its first run.
    pub blocks: Vec<(BlockHandle, SegmentId)>,
}

impl ReferenceDirectory {
    /// The raw block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.segments.len() as u64);
        for reference in &self.segments {
            put_segment(&mut out, reference.segment);
            put_varint(&mut out, reference.values);
            put_varint(&mut out, reference.bytes);
        }
        put_varint(&mut out, self.blocks.len() as u64);
        for (handle, first) in &self.blocks {
            handle.put(&mut out);
            put_segment(&mut out, *first);
        }
        out
    }

    /// Decodes a whole raw block.
    pub fn decode(mut input: &[u8]) -> Option<Self> {
        let input = &mut input;
        let mut directory = Self::default();
        let segments = take_varint(input).filter(|&count| count <= input.len() as u64)?;
        for _ in 0..segments {
            let segment = take_segment(input)?;
            if directory.segments.last().is_some_and(|last| last.segment >= segment) {
                return None;
            }
            let (values, bytes) = (take_varint(input)?, take_varint(input)?);
            directory.segments.push(SegmentReference { segment, values, bytes });
        }
        let blocks = take_varint(input).filter(|&count| count <= input.len() as u64)?;
        for _ in 0..blocks {
            directory.blocks.push((BlockHandle::take(input)?, take_segment(input)?));
        }
        input.is_empty().then_some(directory)
    }
}

/// What a table says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Entries of all kinds.
    pub entries: u64,
    /// Entries that are deletions.
    pub deletes: u64,
    /// Entries that point into the log.
    pub pointers: u64,
    /// Bytes of all internal keys, uncompressed.
    pub raw_key_bytes: u64,
    /// Bytes of all payloads as stored in entries.
    pub raw_payload_bytes: u64,
    /// Bytes of the log records pointed to, headers and keys included.
    pub value_bytes: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Where the data blocks end.
    pub data_bytes: u64,
    /// Index partitions below the top index; 0 if the top index leads to data blocks itself.
    pub index_partitions: u64,
    /// Smallest and largest sequence number.
    pub sequences: (Sequence, Sequence),
    /// The first internal key.
    pub smallest: Vec<u8>,
    /// The last internal key.
    pub largest: Vec<u8>,
    /// The name of the order of user keys.
    pub comparator: Vec<u8>,
    /// The codec asked for; a block that does not shrink is stored without.
    pub codec: Codec,
    /// `block_bytes` of the options it was written with.
    pub block_bytes: u64,
    /// `restart_interval` of the options it was written with.
    pub restart_interval: u64,
    /// `filter_bits_per_key` of the options it was written with.
    pub filter_bits_per_key: u32,
    /// `record_overhead` of the options it was written with.
    pub record_overhead: u64,
}

impl Properties {
    /// The raw block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [
            self.entries,
            self.deletes,
            self.pointers,
            self.raw_key_bytes,
            self.raw_payload_bytes,
            self.value_bytes,
            self.data_blocks,
            self.data_bytes,
            self.index_partitions,
            self.sequences.0.0,
            self.sequences.1.0,
        ] {
            put_varint(&mut out, number);
        }
        for bytes in [&self.smallest, &self.largest, &self.comparator] {
            put_bytes(&mut out, bytes);
        }
        out.push(self.codec as u8);
        put_varint(&mut out, self.block_bytes);
        put_varint(&mut out, self.restart_interval);
        put_varint(&mut out, u64::from(self.filter_bits_per_key));
        put_varint(&mut out, self.record_overhead);
        out
    }

    /// Decodes a whole raw block.
    pub fn decode(mut input: &[u8]) -> Option<Self> {
        let input = &mut input;
        let properties = Self {
            entries: take_varint(input)?,
            deletes: take_varint(input)?,
            pointers: take_varint(input)?,
            raw_key_bytes: take_varint(input)?,
            raw_payload_bytes: take_varint(input)?,
            value_bytes: take_varint(input)?,
            data_blocks: take_varint(input)?,
            data_bytes: take_varint(input)?,
            index_partitions: take_varint(input)?,
            sequences: (Sequence(take_varint(input)?), Sequence(take_varint(input)?)),
            smallest: take_bytes(input)?.to_vec(),
            largest: take_bytes(input)?.to_vec(),
            comparator: take_bytes(input)?.to_vec(),
            codec: Codec::from_byte(take_u8(input)?)?,
            block_bytes: take_varint(input)?,
            restart_interval: take_varint(input)?,
            filter_bits_per_key: take_varint_u32(input)?,
            record_overhead: take_varint(input)?,
        };
        let well_formed = |key: &[u8]| {
            keys::split_internal_key(key).is_some_and(|(_, trailer)| keys::trailer_kind(trailer).is_some())
        };
        let whole = input.is_empty() && well_formed(&properties.smallest) && well_formed(&properties.largest);
        whole.then_some(properties)
    }
}

/// The end of a table: where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footer {
    /// The top index.
    pub top_index: BlockHandle,
    /// The filter; all zero if there is none.
    pub filter: BlockHandle,
    /// The reference directory; all zero if no entry points into the log.
    pub references: BlockHandle,
    /// The properties.
    pub properties: BlockHandle,
    /// Levels of the index: 1 if the top index leads to data blocks, 2 if it leads to partitions.
    pub index_levels: u8,
}

/// Position of the footer's checksum: it covers every other byte of the footer.
const FOOTER_CHECKSUM_AT: usize = FOOTER_BYTES - MAGIC.len() - 4;

impl Footer {
    /// The footer's bytes; `checksum` computes the checksum of the bytes given to it.
    pub fn encode(&self, checksum: impl FnOnce(&[u8], &[u8]) -> u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for handle in [self.top_index, self.filter, self.references, self.properties] {
            handle.put_fixed(&mut out);
        }
        out.push(self.index_levels);
        out.extend_from_slice(&[0; 3]);
        out.extend_from_slice(&VERSION.to_le_bytes());
        let crc = checksum(&out, &MAGIC);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        assert_eq!(out.len(), FOOTER_BYTES, "the footer's fields fill it");
        out
    }

    /// Magic, version, stored checksum and the checksum computed by `checksum`: what must be right before
    /// [`decode`](Self::decode) means anything.
    pub fn check(
        bytes: &[u8; FOOTER_BYTES],
        checksum: impl FnOnce(&[u8], &[u8]) -> u32,
    ) -> Result<u32, (&'static str, String)> {
        let (fields, end) = bytes.split_at(FOOTER_CHECKSUM_AT);
        let (stored, magic) = end.split_at(4);
        if magic != MAGIC {
            return Err(("the magic bytes of a table", format!("{magic:02x?}")));
        }
        let (stored, computed) = (crate::base::coding::u32_at(stored, 0), checksum(fields, magic));
        if stored != computed {
            return Err((
                "a footer with its checksum",
                format!("{stored:#010x} stored, {computed:#010x} computed"),
            ));
        }
        Ok(crate::base::coding::u32_at(fields, FOOTER_CHECKSUM_AT - 4))
    }

    /// Decodes the fields of a footer of [`VERSION`] that has passed [`check`](Self::check).
    pub fn decode(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        let input = &mut &bytes[..];
        let footer = Self {
            top_index: BlockHandle::take_fixed(input)?,
            filter: BlockHandle::take_fixed(input)?,
            references: BlockHandle::take_fixed(input)?,
            properties: BlockHandle::take_fixed(input)?,
            index_levels: take_u8(input)?,
        };
        let reserved = take(input, 3)?;
        (reserved == [0; 3] && matches!(footer.index_levels, 1 | 2)).then_some(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_round_trip(shared in 0_usize..70_000, suffix: Vec<u8>, payload: Vec<u8>, sequence in 0_u64..1 << 56) {
            let trailer = keys::trailer(Sequence(sequence), EntryKind::Inline);
            let mut out = vec![1, 2, 3];
            put_entry(&mut out, shared, &suffix, trailer, &payload);
            let header = decode_entry(&out, 3).expect("whole");
            prop_assert_eq!(header.shared, shared);
            prop_assert_eq!(&out[header.suffix..header.payload], &suffix[..]);
            prop_assert_eq!(&out[header.payload..header.end], &payload[..]);
            prop_assert_eq!((header.trailer, header.end), (trailer, out.len()));
            prop_assert_eq!(decode_entry(&out[..out.len() - 1], 3), None);
        }

        #[test]
        fn tags_decode_like_varints(bytes in proptest::collection::vec(any::<u8>(), 0..12), value: u64, shift in 0..64) {
            let mut encoded = Vec::new();
            put_varint(&mut encoded, value >> shift);
            encoded.extend_from_slice(&bytes);
            for input in [&bytes[..], &encoded] {
                let (mut fast, mut slow) = (input, input);
                prop_assert_eq!(take_tag(&mut fast), take_varint(&mut slow));
                prop_assert_eq!(fast, slow);
            }
        }

        #[test]
        fn reference_runs_round_trip(offsets in proptest::collection::btree_set(any::<u32>(), 1..50)) {
            let offsets: Vec<u32> = offsets.into_iter().collect();
            let mut out = Vec::new();
            put_reference_run(&mut out, SegmentId(7), &offsets);
            let mut decoded = Vec::new();
            prop_assert_eq!(take_reference_run(&mut &out[..], SegmentId(6), &mut decoded), None);
            prop_assert_eq!(take_reference_run(&mut &out[..], SegmentId(7), &mut decoded), Some(()));
            prop_assert_eq!(&decoded, &offsets);
            prop_assert_eq!(take_reference_run(&mut &out[..], SegmentId(7), &mut decoded), None);
        }

        #[test]
        fn no_bytes_make_a_decoder_panic(bytes: Vec<u8>, at in 0_usize..64) {
            let _entry = decode_entry(&bytes, at);
            let _pointer = decode_pointer(&bytes);
            let _index = IndexEntry::decode(&bytes);
            let _directory = ReferenceDirectory::decode(&bytes);
            let _properties = Properties::decode(&bytes);
            let _run = take_reference_run(&mut &bytes[..], SegmentId(0), &mut Vec::new());
        }
    }

    #[test]
    fn footers_round_trip() {
        let handle = |offset| BlockHandle { offset, stored_len: 7 };
        let footer = Footer {
            top_index: handle(1),
            filter: handle(2),
            references: BlockHandle::default(),
            properties: handle(3),
            index_levels: 2,
        };
        let bytes: [u8; FOOTER_BYTES] = footer.encode(|_, _| 5).try_into().expect("the footer's length");
        assert_eq!(Footer::check(&bytes, |_, _| 5), Ok(VERSION));
        assert!(Footer::check(&bytes, |_, _| 6).is_err());
        assert_eq!(Footer::decode(&bytes), Some(footer));
    }
}
