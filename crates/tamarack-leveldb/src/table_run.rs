//! Tables whose ranges of keys follow one another, read as one sequence of entries. One of them is open at a time, and one block of
//! it in memory.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::block::Block;
use crate::context::Context;
use crate::edit::NewTable;
use crate::error::{Damage, Error, Result};
use crate::file::SourceFile;
use crate::keys::{self, Trailer};
use crate::loss::Covers;
use crate::table::{self, DataBlock, Handle};
use crate::walk;

/// A table that is to be read.
#[derive(Debug, Clone)]
pub struct TableFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// No user's key in it is before this one.
    pub smallest: Vec<u8>,
    /// No user's key in it is behind this one.
    pub largest: Vec<u8>,
    /// Its first and last internal key, if the manifest says.
    pub ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl TableFile {
    /// The table at `path` as the manifest describes it.
    pub fn of(table: &NewTable, path: PathBuf) -> Self {
        Self {
            path,
            bytes: table.bytes,
            smallest: keys::user_key(&table.smallest).to_vec(),
            largest: keys::user_key(&table.largest).to_vec(),
            ends: Some((table.smallest.clone(), table.largest.clone())),
        }
    }

    /// What the loss of all of it covers.
    pub fn all_keys(&self) -> Covers {
        Covers::Keys { from: self.first_key(), up_to: self.last_key() }
    }

    /// The key before which the table had none, if that is known.
    fn first_key(&self) -> Option<Vec<u8>> {
        self.ends.is_some().then(|| self.smallest.clone())
    }

    /// The key behind which the table had none, if that is known.
    fn last_key(&self) -> Option<Vec<u8>> {
        self.ends.is_some().then(|| self.largest.clone())
    }
}

/// Tables in order.
#[derive(Debug)]
pub struct TableRun {
    waiting: VecDeque<TableFile>,
    open: Option<OpenTable>,
    /// The internal key of the entry.
    key: Vec<u8>,
    trailer: Trailer,
    packed: Vec<u8>,
}

/// The table that is being read.
#[derive(Debug)]
struct OpenTable {
    file: SourceFile,
    about: TableFile,
    blocks: VecDeque<DataBlock>,
    block: Block,
    handle: Handle,
    /// The key up to which everything was read.
    before: Option<Vec<u8>>,
    /// Where the block ends in the order of keys.
    up_to: Option<Vec<u8>>,
    /// Bytes of blocks that have been dealt with.
    bytes_read: u64,
    has_entries: bool,
    is_damaged: bool,
}

impl TableRun {
    /// Stands before the first entry of `tables`.
    pub fn new(tables: impl IntoIterator<Item = TableFile>) -> Self {
        Self {
            waiting: tables.into_iter().collect(),
            open: None,
            key: Vec::new(),
            trailer: Trailer::new(0, keys::Kind::Deletion),
            packed: Vec::new(),
        }
    }

    /// Goes to the next entry; `false` behind the last one.
    ///
    /// # Errors
    /// [`Error::Damage`] unless it is left out; [`Error::Io`].
    pub fn advance(&mut self, context: &mut Context) -> Result<bool> {
        loop {
            let Some(table) = &mut self.open else {
                let Some(about) = self.waiting.pop_front() else { return Ok(false) };
                self.open = OpenTable::open(about, context)?;
                continue;
            };
            match table.block.advance() {
                Ok(true) => match table.judge(&self.key, context) {
                    Ok(trailer) => {
                        self.trailer = trailer;
                        self.key.clear();
                        self.key.extend_from_slice(table.block.key());
                        table.has_entries = true;
                        return Ok(true);
                    }
                    Err(damage) => table.leave_block(damage, context)?,
                },
                Ok(false) => {
                    if !table.next_block(&mut self.packed, context)? {
                        table.finish(&self.key, context)?;
                        self.open = None;
                    }
                }
                Err(found) => {
                    let damage = table.file.damage(table.handle.offset, "a data block", found);
                    table.leave_block(damage, context)?;
                }
            }
        }
    }

    /// The user's key of the entry.
    pub fn user_key(&self) -> &[u8] {
        keys::user_key(&self.key)
    }

    /// Which operation the entry is.
    pub fn trailer(&self) -> Trailer {
        self.trailer
    }

    /// The entry's value.
    pub fn value(&self) -> &[u8] {
        self.open.as_ref().map_or(&[], |table| table.block.value())
    }
}

impl OpenTable {
    /// Opens a table; none if it is damaged and left out.
    fn open(about: TableFile, context: &mut Context) -> Result<Option<Self>> {
        let mut is_damaged = false;
        let file = match table::open(&about.path, about.bytes) {
            // What is left of a table that was cut short is looked for.
            Err(Error::Damage(_)) if context.salvage && about.path.exists() => SourceFile::open(&about.path),
            other => other,
        };
        let Some(file) = context.tolerate(file, about.bytes, || about.all_keys())? else {
            context.bytes_read = context.bytes_read.saturating_add(about.bytes);
            return Ok(None);
        };
        let blocks = match table::index(&file, about.bytes) {
            Err(Error::Damage(damage)) if context.salvage => {
                is_damaged = true;
                without_index(&file, &about, damage, context)?
            }
            other => other?,
        };
        context.counts.tables += 1;
        Ok(Some(Self {
            file,
            before: about.first_key(),
            about,
            blocks: blocks.into(),
            block: Block::default(),
            handle: Handle { offset: 0, len: 0 },
            up_to: None,
            bytes_read: 0,
            has_entries: false,
            is_damaged,
        }))
    }

    /// Goes to the next block that can be read; `false` if there is none.
    fn next_block(&mut self, packed: &mut Vec<u8>, context: &mut Context) -> Result<bool> {
        if let Some(up_to) = self.up_to.take() {
            self.before = Some(up_to);
        }
        while let Some(DataBlock { handle, up_to }) = self.blocks.pop_front() {
            let mut raw = std::mem::take(&mut self.block).into_bytes();
            let read = table::read_block(&self.file, handle, packed, &mut raw);
            let block = read.and_then(|()| {
                Block::new(raw).map_err(|found| self.file.damage(handle.offset, "a data block", found).into())
            });
            context.bytes_read = context.bytes_read.saturating_add(handle.stored_len());
            self.bytes_read = self.bytes_read.saturating_add(handle.stored_len());
            let covers = || Covers::Keys { from: self.before.clone(), up_to: up_to.clone() };
            if let Some(block) = context.tolerate(block, handle.stored_len(), covers)? {
                (self.block, self.handle, self.up_to) = (block, handle, up_to);
                return Ok(true);
            }
            self.is_damaged = true;
            self.before = up_to.or(self.before.take());
        }
        Ok(false)
    }

    /// Checks the entry that the block stands at, which comes after `before`.
    fn judge(&self, before: &[u8], context: &Context) -> std::result::Result<Trailer, Damage> {
        let bad = |expected: &str, found: String| {
            self.file.damage(self.handle.offset, expected, format!("{found} in the block"))
        };
        let Some((user, trailer)) = keys::split(self.block.key()) else {
            return Err(bad("internal keys", "a key that is none".to_owned()));
        };
        if context.bytewise {
            let sorted = match keys::split(before) {
                Some((user_before, trailer_before)) => {
                    (user_before, std::cmp::Reverse(trailer_before)) < (user, std::cmp::Reverse(trailer))
                }
                None => true,
            };
            if !sorted {
                return Err(bad(
                    "keys in the order of their bytes",
                    "one that is not behind the last".to_owned(),
                ));
            }
            if user < self.about.smallest.as_slice() || user > self.about.largest.as_slice() {
                return Err(bad("keys between those that the manifest names", "one that is not".to_owned()));
            }
        }
        if trailer.sequence() > context.last_sequence {
            let expected = format!("sequence numbers up to {}", context.last_sequence);
            return Err(bad(&expected, trailer.sequence().to_string()));
        }
        match &self.about.ends {
            Some((smallest, _)) if !self.has_entries && !self.is_damaged && smallest != self.block.key() => {
                Err(bad("the first key that the manifest names", "another".to_owned()))
            }
            _ => Ok(trailer),
        }
    }

    /// Leaves out the rest of the block.
    fn leave_block(&mut self, damage: Damage, context: &mut Context) -> Result<()> {
        let covers = Covers::Keys { from: self.before.clone(), up_to: self.up_to.clone() };
        context.lose(damage, self.handle.stored_len(), covers)?;
        self.is_damaged = true;
        self.block = Block::default();
        Ok(())
    }

    /// Checks that nothing is missing at the end, where the last entry has the internal key `last`.
    fn finish(&mut self, last: &[u8], context: &mut Context) -> Result<()> {
        // What is not data has been dealt with, too.
        let rest = self.about.bytes.saturating_sub(self.bytes_read);
        context.bytes_read = context.bytes_read.saturating_add(rest);
        let Some((_, largest)) = &self.about.ends else { return Ok(()) };
        if self.is_damaged || self.has_entries && largest == last {
            return Ok(());
        }
        let damage = self.file.damage(self.handle.offset, "the last key that the manifest names", "another");
        let covers = Covers::Keys { from: self.before.clone(), up_to: self.about.last_key() };
        context.lose(damage, 0, covers)
    }
}

/// What can be found of the data blocks of a table whose index is damaged.
fn without_index(
    file: &SourceFile,
    about: &TableFile,
    damage: Damage,
    context: &mut Context,
) -> Result<Vec<DataBlock>> {
    let found = walk::walk(file)?;
    let covers = if found.is_complete {
        Covers::Nothing
    } else {
        let last = found.blocks.last().and_then(|block| block.up_to.clone());
        Covers::Keys { from: last.or_else(|| about.first_key()), up_to: about.last_key() }
    };
    let bytes = if found.is_complete { 0 } else { about.bytes.saturating_sub(found.end) };
    context.lose(damage, bytes, covers)?;
    Ok(found.blocks)
}
