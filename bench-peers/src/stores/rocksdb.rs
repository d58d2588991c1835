//! RocksDB, with values among the keys or in blob files.

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, DEFAULT_COLUMN_FAMILY_NAME, Options,
    ReadOptions, WaitForCompactOptions, WriteBatch, WriteOptions,
};
use tamarack_bench::{Change, Cursor, KeyRange, Store, Written};

use super::{SEPARATED_BYTES_MIN, Setting};

/// Blobs are collected by reading so much of them at a time; by itself RocksDB reads one by one.
const COLLECTED_BYTES: u64 = 2 << 20;

/// An open database, and how it is read and written, without a sync and with one.
pub struct Rocksdb {
    db: DB,
    reading: ReadOptions,
    writing: [WriteOptions; 2],
}

/// Opens one, which need not be there.
pub fn open(path: &Path, setting: Setting, blobs: bool) -> Result<Rocksdb, String> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    // Flushes and compactions write through the kernel's cache either way.
    options.set_use_direct_reads(setting.direct);
    if let Some(bytes) = setting.cache_bytes {
        // One cache for both, of the kind that is the default.
        let cache = Cache::new_hyper_clock_cache(bytes, 0);
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        options.set_block_based_table_factory(&blocks);
        if blobs {
            options.set_blob_cache(&cache);
        }
    }
    if blobs {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(SEPARATED_BYTES_MIN.into());
        options.set_blob_compression_type(DBCompressionType::None);
        options.set_enable_blob_gc(true);
        options.set_blob_compaction_readahead_size(COLLECTED_BYTES);
    }
    let entries = [(DEFAULT_COLUMN_FAMILY_NAME, options.clone())];
    let db = DB::open_cf_with_opts(&options, path, entries).map_err(|error| error.to_string())?;
    Ok(Rocksdb { db, reading: ReadOptions::default(), writing: [writing(false), writing(true)] })
}

fn writing(sync: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(sync);
    options
}

impl Rocksdb {
    fn writing(&self, sync: bool) -> &WriteOptions {
        &self.writing[usize::from(sync)]
    }
}

impl Store for Rocksdb {
    type Error = rocksdb::Error;
    type Cursor<'a> = Walk<'a>;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), rocksdb::Error> {
        self.db.put_opt(key, value, self.writing(sync))
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), rocksdb::Error> {
        self.db.delete_opt(key, self.writing(sync))
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), rocksdb::Error> {
        let mut batch = WriteBatch::default();
        for change in changes {
            match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
            }
        }
        self.db.write_opt(batch, self.writing(sync))
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, rocksdb::Error> {
        let found = self.db.get_pinned_opt(key, &self.reading)?;
        value.clear();
        Ok(found.is_some_and(|found| {
            value.extend_from_slice(&found);
            true
        }))
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, rocksdb::Error> {
        let entries = self.db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME).expect("it was opened by name");
        let found = self.db.batched_multi_get_cf_opt(entries, keys, false, &self.reading);
        found.into_iter().map(|found| Ok(found?.map(|value| value.to_vec()))).collect()
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Walk<'_>, rocksdb::Error> {
        let mut options = ReadOptions::default();
        match range.0 {
            Bound::Included(key) => options.set_iterate_lower_bound(key),
            Bound::Excluded(key) => options.set_iterate_lower_bound([key, &[0]].concat()),
            Bound::Unbounded => {}
        }
        match range.1 {
            Bound::Excluded(key) => options.set_iterate_upper_bound(key),
            Bound::Included(key) => options.set_iterate_upper_bound([key, &[0]].concat()),
            Bound::Unbounded => {}
        }
        Ok(Walk { iter: self.db.raw_iterator_opt(options), backward, begun: false })
    }

    fn settle(&self) -> Result<Duration, rocksdb::Error> {
        self.db.flush_wal(true)?;
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map(|()| Duration::ZERO)
    }

    fn written(&self) -> Option<Written> {
        None
    }
}

/// A walk through the database.
pub struct Walk<'a> {
    iter: DBRawIterator<'a>,
    backward: bool,
    begun: bool,
}

impl Cursor for Walk<'_> {
    type Error = rocksdb::Error;

    fn advance(&mut self) -> Result<bool, rocksdb::Error> {
        match (std::mem::replace(&mut self.begun, true), self.backward) {
            (false, false) => self.iter.seek_to_first(),
            (false, true) => self.iter.seek_to_last(),
            (true, false) => self.iter.next(),
            (true, true) => self.iter.prev(),
        }
        if self.iter.valid() { Ok(true) } else { self.iter.status().map(|()| false) }
    }

    fn key(&self) -> &[u8] {
        self.iter.key().unwrap_or_default()
    }

    fn value(&mut self) -> Result<&[u8], rocksdb::Error> {
        Ok(self.iter.value().unwrap_or_default())
    }
}
