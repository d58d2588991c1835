//! What threads do at the same time.

use std::path::Path;

use tamarack::testing::SimDisk;
use tamarack::{Db, ErrorKind, GcGoal, IterOptions, ReadOptions};

use crate::common::Random;
use crate::common::garbage::{Content, walk};
use crate::common::writer::{KEYS, Writer, acknowledged, key};
use crate::world::{content, open};

/// Where checkpoints go.
pub const COPY: &str = "/copy";
/// Under which subject the disk knows that there is a checkpoint, whatever comes.
pub const COPIED: u64 = u64::MAX;

/// A part in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Deletes keys.
    Delete,
    /// Writes keys again.
    Overwrite,
    /// Deletes keys and writes them again.
    Reinsert,
    /// Writes and deletes large values, whose space can be given back by holes.
    WriteLarge,
    /// Collects garbage.
    Collect,
    /// Flushes and compacts everything.
    Compact,
    /// Takes a snapshot, and reads through it twice.
    Snapshot,
    /// Reads forward and backward by one iterator, slowly.
    Iterate,
    /// Gets keys, one by one.
    Read,
    /// Makes a checkpoint.
    Checkpoint,
    /// Closes the database.
    Close,
}

impl Role {
    /// Whether it writes, and so has keys of its own.
    pub fn writes(self) -> bool {
        matches!(self, Self::Delete | Self::Overwrite | Self::Reinsert | Self::WriteLarge)
    }
}

/// What somebody has seen: a state no older than what was acknowledged before.
pub struct Seen {
    pub content: Content,
    /// How many operations of each writer there were at least.
    pub least: Vec<u64>,
    pub by: &'static str,
}

/// What somebody has got: the value of a key at a moment no earlier than when so many operations of its writer were
/// acknowledged.
pub struct Got {
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
    pub writer: u64,
    pub least: u64,
}

/// What a thread brings back.
pub enum Outcome {
    /// What it has written.
    Wrote(Writer),
    /// What it has seen.
    Saw(Vec<Seen>),
    /// What it has got.
    Got(Vec<Got>),
    /// A checkpoint that holds a state no older than this, if it was made.
    Copied(Option<Vec<u64>>),
    /// Nothing to look at.
    Done,
}

/// A thread's world.
pub struct Actor {
    pub db: Db,
    pub disk: SimDisk,
    pub random: Random,
    pub writers: u64,
}

impl Actor {
    /// Does what `role` says.
    pub fn act(self, role: Role, writer: Option<Writer>) -> Outcome {
        match (role, writer) {
            (role, Some(writer)) => Outcome::Wrote(self.write(role, writer)),
            (Role::Collect, _) => self.collect(),
            (Role::Compact, _) => self.compact(),
            (Role::Snapshot, _) => Outcome::Saw(self.read_snapshot()),
            (Role::Iterate, _) => Outcome::Saw(self.iterate()),
            (Role::Read, _) => Outcome::Got(self.read()),
            (Role::Checkpoint, _) => Outcome::Copied(self.copy()),
            (Role::Close, _) => self.close(),
            (role, None) => panic!("{role:?} has nothing to write to"),
        }
    }

    fn write(mut self, role: Role, mut writer: Writer) -> Writer {
        for step in 0..KEYS + KEYS / 2 {
            let number = self.random.below(KEYS);
            let sync = self.random.one_in(6);
            let (db, disk) = (&self.db, &self.disk);
            let open = match role {
                Role::Delete => writer.delete(db, disk, number, sync),
                Role::Overwrite => writer.put(db, disk, number, sync),
                Role::Reinsert => {
                    writer.delete(db, disk, step % KEYS, sync) && writer.put(db, disk, step % KEYS, sync)
                }
                _ if step % 3 == 0 => writer.delete(db, disk, number, sync),
                _ => writer.put(db, disk, number, sync),
            };
            if !open {
                break;
            }
        }
        writer
    }

    fn collect(mut self) -> Outcome {
        for _ in 0..4 {
            let goal = self.random.pick(&[GcGoal::Once, GcGoal::Until(1.0)]);
            allow_closed(self.db.gc(goal));
            if self.random.one_in(2) {
                allow_closed(self.db.sort_values());
            }
        }
        Outcome::Done
    }

    fn compact(mut self) -> Outcome {
        for _ in 0..3 {
            allow_closed(self.db.flush());
            if self.random.one_in(3) {
                let (start, end) = (format!("0/{:02}", self.random.below(KEYS)), "1/05");
                allow_closed(self.db.compact_range(Some(start.as_bytes()), Some(end.as_bytes())));
            } else {
                allow_closed(self.db.compact_range(None, None));
            }
        }
        Outcome::Done
    }

    /// What every writer knows to be visible by now.
    fn least(&self) -> Vec<u64> {
        (0..self.writers).map(|writer| self.disk.fact(acknowledged(writer)).unwrap_or(0)).collect()
    }

    fn read_snapshot(mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for _ in 0..2 {
            let least = self.least();
            let settings = ReadOptions { snapshot: Some(self.db.snapshot()), ..ReadOptions::default() };
            let options = IterOptions { snapshot: settings.snapshot.clone(), ..IterOptions::default() };
            let Some(content) = allow_closed(walk(&self.db, &options, self.random.one_in(2))) else { break };
            let content: Content = content.into_iter().collect();
            for (key, value) in &content {
                let Some(found) = allow_closed(self.db.get_with(key, &settings)) else { return seen };
                assert!(
                    found.as_ref() == Some(value),
                    "{} through a snapshot: {found:?}",
                    key.escape_ascii()
                );
            }
            let Some(again) = allow_closed(walk(&self.db, &options, self.random.one_in(2))) else { break };
            assert!(again.into_iter().collect::<Content>() == content, "a snapshot has changed");
            seen.push(Seen { content, least, by: "a snapshot" });
        }
        seen
    }

    fn read(mut self) -> Vec<Got> {
        let mut got = Vec::new();
        for _ in 0..2 * KEYS {
            let writer = self.random.below(self.writers as usize) as u64;
            let key = key(writer, self.random.below(KEYS));
            let least = self.disk.fact(acknowledged(writer)).unwrap_or(0);
            let Some(value) = allow_closed(self.db.get(&key)) else { break };
            got.push(Got { key, value, writer, least });
        }
        got
    }

    fn iterate(self) -> Vec<Seen> {
        let least = self.least();
        let Some(mut iter) = allow_closed(self.db.iter(&IterOptions::default())) else { return Vec::new() };
        let mut content = Content::new();
        let mut steps = || -> tamarack::Result<Content> {
            iter.seek_to_first()?;
            while iter.valid() {
                content.insert(iter.key().to_vec(), iter.value()?.to_vec());
                iter.next()?;
            }
            let mut backward = Content::new();
            iter.seek_to_last()?;
            while iter.valid() {
                backward.insert(iter.key().to_vec(), iter.value()?.to_vec());
                iter.prev()?;
            }
            Ok(backward)
        };
        let Some(backward) = allow_closed(steps()) else { return Vec::new() };
        assert!(content == backward, "an iterator has seen two moments");
        vec![Seen { content, least, by: "an iterator" }]
    }

    /// Lets others do something first.
    fn close(mut self) -> Outcome {
        for number in 0..self.random.below(KEYS) {
            drop(self.db.get(format!("0/{number:02}").as_bytes()).unwrap());
        }
        self.db.close().unwrap();
        Outcome::Done
    }

    fn copy(mut self) -> Option<Vec<u64>> {
        let least = self.least();
        allow_closed(self.db.checkpoint(COPY))?;
        self.disk.note_fact(COPIED, 1);
        if self.random.one_in(2) {
            // It is a database of its own, whatever happens to the original meanwhile.
            let copy = open(&self.disk.env(), Path::new(COPY), "the copy at once");
            let found = content(&copy, "the copy at once");
            drop(copy);
            let copy = open(&self.disk.env(), Path::new(COPY), "the copy again");
            assert!(content(&copy, "the copy again") == found, "a copy has changed");
        }
        Some(least)
    }
}

/// The result, unless the database was closed.
fn allow_closed<T>(result: tamarack::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if error.kind() == ErrorKind::Closed => None,
        Err(error) => panic!("{error}"),
    }
}
