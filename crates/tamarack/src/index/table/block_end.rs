//! Where data blocks end.
//!
//! The system reads files, and keeps them in memory, in pages. A lookup whose block lies on one page costs one; blocks that are closed as soon as they
//! have four kibibytes lie on two or three. So a block ends with a page where little is left of it, and what is left its hash index takes
//! ([`BlockBuilder::finish`](super::block_builder::BlockBuilder::finish)), which the lookups have a use for, too. Where more is left, as between
//! large values, nothing is wasted: the block ends a little behind the page, and the next one begins there and may end with it.

use crate::env::PAGE_BYTES;

/// At most so many bytes of a page are left to the hash index.
const LEFT_MAX: u64 = PAGE_BYTES / 8;

/// The part of a file that a data block, with its trailer, takes so far, and the size that it is to have.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Where it begins.
    pub start: u64,
    /// Where it would end if it were closed.
    pub end: u64,
    /// About so many bytes blocks shall have.
    pub block_bytes: u64,
}

impl Extent {
    /// Whether the block is to be closed before it gets an entry with which it would end at `end_with`; if so, how many bytes are
    /// left on its last page.
    pub fn closes_before(self, end_with: u64) -> Option<u64> {
        let Self { start, end, block_bytes } = self;
        let page_end = end.next_multiple_of(PAGE_BYTES);
        let is_large = end - start >= (block_bytes / 2).max(block_bytes.saturating_sub(PAGE_BYTES));
        let left = page_end - end;
        (block_bytes >= PAGE_BYTES && end_with > page_end && is_large && left <= LEFT_MAX).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{Entry, all_blocks, build, key, open, options, pointer};
    use super::*;
    use crate::base::codec::Codec;
    use crate::base::keys::EntryKind;
    use crate::index::table::TableOptions;

    /// Blocks of such entries: where each begins and ends. They have no overhead of their own.
    fn blocks(entries: &[u64], block_bytes: u64) -> Vec<(u64, u64)> {
        let (mut blocks, mut start, mut end) = (Vec::new(), 0, 0);
        for entry in entries {
            if let Some(left) = (Extent { start, end, block_bytes }).closes_before(end + entry) {
                blocks.push((start, end + left));
                (start, end) = (end + left, end + left);
            }
            end += entry;
            if end - start >= block_bytes {
                blocks.push((start, end));
                start = end;
            }
        }
        blocks
    }

    fn pages((start, end): (u64, u64)) -> u64 {
        end.div_ceil(PAGE_BYTES) - start / PAGE_BYTES
    }

    #[test]
    fn blocks_of_small_entries_are_pages() {
        for entry in [9, 34, 290, 500] {
            let blocks = blocks(&vec![entry; 10_000], PAGE_BYTES);
            assert!(blocks.iter().all(|&(start, end)| end - start == PAGE_BYTES), "{entry}");
        }
        let blocks = blocks(&vec![34; 10_000], 4 * PAGE_BYTES);
        assert!(blocks.iter().all(|&(start, end)| end - start == 4 * PAGE_BYTES));
    }

    /// Of the data blocks of a table with so many entries: how many there are, and how many of them end with a page.
    fn data_blocks(options: &TableOptions, entry: impl Fn(u32) -> (EntryKind, Vec<u8>)) -> (usize, usize) {
        let entries: Vec<Entry> = (0..5000)
            .map(|number| {
                let (kind, payload) = entry(number);
                (key(format!("user{number:012}").as_bytes(), 1, kind), payload)
            })
            .collect();
        let (_, file) = build(&entries, options).expect("built");
        let table = open(file, options, 0).expect("opened");
        let count = table.properties().data_blocks as usize;
        let mut ends: Vec<u64> = all_blocks(&table).expect("whole").iter().map(|block| block.end()).collect();
        ends.sort_unstable();
        (count, ends[..count].iter().filter(|&&end| end.is_multiple_of(PAGE_BYTES)).count())
    }

    #[test]
    fn data_blocks_of_small_values_and_of_pointers_are_pages() {
        let inline = |_| (EntryKind::Inline, vec![1; 256]);
        for (count, on_pages) in [
            data_blocks(&options(), inline),
            data_blocks(&options(), |number| (EntryKind::Pointer, pointer(1, number * 300, 200))),
        ] {
            assert!(count > 10 && on_pages == count - 1, "{on_pages} of {count}: all but the last");
        }
        let compressed = TableOptions { codec: Codec::Lz4, ..options() };
        let (count, on_pages) = data_blocks(&compressed, inline);
        assert!(on_pages < count / 2, "{on_pages} of {count}: how long they will be is not known");
    }

    #[test]
    fn what_does_not_fill_pages_wastes_little() {
        for entry in [1000, 1900, 3000, 5000] {
            let entries = vec![entry; 10_000];
            let blocks = blocks(&entries, PAGE_BYTES);
            let (end, used) = (blocks.last().expect("some").1, entry * 10_000);
            assert!(end < used + used / 8, "{entry}: {end} for {used}");
        }
    }

    #[test]
    fn blocks_smaller_than_pages_end_when_they_are_large_enough() {
        let blocks = blocks(&vec![30; 1000], 512);
        assert!(blocks.iter().all(|&(start, end)| end - start == 540), "{blocks:?}");
    }

    proptest! {
        #[test]
        fn every_block_is_large_enough_and_on_few_pages(
            entries in proptest::collection::vec(1_u64..600, 1..2000),
            pages_wanted in 1_u64..6,
        ) {
            let block_bytes = pages_wanted * PAGE_BYTES;
            let mut last = 0;
            for block in blocks(&entries, block_bytes) {
                prop_assert_eq!(block.0, last, "no gap");
                last = block.1;
                prop_assert!(block.1 - block.0 >= block_bytes / 2);
                prop_assert!(block.1 - block.0 < block_bytes + 600);
                prop_assert!(pages(block) <= pages_wanted + 1);
            }
        }
    }
}
