//! The workloads: their names, what they draw, and how many operations they have.

use clap::ValueEnum;

use super::Plan;

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Write every key once, in key order
    Fillseq,
    /// Write every key once, in random order
    Fillrandom,
    /// Write random keys, and sync each write
    Fillsync,
    /// Write keys drawn at random
    Overwrite,
    /// Read keys drawn at random
    Readrandom,
    /// Read keys that are not there
    Readmissing,
    /// Read entries in key order
    Readseq,
    /// Read entries in reverse key order
    Readreverse,
    /// Delete keys drawn at random
    Deleterandom,
    /// Delete each of a random half of the keys, then only watch the directory
    Deletehalf,
    /// Open a database whose writer was killed before it flushed anything
    Recover,
}

/// What one operation of a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Store a value.
    Put,
    /// Remove a key.
    Delete,
    /// Read a value.
    Get,
    /// Step to the next entry.
    Next,
    /// Step to the previous entry.
    Previous,
}

/// Which key an operation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The key of the operation's own number.
    InOrder,
    /// The key to which a fixed permutation maps the operation's number.
    Permuted,
    /// The same with another permutation, which knows nothing of the order in which keys were written.
    PermutedAnew,
    /// Any key, by the plan's distribution.
    Drawn,
    /// Any key, with a suffix that no stored key has.
    DrawnMissing,
}

impl Workload {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fillseq => "fillseq",
            Self::Fillrandom => "fillrandom",
            Self::Fillsync => "fillsync",
            Self::Overwrite => "overwrite",
            Self::Readrandom => "readrandom",
            Self::Readmissing => "readmissing",
            Self::Readseq => "readseq",
            Self::Readreverse => "readreverse",
            Self::Deleterandom => "deleterandom",
            Self::Deletehalf => "deletehalf",
            Self::Recover => "recover",
        }
    }

    /// What its operations do; those of `Recover` are its writer's.
    pub fn action(self) -> Action {
        match self {
            Self::Fillseq | Self::Fillrandom | Self::Fillsync | Self::Overwrite | Self::Recover => {
                Action::Put
            }
            Self::Deleterandom | Self::Deletehalf => Action::Delete,
            Self::Readrandom | Self::Readmissing => Action::Get,
            Self::Readseq => Action::Next,
            Self::Readreverse => Action::Previous,
        }
    }

    /// Which keys they take.
    pub fn choice(self) -> Choice {
        match self {
            Self::Fillseq | Self::Readseq | Self::Readreverse => Choice::InOrder,
            Self::Fillrandom | Self::Fillsync | Self::Recover => Choice::Permuted,
            Self::Deletehalf => Choice::PermutedAnew,
            Self::Overwrite | Self::Readrandom | Self::Deleterandom => Choice::Drawn,
            Self::Readmissing => Choice::DrawnMissing,
        }
    }

    /// Whether it writes keys that need not be there before.
    pub fn is_fill(self) -> bool {
        matches!(self, Self::Fillseq | Self::Fillrandom | Self::Fillsync | Self::Recover)
    }

    /// Whether it writes entries; what `Recover` measures is an opening.
    pub fn writes(self) -> bool {
        matches!(self.action(), Action::Put | Action::Delete) && self != Self::Recover
    }

    /// Whether each of its writes is synced, whatever the plan says.
    pub fn always_syncs(self) -> bool {
        self == Self::Fillsync
    }

    /// How many operations it has.
    pub(super) fn operations(self, plan: &Plan) -> u64 {
        match self {
            Self::Fillseq | Self::Fillrandom | Self::Recover => plan.num,
            Self::Deletehalf => plan.num / 2,
            Self::Fillsync => (plan.num / 1000).max(100).min(plan.num),
            _ => plan.ops.unwrap_or(plan.num),
        }
    }
}
