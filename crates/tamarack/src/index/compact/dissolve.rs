//! Which tables are rewritten so that relocation tables can go.
//!
//! Garbage collection leaves pointers as they are, and relocation tables tell where they lead until compactions have
//! replaced them in passing. A relocation table goes once no table has a pointer that needs it. When all of them together
//! would take more memory than they may, tables are rewritten for that alone: those first in which a byte rewritten
//! replaces most pointers, and none in which that is too few, for then a look at a relocation table on disk costs less.
//!
//! Pure. It comes to an end: a table that was rewritten has no such pointer, until the segments that it points to now are
//! collected as well.

use crate::base::ids::SegmentId;
use crate::base::sync::Arc;

use super::super::version::{TableMeta, Version};
use super::CompactionOptions;
use super::in_progress::InProgress;
use super::picker::l0_closure;
use super::plan::{CompactionPlan, KeyRange};

/// A table is rewritten if that replaces a pointer for each so many bytes. An entry takes some 30, so about every eighth of
/// its values was moved: rewriting the index then costs a fraction of what copying these values did.
const BYTES_PER_POINTER_MAX: u64 = 256;

/// The urgency is at most this: a level that is half as much again beyond its target goes first, because writers wait for
/// that one.
const SCORE_MAX: u64 = 1500;

/// How urgent it is, in thousandths of the memory that relocation tables may take; 0 while they take no more.
pub fn score(version: &Version, options: &CompactionOptions) -> u64 {
    let memory = version.segments().relocation_memory_bytes();
    match memory.saturating_mul(1000) / options.relocation_bytes_max.max(1) {
        score if score > 1000 => score.min(SCORE_MAX),
        _ => 0,
    }
}

/// The compaction that replaces most pointers per byte, if one is worth it and conflicts with none that runs.
pub fn pick_dissolving(
    version: &Arc<Version>,
    in_progress: &InProgress,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    let moved = version.segments().moved().map(|(id, _)| id);
    let moved: Vec<SegmentId> = moved.filter(|id| !options.unreadable.contains(id)).collect();
    let mut best: Option<(u64, u64, usize, Vec<Arc<TableMeta>>)> = None;
    let mut consider = |level: usize, output_level: usize, upper: Vec<Arc<TableMeta>>, cost: u64| {
        let pointers = upper.iter().map(|table| moved_pointers(table, &moved)).sum::<u64>();
        let Some(range) = KeyRange::of(version.order(), &upper).filter(|_| pointers > 0) else { return };
        let is_better = best.as_ref().is_none_or(|(best_pointers, best_cost, ..)| {
            u128::from(pointers) * u128::from(*best_cost) > u128::from(*best_pointers) * u128::from(cost)
        });
        let levels = [level as u8, output_level as u8];
        if is_better
            && cost <= pointers.saturating_mul(BYTES_PER_POINTER_MAX)
            && !in_progress.blocks(version.order(), levels, &range)
        {
            best = Some((pointers, cost, level, upper));
        }
    };
    for (level, table) in version.tables().filter(|(level, _)| *level > 0) {
        // In place: nothing else need be rewritten with it.
        consider(level.into(), level.into(), vec![table.clone()], table.file_bytes);
    }
    // Tables of level 0 have an order of their own, which new ones would break.
    if let Some(oldest) = version.level(0).last() {
        let upper = l0_closure(version, vec![oldest.clone()]);
        let plan = CompactionPlan::new(version, 0, 1, upper, options);
        if !in_progress.conflicts(&plan) {
            consider(0, 1, plan.upper.clone(), plan.input_bytes());
        }
    }
    let (_, _, level, upper) = best?;
    Some(CompactionPlan::new(version, level, level.max(1), upper, options))
}

/// Pointers of `table` into the segments `moved`. Both are in the order of ids, and there may be many.
pub(super) fn moved_pointers(table: &TableMeta, mut moved: &[SegmentId]) -> u64 {
    let mut pointers = 0;
    for reference in &table.references {
        while moved.first().is_some_and(|&id| id < reference.segment) {
            moved = &moved[1..];
        }
        match moved.first() {
            Some(&id) if id == reference.segment => pointers += reference.values,
            Some(_) => {}
            None => break,
        }
    }
    pointers
}
