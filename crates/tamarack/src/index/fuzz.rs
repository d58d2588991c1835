//! Hostile bytes in place of tables and manifests: what fuzzers run (`crate::fuzz`), and how they repair checksums so that
//! the bytes behind them are believed.

use std::path::{Path, PathBuf};

use super::cache::BlockCache;
use super::cursor::Cursor;
use super::manifest::{self, format as records};
use super::table::TableOptions;
use super::table::block::{Block, BlockPosition, Target};
use super::table::filter::Filter;
use super::table::format::{
    BLOCK_TRAILER_BYTES, BlockHandle, FOOTER_BYTES, Footer, IndexEntry, MAGIC, Properties,
    ReferenceDirectory, decode_pointer, peek_reference_run, take_reference_run,
};
use super::table::lookups::Lookups;
use super::table::reader::TableReader;
use super::version::{FileObserver, Files};
use crate::base::checksum::{Checksum, FileKind, Seed};
use crate::base::codec::Codec;
use crate::base::comparator::Bytewise;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, Sequence, TableId};
use crate::base::input::Input;
use crate::base::keys::{self, EntryKind, KeyOrder};
use crate::base::memory::Allotment;
use crate::base::names::FileName;
use crate::base::sync::Arc;
use crate::env::Env;

/// The cube of tables and manifests that are opened here.
pub const CUBE: CubeId = CubeId(0x7461_6d61_7261_636b);
const TABLE: TableId = TableId(1);

fn order() -> KeyOrder {
    KeyOrder::new(Arc::new(Bytewise))
}

/// Makes every checksum of table `id` of `cube` right, as far as its handles lead from one block to the next.
pub fn repair_table(bytes: &mut [u8], cube: CubeId, id: TableId) {
    let seed = Seed::new(cube, FileKind::Table, id.0, 0);
    let Some(end) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let fields = FOOTER_BYTES - MAGIC.len() - 4;
    let (blocks, footer) = bytes.split_at_mut(end);
    footer[fields + 4..].copy_from_slice(&MAGIC);
    let start = Checksum::seeded(seed, end as u64);
    let checksum = start.with(&footer[..fields]).with(&MAGIC).finish();
    footer[fields..fields + 4].copy_from_slice(&checksum.to_le_bytes());
    let Some(footer) = footer.first_chunk().and_then(Footer::decode) else { return };
    repair_block(blocks, seed, footer.filter);
    repair_block(blocks, seed, footer.properties);
    let references = repair_block(blocks, seed, footer.references);
    for (handle, _) in references.and_then(|raw| ReferenceDirectory::decode(&raw)).unwrap_or_default().blocks
    {
        repair_block(blocks, seed, handle);
    }
    for handle in repair_index(blocks, seed, footer.top_index) {
        if footer.index_levels == 2 {
            repair_index(blocks, seed, handle).into_iter().for_each(|data| {
                repair_block(blocks, seed, data);
            });
        } else {
            repair_block(blocks, seed, handle);
        }
    }
}

/// Repairs an index block; the blocks that it leads to.
fn repair_index(blocks: &mut [u8], seed: Seed, handle: BlockHandle) -> Vec<BlockHandle> {
    let Some(Ok(block)) = repair_block(blocks, seed, handle).map(Block::new) else { return Vec::new() };
    (0..block.restarts()).filter_map(|slot| Some(block.index_entry(slot).ok()?.1.handle)).collect()
}

/// Repairs a block; its raw bytes.
fn repair_block(blocks: &mut [u8], seed: Seed, handle: BlockHandle) -> Option<Vec<u8>> {
    let start = usize::try_from(handle.offset).ok()?;
    let end = start.checked_add(handle.stored_len as usize)?;
    let block = blocks.get_mut(start..end.checked_add(BLOCK_TRAILER_BYTES)?)?;
    let (stored, trailer) = block.split_at_mut(end - start);
    let checksum = Checksum::seeded(seed, handle.offset).with(stored).with(&trailer[..1]).finish();
    trailer[1..].copy_from_slice(&checksum.to_le_bytes());
    let codec = Codec::from_byte(trailer[0])?;
    let mut raw = Vec::new();
    let small = codec.raw_len(stored)? <= 1 << 20;
    (small && codec.decompress_into(stored, &mut raw).is_ok()).then_some(raw)
}

/// Makes every checksum of a manifest right, as far as its lengths lead from one record to the next.
pub fn repair_manifest(bytes: &mut [u8]) {
    let Some(header) = records::decode_header(bytes) else { return };
    bytes[records::HEADER_BYTES - 4..records::HEADER_BYTES]
        .copy_from_slice(&header.checksums.1.to_le_bytes());
    let seed = records::seed(header.cube, header.number);
    let mut at = records::HEADER_BYTES;
    while bytes.len() - at >= records::RECORD_HEADER_BYTES {
        let offset = at as u64;
        let (header, body) = bytes[at..].split_at_mut(records::RECORD_HEADER_BYTES);
        let len = usize::from(u16::from_le_bytes([header[0], header[1]])).min(body.len());
        let mut record = Vec::with_capacity(records::RECORD_HEADER_BYTES + len);
        records::put_record(&mut record, seed, offset, &body[..len]);
        header.copy_from_slice(&record[..records::RECORD_HEADER_BYTES]);
        at += records::RECORD_HEADER_BYTES + len;
    }
}

/// The text of a `CURRENT` that names what `bytes` do, with its checksum.
pub fn repair_current(bytes: &mut Vec<u8>) {
    let name = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let number = std::str::from_utf8(name).ok().and_then(|name| name.strip_prefix("MANIFEST-")?.parse().ok());
    if let Some(number) = number {
        *bytes = records::encode_current(number).into_bytes();
    }
}

/// Gives pieces of a whole table, each with a name and the byte that chooses it in [`table_part`].
pub fn table_parts(bytes: &[u8], visit: &mut dyn FnMut(&'static str, u8, &[u8])) {
    let mut bytes = bytes.to_vec();
    let seed = Seed::new(CUBE, FileKind::Table, TABLE.0, 0);
    let end = bytes.len() - FOOTER_BYTES;
    visit("footer", 5, &bytes[end..]);
    let (blocks, footer) = bytes.split_at_mut(end);
    let footer = footer.first_chunk().and_then(Footer::decode).expect("a whole table has a footer");
    let mut raw = |handle| repair_block(blocks, seed, handle).expect("a whole table has whole blocks");
    visit("filter", 1, &raw(footer.filter));
    visit("properties", 2, &raw(footer.properties));
    let references = raw(footer.references);
    visit("directory", 3, &references);
    for (handle, _) in ReferenceDirectory::decode(&references).expect("references").blocks {
        visit("references", 4, &raw(handle));
    }
    let top = raw(footer.top_index);
    visit("index", 0, &top);
    let first = Block::new(top).ok().and_then(|block| Some(block.index_entry(0).ok()?.1));
    visit("data", 0, &raw(first.expect("an index leads somewhere").handle));
}

/// A piece of a table, chosen by the first byte, behind its checksum.
pub fn table_part(data: &[u8]) {
    let Some((&which, bytes)) = data.split_first() else { return };
    match which % 6 {
        0 => block(bytes),
        1 => {
            let Some(filter) = Filter::decode(bytes) else { return };
            assert_eq!(filter.encode(), bytes, "a filter is what it was");
            for hash in [0, 1, u64::MAX, u64::from(which) << 32] {
                filter.may_contain(hash);
            }
        }
        2 => {
            let Some(properties) = Properties::decode(bytes) else { return };
            assert_eq!(Properties::decode(&properties.encode()), Some(properties), "properties stay");
        }
        3 => {
            let Some(directory) = ReferenceDirectory::decode(bytes) else { return };
            assert_eq!(ReferenceDirectory::decode(&directory.encode()), Some(directory), "references stay");
        }
        4 => {
            let (mut rest, mut offsets) = (bytes, Vec::new());
            while let Some(segment) = peek_reference_run(rest) {
                let before = rest.len();
                if take_reference_run(&mut rest, segment, &mut offsets).is_none() {
                    break;
                }
                assert!(rest.len() < before, "a run takes bytes");
            }
            assert!(offsets.is_sorted(), "references ascend");
        }
        _ => {
            let entry = IndexEntry::decode(bytes);
            let handle = entry.map(|entry| entry.handle).filter(|handle| handle.offset < 1 << 60);
            assert!(handle.is_none_or(|handle| handle.end() > handle.offset));
            let _pointer = decode_pointer(bytes);
            let footer = bytes.first_chunk().and_then(Footer::decode);
            let again = footer.map(|footer| footer.encode(|_, _| 0));
            assert!(again.is_none_or(|again| again[..48] == bytes[..48]), "handles stay");
        }
    }
}

/// A sorted block: searched, and walked over both ways.
fn block(bytes: &[u8]) {
    let len = bytes.len();
    let Ok(block) = Block::new(bytes.to_vec()) else { return };
    let order = order();
    for slot in 0..block.restarts().min(64) {
        let _entry = block.index_entry(slot);
    }
    let keys: [&[u8]; 4] = [b"", b"key0009", b"\xff\xff", &bytes[..len.min(9)]];
    for (user_key, hash) in keys.into_iter().zip([0, u64::MAX, 7 << 40, 1]) {
        for trailer in [0, keys::trailer(Sequence(5), EntryKind::SEEK), u64::MAX] {
            let target = Target { user_key, trailer };
            if let Ok(Some(found)) = block.find(&order, target, Some(hash)) {
                assert!(block.bytes(found.payload).len() <= len);
            }
            let _sought = BlockPosition::default().seek(&block, &order, target);
        }
    }
    for backward in [false, true] {
        let mut position = BlockPosition::default();
        let mut moved = if backward { position.seek_to_last(&block) } else { position.seek_to_first(&block) };
        let mut entries = 0;
        while moved.is_ok() && position.valid() {
            entries += 1;
            assert!(entries <= len / 4, "an entry takes four bytes or more");
            moved = if backward { position.prev(&block) } else { position.next(&block) };
        }
    }
}

/// A table: the first byte says whether checksums are repaired.
pub fn table(env: &Env, data: &[u8]) -> Result<()> {
    let mut input = Input::new(data);
    let flags = input.byte();
    let mut bytes = input.rest().to_vec();
    if flags & 1 != 0 {
        repair_table(&mut bytes, CUBE, TABLE);
    }
    let path = FileName::Table(TABLE).path(Path::new("/"));
    let io = |error| Error::io("write", &path, error);
    let file = env.fs.create_new(&path).map_err(io)?;
    file.write_at(&bytes, 0).map_err(io)?;
    let options = TableOptions::new(CUBE, order(), 24);
    let cache = Arc::new(BlockCache::new(0));
    let filters = Allotment::unlimited();
    let table = Arc::new(TableReader::open(file, path.clone(), TABLE, &options, cache, &filters)?);
    for key in [&b""[..], b"key0009", b"key0064", b"\xff"] {
        let _found = table.get(key, Sequence::MAX, true);
        let hash = table.hash(key);
        table.prefetch_filter(hash);
        if let Ok(Some(block)) = Lookups::new(&table, true).into_block(key, Sequence::MAX) {
            block.prefetch_bucket(hash);
            block.prefetch_entry(hash);
            let _found = block.find(&table, key, hash, Sequence::MAX);
        }
        let _size = table.approximate_offset(&keys::seek_key(key, Sequence::MAX));
    }
    let _verified = table.verify();
    if let Ok(references) = table.references() {
        let offsets: usize = references.map_while(Result::ok).map(|(_, offsets)| offsets.len()).sum();
        assert!(offsets <= REFERENCES_MAX, "references appear");
    }
    for backward in [false, true] {
        // Damage may let a walk begin again, which the index prevents no more than it does for one who forges it: each
        // data block is met as often as the index leads to it.
        let mut cursor = TableReader::cursor(&table, true);
        let mut moved = if backward { cursor.seek_to_last() } else { cursor.seek_to_first() };
        let mut entries = 0;
        while moved.is_ok() && cursor.valid() {
            entries += 1;
            assert!(entries <= ENTRIES_MAX, "a walk that does not end");
            moved = if backward { cursor.prev() } else { cursor.next() };
        }
    }
    Ok(())
}

/// More than any input of some kilobytes can lead to: its index leads a thousand times to a block of a thousand entries.
const ENTRIES_MAX: usize = 1 << 22;
const REFERENCES_MAX: usize = 1 << 22;

/// A manifest: the first byte says whether checksums are repaired, and whether the bytes are an edit's payload, or a
/// `CURRENT`, by themselves.
pub fn manifest(env: &Env, data: &[u8]) -> Result<()> {
    let Some((&flags, bytes)) = data.split_first() else { return Ok(()) };
    let directory = Path::new("/");
    let files = Files::new(Arc::clone(&env.fs), directory, Box::new(Deaf));
    if flags & 2 != 0 {
        if let Ok(edit) = records::decode_edit(bytes, &files) {
            let encoded = records::encode_edit(&edit);
            let again = records::decode_edit(&encoded, &files).expect("what was encoded decodes");
            assert_eq!(records::encode_edit(&again), encoded, "an edit is what it was");
        }
        return Ok(());
    }
    if flags & 4 != 0 {
        let number = records::decode_current(bytes);
        assert!(number.is_none_or(|number| records::encode_current(number).as_bytes() == bytes));
        return Ok(());
    }
    let mut bytes = bytes.to_vec();
    if flags & 1 != 0 {
        repair_manifest(&mut bytes);
    }
    let put = |name: FileName, bytes: &[u8]| {
        let path: PathBuf = name.path(directory);
        let file = env.fs.create_new(&path).and_then(|file| file.write_at(bytes, 0));
        file.map_err(|error| Error::io("write", &path, error))
    };
    put(FileName::Current, records::encode_current(1).as_bytes())?;
    put(FileName::Manifest(1), &bytes)?;
    let recovered = manifest::read(&files, &order())?;
    assert!(recovered.version.audit().is_ok(), "an accepted version agrees with itself");
    Ok(())
}

/// Hears nothing.
struct Deaf;

impl FileObserver for Deaf {
    fn removing(&self, _file: FileName) {}

    fn failed(&self, _error: Error) {}
}
