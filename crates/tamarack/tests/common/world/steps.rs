//! What is done to a database, as it follows from random numbers alone: neither from what the database answers nor from
//! how it is opened. So whoever has the numbers knows what must be there.

use tamarack::{Codec, GcPolicy, LogMode, Options};

use super::super::Random;
use super::model::{KeyOrder, Operation, Value};

/// A segment for several values so large that dead ones are given back by holes.
const ROOMY_SEGMENT_BYTES: u64 = 1 << 20;

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    WriteOne,
    WriteBatch,
    Read,
    MultiGet,
    /// Takes a snapshot, or drops one.
    Snapshot,
    NewWalker,
    Walk,
    /// Compares everything there is at a moment.
    Compare,
    Gc,
    SortValues,
    Flush,
    Compact,
    Sync,
    Rest,
    Checkpoint,
    Reopen,
    Crash,
}

/// How often each kind of step is taken.
pub type Weights = [(Kind, usize)];

/// One step. How reads are done in detail is left to the numbers that follow.
#[derive(Debug)]
pub struct Step {
    pub kind: Kind,
    /// What it writes.
    pub operations: Vec<Operation>,
    pub sync: bool,
}

/// What stays the same in the life of one database.
#[derive(Debug, Clone, Copy)]
pub struct Character {
    pub order: KeyOrder,
    /// Whether segments have room for several large values, and get them.
    pub roomy: bool,
}

impl Character {
    /// A random one.
    pub fn new(random: &mut Random) -> Self {
        let orders = [KeyOrder::Bytewise, KeyOrder::Bytewise, KeyOrder::ShortFirst, KeyOrder::Caseless];
        Self { order: random.pick(&orders), roomy: random.one_in(6) }
    }

    /// A random step.
    pub fn step(&self, random: &mut Random, weights: &Weights) -> Step {
        let mut left = random.below(weights.iter().map(|(_, weight)| weight).sum());
        let mut kinds = weights.iter();
        let kind = loop {
            let (kind, weight) = kinds.next().expect("less than the sum of all weights is left");
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => break *kind,
            }
        };
        let (count, deleted_one_in, synced_one_in) = match kind {
            Kind::WriteOne => (1, 4, 20),
            Kind::WriteBatch => (random.below(30), 3, 10),
            _ => (0, 1, 1),
        };
        let operations = (0..count)
            .map(|_| (self.key(random), (!random.one_in(deleted_one_in)).then(|| self.value(random))))
            .collect();
        Step { kind, operations, sync: random.one_in(synced_one_in) }
    }

    /// One of some two hundred keys.
    pub fn key(&self, random: &mut Random) -> Vec<u8> {
        let number = random.below(200);
        let mut key = match number % 5 {
            0 => format!("user{number}").into_bytes(),
            1 => format!("user\0{number}").into_bytes(),
            2 => [vec![b'x'; 150], number.to_be_bytes().to_vec()].concat(),
            3 => vec![0xff; number / 5],
            _ => format!("{number:05}-and-a-longer-end").into_bytes(),
        };
        if self.order == KeyOrder::Caseless && random.one_in(2) {
            key.make_ascii_uppercase();
        }
        key
    }

    fn value(&self, random: &mut Random) -> Value {
        let len = match random.below(60) {
            // Large ones leave large holes.
            7..=20 if self.roomy => (40 << 10) + random.below(160 << 10),
            0 => 100 << 10,
            1..=5 => random.below(10 << 10),
            6..=30 => random.below(40),
            _ => random.below(600),
        };
        Value { seed: random.number(), len }
    }

    /// Small limits of every kind.
    pub fn options(&self, random: &mut Random) -> Options {
        let segment_bytes_max =
            if self.roomy { ROOMY_SEGMENT_BYTES } else { random.pick(&[4 << 10, 4 << 10, 20 << 10]) };
        let recovery_log_max = random.pick(&[2 * segment_bytes_max, 64 << 10, 1 << 20]);
        Options {
            comparator: self.order.comparator(),
            memory_max: random.pick(&[None, Some(24 << 20)]),
            memtable_bytes: random.pick(&[4 << 10, 4 << 10, 40 << 10]),
            memtables_max: random.pick(&[2, 4]),
            segment_bytes_max,
            recovery_log_max: recovery_log_max.max(2 * segment_bytes_max),
            log_mode: random.pick(&[LogMode::Auto, LogMode::Plain]),
            max_space_amplification: random.pick(&[1.05, 1.3, 1000.0]),
            value_runs_max: random.pick(&[0, 1, 2, 8]),
            gc_bytes_per_second: random.pick(&[0, 0, 64 << 20]),
            gc: random.pick(&[GcPolicy::CostBenefit, GcPolicy::CostBenefit, GcPolicy::Tail, GcPolicy::Off]),
            inline_value_max: random.pick(&[0, 16, 512]),
            value_codec: random.pick(&[Codec::None, Codec::Lz4, Codec::Zstd]),
            block_codec: random.pick(&[Codec::None, Codec::Lz4, Codec::Zstd]),
            block_bytes: 512,
            filter_bits_per_key: random.pick(&[0, 4, 10]),
            table_bytes_max: random.pick(&[4 << 10, 16 << 10]),
            level_bytes_base: random.pick(&[4 << 10, 32 << 10]),
            block_cache_bytes: random.pick(&[0, 8 << 10, 1 << 20]),
            row_cache_bytes: random.pick(&[0, 8 << 10, 1 << 20]),
            direct_reads: random.pick(&[false, true]),
            relocation_cache_bytes: random.pick(&[4 << 10, 4 << 10, 64 << 20]),
            open_files_max: random.pick(&[16, 1000]),
            background_threads: random.pick(&[1, 2, 3]),
            paranoid_checks: random.one_in(4),
            ..Options::default()
        }
    }
}
