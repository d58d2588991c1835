//! Where to begin a search near its goal: a hint that saves the upper levels of most searches.
//!
//! The range of codes is cut into equal buckets, and each bucket remembers, of its nodes with a tower tall enough, the
//! one with the largest code. A search for a code begins at that of its own bucket, if its code is smaller, else at that
//! of the nearest bucket before, where all codes are: so the node is before the goal whatever else is true, and hardly
//! any other as tall lies between. Where codes crowd in few buckets the way from there would be long, and the search
//! begins at the head as if there were no fingers.
//!
//! How many entries a list will have is not known: its memory may be full after a tenth of them or never. So beside the
//! buckets there is a bit for each that tells whether it has a node: the nearest one that does is found without a look
//! into those that do not. Tall nodes, whose insert must learn what is before them on all of their levels, have further
//! tiers of buckets, each an eighth as many as the one below, for towers three levels taller.

#![expect(unsafe_code, reason = "turns stored words back into edges")]

use super::node::{Edge, Nodes, Slot};
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};

/// The levels that the fingers of each tier point into, and on which a search from one begins.
const LEVELS: [usize; 3] = [2, 5, 8];

/// Of the finest tier, words of arena for each bucket, and the most buckets: a bucket is to have some three tall nodes in a
/// full arena, and all buckets together are to stay in a processor's cache. A tier has an eighth of the one below.
const BUCKET_WORDS: usize = 128;
const BUCKETS_MAX: usize = 1 << 16;

/// Nodes with a tower tall enough that make a bucket crowded.
const CROWD: u32 = 16;

/// Bits of a word.
const BITS: usize = u64::BITS as usize;

/// The fingers of one list.
#[derive(Debug)]
pub(super) struct Fingers {
    tiers: [Tier; LEVELS.len()],
}

/// Fingers that point into one level.
#[derive(Debug)]
struct Tier {
    level: usize,
    buckets: Box<[Bucket]>,
    /// Which buckets have a node.
    occupied: Box<[AtomicU64]>,
    shift: u32,
}

#[derive(Debug)]
struct Bucket {
    /// The node of the bucket, as an edge of the tier's level: such words are in the order of codes. 0 while there is none.
    word: AtomicU64,
    /// Nodes of the bucket that could be its finger.
    nodes: AtomicU32,
}

impl Fingers {
    /// Fingers for an arena of `words`.
    pub(super) fn new(words: usize) -> Self {
        let finest = (words / BUCKET_WORDS).min(BUCKETS_MAX);
        let mut coarser = 1;
        Self {
            tiers: LEVELS.map(|level| {
                let tier = Tier::new(level, finest / coarser);
                coarser *= 8;
                tier
            }),
        }
    }

    /// Notes the node of `top`, its highest slot, which is linked on all of its levels.
    pub(super) fn store(&self, top: Slot<'_>, code: u32) {
        for tier in self.tiers.iter().take_while(|tier| tier.level <= top.level()) {
            tier.store(top.at_level(tier.level).as_target(code));
        }
    }

    /// A slot of `level_min` or a higher level, not far before every node with `code`.
    pub(super) fn before<'a>(&self, nodes: &'a Nodes, level_min: usize, code: u32) -> Option<Slot<'a>> {
        let mut tiers = self.tiers.iter().filter(|tier| tier.level >= level_min);
        tiers.find_map(|tier| tier.before(nodes, code))
    }
}

impl Tier {
    fn new(level: usize, buckets: usize) -> Self {
        let count = buckets.max(2).next_power_of_two();
        let bucket = |_| Bucket { word: AtomicU64::new(0), nodes: AtomicU32::new(0) };
        Self {
            level,
            buckets: (0..count).map(bucket).collect(),
            occupied: (0..count.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect(),
            shift: u32::BITS - count.trailing_zeros(),
        }
    }

    fn store(&self, node: Edge<'_>) {
        debug_assert_eq!(node.level(), self.level);
        let own = self.bucket(node.code());
        let bucket = &self.buckets[own];
        bucket.word.fetch_max(node.word(), Ordering::Release);
        if bucket.nodes.fetch_add(1, Ordering::Relaxed) == 0 {
            self.occupied[own / BITS].fetch_or(1 << (own % BITS), Ordering::Relaxed);
        }
    }

    fn before<'a>(&self, nodes: &'a Nodes, code: u32) -> Option<Slot<'a>> {
        let own = self.bucket(code);
        let here = self.occupied[own / BITS].load(Ordering::Relaxed);
        if here >> (own % BITS) & 1 == 1 {
            if self.buckets[own].nodes.load(Ordering::Relaxed) > CROWD {
                return None;
            }
            let finger = self.finger(nodes, own);
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
        self.finger(nodes, word * BITS + bits.checked_ilog2()? as usize).target()
    }

    fn finger<'a>(&self, nodes: &'a Nodes, bucket: usize) -> Edge<'a> {
        let word = self.buckets[bucket].word.load(Ordering::Acquire);
        // SAFETY: `store` put the word here, with release ordering, from an edge of this level; and a list has one
        // `Fingers` and one `Nodes`.
        unsafe { nodes.edge(self.level, word) }
    }

    fn bucket(&self, code: u32) -> usize {
        (code >> self.shift) as usize
    }
}
