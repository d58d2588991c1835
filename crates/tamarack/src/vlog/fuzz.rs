//! Hostile bytes in place of a segment: what fuzzers run (`crate::fuzz`), and how they repair checksums so that the bytes
//! behind them are believed.

use std::path::Path;

use super::format::{
    FOOTER_TRAILER_BYTES, Footer, MARK_RECORD_BYTES, RECORD_HEADER_BYTES, RecordHeader, RecordKind,
    SEGMENT_HEADER_BYTES, SegmentHeader, find_mark, guess_mark,
};
use super::heads::HeadReader;
use super::open_segments::{OpenSegment, OpenSegments, read_footer, read_header};
use super::reader::SegmentReader;
use super::recover::{Replayed, Task, recover};
use super::relocation::Relocations;
use super::scan::{Scanner, Values};
use crate::base::checksum::{Checksum, FileKind, Seed};
use crate::base::comparator::Bytewise;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};
use crate::base::input::Input;
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::sync::Arc;
use crate::env::{Env, File};

const HEADER_BYTES: usize = SEGMENT_HEADER_BYTES as usize;

/// Makes every checksum of a segment right, as far as its lengths lead from one to the next.
pub fn repair_segment(bytes: &mut [u8]) {
    let Some(header) = bytes.first_chunk_mut::<HEADER_BYTES>() else { return };
    let checksum = Checksum::unseeded().with(&header[..HEADER_BYTES - 4]).finish();
    header[HEADER_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
    let Ok(header) = SegmentHeader::decode(header) else { return };
    let records_end = repair_footer(bytes, &header).unwrap_or(bytes.len());
    let mut at = HEADER_BYTES;
    while let Some(len) = repair_record(&mut bytes[at..records_end], &header, at as u64) {
        at += len;
    }
}

/// Repairs the record at the front of `bytes`, which stand at `offset`; its length.
fn repair_record(bytes: &mut [u8], segment: &SegmentHeader, offset: u64) -> Option<usize> {
    let header = RecordHeader::decode(bytes.first_chunk()?).ok()?;
    let len = usize::try_from(header.record_len()).ok().filter(|&len| len <= bytes.len())?;
    let head_len = RECORD_HEADER_BYTES + usize::from(header.key_len);
    let value_checksum = Checksum::unseeded().with(&bytes[head_len..len]).finish();
    let head = RecordHeader { value_checksum, ..header }.encode(segment.seed(), offset, &bytes[24..head_len]);
    bytes[..RECORD_HEADER_BYTES].copy_from_slice(&head);
    Some(len)
}

/// Repairs the footer, if the last bytes have the lengths of one; where the records end.
fn repair_footer(bytes: &mut [u8], header: &SegmentHeader) -> Option<usize> {
    let trailer_at = bytes.len().checked_sub(FOOTER_TRAILER_BYTES)?;
    let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let records_end = usize::try_from(number(trailer_at)?).ok()?;
    if records_end < HEADER_BYTES || records_end > trailer_at {
        return None;
    }
    let (front, trailer) = bytes.split_at_mut(trailer_at);
    let payload = Checksum::seeded(header.seed(), records_end as u64).with(&front[records_end..]).finish();
    trailer[8..16].copy_from_slice(&((trailer_at - records_end) as u64).to_le_bytes());
    trailer[16..20].copy_from_slice(&payload.to_le_bytes());
    let checksum = Checksum::seeded(header.seed(), trailer_at as u64).with(&trailer[..20]).finish();
    trailer[20..24].copy_from_slice(&checksum.to_le_bytes());
    Some(records_end)
}

/// A segment file: the first byte says whether checksums are repaired, the next twelve are a pointer into it.
pub fn segment(env: &Env, data: &[u8]) -> Result<()> {
    let mut input = Input::new(data);
    let flags = input.byte();
    let pointer = ValuePointer::from_bytes(input.take(12));
    let mut bytes = input.rest().to_vec();
    if flags & 1 != 0 {
        repair_segment(&mut bytes);
    }
    let id = bytes.first_chunk().and_then(|header| SegmentHeader::decode(header).ok());
    let (cube, id) = id.map_or_else(Default::default, |header| (header.cube, header.id));
    let directory = Path::new("/");
    let path = FileName::Segment(id).path(directory);
    let file = write(env, &path, &bytes)?;
    let header = read_header(&*file, &path, cube, id)?;
    let len = bytes.len() as u64;
    let footer = read_footer(&*file, &path, &header, len)?;
    let limit = footer.as_ref().map_or(len, |footer| footer.records_end);
    let keys = KeyOrder::new(Arc::new(Bytewise));
    let segments = OpenSegments::new(Arc::clone(&env.fs), directory.to_path_buf(), cube, 2, false);
    let reader = SegmentReader::new(segments, keys, 1 << 12);
    let open = OpenSegment::new(Arc::clone(&file), path.clone(), header.seed());
    let mut value = Vec::new();
    if let Some(pointer) = pointer {
        let pointer = ValuePointer { segment: id, ..pointer };
        drop(reader.read(pointer, b"", false, &mut value));
        drop(reader.relocations(pointer, id));
    }
    for start in 0..bytes.len().saturating_sub(MARK_RECORD_BYTES).min(512) {
        let found = (find_mark(header.seed(), start as u64, &bytes[start..]), guess_mark(&bytes[start..]));
        assert!(found.0.is_none() || found.0 == found.1, "a whole mark looks like one");
    }
    if let Some(footer) = footer {
        let mut heads = HeadReader::new(&open, limit, 4096);
        footer.offsets.iter().take(64).for_each(|&offset| drop(heads.read(u64::from(offset))));
    }
    for wanted in [Values::Skip, Values::Check] {
        let mut scanner = Scanner::new(&*file, &path, header.seed(), SEGMENT_HEADER_BYTES, limit);
        let mut records = 0;
        while let Some(record) = scanner.next(wanted)? {
            records += 1;
            assert!(records <= bytes.len() / RECORD_HEADER_BYTES, "records overlap");
            let offset = u32::try_from(record.offset).expect("the file is small");
            let pointer = ValuePointer { segment: id, offset, stored_len: record.header.stored_len };
            let outcome = reader.read(pointer, record.key, true, &mut value);
            assert!(outcome.is_err() || record.header.kind == RecordKind::Put, "a value of something else");
            let shared = reader.read_shared(pointer, record.key, true).ok();
            assert!(
                shared.as_deref() == outcome.is_ok().then_some(&*value),
                "the same, wherever it is read to"
            );
            if record.header.kind == RecordKind::Relocations {
                drop(reader.relocations(pointer, id));
            }
        }
    }
    Ok(())
}

/// The value of a record that holds a relocation table.
pub fn relocations(data: &[u8]) {
    let Some(table) = Relocations::decode(data) else { return };
    assert!(Relocations::decode(&table.encode()).as_ref() == Some(&table), "a table is what it was");
    let offsets = data.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    for offset in offsets.chain([0, 80, u32::MAX]).take(64) {
        table.find(offset);
    }
    assert!(table.then(&table).memory_bytes() <= 64 + 8 * data.len(), "pairs appear");
}

/// A footer's payload, whose checksum is right.
pub fn footer(data: &[u8]) {
    let seed = Seed::new(CubeId(1), FileKind::Segment, 1, 1);
    let (records_end, checksum) = (1 << 20, Checksum::seeded(seed, 1 << 20).with(data).finish());
    let Ok(footer) = Footer::decode_payload(seed, records_end, data, checksum) else { return };
    let again = footer.encode(seed);
    let trailer = again.last_chunk().expect("a footer has a trailer");
    let len = records_end + again.len() as u64;
    let (at, payload_len, checksum) =
        Footer::decode_trailer(seed, len, trailer).expect("what was encoded decodes");
    let again = Footer::decode_payload(seed, at, &again[..payload_len as usize], checksum);
    assert!(again == Ok(footer), "a footer is what it was");
}

/// The cube of logs that are recovered here.
const CUBE: CubeId = CubeId(0x7461_6d61_7261_636b);

/// A log of several segments: a byte of flags (repair checksums, give each file the id and cube of its name, check
/// values), a position of four bytes at which it begins, and the files, each behind a length of two bytes. What recovery
/// has once accepted it accepts again.
pub fn log(env: &Env, data: &[u8]) -> Result<()> {
    let mut input = Input::new(data);
    let flags = input.byte();
    let head =
        LogPosition { segment: SegmentId(u32::from(input.short() % 4)), offset: u64::from(input.short()) };
    let head = if head.segment.0 == 0 { LogPosition::default() } else { head };
    let mut id = SegmentId(0);
    while !input.is_empty() && id.0 < 4 {
        id = SegmentId(id.0 + 1);
        let len = usize::from(input.short());
        let mut bytes = input.take(len).to_vec();
        if flags & 2 != 0 && bytes.len() >= HEADER_BYTES {
            bytes[12..16].copy_from_slice(&id.0.to_le_bytes());
            bytes[16..24].copy_from_slice(&CUBE.0.to_le_bytes());
        }
        if flags & 1 != 0 {
            repair_segment(&mut bytes);
        }
        write(env, &FileName::Segment(id).path(Path::new("/")), &bytes)?;
    }
    let run = |read_only| {
        let order = KeyOrder::new(Arc::new(Bytewise));
        let task = Task {
            fs: &*env.fs,
            directory: Path::new("/"),
            cube: CUBE,
            order: &order,
            head,
            last_sequence: Sequence(0),
            sealed_end: LogPosition::default(),
            inline_value_max: 16,
            check_values: flags & 4 != 0,
            mend: true,
            read_only,
        };
        let mut operations = 0;
        let mut last = Sequence(0);
        let recovered = recover(&task, &mut |Replayed { sequence, .. }| {
            assert!(sequence > last, "operations come in their order");
            (last, operations) = (sequence, operations + 1);
            assert!(operations <= data.len() / RECORD_HEADER_BYTES, "operations appear");
            Ok(())
        })?;
        assert_eq!(operations, recovered.report.operations as usize);
        Ok::<_, Error>(recovered)
    };
    let looked = run(true)?;
    let mended = run(false)?;
    assert_eq!(looked.last_sequence, mended.last_sequence, "a look finds what a recovery does");
    let again = run(true)?;
    assert_eq!((again.tail, again.last_sequence), (mended.tail, mended.last_sequence), "it stays");
    assert_eq!(again.report.torn_tail, None, "a recovery cuts the end off");
    Ok(())
}

/// A new file with `bytes`.
fn write(env: &Env, path: &Path, bytes: &[u8]) -> Result<Arc<dyn File>> {
    let io = |error| Error::io("write", path, error);
    let file = env.fs.create_new(path).map_err(io)?;
    file.write_at(bytes, 0).map_err(io)?;
    Ok(file)
}
