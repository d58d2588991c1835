//! What is read along with a block that was not in memory.
//!
//! Tables whose values are in the log are small beside these: of keys of 16 bytes with values of 1 KiB a thirtieth. Where the
//! values do not fit into memory the tables do, but a block that each lookup reads alone costs a read of the device,
//! and there are thousands of lookups before the last block has been read. So the device is asked for the neighbourhood of each
//! block that was missing: for about what it could have read in the time that one read takes it.
//!
//! What that may cost in vain is bounded: a table that was in memory once all of it has been read along misses nothing any more.
//! If blocks are still missing then, there is too little memory for it, and nothing is read along until the table is opened anew. So at
//! most about twice the table is read besides what was asked for.

use std::ops::Range;

use crate::base::sync::{AtomicU64, Ordering};

/// So many bytes are read at a time: 170 KiB are what the reference machine's device reads in sequence while it reads one
/// block.
const NEIGHBOURHOOD_BYTES: u64 = 256 * 1024;
/// And so many behind them, so that the last block that begins in a neighbourhood, unless it is unusually large, ends there too.
const LAST_BLOCK_BYTES: u64 = 16 * 1024;
/// Values that an entry points to must be so many times as large as the table.
const VALUES_PER_TABLE: u64 = 4;

/// Decides that for one open table. Shared by its readers, who may miss some of each other's misses.
#[derive(Debug, Default)]
pub struct ReadAround {
    /// Bytes of the table; 0 if none are read along.
    bytes: u64,
    misses: AtomicU64,
}

impl ReadAround {
    /// For a table of `bytes`, whose entries point to `value_bytes`.
    pub fn new(bytes: u64, value_bytes: u64) -> Self {
        let small = value_bytes / VALUES_PER_TABLE >= bytes;
        Self { bytes: if small { bytes } else { 0 }, misses: AtomicU64::new(0) }
    }

    fn misses_max(&self) -> u64 {
        2 * self.bytes.div_ceil(NEIGHBOURHOOD_BYTES)
    }

    /// Whether it matters if a block is in memory.
    pub fn is_wanted(&self) -> bool {
        self.misses.load(Ordering::Relaxed) < self.misses_max()
    }

    /// What to read along with the block at `offset`, which is not in memory.
    pub fn neighbourhood(&self, offset: u64) -> Range<u64> {
        if self.misses.fetch_add(1, Ordering::Relaxed) >= self.misses_max() {
            return offset..offset;
        }
        let start = offset - offset % NEIGHBOURHOOD_BYTES;
        start..(start + NEIGHBOURHOOD_BYTES + LAST_BLOCK_BYTES).min(self.bytes).max(start)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Entry, build, key, open, options, pointer};
    use super::*;
    use crate::base::ids::Sequence;
    use crate::base::keys::EntryKind;

    const KIB: u64 = 1024;

    #[test]
    fn a_table_is_in_memory_long_before_each_of_its_blocks_was_asked_for() {
        let name = |number: u32| format!("user{number:06}").into_bytes();
        let entry = |number| (key(&name(number), 1, EntryKind::Pointer), pointer(1, number * 2000, 1000));
        let entries: Vec<Entry> = (0..100_000).map(entry).collect();
        let (_, file) = build(&entries, &options()).expect("built");
        let table = open(file.clone(), &options(), 0).expect("opened");
        file.evict();
        // Every block, in an order that jumps.
        for number in (0..100_000).map(|number| number * 7919 % 100_000) {
            assert!(table.get(&name(number), Sequence::MAX, true).expect("read").is_some());
        }
        let parts = table.file_bytes().div_ceil(NEIGHBOURHOOD_BYTES);
        let (missed, read_ahead) = file.missed();
        assert!(parts > 5 && missed <= parts, "{missed} for {parts} neighbourhoods");
        assert_eq!(read_ahead.len() as u64, missed, "each for a block that was missing");
    }

    #[test]
    fn neighbourhoods_cover_the_table_and_end_with_it() {
        let around = ReadAround::new(600 * KIB, 1 << 30);
        assert_eq!(around.neighbourhood(0), 0..272 * KIB);
        assert_eq!(around.neighbourhood(255 * KIB), 0..272 * KIB);
        assert_eq!(around.neighbourhood(256 * KIB), 256 * KIB..528 * KIB);
        assert_eq!(around.neighbourhood(599 * KIB), 512 * KIB..600 * KIB);
    }

    #[test]
    fn who_goes_on_missing_reads_alone() {
        let around = ReadAround::new(600 * KIB, 1 << 30);
        let mut read = 0;
        while around.is_wanted() {
            around.neighbourhood(0);
            read += 1;
        }
        assert_eq!(read, 6, "twice for each of three parts");
        assert!(around.neighbourhood(0).is_empty(), "somebody else's miss was the last");
    }

    #[test]
    fn tables_that_hold_the_values_are_left_alone() {
        assert!(!ReadAround::new(600 * KIB, 0).is_wanted());
        assert!(!ReadAround::new(600 * KIB, 2399 * KIB).is_wanted());
        assert!(ReadAround::new(600 * KIB, 2400 * KIB).is_wanted());
        assert!(!ReadAround::default().is_wanted());
    }
}
