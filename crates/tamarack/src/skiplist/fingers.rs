//! Where to begin a search near its goal: a hint that saves the upper levels of most searches.
//!
//! Each of the lower levels has a *tier*: the range of codes is cut into equal buckets, at most one for every other node of the level in a
//! full arena of small entries, and each bucket remembers, of its nodes on that level, the one with the largest code. A search for a code begins
//! at that of its own bucket, if its code is smaller, else at that of the nearest bucket before, where all codes are: so the
//! node is before the goal whatever else is true, and hardly any other lies between. An insert begins on the highest level of its
//! tower, and so learns what is before it on all of them.
//!
//! Where codes crowd in few buckets the way would be long. A search that has gone too far gives its bucket up, and goes on in the
//! tier above, whose level has a quarter of the nodes; above the last tier are the upper levels of the list.
//!
//! How many entries a list will have is not known: its memory may be full after a tenth of them or never. So beside the
//! buckets there is a bit for each that tells whether it has a node: the nearest one that does is found without a look
//! into those that do not.

#![expect(unsafe_code, reason = "turns stored words back into edges")]

use super::node::{Edge, Nodes, Slot};
use crate::base::large_pages::prefer_large_pages;
use crate::base::prefetch::prefetch;
use crate::base::sync::{AtomicU64, Ordering, Zeros, zeros};

/// So many of the lower levels have a tier.
const TIERS: usize = 6;

/// Of the lowest tier, words of arena for each bucket: small entries take some eight.
const BUCKET_WORDS: usize = 16;

/// A tier has so many times as many buckets as the one above.
const BUCKETS_PER_BUCKET_ABOVE: usize = 4;

/// In the place of a node of a bucket that was given up. No edge is this word: no node has the largest place.
const GIVEN_UP: u64 = u64::MAX;

/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// The fingers of one list.
#[derive(Debug)]
pub(super) struct Fingers {
    tiers: [Tier; TIERS],
}

/// Fingers that point into one level.
#[derive(Debug)]
struct Tier {
    level: usize,
    /// For each bucket its node, as an edge of the level: such words are in the order of codes. 0 while there is none.
    buckets: Zeros<AtomicU64>,
    /// Which buckets have a node, or were given up.
    occupied: Zeros<AtomicU64>,
    shift: u32,
}

impl Fingers {
    /// Fingers for an arena of `words`.
    pub(super) fn new(words: usize) -> Self {
        let lowest = words / BUCKET_WORDS;
        let tier = |level| Tier::new(level, lowest / BUCKETS_PER_BUCKET_ABOVE.pow(level as u32));
        Self { tiers: std::array::from_fn(tier) }
    }

    /// Notes the node of `top`, its highest slot, which is linked on all of its levels.
    pub(super) fn store(&self, top: Slot<'_>, code: u32) {
        for tier in self.tiers.iter().take(top.level() + 1) {
            tier.store(top.at_level(tier.level).as_target(code));
        }
    }

    /// A slot of `level_min` or a higher level, not far before every node with `code`.
    #[inline]
    pub(super) fn before<'a>(&self, nodes: &'a Nodes, level_min: usize, code: u32) -> Option<Slot<'a>> {
        self.tiers.iter().skip(level_min).find_map(|tier| tier.before(nodes, code))
    }

    /// The way from the slot of `level` that was said to be not far before `code` is long.
    #[cold]
    pub(super) fn give_up(&self, level: usize, code: u32) {
        let tier = &self.tiers[level];
        let bucket = tier.bucket(code);
        tier.buckets[bucket].store(GIVEN_UP, Ordering::Relaxed);
        // Also one without a node, in front of which the way is long.
        tier.occupied[bucket / BITS].fetch_or(1 << (bucket % BITS), Ordering::Relaxed);
    }

    /// Bytes of memory that they take.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn bytes(&self) -> usize {
        self.tiers.iter().map(|tier| size_of_val(&*tier.buckets) + size_of_val(&*tier.occupied)).sum()
    }

    /// For each tier the number of buckets that were given up.
    #[cfg(all(test, not(shuttle)))]
    pub(super) fn given_up(&self) -> Vec<usize> {
        let is_given_up = |bucket: &&AtomicU64| bucket.load(Ordering::Relaxed) == GIVEN_UP;
        self.tiers.iter().map(|tier| tier.buckets.iter().filter(is_given_up).count()).collect()
    }

    /// Has the processor fetch what [`before`](Self::before) will look at for most nodes.
    #[inline]
    pub(super) fn prefetch(&self, code: u32) {
        let [lowest, ..] = &self.tiers;
        let bucket = lowest.bucket(code);
        prefetch(&raw const lowest.buckets[bucket]);
        prefetch(&raw const lowest.occupied[bucket / BITS]);
    }
}

impl Tier {
    fn new(level: usize, buckets: usize) -> Self {
        let count = 1 << buckets.max(2).ilog2();
        let buckets = zeros(count);
        prefer_large_pages(buckets.as_ptr(), size_of_val(&*buckets));
        Self {
            level,
            buckets,
            occupied: zeros(count.div_ceil(BITS)),
            shift: u32::BITS - count.trailing_zeros(),
        }
    }

    fn store(&self, node: Edge<'_>) {
        debug_assert_eq!(node.level(), self.level);
        let own = self.bucket(node.code());
        let (bucket, word) = (&self.buckets[own], node.word());
        // Nothing is read of it before: a page of zeros that was read first has to be replaced on all processors when it is written to.
        if bucket.compare_exchange(0, word, Ordering::Release, Ordering::Relaxed).is_ok() {
            self.occupied[own / BITS].fetch_or(1 << (own % BITS), Ordering::Relaxed);
        } else {
            bucket.fetch_max(word, Ordering::Release);
        }
    }

    #[inline]
    fn before<'a>(&self, nodes: &'a Nodes, code: u32) -> Option<Slot<'a>> {
        let own = self.bucket(code);
        let here = self.occupied[own / BITS].load(Ordering::Relaxed);
        if here >> (own % BITS) & 1 == 1 {
            let finger = self.finger(nodes, own)?;
            if !finger.is_end() && finger.code() < code {
                return finger.target();
            }
        }
        let before = here & ((1 << (own % BITS)) - 1);
        let (word, bits) = if before == 0 {
            let word = (own / BITS).checked_sub(1)?;
            (word, self.occupied[word].load(Ordering::Relaxed))
        } else {
            (own / BITS, before)
        };
        // A bucket that has a bit may, for a moment, seem to have no node yet.
        self.finger(nodes, word * BITS + bits.checked_ilog2()? as usize)?.target()
    }

    /// What a bucket points at; `None` if it was given up.
    #[inline]
    fn finger<'a>(&self, nodes: &'a Nodes, bucket: usize) -> Option<Edge<'a>> {
        let word = self.buckets[bucket].load(Ordering::Acquire);
        // SAFETY: `store` put the word here, with release ordering, from an edge of this level; and a list has one
        // `Fingers` and one `Nodes`.
        (word != GIVEN_UP).then(|| unsafe { nodes.edge(self.level, word) })
    }

    #[inline]
    fn bucket(&self, code: u32) -> usize {
        (code >> self.shift) as usize
    }
}
