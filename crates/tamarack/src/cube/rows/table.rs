//! Where rows lie, and which of them go.
//!
//! # One wait for memory
//!
//! A lookup costs what it waits for: lines of memory, each a tenth of a microsecond away. So a row is found in its *set*, two lines side by
//! side, which the hash of its key leads to. The set has six places, in each a row and half of the hash; whoever looks compares the hashes, and
//! waits for nothing but the set and the row itself. Sets lie in large pages, so that their addresses need not be looked up in memory.
//! (Caches that lead from a map to the entries of a list have four waits in a row, and took two thirds of the time of a read.)
//!
//! # Shards
//!
//! Sets are spread over shards, each with a lock, and with its part of the memory. Readers share the lock for as long as it takes to look and to
//! clone a row. Nothing is freed while a lock is held.
//!
//! # Growth
//!
//! A shard begins with few sets and doubles them whenever there are more than two rows for each. Which of two sets a row comes into is
//! in the half of the hash beside it, so no row is looked at. With so few rows hardly a set is full: one row in two hundred, the least used
//! of its set, has to go though there is memory for it.
//!
//! # Which rows go
//!
//! Each row has a number of uses, which a lookup increments, up to three. When a shard has more bytes than it may have, a hand goes round over its sets, takes a
//! use from each row that it passes, and takes out those that have none left. New ones have one, so that each is passed by once before it goes.

use std::mem;

use super::row::Row;
use crate::base::large_pages::prefer_large_pages;
use crate::base::sync::{Ordering, PlainAtomicU8, RwLock};

/// Rows in a set.
const WAYS: usize = 6;
/// A row that was used so often is kept as well as any.
const USES_MAX: u8 = 3;
/// What a shard begins with.
const SETS_MIN: usize = 16;
/// There are more sets once there are more rows than this for each.
const ROWS_PER_SET: usize = 2;
/// With so many shards for each thread that can run, threads rarely meet.
const SHARDS_PER_THREAD: usize = 4;
/// A shard has memory for so many of the largest rows at least.
const LARGEST_ROWS_MIN: u64 = 8;

/// The rows of one cube.
#[derive(Debug)]
pub struct RowTable {
    /// A power of two of them.
    shards: Box<[RwLock<Shard>]>,
}

#[derive(Debug)]
struct Shard {
    /// A power of two of them.
    sets: Vec<Set>,
    rows: usize,
    bytes: u64,
    bytes_max: u64,
    /// The next set that the hand comes to.
    hand: usize,
}

/// Two lines of the processor's cache.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Set {
    /// Of the rows, where there are any.
    hashes: [u32; WAYS],
    /// Written by readers as well, who may miss each other's; nothing else depends on it.
    uses: [PlainAtomicU8; WAYS],
    rows: [Option<Row>; WAYS],
}

/// An ordinary build's sets are as large as they should be.
#[cfg(all(not(any(shuttle, loom)), target_pointer_width = "64"))]
const _: () = assert!(size_of::<Set>() == 128);

impl RowTable {
    /// One for about `bytes` of rows, the largest of `row_bytes_max`, that so many threads use.
    pub fn new(bytes: u64, row_bytes_max: u64, threads: usize) -> Self {
        let fit = bytes / (LARGEST_ROWS_MIN * row_bytes_max.max(1));
        let wanted = threads.saturating_mul(SHARDS_PER_THREAD) as u64;
        let shards = wanted.min(fit).max(1).ilog2();
        let shard = || RwLock::new(Shard::new(bytes >> shards));
        Self { shards: std::iter::repeat_with(shard).take(1 << shards).collect() }
    }

    /// The row of `key`, whose hash is `hash`.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<Row> {
        self.shard(hash).read().get(set_hash(hash), key)
    }

    /// Puts a row of `key` there, instead of the one that is there.
    pub fn insert(&self, hash: u64, row: Row) {
        let mut gone = Vec::new();
        self.shard(hash).write().insert(set_hash(hash), row, &mut gone);
        drop(gone);
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.read().bytes).sum()
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)]
    }
}

/// The half of a hash that leads to a set, and stays in it.
fn set_hash(hash: u64) -> u32 {
    hash as u32
}

impl Shard {
    fn new(bytes_max: u64) -> Self {
        Self { sets: sets(SETS_MIN), rows: 0, bytes: 0, bytes_max, hand: 0 }
    }

    fn set(&self, hash: u32) -> usize {
        hash as usize & (self.sets.len() - 1)
    }

    #[inline]
    fn get(&self, hash: u32, key: &[u8]) -> Option<Row> {
        let set = &self.sets[self.set(hash)];
        let way = set.find(hash, key)?;
        let uses = set.uses[way].load(Ordering::Relaxed);
        if uses < USES_MAX {
            set.uses[way].store(uses + 1, Ordering::Relaxed);
        }
        set.rows[way].clone()
    }

    /// What has to go is added to `gone`.
    fn insert(&mut self, hash: u32, row: Row, gone: &mut Vec<Row>) {
        if self.rows > self.sets.len() * ROWS_PER_SET {
            self.grow();
        }
        let at = self.set(hash);
        let set = &mut self.sets[at];
        let way = set.find(hash, row.key()).unwrap_or_else(|| set.least_used());
        self.rows += 1;
        self.bytes += row.memory_bytes();
        let displaced = set.put(way, hash, row, 1);
        self.note_gone(displaced, gone);
        while self.bytes > self.bytes_max {
            self.turn_hand(gone);
        }
    }

    fn note_gone(&mut self, row: Option<Row>, gone: &mut Vec<Row>) {
        let Some(row) = row else { return };
        self.rows -= 1;
        self.bytes -= row.memory_bytes();
        gone.push(row);
    }

    fn turn_hand(&mut self, gone: &mut Vec<Row>) {
        let at = self.hand;
        self.hand = (at + 1) & (self.sets.len() - 1);
        for way in 0..WAYS {
            let set = &mut self.sets[at];
            let uses = set.uses[way].get_mut();
            if *uses > 0 {
                *uses -= 1;
            } else {
                let row = set.rows[way].take();
                self.note_gone(row, gone);
            }
        }
    }

    fn grow(&mut self) {
        let fewer = mem::take(&mut self.sets);
        self.sets = sets(2 * fewer.len());
        for mut set in fewer {
            for way in 0..WAYS {
                let (hash, uses) = (set.hashes[way], *set.uses[way].get_mut());
                let Some(row) = set.rows[way].take() else { continue };
                let at = self.set(hash);
                let set = &mut self.sets[at];
                // Two sets have place for what was in one.
                let empty = set.least_used();
                let displaced = set.put(empty, hash, row, uses);
                debug_assert!(displaced.is_none());
            }
        }
    }
}

impl Set {
    /// Where the row of `key` is.
    #[inline]
    fn find(&self, hash: u32, key: &[u8]) -> Option<usize> {
        let is_there = |row: &Row| {
            row.prefetch();
            row.key() == key
        };
        (0..WAYS).find(|&way| self.hashes[way] == hash && self.rows[way].as_ref().is_some_and(is_there))
    }

    /// A place without a row, or else the one of the row that was used least.
    fn least_used(&self) -> usize {
        let uses = |way: &usize| self.rows[*way].as_ref().map(|_| self.uses[*way].load(Ordering::Relaxed));
        (0..WAYS).min_by_key(uses).expect("a set has places")
    }

    /// Puts a row there, and returns the one that was.
    fn put(&mut self, way: usize, hash: u32, row: Row, uses: u8) -> Option<Row> {
        self.hashes[way] = hash;
        *self.uses[way].get_mut() = uses;
        self.rows[way].replace(row)
    }
}

/// So many empty sets.
fn sets(count: usize) -> Vec<Set> {
    let mut sets = Vec::with_capacity(count);
    prefer_large_pages(sets.as_ptr(), count * size_of::<Set>());
    sets.resize_with(count, Set::default);
    sets
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::ids::Sequence;
    use crate::base::shared_value::SharedValue;

    fn row(key: u64, value: &[u8]) -> Row {
        let key = key.to_le_bytes();
        Row::new(SharedValue::copy(&Row::head(&key, Sequence(1)), &key, value).into_bytes())
    }

    /// A hash as good as those of keys.
    fn hash(key: u64) -> u64 {
        crate::base::keys::hash_user_key(&key.to_le_bytes())
    }

    fn keys_in(table: &RowTable, keys: impl Iterator<Item = u64>) -> Vec<u64> {
        keys.filter(|&key| table.get(hash(key), &key.to_le_bytes()).is_some()).collect()
    }

    /// Every row is where it is looked for, and the sums are right.
    fn check(table: &RowTable) {
        for shard in &table.shards {
            let shard = shard.read();
            assert!(shard.sets.len().is_power_of_two() && shard.bytes <= shard.bytes_max);
            let rows = shard.sets.iter().flat_map(|set| &set.rows).flatten();
            let sums = rows.fold((0, 0), |(rows, bytes), row| (rows + 1, bytes + row.memory_bytes()));
            assert_eq!(sums, (shard.rows, shard.bytes));
            for (at, set) in shard.sets.iter().enumerate() {
                let ways = (0..WAYS).filter(|&way| set.rows[way].is_some());
                assert!(ways.into_iter().all(|way| shard.set(set.hashes[way]) == at));
            }
        }
    }

    #[test]
    fn while_there_is_memory_hardly_a_row_goes() {
        let table = RowTable::new(1 << 30, 1 << 10, 2);
        let many = 100_000;
        for key in 0..many {
            table.insert(hash(key), row(key, b"value"));
            if key.is_power_of_two() {
                check(&table);
            }
        }
        check(&table);
        let there = keys_in(&table, 0..many).len() as u64;
        assert!((many * 995 / 1000..=many).contains(&there), "{there}");
        let bytes = table.bytes();
        (0..many).for_each(|key| table.insert(hash(key), row(key, b"value")));
        check(&table);
        assert!(
            (bytes..bytes * 101 / 100).contains(&table.bytes()),
            "each takes the place of the one before it"
        );
    }

    #[test]
    fn what_is_used_outlives_what_is_not() {
        let table = RowTable::new(1 << 20, 1 << 10, 1);
        let (used, many) = (500, 50_000);
        for key in 0..many {
            table.insert(hash(key), row(key, &[7; 300]));
            if key % 500 == 0 {
                keys_in(&table, 0..used);
            }
        }
        check(&table);
        let there = keys_in(&table, 0..used).len();
        assert!(there > 450, "{there} of {used}");
        let others = keys_in(&table, used..many);
        let newer = others.iter().filter(|&&key| key > many - 4_000).count();
        assert!(others.len() > 1_000 && newer * 10 > others.len() * 8, "{newer} of {}", others.len());
    }

    #[test]
    fn a_full_set_loses_the_one_that_is_used_least() {
        let table = RowTable::new(1 << 20, 1 << 10, 1);
        // The same set for all, whatever their number.
        let full = WAYS as u64;
        let get = |key: u64| table.get(5, &key.to_le_bytes());
        (0..full).for_each(|key| table.insert(5, row(key, b"")));
        assert!((0..full).filter(|&key| key != 2).all(|key| get(key).is_some()));
        table.insert(5, row(full, b""));
        check(&table);
        let there: Vec<_> = (0..=full).filter(|&key| get(key).is_some()).collect();
        assert_eq!(there, [0, 1, 3, 4, 5, 6]);
    }

    #[test]
    fn a_table_without_memory_keeps_nothing() {
        let table = RowTable::new(0, 0, usize::MAX);
        table.insert(7, row(7, b"value"));
        assert_eq!((table.get(7, &7_u64.to_le_bytes()).is_none(), table.bytes()), (true, 0));
    }

    proptest! {
        #[test]
        fn what_is_there_is_what_was_put_there_last(
            steps in proptest::collection::vec((0_u64..300, 0_usize..200, any::<bool>()), 1..600),
            alike in any::<bool>(),
        ) {
            let table = RowTable::new(20 << 10, 300, 1);
            let hash_of = |key: u64| if alike { key % 7 } else { hash(key) };
            let mut model = BTreeMap::new();
            for (key, len, is_read) in steps {
                if is_read {
                    let found = table.get(hash_of(key), &key.to_le_bytes());
                    let put = model.get(&key).map(|&len| row(key, &vec![1; len]).memory_bytes());
                    prop_assert!(found.is_none_or(|row| Some(row.memory_bytes()) == put));
                } else {
                    table.insert(hash_of(key), row(key, &vec![1; len]));
                    model.insert(key, len);
                }
            }
            check(&table);
        }
    }
}
