//! The life that is led again and again: every path of the engine, each on a database that goes on after errors as a
//! program might.

use std::sync::Arc;

use tamarack::testing::{Call, Env, Faults, SimDisk, SimOptions};
use tamarack::{Db, Error, ErrorKind, GcGoal, LogMode, Options, Result};

use crate::common::time::unwatched;
use crate::common::tiny_without_gc;
use crate::ledger::Ledger;
use crate::log_syncs::LogSyncs;

pub const DATABASE: &str = "/db";
const COPY: &str = "/copy";
/// Keys of large values, which leave holes when they die.
const LARGE: std::ops::Range<usize> = 50..55;
/// A key with a long name, which makes long edits of the manifest.
const LONG: usize = 60;

/// Nothing is collected but what is asked for.
pub fn options(log_mode: LogMode) -> Options {
    Options { log_mode, block_cache_bytes: 8 << 10, ..tiny_without_gc() }
}

/// A disk with a database that has died: there are tables, garbage, holes to be made, and a log to be replayed.
pub fn prepare(options: &Options) -> (SimDisk, Ledger) {
    let disk = SimDisk::new(&SimOptions { seed: 1, block_bytes: 4096, ..SimOptions::default() });
    let db = Db::open_with_env(DATABASE, options.clone(), &unwatched(disk.env())).unwrap();
    let mut ledger = Ledger::default();
    let large: Vec<_> = LARGE.map(|key| (key, Some(40 << 10))).collect();
    ledger.write(&db, &large, false).unwrap();
    (0..16).for_each(|key| ledger.put(&db, key, 400, false).unwrap());
    db.flush().unwrap();
    (0..16).step_by(2).for_each(|key| ledger.put(&db, key, 30 + 40 * key, false).unwrap());
    ledger.delete(&db, LARGE.start + 2).unwrap();
    db.flush().unwrap();
    db.compact_range(None, None).unwrap();
    (0..6).for_each(|key| ledger.put(&db, key, 300, key == 3).unwrap());
    db.wait_idle().unwrap();
    (disk.kill(), ledger)
}

/// One life.
pub struct Life<'a> {
    pub env: &'a Env,
    pub options: &'a Options,
    pub ledger: &'a mut Ledger,
    pub faults: &'a Arc<Faults>,
    /// What calls have failed with.
    pub errors: Vec<Error>,
    pub log_syncs: &'a LogSyncs,
    pub what: &'a str,
}

impl Life<'_> {
    fn note<T>(&mut self, outcome: Result<T>) -> Option<T> {
        if outcome.as_ref().is_err_and(|error| error.kind() == ErrorKind::ReadOnly) {
            self.log_syncs.note_refusal();
        }
        outcome.map_err(|error| self.errors.push(error)).ok()
    }

    fn put(&mut self, db: &Db, key: usize, len: usize, sync: bool) {
        let outcome = self.ledger.put(db, key, len, sync);
        self.note(outcome);
    }

    fn delete(&mut self, db: &Db, key: usize) {
        let outcome = self.ledger.delete(db, key);
        self.note(outcome);
    }

    fn flush(&mut self, db: &Db) {
        if self.note(db.flush()).is_some() {
            self.ledger.note_durable();
        }
    }

    /// Reads everything. A read fails only if its own call does, and may be tried again.
    fn read(&mut self, db: &Db) {
        let before = self.faults.triggered();
        if let Err(error) = self.ledger.assert_reads(db, self.what) {
            assert!(self.faults.triggered() > before, "{}: a read: {error}", self.what);
            self.errors.push(error);
            let again = self.ledger.assert_reads(db, self.what);
            again.unwrap_or_else(|error| panic!("{}: a read for the second time: {error}", self.what));
        }
    }

    fn open(&mut self) -> Option<Db> {
        self.log_syncs.begin(self.faults);
        let opened = Db::open_with_env(DATABASE, self.options.clone(), self.env);
        self.note(opened)
    }

    fn close(&mut self, db: Db) {
        self.note(db.close());
        self.log_syncs.assert_none_forbidden(self.what);
    }
}

/// Leads it, to the end or to an open that fails. Returns whether none has.
pub fn live(life: &mut Life<'_>) -> bool {
    let Some(db) = life.open() else { return false };
    life.ledger.note_durable();
    write(life, &db);
    keep_in_shape(life, &db);
    life.read(&db);
    many_edits(life, &db);
    life.note(db.checkpoint(COPY));
    life.close(db);
    let Some(db) = life.open() else { return false };
    life.put(&db, 3, 200, false);
    life.read(&db);
    // Ends as programs do that forget to close.
    drop(db);
    life.log_syncs.assert_none_forbidden(life.what);
    true
}

fn write(life: &mut Life<'_>, db: &Db) {
    let before = life.ledger.clone();
    let snapshot = db.snapshot();
    for key in 0..14 {
        life.put(db, key, [5, 150, 700][key % 3], key % 6 == 5);
    }
    let batch = life.ledger.write(db, &[(20, Some(600)), (0, None), (21, Some(8))], false);
    life.note(batch);
    if life.note(db.sync()).is_some() {
        life.ledger.note_durable();
    }
    // Whole segments at once.
    let large = life.ledger.write(db, &[(22, Some(5000)), (23, Some(5000))], true);
    life.note(large);
    let failed = life.faults.triggered();
    if let Err(error) = before.assert_snapshot(db, &snapshot, life.what) {
        assert!(life.faults.triggered() > failed, "{}: a snapshot: {error}", life.what);
        life.errors.push(error);
    }
}

fn keep_in_shape(life: &mut Life<'_>, db: &Db) {
    life.flush(db);
    for key in (1..14).step_by(3) {
        life.delete(db, key);
        life.put(db, key + 1, 350, false);
    }
    life.flush(db);
    life.note(db.compact_range(None, None));
    for _ in 0..3 {
        life.note(db.gc(GcGoal::Once));
        life.note(db.wait_idle());
    }
    life.note(db.compact_range(None, None));
    life.note(db.wait_idle());
}

/// So many that the manifest is replaced.
fn many_edits(life: &mut Life<'_>, db: &Db) {
    for round in 0..14 {
        life.put(db, LONG, 40 + round, false);
        life.flush(db);
    }
    life.note(db.wait_idle());
}

/// Panics unless a life in which nothing has failed took every path.
pub fn assert_complete(faults: &Faults) {
    let took = |call, suffix, least: u64| {
        let count = faults.count_of(call, suffix);
        assert!(count >= least, "{call:?} of {suffix}: {count} calls of at least {least}");
    };
    took(Call::Create, ".vlog", 5);
    took(Call::Create, ".cold", 1);
    took(Call::Create, ".table", 10);
    took(Call::PunchHole, "", 1);
    took(Call::Link, "", 2);
    took(Call::RemoveFile, ".vlog", 2);
    took(Call::RemoveFile, ".table", 5);
    // Two opens, the copy, and at least once because it had become too long.
    took(Call::Rename, "CURRENT", 4);
    took(Call::Read, "", 20);
    took(Call::SyncDir, "", 10);
}
