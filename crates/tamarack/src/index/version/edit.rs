//! Version edits: what changes from one version to the next. An edit is what the manifest stores.

use crate::base::dead_ranges::DeadRanges;
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence, TableId};
use crate::base::segment::{SegmentMeta, SegmentMove};
use crate::base::sync::Arc;

use super::table_meta::TableMeta;

/// A change of the version. Everything in it takes effect together or not at all.
#[derive(Debug, Clone, Default)]
pub struct VersionEdit {
    /// The cube, in the first edit of a manifest.
    pub cube: Option<CubeId>,
    /// The comparator's name, in the first edit of a manifest.
    pub comparator: Option<String>,
    /// Tables that join a level.
    pub add_tables: Vec<(u8, Arc<TableMeta>)>,
    /// Tables that leave a level. Leaving one and joining another in the same edit is a move.
    pub drop_tables: Vec<(u8, TableId)>,
    /// Segments that the log has sealed, or garbage collection has written.
    pub add_segments: Vec<SegmentMeta>,
    /// Sealed segments with all of their dead ranges from now on; those from before are among them.
    pub dead_ranges: Vec<(SegmentId, DeadRanges)>,
    /// Segments whose records are somewhere else from now on.
    pub move_segments: Vec<SegmentMove>,
    /// Segments, sealed or moved, in which nothing is live.
    pub drop_segments: Vec<SegmentId>,
    /// Where replay of the log begins from now on. It never moves back.
    pub log_head: Option<LogPosition>,
    /// The largest sequence number known to be in use; applying takes the maximum.
    pub last_sequence: Option<Sequence>,
    /// A table id that was never used, nor any above it; applying takes the maximum.
    pub next_table_id: Option<TableId>,
    /// A segment id that was never used, nor any above it; applying takes the maximum.
    pub next_segment_id: Option<SegmentId>,
    /// By level, the user key after which the next compaction of the level starts to look.
    pub compaction_cursors: Vec<(u8, Vec<u8>)>,
}

impl VersionEdit {
    /// Whether anything in it is about segments.
    pub(super) fn changes_segments(&self) -> bool {
        !(self.add_segments.is_empty()
            && self.dead_ranges.is_empty()
            && self.move_segments.is_empty()
            && self.drop_segments.is_empty())
    }
}
