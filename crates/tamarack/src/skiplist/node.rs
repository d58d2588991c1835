//! Nodes, the links between them, and their bytes in the arena. Everything unsafe about the list is here.
//!
//! A node is one piece of memory, and its place is that of its length word:
//!
//! ```text
//!   link h-1 | ... | link 1 | link 0 | lengths | key, payload, zeros up to a whole word
//!                                    ^ the node's place
//! ```
//!
//! A link is one atomic word: the place of the next node in the low half (0: there is none, the tower of the
//! head lies there), that node's key code in the high half. So a search that compares codes leaves the next
//! node's memory alone until it steps onto it.
//!
//! Three invariants make the safe interface below sound:
//! - **N1** A [`Slot`] exists only for a level that its node's tower has: [`Nodes::create`] gives the highest slot
//!   of a node, [`Edge::target`] keeps the level on which the node was found linked, all else goes down.
//! - **N2** Lengths, key and payload are written before the node is first linked, with release ordering, and
//!   never again; links are followed with acquire ordering, so whoever reaches a node sees them whole.
//! - **N3** Links are accessed only as atomics once `create` has returned.

#![expect(unsafe_code, reason = "nodes are laid out by hand in the arena")]

use std::slice;

use super::arena::{Arena, WORD_BYTES};
use super::shadow::Link;
use crate::base::prefetch::prefetch;
use crate::base::sync::{Ordering, interleave};

/// The tallest tower. With a quarter of each level's nodes on the next, searches stay logarithmic up to 2^22 entries,
/// and beyond that grow only by a scan of the top level, which has one node in four million.
pub(super) const HEIGHT_MAX: usize = 12;

/// Words of the head, which is the first node in the arena.
const HEAD_WORDS: usize = HEIGHT_MAX + 1;

/// Words of a node with a tower of `height`.
pub(super) fn node_words(height: usize, key_bytes: usize, payload_bytes: usize) -> usize {
    height + 1 + (key_bytes + payload_bytes).div_ceil(WORD_BYTES)
}

/// All nodes of one list, and the tower from which every search starts: the head, a node without an entry.
#[derive(Debug)]
pub(super) struct Nodes {
    arena: Arena,
}

impl Nodes {
    /// The head alone, with room for nodes of `capacity_words` altogether.
    pub(super) fn new(capacity_words: usize) -> Self {
        let nodes = Self { arena: Arena::new(HEAD_WORDS + capacity_words) };
        nodes.create(HEIGHT_MAX, [&[], &[]], &[]);
        nodes
    }

    /// Makes a node, not linked yet, whose key is the two pieces one after the other, and returns the slot of
    /// its highest level.
    pub(super) fn create(&self, height: usize, key: [&[u8]; 2], payload: &[u8]) -> Slot<'_> {
        assert!((1..=HEIGHT_MAX).contains(&height), "a tower has 1 to {HEIGHT_MAX} links, not {height}");
        let key_bytes = key[0].len() + key[1].len();
        let lengths = pack(
            u32::try_from(payload.len()).expect("limits keep payloads below 4 GiB"),
            u32::try_from(key_bytes).expect("limits keep keys below 4 GiB"),
        );
        let tower = self.arena.allocate(node_words(height, key_bytes, payload.len()));
        let node = Node { arena: &self.arena, place: tower + height as u32 };
        self.arena.shadow().write(node.place);
        // SAFETY: the words just allocated are this node's alone, and the lengths come after `height` links.
        unsafe { node.address().cast::<u64>().write(lengths) };
        let mut end = node.bytes();
        for piece in [key[0], key[1], payload] {
            // SAFETY: the node was allocated with room for all three pieces, nobody else knows of it yet, and
            // `piece` cannot lie in words that were free until now.
            unsafe { end.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
            end = end.wrapping_add(piece.len());
        }
        Slot { node, level: height as u32 - 1 }
    }

    /// The head's slot of `level`.
    pub(super) fn head(&self, level: usize) -> Slot<'_> {
        let node = Node { arena: &self.arena, place: HEIGHT_MAX as u32 };
        Slot { node, level: HEIGHT_MAX as u32 - 1 }.at_level(level)
    }

    /// The node at `place`.
    ///
    /// # Safety
    /// `place` must be [`Node::place`] of a node of this list, obtained before on this thread or one that
    /// handed it over (N2).
    pub(super) unsafe fn at(&self, place: u32) -> Node<'_> {
        Node { arena: &self.arena, place }
    }

    /// The edge that `word` stood for.
    ///
    /// # Safety
    /// `word` must be [`Edge::word`] of an edge of this `level` of this list, handed over with at least
    /// release and acquire ordering (N1, N2), or 0.
    pub(super) unsafe fn edge(&self, level: usize, word: u64) -> Edge<'_> {
        Edge { arena: &self.arena, level: level as u32, word }
    }

    /// Words of all nodes but the head.
    pub(super) fn used_words(&self) -> usize {
        self.arena.allocated_words() - HEAD_WORDS
    }
}

/// An entry of the list. Never changes.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    arena: &'a Arena,
    place: u32,
}

impl<'a> Node<'a> {
    /// Where the node lies; never 0.
    pub(super) fn place(self) -> u32 {
        self.place
    }

    /// The entry's key.
    pub fn key(self) -> &'a [u8] {
        let (_, key_bytes) = self.lengths();
        // SAFETY: `create` wrote `key_bytes` bytes there, nobody writes them again (N2), and the arena lives
        // for 'a.
        unsafe { slice::from_raw_parts(self.bytes(), key_bytes) }
    }

    /// The entry's payload.
    pub fn payload(self) -> &'a [u8] {
        let (payload_bytes, key_bytes) = self.lengths();
        // SAFETY: as for the key, which the payload follows.
        unsafe { slice::from_raw_parts(self.bytes().wrapping_add(key_bytes), payload_bytes) }
    }

    /// The entry after this one. Never blocks; sees every insert that completed before the call.
    pub fn next(self) -> Option<Self> {
        self.lowest_slot().load().node()
    }

    /// Has the processor fetch the entry after this one, for whoever goes there once this one is done with.
    #[inline]
    pub(super) fn prefetch_next(self) {
        #[cfg(not(any(miri, loom, shuttle)))]
        if let Some(next) = self.next() {
            next.lowest_slot().prefetch();
        }
    }

    fn lowest_slot(self) -> Slot<'a> {
        Slot { node: self, level: 0 }
    }

    /// Lengths of payload and key.
    fn lengths(self) -> (usize, usize) {
        self.arena.shadow().read(self.place);
        // SAFETY: `create` wrote this word, and nobody writes it again (N2).
        let word = unsafe { self.address().cast::<u64>().read() };
        let (payload_bytes, key_bytes) = unpack(word);
        (payload_bytes as usize, key_bytes as usize)
    }

    fn address(self) -> *mut u8 {
        self.arena.address(self.place)
    }

    fn bytes(self) -> *mut u8 {
        self.address().wrapping_add(WORD_BYTES)
    }
}

/// One link of one node's tower: the place where the next node of a level is looked up or linked in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot<'a> {
    node: Node<'a>,
    level: u32,
}

impl<'a> Slot<'a> {
    /// The level of this link; 0 is the level that links all nodes.
    pub(super) fn level(self) -> usize {
        self.level as usize
    }

    /// The node whose tower this is.
    pub(super) fn node(self) -> Node<'a> {
        self.node
    }

    /// The link below in the same tower.
    pub(super) fn down(self) -> Option<Self> {
        let level = self.level.checked_sub(1)?;
        Some(Self { level, ..self })
    }

    /// The same tower's link on a lower `level`, or this one.
    pub(super) fn at_level(self, level: usize) -> Self {
        assert!(level <= self.level as usize, "a tower has the levels below its slots (N1)");
        Self { level: level as u32, ..self }
    }

    /// What the link points at.
    #[inline]
    pub(super) fn load(self) -> Edge<'a> {
        interleave();
        self.edge(self.word().load(Ordering::Acquire))
    }

    /// Points the link at `edge`; only before the node is linked on this level.
    pub(super) fn prepare(self, edge: Edge<'a>) {
        assert_eq!(edge.level, self.level, "a link points at a node found on its own level (N1)");
        interleave();
        // Relaxed: the link is reached only through the one that publishes this node on this level.
        self.word().store(edge.word, Ordering::Relaxed);
    }

    /// Points the link at `next` if it still points at `current`.
    pub(super) fn publish(self, current: Edge<'a>, next: Edge<'a>) -> bool {
        assert_eq!(current.level, self.level, "a link points at a node found on its own level (N1)");
        assert_eq!(next.level, self.level, "a link points at a node found on its own level (N1)");
        interleave();
        self.word().compare_exchange(current.word, next.word, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// What a link must hold to point at this slot, `code` being its node's key code.
    pub(super) fn as_target(self, code: u32) -> Edge<'a> {
        self.edge(pack(self.node.place, code))
    }

    /// Has the processor fetch the node, for whoever will soon be here.
    #[inline]
    pub(super) fn prefetch(self) {
        prefetch(self.node.arena.address(self.node.place - 1 - self.level));
    }

    fn edge(self, word: u64) -> Edge<'a> {
        Edge { arena: self.node.arena, level: self.level, word }
    }

    #[inline]
    fn word(self) -> &'a Link {
        let arena = self.node.arena;
        let word = self.node.place - 1 - self.level;
        // SAFETY: the tower has this level (N1), so the word is one of its links: zeroed or a link since the arena was
        // made, only accessed as an atomic (N3), alive for 'a.
        unsafe { arena.shadow().link(word, arena.address(word).cast::<u64>()) }
    }
}

/// What a link points at: the next node of a level, or its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge<'a> {
    arena: &'a Arena,
    level: u32,
    word: u64,
}

impl<'a> Edge<'a> {
    /// Whether the level ends here.
    #[inline]
    pub(super) fn is_end(self) -> bool {
        self.word == 0
    }

    /// Whether both point at the same node, or both at the end; they may come from different levels.
    #[inline]
    pub(super) fn same_target(self, other: Self) -> bool {
        self.word == other.word
    }

    /// What the link holds.
    pub(super) fn word(self) -> u64 {
        self.word
    }

    /// The level it was found on.
    pub(super) fn level(self) -> usize {
        self.level as usize
    }

    /// The key code of the node; only if there is one.
    #[inline]
    pub(super) fn code(self) -> u32 {
        unpack(self.word).1
    }

    /// The node, if there is one.
    #[inline]
    pub(super) fn node(self) -> Option<Node<'a>> {
        let place = unpack(self.word).0;
        (place != 0).then_some(Node { arena: self.arena, place })
    }

    /// The next link of the level, in the tower of the node, if there is one.
    #[inline]
    pub(super) fn target(self) -> Option<Slot<'a>> {
        Some(Slot { node: self.node()?, level: self.level })
    }
}

/// Two halves of a word: low, high.
fn pack(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}
