//! A database with every kind of file and everything that a repair must not be misled by: several levels, tables in
//! L0, cold segments with relocation tables, holes, dead records and deletions that compactions have dropped, a manifest
//! with many edits, and a log with marks behind all that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tamarack::testing::{Env, SimDisk, SimOptions};
use tamarack::{CheckLevel, Codec, Db, GcGoal, IterOptions, Loss, Options, RepairOptions, RepairReport};

use crate::common::garbage::walk;
use crate::common::time::unwatched;
use crate::common::{Random, tiny_without_gc};

pub const KEYS: usize = 280;

/// The database on a disk, and what it holds.
pub struct Golden {
    pub disk: SimDisk,
    pub model: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Every value that a key ever had.
    history: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

pub fn options() -> Options {
    Options {
        segment_bytes_max: 16 << 10,
        memtable_bytes: 16 << 10,
        block_codec: Codec::Lz4,
        value_codec: Codec::None,
        ..tiny_without_gc()
    }
}

pub fn open(env: &Env, options: Options) -> tamarack::Result<Db> {
    Db::open_with_env("/db", options, &unwatched(env.clone()))
}

pub fn repair(env: &Env) -> tamarack::Result<RepairReport> {
    Db::repair_with_env("/db", &options(), RepairOptions::default(), env)
}

pub fn key(number: usize) -> Vec<u8> {
    format!("key{number:04}").into_bytes()
}

fn value(number: usize, round: usize) -> Vec<u8> {
    let mut random = Random::of_step(number as u64, round as u64);
    let mut value = format!("{number}@{round}.").into_bytes();
    match number % 4 {
        0 => {}
        1 => value.resize(60, round as u8),
        2 => (0..100).for_each(|_| value.push(random.number() as u8)),
        _ => (0..1500).for_each(|_| value.push(random.number() as u8)),
    }
    value
}

impl Golden {
    pub fn new(close: bool) -> Self {
        let disk = SimDisk::new(&SimOptions { seed: 5, block_bytes: 512, ..SimOptions::default() });
        let mut golden = Self { disk, model: BTreeMap::new(), history: BTreeMap::new() };
        let db = open(&golden.disk.env(), options()).unwrap();
        (0..KEYS).for_each(|number| golden.put(&db, number, 1));
        db.compact_range(None, None).unwrap();
        (0..KEYS).step_by(2).for_each(|number| golden.put(&db, number, 2));
        (0..KEYS).step_by(10).for_each(|number| golden.delete(&db, number + 1));
        db.compact_range(None, None).unwrap();
        db.gc(GcGoal::Until(1.2)).unwrap();
        (3..KEYS).step_by(8).for_each(|number| golden.put(&db, number, 3));
        db.flush().unwrap();
        db.gc(GcGoal::Once).unwrap();
        db.compact_range(Some(&key(0)), Some(&key(KEYS / 3))).unwrap();
        db.gc(GcGoal::Once).unwrap();
        (0..KEYS).step_by(7).for_each(|number| golden.put(&db, number, 4));
        golden.delete(&db, 20);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        (0..KEYS).step_by(11).for_each(|number| golden.put(&db, number, 5));
        golden.delete(&db, 30);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        for number in (0..KEYS).step_by(5) {
            golden.put(&db, number, 6);
            if number % 4 == 0 {
                db.sync().unwrap();
            }
        }
        golden.delete(&db, 41);
        db.sync().unwrap();
        golden.verify_kinds(&db);
        if close {
            db.close().unwrap();
        } else {
            let killed = golden.disk.kill();
            drop(db);
            golden.disk = killed;
        }
        golden
    }

    fn put(&mut self, db: &Db, number: usize, round: usize) {
        let (key, value) = (key(number), value(number, round));
        db.put(&key, &value).unwrap();
        self.history.entry(key.clone()).or_default().insert(value.clone());
        self.model.insert(key, value);
    }

    fn delete(&mut self, db: &Db, number: usize) {
        db.delete(&key(number)).unwrap();
        self.model.remove(&key(number));
    }

    /// The database has what the module says.
    fn verify_kinds(&self, db: &Db) {
        let stats = db.stats();
        let levels = stats.levels.iter().filter(|level| level.tables > 0).count();
        let names = self.names();
        let count = |end: &str| names.iter().filter(|name| name.ends_with(end)).count();
        assert!(levels >= 2, "{levels} levels, {stats:?}");
        assert!(count(".cold") > 0 && count(".vlog") > 2, "{names:?}");
        assert!(stats.moved_segments > 0, "no relocation table: {stats:?}");
    }

    /// One whose segments have holes, and little else.
    pub fn with_holes() -> Self {
        let disk = SimDisk::new(&SimOptions { seed: 6, ..SimOptions::default() });
        let mut golden = Self { disk, model: BTreeMap::new(), history: BTreeMap::new() };
        let roomy = Options {
            segment_bytes_max: 1 << 20,
            memtable_bytes: 4 << 20,
            recovery_log_max: 64 << 20,
            ..options()
        };
        let db = open(&golden.disk.env(), roomy).unwrap();
        for (number, round) in (0..16).map(|number| (number, 1)).chain([(3, 2), (9, 2)]) {
            let value = Random::of_step(number, round).number().to_le_bytes().repeat(8000);
            let key = key(number as usize);
            db.put(&key, &value).unwrap();
            golden.history.entry(key.clone()).or_default().insert(value.clone());
            golden.model.insert(key, value);
        }
        db.compact_range(None, None).unwrap();
        while db.gc(GcGoal::Once).unwrap().punched > 0 {}
        // A job that is just ending may have kept the holes from being punched.
        db.wait_idle().unwrap();
        assert!(db.stats().hole_bytes > 0, "no holes: {:?}", db.stats());
        db.close().unwrap();
        golden
    }

    pub fn names(&self) -> Vec<String> {
        names(&self.disk.env(), "/db")
    }

    /// The disk with the file `name` changed by `change`; `None` removes it.
    pub fn damaged(&self, name: &str, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) -> SimDisk {
        damaged(&self.disk, name, change)
    }

    /// The last segment of the log that has records.
    pub fn last_of_log(&self) -> String {
        let env = self.disk.env();
        let begun =
            |name: &String| name.ends_with(".vlog") && read(&env, &path(name)).iter().any(|&byte| byte != 0);
        self.names().into_iter().rfind(begun).expect("a log with records")
    }

    /// After a repair that gave `report`, every key is right, or named. Returns how many keys are named, and those that are
    /// not what they were.
    pub fn assert_told(&self, env: &Env, report: &RepairReport, what: &str) -> (usize, Vec<usize>) {
        let db = open(env, Options { paranoid_checks: true, create_if_missing: false, ..options() })
            .unwrap_or_else(|error| panic!("{what}: open: {error}\n{report}"));
        let problems = db.check(CheckLevel::Values).problems;
        assert!(problems.is_empty(), "{what}: {problems:#?}\n{report}");
        let found: BTreeMap<Vec<u8>, Vec<u8>> =
            walk(&db, &IterOptions::default(), false).unwrap().into_iter().collect();
        let (mut named, mut differing) = (0, Vec::new());
        for key in self.history.keys() {
            let (found, expected) = (found.get(key), self.model.get(key));
            assert_eq!(db.get(key).unwrap().as_ref(), found, "{what}");
            let loss = report.loss_of(key);
            named += usize::from(loss.is_some());
            if found == expected {
                continue;
            }
            differing.push(String::from_utf8_lossy(&key[3..]).parse().unwrap());
            let name = key.escape_ascii();
            let loss = loss.unwrap_or_else(|| panic!("{what}: {name} is wrong and not named\n{report}"));
            let known = found.is_none_or(|found| self.history[key].contains(found));
            assert!(known, "{what}: {name} has a value that it never had\n{report}");
            assert!(loss.loss == Loss::MayBeOlder || found.is_none(), "{what}: {name} came back\n{report}");
        }
        assert!(found.keys().all(|key| self.history.contains_key(key)), "{what}: a key that never was");
        (named, differing)
    }

    /// Whether the value of a key was small enough to be in tables, or it was deleted.
    pub fn is_in_index_alone(&self, number: usize) -> bool {
        self.model.get(&key(number)).is_none_or(|value| value.len() <= options().inline_value_max)
    }

    /// After a repair the database is what it was.
    pub fn assert_exact(&self, env: &Env, what: &str) {
        let db = open(env, Options { paranoid_checks: true, ..options() }).unwrap();
        let found: BTreeMap<_, _> = walk(&db, &IterOptions::default(), false).unwrap().into_iter().collect();
        let differing: Vec<_> = (self.history.keys())
            .filter(|key| found.get(*key) != self.model.get(*key))
            .map(|key| key.escape_ascii().to_string())
            .collect();
        assert!(differing.is_empty(), "{what}: {differing:?} differ");
    }
}

/// A copy of `disk` with the database's file `name` changed by `change`, which is given nothing if there is none; `None`
/// removes it.
pub fn damaged(disk: &SimDisk, name: &str, change: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) -> SimDisk {
    let disk = disk.kill();
    let (fs, path) = (disk.env().fs, path(name));
    let mut bytes = Vec::new();
    if fs.exists(&path).unwrap() {
        bytes = read(&disk.env(), &path);
        fs.remove_file(&path).unwrap();
    }
    if let Some(bytes) = change(bytes) {
        let file = fs.create_new(&path).unwrap();
        file.write_at(&bytes, 0).unwrap();
        file.sync_data().unwrap();
    }
    fs.sync_dir(Path::new("/db")).unwrap();
    disk
}

/// The database takes writes, collects garbage and can be opened again.
pub fn assert_lives(env: &Env, what: &str) {
    let db = open(env, options()).expect(what);
    for number in (0..KEYS).step_by(3) {
        db.put(&key(number), &value(number, 9)).expect(what);
    }
    db.flush().expect(what);
    db.compact_range(None, None).expect(what);
    db.gc(GcGoal::Until(1.0)).expect(what);
    db.delete(&key(3)).expect(what);
    db.close().expect(what);
    let db = open(env, Options { paranoid_checks: true, ..options() }).expect(what);
    for number in (0..KEYS).step_by(3) {
        let expected = (number != 3).then(|| value(number, 9));
        assert_eq!(db.get(&key(number)).unwrap(), expected, "{what}");
    }
}

pub fn path(name: &str) -> PathBuf {
    Path::new("/db").join(name)
}

pub fn names(env: &Env, directory: &str) -> Vec<String> {
    let mut names = env.fs.list(Path::new(directory)).unwrap();
    names.sort();
    names
}

pub fn read(env: &Env, path: &Path) -> Vec<u8> {
    let file = env.fs.open_read(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}
