//! Tables as a whole: built, read, walked over, damaged.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;

use super::TableOptions;
use super::builder::{TableBuilder, TableSummary};
use super::format::BlockHandle;
use super::lookups::Lookups;
use super::memory_file::{MemoryFile, MemoryFs};
use super::reader::{TableEntry, TablePayload, TableReader};
use crate::base::checksum::Checksum;
use crate::base::codec::Codec;
use crate::base::comparator::Bytewise;
use crate::base::error::{ErrorKind, Result};
use crate::base::ids::{CubeId, SegmentId, Sequence, TableId};
use crate::base::keys::{EntryKind, KeyOrder, put_internal_key, seek_key, split_internal_key, trailer_kind};
use crate::base::memory::Allotment;
use crate::base::pointer::ValuePointer;
use crate::base::sync::Arc;
use crate::index::cache::{BlockCache, TableCache};
use crate::index::cursor::Cursor;

/// An entry as cursors present it: internal key and payload.
pub type Entry = (Vec<u8>, Vec<u8>);

pub const ID: TableId = TableId(7);

pub fn options() -> TableOptions {
    TableOptions::new(CubeId(0x1122_3344_5566_7788), KeyOrder::new(Arc::new(Bytewise)), 24)
}

pub fn key(user_key: &[u8], sequence: u64, kind: EntryKind) -> Vec<u8> {
    let mut key = Vec::new();
    put_internal_key(&mut key, user_key, Sequence(sequence), kind);
    key
}

pub fn pointer(segment: u32, offset: u32, stored_len: u32) -> Vec<u8> {
    ValuePointer { segment: SegmentId(segment), offset, stored_len }.to_bytes().to_vec()
}

pub fn build(entries: &[Entry], options: &TableOptions) -> Result<(TableSummary, Arc<MemoryFile>)> {
    let file = MemoryFile::with(Vec::new());
    let mut builder =
        TableBuilder::new(file.clone(), PathBuf::from("000007.table"), PathBuf::from("input"), ID, options);
    for (key, payload) in entries {
        builder.add(key, payload)?;
    }
    let summary = builder.finish()?;
    assert!(file.is_synced());
    Ok((summary, file))
}

pub fn open(file: Arc<MemoryFile>, options: &TableOptions, cache_bytes: u64) -> Result<Arc<TableReader>> {
    open_with(file, options, &Arc::new(BlockCache::new(cache_bytes)), &Allotment::unlimited())
}

fn open_with(
    file: Arc<MemoryFile>,
    options: &TableOptions,
    cache: &Arc<BlockCache>,
    filters: &Arc<Allotment>,
) -> Result<Arc<TableReader>> {
    TableReader::open(file, PathBuf::from("000007.table"), ID, options, Arc::clone(cache), filters)
        .map(Arc::new)
}

/// `count` user keys with one to three versions each, of all kinds.
pub fn entries(count: u32) -> Vec<Entry> {
    let mut entries = Vec::new();
    for number in 0..count {
        let user_key = format!("user{:06}", number * 2);
        for version in (0..=number % 3).rev() {
            let sequence = u64::from(version) * 1_000_000 + u64::from(number);
            let (kind, payload) = match (number + version) % 4 {
                0 => (EntryKind::Delete, Vec::new()),
                1 => (EntryKind::Inline, format!("value {number} {version}").into_bytes()),
                _ => (EntryKind::Pointer, pointer(number % 5, number * 400 + version, 300 + version)),
            };
            entries.push((key(user_key.as_bytes(), sequence, kind), payload));
        }
    }
    entries
}

fn walk(cursor: &mut dyn Cursor) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    cursor.seek_to_first()?;
    while cursor.valid() {
        found.push((cursor.key().to_vec(), cursor.payload().to_vec()));
        cursor.next()?;
    }
    Ok(found)
}

fn walk_back(cursor: &mut dyn Cursor) -> Result<Vec<Entry>> {
    let mut found = Vec::new();
    cursor.seek_to_last()?;
    while cursor.valid() {
        found.push((cursor.key().to_vec(), cursor.payload().to_vec()));
        cursor.prev()?;
    }
    found.reverse();
    Ok(found)
}

/// The payload that a lookup finds, as cursors present it.
pub fn lookup(
    table: &TableReader,
    user_key: &[u8],
    sequence: u64,
) -> Result<Option<(u64, EntryKind, Vec<u8>)>> {
    Ok(table.get(user_key, Sequence(sequence), true)?.map(presented))
}

fn presented(entry: TableEntry) -> (u64, EntryKind, Vec<u8>) {
    let kind = entry.kind();
    let payload = match entry.payload {
        TablePayload::Delete => Vec::new(),
        TablePayload::Inline(value) => value.to_vec(),
        TablePayload::Pointer(pointer) => pointer.to_bytes().to_vec(),
    };
    (entry.sequence.0, kind, payload)
}

/// Checks that lookups one after the other find what each of them finds alone: of every `stride`th entry, of the version
/// before it, and of a key behind it that is not there.
fn assert_ascending_lookups_agree(table: &TableReader, entries: &[Entry], stride: usize) -> Result<()> {
    let sought = entries.iter().step_by(stride).flat_map(|(internal_key, _)| {
        let (user_key, trailer) = split_internal_key(internal_key).expect("internal");
        let sequence = trailer >> 8;
        let behind = [user_key, b"\0"].concat();
        [(user_key.to_vec(), sequence), (user_key.to_vec(), sequence.saturating_sub(1)), (behind, sequence)]
    });
    let mut sought: Vec<_> = sought.collect();
    let order = table.order();
    sought.sort_by(|left, right| order.compare_user(&left.0, &right.0).then(right.1.cmp(&left.1)));
    let mut lookups = Lookups::new(table, true);
    for (user_key, sequence) in sought {
        let found = lookups.get(&user_key, table.hash(&user_key), Sequence(sequence))?;
        assert_eq!(found.map(presented), lookup(table, &user_key, sequence)?);
    }
    Ok(())
}

/// Checks lookups at every version and between, seeks, walks, references and the table's own check.
pub fn assert_holds(table: &Arc<TableReader>, entries: &[Entry], order: &KeyOrder) -> Result<()> {
    for fill_cache in [false, true] {
        let mut cursor = TableReader::cursor(table, fill_cache);
        assert_eq!(walk(&mut cursor)?, entries);
        assert_eq!(walk_back(&mut cursor)?, entries);
        for (key, payload) in entries {
            cursor.seek(key)?;
            assert_eq!((cursor.key(), cursor.payload()), (&key[..], &payload[..]));
        }
    }
    for stride in [1, 2, 7, 60] {
        assert_ascending_lookups_agree(table, entries, stride)?;
    }
    let mut cursor = TableReader::cursor(table, true);
    let mut expected_references: BTreeMap<SegmentId, Vec<u32>> = BTreeMap::new();
    let mut last_offset = (0, 0);
    for (internal_key, payload) in entries {
        let (user_key, trailer) = split_internal_key(internal_key).expect("internal");
        for sequence in
            [trailer >> 8, (trailer >> 8) + 1, (trailer >> 8).saturating_sub(1), Sequence::MAX.0, 0]
        {
            let seek = seek_key(user_key, Sequence(sequence));
            let expected = entries.iter().find(|(key, _)| order.compare(key, &seek).is_ge());
            cursor.seek(&seek)?;
            assert_eq!(cursor.valid(), expected.is_some());
            if let Some((key, payload)) = expected {
                assert_eq!((cursor.key(), cursor.payload()), (&key[..], &payload[..]));
            }
            let expected = expected
                .map(|(key, payload)| (split_internal_key(key).expect("internal"), payload))
                .filter(|((key, _), _)| order.compare_user(key, user_key).is_eq())
                .map(|((_, trailer), payload)| {
                    (trailer >> 8, EntryKind::from_byte(trailer as u8).expect("a kind"), payload.clone())
                });
            assert_eq!(lookup(table, user_key, sequence)?, expected);
        }
        let offset = table.approximate_offset(internal_key)?;
        assert!(offset.0 >= last_offset.0 && offset.1 >= last_offset.1);
        last_offset = offset;
        if trailer as u8 == EntryKind::Pointer as u8 {
            let pointer = ValuePointer::from_bytes(payload).expect("a pointer");
            expected_references.entry(pointer.segment).or_default().push(pointer.offset);
        }
    }
    expected_references.values_mut().for_each(|offsets| offsets.sort_unstable());
    let references: BTreeMap<_, _> = table.references()?.collect::<Result<_>>()?;
    assert_eq!(references, expected_references);
    let report = table.verify()?;
    assert_eq!((report.entries, report.bytes), (entries.len() as u64, table.file_bytes()));
    Ok(())
}

#[test]
fn large_tables_hold_what_was_added() -> Result<()> {
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let options = TableOptions { codec, block_bytes: 128, ..options() };
        let entries = entries(1200);
        let (summary, file) = build(&entries, &options)?;
        let table = open(file.clone(), &options, 1 << 20)?;
        assert!(table.is_partitioned(), "large enough for two levels");
        assert_eq!(summary, summary_of(&table)?);
        assert_eq!(summary.file_bytes, file.bytes().len() as u64);
        assert_eq!((&summary.smallest, &summary.largest), (&entries[0].0, &entries[entries.len() - 1].0));
        assert_holds(&table, &entries, &options.order)?;
        for number in 0..1200 {
            assert_eq!(lookup(&table, format!("user{:06}", number * 2 + 1).as_bytes(), 1 << 40)?, None);
        }
        let past = table.approximate_offset(&seek_key(b"z", Sequence::MAX))?;
        let referenced: u64 = summary.references.iter().map(|reference| reference.bytes).sum();
        assert_eq!(past, (table.properties().data_bytes, referenced));
    }
    Ok(())
}

#[test]
fn versions_of_one_key_may_fill_many_blocks() -> Result<()> {
    let options = TableOptions { block_bytes: 100, restart_interval: 3, ..options() };
    let mut entries = vec![(key(b"a", 5, EntryKind::Inline), b"first".to_vec())];
    entries
        .extend((0..200).rev().map(|n| (key(b"key", n, EntryKind::Pointer), pointer(1, n as u32 * 50, 9))));
    entries.push((key(b"z", 9, EntryKind::Delete), Vec::new()));
    let (_, file) = build(&entries, &options)?;
    assert_holds(&open(file, &options, 1 << 20)?, &entries, &options.order)
}

#[test]
fn long_keys_and_values_work() -> Result<()> {
    let options = options();
    let mut entries: Vec<Entry> = (0..30_u8)
        .map(|n| {
            let user_key = [vec![7; 60_000], vec![n]].concat();
            (key(&user_key, 3, EntryKind::Inline), vec![n; 20_000])
        })
        .collect();
    entries.insert(0, (key(b"", 1, EntryKind::Inline), Vec::new()));
    let (_, file) = build(&entries, &options)?;
    let table = open(file, &options, 1 << 20)?;
    assert!(table.is_partitioned());
    assert_holds(&table, &entries, &options.order)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_table_holds_what_was_added(
        model in proptest::collection::btree_map(
            (proptest::collection::vec(0_u8..3, 0..5), (0_u64..9).prop_map(Reverse)),
            proptest::option::of(proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40))),
            1..120,
        ),
        block_bytes in 1_usize..300,
        restart_interval in 1_usize..20,
        filter_bits_per_key in 0_u32..20,
        codec in prop_oneof![Just(Codec::None), Just(Codec::Lz4), Just(Codec::Zstd)],
    ) {
        let options = TableOptions { block_bytes, restart_interval, filter_bits_per_key, codec, ..options() };
        let entries: Vec<Entry> = model.iter().enumerate().map(|(index, ((user_key, sequence), payload))| {
            let (kind, payload) = match payload {
                None => (EntryKind::Delete, Vec::new()),
                Some(None) => (EntryKind::Pointer, pointer(index as u32 % 3, u32::MAX - index as u32, index as u32)),
                Some(Some(value)) => (EntryKind::Inline, value.clone()),
            };
            (key(user_key, sequence.0, kind), payload)
        }).collect();
        let (_, file) = build(&entries, &options).expect("memory does not fail");
        let table = open(file, &options, 1 << 20).expect("just written");
        assert_holds(&table, &entries, &options.order).expect("just written");
    }
}

#[test]
fn a_cold_lookup_reads_two_blocks_and_a_filtered_one_none() -> Result<()> {
    let options = TableOptions { block_bytes: 128, filter_bits_per_key: 20, ..options() };
    let (_, file) = build(&entries(1200), &options)?;
    let cache = Arc::new(BlockCache::new(1 << 20));
    let table = open_with(file.clone(), &options, &cache, &Allotment::unlimited())?;
    let opened = file.reads();
    assert!(table.get(b"user000500", Sequence::MAX, true)?.is_some());
    assert_eq!(file.reads() - opened, 2);
    assert!(table.get(b"user000500", Sequence::MAX, true)?.is_some());
    assert!(table.get(b"user000501", Sequence::MAX, true)?.is_none());
    assert_eq!(file.reads() - opened, 2);
    let stats = cache.stats();
    assert_eq!((stats.hits, stats.misses), (2, 2));
    assert_eq!((stats.index_block_reads, stats.data_block_reads), (1, 1));
    assert!(stats.bytes > 128);
    Ok(())
}

#[test]
fn a_table_is_searched_without_the_filter_that_does_not_fit() -> Result<()> {
    let (options, entries) = (TableOptions { block_bytes: 128, ..options() }, entries(1200));
    let (_, file) = build(&entries, &options)?;
    let open = |filters| open_with(file.clone(), &options, &Arc::new(BlockCache::new(1 << 20)), filters);
    let (first, second) = (open(&Allotment::unlimited())?, open(&Allotment::new(1000))?);
    assert_eq!([first.is_unfiltered(), second.is_unfiltered()], [false, true]);
    assert!(second.resident_bytes() + 1000 < first.resident_bytes());
    let opened = file.reads();
    assert!(first.get(b"user000501", Sequence::MAX, true)?.is_none());
    assert_eq!(file.reads(), opened, "the filter knows");
    assert!(second.get(b"user000501", Sequence::MAX, true)?.is_none());
    assert!(file.reads() > opened, "the blocks know");
    assert_holds(&second, &entries, &options.order)?;
    assert_eq!(second.verify()?.entries, first.verify()?.entries);
    Ok(())
}

#[test]
fn reads_that_fill_no_cache_leave_none_behind() -> Result<()> {
    let options = TableOptions { block_bytes: 128, ..options() };
    let (_, file) = build(&entries(1200), &options)?;
    for (capacity, fill_cache) in [(1 << 20, false), (0, true)] {
        let cache = Arc::new(BlockCache::new(capacity));
        let table = open_with(file.clone(), &options, &cache, &Allotment::unlimited())?;
        assert!(table.get(b"user000500", Sequence::MAX, fill_cache)?.is_some());
        walk(&mut TableReader::cursor(&table, fill_cache))?;
        assert_eq!(cache.stats().bytes, 0);
    }
    Ok(())
}

#[test]
fn a_scan_reads_ahead() -> Result<()> {
    let (summary, file) = build(&entries(20_000), &options())?;
    let table = open(file.clone(), &options(), 1 << 20)?;
    let opened = file.reads();
    assert_eq!(walk(&mut TableReader::cursor(&table, false))?.len() as u64, summary.entries);
    let partitions = table.properties().index_partitions;
    let windows = table.properties().data_bytes.div_ceil(256 * 1024 - 8192);
    let ramp = 6;
    assert!(file.reads() - opened <= partitions + windows + ramp);
    // Nobody has looked at a handle before what it leads to is read ahead.
    table.source().have_block_read(BlockHandle { offset: u64::MAX - 4, stored_len: 9 });
    Ok(())
}

#[test]
fn open_tables_are_bounded_and_forgotten() -> Result<()> {
    let fs = Arc::new(MemoryFs::default());
    let path_of = |id: TableId| PathBuf::from(format!("{:06}.table", id.0));
    for id in 0..10 {
        let file = MemoryFile::with(Vec::new());
        let mut builder = TableBuilder::new(
            file.clone(),
            path_of(TableId(id)),
            PathBuf::from("input"),
            TableId(id),
            &options(),
        );
        builder.add(&key(b"key", id, EntryKind::Inline), b"value")?;
        builder.finish()?;
        fs.files.lock().insert(path_of(TableId(id)), file);
    }
    let tables = TableCache::new(
        fs.clone(),
        path_of,
        options(),
        Arc::new(BlockCache::new(1 << 20)),
        Allotment::unlimited(),
        4,
    );
    for id in (0..10).chain(0..10) {
        let table = tables.get(TableId(id))?;
        assert_eq!(table.get(b"key", Sequence::MAX, true)?.expect("present").sequence, Sequence(id));
        assert!(tables.open_tables() <= 4);
    }
    let opens = *fs.opens.lock();
    let held = tables.get(TableId(9))?;
    assert!(Arc::ptr_eq(&held, &tables.get(TableId(9))?));
    tables.forget(TableId(9));
    assert!(held.get(b"key", Sequence::MAX, true)?.is_some());
    assert!(!Arc::ptr_eq(&held, &tables.get(TableId(9))?));
    assert!(*fs.opens.lock() > opens);
    assert_eq!(tables.get(TableId(99)).expect_err("no such file").kind(), ErrorKind::Io);
    Ok(())
}

/// Reads everything there is in every way; what it returns must be right or a corruption.
fn read_everything(file: Arc<MemoryFile>, options: &TableOptions, entries: &[Entry]) -> Result<()> {
    let table = open(file, options, 1 << 20)?;
    let mut outcome = Ok(());
    for (internal_key, payload) in entries {
        let (user_key, trailer) = split_internal_key(internal_key).expect("internal");
        match lookup(&table, user_key, trailer >> 8) {
            Ok(found) => assert_eq!(found.map(|(_, _, payload)| payload).as_ref(), Some(payload)),
            Err(error) => outcome = Err(error),
        }
    }
    for fill_cache in [true, false] {
        let mut cursor = TableReader::cursor(&table, fill_cache);
        for walked in [walk(&mut cursor), walk_back(&mut cursor)] {
            match walked {
                Ok(found) => assert_eq!(found, entries),
                Err(error) => {
                    assert!(!cursor.valid());
                    outcome = Err(error);
                }
            }
        }
    }
    match table.references().and_then(Iterator::collect::<Result<Vec<_>>>) {
        Ok(found) => {
            let pointers = entries.iter().filter(|(key, _)| key[key.len() - 8] == EntryKind::Pointer as u8);
            assert_eq!(found.iter().map(|(_, offsets)| offsets.len()).sum::<usize>(), pointers.count());
        }
        Err(error) => outcome = Err(error),
    }
    table.verify()?;
    outcome
}

#[test]
fn every_flipped_byte_is_found() -> Result<()> {
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let options = TableOptions { codec, block_bytes: 300, ..options() };
        let entries = entries(40);
        let (_, file) = build(&entries, &options)?;
        read_everything(file.clone(), &options, &entries)?;
        let good = file.bytes();
        for position in 0..good.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[position] ^= flip;
                let error = read_everything(MemoryFile::with(bad), &options, &entries)
                    .expect_err("a flipped byte is found by some check");
                let corruption = error.as_corruption().expect("a flipped byte is a corruption");
                assert_eq!(corruption.file, PathBuf::from("000007.table"));
                assert!(corruption.offset <= position as u64);
            }
        }
    }
    Ok(())
}

/// Every block of a table.
pub fn all_blocks(table: &TableReader) -> Result<Vec<BlockHandle>> {
    let mut handles = vec![table.footer().top_index, table.footer().properties];
    handles.extend([table.footer().filter, table.footer().references]);
    handles.extend(table.references()?.blocks());
    for slot in 0..table.top().restarts() {
        let (_, entry) = table.top().index_entry(slot).expect("well-formed");
        handles.push(entry.handle);
        if table.is_partitioned() {
            let partition = table.read_block(entry.handle)?;
            let leaves =
                (0..partition.restarts()).map(|slot| partition.index_entry(slot).expect("well-formed"));
            handles.extend(leaves.map(|(_, entry)| entry.handle));
        }
    }
    Ok(handles)
}

#[test]
fn damage_under_a_right_checksum_causes_no_panic() -> Result<()> {
    for codec in [Codec::None, Codec::Lz4] {
        let options = TableOptions { codec, block_bytes: 300, restart_interval: 4, ..options() };
        let entries = entries(40);
        let (_, file) = build(&entries, &options)?;
        let table = open(file.clone(), &options, 0)?;
        let good = file.bytes();
        let mut found = 0;
        for handle in all_blocks(&table)? {
            let (start, checksum_at) = (handle.offset as usize, handle.end() as usize - 4);
            for (position, flip) in (start..checksum_at).flat_map(|at| [(at, 0x01), (at, 0x80), (at, 0xff)]) {
                let mut bad = good.clone();
                bad[position] ^= flip;
                let block = &bad[start..checksum_at];
                let checksum = Checksum::seeded(options.seed(ID), handle.offset).with(block).finish();
                bad[checksum_at..checksum_at + 4].copy_from_slice(&checksum.to_le_bytes());
                found += u64::from(read_forged(MemoryFile::with(bad), &options, &entries).is_err());
            }
        }
        assert!(found > 0);
    }
    Ok(())
}

/// What the builder returned when the table was finished, read back from the file.
fn summary_of(table: &Arc<TableReader>) -> Result<TableSummary> {
    let properties = table.properties();
    Ok(TableSummary {
        id: ID,
        file_bytes: table.file_bytes(),
        entries: properties.entries,
        inline_bytes: entries_inline_bytes(table)?,
        deletes: properties.deletes,
        smallest: properties.smallest.clone(),
        largest: properties.largest.clone(),
        sequences: properties.sequences,
        references: table.references()?.summary().to_vec(),
    })
}

fn entries_inline_bytes(table: &Arc<TableReader>) -> Result<u64> {
    let mut cursor = TableReader::cursor(table, true);
    let mut bytes = 0;
    cursor.seek_to_first()?;
    while cursor.valid() {
        let (user_key, trailer) = split_internal_key(cursor.key()).expect("an internal key");
        if trailer_kind(trailer) == Some(EntryKind::Inline) {
            bytes += (user_key.len() + cursor.payload().len()) as u64;
        }
        cursor.next()?;
    }
    Ok(bytes)
}

/// Reads everything there is; the results may be wrong, for their checksums are right.
fn read_forged(file: Arc<MemoryFile>, options: &TableOptions, entries: &[Entry]) -> Result<()> {
    let table = open(file, options, 1 << 20)?;
    let mut results = vec![table.verify().map(drop), summary_of(&table).map(drop)];
    for (internal_key, _) in entries {
        let (user_key, trailer) = split_internal_key(internal_key).expect("internal");
        results.push(lookup(&table, user_key, trailer >> 8).map(drop));
        results.push(table.approximate_offset(internal_key).map(drop));
        let mut cursor = TableReader::cursor(&table, true);
        results.push(cursor.seek(internal_key));
    }
    let mut cursor = TableReader::cursor(&table, false);
    results.extend([walk(&mut cursor).map(drop), walk_back(&mut cursor).map(drop)]);
    results.push(table.references().and_then(Iterator::collect::<Result<Vec<_>>>).map(drop));
    results.into_iter().collect()
}

#[test]
fn cut_files_and_files_in_the_wrong_place_are_found() -> Result<()> {
    let entries = entries(40);
    let (_, file) = build(&entries, &options())?;
    let good = file.bytes();
    for len in 0..good.len() {
        let error = open(MemoryFile::with(good[..len].to_vec()), &options(), 0).expect_err("cut short");
        assert!(error.is_corruption());
    }
    let elsewhere = TableOptions { cube: CubeId(1), ..options() };
    assert!(open(file, &elsewhere, 0).expect_err("another cube's table").is_corruption());
    Ok(())
}

#[test]
fn entries_that_no_table_has_are_refused_and_their_source_is_named() {
    let delete = |user_key: &[u8], sequence| (key(user_key, sequence, EntryKind::Delete), vec![]);
    let points = |user_key: &[u8], sequence| (key(user_key, sequence, EntryKind::Pointer), pointer(1, 80, 9));
    for (entries, expected) in [
        ([delete(b"b", 1), delete(b"a", 2)], "keys in ascending order"),
        ([delete(b"a", 1), delete(b"a", 2)], "versions of a key, newest first"),
        ([points(b"a", 1), points(b"b", 2)], "a record for each pointer"),
    ] {
        let error = build(&entries, &options()).expect_err(expected);
        let place = error.as_corruption().expect("a corruption");
        assert_eq!((place.file.to_str(), &place.expected[..]), (Some("input"), expected));
    }
}
