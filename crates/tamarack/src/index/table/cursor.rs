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
    /// Whether a long scan is about to leave the table.
    end: End,
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

/// What a scan that has come a long way has left of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The device has not been asked for all of it.
    Far,
    /// It has.
    Near,
    /// And somebody knows.
    Told,
}

#[derive(Debug)]
struct LoadedBlock {
    block: Arc<Block>,
    offset: u64,
}

impl TableCursor {
    /// A cursor that stands nowhere yet.
    pub fn new(table: Arc<TableReader>, fill_cache: bool) -> Self {
        let ahead = ReadAhead::new(table.read_ahead_max());
        Self::reading_on(table, fill_cache, ahead)
    }

    /// The same for a scan that has come to one end of the table from another one, and `ahead` with it.
    fn reading_on(table: Arc<TableReader>, fill_cache: bool, ahead: ReadAhead) -> Self {
        let top =
            || IndexSlot { block: Arc::clone(table.top()), offset: table.footer().top_index.offset, slot: 0 };
        Self {
            fill_cache,
            ahead,
            end: End::Far,
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
        if self.end == End::Far && self.ahead.has_asked_for_rest(self.table.properties().data_bytes) {
            self.end = End::Near;
        }
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

    /// Midway through a partition, has the device begin with the one that a scan comes to next.
    fn have_next_leaf_read(&self, forward: bool) {
        let is_midway = self.leaf.slot == self.leaf.block.restarts() / 2;
        if self.table.is_partitioned() && is_midway && self.ahead.is_reading_on() {
            let next = if forward { Some(self.top.slot + 1) } else { self.top.slot.checked_sub(1) };
            if let Some(slot) = next {
                self.table.have_partition_read(slot);
            }
        }
    }

    /// Whether a scan has come so far that the device should begin with the next table, too. It is told once.
    #[inline]
    pub fn comes_near_end(&mut self) -> bool {
        let is_near = self.end == End::Near;
        if is_near {
            self.end = End::Told;
        }
        is_near
    }

    /// Has the device begin with `table`, which a scan goes on to from here.
    pub fn have_next_table_read(&self, table: &TableReader, forward: bool) {
        if table.is_partitioned() {
            table.have_partition_read(if forward { 0 } else { table.top().restarts() - 1 });
        }
        table.source().have_read(self.ahead.beginning(forward, table.properties().data_bytes));
    }

    /// A cursor over `table`, which stands nowhere yet, for the scan that goes on there.
    pub fn go_on_in(self, table: Arc<TableReader>, forward: bool) -> Self {
        let ahead = self.ahead.go_on_at(if forward { 0 } else { table.properties().data_bytes });
        Self::reading_on(table, self.fill_cache, ahead)
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
        self.have_next_leaf_read(true);
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
        self.have_next_leaf_read(false);
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
