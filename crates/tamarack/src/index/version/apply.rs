//! Applying an edit: the next version, or the reason why the edit does not fit.

use std::collections::HashSet;

use crate::base::ids::{SegmentId, TableId};
use crate::base::keys::KeyOrder;
use crate::base::limits::LEVELS;
use crate::base::sync::Arc;

use super::edit::VersionEdit;
use super::segments::SegmentMap;
use super::table_meta::TableMeta;
use super::{Level, Numbers, Version};

impl Version {
    /// The version after `edit`. `Err` says which invariant the edit would break; for an edit read from a
    /// manifest that is corruption, for one the engine made a mistake of the engine.
    pub fn apply(&self, edit: &VersionEdit) -> Result<Self, String> {
        let mut segments = self.segments.clone();
        let levels = self.next_levels(edit, &mut segments)?;
        if edit.changes_segments() {
            let segments = Arc::make_mut(&mut segments);
            for meta in &edit.add_segments {
                segments.seal(*meta, self.files.segment(meta.id))?;
            }
            for (id, dead) in &edit.dead_ranges {
                segments.give_back(
                    *id,
                    dead,
                    self.files.next_segment_handle(*id),
                    self.files.block_bytes(),
                )?;
            }
            segments.relocate(&edit.move_segments);
            segments.drop(&edit.drop_segments)?;
            segments.check_homes()?;
        }
        let numbers = self.numbers.after(edit)?;
        // I-13: memtables may point into other segments, and recovery reads them.
        let early = edit.dead_ranges.iter().find(|(id, _)| !id.is_cold() && *id >= numbers.log_head.segment);
        if let Some((id, _)) = early {
            return Err(format!("segment {id} has dead ranges but does not lie before the log head"));
        }
        segments.check_references(numbers.log_head.segment)?;
        Ok(Self { order: self.order.clone(), files: self.files.clone(), levels, segments, numbers })
    }

    fn next_levels(
        &self,
        edit: &VersionEdit,
        segments: &mut Arc<SegmentMap>,
    ) -> Result<[Level; LEVELS], String> {
        let mut levels = self.levels.clone();
        let mut changed = [false; LEVELS];
        for &(level, id) in &edit.drop_tables {
            let tables = level_mut(&mut levels, level)?;
            let at = tables
                .iter()
                .position(|table| table.id == id)
                .ok_or_else(|| format!("table {id} is dropped from L{level} but is not there"))?;
            let table = tables.remove(at);
            Arc::make_mut(segments).subtract(&table.references);
        }
        for (level, table) in &edit.add_tables {
            check_table(&self.order, table)?;
            level_mut(&mut levels, *level)?.push(table.clone());
            changed[usize::from(*level)] = true;
            Arc::make_mut(segments).add(&table.references)?;
        }
        if !edit.add_tables.is_empty() {
            check_ids(&levels)?;
        }
        for level in (0..LEVELS).filter(|&level| changed[level]) {
            let tables = Arc::make_mut(&mut levels[level]);
            if level == 0 {
                tables.sort_by_key(|table| std::cmp::Reverse(table.id));
            } else {
                tables.sort_by(|left, right| self.order.compare(&left.smallest, &right.smallest));
                check_disjoint(&self.order, level, tables)?;
            }
        }
        Ok(levels)
    }
}

impl Numbers {
    fn after(&self, edit: &VersionEdit) -> Result<Self, String> {
        let mut next = self.clone();
        if let Some(head) = edit.log_head {
            if head < self.log_head {
                return Err(format!("the log head moves back from {} to {head}", self.log_head));
            }
            next.log_head = head;
        }
        let added = edit.add_tables.iter().map(|(_, table)| table);
        let newest = added.clone().map(|table| table.sequences.1).max();
        next.last_sequence = self.last_sequence.max(edit.last_sequence.max(newest).unwrap_or_default());
        let after = added.map(|table| TableId(table.id.0.saturating_add(1))).max();
        next.next_table_id = self.next_table_id.max(edit.next_table_id.max(after).unwrap_or_default());
        let log = edit.add_segments.iter().filter(|meta| !meta.id.is_cold());
        let after = log.map(|meta| SegmentId(meta.id.0.saturating_add(1))).max();
        next.next_segment_id = self.next_segment_id.max(edit.next_segment_id.max(after).unwrap_or_default());

        for (level, key) in &edit.compaction_cursors {
            let cursor = next.compaction_cursors.get_mut(usize::from(*level));
            cursor.ok_or_else(|| no_level(*level))?.clone_from(key);
        }
        Ok(next)
    }
}

fn level_mut(levels: &mut [Level; LEVELS], level: u8) -> Result<&mut Vec<Arc<TableMeta>>, String> {
    levels.get_mut(usize::from(level)).map(Arc::make_mut).ok_or_else(|| no_level(level))
}

fn no_level(level: u8) -> String {
    format!("there is no level {level}")
}

pub(super) fn check_table(order: &KeyOrder, table: &TableMeta) -> Result<(), String> {
    if order.compare(&table.smallest, &table.largest).is_gt() {
        return Err(format!("the range of table {} is upside down", table.id));
    }
    Ok(())
}

/// No id stands for two tables, at whatever levels.
pub(super) fn check_ids(levels: &[Level; LEVELS]) -> Result<(), String> {
    let mut seen = HashSet::new();
    match levels.iter().flat_map(|tables| tables.iter()).find(|table| !seen.insert(table.id)) {
        Some(table) => Err(format!("table {} is there twice", table.id)),
        None => Ok(()),
    }
}

/// I-03: neighbours share no user key.
pub(super) fn check_disjoint(
    order: &KeyOrder,
    level: usize,
    tables: &[Arc<TableMeta>],
) -> Result<(), String> {
    let overlap = tables
        .windows(2)
        .find(|pair| order.compare_user(pair[0].largest_user_key(), pair[1].smallest_user_key()).is_ge());
    match overlap {
        Some(pair) => Err(format!("tables {} and {} of L{level} overlap", pair[0].id, pair[1].id)),
        None => Ok(()),
    }
}
