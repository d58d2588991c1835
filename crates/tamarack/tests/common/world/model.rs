//! What a database must answer: every version of every key, in an order of keys that need not be that of their bytes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use tamarack::{Bytewise, Comparator, Db, Iter, IterOptions};

use super::super::Random;

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

/// An order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrder {
    Bytewise,
    ShortFirst,
    Caseless,
}

impl KeyOrder {
    /// What a database is opened with.
    pub fn comparator(self) -> Arc<dyn Comparator> {
        match self {
            Self::Bytewise => Arc::new(Bytewise),
            Self::ShortFirst => Arc::new(ShortFirst),
            Self::Caseless => Arc::new(Caseless),
        }
    }

    /// Bytes whose plain order is this order of keys.
    pub fn rank(self, key: &[u8]) -> Vec<u8> {
        match self {
            Self::Bytewise => key.to_vec(),
            Self::ShortFirst => [&(key.len() as u32).to_be_bytes()[..], key].concat(),
            Self::Caseless => key.to_ascii_lowercase(),
        }
    }
}

/// A value, as what its bytes follow from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    pub seed: u64,
    pub len: usize,
}

impl Value {
    /// The bytes.
    pub fn bytes(self) -> Vec<u8> {
        Random::new(self.seed).bytes(self.len)
    }
}

/// What a key was at one moment, and how it was spelled.
#[derive(Debug)]
struct Version {
    sequence: u64,
    key: Vec<u8>,
    value: Option<Value>,
}

/// One thing that is there.
#[derive(Debug, Clone)]
pub struct Entry {
    pub rank: Vec<u8>,
    pub key: Vec<u8>,
    pub value: Value,
}

/// A key, and its new value if it is not deleted.
pub type Operation = (Vec<u8>, Option<Value>);

/// What a database must hold, now and at every moment before.
#[derive(Debug)]
pub struct Model {
    order: KeyOrder,
    sequence: u64,
    versions: BTreeMap<Vec<u8>, Vec<Version>>,
}

impl Model {
    /// That of an empty database.
    pub fn new(order: KeyOrder) -> Self {
        Self { order, sequence: 0, versions: BTreeMap::new() }
    }

    /// The present moment.
    pub fn now(&self) -> u64 {
        self.sequence
    }

    /// Does what a write does.
    pub fn write(&mut self, operations: &[Operation]) {
        for (key, value) in operations {
            self.sequence += 1;
            let version = Version { sequence: self.sequence, key: key.clone(), value: *value };
            self.versions.entry(self.order.rank(key)).or_default().push(version);
        }
    }

    /// The value of `key` at a moment.
    pub fn get(&self, key: &[u8], at: u64) -> Option<Value> {
        let versions = self.versions.get(&self.order.rank(key))?;
        versions.iter().rev().find(|version| version.sequence <= at)?.value
    }

    /// What a range holds at a moment, in order.
    pub fn entries(&self, at: u64, start: Option<&[u8]>, end: Option<&[u8]>) -> Vec<Entry> {
        let (start, end) = (start.map(|key| self.order.rank(key)), end.map(|key| self.order.rank(key)));
        self.versions
            .iter()
            .filter(|(rank, _)| start.as_ref().is_none_or(|start| *rank >= start))
            .filter(|(rank, _)| end.as_ref().is_none_or(|end| *rank < end))
            .filter_map(|(rank, versions)| {
                let version = versions.iter().rev().find(|version| version.sequence <= at)?;
                Some(Entry { rank: rank.clone(), key: version.key.clone(), value: version.value? })
            })
            .collect()
    }

    /// What is different in `db`, read forward, from what is there now.
    pub fn difference(&self, db: &Db) -> Option<String> {
        let mut found = db.iter(&IterOptions::default()).unwrap().entries();
        for Entry { key: expected, value, .. } in self.entries(self.sequence, None, None) {
            let Some(entry) = found.next() else {
                return Some(format!("ends before {:?}", expected.escape_ascii().to_string()));
            };
            let (key, bytes) = entry.unwrap();
            if key != expected {
                let (key, expected) = (key.escape_ascii(), expected.escape_ascii());
                return Some(format!("has {key} where {expected} is to be"));
            }
            if bytes != value.bytes() {
                let (expected, found) = (value.len, bytes.len());
                return Some(format!(
                    "has another value of {}, {found} bytes instead of {expected}",
                    key.escape_ascii()
                ));
            }
        }
        found.next().map(|entry| format!("goes on with {}", entry.unwrap().0.escape_ascii()))
    }
}

/// An iterator and what it must show.
pub struct Walker {
    iter: Iter,
    entries: Vec<Entry>,
    at: Option<usize>,
    keys_only: bool,
    order: KeyOrder,
}

impl Walker {
    /// One that stands nowhere.
    pub fn new(iter: Iter, entries: Vec<Entry>, keys_only: bool, order: KeyOrder) -> Self {
        Self { iter, entries, at: None, keys_only, order }
    }

    /// Goes somewhere, and looks.
    pub fn step(&mut self, random: &mut Random, key: &[u8]) {
        match random.below(if self.at.is_some() { 12 } else { 3 }) {
            0 => {
                self.iter.seek(key).unwrap();
                let rank = self.order.rank(key);
                let at = self.entries.partition_point(|entry| entry.rank < rank);
                self.at = (at < self.entries.len()).then_some(at);
            }
            1 => self.seek_to_first(),
            2 => self.seek_to_last(),
            3..=7 => self.next(),
            _ => self.prev(),
        }
        self.compare(random.one_in(3));
    }

    fn seek_to_first(&mut self) {
        self.iter.seek_to_first().unwrap();
        self.at = (!self.entries.is_empty()).then_some(0);
    }

    fn seek_to_last(&mut self) {
        self.iter.seek_to_last().unwrap();
        self.at = self.entries.len().checked_sub(1);
    }

    fn next(&mut self) {
        self.iter.next().unwrap();
        self.at = self.at.map(|at| at + 1).filter(|&at| at < self.entries.len());
    }

    fn prev(&mut self) {
        self.iter.prev().unwrap();
        self.at = self.at.and_then(|at| at.checked_sub(1));
    }

    /// Compares where it stands; a value that is not looked at must not disturb the next one.
    fn compare(&mut self, skip_value: bool) {
        let Some(at) = self.at else {
            assert!(!self.iter.valid(), "stands on {:?} behind the end", self.iter.key());
            return;
        };
        let entry = &self.entries[at];
        assert!(self.iter.valid(), "ended before {:?}", entry.key);
        assert_eq!(self.iter.key(), entry.key, "key {at} of {}", self.entries.len());
        if self.keys_only || skip_value {
            return;
        }
        assert!(self.iter.value().unwrap() == entry.value.bytes(), "value of {:?}", entry.key);
    }

    /// Goes on to the end.
    pub fn finish(mut self, random: &mut Random) {
        while self.at.is_some() {
            self.next();
            self.compare(random.one_in(4));
        }
    }

    /// Goes from one end to the other, and back.
    pub fn there_and_back(mut self) {
        self.seek_to_first();
        while self.at.is_some() {
            self.compare(false);
            self.next();
        }
        self.compare(false);
        self.seek_to_last();
        while self.at.is_some() {
            self.compare(false);
            self.prev();
        }
        self.compare(false);
    }
}
