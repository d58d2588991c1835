//! RocksDB, with values among the keys or in blob files.

use std::ops::Bound;
use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBRawIterator, Options, ReadOptions,
    WaitForCompactOptions, WriteBatch, WriteOptions,
};
use tamarack_bench::{Change, Cursor, KeyRange, Store, Written};

use super::{SEPARATED_BYTES_MIN, Setting};

/// An open database.
pub struct Rocksdb(DB);

/// Opens one, which need not be there.
pub fn open(path: &Path, setting: Setting, blobs: bool) -> Result<Rocksdb, String> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_compression_type(DBCompressionType::None);
    // Flushes and compactions write through the kernel's cache either way.
    options.set_use_direct_reads(setting.direct);
    if let Some(bytes) = setting.cache_bytes {
        // One cache for both.
        let cache = Cache::new_lru_cache(bytes);
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
    }
    DB::open(&options, path).map(Rocksdb).map_err(|error| error.to_string())
}

fn writing(sync: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(sync);
    options
}

impl Store for Rocksdb {
    type Error = rocksdb::Error;
    type Cursor<'a> = Walk<'a>;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), rocksdb::Error> {
        self.0.put_opt(key, value, &writing(sync))
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), rocksdb::Error> {
        self.0.delete_opt(key, &writing(sync))
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), rocksdb::Error> {
        let mut batch = WriteBatch::default();
        for change in changes {
            match change {
                Change::Put(key, value) => batch.put(key, value),
                Change::Delete(key) => batch.delete(key),
            }
        }
        self.0.write_opt(batch, &writing(sync))
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, rocksdb::Error> {
        let found = self.0.get_pinned(key)?;
        value.clear();
        Ok(found.is_some_and(|found| {
            value.extend_from_slice(&found);
            true
        }))
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, rocksdb::Error> {
        self.0.multi_get(keys).into_iter().collect()
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
        Ok(Walk { iter: self.0.raw_iterator_opt(options), backward, begun: false })
    }

    fn settle(&self) -> Result<(), rocksdb::Error> {
        self.0.flush_wal(true)?;
        self.0.wait_for_compact(&WaitForCompactOptions::default())
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
