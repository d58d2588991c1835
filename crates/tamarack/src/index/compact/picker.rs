//! Which compaction should run next.
//!
//! L0 is due by its number of tables and their size beside L1, every other level by its weight: its bytes, plus a part of the value bytes
//! that it references, plus for each deletion the part that the value it hides would count. So levels full of
//! overwritten values and deletions are compacted early, and their garbage surfaces. Within a level the table with
//! the most weight per byte to be rewritten goes first. Relocation tables that take too much memory compete with levels.

use crate::base::limits::LEVELS;
use crate::base::sync::Arc;

use super::super::version::{TableMeta, Version, overlapping};
use super::dissolve::{self, pick_dissolving};
use super::in_progress::InProgress;
use super::plan::{CompactionPlan, KeyRange};
use super::{CompactionOptions, DELETED_WEIGHT_DIVISOR, Due, LEVEL_RATIO, VALUE_WEIGHT_DIVISOR};

/// Level 0 waits at most until it has this many times the tables that make it due.
const LEVEL0_PATIENCE: u64 = 6;

/// The most urgent compaction that is due and conflicts with none that runs.
pub fn pick(
    version: &Arc<Version>,
    in_progress: &InProgress,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    let weights = Weights::of(version);
    let mut due: Vec<(u64, Need)> = (0..LEVELS - 1)
        .map(|level| (score(version, level, &weights, in_progress, options), Need::Level(level)))
        .filter(|&(score, need)| score > 0 && score >= need.due(options))
        .collect();
    let relocations = dissolve::score(version, options);
    due.extend((relocations > 0).then_some((relocations, Need::Relocations)));
    due.sort_by_key(|&(score, need)| (std::cmp::Reverse(score), need));
    due.into_iter().find_map(|(_, need)| match need {
        Need::Level(0) => pick_l0(version, in_progress, options),
        Need::Level(level) => pick_table(version, level, &weights, in_progress, options),
        Need::Relocations => pick_dissolving(version, in_progress, options),
    })
}

/// The next compaction of level 0, which need not be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coming {
    /// Bytes that it will write.
    pub bytes: u64,
    /// How near it is, in thousandths: 0 before it is [coming](Due::COMING), 1000 once it is due.
    pub near: u64,
}

impl Coming {
    /// Its bytes as far as it is near.
    pub fn near_bytes(&self) -> u64 {
        self.bytes * self.near / 1000
    }
}

/// What the tables of level 0 will come to.
pub fn coming(version: &Version, in_progress: &InProgress, options: &CompactionOptions) -> Coming {
    let (from, due) = (Due::COMING.level0, Due::USUAL.level0);
    let staying: Vec<_> = version.level(0).iter().filter(|table| !in_progress.takes(table.id)).collect();
    let near = level0_score(version, &staying, options).clamp(from, due) - from;
    let below = KeyRange::of(version.order(), staying.iter().copied()).map_or(&[][..], |range| {
        let (smallest, largest) = (Some(&range.smallest[..]), Some(&range.largest[..]));
        overlapping(version.level(1), version.order(), smallest, largest)
    });
    let inputs = staying.into_iter().chain(below);
    Coming { bytes: inputs.map(|table| table.file_bytes).sum(), near: near * 1000 / (due - from) }
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// A level holds more than it should.
    Level(usize),
    /// Relocation tables take too much memory.
    Relocations,
}

impl Need {
    /// The score at which it is due.
    fn due(self, options: &CompactionOptions) -> u64 {
        if self == Self::Level(0) { options.due.level0 } else { options.due.deeper }
    }
}

/// How full `level` is, in thousandths of its target. Tables that a running compaction takes away do not count.
fn score(
    version: &Version,
    level: usize,
    weights: &Weights,
    in_progress: &InProgress,
    options: &CompactionOptions,
) -> u64 {
    let staying = version.level(level).iter().filter(|table| !in_progress.takes(table.id));
    let (amount, target) = if level == 0 {
        return level0_score(version, &staying.collect::<Vec<_>>(), options);
    } else {
        let target = options.base_weight.saturating_mul(LEVEL_RATIO.pow(level as u32 - 1));
        (staying.map(|table| weights.table(table)).fold(0, u64::saturating_add), target)
    };
    amount.saturating_mul(1000) / target.max(1)
}

/// Level 0 is due by its number of tables, which every read looks at. Tables that are small beside level 1, all of
/// which they would rewrite, wait until there are as many bytes of them, or until there are too many of them.
fn level0_score(version: &Version, staying: &[&Arc<TableMeta>], options: &CompactionOptions) -> u64 {
    let count = staying.len() as u64;
    let bytes: u64 = staying.iter().map(|table| table.file_bytes).sum();
    let level1: u64 = version.level(1).iter().map(|table| table.file_bytes).sum();
    let by_count = count * 1000 / (options.l0_tables as u64).max(1);
    let by_bytes = bytes.saturating_mul(1000) / level1.max(1);
    by_count.min(by_bytes.max(by_count / LEVEL0_PATIENCE))
}

/// What tables weigh.
struct Weights {
    /// What a deletion weighs beyond its bytes: as much as a value of average size.
    deletion: u64,
}

impl Weights {
    fn of(version: &Version) -> Self {
        let (mut values, mut bytes) = (0_u64, 0_u64);
        for (_, table) in version.tables() {
            values =
                table.references.iter().map(|reference| reference.values).fold(values, u64::saturating_add);
            bytes = bytes.saturating_add(table.referenced_value_bytes);
        }
        Self { deletion: bytes / values.max(1) / DELETED_WEIGHT_DIVISOR }
    }

    fn table(&self, table: &TableMeta) -> u64 {
        let values = table.referenced_value_bytes / VALUE_WEIGHT_DIVISOR;
        table.file_bytes.saturating_add(values).saturating_add(table.deletes.saturating_mul(self.deletion))
    }
}

/// Tables of L0 that overlap, directly or through others, with everything of L1 that they overlap. Starts from
/// the oldest, so that what has waited longest goes first.
fn pick_l0(
    version: &Arc<Version>,
    in_progress: &InProgress,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    version.level(0).iter().rev().find_map(|seed| {
        let plan = CompactionPlan::new(version, 0, 1, l0_closure(version, vec![seed.clone()]), options);
        (!in_progress.conflicts(&plan)).then_some(plan)
    })
}

/// `tables` of L0 with every table of L0 that overlaps one of them, directly or through others, newest first.
pub(super) fn l0_closure(version: &Version, tables: Vec<Arc<TableMeta>>) -> Vec<Arc<TableMeta>> {
    let order = version.order();
    let mut tables = tables;
    while let Some(range) = KeyRange::of(order, &tables) {
        let (smallest, largest) = (Some(&range.smallest[..]), Some(&range.largest[..]));
        let all = version.level(0).iter().filter(|table| table.overlaps(order, smallest, largest));
        let grown: Vec<_> = all.cloned().collect();
        if grown.len() == tables.len() {
            return grown;
        }
        tables = grown;
    }
    tables
}

/// The table of `level` with the best ratio of weight to bytes rewritten; among equals the first after the
/// level's cursor.
fn pick_table(
    version: &Arc<Version>,
    level: usize,
    weights: &Weights,
    in_progress: &InProgress,
    options: &CompactionOptions,
) -> Option<CompactionPlan> {
    let order = version.order();
    let tables = version.level(level);
    let cursor = &version.numbers().compaction_cursors[level];
    let first = tables.partition_point(|table| {
        !cursor.is_empty() && order.compare_user(table.smallest_user_key(), cursor).is_le()
    });
    let mut best: Option<(u128, u128, &Arc<TableMeta>)> = None;
    for table in tables[first..].iter().chain(&tables[..first]) {
        let (smallest, largest) = (table.smallest_user_key(), table.largest_user_key());
        let lower = overlapping(version.level(level + 1), order, Some(smallest), Some(largest));
        let range = KeyRange::of(order, lower.iter().chain([table])).expect("the table itself is there");
        if in_progress.blocks(order, [level as u8, level as u8 + 1], &range) {
            continue;
        }
        let weight = u128::from(weights.table(table));
        let cost = lower.iter().map(|table| u128::from(table.file_bytes)).sum::<u128>();
        let cost = cost + u128::from(table.file_bytes).max(1);
        if best.is_none_or(|(best_weight, best_cost, _)| weight * best_cost > best_weight * cost) {
            best = Some((weight, cost, table));
        }
    }
    best.map(|(_, _, table)| CompactionPlan::new(version, level, level + 1, vec![table.clone()], options))
}
