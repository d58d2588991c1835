//! Random operations on a database, each compared with a model that keeps every version of every key.
//!
//! As many seeds as fit into some seconds are tried. `TAMARACK_SEED` runs one seed alone, `TAMARACK_SEEDS` says how
//! many there are however long that takes, `TAMARACK_STEPS` how many steps each takes. A failure prints the command
//! that repeats it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests prepare and inspect the real world"
)]

mod common;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::time::Time;
use common::{
    PATIENCE_SECONDS, Random, Watchdog, assert_clean, copy_directory, fast_directory, number_from_environment,
};
use tamarack::testing::Env;
use tamarack::{
    Bytewise, Codec, Comparator, Db, ErrorKind, GcGoal, GcPolicy, Iter, IterOptions, LogMode, Options,
    ReadOptions, Snapshot, WriteBatch, WriteOptions,
};

const SECONDS: u64 = 20;
const STEPS: u64 = 700;

/// A segment for several values so large that dead ones are given back by holes.
const ROOMY_SEGMENT_BYTES: u64 = 1 << 20;

/// Short keys before long ones.
#[derive(Debug)]
struct ShortFirst;

impl Comparator for ShortFirst {
    fn name(&self) -> &str {
        "test.ShortFirst"
    }
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.len().cmp(&right.len()).then_with(|| left.cmp(right))
    }
    fn equal_means_identical(&self) -> bool {
        true
    }
}

/// Keys that differ in case alone are the same key.
#[derive(Debug)]
struct Caseless;

impl Comparator for Caseless {
    fn name(&self) -> &str {
        "test.Caseless"
    }
    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        left.to_ascii_lowercase().cmp(&right.to_ascii_lowercase())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyOrder {
    Bytewise,
    ShortFirst,
    Caseless,
}

impl KeyOrder {
    fn comparator(self) -> Arc<dyn Comparator> {
        match self {
            Self::Bytewise => Arc::new(Bytewise),
            Self::ShortFirst => Arc::new(ShortFirst),
            Self::Caseless => Arc::new(Caseless),
        }
    }

    /// Bytes whose plain order is this order of keys.
    fn rank(self, key: &[u8]) -> Vec<u8> {
        match self {
            Self::Bytewise => key.to_vec(),
            Self::ShortFirst => [&(key.len() as u32).to_be_bytes()[..], key].concat(),
            Self::Caseless => key.to_ascii_lowercase(),
        }
    }
}

type Value = Arc<Vec<u8>>;

/// What a key was at one moment, and how it was spelled.
#[derive(Debug)]
struct Version {
    sequence: u64,
    key: Vec<u8>,
    value: Option<Value>,
}

/// A key's rank, its spelling, and its value.
type Entry = (Vec<u8>, Vec<u8>, Value);

#[derive(Debug)]
struct Model {
    order: KeyOrder,
    sequence: u64,
    versions: BTreeMap<Vec<u8>, Vec<Version>>,
}

impl Model {
    fn write(&mut self, key: &[u8], value: Option<Value>) {
        self.sequence += 1;
        let version = Version { sequence: self.sequence, key: key.to_vec(), value };
        self.versions.entry(self.order.rank(key)).or_default().push(version);
    }

    fn get(&self, key: &[u8], at: u64) -> Option<Value> {
        let versions = self.versions.get(&self.order.rank(key))?;
        versions.iter().rev().find(|version| version.sequence <= at)?.value.clone()
    }

    fn entries(&self, at: u64, start: Option<&[u8]>, end: Option<&[u8]>) -> Vec<Entry> {
        let (start, end) = (start.map(|key| self.order.rank(key)), end.map(|key| self.order.rank(key)));
        self.versions
            .iter()
            .filter(|(rank, _)| start.as_ref().is_none_or(|start| *rank >= start))
            .filter(|(rank, _)| end.as_ref().is_none_or(|end| *rank < end))
            .filter_map(|(rank, versions)| {
                let version = versions.iter().rev().find(|version| version.sequence <= at)?;
                Some((rank.clone(), version.key.clone(), version.value.clone()?))
            })
            .collect()
    }
}

/// An iterator and what it must show.
struct Walker {
    iter: Iter,
    entries: Vec<Entry>,
    at: Option<usize>,
    keys_only: bool,
    order: KeyOrder,
}

impl Walker {
    fn step(&mut self, random: &mut Random, key: &[u8]) {
        match random.below(if self.at.is_some() { 12 } else { 3 }) {
            0 => {
                self.iter.seek(key).unwrap();
                let rank = self.order.rank(key);
                let at = self.entries.partition_point(|entry| entry.0 < rank);
                self.at = (at < self.entries.len()).then_some(at);
            }
            1 => {
                self.iter.seek_to_first().unwrap();
                self.at = (!self.entries.is_empty()).then_some(0);
            }
            2 => {
                self.iter.seek_to_last().unwrap();
                self.at = self.entries.len().checked_sub(1);
            }
            3..=7 => {
                self.iter.next().unwrap();
                self.at = self.at.map(|at| at + 1).filter(|&at| at < self.entries.len());
            }
            _ => {
                self.iter.prev().unwrap();
                self.at = self.at.and_then(|at| at.checked_sub(1));
            }
        }
        self.compare(random.one_in(3));
    }

    /// Compares where it stands; a value that is not looked at must not disturb the next one.
    fn compare(&mut self, skip_value: bool) {
        let Some(at) = self.at else {
            assert!(!self.iter.valid(), "stands on {:?} behind the end", self.iter.key());
            return;
        };
        assert!(self.iter.valid(), "ended before {:?}", self.entries[at].1);
        assert_eq!(self.iter.key(), self.entries[at].1, "key {at} of {}", self.entries.len());
        if self.keys_only || skip_value {
            return;
        }
        assert!(self.iter.value().unwrap() == &self.entries[at].2[..], "value of {:?}", self.entries[at].1);
    }

    /// Goes on to the end.
    fn finish(mut self, random: &mut Random) {
        while self.at.is_some() {
            self.iter.next().unwrap();
            self.at = self.at.map(|at| at + 1).filter(|&at| at < self.entries.len());
            self.compare(random.one_in(4));
        }
    }
}

struct World {
    random: Random,
    root: tempfile::TempDir,
    env: Env,
    time: Time,
    generation: u32,
    options: Options,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, u64)>,
    walkers: Vec<Walker>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let order =
            random.pick(&[KeyOrder::Bytewise, KeyOrder::Bytewise, KeyOrder::ShortFirst, KeyOrder::Caseless]);
        let options = options(&mut random, order);
        let root = fast_directory();
        let (env, time) = Time::new();
        let model = Model { order, sequence: 0, versions: BTreeMap::new() };
        let mut world = Self {
            random,
            root,
            env,
            time,
            generation: 0,
            options,
            db: None,
            model,
            snapshots: Vec::new(),
            walkers: Vec::new(),
        };
        world.db = Some(world.open_now());
        world
    }

    fn path(&self) -> PathBuf {
        self.root.path().join(self.generation.to_string())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.random.below(200);
        let mut key = match number % 5 {
            0 => format!("user{number}").into_bytes(),
            1 => format!("user\0{number}").into_bytes(),
            2 => [vec![b'x'; 150], number.to_be_bytes().to_vec()].concat(),
            3 => vec![0xff; number / 5],
            _ => format!("{number:05}-and-a-longer-end").into_bytes(),
        };
        if self.model.order == KeyOrder::Caseless && self.random.one_in(2) {
            key.make_ascii_uppercase();
        }
        key
    }

    fn value(&mut self) -> Value {
        let len = match self.random.below(60) {
            // Large ones leave large holes.
            7..=20 if self.options.segment_bytes_max >= ROOMY_SEGMENT_BYTES => {
                (40 << 10) + self.random.below(160 << 10)
            }
            0 => 100 << 10,
            1..=5 => self.random.below(10 << 10),
            6..=30 => self.random.below(40),
            _ => self.random.below(600),
        };
        Arc::new(self.random.bytes(len))
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=34 => self.write_one(),
            35..=44 => self.write_batch(),
            45..=54 => self.read(),
            55..=57 => self.multi_get(),
            58..=60 => self.snapshots(),
            61..=63 => self.new_walker(),
            64..=86 => self.walk(),
            87..=90 => self.gc(),
            91..=93 => self.db().flush().unwrap(),
            94 | 95 => self.compact(),
            96 => self.db().sync().unwrap(),
            97 => self.rest(),
            98 => self.reopen(),
            _ => self.crash(),
        }
    }

    /// I-11: what is collected is what nobody can read.
    fn gc(&mut self) {
        if self.random.one_in(8) {
            self.db().pause_gc();
            self.db().resume_gc().unwrap();
        }
        let goal = self.random.pick(&[GcGoal::Once, GcGoal::Once, GcGoal::Until(1.0), GcGoal::Until(1.5)]);
        self.db().gc(goal).unwrap();
    }

    /// Nothing is written for a while, as far as the database knows.
    fn rest(&mut self) {
        if self.random.one_in(2) {
            (0..self.random.below(4)).for_each(|_| self.time.pass(Duration::from_secs(4)));
        }
        if self.random.one_in(2) {
            self.db().wait_idle().unwrap();
        }
    }

    fn write_one(&mut self) {
        let key = self.key();
        let options = WriteOptions { sync: self.random.one_in(20) };
        if self.random.one_in(4) {
            self.db().delete_with(&key, &options).unwrap();
            self.model.write(&key, None);
        } else {
            let value = self.value();
            self.write(|db| db.put_with(&key, &value, &options));
            self.model.write(&key, Some(value));
        }
    }

    fn write_batch(&mut self) {
        let mut batch = WriteBatch::new();
        for _ in 0..self.random.below(30) {
            let key = self.key();
            if self.random.one_in(3) {
                batch.delete(&key).unwrap();
                self.model.write(&key, None);
            } else {
                let value = self.value();
                batch.put(&key, &value).unwrap();
                self.model.write(&key, Some(value));
            }
        }
        let options = WriteOptions { sync: self.random.clone().one_in(10) };
        self.write(|db| db.write(&batch, &options));
    }

    /// Writes; if readers hold so much that writes are refused, they are dropped, and it is tried again.
    fn write(&mut self, write: impl Fn(&Db) -> tamarack::Result<()>) {
        let refused = |error: &tamarack::Error| error.kind() == ErrorKind::NoSpace;
        if write(self.db()).inspect_err(|error| assert!(refused(error), "{error}")).is_err() {
            self.walkers.clear();
            self.snapshots.clear();
            self.db().wait_idle().unwrap();
            write(self.db()).unwrap();
        }
    }

    fn moment(&mut self) -> (Option<Snapshot>, u64) {
        if self.snapshots.is_empty() || self.random.one_in(2) {
            return (None, self.model.sequence);
        }
        let (snapshot, at) = &self.snapshots[self.random.below(self.snapshots.len())];
        (Some(snapshot.clone()), *at)
    }

    fn read(&mut self) {
        let (key, (snapshot, at)) = (self.key(), self.moment());
        let options = ReadOptions {
            snapshot,
            verify_checksums: self.random.one_in(2),
            fill_cache: self.random.one_in(2),
        };
        let found = self.db().get_with(&key, &options).unwrap();
        let expected = self.model.get(&key, at);
        assert!(found.as_ref() == expected.as_deref(), "{key:?} at {at}: {:?} bytes", found.map(|v| v.len()));
        let now = self.model.get(&key, self.model.sequence);
        assert_eq!(self.db().contains(&key).unwrap(), now.is_some(), "{key:?}");
    }

    fn multi_get(&mut self) {
        let keys: Vec<_> = (0..self.random.below(50)).map(|_| self.key()).collect();
        let (snapshot, at) = self.moment();
        let values = self.db().multi_get(&keys, &ReadOptions { snapshot, ..ReadOptions::default() });
        assert_eq!(values.len(), keys.len());
        for (key, value) in keys.iter().zip(values) {
            assert!(value.unwrap().as_ref() == self.model.get(key, at).as_deref(), "{key:?} at {at}");
        }
    }

    fn snapshots(&mut self) {
        if self.snapshots.len() < 5 && self.random.one_in(2) {
            self.snapshots.push((self.db().snapshot(), self.model.sequence));
        } else if !self.snapshots.is_empty() {
            let index = self.random.below(self.snapshots.len());
            self.snapshots.swap_remove(index);
        }
    }

    fn new_walker(&mut self) {
        if self.walkers.len() == 4 {
            let index = self.random.below(4);
            self.walkers.swap_remove(index).finish(&mut self.random);
        }
        let (snapshot, at) = self.moment();
        let start = self.random.one_in(3).then(|| self.key());
        let end = self.random.one_in(3).then(|| self.key());
        let entries = self.model.entries(at, start.as_deref(), end.as_deref());
        let keys_only = self.random.one_in(4);
        let (verify_checksums, fill_cache) = (self.random.one_in(2), self.random.one_in(2));
        let options = IterOptions { snapshot, start, end, keys_only, verify_checksums, fill_cache };
        let iter = self.db().iter(&options).unwrap();
        self.walkers.push(Walker { iter, entries, at: None, keys_only, order: self.model.order });
    }

    fn walk(&mut self) {
        if self.walkers.is_empty() {
            return;
        }
        let index = self.random.below(self.walkers.len());
        for _ in 0..=self.random.below(12) {
            let key = self.key();
            self.walkers[index].step(&mut self.random, &key);
        }
    }

    fn compact(&mut self) {
        let start = self.random.one_in(2).then(|| self.key());
        let end = self.random.one_in(2).then(|| self.key());
        self.db().compact_range(start.as_deref(), end.as_deref()).unwrap();
    }

    /// Closes and opens again; what still reads goes on reading after the close.
    fn reopen(&mut self) {
        let db = self.db.take().expect("open between steps");
        if self.random.one_in(2) {
            self.walkers.clear();
            drop(db);
        } else {
            db.close().unwrap();
            self.walk();
            self.walkers.clear();
        }
        self.snapshots.clear();
        self.open();
        assert_eq!(self.db().recovery().torn_tail, None, "after a close");
    }

    /// Goes on with a copy of the files as they are at this moment, as after the death of the process.
    fn crash(&mut self) {
        self.db().wait_idle().unwrap();
        let before = self.path();
        self.generation += 1;
        copy_directory(&before, &self.path());
        self.walkers.clear();
        self.snapshots.clear();
        self.db = None;
        std::fs::remove_dir_all(before).unwrap();
        self.open();
    }

    fn open_now(&self) -> Db {
        Db::open_with_env(self.path(), self.options.clone(), &self.env).unwrap()
    }

    fn open(&mut self) {
        self.options = options(&mut self.random, self.model.order);
        self.db = Some(self.open_now());
        self.compare_all();
    }

    fn compare_all(&self) {
        let expected = self.model.entries(self.model.sequence, None, None);
        let mut walker = Walker {
            iter: self.db().iter(&IterOptions::default()).unwrap(),
            entries: expected,
            at: None,
            keys_only: false,
            order: self.model.order,
        };
        walker.iter.seek_to_first().unwrap();
        walker.at = (!walker.entries.is_empty()).then_some(0);
        while walker.at.is_some() {
            walker.compare(false);
            walker.iter.next().unwrap();
            walker.at = walker.at.map(|at| at + 1).filter(|&at| at < walker.entries.len());
        }
        walker.compare(false);
        walker.iter.seek_to_last().unwrap();
        walker.at = walker.entries.len().checked_sub(1);
        while walker.at.is_some() {
            walker.compare(false);
            walker.iter.prev().unwrap();
            walker.at = walker.at.and_then(|at| at.checked_sub(1));
        }
        walker.compare(false);
        assert_clean(self.db());
    }
}

/// Small limits of every kind.
fn options(random: &mut Random, order: KeyOrder) -> Options {
    let segment_bytes_max =
        if random.one_in(6) { ROOMY_SEGMENT_BYTES } else { random.pick(&[4 << 10, 4 << 10, 20 << 10]) };
    Options {
        comparator: order.comparator(),
        memtable_bytes: random.pick(&[4 << 10, 4 << 10, 40 << 10]),
        memtables_max: random.pick(&[2, 4]),
        segment_bytes_max,
        recovery_log_max: random.pick(&[2 * segment_bytes_max, 64 << 10, 1 << 20]).max(2 * segment_bytes_max),
        log_mode: random.pick(&[LogMode::Auto, LogMode::Plain]),
        max_space_amplification: random.pick(&[1.05, 1.3, 1000.0]),
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
        open_files_max: random.pick(&[16, 1000]),
        background_threads: random.pick(&[1, 2, 3]),
        paranoid_checks: random.one_in(4),
        ..Options::default()
    }
}

/// Prints how to repeat a failure.
struct Replay {
    seed: u64,
    steps: u64,
}

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "seed {}: repeat with\n  TAMARACK_SEED={} TAMARACK_STEPS={} cargo test -p tamarack --test model",
                self.seed, self.seed, self.steps
            );
        }
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    let steps = number_from_environment("TAMARACK_STEPS").unwrap_or(STEPS);
    let count = number_from_environment("TAMARACK_SEEDS");
    let seeds = match number_from_environment("TAMARACK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..count.unwrap_or(u64::MAX),
    };
    let begin = Instant::now();
    for seed in seeds {
        if count.is_none() && begin.elapsed() > Duration::from_secs(SECONDS) {
            break;
        }
        let _replay = Replay { seed, steps };
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("seed {seed} of the model test"));
        let mut world = World::new(seed);
        for _ in 0..steps {
            world.step();
        }
        world.walkers.clear();
        world.compare_all();
        world.reopen();
    }
}
