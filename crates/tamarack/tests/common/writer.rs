//! Whoever writes: keys of its own, and everything it did to them, in order. What a crash leaves of that must be the
//! beginning, and no shorter than what was synced.

use std::ops::RangeInclusive;

use tamarack::testing::SimDisk;
use tamarack::{Db, ErrorKind, Result, WriteOptions};

use super::Random;
use super::garbage::Content;

/// Keys of each writer.
pub const KEYS: usize = 20;

/// One writer.
#[derive(Clone)]
pub struct Writer {
    number: u64,
    large: bool,
    /// Each operation: a key, and its value unless it was deleted.
    history: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Writer {
    /// The writer of that number, which has written nothing.
    pub fn new(number: u64, large: bool) -> Self {
        Self { number, large, history: Vec::new() }
    }

    fn key(&self, number: usize) -> Vec<u8> {
        key(self.number, number)
    }

    /// Writes a value that no other operation writes. Returns whether the database was open.
    pub fn put(&mut self, db: &Db, disk: &SimDisk, number: usize, sync: bool) -> bool {
        let operation = self.history.len();
        let text = format!("<{}@{operation}>", String::from_utf8_lossy(&self.key(number)));
        let len = if self.large { 700 + operation % 5 * 100 } else { 120 + operation * 37 % 250 };
        let value: Vec<u8> = text.bytes().cycle().take(len).collect();
        let outcome = db.put_with(&self.key(number), &value, &WriteOptions { sync });
        self.did(disk, number, Some(value), sync, outcome)
    }

    /// Deletes. Returns whether the database was open.
    pub fn delete(&mut self, db: &Db, disk: &SimDisk, number: usize, sync: bool) -> bool {
        let outcome = db.delete_with(&self.key(number), &WriteOptions { sync });
        self.did(disk, number, None, sync, outcome)
    }

    fn did(
        &mut self,
        disk: &SimDisk,
        number: usize,
        value: Option<Vec<u8>>,
        sync: bool,
        outcome: Result<()>,
    ) -> bool {
        match outcome {
            Ok(()) => {
                self.history.push((self.key(number), value));
                disk.note_fact(acknowledged(self.number), self.history.len() as u64);
                if sync {
                    self.note_durable(disk);
                }
                true
            }
            Err(error) if error.kind() == ErrorKind::Closed => false,
            Err(error) => panic!("writer {}: {error}", self.number),
        }
    }

    /// Whatever was written so far is durable.
    pub fn note_durable(&self, disk: &SimDisk) {
        disk.note_fact(durable(self.number), self.history.len() as u64);
    }

    /// Panics unless what `found` has of this writer's keys is what there was after so many operations; returns the
    /// largest number of them that fits.
    pub fn assert_at(&self, found: &Content, range: RangeInclusive<usize>, what: &str) -> usize {
        let prefix = format!("{}/", self.number).into_bytes();
        let own: Content = found
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let (mut state, mut fits) = (Content::new(), None);
        for done in 0..=*range.end() {
            if done >= *range.start() && state == own {
                fits = Some(done);
            }
            if let Some((key, value)) = self.history.get(done) {
                match value {
                    Some(value) => state.insert(key.clone(), value.clone()),
                    None => state.remove(key),
                };
            }
        }
        if let Some(fits) = fits {
            return fits;
        }
        let brief = |content: &Content| -> Vec<String> {
            let entry = |(key, value): (&Vec<u8>, &Vec<u8>)| {
                let head = &value[..value.len().min(12)];
                format!("{}={}", key.escape_ascii(), head.escape_ascii())
            };
            content.iter().map(entry).collect()
        };
        panic!(
            "{what}: writer {} should be at {range:?} of {} operations, but the database has {:?}; at the end it is {:?}",
            self.number,
            self.history.len(),
            brief(&own),
            brief(&state)
        );
    }

    /// Panics unless `key` had `value` after some operation, the first `least` of them being done.
    pub fn assert_got(&self, key: &[u8], value: Option<&[u8]>, least: u64) {
        let done = &self.history[..least as usize];
        let before =
            done.iter().rev().find(|(there, _)| there == key).and_then(|(_, value)| value.as_deref());
        let mut later = self.history[least as usize..].iter().filter(|(there, _)| there == key);
        let known = before == value || later.any(|(_, later)| later.as_deref() == value);
        assert!(known, "{} is {value:?} after {least} operations", key.escape_ascii());
    }

    /// The same where `disk` knows what must be there at least.
    pub fn assert_since(&self, found: &Content, least: u64, what: &str) -> usize {
        self.assert_at(found, least as usize..=self.history.len(), what)
    }

    /// Forgets all but the first `operations`: a crash has taken the others.
    pub fn forget_after(&mut self, operations: usize) {
        self.history.truncate(operations);
    }

    /// The same where everything must be there.
    pub fn assert_now(&self, found: &Content, what: &str) {
        self.assert_at(found, self.history.len()..=self.history.len(), what);
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Writes all keys, and some again.
    pub fn prepare(&mut self, db: &Db, disk: &SimDisk, random: &mut Random) {
        (0..KEYS).for_each(|number| assert!(self.put(db, disk, number, false)));
        db.flush().unwrap();
        for number in 0..KEYS {
            if random.one_in(2) {
                assert!(self.put(db, disk, number, false));
            }
        }
    }
}

/// The key of that number of a writer.
pub fn key(writer: u64, number: usize) -> Vec<u8> {
    format!("{writer}/{number:02}").into_bytes()
}

/// Under which subject the disk knows how much of a writer's work was acknowledged.
pub fn acknowledged(writer: u64) -> u64 {
    writer * 2
}

/// Under which it knows how much is durable.
pub fn durable(writer: u64) -> u64 {
    writer * 2 + 1
}
