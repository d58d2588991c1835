//! Tables: immutable sorted files of index entries.
//!
//! A table is written once by a [`TableBuilder`], by a flush or a compaction, and then only read, by any number
//! of threads, through a [`TableReader`]. It maps internal keys to payloads (deletions, inline values, value
//! pointers), and knows exactly which records of the value log it keeps alive. The format is laid out in
//! [`format`] and described in `docs/formats/table.md`.
//!
//! ```text
//! builder ─► block_end, block_builder, index_builder, filter, references ─► writer ─► file
//! reader, lookups ─► cache ─► source ─► file      cursor, references, verify: what walks over a table
//! ```

pub mod block;
mod block_builder;
mod block_end;
pub mod builder;
pub mod cursor;
pub(super) mod filter;
pub mod format;
mod index_builder;
mod key_heads;
pub mod lookups;
mod read_around;
pub mod reader;
pub mod references;
pub mod salvage;
mod source;
pub mod verify;
mod writer;

#[cfg(test)]
mod golden;
#[cfg(test)]
pub mod memory_file;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
pub mod tests;

use crate::base::checksum::{FileKind, Seed};
use crate::base::codec::Codec;
use crate::base::ids::{CubeId, TableId};
use crate::base::keys::KeyOrder;
use crate::base::memory::TABLE_READ_BYTES_MAX;

/// Largest `block_bytes`.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;

/// How tables of a cube are written, and what readers must know that the file does not say.
#[derive(Debug, Clone)]
pub struct TableOptions {
    /// The cube the table belongs to: part of every checksum.
    pub cube: CubeId,
    /// The order of its keys.
    pub order: KeyOrder,
    /// Uncompressed bytes of a data block, about; at most [`BLOCK_BYTES_MAX`].
    pub block_bytes: usize,
    /// Entries from one restart point of a data block to the next; at least 1.
    pub restart_interval: usize,
    /// How data, index and reference blocks are compressed.
    pub codec: Codec,
    /// Filter bits per user key; 0 leaves the filter out.
    pub filter_bits_per_key: u32,
    /// Bytes that a value's record in the log takes besides its key and its stored value.
    pub record_overhead: u64,
    /// Bytes that a cursor reads at a time, at most: once it has read in sequence for long.
    pub read_ahead_max: u64,
}

impl TableOptions {
    /// The usual shape for `cube`: 4 KiB blocks, restarts every 16 entries, ten filter bits a key.
    pub fn new(cube: CubeId, order: KeyOrder, record_overhead: u64) -> Self {
        Self {
            cube,
            order,
            block_bytes: 4096,
            restart_interval: 16,
            codec: Codec::None,
            filter_bits_per_key: 10,
            record_overhead,
            read_ahead_max: TABLE_READ_BYTES_MAX,
        }
    }

    /// The checksum seed of table `id`.
    fn seed(&self, id: TableId) -> Seed {
        Seed::new(self.cube, FileKind::Table, id.0, 0)
    }

    /// Whether user keys may be looked up by a hash of their bytes.
    fn hashes_keys(&self) -> bool {
        self.order.comparator().equal_means_identical()
    }
}
