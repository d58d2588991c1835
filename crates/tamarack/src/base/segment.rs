//! What the manifest knows about a segment of the value log. The log writes segments and the index keeps
//! versions of them; this is the word they share.

use super::ids::SegmentId;

/// A segment that has been sealed: its size and how much of it was ever live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentMeta {
    /// The logical segment.
    pub id: SegmentId,
    /// Where its records end (exclusive): its footer begins here, if it has one.
    pub end: u64,
    /// Bytes its file takes, footer included.
    pub file_bytes: u64,
    /// Records in it that carry a value.
    pub value_records: u64,
    /// Bytes of those records, headers and keys included.
    pub value_record_bytes: u64,
}

/// What one table keeps alive in one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentReference {
    /// The logical segment.
    pub segment: SegmentId,
    /// How many of the table's entries point into it.
    pub values: u64,
    /// Bytes of the records pointed to, headers and keys included.
    pub bytes: u64,
}
