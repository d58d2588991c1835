//! One life, round by round: the database is opened, lives, and loses its process or its power.

use std::collections::BTreeMap;
use std::sync::Arc;

use tamarack::testing::{Env, FaultEnv, Faults, SimDisk, SimOptions};
use tamarack::{Db, Error, ErrorKind, GcGoal, IterOptions, Snapshot, WriteBatch, WriteOptions};

use super::character::{Character, Step, Trouble};
use crate::common::Random;
use crate::common::garbage::{Content, walk};
use crate::common::history::{DURABLE, History, ISSUED};
use crate::common::time::unwatched;

const DATABASE: &str = "/db";
const ROUNDS: usize = 6;
/// Under which subject the disk knows how many batches a kill leaves at least.
const ACKNOWLEDGED: u64 = 3;

/// What happened.
#[derive(Debug, Default)]
pub struct Tally {
    operations: u64,
    opens: u64,
    kills: u64,
    crashes: u64,
    closes: u64,
    errors: u64,
    /// Faults that have struck, of calls and of devices.
    faults: u64,
    /// Lives that ended because damage was found.
    damage_found: u64,
    /// Lives in which a device has lied and nobody can tell.
    damage_harmless: u64,
    /// Opens that found less than the device had confirmed.
    older: u64,
    /// A digest of all calls to the file system, and of what they wrote.
    pub trace: u64,
}

impl Tally {
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.opens += other.opens;
        self.kills += other.kills;
        self.crashes += other.crashes;
        self.closes += other.closes;
        self.errors += other.errors;
        self.faults += other.faults;
        self.damage_found += other.damage_found;
        self.damage_harmless += other.damage_harmless;
        self.older += other.older;
        self.trace ^= other.trace;
    }

    /// Whether everything has happened.
    pub fn is_complete(&self) -> bool {
        let all = [self.kills, self.crashes, self.closes, self.errors, self.faults, self.damage_found];
        all.iter().all(|count| *count > 20) && self.damage_harmless > 0
    }
}

/// One life.
pub struct Life {
    seed: u64,
    random: Random,
    character: Character,
    disk: SimDisk,
    env: Env,
    faults: Arc<Faults>,
    history: History,
    /// Whether a device has lied.
    lied: bool,
    what: String,
    tally: Tally,
}

/// Why a life does not go on.
struct Ended;

impl Life {
    /// The life that belongs to `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let character = Character::new(&mut random);
        let disk = SimDisk::new(&SimOptions { seed, block_bytes: 512, ..SimOptions::default() });
        let (env, faults) = FaultEnv::new(unwatched(disk.env()));
        let (history, tally) = (History::new(), Tally::default());
        Self { seed, random, character, disk, env, faults, history, lied: false, what: String::new(), tally }
    }

    /// Leads it.
    pub fn lead(mut self) -> Tally {
        let ended = (0..ROUNDS).any(|round| {
            self.what = format!("seed {}, round {round}", self.seed);
            self.round().is_err()
        });
        self.tally.damage_found += u64::from(ended);
        self.tally.damage_harmless += u64::from(self.lied && !ended);
        self.tally
    }

    fn round(&mut self) -> Result<(), Ended> {
        self.character.trouble(&self.disk, &self.faults, &mut self.random);
        let changes = self.random.pick(&[20, 300, 1500]);
        self.disk.kill_at(self.disk.changes() + self.random.below(changes) as u64);
        if let Some(db) = self.open()? {
            let mut steps = self.random.below(120);
            while steps > 0 && self.step(&db)? {
                steps -= 1;
            }
            self.end(db)?;
        }
        self.lose_process_or_power();
        Ok(())
    }

    /// How many faults have struck.
    fn struck(&self) -> u64 {
        self.faults.triggered() + self.disk.struck()
    }

    /// Panics unless there is a reason for `error`. Damage ends a life whose device lies.
    fn judge(&mut self, error: &Error) -> Result<(), Ended> {
        self.tally.errors += 1;
        self.lied |= self.character.trouble == Trouble::Lies && self.disk.struck() > 0;
        if self.lied {
            let named = [
                ErrorKind::Corruption,
                ErrorKind::Unsupported,
                ErrorKind::ReadOnly,
                ErrorKind::InvalidArgument,
            ];
            assert!(named.contains(&error.kind()), "{}: {error}", self.what);
            return Err(Ended);
        }
        assert!(self.struck() > 0, "{}: without a fault: {error}", self.what);
        let clean = [ErrorKind::Io, ErrorKind::NoSpace, ErrorKind::ReadOnly];
        assert!(clean.contains(&error.kind()), "{}: {error}", self.what);
        Ok(())
    }

    /// Opens the database and looks at what is there. `None` if a call has failed.
    fn open(&mut self) -> Result<Option<Db>, Ended> {
        self.tally.opens += 1;
        let options = self.character.options(&mut self.random);
        let db = match Db::open_with_env(DATABASE, options, &self.env) {
            Ok(db) => db,
            Err(error) => return self.judge(&error).map(|()| None),
        };
        let found = match content(&db, None, &self.what) {
            Ok(found) => found,
            Err(error) => {
                self.judge(&error)?;
                // It was the call of this read.
                match content(&db, None, &self.what) {
                    Ok(found) => found,
                    Err(error) => return self.judge(&error).map(|()| None),
                }
            }
        };
        let least = self.disk.fact(DURABLE).unwrap_or(0).max(self.disk.fact(ACKNOWLEDGED).unwrap_or(0));
        let most = self.disk.fact(ISSUED).unwrap_or(0);
        self.lied |= self.character.trouble == Trouble::Lies && self.disk.struck() > 0;
        let batches = self.history.find(&found, least, most).or_else(|| {
            let older = self.history.find(&found, 0, most).filter(|_| self.lied);
            self.tally.older += u64::from(older.is_some());
            older
        });
        let Some(batches) = batches else {
            panic!("{}: not a state after {least} to {most} batches: {:?}", self.what, found.keys())
        };
        self.history.truncate(batches);
        self.note(batches, batches, batches);
        Ok(Some(db))
    }

    fn note(&self, issued: u64, acknowledged: u64, durable: u64) {
        self.disk.note_fact(ISSUED, issued);
        self.disk.note_fact(ACKNOWLEDGED, acknowledged);
        self.disk.note_fact(DURABLE, durable);
    }

    /// Takes a step. Returns whether the life goes on.
    fn step(&mut self, db: &Db) -> Result<bool, Ended> {
        self.tally.operations += 1;
        let outcome = match self.character.step(&mut self.random) {
            Step::Put => return self.write(db, 1, 0),
            Step::Delete => return self.write(db, 0, 1),
            Step::Batch => {
                let counts = (self.random.below(6), self.random.below(3));
                return self.write(db, counts.0, counts.1);
            }
            Step::Snapshot => return self.snapshot(db),
            Step::Read => return self.read(db, None, self.history.batches()),
            Step::Sync => db.sync().map(|()| true),
            Step::Flush => db.flush().map(|()| true),
            Step::Compact => db.compact_range(None, None).map(|()| false),
            Step::Gc => db.gc(self.random.pick(&[GcGoal::Once, GcGoal::Until(1.0)])).map(|_| false),
            Step::SortValues => db.sort_values().map(|()| false),
            Step::Rest => db.wait_idle().map(|()| false),
            Step::Checkpoint => return self.checkpoint(db),
        };
        match outcome {
            Ok(durable) => {
                if durable {
                    let batches = self.history.batches();
                    self.note(batches, batches, batches);
                }
                Ok(true)
            }
            Err(error) => self.judge(&error).map(|()| false),
        }
    }

    fn write(&mut self, db: &Db, puts: usize, deletions: usize) -> Result<bool, Ended> {
        let number = self.history.batches() + 1;
        let mut operations = BTreeMap::new();
        for index in 0..puts + deletions {
            let key = self.character.key(&mut self.random);
            let value = (index < puts).then(|| self.character.value(&mut self.random, number, &key));
            operations.insert(key, value);
        }
        if operations.is_empty() {
            return Ok(true);
        }
        let mut batch = WriteBatch::new();
        for (key, value) in &operations {
            match value {
                Some(value) => batch.put(key, value).unwrap(),
                None => batch.delete(key).unwrap(),
            }
        }
        let sync = self.character.sync(&mut self.random);
        self.disk.note_fact(ISSUED, number);
        match db.write(&batch, &WriteOptions { sync }) {
            Ok(()) => {
                self.history.push(&operations);
                self.disk.note_fact(ACKNOWLEDGED, number);
                if sync {
                    self.disk.note_fact(DURABLE, number);
                }
                Ok(true)
            }
            Err(error) => {
                self.judge(&error)?;
                // In doubt, until it is looked for.
                self.history.push(&operations);
                Ok(false)
            }
        }
    }

    /// Reads everything at a moment after so many batches.
    fn read(&mut self, db: &Db, snapshot: Option<&Snapshot>, batches: u64) -> Result<bool, Ended> {
        let before = self.faults.triggered();
        let found = match content(db, snapshot, &self.what) {
            Err(error) if self.faults.triggered() > before => {
                self.judge(&error)?;
                content(db, snapshot, &self.what)
            }
            found => found,
        };
        match found {
            Ok(found) => {
                // What is in doubt may be seen.
                let acknowledged = self.disk.fact(ACKNOWLEDGED).unwrap_or(0).min(batches);
                let known = self.history.find(&found, acknowledged, batches).is_some();
                assert!(known, "{}: a read finds {:?}", self.what, found.keys());
                Ok(true)
            }
            Err(error) => {
                self.judge(&error)?;
                panic!("{}: a read that fails twice: {error}", self.what)
            }
        }
    }

    /// Takes a snapshot, writes, and looks at it.
    fn snapshot(&mut self, db: &Db) -> Result<bool, Ended> {
        let (snapshot, batches) = (db.snapshot(), self.history.batches());
        for _ in 0..self.random.below(12) {
            if !self.write(db, 1, 1)? {
                return Ok(false);
            }
        }
        let found = content(db, Some(&snapshot), &self.what);
        match found {
            Ok(found) => {
                assert!(found == *self.history.at(batches), "{}: a snapshot has changed", self.what);
                Ok(true)
            }
            Err(error) => self.judge(&error).map(|()| true),
        }
    }

    /// Copies the database, and looks at the copy.
    fn checkpoint(&mut self, db: &Db) -> Result<bool, Ended> {
        let path = format!("/copy-{}", self.tally.operations);
        if let Err(error) = db.checkpoint(&path) {
            return self.judge(&error).map(|()| false);
        }
        let options = self.character.options(&mut self.random);
        let copy = match Db::open_with_env(&path, options, &self.env) {
            Ok(copy) => copy,
            Err(error) => return self.judge(&error).map(|()| false),
        };
        match content(&copy, None, &self.what) {
            Ok(found) => {
                let batches = self.history.batches();
                assert!(found == *self.history.at(batches), "{}: a copy has something else", self.what);
                Ok(true)
            }
            Err(error) => self.judge(&error).map(|()| false),
        }
    }

    /// Looks once more, and drops or closes the database.
    fn end(&mut self, db: Db) -> Result<(), Ended> {
        self.read(&db, None, self.history.batches())?;
        if self.random.one_in(2) {
            drop(db);
            return Ok(());
        }
        self.tally.closes += 1;
        match db.close() {
            Ok(()) => Ok(()),
            Err(error) => self.judge(&error),
        }
    }

    /// The next round is that of another process, perhaps after a loss of power, now or at the moment that was planned.
    fn lose_process_or_power(&mut self) {
        self.tally.faults += self.struck();
        self.lied |= self.character.trouble == Trouble::Lies && self.disk.struck() > 0;
        self.tally.trace = self.tally.trace.rotate_left(1) ^ self.disk.trace();
        let planned = self.disk.take_killed().filter(|_| self.random.one_in(2));
        let killed = planned.unwrap_or_else(|| self.disk.kill());
        self.disk = if self.random.one_in(2) {
            self.tally.crashes += 1;
            let crashed = killed.crash(self.random.number());
            // What was acknowledged and not synced may be gone.
            crashed.note_fact(ACKNOWLEDGED, 0);
            crashed
        } else {
            self.tally.kills += 1;
            killed
        };
        if self.character.trouble == Trouble::Lies && self.random.one_in(6) {
            self.lied |= self.disk.rot(self.random.number()).is_some();
        }
        (self.env, self.faults) = FaultEnv::new(unwatched(self.disk.env()));
    }
}

/// Everything in `db`, which must agree with itself.
fn content(db: &Db, snapshot: Option<&Snapshot>, what: &str) -> tamarack::Result<Content> {
    let options = IterOptions { snapshot: snapshot.cloned(), ..IterOptions::default() };
    let forward = walk(db, &options, false)?;
    let mut backward = walk(db, &options, true)?;
    backward.reverse();
    assert!(forward == backward, "{what}: backward");
    if snapshot.is_none() {
        for (key, value) in &forward {
            assert!(db.get(key)?.as_ref() == Some(value), "{what}: {} by get", key.escape_ascii());
        }
    }
    Ok(forward.into_iter().collect())
}
