//! Walks over a table in both directions.
//!
//! The cursor stands on a slot of the top index, a slot of a partition (if there are partitions), and a position in
//! a data block. Whenever it is valid all of these agree. It owns one key buffer for the whole walk.

use super::block::{Block, BlockPosition, Target};
use super::format::{Decoded, IndexEntry};
use super::reader::{BlockUse, TableReader};
use super::source::ReadAhead;
use crate::base::error::Result;
use crate::base::keys::{EntryKind, trailer_kind};
use crate::base::pointer::POINTER_BYTES;
use crate::base::sync::Arc;
use crate::index::cursor::Cursor;

/// A position among the entries of a table. It keeps the table open.
#[derive(Debug)]
pub struct TableCursor {
    table: Arc<TableReader>,
    fill_cache: bool,
    /// What it has read ahead.
    ahead: ReadAhead,
    top: IndexSlot,
    /// The slot in the partition that `top` leads to; unused if the top leads to data blocks itself.
    leaf: IndexSlot,
    data: Option<LoadedBlock>,
    position: BlockPosition,
    /// The payload, if the entry is a pointer.
    pointer: [u8; POINTER_BYTES],
    kind: EntryKind,
}

/// A place in an index block.
#[derive(Debug)]
struct IndexSlot {
    block: Arc<Block>,
    offset: u64,
    slot: usize,
}

#[derive(Debug)]
struct LoadedBlock {
    block: Arc<Block>,
    offset: u64,
}

impl TableCursor {
    /// A cursor that stands nowhere yet.
    pub fn new(table: Arc<TableReader>, fill_cache: bool) -> Self {
        let top =
            || IndexSlot { block: Arc::clone(table.top()), offset: table.footer().top_index.offset, slot: 0 };
        Self {
            fill_cache,
            ahead: ReadAhead::new(table.read_ahead_max()),
            top: top(),
            leaf: top(),
            data: None,
            position: BlockPosition::default(),
            pointer: [0; POINTER_BYTES],
            kind: EntryKind::Delete,
            table,
        }
    }

    /// Runs a move; after an error the cursor stands nowhere.
    fn moving(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let result = step(self).and_then(|()| if self.position.valid() { self.present() } else { Ok(()) });
        if result.is_err() {
            self.position.invalidate();
        }
        result
    }

    /// Prepares kind and payload of the entry it stands on.
    #[inline]
    fn present(&mut self) -> Result<()> {
        let data = self.data.as_ref().expect("a valid position is in a block");
        let trailer = self.position.trailer();
        self.kind = trailer_kind(trailer).expect("entries are decoded with a kind");
        match self.kind {
            EntryKind::Pointer => {
                let pointer = self.table.pointer(data.offset, &data.block, self.position.payload())?;
                self.pointer = pointer.to_bytes();
                Ok(())
            }
            EntryKind::Delete => {
                self.table.check_payload(data.offset, trailer, &data.block, self.position.payload())
            }
            EntryKind::Inline => Ok(()),
        }
    }

    /// Runs `step` on the position in the loaded block.
    fn in_block(
        &mut self,
        step: impl FnOnce(&mut BlockPosition, &Block, &TableReader) -> Decoded<()>,
    ) -> Result<()> {
        let data = self.data.as_ref().expect("a block was loaded before");
        step(&mut self.position, &data.block, &self.table)
            .map_err(|damage| self.table.source().damaged(data.offset, damage))
    }

    /// Loads the data block that the index slots lead to.
    fn load_data(&mut self) -> Result<()> {
        self.position.invalidate();
        let handle = self.index_entry(self.leaf_slot())?.handle;
        if self.data.as_ref().is_some_and(|data| data.offset == handle.offset) {
            return Ok(());
        }
        // Let go of the old block first, so that a failure leaves none.
        self.data = None;
        let block = self.table.block_ahead(handle, self.fill_cache, &mut self.ahead)?;
        self.data = Some(LoadedBlock { block, offset: handle.offset });
        Ok(())
    }

    /// Loads the partition that the top slot leads to, if the index has partitions.
    fn load_leaf(&mut self) -> Result<()> {
        if !self.table.is_partitioned() {
            return Ok(());
        }
        let handle = self.index_entry(&self.top)?.handle;
        if self.leaf.offset != handle.offset {
            let block = self.table.block(handle, BlockUse::Index, self.fill_cache)?;
            self.leaf = IndexSlot { block, offset: handle.offset, slot: 0 };
        }
        Ok(())
    }

    /// The slot that leads to data blocks.
    fn leaf_slot(&self) -> &IndexSlot {
        if self.table.is_partitioned() { &self.leaf } else { &self.top }
    }

    fn leaf_slot_mut(&mut self) -> &mut IndexSlot {
        if self.table.is_partitioned() { &mut self.leaf } else { &mut self.top }
    }

    fn index_entry(&self, at: &IndexSlot) -> Result<IndexEntry> {
        let entry = at.block.index_entry(at.slot);
        entry.map(|(_, entry)| entry).map_err(|damage| self.table.source().damaged(at.offset, damage))
    }

    fn lower_bound(&self, at: &IndexSlot, target: Target<'_>) -> Result<usize> {
        let slot = at.block.lower_bound_restart(self.table.order(), target);
        slot.map_err(|damage| self.table.source().damaged(at.offset, damage))
    }

    /// Goes to the first entry of the next data block; invalid if there is none.
    fn next_block(&mut self) -> Result<()> {
        self.block_behind(1)
    }

    /// Goes to the first entry of the data block that is so many behind the present one, and reads none in between; invalid if
    /// there is none.
    fn block_behind(&mut self, mut blocks: usize) -> Result<()> {
        self.position.invalidate();
        loop {
            let leaf = self.leaf_slot_mut();
            let left = leaf.block.restarts() - 1 - leaf.slot;
            if blocks <= left {
                leaf.slot += blocks;
                break;
            }
            if !self.table.is_partitioned() || self.top.slot + 1 == self.top.block.restarts() {
                return Ok(());
            }
            blocks -= left + 1;
            self.top.slot += 1;
            self.load_leaf()?;
            self.leaf.slot = 0;
        }
        self.load_data()?;
        self.in_block(|position, block, _| position.seek_to_first(block))
    }

    /// Goes to the last entry of the previous data block; invalid if there is none.
    fn prev_block(&mut self) -> Result<()> {
        self.position.invalidate();
        let leaf = self.leaf_slot_mut();
        if leaf.slot > 0 {
            leaf.slot -= 1;
        } else if self.table.is_partitioned() && self.top.slot > 0 {
            self.top.slot -= 1;
            self.load_leaf()?;
            self.leaf.slot = self.leaf.block.restarts() - 1;
        } else {
            return Ok(());
        }
        self.load_data()?;
        self.in_block(|position, block, _| position.seek_to_last(block))
    }

    /// Goes to the first entry of the data block that is so many behind the present one, and reads none in between; invalid if
    /// there is none.
    ///
    /// # Errors
    /// `Io`, `Corruption`; it stands nowhere then.
    pub fn skip_blocks(&mut self, blocks: usize) -> Result<()> {
        assert!(self.valid(), "only a valid cursor moves");
        self.moving(|cursor| cursor.block_behind(blocks))
    }

    /// How many entries the data block has that it stands in. Walks over them.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn entries_of_block(&self) -> Result<u64> {
        assert!(self.valid(), "only a valid cursor is in a block");
        let data = self.data.as_ref().expect("a valid position is in a block");
        let count = || {
            let (mut position, mut entries) = (BlockPosition::default(), 0);
            position.seek_to_first(&data.block)?;
            while position.valid() {
                entries += 1;
                position.next(&data.block)?;
            }
            Ok(entries)
        };
        count().map_err(|damage| self.table.source().damaged(data.offset, damage))
    }

    fn seek_to(&mut self, target: Target<'_>) -> Result<()> {
        self.position.invalidate();
        let slot = self.lower_bound(&self.top, target)?;
        if slot == self.top.block.restarts() {
            return Ok(());
        }
        self.top.slot = slot;
        if self.table.is_partitioned() {
            self.load_leaf()?;
            let slot = self.lower_bound(&self.leaf, target)?;
            if slot == self.leaf.block.restarts() {
                let expected = "a separator at or after that of the top index";
                return Err(self.table.source().corruption(self.leaf.offset, expected, "none"));
            }
            self.leaf.slot = slot;
        }
        self.load_data()?;
        self.in_block(|position, block, table| position.seek(block, table.order(), target))?;
        if self.position.valid() { Ok(()) } else { self.next_block() }
    }
}

impl Cursor for TableCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.position.valid()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.moving(|cursor| {
            cursor.position.invalidate();
            cursor.top.slot = 0;
            cursor.load_leaf()?;
            cursor.leaf_slot_mut().slot = 0;
            cursor.load_data()?;
            cursor.in_block(|position, block, _| position.seek_to_first(block))
        })
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.moving(|cursor| {
            cursor.position.invalidate();
            cursor.top.slot = cursor.top.block.restarts() - 1;
            cursor.load_leaf()?;
            let leaf = cursor.leaf_slot_mut();
            leaf.slot = leaf.block.restarts() - 1;
            cursor.load_data()?;
            cursor.in_block(|position, block, _| position.seek_to_last(block))
        })
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.moving(|cursor| cursor.seek_to(Target::new(target)))
    }

    fn next(&mut self) -> Result<()> {
        assert!(self.valid(), "only a valid cursor moves");
        self.moving(|cursor| {
            cursor.in_block(|position, block, _| position.next(block))?;
            if cursor.position.valid() { Ok(()) } else { cursor.next_block() }
        })
    }

    fn prev(&mut self) -> Result<()> {
        assert!(self.valid(), "only a valid cursor moves");
        self.moving(|cursor| {
            cursor.in_block(|position, block, _| position.prev(block))?;
            if cursor.position.valid() { Ok(()) } else { cursor.prev_block() }
        })
    }

    fn key(&self) -> &[u8] {
        assert!(self.valid(), "only a valid cursor has a key");
        self.position.key()
    }

    fn payload(&self) -> &[u8] {
        assert!(self.valid(), "only a valid cursor has a payload");
        self.present_payload()
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.valid().then(|| (self.position.key(), self.present_payload()))
    }
}

impl TableCursor {
    fn present_payload(&self) -> &[u8] {
        match self.kind {
            EntryKind::Pointer => &self.pointer,
            EntryKind::Delete => &[],
            EntryKind::Inline => {
                let data = self.data.as_ref().expect("a valid position is in a block");
                data.block.bytes(self.position.payload())
            }
        }
    }
}
