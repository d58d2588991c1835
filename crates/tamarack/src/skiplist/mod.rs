//! An arena skiplist: sorted entries with concurrent inserts, no deletions, and readers that never wait.
//!
//! A list owns its order and the arena that holds all entries; it never grows beyond the capacity it was made
//! with, and frees everything at once. Any number of threads may insert and read at the same time without
//! locks. A reader sees every insert that completed before its call, and perhaps some that run beside it; no
//! entry it has seen ever moves, changes or goes away.
//!
//! Beside each link lies the *code* of the next node's key ([`Order::code`]), so that most steps of a search
//! compare two integers at hand instead of fetching a key. An insert searches downwards, then links its node
//! upwards from level 0, each level by one compare-and-swap; when another thread was faster it searches on
//! from where it stands, for nodes never leave. The memtable is the only user.
//!
//! The files: `arena` hands out memory; `node` lays out nodes and links in it, and is where soundness is
//! argued; `shadow` is what loom sees of that; `tails` remembers the ends of levels and `fingers` nodes near any code; this
//! file searches and inserts, all in safe code; `cursor` is a position that owns its list.

mod arena;
mod cursor;
mod fingers;
#[cfg(all(test, loom))]
mod loom_tests;
mod node;
mod shadow;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
mod tails;
#[cfg(all(test, not(shuttle)))]
mod tests;

use std::cmp;

pub use self::cursor::ListCursor;
pub use self::node::Node;

use self::arena::WORD_BYTES;
use self::fingers::Fingers;
use self::node::{Edge, HEIGHT_MAX, Nodes, Slot, node_words};
use self::tails::Tails;
use crate::base::sync::{AtomicU64, AtomicUsize, Ordering};

/// A finger that is so many steps away from its goal, or more, is not near.
const NEAR_STEPS_MAX: usize = 16;

/// A total order of keys, with an integer summary of it.
pub trait Order: Send + Sync {
    /// The order of two keys.
    fn compare(&self, left: &[u8], right: &[u8]) -> cmp::Ordering;

    /// A number that never decreases from a key to a greater one. Searches compare keys in full only where
    /// the codes are equal, so the more keys it tells apart the better.
    fn code(&self, key: &[u8]) -> u32;
}

/// Entries sorted by key; see the [module](self).
#[derive(Debug)]
pub struct SkipList<O> {
    order: O,
    nodes: Nodes,
    tails: Tails,
    fingers: Fingers,
    /// Levels that may have a node; the ones above are empty.
    height: AtomicUsize,
    entries: AtomicU64,
}

/// An entry that readers do not find yet.
#[derive(Debug)]
pub struct Unlinked<'a> {
    top: Slot<'a>,
    code: u32,
    /// Where the search for its place begins.
    near: Option<Slot<'a>>,
}

impl<O: Order> SkipList<O> {
    /// An empty list for entries of altogether `capacity_bytes`, as [`entry_bytes_max`](Self::entry_bytes_max)
    /// counts them.
    pub fn new(order: O, capacity_bytes: usize) -> Self {
        Self {
            order,
            nodes: Nodes::new(capacity_bytes.div_ceil(WORD_BYTES)),
            tails: Tails::new(),
            fingers: Fingers::new(capacity_bytes / WORD_BYTES),
            height: AtomicUsize::new(1),
            entries: AtomicU64::new(0),
        }
    }

    /// The most bytes of capacity that an entry takes, with the tallest tower.
    pub fn entry_bytes_max(key_bytes: usize, payload_bytes: usize) -> usize {
        node_words(HEIGHT_MAX, key_bytes, payload_bytes) * WORD_BYTES
    }

    /// Bytes of capacity that the `ordinal`-th insert takes, counted from 0.
    pub fn entry_bytes(ordinal: u64, key_bytes: usize, payload_bytes: usize) -> usize {
        node_words(tower_height(ordinal), key_bytes, payload_bytes) * WORD_BYTES
    }

    /// Bytes of the capacity that inserts have taken, including those still under way.
    pub fn used_bytes(&self) -> usize {
        self.nodes.used_words() * WORD_BYTES
    }

    /// Entries, including those whose insert is still under way.
    #[cfg(test)]
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// The order of keys.
    pub fn order(&self) -> &O {
        &self.order
    }

    /// Makes an entry whose key is the two pieces one after the other, for [`link`](Self::link), and has the processor fetch
    /// what that will begin with. No atomic instruction is left between the two but for those of `link` itself, so whoever has something
    /// to write in between does that while memory answers.
    ///
    /// # Panics
    /// When the list has no room: the caller's reservations rule it out.
    #[inline]
    pub fn prepare(&self, key: [&[u8]; 2], payload: &[u8]) -> Unlinked<'_> {
        let ordinal = self.entries.fetch_add(1, Ordering::Relaxed);
        let top = self.nodes.create(tower_height(ordinal), key, payload);
        let code = self.order.code(top.node().key());
        let near = self.fingers.before(&self.nodes, top.level(), code);
        near.inspect(|near| near.prefetch());
        Unlinked { top, code, near }
    }

    /// Has readers find an entry that was made in this list.
    ///
    /// # Panics
    /// When the list has an equal key: the caller's numbering rules it out.
    #[inline]
    pub fn link(&self, Unlinked { top, code, near }: Unlinked<'_>) {
        let key = top.node().key();
        let is_before = |edge: Edge<'_>| {
            self.compare(edge, code, |other| {
                let order = self.order.compare(other, key);
                assert!(order.is_ne(), "no two entries of a list have equal keys");
                order
            })
            .is_lt()
        };
        let previous = self.ends_before(top, is_before).unwrap_or_else(|| {
            let mut previous = self.heads();
            self.search(near, code, is_before, |slot| previous[slot.level()] = slot);
            previous
        });
        if self.height.load(Ordering::Relaxed) <= top.level() {
            self.height.fetch_max(top.level() + 1, Ordering::Relaxed);
        }
        for (level, from) in previous.into_iter().enumerate().take(top.level() + 1) {
            self.link_level(top.at_level(level), code, from.at_level(level), is_before);
        }
        self.fingers.store(top, code);
    }

    /// Makes and links an entry.
    ///
    /// # Panics
    /// As those two.
    pub fn insert(&self, key: [&[u8]; 2], payload: &[u8]) {
        self.link(self.prepare(key, payload));
    }

    /// Has the processor fetch what [`prepare`](Self::prepare) of a key with `code` will look at.
    #[inline]
    pub fn prefetch(&self, code: u32) {
        self.fingers.prefetch(code);
    }

    /// The first entry.
    pub fn first(&self) -> Option<Node<'_>> {
        self.nodes.head(0).load().node()
    }

    /// The last entry.
    pub fn last(&self) -> Option<Node<'_>> {
        self.entry(self.descend(None, |_| true, |_| ()).0)
    }

    /// Entries in order, evenly spread as far as chance goes: about a thousand, or all of them if there are fewer.
    pub fn sample(&self) -> impl Iterator<Item = Node<'_>> {
        const LEVELS_OF_A_THOUSAND: usize = 5;
        let level = self.height.load(Ordering::Relaxed).saturating_sub(LEVELS_OF_A_THOUSAND + 1);
        let mut slot = self.nodes.head(level);
        std::iter::from_fn(move || {
            slot = slot.load().target()?;
            Some(slot.node())
        })
    }

    /// The first entry with a key at or after `key`.
    pub fn seek_ge(&self, key: &[u8]) -> Option<Node<'_>> {
        self.seek_ge_by(self.order.code(key), |other| self.order.compare(other, key))
    }

    /// The first entry that does not compare less: `compare` is the order of its argument and the key sought,
    /// whose code is `code`. For callers that do not have that key in one piece.
    pub fn seek_ge_by(&self, code: u32, compare: impl Fn(&[u8]) -> cmp::Ordering) -> Option<Node<'_>> {
        let near = self.fingers.before(&self.nodes, 0, code);
        self.search(near, code, |edge| self.compare(edge, code, &compare).is_lt(), |_| ()).1.node()
    }

    /// The last entry with a key before `key`.
    pub fn seek_lt(&self, key: &[u8]) -> Option<Node<'_>> {
        let code = self.order.code(key);
        let is_before =
            |edge: Edge<'_>| self.compare(edge, code, |other| self.order.compare(other, key)).is_lt();
        let near = self.fingers.before(&self.nodes, 0, code);
        self.entry(self.search(near, code, is_before, |_| ()).0)
    }

    /// The order of the key that `edge` points at and a key with `code`; `full` compares with that key when
    /// the codes do not tell.
    #[inline]
    fn compare(&self, edge: Edge<'_>, code: u32, full: impl Fn(&[u8]) -> cmp::Ordering) -> cmp::Ordering {
        edge.code().cmp(&code).then_with(|| match edge.node() {
            Some(node) => full(node.key()),
            None => cmp::Ordering::Greater,
        })
    }

    /// The entry whose tower `slot` belongs to, unless that is the head.
    fn entry<'a>(&'a self, slot: Slot<'a>) -> Option<Node<'a>> {
        let node = slot.node();
        (node.place() != self.nodes.head(0).node().place()).then_some(node)
    }

    /// Searches from `near`, which [`Fingers::before`] gave for `code`, downwards; if that is far away after all, from
    /// higher up. As [`descend`](Self::descend) does otherwise.
    #[inline]
    fn search<'a>(
        &'a self,
        mut near: Option<Slot<'a>>,
        code: u32,
        is_before: impl Fn(Edge<'a>) -> bool,
        leave: impl FnMut(Slot<'a>),
    ) -> (Slot<'a>, Edge<'a>) {
        while let Some(slot) = near {
            if let Some((reached, _)) = walk(slot, None, NEAR_STEPS_MAX, &is_before) {
                near = Some(reached);
                break;
            }
            self.fingers.give_up(slot.level(), code);
            near = self.fingers.before(&self.nodes, slot.level() + 1, code);
        }
        self.descend(near, is_before, leave)
    }

    /// Goes down all levels, or those from that of `near`, a slot before the goal; on each as far as `is_before`
    /// holds, and calls `leave` with the place reached on each. Returns the slot of the last entry before, and where it points.
    #[inline]
    fn descend<'a>(
        &'a self,
        near: Option<Slot<'a>>,
        is_before: impl Fn(Edge<'a>) -> bool,
        mut leave: impl FnMut(Slot<'a>),
    ) -> (Slot<'a>, Edge<'a>) {
        let mut slot = near.unwrap_or_else(|| self.nodes.head(self.height.load(Ordering::Relaxed) - 1));
        let mut beyond = None;
        loop {
            let (last, next) = walk_on(slot, beyond, &is_before);
            leave(last);
            match last.down() {
                Some(lower) => (slot, beyond) = (lower, Some(next)),
                None => return (last, next),
            }
        }
    }

    /// If the new node of `top` goes behind the last entry: an entry before it on each of its levels, found
    /// without a search.
    fn ends_before<'a>(
        &'a self,
        top: Slot<'a>,
        is_before: impl Fn(Edge<'a>) -> bool,
    ) -> Option<[Slot<'a>; HEIGHT_MAX]> {
        let last = self.tails.load(&self.nodes, 0);
        let last_slot = last.target().filter(|_| is_before(last))?;
        let mut previous = self.heads();
        previous[0] = last_slot;
        for (level, slot) in previous.iter_mut().enumerate().take(top.level() + 1).skip(1) {
            *slot = self.tails.load(&self.nodes, level).target().unwrap_or(*slot);
        }
        // After the tails of the other levels: were one of them behind `last`, then something would follow
        // `last` by now. That they may not be at the end of their level does no harm.
        last_slot.load().is_end().then_some(previous)
    }

    /// For every level a slot of the head, which is before everything.
    fn heads(&self) -> [Slot<'_>; HEIGHT_MAX] {
        [self.nodes.head(HEIGHT_MAX - 1); HEIGHT_MAX]
    }

    /// Links `slot` into its level, at the place found by walking on from `from`.
    fn link_level<'a>(
        &'a self,
        slot: Slot<'a>,
        code: u32,
        mut from: Slot<'a>,
        is_before: impl Fn(Edge<'a>) -> bool,
    ) {
        let this = slot.as_target(code);
        loop {
            let (last, next) = walk_on(from, None, &is_before);
            slot.prepare(next);
            if last.publish(next, this) {
                if next.is_end() {
                    self.tails.store(this);
                }
                return;
            }
            from = last;
        }
    }
}

/// Goes along the level of `from` as far as `is_before` holds. Returns the slot of the last entry for which it
/// does, and where that points. A node already known to lie `beyond` is not compared again.
#[inline]
fn walk_on<'a>(
    from: Slot<'a>,
    beyond: Option<Edge<'a>>,
    is_before: &impl Fn(Edge<'a>) -> bool,
) -> (Slot<'a>, Edge<'a>) {
    walk(from, beyond, usize::MAX, is_before).expect("nobody goes that far")
}

/// The same, unless it takes `steps_max` steps or more.
#[inline]
fn walk<'a>(
    from: Slot<'a>,
    beyond: Option<Edge<'a>>,
    steps_max: usize,
    is_before: &impl Fn(Edge<'a>) -> bool,
) -> Option<(Slot<'a>, Edge<'a>)> {
    let mut slot = from;
    for _ in 0..steps_max {
        let next = slot.load();
        let Some(target) = next.target() else { return Some((slot, next)) };
        if beyond.is_some_and(|beyond| beyond.same_target(next)) || !is_before(next) {
            return Some((slot, next));
        }
        slot = target;
    }
    None
}

/// The height of the tower of the `ordinal`-th insert: each level has about a quarter of the nodes of the one below.
/// A search pays for the nodes it steps onto, each a cache miss. Most begin right before their goal, and then towers of one
/// level take the fewest steps, and least memory. The ordinal is scrambled (the finalizer of SplitMix64), so that no order
/// of keys lines up with it.
fn tower_height(ordinal: u64) -> usize {
    let mut bits = ordinal.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (1 + bits.trailing_zeros() as usize / 2).min(HEIGHT_MAX)
}
