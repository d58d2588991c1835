//! The caches of the index: blocks of tables by bytes, open tables by number.
//!
//! Both may be shared by any number of threads, and both let one thread load what several miss at the same time.
//! What is evicted lives on while somebody uses it. A block cache may serve several cubes that have nothing in common (a checkpoint and its
//! original name other tables alike); while they are open table ids are never reused, so nothing ever needs to be invalidated. But the blocks of a table that goes are let go of with it: a compaction
//! replaces whole tables, and what was hot in them would be long in the way of what comes instead.

use std::fmt;
use std::path::PathBuf;

use super::table::TableOptions;
use super::table::block::Block;
use super::table::reader::{BlockUse, TableReader};
use crate::base::cache::{Cache, Weighter};
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, TableId};
use crate::base::memory::Allotment;
use crate::base::sync::{Arc, AtomicU64, Ordering};
use crate::env::Fs;

/// Names a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// The cube.
    pub cube: CubeId,
    /// The table.
    pub table: TableId,
    /// Byte offset of the block in the table's file.
    pub offset: u64,
}

#[derive(Debug, Clone)]
struct BlockWeight;

impl Weighter<BlockKey, Arc<Block>> for BlockWeight {
    fn weight(&self, _key: &BlockKey, block: &Arc<Block>) -> u64 {
        (size_of::<BlockKey>() + block.memory_bytes()) as u64
    }
}

/// What a block cache has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockCacheStats {
    /// Blocks that were in the cache.
    pub hits: u64,
    /// Blocks that were not.
    pub misses: u64,
    /// Bytes of blocks in the cache.
    pub bytes: u64,
    /// Index partitions read from the device.
    pub index_block_reads: u64,
    /// Data blocks read from the device.
    pub data_block_reads: u64,
}

/// Blocks of tables in memory.
#[derive(Debug)]
pub struct BlockCache {
    blocks: Cache<BlockKey, Arc<Block>, BlockWeight>,
    hits: AtomicU64,
    index_block_reads: AtomicU64,
    data_block_reads: AtomicU64,
}

/// Bytes of a typical block, from which the cache guesses how many it will hold.
const TYPICAL_BLOCK_BYTES: u64 = 4096;

impl BlockCache {
    /// A cache of about `capacity_bytes`; with 0 it keeps nothing.
    pub fn new(capacity_bytes: u64) -> Self {
        let blocks = usize::try_from(capacity_bytes / TYPICAL_BLOCK_BYTES).unwrap_or(usize::MAX).max(1);
        Self {
            blocks: Cache::with_weighter(blocks, capacity_bytes, BlockWeight),
            hits: AtomicU64::new(0),
            index_block_reads: AtomicU64::new(0),
            data_block_reads: AtomicU64::new(0),
        }
    }

    /// The block named `key`, from the cache or from `load`. Without `fill` a loaded block is not kept, and a
    /// cached one is not taken as used.
    pub fn get_or_load(
        &self,
        key: BlockKey,
        block_use: BlockUse,
        fill: bool,
        load: impl FnOnce() -> Result<Block>,
    ) -> Result<Arc<Block>> {
        let mut missed = false;
        let load = || {
            missed = true;
            load().map(Arc::new)
        };
        let block = if fill {
            self.blocks.get_or_insert_with(&key, load)
        } else {
            self.blocks.peek(&key).map_or_else(load, Ok)
        };
        let counter = match block_use {
            _ if !missed => &self.hits,
            BlockUse::Index => &self.index_block_reads,
            BlockUse::Data => &self.data_block_reads,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        block
    }

    /// The block named `key`, if it is there; that is no use of it.
    pub fn peek(&self, key: BlockKey) -> Option<Arc<Block>> {
        self.blocks.peek(&key)
    }

    /// Lets go of a block that nobody will ask for.
    pub fn forget(&self, key: BlockKey) {
        self.blocks.remove(&key);
    }

    /// What it has done so far.
    pub fn stats(&self) -> BlockCacheStats {
        let index_block_reads = self.index_block_reads.load(Ordering::Relaxed);
        let data_block_reads = self.data_block_reads.load(Ordering::Relaxed);
        BlockCacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: index_block_reads + data_block_reads,
            bytes: self.blocks.weight(),
            index_block_reads,
            data_block_reads,
        }
    }
}

/// Open tables of one cube.
pub struct TableCache {
    fs: Arc<dyn Fs>,
    path_of: Box<dyn Fn(TableId) -> PathBuf + Send + Sync>,
    options: TableOptions,
    blocks: Arc<BlockCache>,
    filters: Arc<Allotment>,
    tables: Cache<TableId, Arc<TableReader>>,
}

impl fmt::Debug for TableCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCache").field("open", &self.tables.len()).finish_non_exhaustive()
    }
}

impl TableCache {
    /// A cache of at most `open_tables_max` tables, which lie where `path_of` says, and whose filters take their memory from
    /// `filters`.
    pub fn new(
        fs: Arc<dyn Fs>,
        path_of: impl Fn(TableId) -> PathBuf + Send + Sync + 'static,
        options: TableOptions,
        blocks: Arc<BlockCache>,
        filters: Arc<Allotment>,
        open_tables_max: usize,
    ) -> Self {
        let tables = Cache::new(open_tables_max.max(1));
        Self { fs, path_of: Box::new(path_of), options, blocks, filters, tables }
    }

    /// The open table `id`; opens it on a miss.
    pub fn get(&self, id: TableId) -> Result<Arc<TableReader>> {
        self.tables.get_or_insert_with(&id, || self.open(id))
    }

    /// Table `id` if it is open; that is no use of it.
    pub fn peek(&self, id: TableId) -> Option<Arc<TableReader>> {
        self.tables.peek(&id)
    }

    /// From now on at most so many tables are open.
    pub fn set_open_max(&self, tables_max: usize) {
        self.tables.set_capacity(tables_max as u64);
    }

    /// Lets go of a table whose file is about to be deleted, and of its blocks. It is closed when its last user is done.
    pub fn forget(&self, id: TableId) {
        if let Some((_, table)) = self.tables.remove(&id) {
            table.forget_blocks();
        }
    }

    /// How many tables it holds open.
    pub fn open_tables(&self) -> usize {
        self.tables.len()
    }

    /// How many of them were opened without their filter, because there was no memory for it.
    pub fn unfiltered_tables(&self) -> usize {
        self.tables.iter().filter(|(_, table)| table.is_unfiltered()).count()
    }

    /// Bytes of memory that its tables take outside the block cache.
    pub fn resident_bytes(&self) -> usize {
        self.tables.iter().map(|(_, table)| table.resident_bytes()).sum()
    }

    fn open(&self, id: TableId) -> Result<Arc<TableReader>> {
        let path = (self.path_of)(id);
        let file = self.fs.open_read(&path).map_err(|error| Error::io("open", &path, error))?;
        let blocks = Arc::clone(&self.blocks);
        let table = TableReader::open(file, path, id, &self.options, blocks, &self.filters)?;
        Ok(Arc::new(table))
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::{Entry, ID, build, key, options, pointer};
    use super::*;
    use crate::base::ids::Sequence;
    use crate::base::keys::EntryKind;
    use crate::index::table::memory_file::MemoryFs;

    #[test]
    fn the_blocks_of_a_table_go_with_it() -> Result<()> {
        let fs = Arc::new(MemoryFs::default());
        let blocks = Arc::new(BlockCache::new(64 << 20));
        let path_of = |id: TableId| PathBuf::from(format!("{}.table", id.0));
        let open_max = 10;
        let tables = TableCache::new(
            Arc::clone(&fs) as Arc<dyn Fs>,
            path_of,
            options(),
            Arc::clone(&blocks),
            Allotment::unlimited(),
            open_max,
        );
        let other = TableId(ID.0 + 1);
        // With and without partitions of the index.
        for count in [300_u32, 60_000] {
            let name = |number: u32| format!("user{number:06}").into_bytes();
            let entry = |number| (key(&name(number), 1, EntryKind::Pointer), pointer(1, number * 2000, 1000));
            let entries: Vec<Entry> = (0..count).map(entry).collect();
            let (_, file) = build(&entries, &options())?;
            fs.files.lock().insert(path_of(ID), file);
            let before = blocks.stats().bytes;
            let table = tables.get(ID)?;
            for number in (0..count).step_by(50) {
                assert!(table.get(&name(number), Sequence::MAX, true)?.is_some());
            }
            assert!(blocks.stats().bytes - before > u64::from(count) * 8);
            tables.forget(other);
            assert!(blocks.stats().bytes > before, "another table went");
            tables.forget(ID);
            assert_eq!(blocks.stats().bytes, before);
            assert!(table.get(&name(0), Sequence::MAX, true)?.is_some(), "who has it goes on with it");
            table.forget_blocks();
        }
        Ok(())
    }
}
