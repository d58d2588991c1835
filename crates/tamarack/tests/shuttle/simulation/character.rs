//! What a seed makes of a life: what is done, how the database is opened, and what may go wrong.

use tamarack::testing::{Call, DiskFault, EIO, ENOSPC, Fault, Faults, SimDisk};
use tamarack::{Codec, GcPolicy, LogMode, Options};

use crate::common::{Random, tiny};

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Put,
    Delete,
    Batch,
    Sync,
    Flush,
    Compact,
    Gc,
    SortValues,
    Rest,
    Snapshot,
    Read,
    Checkpoint,
}

/// What may go wrong, but for losses of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Nothing,
    /// Calls fail.
    Errors,
    /// The device loses, misplaces and changes what it has confirmed.
    Lies,
}

/// What stays the same in one life.
#[derive(Debug, Clone)]
pub struct Character {
    pub trouble: Trouble,
    steps: Vec<Step>,
    keys: usize,
    synced_one_in: usize,
    lengths: &'static [usize],
    options: Options,
}

impl Character {
    /// That of a seed.
    pub fn new(random: &mut Random) -> Self {
        let mut steps = vec![Step::Put; 6];
        let rare = [
            Step::Delete,
            Step::Delete,
            Step::Batch,
            Step::Batch,
            Step::Sync,
            Step::Flush,
            Step::Compact,
            Step::Gc,
            Step::SortValues,
            Step::Rest,
            Step::Snapshot,
            Step::Read,
            Step::Checkpoint,
        ];
        steps.extend(rare.iter().filter(|_| random.one_in(2)));
        Self {
            trouble: random.pick(&[Trouble::Nothing, Trouble::Errors, Trouble::Errors, Trouble::Lies]),
            steps,
            keys: random.pick(&[3, 10, 30]),
            synced_one_in: random.pick(&[1, 5, 30, 1000]),
            lengths: [&[20, 300][..], &[300, 600, 900], &[5, 40, 3000], &[700]][random.below(4)],
            options: options(random),
        }
    }

    /// How the database is opened next; what a database is stored with never changes.
    pub fn options(&self, random: &mut Random) -> Options {
        if random.one_in(2) { self.options.clone() } else { options(random) }
    }

    pub fn step(&self, random: &mut Random) -> Step {
        random.pick(&self.steps)
    }

    pub fn key(&self, random: &mut Random) -> Vec<u8> {
        format!("key{:03}", random.below(self.keys)).into_bytes()
    }

    /// A value that no other operation writes.
    pub fn value(&self, random: &mut Random, number: u64, key: &[u8]) -> Vec<u8> {
        let len = random.pick(self.lengths) + random.below(30);
        let text = format!("<{number}@{}>", key.escape_ascii());
        text.into_bytes().into_iter().cycle().take(len).collect()
    }

    pub fn sync(&self, random: &mut Random) -> bool {
        random.one_in(self.synced_one_in)
    }

    /// Plans what goes wrong next.
    pub fn trouble(&self, disk: &SimDisk, faults: &Faults, random: &mut Random) {
        let (changes, seed) = (random.below(300) as u64, random.number());
        match self.trouble {
            Trouble::Nothing => {}
            Trouble::Errors => match random.below(6) {
                0 => disk.inject(DiskFault::SyncFails, changes, seed),
                1 => disk.inject(DiskFault::ShortWrite, changes, seed),
                2 => faults.inject(Fault::on_any().nth(1 + 2 * changes).errno(EIO)),
                3 => faults.inject(Fault::on_mutating().nth(1 + changes).errno(ENOSPC)),
                4 => faults.inject(Fault::on(Call::Read).nth(1 + changes).errno(EIO)),
                _ => {}
            },
            Trouble::Lies => match random.below(3) {
                0 => disk.inject(DiskFault::LostWrite, changes, seed),
                1 => disk.inject(DiskFault::MisdirectedWrite, changes, seed),
                // Bits flip while nobody has the database open.
                _ => {}
            },
        }
    }
}

fn options(random: &mut Random) -> Options {
    Options {
        gc: random.pick(&[GcPolicy::CostBenefit, GcPolicy::Tail, GcPolicy::Off]),
        max_space_amplification: random.pick(&[1.05, 1.3, 1000.0]),
        value_runs_max: random.pick(&[0, 1, 8]),
        log_mode: random.pick(&[LogMode::Auto, LogMode::Plain]),
        background_threads: random.pick(&[1, 2]),
        inline_value_max: random.pick(&[0, 16, 200]),
        memtable_bytes: random.pick(&[4 << 10, 16 << 10]),
        segment_bytes_max: random.pick(&[4 << 10, 16 << 10]),
        filter_bits_per_key: random.pick(&[0, 4]),
        block_codec: random.pick(&[Codec::None, Codec::Lz4]),
        value_codec: random.pick(&[Codec::None, Codec::None, Codec::Zstd]),
        block_cache_bytes: random.pick(&[0, 64 << 10]),
        row_cache_bytes: random.pick(&[0, 2 << 10]),
        relocation_cache_bytes: random.pick(&[4 << 10, 1 << 20]),
        paranoid_checks: random.one_in(5),
        ..tiny()
    }
}
