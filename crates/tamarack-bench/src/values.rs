//! Which values a benchmark writes, and which it must find.
//!
//! A value and its length are pure functions of seed, key number and generation (which workload of the run wrote it): a
//! slice at a random place of a block of random bytes. That cannot be compressed, costs next to nothing to make, and lets
//! `--verify` demand exactly the latest value of a key, and live bytes be counted.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::keys::{Random, mix};
use crate::value_size::ValueSize;

/// Makes values.
#[derive(Debug)]
pub struct Values {
    block: Vec<u8>,
    seed: u64,
}

impl Values {
    /// Places at which a value may begin: enough that neighbours share nothing a compressor could find, few
    /// enough that the block stays in the processor's cache.
    const PLACES: usize = 1 << 20;

    /// Values of up to `len_max` bytes.
    pub fn new(len_max: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut block = Vec::with_capacity(Self::PLACES + len_max + 8);
        while block.len() < Self::PLACES + len_max {
            block.extend_from_slice(&random.number().to_le_bytes());
        }
        Self { block, seed }
    }

    /// The value of a key in a generation, of `len` bytes.
    pub fn value(&self, number: u64, generation: u8, len: usize) -> &[u8] {
        let place = self.hash(number, generation) as usize % Self::PLACES;
        &self.block[place..place + len]
    }

    /// Its length, where values are as long as `size` says.
    pub fn len(&self, number: u64, generation: u8, size: &ValueSize) -> usize {
        // Mixed once more: the length has nothing to do with the place.
        size.fixed().unwrap_or_else(|| size.draw(mix(!self.hash(number, generation))))
    }

    fn hash(&self, number: u64, generation: u8) -> u64 {
        mix(mix(number ^ self.seed).wrapping_add(generation.into()))
    }
}

/// What is known about each key's value.
#[derive(Debug)]
pub struct Ledger {
    states: Vec<AtomicU8>,
}

/// What is known about one key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Absent,
    /// There is one of this generation.
    Written(u8),
    /// There is one that this run did not write.
    Unknown,
}

impl Ledger {
    /// Generations are 1 to 254; the byte's other values stand for the other states.
    pub const GENERATION_MAX: u8 = 254;
    const ABSENT: u8 = 0;
    const UNKNOWN: u8 = 255;

    /// A ledger of `count` keys, all absent.
    pub fn new(count: u64) -> Self {
        Self { states: (0..count).map(|_| AtomicU8::new(Self::ABSENT)).collect() }
    }

    /// Notes that a key has a value that this run did not write; returns whether it is one of those that there may be.
    pub fn found(&self, number: u64) -> bool {
        let state = self.states.get(number as usize);
        state.inspect(|state| state.store(Self::UNKNOWN, Ordering::Relaxed)).is_some()
    }

    /// Notes that a key was written. Threads that race for one key write the same generation.
    pub fn wrote(&self, number: u64, generation: u8) {
        self.states[number as usize].store(generation, Ordering::Relaxed);
    }

    /// Notes that a key was deleted.
    pub fn deleted(&self, number: u64) {
        self.states[number as usize].store(Self::ABSENT, Ordering::Relaxed);
    }

    /// What is known about a key.
    pub fn state(&self, number: u64) -> State {
        match self.states.get(number as usize).map(|state| state.load(Ordering::Relaxed)) {
            None | Some(Self::UNKNOWN) => State::Unknown,
            Some(Self::ABSENT) => State::Absent,
            Some(generation) => State::Written(generation),
        }
    }

    /// Whether there are keys with numbers from `first` on.
    pub fn has_from(&self, first: u64) -> bool {
        (first..self.keys()).any(|number| self.state(number) != State::Absent)
    }

    /// How many keys there may be.
    pub fn keys(&self) -> u64 {
        self.states.len() as u64
    }

    /// The numbers of the keys that have values, and what is known about these.
    pub fn live(&self) -> impl Iterator<Item = (u64, State)> {
        (0..self.keys())
            .map(|number| (number, self.state(number)))
            .filter(|(_, state)| *state != State::Absent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_functions_of_key_seed_and_generation() {
        let values = Values::new(100, 7);
        assert_eq!(values.value(3, 1, 100), Values::new(100, 7).value(3, 1, 100));
        assert_eq!(values.value(3, 1, 100).len(), 100);
        assert_ne!(values.value(3, 1, 100), values.value(3, 2, 100));
        assert_ne!(values.value(3, 1, 100), values.value(4, 1, 100));
        assert_ne!(values.value(3, 1, 100), Values::new(100, 8).value(3, 1, 100));
        assert!(Values::new(0, 7).value(1, 1, 0).is_empty());
    }

    #[test]
    fn lengths_are_functions_of_key_seed_and_generation() {
        let size = "1..1000000".parse().expect("it is a range");
        let values = Values::new(0, 7);
        assert_eq!(values.len(3, 1, &size), Values::new(0, 7).len(3, 1, &size));
        assert_ne!(values.len(3, 1, &size), values.len(3, 2, &size));
        assert_ne!(values.len(3, 1, &size), values.len(4, 1, &size));
        assert_ne!(values.len(3, 1, &size), Values::new(0, 8).len(3, 1, &size));
        assert_eq!(values.len(3, 1, &ValueSize::Fixed(17)), 17);
    }

    #[test]
    fn the_ledger_knows_the_latest_state() {
        let ledger = Ledger::new(3);
        ledger.wrote(0, 1);
        ledger.wrote(0, 2);
        ledger.wrote(1, 1);
        ledger.deleted(1);
        assert_eq!(ledger.state(0), State::Written(2));
        assert_eq!(ledger.state(1), State::Absent);
        assert_eq!(ledger.state(99), State::Unknown);
        assert_eq!(ledger.live().collect::<Vec<_>>(), [(0, State::Written(2))]);
    }
}
