//! What a version knows about one table.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::base::ids::{Sequence, TableId};
use crate::base::keys::{KeyOrder, user_key};
use crate::base::segment::SegmentReference;
use crate::base::sync::Arc;

use super::files::FileHandle;

/// Bytes of entries and of the records to which they point that only snapshots see, by the first and the last of the
/// snapshots that see them.
pub type HeldBytes = BTreeMap<(Sequence, Sequence), u64>;

/// One table: its size, key range, sequence range, and what it keeps alive in the value log. Immutable and shared
/// by every version that holds the table, at whatever level.
#[derive(Debug, Clone)]
pub struct TableMeta {
    /// The table.
    pub id: TableId,
    /// Bytes of its file.
    pub file_bytes: u64,
    /// Entries in it, deletions included.
    pub entries: u64,
    /// Deletions in it.
    pub deletes: u64,
    /// Bytes of keys and values of its inline entries.
    pub inline_bytes: u64,
    /// Its first internal key.
    pub smallest: Vec<u8>,
    /// Its last internal key.
    pub largest: Vec<u8>,
    /// The smallest and the largest sequence number in it.
    pub sequences: (Sequence, Sequence),
    /// What it keeps alive, by segment, ascending.
    pub references: Vec<SegmentReference>,
    /// The sum of the bytes of `references`.
    pub referenced_value_bytes: u64,
    /// What was kept in it for snapshots alone, when it was written. Not persisted: a cube is opened without snapshots.
    pub held: HeldBytes,
    /// Its file.
    pub handle: Arc<FileHandle>,
}

impl TableMeta {
    /// The user key of its first entry.
    pub fn smallest_user_key(&self) -> &[u8] {
        user_key(&self.smallest)
    }

    /// The user key of its last entry.
    pub fn largest_user_key(&self) -> &[u8] {
        user_key(&self.largest)
    }

    /// Whether it may hold user keys in the closed range from `start` to `end`; `None` is open.
    pub fn overlaps(&self, order: &KeyOrder, start: Option<&[u8]>, end: Option<&[u8]>) -> bool {
        let below = start.is_some_and(|start| order.compare_user(self.largest_user_key(), start).is_lt());
        let above = end.is_some_and(|end| order.compare_user(self.smallest_user_key(), end).is_gt());
        !below && !above
    }

    /// Where `key` lies relative to the table: before its range, in it, or after.
    pub fn locate(&self, order: &KeyOrder, key: &[u8]) -> Ordering {
        if order.compare_user(key, self.smallest_user_key()).is_lt() {
            Ordering::Less
        } else if order.compare_user(key, self.largest_user_key()).is_gt() {
            Ordering::Greater
        } else {
            Ordering::Equal
        }
    }
}

/// The tables of a sorted, disjoint level that may hold user keys in the closed range from `start` to `end`.
pub fn overlapping<'a>(
    tables: &'a [Arc<TableMeta>],
    order: &KeyOrder,
    start: Option<&[u8]>,
    end: Option<&[u8]>,
) -> &'a [Arc<TableMeta>] {
    let first = start.map_or(0, |start| {
        tables.partition_point(|table| order.compare_user(table.largest_user_key(), start).is_lt())
    });
    let rest = &tables[first..];
    let count = end.map_or(rest.len(), |end| {
        rest.partition_point(|table| order.compare_user(table.smallest_user_key(), end).is_le())
    });
    &rest[..count]
}
