//! Versions: immutable states of the index's levels and of the log's segments.
//!
//! Owns: which tables are at which level, which segments are sealed and what is live in them, and the numbers
//! that recovery needs. Never does I/O, except that the handle of an obsolete file unlinks it when it goes.
//!
//! Invariants: I-03, tables of one level below L0 are sorted and share no user key; L0 is sorted by id, newest
//! first; the log head never moves back; ids are never reused. [`Version::apply`] checks each edit against them,
//! whether it comes from the engine or from a manifest, and [`Version::audit`] checks a whole version.
//!
//! Parts that an edit leaves alone are shared between versions. Called by the index, which owns the current
//! version, and by the picker and the readers, which take it as an argument.

use std::collections::HashSet;

mod apply;
mod audit;
mod edit;
mod files;
mod holes;
mod segments;
mod stock;
mod table_meta;

#[cfg(test)]
pub mod script;
#[cfg(test)]
mod tests;

pub use edit::VersionEdit;
pub use files::{FileHandle, FileObserver, Files};
#[cfg(test)]
use segments::MovedEntry;
pub use segments::{Liveness, SegmentEntry, SegmentMap};
pub use table_meta::{HeldBytes, TableMeta, overlapping};

use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence, TableId};
use crate::base::keys::KeyOrder;
use crate::base::limits::LEVELS;
use crate::base::segment::SegmentMove;
use crate::base::sync::Arc;

/// The tables of one level.
pub type Level = Arc<Vec<Arc<TableMeta>>>;

/// A state of the index. Immutable; [`apply`](Self::apply) makes the next one.
#[derive(Debug, Clone)]
pub struct Version {
    order: KeyOrder,
    files: Arc<Files>,
    levels: [Level; LEVELS],
    segments: Arc<SegmentMap>,
    numbers: Numbers,
}

/// The numbers of a version that recovery starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    /// Where replay of the log begins: everything before it is in tables.
    pub log_head: LogPosition,
    /// The largest sequence number known to be in use.
    pub last_sequence: Sequence,
    /// No table with this id or a larger one exists.
    pub next_table_id: TableId,
    /// No segment with this id or a larger one was known when the last edit was written.
    pub next_segment_id: SegmentId,
    /// By level, the user key after which the next compaction starts to look.
    pub compaction_cursors: [Vec<u8>; LEVELS],
}

impl Version {
    /// The version of a new cube: no tables, no segments.
    pub fn empty(order: KeyOrder, files: Arc<Files>) -> Self {
        let numbers = Numbers {
            log_head: LogPosition::default(),
            last_sequence: Sequence(0),
            next_table_id: TableId(1),
            next_segment_id: SegmentId(1),
            compaction_cursors: Default::default(),
        };
        Self { order, files, levels: Default::default(), segments: Arc::default(), numbers }
    }

    /// The order of its keys.
    pub fn order(&self) -> &KeyOrder {
        &self.order
    }

    /// The handles of its files.
    #[cfg(test)]
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// The tables of `level`: L0 newest first, deeper levels by key.
    pub fn level(&self, level: usize) -> &Level {
        &self.levels[level]
    }

    /// Every table with its level.
    pub fn tables(&self) -> impl Iterator<Item = (u8, &Arc<TableMeta>)> {
        self.levels.iter().zip(0..).flat_map(|(tables, level)| tables.iter().map(move |table| (level, table)))
    }

    /// The segments of the log.
    pub fn segments(&self) -> &SegmentMap {
        &self.segments
    }

    /// The numbers that recovery starts from.
    pub fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The segments that an edit may drop (I-07): all of their records lie before the log head, so they are
    /// flushed, no table points into them, and `needed` does not hold them back. The home of a segment that was
    /// moved goes only with it. Moved segments come first, as dropping takes place in this order.
    pub fn droppable_segments(&self, needed: impl Fn(SegmentId) -> bool) -> Vec<SegmentId> {
        let moved = self.segments.moved().filter(|(id, moved)| moved.live.is_none() && !needed(*id));
        let mut droppable: Vec<SegmentId> = moved.map(|(id, _)| id).collect();
        let homes: HashSet<SegmentId> = (self.segments.moved())
            .filter(|(id, _)| !droppable.contains(id))
            .map(|(_, moved)| moved.table.segment)
            .collect();
        droppable.extend(self.segments.sealed().filter_map(|entry| {
            let id = entry.meta.id;
            let dead = entry.live.is_none() && !homes.contains(&id);
            (dead && self.is_collectable(id) && !needed(id)).then_some(id)
        }));
        droppable
    }

    /// Whether nothing but tables can point into the sealed segment `id`: it is a cold one, or one of the log before
    /// its head.
    pub fn is_collectable(&self, id: SegmentId) -> bool {
        id.is_cold() || id < self.numbers.log_head.segment
    }

    /// The same version for a job that reads tables and follows pointers, but reads no values: it does not hold the
    /// files of segments. Relocation tables in segments that go meanwhile must be kept for it.
    pub fn without_values(&self) -> Self {
        Self { segments: Arc::new(self.segments.without_values()), ..self.clone() }
    }

    /// The edit that makes this version out of an empty one.
    pub fn snapshot(&self, cube: CubeId) -> VersionEdit {
        let cursors = self.numbers.compaction_cursors.iter().zip(0..);
        VersionEdit {
            cube: Some(cube),
            comparator: Some(self.order.comparator().name().to_owned()),
            add_tables: self.tables().map(|(level, table)| (level, table.clone())).collect(),
            drop_tables: Vec::new(),
            add_segments: self.segments.sealed().map(|entry| entry.meta).collect(),
            dead_ranges: self.segments.all_dead_ranges().map(|(id, dead)| (id, dead.clone())).collect(),
            move_segments: self
                .segments
                .moved()
                .map(|(id, moved)| SegmentMove { id, table: moved.table })
                .collect(),
            drop_segments: Vec::new(),
            log_head: Some(self.numbers.log_head),
            last_sequence: Some(self.numbers.last_sequence),
            next_table_id: Some(self.numbers.next_table_id),
            next_segment_id: Some(self.numbers.next_segment_id),
            compaction_cursors: cursors
                .filter(|(key, _)| !key.is_empty())
                .map(|(key, level)| (level, key.clone()))
                .collect(),
        }
    }
}
