//! Reads one table: point lookups, sizes, references; [`TableCursor`] walks over it. Shared by any number of
//! threads; all state but the block cache is fixed when the table is opened. The top of the index stays in
//! memory, so that a lookup reads at most one index partition and one data block; so does the filter, if there is memory for it.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};

use super::TableOptions;
use super::block::{Block, Target};
use super::cursor::TableCursor;
use super::filter::Filter;
use super::format::{BlockHandle, Footer, IndexEntry, Properties, decode_pointer, payload_fits};
use super::lookups::Lookups;
use super::references::ReferenceReader;
use super::source::{BlockSource, ReadAhead};
use super::verify::{self, VerifyReport};
use crate::base::error::{Error, Result};
use crate::base::ids::{Sequence, TableId};
use crate::base::keys::hash_user_key;
use crate::base::keys::{self, EntryKind, KeyOrder};
use crate::base::memory::{Allotment, Taken};
use crate::base::pointer::ValuePointer;
use crate::base::sync::Arc;
use crate::env::{Access, File};
use crate::index::cache::{BlockCache, BlockKey};

/// What a lookup found.
#[derive(Debug)]
pub struct TableEntry {
    /// The sequence number of the operation that wrote it.
    pub sequence: Sequence,
    /// What it says about the key.
    pub payload: TablePayload,
}

/// What an entry says about its key.
#[derive(Debug)]
pub enum TablePayload {
    /// It was deleted.
    Delete,
    /// Its value.
    Inline(BlockSlice),
    /// Where its value is.
    Pointer(ValuePointer),
}

#[cfg(test)]
impl TableEntry {
    /// The entry's kind.
    pub fn kind(&self) -> EntryKind {
        match self.payload {
            TablePayload::Delete => EntryKind::Delete,
            TablePayload::Inline(_) => EntryKind::Inline,
            TablePayload::Pointer(_) => EntryKind::Pointer,
        }
    }
}

/// Bytes of a block, which stays in memory with them.
#[derive(Clone)]
pub struct BlockSlice {
    block: Arc<Block>,
    range: Range<usize>,
}

impl Deref for BlockSlice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.block.bytes(self.range.clone())
    }
}

impl fmt::Debug for BlockSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// What a block is read for, which decides which counter counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockUse {
    /// An index partition.
    Index,
    /// A data block.
    Data,
}

/// The filter of an open table.
#[derive(Debug)]
enum LoadedFilter {
    /// It has none, or none that the order of its keys can use.
    None,
    /// There was no memory for it: the table is searched as if it had none.
    LeftOut,
    /// In memory that was taken for it.
    Present { filter: Filter, _memory: Taken },
}

fn read_filter(source: &BlockSource, handle: BlockHandle) -> Result<Filter> {
    Filter::decode(&source.read(handle)?)
        .ok_or_else(|| source.corruption(handle.offset, "a filter", "bytes that encode none"))
}

/// What the entries of an index block lead to. One that is damaged leads nowhere; lookups tell that.
fn index_entries(block: &Block) -> impl Iterator<Item = IndexEntry> {
    (0..block.restarts()).filter_map(|slot| block.index_entry(slot).ok()).map(|(_, entry)| entry)
}

/// An open table.
#[derive(Debug)]
pub struct TableReader {
    source: BlockSource,
    id: TableId,
    options: TableOptions,
    footer: Footer,
    properties: Properties,
    top: Arc<Block>,
    filter: LoadedFilter,
    hashes_keys: bool,
    cache: Arc<BlockCache>,
}

impl TableReader {
    /// Opens table `id` in `file`, which lies at `path`; with its filter, if `filters` has the memory.
    ///
    /// # Errors
    /// Corruption if footer, properties, filter or the top of the index are damaged; `Unsupported` for another
    /// version of the format; `InvalidArgument` if it was written in another order of keys.
    pub fn open(
        file: Arc<dyn File>,
        path: PathBuf,
        id: TableId,
        options: &TableOptions,
        cache: Arc<BlockCache>,
        filters: &Arc<Allotment>,
    ) -> Result<Self> {
        let (mut source, footer) = BlockSource::open(file, path, options.seed(id))?;
        // Advice changes no result: a file system that takes none reads ahead more than it should.
        source.file().advise(Access::Random).ok();
        let properties = Properties::decode(&source.read(footer.properties)?).ok_or_else(|| {
            source.corruption(footer.properties.offset, "the properties of a table", "bytes that encode none")
        })?;
        let name = options.order.comparator().name();
        if properties.comparator != name.as_bytes() {
            return Err(Error::invalid_argument(format!(
                "{} is ordered by {}, not by {name}",
                source.path().display(),
                String::from_utf8_lossy(&properties.comparator)
            )));
        }
        let top = Block::new_index(source.read(footer.top_index)?, &options.order)
            .map_err(|damage| source.damaged(footer.top_index.offset, damage))?;
        let hashes_keys = options.hashes_keys();
        let filter = if footer.filter == BlockHandle::default() || !hashes_keys {
            LoadedFilter::None
        } else if let Some(memory) = filters.take(footer.filter.stored_len.into()) {
            LoadedFilter::Present { filter: read_filter(&source, footer.filter)?, _memory: memory }
        } else {
            LoadedFilter::LeftOut
        };
        source.read_around(properties.value_bytes);
        let options = options.clone();
        Ok(Self { source, id, options, footer, properties, top: Arc::new(top), filter, hashes_keys, cache })
    }

    /// The newest version of `user_key` at or before `sequence`. Reads at most two blocks, and keeps them in the
    /// cache if `fill_cache`.
    pub fn get(&self, user_key: &[u8], sequence: Sequence, fill_cache: bool) -> Result<Option<TableEntry>> {
        let hash = self.hash(user_key);
        if !self.may_contain(hash) {
            return Ok(None);
        }
        Lookups::new(self, fill_cache).get(user_key, hash, sequence)
    }

    /// The hash by which this table, and every other of the same cube, knows `user_key`; 0 if it [has none](Self::hashes_keys).
    pub fn hash(&self, user_key: &[u8]) -> u64 {
        if self.hashes_keys { hash_user_key(user_key) } else { 0 }
    }

    /// Whether keys that are equal have the same [`hash`](Self::hash).
    pub fn hashes_keys(&self) -> bool {
        self.hashes_keys
    }

    /// Whether it may have a user key of this [`hash`](Self::hash). "No" is certain.
    pub fn may_contain(&self, hash: u64) -> bool {
        self.filter().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Has the processor fetch what [`may_contain`](Self::may_contain) looks at.
    #[inline]
    pub fn prefetch_filter(&self, hash: u64) {
        if let Some(filter) = self.filter() {
            filter.prefetch(hash);
        }
    }

    /// Whether it has a filter, so that looking for a key that it does not have costs next to nothing.
    pub fn has_filter(&self) -> bool {
        self.filter().is_some()
    }

    /// Whether it was opened without its filter, because there was no memory for it.
    pub fn is_unfiltered(&self) -> bool {
        matches!(self.filter, LoadedFilter::LeftOut)
    }

    /// A cursor over all entries. With `fill_cache` its blocks stay in the cache; without, they do not, and it reads
    /// further ahead of itself, as compactions want.
    pub fn cursor(table: &Arc<Self>, fill_cache: bool) -> TableCursor {
        TableCursor::new(Arc::clone(table), fill_cache)
    }

    /// About how many bytes of the file, and of log records that entries point to, lie before `internal_key`.
    pub fn approximate_offset(&self, internal_key: &[u8]) -> Result<(u64, u64)> {
        let entry = Lookups::new(self, true).data_block(Target::new(internal_key))?;
        Ok(entry.map_or((self.properties.data_bytes, self.properties.value_bytes), |entry| {
            (entry.handle.offset, entry.value_bytes_before)
        }))
    }

    /// Up to `count` user keys, ascending, behind each of which about as much of the table begins as lies before it and behind the one before it;
    /// the last is at or behind its end. Reads nothing: the top of the index is in memory.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn marks(&self, count: usize) -> Result<Vec<Vec<u8>>> {
        let (top, offset) = (&self.top, self.footer.top_index.offset);
        let distance = top.restarts().div_ceil(count.max(1)).max(1);
        let last_of = |first: usize| (first + distance).min(top.restarts()) - 1;
        let firsts = (0..top.restarts()).step_by(distance);
        let key_at = |slot| top.index_entry(slot).map(|(separator, _)| separator.user_key.to_vec());
        firsts
            .map(|first| key_at(last_of(first)).map_err(|damage| self.source.damaged(offset, damage)))
            .collect()
    }

    /// For every segment of the log that entries point into, the offsets of the records, in ascending order.
    pub fn references(&self) -> Result<ReferenceReader<'_>> {
        if self.footer.references == BlockHandle::default() {
            return Ok(ReferenceReader::empty(&self.source));
        }
        ReferenceReader::new(&self.source, self.footer.references)
    }

    /// Reads and checks the whole file, past the cache.
    pub fn verify(&self) -> Result<VerifyReport> {
        verify::verify(self)
    }

    /// The cache of its blocks.
    #[cfg(test)]
    pub fn cache(&self) -> &BlockCache {
        &self.cache
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.source().path()
    }

    /// What the table says about itself.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.source.blocks_end() + super::format::FOOTER_BYTES as u64
    }

    /// Bytes of memory that the open table takes outside the block cache.
    pub fn resident_bytes(&self) -> usize {
        let filter = self.filter().map_or(0, Filter::memory_bytes);
        let keys = self.properties.smallest.len() + self.properties.largest.len();
        size_of::<Self>() + self.top.memory_bytes() + filter + keys
    }

    /// Bytes that a cursor reads at a time, at most.
    pub(super) fn read_ahead_max(&self) -> u64 {
        self.options.read_ahead_max
    }

    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.options.order
    }

    pub(super) fn source(&self) -> &BlockSource {
        &self.source
    }

    pub(super) fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The filter, if it is in memory.
    pub(super) fn filter(&self) -> Option<&Filter> {
        if let LoadedFilter::Present { filter, .. } = &self.filter { Some(filter) } else { None }
    }

    /// The filter, from the file if there was no memory for it.
    pub(super) fn whole_filter(&self) -> Result<Option<Cow<'_, Filter>>> {
        if self.is_unfiltered() {
            return read_filter(&self.source, self.footer.filter).map(|filter| Some(Cow::Owned(filter)));
        }
        Ok(self.filter().map(Cow::Borrowed))
    }

    /// The top of the index.
    pub(super) fn top(&self) -> &Arc<Block> {
        &self.top
    }

    /// Whether the top of the index leads to partitions rather than to data blocks.
    pub(super) fn is_partitioned(&self) -> bool {
        self.footer.index_levels == 2
    }

    /// Has the device begin to read partition `number` of the index, if there is one.
    pub(super) fn have_partition_read(&self, number: usize) {
        // What is wrong with it is told by who reads it.
        if number < self.top.restarts()
            && let Ok((_, entry)) = self.top.index_entry(number)
        {
            self.source.have_block_read(entry.handle);
        }
    }

    /// Takes its blocks out of the cache, as far as what leads to them is there: soon nobody will ask for them any more.
    pub fn forget_blocks(&self) {
        for entry in index_entries(&self.top) {
            let key = self.block_key(entry.handle);
            if self.is_partitioned()
                && let Some(partition) = self.cache.peek(key)
            {
                index_entries(&partition).for_each(|entry| self.cache.forget(self.block_key(entry.handle)));
            }
            self.cache.forget(key);
        }
    }

    fn block_key(&self, handle: BlockHandle) -> BlockKey {
        BlockKey { cube: self.options.cube, table: self.id, offset: handle.offset }
    }

    /// The block at `handle`, from the cache or the file.
    pub(super) fn block(&self, handle: BlockHandle, block_use: BlockUse, fill: bool) -> Result<Arc<Block>> {
        let key = self.block_key(handle);
        self.cache.get_or_load(key, block_use, fill, || match block_use {
            BlockUse::Data => self.read_block(handle),
            BlockUse::Index => Block::new_index(self.source.read(handle)?, &self.options.order)
                .map_err(|damage| self.source.damaged(handle.offset, damage)),
        })
    }

    /// The data block at `handle`, from the cache, or from the file with what lies behind it.
    pub(super) fn block_ahead(
        &self,
        handle: BlockHandle,
        fill: bool,
        ahead: &mut ReadAhead,
    ) -> Result<Arc<Block>> {
        self.cache.get_or_load(self.block_key(handle), BlockUse::Data, fill, || {
            let raw = self.source.read_ahead(handle, self.properties.data_bytes, ahead)?;
            Block::new(raw).map_err(|damage| self.source.damaged(handle.offset, damage))
        })
    }

    /// The block at `handle` from the file.
    pub(super) fn read_block(&self, handle: BlockHandle) -> Result<Block> {
        Block::new(self.source.read(handle)?).map_err(|damage| self.source.damaged(handle.offset, damage))
    }

    /// The pointer that is the payload at `range` of the data block at `offset`.
    #[inline]
    pub(super) fn pointer(&self, offset: u64, block: &Block, range: Range<usize>) -> Result<ValuePointer> {
        let start = range.start;
        decode_pointer(block.bytes(range)).ok_or_else(|| self.bad_payload(offset, start))
    }

    /// What the entry with `trailer` and the payload at `range` of the data block at `offset` says.
    pub(super) fn entry(
        &self,
        offset: u64,
        block: &Arc<Block>,
        trailer: u64,
        range: Range<usize>,
    ) -> Result<TableEntry> {
        let payload = match keys::trailer_kind(trailer) {
            Some(EntryKind::Delete) if range.is_empty() => TablePayload::Delete,
            Some(EntryKind::Inline) => TablePayload::Inline(BlockSlice { block: Arc::clone(block), range }),
            Some(EntryKind::Pointer) => TablePayload::Pointer(self.pointer(offset, block, range)?),
            _ => return Err(self.bad_payload(offset, range.start)),
        };
        Ok(TableEntry { sequence: keys::trailer_sequence(trailer), payload })
    }

    /// Checks the payload of an entry in the data block at `offset`.
    pub(super) fn check_payload(
        &self,
        offset: u64,
        trailer: u64,
        block: &Block,
        range: Range<usize>,
    ) -> Result<()> {
        let start = range.start;
        match keys::trailer_kind(trailer) {
            Some(kind) if payload_fits(kind, block.bytes(range)) => Ok(()),
            _ => Err(self.bad_payload(offset, start)),
        }
    }

    fn bad_payload(&self, offset: u64, position: usize) -> Error {
        let found = format!("other bytes at position {position} of the raw block");
        self.source.corruption(offset, "a payload of the entry's kind", found)
    }
}
