//! A file without its names: what it holds, what of that is durable, and the blocks that it takes.

use std::collections::BTreeSet;
use std::ops::Range;

use super::content::{Content, Memory};
use super::effect::{Change, Effect, apply_all};
use super::moment::FileAt;
use crate::base::sync::Arc;

/// A file.
#[derive(Debug, Default)]
pub struct Inode {
    content: Content,
    durable: Arc<Vec<u8>>,
    journal: Vec<Effect>,
    /// How often it was changed or synced.
    version: u64,
    /// The blocks that it takes.
    blocks: BTreeSet<u64>,
    /// How many names it has.
    pub links: u64,
    /// How many open files and mappings lead to it.
    pub handles: u64,
}

impl Inode {
    /// A file that is on the disk as it is.
    pub fn durable(bytes: Arc<Vec<u8>>, block_bytes: u64) -> Self {
        let blocks = blocks_touched(0..bytes.len() as u64, block_bytes).collect();
        Self { content: Content::new(bytes.to_vec()), durable: bytes, blocks, ..Self::default() }
    }

    /// The same file once every process that had it open is dead: what was on its way to the disk still is.
    pub fn killed(&self) -> Self {
        let mut bytes = vec![0; self.content.len() as usize];
        self.content.read(&mut bytes, 0);
        Self {
            content: Content::new(bytes),
            durable: Arc::clone(&self.durable),
            journal: self.journal.clone(),
            version: self.version,
            blocks: self.blocks.clone(),
            links: self.links,
            handles: 0,
        }
    }

    /// What it holds at present.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// What is certainly on the disk.
    pub fn durable_bytes(&self) -> &[u8] {
        &self.durable
    }

    /// What is on its way there.
    pub fn journal(&self) -> &[Effect] {
        &self.journal
    }

    /// What a crash could leave of it.
    pub fn at_this_moment(&self) -> FileAt {
        FileAt { durable: Arc::clone(&self.durable), journal: self.journal.clone(), version: self.version }
    }

    /// How many blocks it takes.
    pub fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Whether it takes up room: it can be reached by a name or by who has it open.
    pub fn is_in_use(&self) -> bool {
        self.links > 0 || self.handles > 0
    }

    /// The bytes of `range`, from its start, that can be written with no more than `free` more blocks.
    pub fn fitting(&self, range: &Range<u64>, free: u64, block_bytes: u64) -> u64 {
        let mut missing =
            blocks_touched(range.clone(), block_bytes).filter(|block| !self.blocks.contains(block));
        let end = match missing.nth(usize::try_from(free).unwrap_or(usize::MAX)) {
            Some(block) => (block * block_bytes).max(range.start),
            None => range.end,
        };
        end - range.start
    }

    /// Shows `change`, a write, to readers, and keeps it from the disk.
    pub fn cache(&mut self, change: &Change) {
        if let Change::Write { offset, bytes, .. } = change {
            self.content.write(*offset, bytes);
        }
    }

    /// Lets a change reach the disk that readers do not see.
    pub fn stray(&mut self, effect: Effect) {
        self.journal.push(effect);
        self.version += 1;
    }

    /// Takes what is in flight for written, of which only `arrived` is.
    pub fn forget_in_flight(&mut self, arrived: Vec<u8>) {
        self.durable = Arc::new(arrived);
        self.journal.clear();
        self.version += 1;
    }

    /// Flips the bits of `mask` at `offset`, wherever that byte is.
    pub fn flip(&mut self, offset: u64, mask: u8) {
        let mut byte = [0];
        self.content.read(&mut byte, offset);
        self.content.write(offset, &[byte[0] ^ mask]);
        let mut durable = self.durable.to_vec();
        if let Some(byte) = durable.get_mut(offset as usize) {
            *byte ^= mask;
        }
        self.durable = Arc::new(durable);
        self.version += 1;
    }

    /// Changes it.
    pub fn change(&mut self, at: u64, change: Change, block_bytes: u64) {
        match &change {
            Change::Write { offset, bytes, .. } => {
                self.content.write(*offset, bytes);
                self.blocks.extend(blocks_touched(*offset..offset + bytes.len() as u64, block_bytes));
            }
            Change::SetLength(len) => {
                self.content.set_len(*len);
                let end = len.div_ceil(block_bytes);
                self.blocks.retain(|&block| block < end);
            }
            Change::Reserve(end) => {
                self.content.set_len(self.content.len().max(*end));
            }
            Change::Zero(range) => {
                self.content.set_len(self.content.len().max(range.end));
                self.content.zero(range.clone());
            }
            Change::Punch(range) => {
                self.content.zero(range.clone());
                let (first, end) = (range.start.div_ceil(block_bytes), range.end / block_bytes);
                self.blocks.retain(|block| !(first..end).contains(block));
            }
        }
        self.journal.push(Effect { at, change });
        self.version += 1;
    }

    /// Takes the blocks of `range`.
    pub fn reserve_blocks(&mut self, range: Range<u64>, block_bytes: u64) {
        self.blocks.extend(blocks_touched(range, block_bytes));
    }

    /// Makes its bytes and its length durable.
    pub fn sync(&mut self) {
        if !self.journal.is_empty() {
            let mut durable = self.durable.to_vec();
            apply_all(&mut durable, &self.journal);
            self.durable = Arc::new(durable);
            self.journal.clear();
            self.version += 1;
        }
    }

    /// Memory for a mapping of its first `len` bytes; `None` if a shorter part is mapped already.
    pub fn map(&mut self, len: u64) -> Option<Arc<Memory>> {
        self.content.map(len)
    }
}

/// The blocks that `range` lies in, wholly or in part.
fn blocks_touched(range: Range<u64>, block_bytes: u64) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start / block_bytes..range.end.div_ceil(block_bytes) }
}
