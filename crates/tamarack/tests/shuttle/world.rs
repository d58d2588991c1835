//! One run of a scenario: a database with garbage, threads that do their parts at the same time, and then everything
//! that must hold: now, after another open, in a checkpoint, and after a crash in the midst.

use std::path::Path;

use shuttle::thread;
use tamarack::testing::{Env, SimDisk, SimOptions};
use tamarack::{CheckLevel, Db, GcGoal, IterOptions};

use crate::common::garbage::{Content, walk};
use crate::common::time::unwatched;
use crate::common::writer::{Writer, durable};
use crate::common::{Random, tiny_without_gc};
use crate::coverage::Coverage;
use crate::roles::{Actor, COPIED, COPY, Got, Outcome, Role, Seen};

const DATABASE: &str = "/db";
/// About so many changes of the disk are made while the threads run; the crash comes in the midst of them.
const CHANGES_TYPICAL: usize = 120;

/// Blocks as small as sectors, so that small values leave holes.
fn disk(seed: u64) -> SimDisk {
    SimDisk::new(&SimOptions { seed, block_bytes: 512, ..SimOptions::default() })
}

/// Opens a database, in which nothing happens by itself.
pub fn open(env: &Env, path: &Path, what: &str) -> Db {
    let opened = Db::open_with_env(path, tiny_without_gc(), &unwatched(env.clone()));
    opened.unwrap_or_else(|error| panic!("{what}: open: {error}"))
}

/// Everything in a database.
pub fn content(db: &Db, what: &str) -> Content {
    let found = walk(db, &IterOptions::default(), false);
    found.unwrap_or_else(|error| panic!("{what}: {error}")).into_iter().collect()
}

fn assert_clean(db: &Db, what: &str) {
    let report = db.check(CheckLevel::Values);
    assert!(report.is_clean(), "{what}: {:#?}", report.problems);
}

/// What came of all threads.
#[derive(Default)]
struct Outcomes {
    writers: Vec<Writer>,
    seen: Vec<Seen>,
    got: Vec<Got>,
    /// What a checkpoint has at least, of each writer.
    copy: Option<Vec<u64>>,
}

/// Runs the scenario in which `roles` are played at the same time. Returns the trace of all calls to the file system.
pub fn run(seed: u64, roles: &[Role], coverage: &Coverage) -> u64 {
    let mut random = Random::new(seed);
    let disk = disk(seed);
    let db = open(&disk.env(), Path::new(DATABASE), "new");
    let writers = prepare(&db, &disk, roles, &mut random);
    disk.kill_at(disk.changes() + random.below(CHANGES_TYPICAL) as u64);
    let outcomes = act(&db, &disk, roles, writers, &mut random);
    Coverage::count(&coverage.runs, true);
    coverage.add(&db.stats());
    drop(db);
    let killed = disk.take_killed();
    Coverage::count(&coverage.crashes, killed.is_some());
    let killed = killed.unwrap_or_else(|| disk.kill());
    Coverage::count(&coverage.seen, !outcomes.seen.is_empty());
    Coverage::count(&coverage.copies, outcomes.copy.is_some());
    let (writers, copy) = assert_outcomes(&disk, outcomes, &mut random);
    // Half of the crashes strike a process that is alive, half only after another one has opened the database.
    let crashed = if random.one_in(2) { killed.crash(random.number()) } else { killed };
    assert_copied(&crashed, &writers, copy.as_deref());
    assert_survives(&crashed, &writers, &mut random, coverage);
    disk.trace() ^ crashed.trace()
}

/// Fills the database with what the writers will change: about half of it is garbage.
fn prepare(db: &Db, disk: &SimDisk, roles: &[Role], random: &mut Random) -> Vec<Writer> {
    let mut writers: Vec<_> = (roles.iter().filter(|role| role.writes()).zip(0..))
        .map(|(role, number)| Writer::new(number, *role == Role::WriteLarge))
        .collect();
    writers.iter_mut().for_each(|writer| writer.prepare(db, disk, random));
    db.sync().unwrap();
    writers.iter().for_each(|writer| writer.note_durable(disk));
    if random.one_in(2) {
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
        db.wait_idle().unwrap();
    }
    writers
}

/// Lets all threads run, and waits for them.
fn act(db: &Db, disk: &SimDisk, roles: &[Role], writers: Vec<Writer>, random: &mut Random) -> Outcomes {
    let count = writers.len() as u64;
    let mut writers = writers.into_iter();
    let mut threads = Vec::new();
    for (index, &role) in roles.iter().enumerate() {
        let actor = Actor {
            db: db.clone(),
            disk: disk.clone(),
            random: Random::new(random.number() ^ index as u64),
            writers: count,
        };
        let writer = if role.writes() { writers.next() } else { None };
        threads.push(thread::spawn(move || actor.act(role, writer)));
    }
    let mut outcomes = Outcomes::default();
    for thread in threads {
        match thread.join().unwrap() {
            Outcome::Wrote(writer) => outcomes.writers.push(writer),
            Outcome::Got(got) => outcomes.got.extend(got),
            Outcome::Saw(seen) => outcomes.seen.extend(seen),
            Outcome::Copied(copy) => outcomes.copy = copy,
            Outcome::Done => {}
        }
    }
    outcomes.writers.sort_by_key(Writer::number);
    outcomes
}

/// Panics unless all saw what they should, and the database, opened again, and its copy hold what they should.
fn assert_outcomes(
    disk: &SimDisk,
    outcomes: Outcomes,
    random: &mut Random,
) -> (Vec<Writer>, Option<Vec<u64>>) {
    let Outcomes { writers, seen, got, copy } = outcomes;
    for Got { key, value, writer, least } in got {
        writers[writer as usize].assert_got(&key, value.as_deref(), least);
    }
    for Seen { content, least, by } in seen {
        for (writer, &least) in writers.iter().zip(&least) {
            writer.assert_since(&content, least, by);
        }
    }
    if let Some(least) = &copy {
        // Whatever happens to the copy is nothing to the original.
        let copy = assert_copy(disk, &writers, least, "the copy");
        use_again(&copy, disk, &writers, random, "the copy");
    }
    let db = open(&disk.env(), Path::new(DATABASE), "again");
    let found = content(&db, "again");
    writers.iter().for_each(|writer| writer.assert_now(&found, "again"));
    for (key, value) in &found {
        assert!(db.get(key).unwrap().as_ref() == Some(value), "{} by get", key.escape_ascii());
    }
    assert_clean(&db, "again");
    (writers, copy)
}

/// Opens the checkpoint on `disk`. Panics unless it holds what it should.
fn assert_copy(disk: &SimDisk, writers: &[Writer], least: &[u64], what: &str) -> Db {
    let copy = open(&disk.env(), Path::new(COPY), what);
    let found = content(&copy, what);
    for (writer, &least) in writers.iter().zip(least) {
        writer.assert_since(&found, least, what);
    }
    assert_clean(&copy, what);
    copy
}

/// Panics unless a checkpoint that was made before a crash, or is there after it, is whole.
fn assert_copied(crashed: &SimDisk, writers: &[Writer], least: Option<&[u64]>) {
    let made = crashed.fact(COPIED).is_some();
    let is_there = crashed.env().fs.exists(&Path::new(COPY).join("CURRENT")).unwrap();
    assert!(is_there || !made, "a checkpoint is gone after a crash");
    if is_there {
        let nothing = vec![0; writers.len()];
        let least = least.filter(|_| made).unwrap_or(&nothing);
        drop(assert_copy(crashed, writers, least, "the copy after a crash"));
    }
}

/// Panics unless the disk after a crash has a database that holds what it should, can be used, and loses nothing of
/// what was recovered by another crash.
fn assert_survives(crashed: &SimDisk, writers: &[Writer], random: &mut Random, coverage: &Coverage) {
    let db = open(&crashed.env(), Path::new(DATABASE), "crashed");
    Coverage::count(&coverage.torn_tails, db.recovery().torn_tail.is_some());
    let found = content(&db, "crashed");
    for writer in writers {
        let least = crashed.fact(durable(writer.number())).unwrap_or(0);
        writer.assert_since(&found, least, "crashed");
    }
    assert_clean(&db, "crashed");
    let mut later = None;
    if random.one_in(2) {
        later = Some(use_again(&db, crashed, writers, random, "crashed"));
    }
    drop(db);
    let twice = crashed.crash(random.number());
    let db = open(&twice.env(), Path::new(DATABASE), "crashed twice");
    let content = content(&db, "crashed twice");
    for (key, value) in &found {
        assert!(content.get(key) == Some(value), "{} was recovered, and is gone", key.escape_ascii());
    }
    if let Some(later) = later {
        later.assert_since(&content, 0, "crashed twice");
    }
    assert_clean(&db, "crashed twice");
}

/// Writes into a database and collects its garbage, which must not change what was in it.
fn use_again(db: &Db, disk: &SimDisk, writers: &[Writer], random: &mut Random, what: &str) -> Writer {
    let before = content(db, what);
    let mut later = Writer::new(writers.len() as u64, false);
    later.prepare(db, disk, random);
    db.gc(GcGoal::Until(1.0)).unwrap_or_else(|error| panic!("{what}: gc: {error}"));
    let mut after = content(db, what);
    later.assert_now(&after, what);
    after.retain(|key, _| before.contains_key(key));
    assert!(after == before, "{what}: a collection has changed something");
    later
}
