//! What a disk holds: sparse blocks, shared between copies until one of them writes.
//!
//! A digest of everything is kept up to date with each write, so that two contents can be told apart without reading them.
//! Blocks of zeros are not kept: a block that was never written and one that holds zeros are the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Bytes of a block.
const BLOCK: usize = 4096;

type Bytes = [u8; BLOCK];

/// The bytes of a disk.
#[derive(Clone, Default)]
pub struct Content {
    blocks: HashMap<u64, Block>,
    digest: u64,
}

/// One block, and its part in the digest.
#[derive(Clone)]
struct Block {
    bytes: Arc<Bytes>,
    digest: u64,
}

impl Content {
    /// What tells this content from others.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Reads from `offset` on.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        for (number, within, range) in pieces(offset, into.len()) {
            let part = &mut into[range];
            match self.blocks.get(&number) {
                Some(block) => part.copy_from_slice(&block.bytes[within..within + part.len()]),
                None => part.fill(0),
            }
        }
    }

    /// Writes from `offset` on.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for (number, within, range) in pieces(offset, bytes.len()) {
            let part = &bytes[range];
            self.change(number, |block| block[within..within + part.len()].copy_from_slice(part));
        }
    }

    /// Makes zeros of a range.
    pub fn clear(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        let first_whole = offset.div_ceil(BLOCK as u64);
        let behind_whole = end / BLOCK as u64;
        if first_whole >= behind_whole {
            return self.write(offset, &vec![0; len as usize]);
        }
        self.write(offset, &vec![0; (first_whole * BLOCK as u64 - offset) as usize]);
        let goes: Vec<u64> = self
            .blocks
            .keys()
            .copied()
            .filter(|number| (first_whole..behind_whole).contains(number))
            .collect();
        for number in goes {
            self.change(number, |block| block.fill(0));
        }
        self.write(behind_whole * BLOCK as u64, &vec![0; (end % BLOCK as u64) as usize]);
    }

    /// Every block that is not all zeros, with its offset.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.blocks.iter().map(|(number, block)| (number * BLOCK as u64, &block.bytes[..]))
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut Bytes)) {
        let mut block =
            self.blocks.remove(&number).unwrap_or_else(|| Block { bytes: Arc::new([0; BLOCK]), digest: 0 });
        self.digest = self.digest.wrapping_sub(block.digest);
        change(Arc::make_mut(&mut block.bytes));
        if block.bytes.iter().any(|byte| *byte != 0) {
            block.digest = digest(number, &block.bytes);
            self.digest = self.digest.wrapping_add(block.digest);
            self.blocks.insert(number, block);
        }
    }
}

fn digest(number: u64, bytes: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    (number, bytes).hash(&mut hasher);
    hasher.finish()
}

/// The parts of a range by block: the block's number, where the part begins in it, and which part of the range it is.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let part = (BLOCK - within).min(len - done);
        let range = done..done + part;
        done += part;
        (part > 0).then_some((at / BLOCK as u64, within, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &Content, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![9; len];
        content.read(offset, &mut bytes);
        bytes
    }

    #[test]
    fn what_was_written_is_read_across_blocks_and_copies_do_not_share_later_writes() {
        let mut content = Content::default();
        content.write(4090, &[1; 20]);
        let copy = content.clone();
        content.write(4095, &[2; 2]);
        assert_eq!(read(&content, 4089, 9), [0, 1, 1, 1, 1, 1, 2, 2, 1]);
        assert_eq!(read(&copy, 4089, 9), [0, 1, 1, 1, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn the_digest_follows_the_bytes_and_not_the_way_to_them() {
        let (mut left, mut right) = (Content::default(), Content::default());
        left.write(0, &[1; 10_000]);
        left.clear(100, 9_000);
        right.write(9_100, &[1; 900]);
        assert_ne!(left.digest(), right.digest());
        right.write(0, &[1; 100]);
        assert_eq!(left.digest(), right.digest());
        left.clear(0, 1 << 40);
        assert_eq!((left.digest(), left.blocks().count()), (0, 0));
    }
}
