//! Which tables are rewritten so that no pointer leads into some segments any more, because what is alive in these was
//! copied.
//!
//! Pure. Level 0 goes first, because it takes level 1 along; below, tables are rewritten in place. It comes to an end: a
//! table that was rewritten has no such pointer, and no new one gets any.

use crate::base::ids::SegmentId;
use crate::base::limits::LEVELS;
use crate::base::sync::Arc;

use super::super::version::{TableMeta, Version};
use super::dissolve::moved_pointers;
use super::in_progress::InProgress;
use super::manual::ManualStep;
use super::picker::l0_closure;
use super::plan::CompactionPlan;
use super::{CompactionOptions, MANUAL_STEP_TABLES};

/// The next compaction that rewrites tables with pointers under one of `ids`, which are in their order. While a running
/// compaction may yet write such a table, it is in the way.
pub fn pick_replacing(
    version: &Arc<Version>,
    in_progress: &InProgress,
    options: &CompactionOptions,
    ids: &[SegmentId],
) -> ManualStep {
    let points = |table: &Arc<TableMeta>| moved_pointers(table, ids) > 0;
    let mut blocked = ids.iter().any(|&id| in_progress.reaches(id));
    if let Some(oldest) = version.level(0).iter().rev().find(|table| points(table)) {
        let plan = CompactionPlan::new(version, 0, 1, l0_closure(version, vec![oldest.clone()]), options);
        if !in_progress.conflicts(&plan) {
            return ManualStep::Plan(plan);
        }
        blocked = true;
    }
    let bytes_max = MANUAL_STEP_TABLES.saturating_mul(options.table_bytes_max);
    for level in 1..LEVELS {
        // Only tables side by side may be rewritten in place: an output could span what lies between them.
        for beside in version.level(level).chunk_by(|left, right| points(left) == points(right)) {
            let mut rest = beside.iter().filter(|table| points(table)).peekable();
            while rest.peek().is_some() {
                let mut bytes = 0_u64;
                let mut upper = Vec::new();
                while let Some(table) = rest.next_if(|_| upper.is_empty() || bytes < bytes_max) {
                    bytes = bytes.saturating_add(table.file_bytes);
                    upper.push(table.clone());
                }
                let plan = CompactionPlan::new(version, level, level, upper, options);
                if !in_progress.conflicts(&plan) {
                    return ManualStep::Plan(plan);
                }
                blocked = true;
            }
        }
    }
    if blocked { ManualStep::Blocked } else { ManualStep::Done }
}
