//! What was written, and what the disk knows of it at each moment.

use std::collections::BTreeMap;

use tamarack::testing::Moment;

use super::garbage::Content;

/// Under which subject the disk knows how many batches were begun.
pub const ISSUED: u64 = 0;
/// Under which it knows how many are durable.
pub const DURABLE: u64 = 1;
/// Under which it knows how many the checkpoint has, once there is one.
pub const COPIED: u64 = 2;

/// Every state that there was: after no batch, after the first, and so on.
#[derive(Clone)]
pub struct History(Vec<Content>);

impl History {
    /// That of an empty database.
    pub fn new() -> Self {
        Self(vec![Content::new()])
    }

    /// How many batches there were.
    pub fn batches(&self) -> u64 {
        self.0.len() as u64 - 1
    }

    /// Adds a batch.
    pub fn push(&mut self, operations: &BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let mut state = self.0.last().expect("there is a first state").clone();
        for (key, value) in operations {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }
        self.0.push(state);
    }

    /// Forgets all batches behind the first `batches`.
    pub fn truncate(&mut self, batches: u64) {
        self.0.truncate(batches as usize + 1);
    }

    /// The state after so many batches.
    pub fn at(&self, batches: u64) -> &Content {
        &self.0[batches as usize]
    }

    /// Whether `key` ever was `value`.
    pub fn ever(&self, key: &[u8], value: Option<&[u8]>) -> bool {
        self.0.iter().any(|state| state.get(key).map(Vec::as_slice) == value)
    }

    /// Every key that there ever was.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        let mut keys: Vec<_> = self.0.iter().flat_map(|state| state.keys().cloned()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// The largest number of batches, of `least` to `most`, after which the state was `found`.
    pub fn find(&self, found: &Content, least: u64, most: u64) -> Option<u64> {
        (least..=most.min(self.batches())).rev().find(|batches| self.0[*batches as usize] == *found)
    }
}

/// What a crash at `moment` must leave at least, and may leave at most.
pub fn bounds(moment: &Moment) -> (u64, u64) {
    (moment.fact(DURABLE).unwrap_or(0), moment.fact(ISSUED).unwrap_or(0))
}
