//! The workloads: their names, what they draw, and how many operations they have.

use clap::ValueEnum;

use crate::plan::{Distribution, Plan};
use crate::value_size::ValueSize;
use crate::ycsb::Mix;

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Write every key once, in key order
    Fillseq,
    /// Write every key once, in random order
    Fillrandom,
    /// Write random keys, and sync each write
    Fillsync,
    /// Write a thousandth of the keys with values of 100 kB
    #[value(alias = "fill100K")]
    Fill100k,
    /// Write keys drawn at random
    Overwrite,
    /// Read keys drawn at random
    Readrandom,
    /// Read keys drawn at random, several at once
    Multireadrandom,
    /// Read keys that are not there
    Readmissing,
    /// Read keys drawn at random while one more thread writes them without a pause
    Readwhilewriting,
    /// Go to keys drawn at random, and read the entries from there on
    Seekrandom,
    /// Read entries in key order
    Readseq,
    /// Read entries in reverse key order
    Readreverse,
    /// Delete keys drawn at random
    Deleterandom,
    /// Delete each of a random half of the keys, then only watch the directory
    Deletehalf,
    /// Write as many new keys in random order where a part of the old ones has been deleted
    Fillbesidegarbage,
    /// The same while a thread does nothing but collect the garbage
    Fillwhilecollecting,
    /// Write the records of YCSB's workloads
    Ycsbload,
    /// YCSB A: half reads, half updates
    Ycsba,
    /// YCSB B: 95 % reads, 5 % updates
    Ycsbb,
    /// YCSB C: reads
    Ycsbc,
    /// YCSB D: 95 % reads of records that were inserted lately, 5 % inserts
    Ycsbd,
    /// YCSB E: 95 % scans of 1 to 100 records, 5 % inserts
    Ycsbe,
    /// YCSB F: half reads, half reads that are followed by an update of the same record
    Ycsbf,
    /// Open a database whose writer was killed before it flushed anything
    Recover,
}

/// What the operations of a workload do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Store values.
    Put,
    /// Remove keys.
    Delete,
    /// Read values.
    Get,
    /// Read values, many at once.
    MultiGet,
    /// Go somewhere and read on.
    Seek,
    /// Walk in key order.
    Forward,
    /// Walk in reverse key order.
    Backward,
    /// What YCSB mixes.
    Mixed(Mix),
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
    /// As [`Permuted`](Self::Permuted), of keys beyond those of all other workloads.
    PermutedBeyond,
    /// Any key, by the [distribution](Workload::distribution).
    Drawn,
    /// Any key, with a suffix that no stored key has.
    DrawnMissing,
    /// The record of the operation's number, as YCSB scatters them.
    Record,
}

/// Bytes of the values of [`Workload::Fill100k`].
const LARGE_VALUE_BYTES: usize = 100_000;

impl Workload {
    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fillseq => "fillseq",
            Self::Fillrandom => "fillrandom",
            Self::Fillsync => "fillsync",
            Self::Fill100k => "fill100k",
            Self::Overwrite => "overwrite",
            Self::Readrandom => "readrandom",
            Self::Multireadrandom => "multireadrandom",
            Self::Readmissing => "readmissing",
            Self::Readwhilewriting => "readwhilewriting",
            Self::Seekrandom => "seekrandom",
            Self::Readseq => "readseq",
            Self::Readreverse => "readreverse",
            Self::Deleterandom => "deleterandom",
            Self::Deletehalf => "deletehalf",
            Self::Fillbesidegarbage => "fillbesidegarbage",
            Self::Fillwhilecollecting => "fillwhilecollecting",
            Self::Ycsbload => "ycsbload",
            Self::Ycsba => "ycsba",
            Self::Ycsbb => "ycsbb",
            Self::Ycsbc => "ycsbc",
            Self::Ycsbd => "ycsbd",
            Self::Ycsbe => "ycsbe",
            Self::Ycsbf => "ycsbf",
            Self::Recover => "recover",
        }
    }

    /// What its operations do; those of `Recover` are its writer's.
    pub(crate) fn action(self) -> Action {
        match self {
            Self::Fillseq
            | Self::Fillrandom
            | Self::Fillsync
            | Self::Fill100k
            | Self::Overwrite
            | Self::Fillbesidegarbage
            | Self::Fillwhilecollecting
            | Self::Ycsbload
            | Self::Recover => Action::Put,
            Self::Deleterandom | Self::Deletehalf => Action::Delete,
            Self::Readrandom | Self::Readmissing | Self::Readwhilewriting => Action::Get,
            Self::Multireadrandom => Action::MultiGet,
            Self::Seekrandom => Action::Seek,
            Self::Readseq => Action::Forward,
            Self::Readreverse => Action::Backward,
            Self::Ycsba => Action::Mixed(Mix::A),
            Self::Ycsbb => Action::Mixed(Mix::B),
            Self::Ycsbc => Action::Mixed(Mix::C),
            Self::Ycsbd => Action::Mixed(Mix::D),
            Self::Ycsbe => Action::Mixed(Mix::E),
            Self::Ycsbf => Action::Mixed(Mix::F),
        }
    }

    /// Which keys they take; what YCSB mixes has its own way.
    pub(crate) fn choice(self) -> Choice {
        match self {
            Self::Fillseq | Self::Readseq | Self::Readreverse => Choice::InOrder,
            Self::Fillrandom | Self::Fillsync | Self::Fill100k | Self::Recover => Choice::Permuted,
            Self::Deletehalf => Choice::PermutedAnew,
            Self::Fillbesidegarbage | Self::Fillwhilecollecting => Choice::PermutedBeyond,
            Self::Readmissing => Choice::DrawnMissing,
            Self::Ycsbload => Choice::Record,
            Self::Overwrite
            | Self::Readrandom
            | Self::Multireadrandom
            | Self::Readwhilewriting
            | Self::Seekrandom
            | Self::Deleterandom
            | Self::Ycsba
            | Self::Ycsbb
            | Self::Ycsbc
            | Self::Ycsbd
            | Self::Ycsbe
            | Self::Ycsbf => Choice::Drawn,
        }
    }

    /// Whether it writes keys that need not be there before.
    pub fn is_fill(self) -> bool {
        matches!(
            self,
            Self::Fillseq
                | Self::Fillrandom
                | Self::Fillsync
                | Self::Fill100k
                | Self::Fillbesidegarbage
                | Self::Fillwhilecollecting
                | Self::Ycsbload
                | Self::Recover
        )
    }

    /// Whether it begins with garbage, of which it has the store make sure that it knows, and writes keys of its own.
    pub fn is_beside_garbage(self) -> bool {
        matches!(self, Self::Fillbesidegarbage | Self::Fillwhilecollecting)
    }

    /// Whether it goes through the entries in their order, forward or backward.
    pub fn walks(self) -> bool {
        matches!(self.action(), Action::Forward | Action::Backward)
    }

    /// Whether it reads or changes YCSB's records, which must be there.
    pub fn works_on_records(self) -> bool {
        matches!(self.action(), Action::Mixed(_))
    }

    /// Whether it loads YCSB's records, or works on them.
    pub(crate) fn is_ycsb(self) -> bool {
        self == Self::Ycsbload || self.works_on_records()
    }

    /// How it draws keys or records, if it draws any.
    pub(crate) fn distribution(self, plan: &Plan) -> Distribution {
        plan.distribution.unwrap_or(self.own_distribution())
    }

    /// The distribution that it has unless the plan says otherwise.
    pub(crate) fn own_distribution(self) -> Distribution {
        match self.action() {
            Action::Mixed(mix) if mix.latest => Distribution::Latest,
            Action::Mixed(_) => Distribution::Zipfian,
            _ => Distribution::Uniform,
        }
    }

    /// Whether it draws those keys most that a fill has written last.
    pub(crate) fn draws_latest_keys(self, plan: &Plan) -> bool {
        let draws = matches!(self.choice(), Choice::Drawn | Choice::DrawnMissing);
        draws && !self.is_ycsb() && self.distribution(plan) == Distribution::Latest
    }

    /// Whether it does nothing but write entries; what `Recover` measures is an opening.
    pub(crate) fn writes(self) -> bool {
        matches!(self.action(), Action::Put | Action::Delete) && self != Self::Recover
    }

    /// Whether it reads.
    pub(crate) fn reads(self) -> bool {
        !matches!(self.action(), Action::Put | Action::Delete)
    }

    /// Whether what it reads is written by nobody at that moment.
    pub(crate) fn reads_what_is_settled(self, plan: &Plan) -> bool {
        match self.action() {
            Action::Mixed(_) => plan.threads == 1,
            _ => self != Self::Readwhilewriting,
        }
    }

    /// Whether entries are written or removed while it runs.
    pub fn changes(self) -> bool {
        self.writes() || self.works_on_records() || self == Self::Readwhilewriting
    }

    /// Of how many writes of a thread one is synced; `None` if none is.
    pub fn writes_per_sync(self, plan: &Plan) -> Option<u64> {
        if self == Self::Fillsync { Some(1) } else { plan.writes_per_sync() }
    }

    /// How many bytes the values have that it writes.
    pub(crate) fn value_size(self, plan: &Plan) -> ValueSize {
        if self == Self::Fill100k { ValueSize::Fixed(LARGE_VALUE_BYTES) } else { plan.value_size }
    }

    /// How long it goes on, if not until all its operations are done.
    pub fn seconds(self, plan: &Plan) -> Option<u64> {
        let counted = self.is_fill() || self == Self::Deletehalf;
        plan.seconds.filter(|_| !counted)
    }

    /// How many operations it has at most.
    pub fn operations(self, plan: &Plan) -> u64 {
        match self {
            _ if self.seconds(plan).is_some() => plan.ops.unwrap_or(u64::MAX),
            Self::Fillseq
            | Self::Fillrandom
            | Self::Fillbesidegarbage
            | Self::Fillwhilecollecting
            | Self::Ycsbload
            | Self::Recover => plan.num,
            Self::Deletehalf => plan.num / 2,
            Self::Fillsync | Self::Fill100k => (plan.num / 1000).max(100).min(plan.num),
            _ => plan.ops.unwrap_or(plan.num),
        }
    }
}
