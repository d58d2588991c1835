//! Where to begin a search near its goal: a hint that saves the upper levels of most searches.
//!
//! The range of codes is cut into equal buckets, and each bucket remembers one node of its own that has a tower
//! tall enough. A search for a code begins at the node of the nearest bucket before that of the code: all codes
//! there are smaller, so the node is before the goal whatever else is true. Where codes crowd in few buckets the
//! way from there would be long, and the search begins at the head as if there were no fingers.

#![expect(unsafe_code, reason = "turns stored words back into edges")]

use super::node::{Edge, Nodes, Slot};
use crate::base::sync::{AtomicU32, AtomicU64, Ordering};

/// The level that fingers point into, and on which a search from one begins: one node in eight has it.
pub(super) const FINGER_LEVEL: usize = 3;

/// Words of arena for each bucket, and the most buckets: a bucket is to have some ten or twenty nodes in a full
/// arena, and all buckets together are to stay in a processor's cache.
const BUCKET_WORDS: usize = 128;
const BUCKETS_MAX: usize = 1 << 16;

/// How many buckets back a finger is looked for.
const BUCKETS_BACK_MAX: usize = 4;

/// Nodes with a tower tall enough that make a bucket crowded.
const CROWD: u32 = 16;

/// The fingers of one list.
#[derive(Debug)]
pub(super) struct Fingers {
    buckets: Box<[Bucket]>,
    shift: u32,
}

#[derive(Debug)]
struct Bucket {
    /// A node of the bucket, as an edge of [`FINGER_LEVEL`]; 0 while there is none.
    word: AtomicU64,
    /// Nodes of the bucket that could be its finger.
    nodes: AtomicU32,
}

impl Fingers {
    /// Fingers for an arena of `words`.
    pub(super) fn new(words: usize) -> Self {
        let count = (words / BUCKET_WORDS).clamp(2, BUCKETS_MAX).next_power_of_two();
        let bucket = |_| Bucket { word: AtomicU64::new(0), nodes: AtomicU32::new(0) };
        Self { buckets: (0..count).map(bucket).collect(), shift: u32::BITS - count.trailing_zeros() }
    }

    /// Notes a node that was linked on [`FINGER_LEVEL`].
    pub(super) fn store(&self, node: Edge<'_>) {
        debug_assert_eq!(node.level(), FINGER_LEVEL);
        let bucket = &self.buckets[self.bucket(node.code())];
        bucket.word.store(node.word(), Ordering::Release);
        bucket.nodes.fetch_add(1, Ordering::Relaxed);
    }

    /// A slot of [`FINGER_LEVEL`] not far before every node with `code`.
    pub(super) fn before<'a>(&self, nodes: &'a Nodes, code: u32) -> Option<Slot<'a>> {
        let end = self.bucket(code);
        if self.buckets[end].nodes.load(Ordering::Relaxed) > CROWD {
            return None;
        }
        for bucket in self.buckets[end.saturating_sub(BUCKETS_BACK_MAX)..end].iter().rev() {
            if bucket.nodes.load(Ordering::Relaxed) > CROWD {
                return None;
            }
            let word = bucket.word.load(Ordering::Acquire);
            if word != 0 {
                // SAFETY: `store` put the word here, with release ordering, from an edge of this level; and a
                // list has one `Fingers` and one `Nodes`.
                let edge = unsafe { nodes.edge(FINGER_LEVEL, word) };
                return edge.target();
            }
        }
        None
    }

    fn bucket(&self, code: u32) -> usize {
        (code >> self.shift) as usize
    }
}
