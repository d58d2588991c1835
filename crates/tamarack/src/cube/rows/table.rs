//! Where rows lie, and which of them go.
//!
//! # One wait for memory
//!
//! A lookup costs what it waits for: lines of memory, each a tenth of a microsecond away. So a row is found in its *set*, two lines side by
//! side, which the hash of its key leads to. The set has six places, in each a row and half of the hash; whoever looks compares the hashes, and
//! waits for nothing but the set and the row itself. The sets of large tables lie in large pages, so that their addresses need not be looked up in memory.
//! (Caches that lead from a map to the entries of a list have four waits in a row.)
//!
//! # Shards
//!
//! Sets are spread over shards, each with a lock, and with its part of the memory. Readers share the lock for as long as it takes to look and to
//! clone a row. Neither sets nor rows are
//! allocated or freed while a lock is held.
//!
//! # Growth
//!
//! A shard begins with few sets. It gets twice as many whenever there are more than two rows for each, and half whenever there are eight for each row.
//! Which set a row comes into is in the half of the hash beside it, so no row is looked at. With so few rows hardly a set is full: one row in two hundred, the
//! least used of its set, has to go though there is memory for it.
//!
//! # Which rows go
//!
//! Each row has a number of uses, which a lookup increments, up to three. When rows and sets of a shard take more than they may, a hand goes round over the sets,
//! takes a use from each row that it passes, and takes out those that have none left. New ones have one, so that each is passed by once before it goes.
//! A write that makes a row anew takes one as well: what is written more often than it is read is left as it is, and goes.
//! Where nearly all have uses left, the hand is content with fewer the further it has come: nobody waits for it to go round.

use std::mem;

use super::row::Row;
use crate::base::ids::Sequence;
use crate::base::large_pages::prefer_large_pages;
use crate::base::prefetch::prefetch;
use crate::base::sync::{AtomicBool, Ordering, PlainAtomicU8, RwLock};

/// Rows in a set.
const WAYS: usize = 6;
/// A row that was used so often is kept as well as any.
const USES_MAX: u8 = 3;
/// One that comes counts as used so often.
const USES_OF_NEW: u8 = 1;
/// The fewest sets that a shard has.
const SETS_MIN: usize = 4;
/// There are more sets once there are more rows than this for each ...
const ROWS_PER_SET: usize = 2;
/// ... unless there is no memory for more, or not yet: with so many rows for each there is hardly a place left.
const ROWS_CROWDED: usize = 4;
/// There are fewer once there are so many for each row.
const SETS_PER_ROW: usize = 8;
/// So many sets the hand passes for one row that comes, before it takes rows with one more use.
const PASSED_MAX: usize = 64;
/// Of the memory there is, sets take at most this part: of tiny rows there are more for each set.
const PART_OF_SETS: u64 = 3;
/// With so many shards for each thread that can run, threads rarely meet.
const SHARDS_PER_THREAD: usize = 4;
/// A shard has memory for so many of the largest rows at least.
const LARGEST_ROWS_MIN: u64 = 8;

/// The rows of one cube.
#[derive(Debug)]
pub struct RowTable {
    /// A power of two of them.
    shards: Box<[LockedShard]>,
    /// Whether a row had to go for want of memory.
    was_full: AtomicBool,
}

/// Alone on its lines: whoever locks one shard does not take the lock of another from a processor.
///
/// Rank of the lock: innermost.
#[derive(Debug)]
#[repr(align(128))]
struct LockedShard(RwLock<Shard>);

#[derive(Debug)]
struct Shard {
    /// A power of two of them.
    sets: Vec<Set>,
    rows: usize,
    /// Bytes of its rows.
    row_bytes: u64,
    /// What rows and sets may take.
    bytes_max: u64,
    /// The next set that the hand comes to.
    hand: usize,
    /// A thread makes another number of sets for it.
    is_changing: bool,
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
    /// One that takes about `bytes`, for rows that take `row_bytes_max` at most, and that so many threads use.
    pub fn new(bytes: u64, row_bytes_max: u64, threads: usize) -> Self {
        let fit = bytes / (LARGEST_ROWS_MIN * row_bytes_max.max(1));
        let wanted = threads.saturating_mul(SHARDS_PER_THREAD) as u64;
        let shards = wanted.min(fit).max(1).ilog2();
        let shard = || LockedShard(RwLock::new(Shard::new(bytes >> shards)));
        Self {
            shards: std::iter::repeat_with(shard).take(1 << shards).collect(),
            was_full: AtomicBool::new(false),
        }
    }

    /// The row of `key`, whose hash is `hash`.
    #[inline]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<Row> {
        self.shard(hash).read().get(set_hash(hash), key)
    }

    /// Has the processor fetch the set of keys of this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let shard = self.shard(hash).read();
        let set = &shard.sets[shard.set(set_hash(hash))];
        prefetch(&raw const *set);
        prefetch((&raw const *set).cast::<u8>().wrapping_add(size_of::<Set>() / 2));
    }

    /// Puts a row of `key` there, instead of the one that is there.
    pub fn insert(&self, hash: u64, row: Row) {
        self.change(hash, |shard, gone| shard.insert(set_hash(hash), row, gone));
    }

    /// Puts a newer row of `key` there, which `make` makes, if there is an older one that was used beyond how often one counts as used that comes; it
    /// takes one use. The `as_of` of the newer one is given.
    pub fn renew(&self, hash: u64, key: &[u8], as_of: Sequence, make: impl FnOnce() -> Row) {
        if self.shard(hash).read().used_before(set_hash(hash), key, as_of).is_some() {
            let row = make();
            self.change(hash, |shard, gone| shard.renew(set_hash(hash), row, gone));
        }
    }

    /// Has a shard changed, which adds what has to go and tells whether there was memory for it.
    fn change(&self, hash: u64, change: impl FnOnce(&mut Shard, &mut Vec<Row>) -> bool) {
        let (shard, mut gone) = (self.shard(hash), Vec::new());
        let mut locked = shard.write();
        let has_room = change(&mut locked, &mut gone);
        let wanted = locked.begin_to_change();
        drop(locked);
        if !has_room && !self.was_full() {
            self.was_full.store(true, Ordering::Relaxed);
        }
        if let Some(wanted) = wanted {
            let mut sets = sets(wanted);
            shard.write().change_sets(&mut sets, &mut gone);
        }
    }

    /// Whether a row had to go for want of memory.
    pub fn was_full(&self) -> bool {
        self.was_full.load(Ordering::Relaxed)
    }

    /// Bytes of all rows.
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.read().row_bytes).sum()
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        &self.shards[(hash >> 32) as usize & (self.shards.len() - 1)].0
    }
}

/// The half of a hash that leads to a set, and stays in it.
fn set_hash(hash: u64) -> u32 {
    hash as u32
}

impl Shard {
    fn new(bytes_max: u64) -> Self {
        Self { sets: sets(SETS_MIN), rows: 0, row_bytes: 0, bytes_max, hand: 0, is_changing: false }
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

    /// Where there is a row of `key` from before `as_of` that was used more often than one counts as used that comes.
    fn used_before(&self, hash: u32, key: &[u8], as_of: Sequence) -> Option<(usize, usize)> {
        let at = self.set(hash);
        let set = &self.sets[at];
        let way = set.find(hash, key)?;
        let is_used = set.uses[way].load(Ordering::Relaxed) > USES_OF_NEW;
        let is_before = set.rows[way].as_ref().is_some_and(|row| row.as_of() < as_of);
        (is_used && is_before).then_some((at, way))
    }

    /// Puts a row in the place of an older one of its key that [was used](Self::used_before), if there is one. As [`insert`](Self::insert).
    fn renew(&mut self, hash: u32, row: Row, gone: &mut Vec<Row>) -> bool {
        match self.used_before(hash, row.key(), row.as_of()) {
            Some((at, way)) => {
                let uses = *self.sets[at].uses[way].get_mut() - 1;
                self.put(at, way, hash, row, uses, gone);
            }
            None => gone.push(row),
        }
        self.make_room(gone)
    }

    /// What has to go is added to `gone`. Whether there was memory for it.
    fn insert(&mut self, hash: u32, row: Row, gone: &mut Vec<Row>) -> bool {
        let at = self.set(hash);
        let set = &mut self.sets[at];
        let (way, uses) = match set.find(hash, row.key()) {
            Some(way) => (way, (*set.uses[way].get_mut()).max(USES_OF_NEW)),
            None => (set.least_used(), USES_OF_NEW),
        };
        self.put(at, way, hash, row, uses, gone);
        // With so many, sets are full for want of memory for more.
        let is_crowded = self.is_crowded() && !self.may_grow();
        self.make_room(gone) && !is_crowded
    }

    fn put(&mut self, at: usize, way: usize, hash: u32, row: Row, uses: u8, gone: &mut Vec<Row>) {
        self.rows += 1;
        self.row_bytes += row.memory_bytes();
        let displaced = self.sets[at].put(way, hash, row, uses);
        self.note_gone(displaced, gone);
    }

    fn note_gone(&mut self, row: Option<Row>, gone: &mut Vec<Row>) {
        let Some(row) = row else { return };
        self.rows -= 1;
        self.row_bytes -= row.memory_bytes();
        gone.push(row);
    }

    fn is_too_large(&self) -> bool {
        self.rows > 0 && self.row_bytes + size_of_val(&*self.sets) as u64 > self.bytes_max
    }

    /// Has rows go until the others fit. Whether they did before.
    fn make_room(&mut self, gone: &mut Vec<Row>) -> bool {
        let mut passed = 0;
        while self.is_too_large() {
            let uses = (passed / PASSED_MAX).min(usize::from(USES_MAX));
            self.turn_hand(uses as u8, gone);
            passed += 1;
        }
        passed == 0
    }

    /// Takes the rows of the next set that have at most `uses_max` uses left, and a use from the others.
    fn turn_hand(&mut self, uses_max: u8, gone: &mut Vec<Row>) {
        let at = self.hand;
        self.hand = (at + 1) & (self.sets.len() - 1);
        for way in 0..WAYS {
            let set = &mut self.sets[at];
            let uses = set.uses[way].get_mut();
            if *uses > uses_max {
                *uses -= 1;
            } else {
                let row = set.rows[way].take();
                self.note_gone(row, gone);
            }
        }
    }

    fn is_crowded(&self) -> bool {
        self.rows > self.sets.len() * ROWS_CROWDED
    }

    fn may_grow(&self) -> bool {
        2 * size_of_val(&*self.sets) as u64 <= self.bytes_max / PART_OF_SETS
    }

    /// How many sets it should have.
    fn sets_wanted(&self) -> usize {
        let sets = self.sets.len();
        if self.rows > sets * ROWS_PER_SET && self.may_grow() {
            sets * 2
        } else if sets > SETS_MIN && self.rows * SETS_PER_ROW < sets {
            sets / 2
        } else {
            sets
        }
    }

    /// How many sets it should have instead of those that it has, if nobody makes them yet: the caller does, and then [changes](Self::change_sets) it.
    /// Should whoever makes them take long, and too many rows come meanwhile, others do, too.
    fn begin_to_change(&mut self) -> Option<usize> {
        let wanted = self.sets_wanted();
        if wanted == self.sets.len() || self.is_changing && !self.is_crowded() {
            return None;
        }
        self.is_changing = true;
        Some(wanted)
    }

    /// Moves what it has to `sets`, if it still wants so many, and leaves there those that it had.
    fn change_sets(&mut self, sets: &mut Vec<Set>, gone: &mut Vec<Row>) {
        self.is_changing = false;
        // Another thread may have done so before.
        if sets.len() == self.sets.len() || sets.len() != self.sets_wanted() {
            return;
        }
        mem::swap(&mut self.sets, sets);
        self.hand &= self.sets.len() - 1;
        (self.rows, self.row_bytes) = (0, 0);
        for set in sets {
            for way in 0..WAYS {
                let (hash, uses) = (set.hashes[way], *set.uses[way].get_mut());
                let Some(row) = set.rows[way].take() else { continue };
                let at = self.set(hash);
                let way = self.sets[at].least_used();
                self.put(at, way, hash, row, uses, gone);
            }
        }
        self.make_room(gone);
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
mod tests;
