//! The vocabulary every other layer speaks: ids, keys, sequence numbers, pointers, errors, checksums, byte
//! coding, limits, and the synchronisation primitives. Nothing here does I/O or starts a thread.

pub mod batch;
pub mod cache;
pub mod checksum;
pub mod codec;
pub mod coding;
pub mod comparator;
pub mod dead_ranges;
pub mod error;
pub mod gc;
pub mod ids;
pub mod input;
pub mod key_sort;
pub mod keys;
pub mod large_pages;
pub mod limits;
pub mod listener;
pub mod memory;
pub mod names;
pub mod options;
pub mod pointer;
pub mod prefetch;
pub mod recovery;
pub mod scarcity;
pub mod segment;
pub mod shared_value;
pub mod swap;
pub mod sync;
pub mod zeros;
