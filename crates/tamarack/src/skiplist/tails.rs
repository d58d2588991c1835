//! Where each level of a list ends, as far as known: a hint that makes ascending inserts cheap.

#![expect(unsafe_code, reason = "turns stored words back into edges")]

use super::node::{Edge, HEIGHT_MAX, Nodes};
use crate::base::sync::{AtomicU64, Ordering};

/// For each level a node that was the last one there when it was linked. Others may follow it by now.
#[derive(Debug)]
pub(super) struct Tails {
    words: [AtomicU64; HEIGHT_MAX],
}

impl Tails {
    /// The tails of an empty list.
    pub(super) fn new() -> Self {
        Self { words: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    /// A node linked on `level`, the last one if the hint is fresh; the end if none was noted.
    pub(super) fn load<'a>(&self, nodes: &'a Nodes, level: usize) -> Edge<'a> {
        let word = self.words[level].load(Ordering::Acquire);
        // SAFETY: `store` put the word here, with release ordering, from an edge of the same level; and a list
        // has one `Tails` and one `Nodes`.
        unsafe { nodes.edge(level, word) }
    }

    /// Notes that `last` was linked at the end of its level.
    pub(super) fn store(&self, last: Edge<'_>) {
        self.words[last.level()].store(last.word(), Ordering::Release);
    }
}
