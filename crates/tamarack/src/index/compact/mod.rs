//! Compaction: merging tables downwards so that overwritten and deleted entries go, and every level below L0 stays
//! sorted and within its target.
//!
//! Deciding is pure: [`pick`] and [`ManualCompaction`] look at a version and return a [`CompactionPlan`];
//! `decide` says which entries survive. Doing is apart: `run` merges a plan's inputs into new tables and returns
//! the edit, which the index installs.
//!
//! Compactions also replace pointers into segments that were moved. Where too many are left, [`dissolve`] has tables
//! rewritten for that alone; and so has the sorting of values, whose copies get pointers of their own ([`pick_replacing`]).
//!
//! Two plans that share a level never overlap in key range while both run ([`InProgress`]): that alone makes the
//! edits of concurrent compactions fit one another.

mod decide;
mod dissolve;
mod in_progress;
mod manual;
mod picker;
mod plan;
mod replace;
mod run;
mod split;
mod staged;

#[cfg(test)]
mod tests;

pub use decide::{Decider, Decision, stripe};
pub use in_progress::{InProgress, Ticket};
pub use manual::{ManualCompaction, ManualStep};
pub use picker::{Coming, coming, pick};
pub use plan::CompactionPlan;
pub use replace::pick_replacing;
pub use run::{CompactionJob, CompactionStats, RunAll, Signals};

use std::collections::BTreeSet;

use crate::base::ids::SegmentId;

/// How much larger the target of a level is than that of the level above it.
const LEVEL_RATIO: u64 = 10;

/// Bytes of values that count like one byte of a table. Compacting a table costs its own bytes; what it gains is
/// knowledge about the values it points to. Counting a part of them makes a level with much to reveal full
/// earlier. Collections find what newer tables hide by themselves, so it is a small part: at 128, an entry with a 1 KiB
/// value counts a third more than its key alone. At 32 uniform overwrites of such values cost a tenth more processor time,
/// and more bytes (2.33 for each of the user's instead of 2.21).
const VALUE_WEIGHT_DIVISOR: u64 = 128;

/// The same for the values that deletions hide: nothing else may ever come to where these are.
const DELETED_WEIGHT_DIVISOR: u64 = 32;

/// An output table is cut, and a table is not merely moved, when it would overlap more than this many tables of
/// full size in the level below its own: compacting it later would cost too much.
const GRANDPARENT_TABLES_MAX: u64 = 10;

/// A step of a manual compaction, and of one that replaces pointers, takes about this many tables of full size, so that it
/// can be cancelled and leaves room for others.
const MANUAL_STEP_TABLES: u64 = 8;

/// What compactions go by.
#[derive(Debug, Clone)]
pub struct CompactionOptions {
    /// Tables in L0 that make it due.
    pub l0_tables: usize,
    /// The weight at which L1 is due; deeper levels have ten times as much each.
    pub base_weight: u64,
    /// Size at which an output table ends, in bytes.
    pub table_bytes_max: u64,
    /// Bytes of memory that relocation tables may take, all together. Beyond that tables are rewritten so that they go.
    pub relocation_bytes_max: u64,
    /// When levels are due.
    pub due: Due,
    /// Segments that were moved and whose relocation tables are damaged: no table is rewritten for pointers into them.
    pub unreadable: BTreeSet<SegmentId>,
}

/// How full levels are when they are due, in thousandths of their targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Level 0.
    pub level0: u64,
    /// Each of the others.
    pub deeper: u64,
}

impl Due {
    /// In steady state.
    pub const USUAL: Self = Self { level0: 1000, deeper: 1000 };
    /// Level 0 as soon as its compaction is [coming](coming).
    pub const COMING: Self = Self { level0: 500, ..Self::USUAL };
    /// Eager compactions find garbage in the value log sooner.
    pub const EAGER: Self = Self { level0: 250, deeper: 250 };
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self {
            l0_tables: 4,
            base_weight: 64 << 20,
            table_bytes_max: 16 << 20,
            relocation_bytes_max: 64 << 20,
            due: Due::USUAL,
            unreadable: BTreeSet::new(),
        }
    }
}
