//! What the batches of a seed do, and what they come to: all follows from the seed and the number of a batch.

use std::collections::BTreeMap;

use tamarack::testing::Random;
use tamarack::{Codec, GcPolicy, LogMode, Options, WriteBatch};

/// The key that holds the number of the last batch.
pub const LAST: &[u8] = b"last";

/// Keys and values.
pub type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// The batches of one seed.
#[derive(Clone, Copy)]
pub struct Batches {
    seed: u64,
}

impl Batches {
    /// Those of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Numbers that belong to the seed and to `purpose`, and to nothing else.
    pub fn random(self, purpose: u64) -> Random {
        Random::new(Random::new(self.seed).number() ^ Random::new(!purpose).number())
    }

    /// One seed in three writes values so large that holes are punched where they lay.
    pub fn are_large(self) -> bool {
        self.seed.is_multiple_of(3)
    }

    /// Limits so small that a hundred batches roll segments, flush, compact and collect.
    pub fn options(self) -> Options {
        let mut random = self.random(u64::MAX);
        let log_mode = [LogMode::Auto, LogMode::Auto, LogMode::Plain][random.below(3) as usize];
        let base = Options {
            log_mode,
            memtable_bytes: 4 << 10,
            table_bytes_max: 4 << 10,
            level_bytes_base: 4 << 10,
            block_bytes: 512,
            inline_value_max: 16,
            max_space_amplification: 1.05,
            value_codec: if random.one_in(3) { Codec::Lz4 } else { Codec::None },
            background_threads: 1 + random.below(2) as usize,
            ..Options::default()
        };
        if self.are_large() {
            return Options { segment_bytes_max: 512 << 10, recovery_log_max: 2 << 20, ..base };
        }
        let gc = if random.one_in(3) { GcPolicy::Tail } else { GcPolicy::CostBenefit };
        let segment_bytes_max = [4 << 10, 16 << 10][random.below(2) as usize];
        Options { segment_bytes_max, recovery_log_max: 64 << 10, gc, ..base }
    }

    /// What batch `number` does: keys, and values or deletions.
    fn operations(self, number: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut random = self.random(number);
        let count = if random.one_in(2) { 1 } else { 1 + random.below(6) };
        let (keys, large) = if self.are_large() { (16, 3) } else { (40, 20) };
        let operation = |_| {
            let key = format!("key{:03}", random.below(keys)).into_bytes();
            let len = match random.one_in(large) {
                true if self.are_large() => (40 << 10) + random.below(80 << 10),
                true => random.below(9000),
                false => random.below(500),
            };
            let value = bytes(&mut random, len as usize);
            (key, (!random.one_in(4)).then_some(value))
        };
        (0..count).map(operation).collect()
    }

    /// Batch `number`.
    pub fn batch(self, number: u64) -> tamarack::Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        for (key, value) in self.operations(number) {
            match value {
                Some(value) => batch.put(&key, &value)?,
                None => batch.delete(&key)?,
            }
        }
        batch.put(LAST, &number.to_le_bytes())?;
        Ok(batch)
    }

    /// What the first `number` batches come to.
    pub fn state(self, number: u64) -> State {
        let mut state = State::new();
        for (key, value) in (1..=number).flat_map(|number| self.operations(number)) {
            match value {
                Some(value) => state.insert(key, value),
                None => state.remove(&key),
            };
        }
        if number > 0 {
            state.insert(LAST.to_vec(), number.to_le_bytes().to_vec());
        }
        state
    }
}

/// Bytes that compress well or not at all.
fn bytes(random: &mut Random, len: usize) -> Vec<u8> {
    if random.one_in(2) {
        let first = random.number();
        return (0..len as u64).map(|at| first.wrapping_add(at / 32) as u8).collect();
    }
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| random.number().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}
