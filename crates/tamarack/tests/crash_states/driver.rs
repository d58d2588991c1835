//! Runs a scenario: does what it says, one thing after the other, and tells the disk what must be there from then on.

use std::collections::BTreeMap;
use std::sync::Arc;

use tamarack::testing::{Env, Moment, SimDisk};
use tamarack::{Db, GcGoal, GcReport, Options, WriteBatch, WriteOptions};

use super::gate::Gate;
use crate::common::history::{COPIED, DURABLE, History, ISSUED};

pub const DATABASE: &str = "/db";
pub const COPY: &str = "/copy";

/// What came of a scenario.
pub struct Recording {
    pub moments: Vec<Moment>,
    pub history: History,
    /// Calls of the interface while moments were kept.
    pub operations: u64,
}

/// A database in the hands of a scenario.
pub struct Driver {
    pub disk: SimDisk,
    env: Env,
    gate: Arc<Gate>,
    options: Options,
    db: Option<Db>,
    history: History,
    operations: u64,
}

/// One operation: the number of a key, and the length of its new value unless it is deleted.
pub type Operation = (usize, Option<usize>);

impl Driver {
    /// One whose disk is `disk`, where `history` has come to pass. Nothing is open yet.
    pub fn new(disk: SimDisk, options: &Options, history: History) -> Self {
        let (env, gate) = Gate::new(disk.env());
        Self { disk, env, gate, options: options.clone(), db: None, history, operations: 0 }
    }

    /// The open database.
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("a scenario opens its database first")
    }

    /// Keeps every moment from now on.
    pub fn record(&mut self) {
        self.disk.record();
        self.operations = 0;
    }

    /// Opens the database; when that returns, what it holds is durable.
    pub fn open(&mut self) {
        self.operations += 1;
        self.db = Some(Db::open_with_env(DATABASE, self.options.clone(), &self.env).unwrap());
        let found = super::oracle::content(self.db(), "a scenario");
        let (least, most) = (self.disk.fact(DURABLE).unwrap_or(0), self.disk.fact(ISSUED).unwrap_or(0));
        let batches = self.history.find(&found, least, most).expect("what an open finds is a prefix");
        self.history.truncate(batches);
        self.note_durable();
        self.settle();
    }

    /// Waits for everything in the background.
    fn settle(&self) {
        self.gate.open_while(|| self.db().wait_idle().unwrap());
    }

    /// Everything so far is durable, and nothing else was begun.
    fn note_durable(&self) {
        self.disk.note_fact(ISSUED, self.history.batches());
        self.disk.note_fact(DURABLE, self.history.batches());
    }

    /// Writes a batch.
    pub fn batch(&mut self, operations: &[Operation], sync: bool) {
        self.operations += 1;
        let number = self.history.batches() + 1;
        let mut batch = WriteBatch::new();
        let mut entries = BTreeMap::new();
        for &(key, len) in operations {
            let name = key_name(key);
            let value = len.map(|len| value(number, key, len));
            match &value {
                Some(value) => batch.put(&name, value).unwrap(),
                None => batch.delete(&name).unwrap(),
            }
            entries.insert(name, value);
        }
        self.disk.note_fact(ISSUED, number);
        let write = || self.db().write(&batch, &WriteOptions { sync }).unwrap();
        // Whoever syncs may have to wait for a sync in the background.
        if sync {
            self.gate.open_while(write)
        } else {
            write()
        }
        self.history.push(&entries);
        if sync {
            self.note_durable();
        }
        self.settle();
    }

    pub fn put(&mut self, key: usize, len: usize, sync: bool) {
        self.batch(&[(key, Some(len))], sync);
    }

    pub fn delete(&mut self, key: usize, sync: bool) {
        self.batch(&[(key, None)], sync);
    }

    pub fn sync(&mut self) {
        self.operations += 1;
        self.gate.open_while(|| self.db().sync().unwrap());
        self.note_durable();
        self.settle();
    }

    /// Flushes. Tables never point to log that is not durable, so all of it is then.
    pub fn flush(&mut self) {
        self.operations += 1;
        self.gate.open_while(|| self.db().flush().unwrap());
        self.settle();
        self.note_durable();
    }

    pub fn compact(&mut self) {
        self.operations += 1;
        self.gate.open_while(|| self.db().compact_range(None, None).unwrap());
        self.settle();
    }

    pub fn gc(&mut self) -> GcReport {
        self.operations += 1;
        let report = self.db().gc(GcGoal::Once).unwrap();
        self.settle();
        report
    }

    /// Copies the database; the copy has everything so far.
    pub fn checkpoint(&mut self) {
        self.operations += 1;
        self.gate.open_while(|| self.db().checkpoint(COPY).unwrap());
        self.disk.note_fact(COPIED, self.history.batches());
        self.note_durable();
        self.settle();
    }

    /// Closes; all segments are sealed then.
    pub fn close(&mut self) {
        self.operations += 1;
        let db = self.db.take().expect("a scenario closes what it has opened");
        self.gate.open_while(|| db.close().unwrap());
        self.note_durable();
    }

    /// What was recorded so far; from now on nothing is.
    pub fn recording(&self) -> Recording {
        let moments = self.disk.take_moments();
        Recording { moments, history: self.history.clone(), operations: self.operations }
    }

    /// Ends the scenario; what comes of dropping the database is no part of it.
    pub fn end(mut self) -> Recording {
        let recording = self.recording();
        let db = self.db.take();
        self.gate.open_while(|| drop(db));
        recording
    }
}

fn key_name(number: usize) -> Vec<u8> {
    format!("key{number:02}").into_bytes()
}

/// A value that no other batch writes.
fn value(batch: u64, key: usize, len: usize) -> Vec<u8> {
    format!("<{batch}@{key}>").into_bytes().into_iter().cycle().take(len).collect()
}
