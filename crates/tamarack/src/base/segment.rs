//! What the manifest knows about a segment of the value log. The log writes segments and the index keeps
//! versions of them; this is the word they share.

use super::error::Result;
use super::ids::{SegmentId, Sequence};
use super::pointer::ValuePointer;

/// A segment that has been sealed: its size and how much of it was ever live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentMeta {
    /// The segment.
    pub id: SegmentId,
    /// About when its records were written, as a sequence number: garbage collection weighs old ones differently.
    pub written: Sequence,
    /// Where its records end (exclusive): its footer begins here, if it has one.
    pub end: u64,
    /// Bytes its file takes, footer included.
    pub file_bytes: u64,
    /// Records in it that carry a value.
    pub value_records: u64,
    /// Bytes of those records, headers and keys included.
    pub value_record_bytes: u64,
}

/// Where the records of a segment are after garbage collection has moved them. Pointers to the segment stay valid:
/// they are looked up in a relocation table, a record of the segment that holds the records now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentMove {
    /// The segment whose file is gone, or goes with this move.
    pub id: SegmentId,
    /// Its relocation table, and by that its new home.
    pub table: ValuePointer,
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

/// Looks pointers up in relocation tables.
pub trait Relocate: Send + Sync + std::fmt::Debug {
    /// Where the record is to which `pointer`, into a segment that was moved, leads; `table` is the segment's
    /// relocation table. `None` if the record was not moved: nobody could read it any more.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    fn relocate(&self, table: ValuePointer, pointer: ValuePointer) -> Result<Option<ValuePointer>>;

    /// Where the copy of the record at `place` is to which pointers should lead from now on, `place` itself if there is
    /// none; `None` if the record was left behind when all around it was copied.
    fn onward(&self, place: ValuePointer) -> Option<ValuePointer> {
        Some(place)
    }
}
