//! A compaction that could run: its inputs and where they go.

use crate::base::keys::KeyOrder;
use crate::base::limits::LEVELS;
use crate::base::sync::Arc;

use super::super::version::{TableMeta, Version, overlapping};
use super::{CompactionOptions, GRANDPARENT_TABLES_MAX};

/// A closed range of user keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// Its first key.
    pub smallest: Vec<u8>,
    /// Its last key.
    pub largest: Vec<u8>,
}

impl KeyRange {
    /// The range that covers all of `tables`; `None` if there are none.
    pub fn of<'a>(order: &KeyOrder, tables: impl IntoIterator<Item = &'a Arc<TableMeta>>) -> Option<Self> {
        let mut range: Option<(&[u8], &[u8])> = None;
        for table in tables {
            let (smallest, largest) = (table.smallest_user_key(), table.largest_user_key());
            range = Some(match range {
                None => (smallest, largest),
                Some((low, high)) => (
                    if order.compare_user(smallest, low).is_lt() { smallest } else { low },
                    if order.compare_user(largest, high).is_gt() { largest } else { high },
                ),
            });
        }
        range.map(|(low, high)| Self { smallest: low.to_vec(), largest: high.to_vec() })
    }

    /// Whether the two have a key in common.
    pub fn overlaps(&self, order: &KeyOrder, other: &Self) -> bool {
        order.compare_user(&self.smallest, &other.largest).is_le()
            && order.compare_user(&other.smallest, &self.largest).is_le()
    }
}

/// What a plan does with its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanKind {
    /// The one table changes its level; its file stays as it is.
    Move,
    /// The inputs are merged into new tables.
    Merge,
}

/// A compaction: tables of `level` and what they overlap in `output_level`, to become tables of `output_level`.
#[derive(Debug, Clone)]
pub struct CompactionPlan {
    /// The version that the plan was made for. It keeps the inputs' files in place, and while it runs it is one
    /// [without values](Version::without_values).
    pub version: Arc<Version>,
    /// Move or merge.
    pub kind: PlanKind,
    /// The level that is compacted.
    pub level: u8,
    /// The next level, or the same when tables of the deepest level are rewritten in place.
    pub output_level: u8,
    /// Inputs from `level`.
    pub upper: Vec<Arc<TableMeta>>,
    /// Inputs from `output_level`; empty when it is the same level.
    pub lower: Vec<Arc<TableMeta>>,
    /// Tables below `output_level` that the inputs overlap.
    pub grandparents: Vec<Arc<TableMeta>>,
    /// The user keys of all inputs.
    pub range: KeyRange,
}

impl CompactionPlan {
    /// The plan that compacts `upper`, tables of `level` of `version`, into `output_level`. `upper` is not empty.
    pub(super) fn new(
        version: &Arc<Version>,
        level: usize,
        output_level: usize,
        upper: Vec<Arc<TableMeta>>,
        options: &CompactionOptions,
    ) -> Self {
        let order = version.order();
        let upper_range = KeyRange::of(order, &upper).expect("a plan has inputs");
        let lower =
            if output_level == level { Vec::new() } else { find(version, output_level, &upper_range) };
        let range = KeyRange::of(order, upper.iter().chain(&lower)).expect("a plan has inputs");
        let grandparents =
            if output_level + 1 < LEVELS { find(version, output_level + 1, &range) } else { Vec::new() };
        let mut plan = Self {
            version: version.clone(),
            kind: PlanKind::Merge,
            level: level as u8,
            output_level: output_level as u8,
            upper,
            lower,
            grandparents,
            range,
        };
        if plan.can_move(options) {
            plan.kind = PlanKind::Move;
        }
        plan
    }

    /// All inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &Arc<TableMeta>> {
        self.upper.iter().chain(&self.lower)
    }

    /// Bytes of all inputs.
    pub fn input_bytes(&self) -> u64 {
        self.inputs().map(|table| table.file_bytes).sum()
    }

    /// Bytes that it may write: as much as it reads.
    pub fn output_bytes_max(&self) -> u64 {
        match self.kind {
            PlanKind::Move => 0,
            PlanKind::Merge => self.input_bytes(),
        }
    }

    /// The tables of `version`, which has the outputs, that may hold newer versions of their keys, each with its level.
    pub fn newer_outside(&self, version: &Version) -> Vec<(u8, Arc<TableMeta>)> {
        let (smallest, largest) = (Some(&self.range.smallest[..]), Some(&self.range.largest[..]));
        let above = version.tables().filter(|(level, _)| *level < self.output_level);
        let newer = above.filter(|(_, table)| table.overlaps(version.order(), smallest, largest));
        newer.map(|(level, table)| (level, Arc::clone(table))).collect()
    }

    /// Whether no table outside of the plan can hold an older entry of `user_key` than the inputs: neither a
    /// deeper one, nor, for a plan that begins at L0, an older one there.
    pub fn nothing_older_outside(&self, user_key: &[u8]) -> bool {
        let order = self.version.order();
        let deeper = usize::from(self.output_level) + 1..LEVELS;
        let below = deeper.into_iter().any(|level| {
            !overlapping(self.version.level(level), order, Some(user_key), Some(user_key)).is_empty()
        });
        let newest = self.upper.iter().map(|table| table.id).max();
        let beside = self.level == 0
            && self.version.level(0).iter().any(|table| {
                Some(table.id) < newest
                    && table.overlaps(order, Some(user_key), Some(user_key))
                    && !self.upper.iter().any(|input| input.id == table.id)
            });
        !below && !beside
    }

    /// A single table that meets nothing may just change its level, unless that would put it on top of too much,
    /// or rewriting it would make deletions vanish.
    fn can_move(&self, options: &CompactionOptions) -> bool {
        let [table] = &self.upper[..] else { return false };
        let beneath: u64 = self.grandparents.iter().map(|table| table.file_bytes).sum();
        let (smallest, largest) = (Some(&self.range.smallest[..]), Some(&self.range.largest[..]));
        let bottom = (usize::from(self.output_level) + 1..LEVELS).all(|level| {
            overlapping(self.version.level(level), self.version.order(), smallest, largest).is_empty()
        });
        self.level != self.output_level
            && self.lower.is_empty()
            && beneath <= GRANDPARENT_TABLES_MAX.saturating_mul(options.table_bytes_max)
            && !(bottom && table.deletes > 0)
    }
}

fn find(version: &Version, level: usize, range: &KeyRange) -> Vec<Arc<TableMeta>> {
    overlapping(version.level(level), version.order(), Some(&range.smallest), Some(&range.largest)).to_vec()
}
