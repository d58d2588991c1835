//! Every byte of a manifest and of `CURRENT`. See `docs/formats/manifest.md`.

use crate::base::checksum::{Checksum, FileKind, Seed};
use crate::base::coding::{
    put_bytes, put_varint, take, take_bytes, take_u32, take_u64, take_varint, take_varint_u32, u32_at,
};
use crate::base::dead_ranges::DeadRanges;
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence, TableId};
use crate::base::keys::split_internal_key;
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::segment::{SegmentMeta, SegmentMove, SegmentReference};
use crate::base::sync::Arc;

use super::super::version::{Files, HeldBytes, TableMeta, VersionEdit};

/// The first bytes of every manifest.
pub const MAGIC: [u8; 8] = *b"TMRKMANI";

/// The version of the format that this build writes, and the only one it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Bytes of a manifest's header: magic, version, cube, number, checksum.
pub const HEADER_BYTES: usize = 8 + 4 + 8 + 8 + 4;

/// Bytes of a record's header: payload length, payload checksum, checksum of those two.
pub const RECORD_HEADER_BYTES: usize = 12;

const TAG_CUBE: u64 = 1;
const TAG_COMPARATOR: u64 = 2;
const TAG_ADD_TABLE: u64 = 3;
const TAG_DROP_TABLE: u64 = 4;
const TAG_ADD_SEGMENT: u64 = 5;
const TAG_DROP_SEGMENT: u64 = 6;
const TAG_LOG_HEAD: u64 = 7;
const TAG_LAST_SEQUENCE: u64 = 8;
const TAG_NEXT_TABLE: u64 = 9;
const TAG_NEXT_SEGMENT: u64 = 10;
const TAG_COMPACTION_CURSOR: u64 = 11;
const TAG_MOVE_SEGMENT: u64 = 12;
const TAG_DEAD_RANGES: u64 = 13;

/// Why bytes with a good checksum are no edit.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A field ends early or holds what it cannot hold.
    Malformed(&'static str),
    /// A field that this build does not know: a newer one wrote it.
    UnknownTag(u64),
}

/// The seed of all checksums of manifest `number` of `cube`.
pub fn seed(cube: CubeId, number: u64) -> Seed {
    Seed::new(cube, FileKind::Manifest, number, 0)
}

/// The header of manifest `number` of `cube`.
pub fn encode_header(cube: CubeId, number: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    out.extend_from_slice(&cube.0.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    let checksum = Checksum::seeded(seed(cube, number), 0).with(&out).finish();
    out.extend_from_slice(&checksum.to_le_bytes());
    debug_assert_eq!(out.len(), HEADER_BYTES);
    out
}

/// A manifest's header as read.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub cube: CubeId,
    pub number: u64,
    /// The checksum that stands there, and the one that should.
    pub checksums: (u32, u32),
}

/// Takes the header apart; `None` if the file is too short for one. The caller checks the parts.
pub fn decode_header(bytes: &[u8]) -> Option<Header> {
    let input = &mut &bytes[..];
    let magic = take(input, 8)?.try_into().ok()?;
    let version = take_u32(input)?;
    let cube = CubeId(take_u64(input)?);
    let number = take_u64(input)?;
    let expected = Checksum::seeded(seed(cube, number), 0).with(&bytes[..HEADER_BYTES - 4]).finish();
    Some(Header { magic, version, cube, number, checksums: (take_u32(input)?, expected) })
}

/// Appends a record with `payload` that will stand at `offset` of the file. An empty payload is a mark.
pub fn put_record(out: &mut Vec<u8>, seed: Seed, offset: u64, payload: &[u8]) {
    let len = u32::try_from(payload.len()).expect("an edit is far smaller than 4 GiB");
    let payload_checksum = Checksum::seeded(seed, offset).with(payload).finish();
    let start = out.len();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&payload_checksum.to_le_bytes());
    let header_checksum = Checksum::seeded(seed, offset).with(&out[start..]).finish();
    out.extend_from_slice(&header_checksum.to_le_bytes());
    out.extend_from_slice(payload);
}

/// A record's header whose own checksum is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    pub payload_len: u32,
    pub payload_checksum: u32,
}

/// The record header at the front of `bytes`, which stand at `offset` of the file; `None` if there is none that
/// is whole.
pub fn decode_record_header(bytes: &[u8], seed: Seed, offset: u64) -> Option<RecordHeader> {
    let header = bytes.get(..RECORD_HEADER_BYTES)?;
    let checksum = Checksum::seeded(seed, offset).with(&header[..8]).finish();
    let whole = checksum == u32_at(header, 8);
    whole.then(|| RecordHeader { payload_len: u32_at(header, 0), payload_checksum: u32_at(header, 4) })
}

/// The checksum of a record's payload.
pub fn payload_checksum(payload: &[u8], seed: Seed, offset: u64) -> u32 {
    Checksum::seeded(seed, offset).with(payload).finish()
}

/// The payload of a record that holds `edit`.
pub fn encode_edit(edit: &VersionEdit) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(cube) = edit.cube {
        put_varint(&mut out, TAG_CUBE);
        out.extend_from_slice(&cube.0.to_le_bytes());
    }
    if let Some(name) = &edit.comparator {
        put_varint(&mut out, TAG_COMPARATOR);
        put_bytes(&mut out, name.as_bytes());
    }
    for (level, id) in &edit.drop_tables {
        put_numbers(&mut out, &[TAG_DROP_TABLE, u64::from(*level), id.0]);
    }
    for (level, table) in &edit.add_tables {
        put_numbers(&mut out, &[TAG_ADD_TABLE, u64::from(*level)]);
        put_table(&mut out, table);
    }
    for meta in &edit.add_segments {
        let sizes = [meta.end, meta.file_bytes, meta.value_records, meta.value_record_bytes];
        put_numbers(&mut out, &[TAG_ADD_SEGMENT, u64::from(meta.id.0), meta.written.0]);
        put_numbers(&mut out, &sizes);
    }
    for (id, dead) in &edit.dead_ranges {
        put_numbers(&mut out, &[TAG_DEAD_RANGES, u64::from(id.0), dead.count() as u64]);
        let mut end = 0;
        for range in dead.iter() {
            put_numbers(&mut out, &[range.start - end, range.end - range.start]);
            end = range.end;
        }
    }
    for SegmentMove { id, table } in &edit.move_segments {
        let table = [u64::from(table.segment.0), u64::from(table.offset), u64::from(table.stored_len)];
        put_numbers(&mut out, &[TAG_MOVE_SEGMENT, u64::from(id.0)]);
        put_numbers(&mut out, &table);
    }
    for id in &edit.drop_segments {
        put_numbers(&mut out, &[TAG_DROP_SEGMENT, u64::from(id.0)]);
    }
    if let Some(head) = edit.log_head {
        put_numbers(&mut out, &[TAG_LOG_HEAD, u64::from(head.segment.0), head.offset]);
    }
    if let Some(sequence) = edit.last_sequence {
        put_numbers(&mut out, &[TAG_LAST_SEQUENCE, sequence.0]);
    }
    if let Some(id) = edit.next_table_id {
        put_numbers(&mut out, &[TAG_NEXT_TABLE, id.0]);
    }
    if let Some(id) = edit.next_segment_id {
        put_numbers(&mut out, &[TAG_NEXT_SEGMENT, u64::from(id.0)]);
    }
    for (level, key) in &edit.compaction_cursors {
        put_numbers(&mut out, &[TAG_COMPACTION_CURSOR, u64::from(*level)]);
        put_bytes(&mut out, key);
    }
    out
}

fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|&number| put_varint(out, number));
}

fn put_table(out: &mut Vec<u8>, table: &TableMeta) {
    put_numbers(out, &[table.id.0, table.file_bytes, table.entries, table.deletes, table.inline_bytes]);
    put_bytes(out, &table.smallest);
    put_bytes(out, &table.largest);
    put_numbers(out, &[table.sequences.0.0, table.sequences.1.0, table.references.len() as u64]);
    for reference in &table.references {
        put_numbers(out, &[u64::from(reference.segment.0), reference.values, reference.bytes]);
    }
}

/// The edit in a record's payload. `files` gives its tables their handles.
pub fn decode_edit(payload: &[u8], files: &Arc<Files>) -> Result<VersionEdit, DecodeError> {
    let mut edit = VersionEdit::default();
    let input = &mut &payload[..];
    while !input.is_empty() {
        let tag = take_varint(input).ok_or(DecodeError::Malformed("a field's tag"))?;
        if !(TAG_CUBE..=TAG_DEAD_RANGES).contains(&tag) {
            return Err(DecodeError::UnknownTag(tag));
        }
        take_field(tag, input, &mut edit, files).ok_or(DecodeError::Malformed(field_name(tag)))?;
    }
    Ok(edit)
}

fn take_field(tag: u64, input: &mut &[u8], edit: &mut VersionEdit, files: &Arc<Files>) -> Option<()> {
    match tag {
        TAG_CUBE => edit.cube = Some(CubeId(take_u64(input)?)),
        TAG_COMPARATOR => edit.comparator = Some(String::from_utf8(take_bytes(input)?.to_vec()).ok()?),
        TAG_ADD_TABLE => {
            let level = take_level(input)?;
            edit.add_tables.push((level, Arc::new(take_table(input, files)?)));
        }
        TAG_DROP_TABLE => edit.drop_tables.push((take_level(input)?, TableId(take_varint(input)?))),
        TAG_ADD_SEGMENT => edit.add_segments.push(SegmentMeta {
            id: take_segment(input)?,
            written: take_sequence(input)?,
            end: take_varint(input)?,
            file_bytes: take_varint(input)?,
            value_records: take_varint(input)?,
            value_record_bytes: take_varint(input)?,
        }),
        TAG_MOVE_SEGMENT => edit.move_segments.push(SegmentMove {
            id: take_segment(input)?,
            table: ValuePointer {
                segment: take_segment(input)?,
                offset: take_varint_u32(input)?,
                stored_len: take_varint_u32(input)?,
            },
        }),
        TAG_DEAD_RANGES => edit.dead_ranges.push((take_segment(input)?, take_dead_ranges(input)?)),
        TAG_DROP_SEGMENT => edit.drop_segments.push(take_segment(input)?),
        TAG_LOG_HEAD => {
            let segment = take_segment(input)?;
            edit.log_head = Some(LogPosition { segment, offset: take_varint(input)? });
        }
        TAG_LAST_SEQUENCE => edit.last_sequence = Some(take_sequence(input)?),
        TAG_NEXT_TABLE => edit.next_table_id = Some(TableId(take_varint(input)?)),
        TAG_NEXT_SEGMENT => edit.next_segment_id = Some(take_segment(input)?),
        TAG_COMPACTION_CURSOR => {
            let level = take_level(input)?;
            edit.compaction_cursors.push((level, take_bytes(input)?.to_vec()));
        }
        _ => unreachable!("the caller has refused unknown tags"),
    }
    Some(())
}

fn field_name(tag: u64) -> &'static str {
    match tag {
        TAG_CUBE => "a cube id",
        TAG_COMPARATOR => "a comparator's name",
        TAG_ADD_TABLE => "a table that joins",
        TAG_DROP_TABLE => "a table that leaves",
        TAG_ADD_SEGMENT => "a segment that joins",
        TAG_DROP_SEGMENT => "a segment that leaves",
        TAG_MOVE_SEGMENT => "a segment that moves",
        TAG_DEAD_RANGES => "the dead ranges of a segment",
        TAG_LOG_HEAD => "a log head",
        TAG_LAST_SEQUENCE => "a sequence number",
        TAG_NEXT_TABLE => "a table id",
        TAG_NEXT_SEGMENT => "a segment id",
        _ => "a compaction cursor",
    }
}

fn take_level(input: &mut &[u8]) -> Option<u8> {
    take_varint(input)?.try_into().ok()
}

fn take_segment(input: &mut &[u8]) -> Option<SegmentId> {
    take_varint_u32(input).map(SegmentId)
}

fn take_sequence(input: &mut &[u8]) -> Option<Sequence> {
    take_varint(input).map(Sequence).filter(|&sequence| sequence <= Sequence::MAX)
}

fn take_dead_ranges(input: &mut &[u8]) -> Option<DeadRanges> {
    let count = take_varint(input).filter(|&count| count <= input.len() as u64 / 2)?;
    let mut ranges = Vec::with_capacity(count as usize);
    let mut end = 0_u64;
    for _ in 0..count {
        let start = end.checked_add(take_varint(input)?)?;
        end = start.checked_add(take_varint(input)?)?;
        ranges.push(start..end);
    }
    DeadRanges::new(ranges).ok()
}

fn take_internal_key(input: &mut &[u8]) -> Option<Vec<u8>> {
    take_bytes(input).filter(|key| split_internal_key(key).is_some()).map(<[u8]>::to_vec)
}

fn take_table(input: &mut &[u8], files: &Arc<Files>) -> Option<TableMeta> {
    let id = TableId(take_varint(input)?);
    let (file_bytes, entries, deletes) = (take_varint(input)?, take_varint(input)?, take_varint(input)?);
    let inline_bytes = take_varint(input)?;
    let (smallest, largest) = (take_internal_key(input)?, take_internal_key(input)?);
    let sequences = (take_sequence(input)?, take_sequence(input)?);
    let mut references = Vec::new();
    let mut referenced_value_bytes = 0_u64;
    for _ in 0..take_varint(input)? {
        let segment = take_segment(input)?;
        let reference = SegmentReference { segment, values: take_varint(input)?, bytes: take_varint(input)? };
        referenced_value_bytes = referenced_value_bytes.checked_add(reference.bytes)?;
        references.push(reference);
    }
    let handle = files.table(id);
    Some(TableMeta {
        id,
        file_bytes,
        entries,
        deletes,
        inline_bytes,
        smallest,
        largest,
        sequences,
        references,
        referenced_value_bytes,
        held: HeldBytes::new(),
        handle,
    })
}

/// The text of `CURRENT` when manifest `number` is in force: its name, and the checksum of the name.
pub fn encode_current(number: u64) -> String {
    let name = FileName::Manifest(number).to_string();
    format!("{name}\n{:08x}\n", Checksum::unseeded().with(name.as_bytes()).finish())
}

/// The number of the manifest that `CURRENT` names.
pub fn decode_current(text: &[u8]) -> Option<u64> {
    let name = std::str::from_utf8(text).ok()?.lines().next()?;
    match FileName::parse(name)? {
        FileName::Manifest(number) if encode_current(number).as_bytes() == text => Some(number),
        _ => None,
    }
}
