//! What was written, what may have been, and what is durable.

use std::collections::BTreeMap;

use tamarack::{Db, Error, ErrorKind, IterOptions, Result, Snapshot, WriteBatch, WriteOptions};

use crate::common::garbage::walk;

/// What a key may be: one thing after an acknowledged write, more after failed ones.
type Possible = Vec<Option<Vec<u8>>>;

/// The keys, and what each may be.
#[derive(Clone, Default)]
pub struct Ledger {
    next: u64,
    keys: BTreeMap<usize, Possible>,
    /// The same when the log was synced last, and whatever was tried since.
    durable: BTreeMap<usize, Possible>,
}

/// The number of a key, and the length of its value unless it is deleted.
type Operation = (usize, Option<usize>);

impl Ledger {
    pub fn put(&mut self, db: &Db, key: usize, len: usize, sync: bool) -> Result<()> {
        self.write(db, &[(key, Some(len))], sync)
    }

    pub fn delete(&mut self, db: &Db, key: usize) -> Result<()> {
        self.write(db, &[(key, None)], false)
    }

    /// Writes a batch.
    pub fn write(&mut self, db: &Db, operations: &[Operation], sync: bool) -> Result<()> {
        self.next += 1;
        let mut batch = WriteBatch::new();
        let mut entries = BTreeMap::new();
        for &(key, len) in operations {
            let value = len.map(|len| value(self.next, key, len));
            match &value {
                Some(value) => batch.put(&name(key), value).unwrap(),
                None => batch.delete(&name(key)).unwrap(),
            }
            entries.insert(key, value);
        }
        let outcome = db.write(&batch, &WriteOptions { sync });
        // Without a sync of its own, what was refused for want of space, or once nothing may be written, is not there.
        let refused = |error: &Error| !sync && error.kind() != ErrorKind::Io;
        let refused = outcome.as_ref().is_err_and(refused);
        for (key, value) in entries.into_iter().filter(|_| !refused) {
            let possible = self.keys.entry(key).or_insert_with(|| vec![None]);
            if outcome.is_ok() {
                possible.clear();
            }
            possible.push(value.clone());
            self.durable.entry(key).or_insert_with(|| vec![None]).push(value);
        }
        if outcome.is_ok() && sync {
            self.note_durable();
        }
        outcome
    }

    /// All that was acknowledged is durable.
    pub fn note_durable(&mut self) {
        self.durable.clone_from(&self.keys);
    }

    /// Panics unless `db` holds what it may: every key by itself, and all from either end.
    ///
    /// # Errors
    /// Those of reads.
    pub fn assert_reads(&self, db: &Db, what: &str) -> Result<()> {
        self.assert_possible(db, &self.keys, None, what)
    }

    /// The same at the moment of a snapshot that was taken when the ledger was this.
    ///
    /// # Errors
    /// Those of reads.
    pub fn assert_snapshot(&self, db: &Db, snapshot: &Snapshot, what: &str) -> Result<()> {
        self.assert_possible(db, &self.keys, Some(snapshot), what)
    }

    /// Panics unless `db` holds what was durable or tried since.
    pub fn assert_durable(&self, db: &Db, what: &str) {
        let read = self.assert_possible(db, &self.durable, None, what);
        read.unwrap_or_else(|error| panic!("{what}: {error}"));
    }

    fn assert_possible(
        &self,
        db: &Db,
        keys: &BTreeMap<usize, Possible>,
        snapshot: Option<&Snapshot>,
        what: &str,
    ) -> Result<()> {
        let options = IterOptions { snapshot: snapshot.cloned(), ..IterOptions::default() };
        let forward = walk(db, &options, false)?;
        let mut backward = walk(db, &options, true)?;
        backward.reverse();
        assert!(forward == backward, "{what}: backward");
        let found: BTreeMap<_, _> = forward.into_iter().collect();
        for (key, possible) in keys {
            let there = found.get(&name(*key));
            assert!(
                possible.iter().any(|value| value.as_ref() == there),
                "{what}: key {key} is {}",
                brief(there)
            );
            if snapshot.is_none() {
                assert!(db.get(&name(*key))?.as_ref() == there, "{what}: key {key} by get");
            }
        }
        assert!(
            found.keys().all(|key| keys.keys().any(|number| name(*number) == *key)),
            "{what}: unknown keys"
        );
        Ok(())
    }

    /// Panics unless `db` has what was acknowledged for `key`.
    pub fn assert_key(&self, db: &Db, key: usize, what: &str) {
        let found = db.get(&name(key)).unwrap();
        assert!(self.keys[&key].contains(&found), "{what}: key {key} is {}", brief(found.as_ref()));
    }
}

fn name(key: usize) -> Vec<u8> {
    let digits = if key < 60 { 3 } else { 150 };
    format!("key{key:0digits$}").into_bytes()
}

fn value(number: u64, key: usize, len: usize) -> Vec<u8> {
    format!("<{number}@{key}>").into_bytes().into_iter().cycle().take(len).collect()
}

fn brief(value: Option<&Vec<u8>>) -> String {
    value.map_or("absent".into(), |value| value[..value.len().min(12)].escape_ascii().to_string())
}
