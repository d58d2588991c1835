//! What is noted of keys without their values: of each bucket of keys the last write, its *mark*, and where the log has the values of a
//! few of them, their *places*.
//!
//! # When a place holds
//!
//! The place of a key says where its newest version has its value, as of the last of the writes that have been noted in the bucket. Each write notes
//! itself there before it is published: it replaces the place of its key, or takes it away. So for a reader whose moment is at or behind the
//! mark the place is that of the newest version it may see: no write up to its moment is missing, for these were published when it took the
//! moment, and none behind it is there (I-16). What a reader has found in the index itself becomes a place unless the mark is behind the
//! reader's moment by then: a write that has not left its mark yet will replace the place, or take it away.
//!
//! Of the key there is but a part of its hash, so a place may be that of another key: the record there tells. And a place does not keep what it leads
//! to: whoever follows one holds its segment, or else looks the key up.
//!
//! # Writes side by side
//!
//! A bucket is one line of memory: the mark, a word of state, and the places. Whoever changes places locks the line by its state. A writer that
//! finds it locked waits for nobody: it notes in the state that the places are to be forgotten, which the other does before it unlocks. Each writer
//! leaves its mark before either, so whoever locks the line afterwards knows of the write. Of two writes of one key the later may come first: a
//! write that finds the mark behind itself leaves no place. Whoever looks for a place locks nothing: it compares the state before and after, and
//! goes without if that changed.

#[cfg(all(test, loom))]
mod loom_tests;

use crate::base::ids::{SegmentId, Sequence};
use crate::base::large_pages::prefer_large_pages;
use crate::base::pointer::ValuePointer;
use crate::base::prefetch::prefetch;
use crate::base::sync::{AtomicU64, Ordering, Zeros, fence, zeros};

/// Words of a bucket, which is a line of the processor's cache.
const WORDS: usize = 8;
/// Places in a bucket.
const WAYS: usize = 3;
/// Which words are what.
const MARK: usize = 0;
const STATE: usize = 1;
const PLACES: usize = 2;
const _: () = assert!(PLACES + 2 * WAYS == WORDS);

/// Bytes of a bucket.
pub const BUCKET_BYTES: u64 = (WORDS * size_of::<u64>()) as u64;
/// There are no more than so many, which is four gigabytes of them. Under shuttle and loom an atomic is costly to make.
const BUCKETS_MAX: u64 = if cfg!(any(shuttle, loom)) { 2 } else { 1 << 26 };

/// Of the state: somebody changes the places,
const LOCKED: u64 = 1;
/// and is to forget them.
const FORGET: u64 = 2;
/// How often they were changed is in the other bits.
const CHANGE: u64 = 4;

/// The buckets of one cube.
#[derive(Debug)]
pub struct Buckets {
    words: Zeros<AtomicU64>,
    /// Words before the first bucket, so that it begins a line.
    first: usize,
    buckets: u64,
    /// Writes up to this one left no mark, and readers of moments before it find no places.
    begun: Sequence,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
struct Bucket<'a> {
    words: &'a [AtomicU64; WORDS],
    hash: u64,
    begun: Sequence,
}

impl Buckets {
    /// As many as `bytes` have room for, of a cube whose last write is `begun`.
    pub fn new(bytes: u64, begun: Sequence) -> Self {
        let buckets = (bytes / BUCKET_BYTES).min(BUCKETS_MAX);
        let words = if buckets == 0 { 0 } else { (buckets + 1) as usize * WORDS };
        let words = zeros::<AtomicU64>(words);
        prefer_large_pages(words.as_ptr(), size_of_val(&*words));
        let first = words.as_ptr().cast::<u8>().align_offset(BUCKET_BYTES as usize) / size_of::<u64>();
        Self { words, first: first.min(WORDS), buckets, begun }
    }

    /// Bytes of memory that they may take.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }

    /// Whether there are none.
    pub fn are_none(&self) -> bool {
        self.buckets == 0
    }

    /// Has the processor fetch the bucket of keys of this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        prefetch(&raw const self.words[self.start(hash)]);
    }

    /// The last write to a key in the bucket of this hash.
    #[inline]
    pub fn last_write(&self, hash: u64) -> Sequence {
        self.bucket(hash).mark()
    }

    /// Notes that the key of this hash is written by operation `sequence`, which is not published yet, and that its value is in the log at
    /// `place`, if it is.
    #[inline]
    pub fn note_write(&self, hash: u64, sequence: Sequence, place: Option<ValuePointer>) {
        let bucket = self.bucket(hash);
        // Whoever sees the operation has acquired what its writer did before it was published, all of this included. The mark comes first: whoever
        // locks the bucket after this write has locked it, or has had it forgotten, finds it.
        bucket.words[MARK].fetch_max(sequence.0, Ordering::Relaxed);
        if let Some(locked) = bucket.lock_or_have_forgotten() {
            // A later write, which may be one of the key, may have been here before.
            bucket.set_place(place.filter(|_| bucket.mark() <= sequence));
            bucket.unlock(locked);
        }
    }

    /// Notes that as of the moment `as_of` the newest version of the key of this hash has its value in the log at `place`.
    pub fn note_place(&self, hash: u64, as_of: Sequence, place: ValuePointer) {
        let bucket = self.bucket(hash);
        if as_of < self.begun || bucket.mark() > as_of {
            return;
        }
        let Some(locked) = bucket.try_lock() else { return };
        // A write that comes now finds the lock.
        if bucket.mark() <= as_of {
            bucket.set_place(Some(place));
        }
        bucket.unlock(locked);
    }

    /// Where at `moment`, which was taken before, the newest version of a key of this hash had its value, if that is known. Of which key is
    /// to be seen there.
    #[inline]
    pub fn place(&self, hash: u64, moment: Sequence) -> Option<ValuePointer> {
        self.bucket(hash).place(moment)
    }

    #[inline]
    fn start(&self, hash: u64) -> usize {
        let bucket = (hash & u64::from(u32::MAX)) * self.buckets / (1 << u32::BITS);
        self.first + bucket as usize * WORDS
    }

    #[inline]
    fn bucket(&self, hash: u64) -> Bucket<'_> {
        let words = self.words[self.start(hash)..].first_chunk().expect("there is room for all");
        Bucket { words, hash, begun: self.begun }
    }
}

impl Bucket<'_> {
    /// What of the hash is beside a place; not zero, as words are where there is none.
    fn tag(self) -> u64 {
        self.hash >> u32::BITS | 1
    }

    fn mark(self) -> Sequence {
        Sequence(self.words[MARK].load(Ordering::Relaxed))
    }

    #[inline]
    fn place(self, moment: Sequence) -> Option<ValuePointer> {
        let state = self.words[STATE].load(Ordering::Acquire);
        if state & LOCKED != 0 || moment < self.begun || self.mark() > moment {
            return None;
        }
        let [whence, what] = self.words[PLACES..]
            .as_chunks::<2>()
            .0
            .iter()
            .map(|words| words.each_ref().map(|word| word.load(Ordering::Relaxed)))
            .find(|[_, what]| what & u64::from(u32::MAX) == self.tag())?;
        // What was read is older than what is read now.
        fence(Ordering::Acquire);
        let unchanged = self.words[STATE].load(Ordering::Relaxed) == state;
        unchanged.then_some(ValuePointer {
            segment: SegmentId((whence >> u32::BITS) as u32),
            offset: whence as u32,
            stored_len: (what >> u32::BITS) as u32,
        })
    }

    /// Puts `place` where that of the key is, or any other; or takes that of the key away. The bucket is locked.
    fn set_place(self, place: Option<ValuePointer>) {
        let (ways, _) = self.words[PLACES..].as_chunks::<2>();
        let of_key =
            |[_, what]: &&[AtomicU64; 2]| what.load(Ordering::Relaxed) & u64::from(u32::MAX) == self.tag();
        let set = |way: &[AtomicU64; 2], words: [u64; 2]| {
            way.iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        };
        let way = ways.iter().find(of_key);
        let Some(place) = place else {
            if let Some(way) = way {
                set(way, [0, 0]);
            }
            return;
        };
        let free = || ways.iter().find(|[_, what]| what.load(Ordering::Relaxed) == 0);
        // Any is as good as another.
        let way = way.or_else(free).unwrap_or(&ways[place.offset as usize / 64 % WAYS]);
        let whence = u64::from(place.segment.0) << u32::BITS | u64::from(place.offset);
        set(way, [whence, u64::from(place.stored_len) << u32::BITS | self.tag()]);
    }

    /// Locks it, or has whoever has it locked forget all places.
    #[inline]
    fn lock_or_have_forgotten(self) -> Option<u64> {
        let state = &self.words[STATE];
        let mut present = state.load(Ordering::Relaxed);
        loop {
            let is_locked = present & LOCKED != 0;
            let wanted = if is_locked { present | FORGET } else { present | LOCKED };
            match state.compare_exchange(present, wanted, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) if is_locked => return None,
                Ok(_) => return Some(begin_changes(wanted)),
                Err(now) => present = now,
            }
        }
    }

    fn try_lock(self) -> Option<u64> {
        let state = &self.words[STATE];
        let present = state.load(Ordering::Relaxed);
        if present & LOCKED != 0 {
            return None;
        }
        let wanted = present | LOCKED;
        let taken = state.compare_exchange(present, wanted, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| begin_changes(wanted))
    }

    /// Unlocks what was locked as `state`.
    #[inline]
    fn unlock(self, mut state: u64) {
        loop {
            let unlocked = (state & !(LOCKED | FORGET)).wrapping_add(CHANGE);
            match self.words[STATE].compare_exchange(state, unlocked, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => state = now,
            }
            self.words[PLACES..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }
}

/// Of a bucket that was locked as `state`: whoever sees one of the changes that come now sees the lock.
fn begin_changes(state: u64) -> u64 {
    fence(Ordering::Release);
    state
}

#[cfg(all(test, not(any(shuttle, loom))))]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::keys::hash_user_key;

    fn place(number: u64) -> ValuePointer {
        let offset = (number * 1000) as u32;
        ValuePointer { segment: SegmentId(u32::MAX - 5), offset, stored_len: u32::MAX - number as u32 }
    }

    #[test]
    fn a_bucket_is_one_line() {
        for bytes in [64, 100, 1 << 10, 1 << 20] {
            let buckets = Buckets::new(bytes, Sequence(0));
            assert_eq!(buckets.buckets, bytes / BUCKET_BYTES);
            for hash in [0, u64::MAX, u64::from(u32::MAX), 0x1234_5678_9ABC_DEF0] {
                let bucket = buckets.bucket(hash);
                assert!(bucket.words.as_ptr().cast::<u8>().addr().is_multiple_of(BUCKET_BYTES as usize));
            }
        }
        assert!(Buckets::new(63, Sequence(0)).are_none());
    }

    #[test]
    fn a_place_is_known_until_the_key_is_written_again() {
        let buckets = Buckets::new(BUCKET_BYTES, Sequence(10));
        let [key, other] = [1 << 32, 2 << 32];
        assert_eq!(buckets.place(key, Sequence(10)), None);
        buckets.note_place(key, Sequence(9), place(0));
        assert_eq!(buckets.place(key, Sequence(9)), None, "of a moment before the beginning");
        buckets.note_place(key, Sequence(10), place(1));
        assert_eq!(buckets.place(key, Sequence(10)), Some(place(1)));
        assert_eq!(buckets.place(key, Sequence(9)), None, "of a moment before the beginning");
        buckets.note_write(other, Sequence(11), Some(place(2)));
        assert_eq!(buckets.place(key, Sequence(10)), None, "a write may have been one of the key");
        assert_eq!(buckets.place(key, Sequence(11)), Some(place(1)));
        assert_eq!(buckets.place(other, Sequence(11)), Some(place(2)));
        buckets.note_write(key, Sequence(12), None);
        assert_eq!(buckets.place(key, Sequence(12)), None);
        buckets.note_place(key, Sequence(11), place(1));
        assert_eq!(buckets.place(key, Sequence(12)), None, "it was looked up before the write");
        assert_eq!(buckets.place(other, Sequence(12)), Some(place(2)));
        // Two writes of one key that are noted in the other order.
        buckets.note_write(key, Sequence(14), Some(place(4)));
        buckets.note_write(key, Sequence(13), Some(place(3)));
        assert_eq!(buckets.place(key, Sequence(14)), None);
        assert_eq!(buckets.place(other, Sequence(14)), Some(place(2)));
    }

    #[test]
    fn a_writer_who_finds_it_locked_has_all_places_forgotten() {
        let buckets = Buckets::new(BUCKET_BYTES, Sequence(0));
        let [key, other] = [1 << 32, 2 << 32];
        buckets.note_write(key, Sequence(1), Some(place(1)));
        let bucket = buckets.bucket(other);
        let locked = bucket.try_lock().expect("nobody has it locked");
        assert!(bucket.try_lock().is_none());
        assert_eq!(buckets.place(key, Sequence(1)), None, "it may be changed");
        buckets.note_write(key, Sequence(2), Some(place(2)));
        bucket.set_place(Some(place(3)));
        bucket.unlock(locked);
        assert_eq!(buckets.last_write(key), Sequence(2));
        assert_eq!([key, other].map(|hash| buckets.place(hash, Sequence(2))), [None, None]);
        buckets.note_place(key, Sequence(2), place(2));
        assert_eq!(buckets.place(key, Sequence(2)), Some(place(2)));
    }

    proptest! {
        /// I-16. Few buckets for many keys; writes, some of them noted late, and readers of all moments.
        #[test]
        fn places_are_those_of_the_newest_versions(
            steps in proptest::collection::vec((0_u64..20, 0_u8..5, 0_u64..4), 1..300),
        ) {
            let buckets = Buckets::new(4 * BUCKET_BYTES, Sequence(0));
            let mut versions: BTreeMap<(u64, std::cmp::Reverse<u64>), Option<ValuePointer>> = BTreeMap::new();
            let mut now = 0;
            for (key, action, back) in steps {
                let hash = hash_user_key(&key.to_le_bytes());
                let newest = |versions: &BTreeMap<_, _>, moment| {
                    let found = versions.range((key, std::cmp::Reverse(moment))..).next();
                    found.filter(|((found, _), _)| *found == key).and_then(|(_, place)| *place)
                };
                match action {
                    0..=1 => {
                        let written: Vec<u64> = (now + 1..=now + 1 + back % 2).collect();
                        now += written.len() as u64;
                        for &sequence in written.iter().rev() {
                            let place = (action == 0).then(|| place(sequence));
                            buckets.note_write(hash, Sequence(sequence), place);
                            versions.insert((key, std::cmp::Reverse(sequence)), place);
                        }
                    }
                    2 => {
                        let moment = now.saturating_sub(back);
                        if let Some(place) = newest(&versions, moment) {
                            buckets.note_place(hash, Sequence(moment), place);
                        }
                    }
                    _ => {
                        let moment = now.saturating_sub(if action == 3 { 0 } else { back });
                        if let Some(place) = buckets.place(hash, Sequence(moment)) {
                            prop_assert_eq!(Some(place), newest(&versions, moment));
                        }
                    }
                }
            }
        }
    }
}
