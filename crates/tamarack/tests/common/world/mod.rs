//! A random life of a database: steps that follow from random numbers, and a model that every answer is compared with.

pub mod model;
mod steps;

use std::path::PathBuf;
use std::time::Duration;

use tamarack::testing::Env;
use tamarack::{
    Db, ErrorKind, GcGoal, IterOptions, Options, PinnedValue, ReadOptions, Snapshot, Stats, WriteBatch,
    WriteOptions,
};

use super::time::Time;
use super::{Random, assert_clean, copy_directory, file_names};

pub use model::{Model, Walker};
pub use steps::{Character, Kind, Step, Weights};

/// How much was done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub reopens: u64,
    pub checkpoints: u64,
    /// Reads, scans and iterators whose moment was that of a snapshot taken before.
    pub snapshots_compared: u64,
    pub collections: u64,
    pub collected_bytes: u64,
    pub hidden_records: u64,
    pub punched_segments: u64,
    pub compactions: u64,
    pub writes_refused: u64,
}

impl Tally {
    /// Adds what a database has done since it was opened.
    fn add(&mut self, stats: &Stats) {
        self.collections += stats.collections;
        self.collected_bytes += stats.collected_bytes;
        self.hidden_records += stats.hidden_records;
        self.punched_segments += stats.punched_segments;
        self.compactions += stats.compactions;
    }
}

/// A database and its model.
pub struct World {
    /// What the next step follows from.
    pub random: Random,
    character: Character,
    root: PathBuf,
    env: Env,
    time: Option<Time>,
    generation: u32,
    db: Option<Db>,
    model: Model,
    snapshots: Vec<(Snapshot, u64)>,
    walkers: Vec<Walker>,
    /// Values that were pinned, and what they are.
    pinned: Vec<(PinnedValue, model::Value)>,
    copy: Option<PathBuf>,
    tally: Tally,
}

impl World {
    /// Opens the database in `root` in the world of `env`, whose clock stands still if `time` moves it. It must hold what
    /// `model` does.
    pub fn new(
        character: Character,
        random: Random,
        root: PathBuf,
        (env, time): (Env, Option<Time>),
        model: Model,
    ) -> Self {
        let mut world = Self {
            random,
            character,
            root,
            env,
            time,
            generation: 0,
            db: None,
            model,
            snapshots: Vec::new(),
            walkers: Vec::new(),
            pinned: Vec::new(),
            copy: None,
            tally: Tally::default(),
        };
        world.open();
        world
    }

    /// How much was done since it was made.
    pub fn tally(&self) -> Tally {
        let mut tally = self.tally;
        tally.add(&self.db().stats());
        tally
    }

    fn path(&self) -> PathBuf {
        self.root.join(self.generation.to_string())
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    fn key(&mut self) -> Vec<u8> {
        self.character.key(&mut self.random)
    }

    /// Takes the next step.
    pub fn step(&mut self, weights: &Weights) {
        let step = self.character.step(&mut self.random, weights);
        match step.kind {
            Kind::WriteOne | Kind::WriteBatch => self.write(&step),
            Kind::Read => self.read(),
            Kind::MultiGet => self.multi_get(),
            Kind::Snapshot => self.snapshots(),
            Kind::NewWalker => self.new_walker(),
            Kind::Walk => self.walk(),
            Kind::Compare => self.compare(),
            Kind::Gc => self.gc(),
            Kind::SortValues => self.db().sort_values().unwrap(),
            Kind::Flush => self.db().flush().unwrap(),
            Kind::Compact => self.compact(),
            Kind::Sync => self.db().sync().unwrap(),
            Kind::Rest => self.rest(),
            Kind::Checkpoint => self.checkpoint(),
            Kind::Reopen => self.reopen(),
            Kind::Crash => self.crash(),
        }
    }

    /// Ends a life without a fault: compares everything and closes.
    pub fn end(mut self) -> Tally {
        self.walkers.clear();
        self.compare_present();
        self.reopen();
        let tally = self.tally();
        self.db.take().expect("open between steps").close().unwrap();
        assert!(self.pinned.iter().all(|(value, was)| *value == was.bytes()), "values stay while pinned");
        tally
    }

    /// What is collected is what nobody can read.
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
        if let Some(time) = self.time.as_ref().filter(|_| self.random.one_in(2)) {
            (0..self.random.below(4)).for_each(|_| time.pass(Duration::from_secs(4)));
        }
        if self.random.one_in(2) {
            self.db().wait_idle().unwrap();
        }
    }

    /// Writes; if readers hold so much that writes are refused, they are dropped, and it is tried again.
    fn write(&mut self, step: &Step) {
        let refused = |error: &tamarack::Error| error.kind() == ErrorKind::NoSpace;
        if write(self.db(), step).inspect_err(|error| assert!(refused(error), "{error}")).is_err() {
            self.walkers.clear();
            self.snapshots.clear();
            self.db().wait_idle().unwrap();
            write(self.db(), step).unwrap();
            self.tally.writes_refused += 1;
        }
        self.model.write(&step.operations);
    }

    /// The present, or what a snapshot sees.
    fn moment(&mut self) -> (Option<Snapshot>, u64) {
        if self.snapshots.is_empty() || self.random.one_in(2) {
            return (None, self.model.now());
        }
        self.tally.snapshots_compared += 1;
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
        let expected = self.model.get(&key, at);
        let found = if self.random.one_in(2) {
            self.read_pinned(&key, &options, expected)
        } else {
            self.db().get_with(&key, &options).unwrap()
        };
        let expected = expected.map(|value| value.bytes());
        assert!(found == expected, "{key:?} at {at}: {:?} bytes", found.map(|value| value.len()));
        let now = self.model.get(&key, self.model.now());
        assert_eq!(self.db().contains(&key).unwrap(), now.is_some(), "{key:?}");
    }

    /// Reads `key`, and keeps the value pinned in place of one that was pinned long ago.
    fn read_pinned(
        &mut self,
        key: &[u8],
        options: &ReadOptions,
        expected: Option<model::Value>,
    ) -> Option<Vec<u8>> {
        let found = self.db().get_pinned(key, options).unwrap();
        self.pinned.extend(found.clone().zip(expected));
        if self.pinned.len() > 20 {
            let index = self.random.below(self.pinned.len());
            let (value, was) = self.pinned.swap_remove(index);
            assert!(value == was.bytes(), "{value:?} was {was:?} when it was pinned");
        }
        found.map(PinnedValue::into_vec)
    }

    fn multi_get(&mut self) {
        let keys: Vec<_> = (0..self.random.below(50)).map(|_| self.key()).collect();
        let (snapshot, at) = self.moment();
        let values = self.db().multi_get(&keys, &ReadOptions { snapshot, ..ReadOptions::default() });
        assert_eq!(values.len(), keys.len());
        for (key, value) in keys.iter().zip(values) {
            let expected = self.model.get(key, at).map(|value| value.bytes());
            assert!(value.unwrap() == expected, "{key:?} at {at}");
        }
    }

    fn snapshots(&mut self) {
        if self.snapshots.len() < 5 && self.random.one_in(2) {
            self.snapshots.push((self.db().snapshot(), self.model.now()));
        } else if !self.snapshots.is_empty() {
            let index = self.random.below(self.snapshots.len());
            self.snapshots.swap_remove(index);
        }
    }

    fn walker(&self, at: u64, options: &IterOptions) -> Walker {
        let entries = self.model.entries(at, options.start.as_deref(), options.end.as_deref());
        Walker::new(self.db().iter(options).unwrap(), entries, options.keys_only, self.character.order)
    }

    fn new_walker(&mut self) {
        if self.walkers.len() == 4 {
            let index = self.random.below(4);
            self.walkers.swap_remove(index).finish(&mut self.random);
        }
        let (snapshot, at) = self.moment();
        let start = self.random.one_in(3).then(|| self.key());
        let end = self.random.one_in(3).then(|| self.key());
        let keys_only = self.random.one_in(4);
        let (verify_checksums, fill_cache) = (self.random.one_in(2), self.random.one_in(2));
        let expected_entries = self.random.one_in(3).then(|| self.random.below(100));
        let options =
            IterOptions { snapshot, start, end, keys_only, expected_entries, verify_checksums, fill_cache };
        self.walkers.push(self.walker(at, &options));
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

    /// Makes a copy, or looks at one that was made long ago.
    fn checkpoint(&mut self) {
        match self.copy.take() {
            Some(path) => Db::destroy(path).unwrap(),
            None => {
                let path = self.root.join("copy");
                Db::destroy(&path).unwrap();
                self.db().checkpoint(&path).unwrap();
                let options = Options { read_only: true, ..self.character.options(&mut self.random) };
                let copy = Db::open_with_env(&path, options, &self.env).unwrap();
                assert_eq!(self.model.difference(&copy), None, "a checkpoint");
                assert_clean(&copy);
                self.tally.checkpoints += 1;
                self.copy = Some(path);
            }
        }
    }

    /// Closes and opens again; what still reads goes on reading after the close.
    fn reopen(&mut self) {
        self.tally = self.tally();
        self.tally.reopens += 1;
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
        let files = file_names(&before);
        self.generation += 1;
        copy_directory(&before, &self.path());
        assert_eq!(file_names(&before), files, "nothing is under way");
        self.walkers.clear();
        self.snapshots.clear();
        self.db = None;
        std::fs::remove_dir_all(before).unwrap();
        self.open();
    }

    fn open(&mut self) {
        let options = self.character.options(&mut self.random);
        self.db = Some(Db::open_with_env(self.path(), options, &self.env).unwrap());
        self.compare_present();
    }

    fn compare_present(&self) {
        self.walker(self.model.now(), &IterOptions::default()).there_and_back();
        assert_clean(self.db());
    }

    fn compare(&mut self) {
        let (snapshot, at) = self.moment();
        self.walker(at, &IterOptions { snapshot, ..IterOptions::default() }).there_and_back();
    }
}

fn write(db: &Db, step: &Step) -> tamarack::Result<()> {
    let options = WriteOptions { sync: step.sync };
    if let (Kind::WriteOne, [(key, value)]) = (step.kind, &step.operations[..]) {
        return match value {
            Some(value) => db.put_with(key, &value.bytes(), &options),
            None => db.delete_with(key, &options),
        };
    }
    let mut batch = WriteBatch::new();
    for (key, value) in &step.operations {
        match value {
            Some(value) => batch.put(key, &value.bytes()).unwrap(),
            None => batch.delete(key).unwrap(),
        }
    }
    db.write(&batch, &options)
}
