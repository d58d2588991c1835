//! A position in a list that keeps the list alive.

#![expect(unsafe_code, reason = "turns a remembered place back into its node")]

use super::{Node, Order, SkipList};
use crate::base::sync::Arc;

/// A position on an entry of a list, or on none, that may outlive every other handle of the list.
#[derive(Debug)]
pub struct ListCursor<O> {
    list: Arc<SkipList<O>>,
    /// Place of the entry. Only set from nodes of `list`.
    place: Option<u32>,
}

impl<O: Order> ListCursor<O> {
    /// A position on no entry.
    pub fn new(list: Arc<SkipList<O>>) -> Self {
        Self { list, place: None }
    }

    /// The entry it stands on.
    pub fn node(&self) -> Option<Node<'_>> {
        self.place.map(|place| {
            // SAFETY: `place` was taken from a node of this list, which this cursor, or the thread that handed
            // it over, had reached.
            unsafe { self.list.nodes.at(place) }
        })
    }

    /// Goes to the first entry.
    pub fn seek_to_first(&mut self) {
        self.place = self.list.first().map(Node::place);
    }

    /// Goes to the last entry.
    pub fn seek_to_last(&mut self) {
        self.place = self.list.last().map(Node::place);
    }

    /// Goes to the first entry with a key at or after `key`.
    pub fn seek_ge(&mut self, key: &[u8]) {
        self.place = self.list.seek_ge(key).map(Node::place);
    }

    /// Goes to the entry after this one, or to none.
    pub fn next(&mut self) {
        let next = self.node().and_then(Node::next);
        next.inspect(|next| next.prefetch_next());
        self.place = next.map(Node::place);
    }

    /// Goes to the entry before this one, or to none. A search: links point forward only.
    pub fn prev(&mut self) {
        self.place = self.node().and_then(|node| self.list.seek_lt(node.key())).map(Node::place);
    }
}
