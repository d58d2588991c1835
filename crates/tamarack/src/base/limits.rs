//! Every fixed limit of the formats, and the relations between them, checked when the engine is compiled.

/// Longest user key in bytes: record headers and tables keep key lengths in 16 bits.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Longest value in bytes: record headers and pointers keep value lengths in 32 bits.
pub const VALUE_BYTES_MAX: u64 = u32::MAX as u64;

/// Largest value that may be carried inline by memtables and tables, in bytes.
pub const INLINE_VALUE_BYTES_MAX: usize = 32 * 1024;

/// Levels of the index, L0 to L6.
pub const LEVELS: usize = 7;

/// Most operations in one batch.
pub const BATCH_OPERATIONS_MAX: usize = 1 << 30;

/// Smallest and largest capacity of a log segment that options may ask for, in bytes. A record that does not
/// fit gets a segment of its own that is larger.
pub const SEGMENT_BYTES_RANGE: std::ops::RangeInclusive<u64> = 4 * 1024..=2 * 1024 * 1024 * 1024;

const _: () = assert!(KEY_BYTES_MAX < 64 * 1024, "key lengths fit 16 bits");
const _: () = assert!(*SEGMENT_BYTES_RANGE.end() < u32::MAX as u64, "record offsets fit 32 bits");
const _: () = assert!(INLINE_VALUE_BYTES_MAX < u16::MAX as usize + 1, "inline payloads fit 16 bits");
