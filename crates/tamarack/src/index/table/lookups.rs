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

#[derive(Debug)]
struct DataBlock {
    block: Arc<Block>,
    offset: u64,
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
        let target = Target { user_key, trailer: keys::trailer(sequence, EntryKind::SEEK) };
        let Some(entry) = self.data_block(target)? else { return Ok(None) };
        let offset = entry.handle.offset;
        if self.data.as_ref().is_none_or(|data| data.offset != offset) {
            // The old one is let go of first.
            self.data = None;
            let block = self.table.block(entry.handle, BlockUse::Data, self.fill_cache)?;
            self.data = Some(DataBlock { block, offset });
        }
        let data = self.data.as_ref().expect("it was loaded");
        let hash = self.table.hashes_keys().then_some(hash);
        let found = data.block.find(self.table.order(), target, hash);
        match found.map_err(|damage| self.table.source().damaged(offset, damage))? {
            Some(Found { trailer, payload }) => {
                self.table.entry(offset, &data.block, trailer, payload).map(Some)
            }
            None => Ok(None),
        }
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
