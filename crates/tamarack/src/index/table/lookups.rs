//! Point lookups in one table. Those of ascending keys share what they can: each one goes on in the index where the one
//! before it ended, and keeps the blocks that it was in.
//!
//! Never asks the filter: whoever looks up many keys asks it for all of them first.

use super::block::{Block, Found, Target};
use super::format::IndexEntry;
use super::reader::{BlockUse, TableEntry, TableReader};
use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::keys::{self, EntryKind};
use crate::base::sync::Arc;

/// Lookups whose internal keys ascend.
#[derive(Debug)]
pub struct Lookups<'a> {
    table: &'a TableReader,
    fill_cache: bool,
    /// No separator of the top index before this slot is at or after a key to come.
    top_slot: usize,
    /// The partition to which `top_slot` leads, if there are partitions and one was needed.
    partition: Option<Partition>,
    data: Option<DataBlock>,
}

#[derive(Debug)]
struct Partition {
    block: Arc<Block>,
    offset: u64,
    /// As in the top index.
    slot: usize,
}

/// A data block of a table.
#[derive(Debug)]
pub struct DataBlock {
    block: Arc<Block>,
    offset: u64,
}

fn target(user_key: &[u8], sequence: Sequence) -> Target<'_> {
    Target { user_key, trailer: keys::trailer(sequence, EntryKind::SEEK) }
}

impl DataBlock {
    /// Has the processor fetch what tells where an entry of this hash would be.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        self.block.prefetch_bucket(hash);
    }

    /// Has the processor fetch what is there.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) {
        self.block.prefetch_entry(hash);
    }

    /// The newest version of `user_key`, whose hash is `hash`, at or before `sequence`, if this block of `table` has it.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub fn find(
        &self,
        table: &TableReader,
        user_key: &[u8],
        hash: u64,
        sequence: Sequence,
    ) -> Result<Option<TableEntry>> {
        let hash = table.hashes_keys().then_some(hash);
        let found = self.block.find(table.order(), target(user_key, sequence), hash);
        match found.map_err(|damage| table.source().damaged(self.offset, damage))? {
            Some(Found { trailer, payload }) => {
                table.entry(self.offset, &self.block, trailer, payload).map(Some)
            }
            None => Ok(None),
        }
    }
}

impl<'a> Lookups<'a> {
    /// Lookups in `table`, which keep blocks in the cache if `fill_cache`.
    pub fn new(table: &'a TableReader, fill_cache: bool) -> Self {
        Self { table, fill_cache, top_slot: 0, partition: None, data: None }
    }

    /// The newest version of `user_key` at or before `sequence`. User keys must not descend from one call to the next,
    /// nor sequence numbers ascend while the user key stays the same. `hash` is that of the user key.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn get(&mut self, user_key: &[u8], hash: u64, sequence: Sequence) -> Result<Option<TableEntry>> {
        let table = self.table;
        match self.block(target(user_key, sequence))? {
            Some(block) => block.find(table, user_key, hash, sequence),
            None => Ok(None),
        }
    }

    /// The block in which the newest version of `user_key` at or before `sequence` is, if the table has one: there is none if all of the table
    /// lies before it.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    #[inline]
    pub fn into_block(mut self, user_key: &[u8], sequence: Sequence) -> Result<Option<DataBlock>> {
        let is_there = self.block(target(user_key, sequence))?.is_some();
        Ok(self.data.filter(|_| is_there))
    }

    /// The data block in which `target` would lie; none if all of the table lies before it.
    fn block(&mut self, target: Target<'_>) -> Result<Option<&DataBlock>> {
        let Some(entry) = self.data_block(target)? else { return Ok(None) };
        let offset = entry.handle.offset;
        if self.data.as_ref().is_none_or(|data| data.offset != offset) {
            // The old one is let go of first.
            self.data = None;
            let block = self.table.block(entry.handle, BlockUse::Data, self.fill_cache)?;
            self.data = Some(DataBlock { block, offset });
        }
        Ok(self.data.as_ref())
    }

    /// The index entry of the data block in which `target` lies, if the table has it.
    pub fn data_block(&mut self, target: Target<'_>) -> Result<Option<IndexEntry>> {
        let top = self.table.top();
        let top_offset = self.table.footer().top_index.offset;
        let Some((slot, entry)) = self.index_entry(top, top_offset, self.top_slot, target)? else {
            self.top_slot = top.restarts();
            return Ok(None);
        };
        let same_partition = slot == self.top_slot;
        self.top_slot = slot;
        if !self.table.is_partitioned() {
            return Ok(Some(entry));
        }
        let Partition { block, offset, slot } = match self.partition.take() {
            Some(partition) if same_partition => partition,
            _ => {
                let block = self.table.block(entry.handle, BlockUse::Index, self.fill_cache)?;
                Partition { block, offset: entry.handle.offset, slot: 0 }
            }
        };
        let found = self.index_entry(&block, offset, slot, target)?;
        let slot = found.map_or(block.restarts(), |(slot, _)| slot);
        self.partition = Some(Partition { block, offset, slot });
        Ok(found.map(|(_, entry)| entry))
    }

    /// The first entry at or after `target` of the index block at `offset`, in slot `from` or behind it.
    fn index_entry(
        &self,
        block: &Block,
        offset: u64,
        from: usize,
        target: Target<'_>,
    ) -> Result<Option<(usize, IndexEntry)>> {
        let find = || {
            let slot = block.lower_bound_restart_from(self.table.order(), target, from)?;
            if slot == block.restarts() {
                return Ok(None);
            }
            block.index_entry(slot).map(|(_, entry)| Some((slot, entry)))
        };
        find().map_err(|damage| self.table.source().damaged(offset, damage))
    }
}
