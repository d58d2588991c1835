//! Compacting a key range on request: level by level down to the deepest one that has keys of the range, which is
//! rewritten in place, so that nothing overwritten or deleted is left but what snapshots need.

use crate::base::ids::TableId;
use crate::base::limits::LEVELS;
use crate::base::sync::Arc;

use super::super::version::{TableMeta, Version, overlapping};
use super::in_progress::{InProgress, Ticket};
use super::picker::l0_closure;
use super::plan::CompactionPlan;
use super::{CompactionOptions, MANUAL_STEP_TABLES};

/// A manual compaction on its way. Each step is planned on the version that the step before has made.
#[derive(Debug)]
pub struct ManualCompaction {
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    level: usize,
    /// Tables of the level up to this user key are done.
    done: Option<Vec<u8>>,
    /// Compactions with an earlier ticket had begun before the request, and may keep what snapshots saw that are gone since.
    requested: Ticket,
    /// When the last of these has ended: tables with this id or a larger one are of later ones, and need not be rewritten in place.
    fresh_from: Option<TableId>,
}

/// What to do next.
#[derive(Debug)]
pub enum ManualStep {
    /// Run this plan to its end, then ask again.
    Plan(CompactionPlan),
    /// A running compaction is in the way: ask again when one has ended.
    Blocked,
    /// The range is compacted.
    Done,
}

impl ManualCompaction {
    /// Compacts the user keys from `start` to `end`; `None` is open.
    pub fn new(in_progress: &InProgress, start: Option<&[u8]>, end: Option<&[u8]>) -> Self {
        Self {
            start: start.map(<[u8]>::to_vec),
            end: end.map(<[u8]>::to_vec),
            level: 0,
            done: None,
            requested: in_progress.next_ticket(),
            fresh_from: None,
        }
    }

    /// The next step. Ends after as many steps as there are tables when what runs now has ended, whatever is written meanwhile.
    pub fn next(
        &mut self,
        version: &Arc<Version>,
        in_progress: &InProgress,
        options: &CompactionOptions,
    ) -> ManualStep {
        if self.fresh_from.is_none() {
            if in_progress.has_before(self.requested) {
                return ManualStep::Blocked;
            }
            self.fresh_from = Some(version.numbers().next_table_id);
        }
        while let Some(deepest) = self.deepest(version).filter(|&deepest| self.level <= deepest) {
            let upper = self.upper(version, deepest, options);
            if upper.is_empty() {
                self.descend();
                continue;
            }
            let output_level =
                if self.level == 0 || self.level < deepest { self.level + 1 } else { self.level };
            let plan = CompactionPlan::new(version, self.level, output_level, upper, options);
            if in_progress.conflicts(&plan) {
                return ManualStep::Blocked;
            }
            if self.level == 0 {
                self.descend();
            } else {
                self.done = plan.upper.last().map(|table| table.largest_user_key().to_vec());
            }
            return ManualStep::Plan(plan);
        }
        ManualStep::Done
    }

    fn descend(&mut self) {
        self.level += 1;
        self.done = None;
    }

    /// The tables of the level that the next step takes.
    fn upper(&self, version: &Version, deepest: usize, options: &CompactionOptions) -> Vec<Arc<TableMeta>> {
        if self.level == 0 {
            return l0_closure(version, self.in_range(version, 0));
        }
        let order = version.order();
        let done = |table: &Arc<TableMeta>| {
            self.done.as_ref().is_some_and(|done| order.compare_user(table.smallest_user_key(), done).is_le())
        };
        // Only tables side by side may be rewritten in place: an output could span what lies between them.
        let fresh = |table: &Arc<TableMeta>| {
            self.level == deepest && self.fresh_from.is_some_and(|id| table.id >= id)
        };
        let bytes_max = MANUAL_STEP_TABLES.saturating_mul(options.table_bytes_max);
        let mut bytes = 0_u64;
        let rest =
            self.in_range(version, self.level).into_iter().skip_while(|table| done(table) || fresh(table));
        rest.take_while(|table| {
            let room = bytes < bytes_max;
            bytes = bytes.saturating_add(table.file_bytes);
            room && !fresh(table)
        })
        .collect()
    }

    fn in_range(&self, version: &Version, level: usize) -> Vec<Arc<TableMeta>> {
        let (order, start, end) = (version.order(), self.start.as_deref(), self.end.as_deref());
        if level == 0 {
            let overlaps = |table: &&Arc<TableMeta>| table.overlaps(order, start, end);
            return version.level(0).iter().filter(overlaps).cloned().collect();
        }
        overlapping(version.level(level), order, start, end).to_vec()
    }

    fn deepest(&self, version: &Version) -> Option<usize> {
        (0..LEVELS).rev().find(|&level| !self.in_range(version, level).is_empty())
    }
}
