//! The row cache: values that are read again and again, in memory, found by a probe of their key instead of a search of
//! memtables and tables and a read of the log.
//!
//! # What a row says, and when it holds
//!
//! A *row* has a key, a value, and a sequence number, `as_of`: whoever read the key at that moment found that value. Nothing
//! removes rows when their keys are written. Instead each write leaves its own sequence number, its *mark*, in the bucket of its key
//! before it is published. A reader first takes the moment that it reads at, and may then have a row with
//!
//! - `as_of` at or before that moment, and
//! - a bucket whose mark is at or before `as_of`.
//!
//! For every write up to the reader's moment was published when the reader took it, so its mark is there and seen; as no mark is behind
//! `as_of`, no version of the key lies between `as_of` and that moment, and what was the newest then is the newest still (I-15).
//! Flushes, compactions and collections change where versions are, not which there are, so they have nothing to tell;
//! readers of snapshots are served by the same rule, and so are the many keys of one moment.
//!
//! A mark covers every key of its bucket, so a write makes rows of other keys useless, too; there are a few buckets for each row that
//! fits, so that these are few. A useless row is replaced when its key is read again.
//!
//! Whoever has written a key whose row was asked for more often than it was made anew makes it anew, once the write is published, with what it wrote
//! and its own sequence number as `as_of`. That is what a reader of that moment would do, so the rule holds: another write, before it or behind it in the order of
//! operations, has another number, and if that is greater, so is its mark. Of what is read and written in turn, reads find rows. Where there is
//! room for all that is read, it is left to the next read, and writes are spared.
//!
//! # Which values become rows
//!
//! All, until as much has been kept as fits. Then those whose key was asked for a short while before: a small table remembers what was
//! asked for and not there, so that reading everything once, or at random, displaces nothing and costs little. So it is from the
//! beginning where memory is scarce (`base::scarcity`): a value that was just read lies in the system's cache as well, and two copies of what nobody
//! asks for again are at the expense of one that somebody does. Beyond that the cache decides.
//!
//! Keys that are equal may differ in their bytes in some orders; a write of one spelling would leave its mark in another's bucket. Such cubes
//! have no rows.

mod buckets;
#[cfg(all(test, loom))]
mod loom_tests;
mod row;
mod table;

use self::buckets::{BUCKET_BYTES, Buckets};
use self::row::Row;
use self::table::RowTable;
use super::pinned::PinnedValue;
use super::stats::CacheStats;
use crate::base::ids::Sequence;
use crate::base::keys::{KeyOrder, hash_user_key};
use crate::base::pointer::ValuePointer;
use crate::base::prefetch::prefetch;
use crate::base::scarcity::Scarcity;
use crate::base::shared_value::{HEAD_BYTES, SharedValue};
use crate::base::sync::{Arc, AtomicU32, AtomicU64, Ordering, Zeros, zeros};

/// Bytes of a typical row, from which the cache guesses how many it will hold.
const TYPICAL_ROW_BYTES: u64 = 1 << 10;
/// Of the memory this part is for buckets, each of which has places for three keys: of values as large as typical rows as many as there are bytes for sixteen
/// times over.
const PART_OF_BUCKETS: u64 = 3;
/// For each typical row one key that was asked for is remembered, but no more than so many. Under shuttle and loom an atomic is costly to make.
const ASKED_MAX: u64 = if cfg!(any(shuttle, loom)) { 4 } else { 1 << 24 };
/// A larger row is not kept: copying it takes longer than asking the kernel for it, and it would displace many.
const ROW_BYTES_MAX: u64 = 64 << 10;
/// Nor is one that takes more than this part of the cache.
const PART_OF_CACHE_MAX: u64 = 64;
/// More than the processor can fetch at a time.
const PREFETCHED_MAX: usize = 16;

/// The rows of one cube.
#[derive(Debug)]
pub struct Rows {
    rows: RowTable,
    /// Writes, and where values lie.
    buckets: Buckets,
    /// For each of some buckets a part of the hash of the last key that was asked for, and not there.
    asked: Zeros<AtomicU32>,
    row_bytes_max: usize,
    scarcity: Arc<Scarcity>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// A key that has no row that may be served, for [`keep`](Rows::keep).
#[derive(Debug, Clone, Copy)]
pub struct Missing {
    hash: u64,
    /// It has one for other moments.
    has_row: bool,
    place: Option<ValuePointer>,
}

impl Missing {
    /// Where at the moment that was asked for the log had its value, if that is known. May be the place of another key, and its segment may be gone.
    pub fn place(self) -> Option<ValuePointer> {
        self.place
    }
}

impl Rows {
    /// Rows of keys in `order` that take about `bytes` of memory, all told, and are read by so many threads; none with 0. `scarcity` tells what
    /// there is beside them. All that is written will have a number behind `begun`.
    pub fn new(
        bytes: u64,
        order: &KeyOrder,
        begun: Sequence,
        scarcity: Arc<Scarcity>,
        threads: usize,
    ) -> Self {
        let bytes = if order.comparator().equal_means_identical() { bytes } else { 0 };
        let asked = bytes.div_ceil(TYPICAL_ROW_BYTES).min(ASKED_MAX);
        let asked = if asked > 0 { asked.next_power_of_two() } else { 0 };
        let buckets = Buckets::new((bytes / PART_OF_BUCKETS).max(asked.min(1) * BUCKET_BYTES), begun);
        let bookkeeping = buckets.bytes() + asked * size_of::<AtomicU32>() as u64;
        let row_bytes_max = ROW_BYTES_MAX.min(bytes / PART_OF_CACHE_MAX);
        Self {
            rows: RowTable::new(
                bytes.saturating_sub(bookkeeping),
                Row::memory_bytes_of(row_bytes_max),
                threads,
            ),
            buckets,
            asked: zeros(asked as usize),
            row_bytes_max: row_bytes_max as usize,
            scarcity,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Notes that `key` is written by operation `sequence`, which is not published yet, and that its value is in the log at `place`, if it is.
    #[inline]
    pub fn note_write(&self, key: &[u8], sequence: Sequence, place: Option<ValuePointer>) {
        if !self.are_off() {
            self.buckets.note_write(hash_user_key(key), sequence, place);
        }
    }

    /// Has the processor fetch what writing `keys` will mark.
    #[inline]
    pub fn prefetch_marks<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        if !self.are_off() {
            keys.take(PREFETCHED_MAX).for_each(|key| self.buckets.prefetch(hash_user_key(key)));
        }
    }

    /// Has the processor fetch what [`get`](Self::get) looks at first.
    #[inline]
    pub fn prefetch(&self, key: &[u8]) {
        if !self.are_off() {
            let hash = hash_user_key(key);
            self.buckets.prefetch(hash);
            self.rows.prefetch(hash);
        }
    }

    /// The value of `key` at `moment`, if there is a row that says so. `moment` was taken before.
    pub fn get(&self, key: &[u8], moment: Sequence) -> Result<SharedValue, Missing> {
        if self.are_off() {
            return Err(Missing { hash: 0, has_row: false, place: None });
        }
        let hash = hash_user_key(key);
        // On its way while the row is looked for.
        self.buckets.prefetch(hash);
        let row = self.rows.get(hash, key);
        let has_row = row.is_some();
        if let Some(row) = row {
            let as_of = row.as_of();
            if as_of <= moment && self.buckets.last_write(hash) <= as_of {
                self.hits.fetch_add(1, Ordering::Relaxed);
                return Ok(SharedValue::new(row.into_bytes(), HEAD_BYTES + key.len()));
            }
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        // Whoever keeps what is read then will ask.
        prefetch(self.asked_last(hash));
        Err(Missing { hash, has_row, place: self.buckets.place(hash, moment) })
    }

    /// Notes that the newest version of the key that was found missing had its value in the log at `place` at the moment `as_of`.
    pub fn note_place(&self, missing: Missing, as_of: Sequence, place: ValuePointer) {
        if !self.are_off() {
            self.buckets.note_place(missing.hash, as_of, place);
        }
    }

    /// Has a row say that the newest version of `key`, which was found missing, had `value` at the moment `as_of`, if that is
    /// worth it.
    pub fn keep(&self, missing: Missing, key: &[u8], value: &[u8], as_of: Sequence) {
        if self.is_worth_it(missing, key, value, as_of) {
            let row = SharedValue::copy(&Row::head(key, as_of), key, value);
            self.rows.insert(missing.hash, Row::new(row.into_bytes()));
        }
    }

    /// The same for a value that was not shown to anybody yet: it lies in the row then.
    pub fn keep_pinned(&self, missing: Missing, key: &[u8], value: &mut PinnedValue, as_of: Sequence) {
        if self.is_worth_it(missing, key, value, as_of) {
            let value = value.in_memory_of_its_own(key);
            *value.head_mut() = Row::head(key, as_of);
            self.rows.insert(missing.hash, Row::new(Arc::clone(value.bytes())));
        }
    }

    /// Has the row of `key`, if it has one that was asked for more often than made anew, say that operation `sequence` wrote `value`. That is published.
    pub fn renew(&self, key: &[u8], value: &[u8], sequence: Sequence) {
        let hash = hash_user_key(key);
        if key.len() + value.len() <= self.row_bytes_max && self.buckets.last_write(hash) <= sequence {
            self.rows.renew(hash, key, sequence, || {
                Row::new(SharedValue::copy(&Row::head(key, sequence), key, value).into_bytes())
            });
        }
    }

    /// Whether there may be rows that are worth [renewing](Self::renew): where there is room for all, the next read makes one at little cost.
    #[inline]
    pub fn are_worth_renewing(&self) -> bool {
        !self.are_off() && !self.has_room_for_all()
    }

    fn is_worth_it(&self, missing: Missing, key: &[u8], value: &[u8], as_of: Sequence) -> bool {
        let Missing { hash, has_row, .. } = missing;
        !self.are_off()
            && key.len() + value.len() <= self.row_bytes_max
            && (has_row || self.has_room_for_all() || self.was_asked_for(hash))
            && self.buckets.last_write(hash) <= as_of
    }

    fn has_room_for_all(&self) -> bool {
        !self.rows.was_full() && !self.scarcity.is_high()
    }

    /// What it has done so far.
    pub fn stats(&self) -> CacheStats {
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            bytes: self.rows.bytes(),
        }
    }

    fn are_off(&self) -> bool {
        self.buckets.are_none()
    }

    /// Where it is noted which key was asked for last, of those that this hash may stand for.
    fn asked_last(&self, hash: u64) -> &AtomicU32 {
        &self.asked[hash as usize & (self.asked.len() - 1)]
    }

    /// Whether a key of this hash was asked for a while ago; it was now.
    fn was_asked_for(&self, hash: u64) -> bool {
        let (last, this) = (self.asked_last(hash), (hash >> 32) as u32 | 1);
        let was_it = last.load(Ordering::Relaxed) == this;
        if !was_it {
            last.store(this, Ordering::Relaxed);
        }
        was_it
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::comparator::{Bytewise, Descending};

    fn of(bytes: u64) -> Rows {
        Rows::new(bytes, &KeyOrder::new(Arc::new(Bytewise)), Sequence(0), Arc::default(), 2)
    }

    /// Reads `key` at `moment`, and gives `value` to be kept if there is none.
    fn read(rows: &Rows, key: &[u8], moment: u64, value: &[u8]) -> Option<Vec<u8>> {
        match rows.get(key, Sequence(moment)) {
            Ok(found) => Some(found.to_vec()),
            Err(missing) => {
                rows.keep(missing, key, value, Sequence(moment));
                None
            }
        }
    }

    #[test]
    fn a_value_that_is_asked_for_again_is_kept() {
        let rows = of(1 << 20);
        assert_eq!(read(&rows, b"key", 7, b"value"), None);
        assert_eq!(read(&rows, b"key", 7, b"").as_deref(), Some(&b"value"[..]), "there is room");
        let stats = rows.stats();
        assert_eq!((stats.hits, stats.misses), (1, 1));
        let row = Row::new(Arc::from([0; HEAD_BYTES + 3 + 5])).memory_bytes();
        assert_eq!(stats.bytes, row);
        let mut keys = 0_u32..1_000_000;
        while !rows.rows.was_full() {
            let key = keys.next().expect("there is an end to it").to_le_bytes();
            assert_eq!(read(&rows, &key, 7, &[1; 1000]), None);
        }
        assert_eq!(read(&rows, b"other", 7, b"value"), None);
        assert_eq!(read(&rows, b"other", 7, b"value"), None, "one read is not enough any more");
        assert_eq!(read(&rows, b"other", 7, b"").as_deref(), Some(&b"value"[..]));
    }

    #[test]
    fn where_memory_is_scarce_one_read_is_not_enough() {
        let rows = of(1 << 20);
        let wait = |found| (0..10_000).for_each(|_| rows.scarcity.note(found));
        rows.scarcity.note(true);
        wait(false);
        assert_eq!(read(&rows, b"key", 7, b"value"), None);
        assert_eq!(read(&rows, b"key", 7, b"value"), None);
        assert_eq!(read(&rows, b"key", 7, b"").as_deref(), Some(&b"value"[..]));
        wait(true);
        assert_eq!(read(&rows, b"other", 7, b"value"), None);
        assert_eq!(read(&rows, b"other", 7, b"").as_deref(), Some(&b"value"[..]), "there is room again");
    }

    #[test]
    fn a_row_is_served_to_no_earlier_moment_and_to_none_behind_a_write() {
        let rows = of(1 << 20);
        assert_eq!(read(&rows, b"key", 7, b"old"), None);
        assert_eq!(rows.get(b"key", Sequence(6)).ok().as_deref(), None, "it may be newer");
        assert_eq!(rows.get(b"key", Sequence(9)).ok().as_deref(), Some(&b"old"[..]));
        rows.note_write(b"key", Sequence(10), None);
        assert_eq!(rows.get(b"key", Sequence(10)).ok().as_deref(), None, "it is outdated");
        assert_eq!(read(&rows, b"key", 9, b"old"), None, "a write is under way");
        assert_eq!(read(&rows, b"key", 10, b"new"), None);
        assert_eq!(read(&rows, b"key", 11, b"").as_deref(), Some(&b"new"[..]), "it is replaced at once");
    }

    #[test]
    fn a_write_makes_the_row_anew_of_what_is_asked_for() {
        let rows = of(1 << 20);
        let write = |sequence, value: &[u8]| {
            rows.note_write(b"key", Sequence(sequence), None);
            rows.renew(b"key", value, Sequence(sequence));
        };
        let get = |moment| rows.get(b"key", Sequence(moment)).ok().map(|value| value.to_vec());
        write(6, b"first");
        assert_eq!(read(&rows, b"key", 6, b"first"), None, "it had none");
        assert!(!rows.are_worth_renewing(), "there is room for all");
        rows.scarcity.note(true);
        (0..1000).for_each(|_| rows.scarcity.note(false));
        assert!(rows.are_worth_renewing() && !of(1 << 20).are_worth_renewing());
        write(7, b"second");
        assert_eq!(get(7), None, "nobody has asked for it since it came");
        assert_eq!(read(&rows, b"key", 7, b"second"), None);
        assert_eq!(get(8).as_deref(), Some(&b"second"[..]), "it had one for other moments");
        write(9, b"third");
        assert_eq!((get(8), get(9).as_deref()), (None, Some(&b"third"[..])));
        // Of two writes the later one may get there first.
        (10..=11).for_each(|sequence| rows.note_write(b"key", Sequence(sequence), None));
        rows.renew(b"key", b"fifth", Sequence(11));
        rows.renew(b"key", b"fourth", Sequence(10));
        assert_eq!((get(10), get(11).as_deref()), (None, Some(&b"fifth"[..])));
        write(12, b"sixth");
        rows.note_write(b"key", Sequence(13), None);
        assert_eq!((get(12), get(13)), (None, None), "another write is behind it");
        rows.renew(b"key", b"late", Sequence(12));
        assert_eq!(get(13), None);
        let large = vec![1; rows.row_bytes_max];
        write(14, &large);
        assert_eq!(get(14), None);
    }

    #[test]
    fn what_is_large_is_not_kept_nor_more_than_fits() {
        let rows = of(1 << 20);
        let large = vec![1; rows.row_bytes_max + 1];
        for _ in 0..3 {
            assert_eq!(read(&rows, b"large", 1, &large), None);
        }
        for number in 0..4000_u32 {
            (0..2).for_each(|_| drop(read(&rows, &number.to_le_bytes(), 1, &[2; 1000])));
        }
        let bytes = rows.stats().bytes;
        assert!((1 << 19..1 << 20).contains(&bytes), "{bytes}");
    }

    #[test]
    fn without_memory_or_where_keys_have_other_spellings_there_are_none() {
        let all_there_is = of(u64::MAX);
        assert!((0..3).any(|_| read(&all_there_is, b"key", 1, b"value").is_some()));
        let descending =
            Rows::new(1 << 20, &KeyOrder::new(Arc::new(Descending)), Sequence(0), Arc::default(), 2);
        for rows in [of(0), descending] {
            for _ in 0..4 {
                rows.note_write(b"key", Sequence(1), None);
                assert_eq!(read(&rows, b"key", 1, b"value"), None);
            }
            assert_eq!(rows.stats(), CacheStats::default());
        }
    }

    proptest! {
        /// Few keys, so that they share buckets, and reads at moments of the past and the present. Writes make rows anew, at once or
        /// behind others.
        #[test]
        fn rows_say_what_a_model_says(
            steps in proptest::collection::vec((0_u8..30, 0_u8..3, 0_u64..6), 1..400),
        ) {
            let rows = of(6 << 10);
            let mut versions: BTreeMap<(u8, std::cmp::Reverse<u64>), Vec<u8>> = BTreeMap::new();
            let (mut now, mut late) = (0, Vec::new());
            for (key, action, back) in steps {
                if action == 0 {
                    now += 1;
                    rows.note_write(&[key], Sequence(now), None);
                    versions.insert((key, std::cmp::Reverse(now)), now.to_le_bytes().to_vec());
                    late.push((key, now));
                    if back % 2 == 0 {
                        for (key, sequence) in late.drain(..).rev() {
                            rows.renew(&[key], &sequence.to_le_bytes(), Sequence(sequence));
                        }
                    }
                    continue;
                }
                let moment = if action == 1 { now } else { now.saturating_sub(back) };
                let newest = versions.range((key, std::cmp::Reverse(moment))..).next();
                let expected = newest.filter(|((found, _), _)| *found == key).map(|(_, value)| value);
                match (rows.get(&[key], Sequence(moment)), expected) {
                    (Ok(value), expected) => prop_assert_eq!(Some(&*value), expected.map(|value| &**value)),
                    (Err(missing), Some(value)) => rows.keep(missing, &[key], value, Sequence(moment)),
                    (Err(_), None) => {}
                }
            }
        }
    }
}
