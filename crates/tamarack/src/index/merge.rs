//! Several cursors seen as one.
//!
//! The children with an entry left lie in a binary heap, the next one to deliver on top. All of them stand on
//! the far side of the merged position in the direction of travel; a change of direction moves each child to
//! its other side. No two children may hold the same internal key, which the index guarantees: an operation
//! has one sequence number and enters the index once.
//!
//! Callers: reads over memtables and tables, and compactions.

use std::cmp::Ordering;

use crate::base::error::Result;
use crate::base::keys::KeyOrder;

use super::cursor::Cursor;

/// A cursor over all entries of `children`; over one child it is that child itself.
pub fn merge(order: KeyOrder, mut children: Vec<Box<dyn Cursor>>) -> Box<dyn Cursor> {
    match children.pop() {
        Some(only) if children.is_empty() => only,
        last => {
            children.extend(last);
            Box::new(MergingCursor::new(order, children))
        }
    }
}

/// The entries of several cursors in one order; see the [module](self).
pub struct MergingCursor {
    order: KeyOrder,
    children: Vec<Box<dyn Cursor>>,
    /// Indexes of the valid children, a heap by their keys. Empty: the cursor is invalid.
    heap: Vec<usize>,
    direction: Direction,
    /// The key left at a change of direction; kept for its allocation.
    turning_key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

impl MergingCursor {
    /// A cursor over all entries of `children`, ordered by `order` as they are.
    pub fn new(order: KeyOrder, children: Vec<Box<dyn Cursor>>) -> Self {
        let heap = Vec::with_capacity(children.len());
        Self { order, children, heap, direction: Direction::Forward, turning_key: Vec::new() }
    }

    /// Places every child anew and builds the heap of those that found an entry. After an error it is empty.
    fn place_all(
        &mut self,
        direction: Direction,
        mut place: impl FnMut(usize, &mut dyn Cursor) -> Result<()>,
    ) -> Result<()> {
        self.heap.clear();
        self.direction = direction;
        for (index, child) in self.children.iter_mut().enumerate() {
            place(index, child.as_mut())?;
        }
        self.heap.extend((0..self.children.len()).filter(|&index| self.children[index].valid()));
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
        Ok(())
    }

    /// Moves on in `direction` by one entry.
    fn step(&mut self, direction: Direction) -> Result<()> {
        let top = *self.heap.first().expect("next and prev are called only on a valid cursor");
        if self.direction != direction {
            return self.turn(top, direction);
        }
        let child = &mut self.children[top];
        let moved = advance(child.as_mut(), direction);
        let valid = child.valid();
        if moved.is_err() {
            self.heap.clear();
        } else if !valid {
            self.heap.swap_remove(0);
        }
        if self.heap.len() > 1 {
            self.sift_down(0);
        }
        moved
    }

    /// Moves on by one entry against the direction so far: every other child goes from its side of the
    /// current key, which it does not hold itself, to the other side.
    fn turn(&mut self, current: usize, direction: Direction) -> Result<()> {
        let mut key = std::mem::take(&mut self.turning_key);
        key.clear();
        key.extend_from_slice(self.children[current].key());
        let turned = self.place_all(direction, |index, child| {
            if index == current {
                return advance(child, direction);
            }
            child.seek(&key)?;
            match direction {
                Direction::Forward => Ok(()),
                Direction::Reverse if child.valid() => child.prev(),
                Direction::Reverse => child.seek_to_last(),
            }
        });
        self.turning_key = key;
        turned
    }

    /// Lets the entry at `at` of the heap sink until its children are not ahead of it.
    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut foremost = at;
            for below in [2 * at + 1, 2 * at + 2] {
                if below < self.heap.len() && self.is_ahead(below, foremost) {
                    foremost = below;
                }
            }
            if foremost == at {
                return;
            }
            self.heap.swap(at, foremost);
            at = foremost;
        }
    }

    /// Whether the child at `left` of the heap delivers before the one at `right`.
    fn is_ahead(&self, left: usize, right: usize) -> bool {
        let key = |at: usize| self.children[self.heap[at]].key();
        let ahead = match self.direction {
            Direction::Forward => Ordering::Less,
            Direction::Reverse => Ordering::Greater,
        };
        self.order.compare(key(left), key(right)) == ahead
    }

    fn current(&self) -> &dyn Cursor {
        let top = *self.heap.first().expect("key and payload are called only on a valid cursor");
        self.children[top].as_ref()
    }
}

fn advance(cursor: &mut dyn Cursor, direction: Direction) -> Result<()> {
    match direction {
        Direction::Forward => cursor.next(),
        Direction::Reverse => cursor.prev(),
    }
}

impl Cursor for MergingCursor {
    fn valid(&self) -> bool {
        !self.heap.is_empty()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.place_all(Direction::Forward, |_, child| child.seek_to_first())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.place_all(Direction::Reverse, |_, child| child.seek_to_last())
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.place_all(Direction::Forward, |_, child| child.seek(target))
    }

    fn next(&mut self) -> Result<()> {
        self.step(Direction::Forward)
    }

    fn prev(&mut self) -> Result<()> {
        self.step(Direction::Reverse)
    }

    fn key(&self) -> &[u8] {
        self.current().key()
    }

    fn payload(&self) -> &[u8] {
        self.current().payload()
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.heap.first().and_then(|&top| self.children[top].entry())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::base::comparator::Bytewise;
    use crate::base::error::Error;
    use crate::base::ids::Sequence;
    use crate::base::keys::{EntryKind, put_internal_key};
    use crate::base::sync::Arc;

    fn order() -> KeyOrder {
        KeyOrder::new(Arc::new(Bytewise))
    }

    fn internal(user_key: &[u8], sequence: u64) -> Vec<u8> {
        let mut key = Vec::new();
        put_internal_key(&mut key, user_key, Sequence(sequence), EntryKind::Inline);
        key
    }

    /// A cursor over a sorted vector that fails when its countdown of calls reaches zero.
    struct VecCursor {
        entries: Vec<Vec<u8>>,
        at: Option<usize>,
        calls_until_failure: Option<u32>,
    }

    impl VecCursor {
        fn new(mut entries: Vec<Vec<u8>>) -> Self {
            entries.sort_by(|left, right| order().compare(left, right));
            Self { entries, at: None, calls_until_failure: None }
        }

        fn go(&mut self, at: Option<usize>) -> Result<()> {
            if let Some(calls) = &mut self.calls_until_failure {
                *calls = calls.saturating_sub(1);
                if *calls == 0 {
                    self.calls_until_failure = None;
                    self.at = None;
                    return Err(Error::corruption(Path::new("000001.table"), 0, "a block", "none"));
                }
            }
            self.at = at.filter(|&at| at < self.entries.len());
            Ok(())
        }
    }

    impl Cursor for VecCursor {
        fn valid(&self) -> bool {
            self.at.is_some()
        }
        fn seek_to_first(&mut self) -> Result<()> {
            self.go(Some(0))
        }
        fn seek_to_last(&mut self) -> Result<()> {
            self.go(self.entries.len().checked_sub(1))
        }
        fn seek(&mut self, target: &[u8]) -> Result<()> {
            self.go(Some(self.entries.partition_point(|key| order().compare(key, target).is_lt())))
        }
        fn next(&mut self) -> Result<()> {
            self.go(Some(self.at.expect("valid") + 1))
        }
        fn prev(&mut self) -> Result<()> {
            self.go(self.at.expect("valid").checked_sub(1))
        }
        fn key(&self) -> &[u8] {
            &self.entries[self.at.expect("valid")]
        }
        fn payload(&self) -> &[u8] {
            self.key()
        }
    }

    #[derive(Debug, Clone)]
    enum Move {
        First,
        Last,
        Seek(Vec<u8>),
        Next,
        Prev,
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let one = prop_oneof![
            1 => Just(Move::First),
            1 => Just(Move::Last),
            2 => (user_key(), 0_u64..60).prop_map(|(key, sequence)| Move::Seek(internal(&key, sequence))),
            8 => Just(Move::Next),
            8 => Just(Move::Prev),
        ];
        prop::collection::vec(one, 1..60)
    }

    fn user_key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(0_u8..4, 0..3)
    }

    fn apply(cursor: &mut dyn Cursor, movement: &Move) -> Result<()> {
        match movement {
            Move::First => cursor.seek_to_first(),
            Move::Last => cursor.seek_to_last(),
            Move::Seek(target) => cursor.seek(target),
            Move::Next if cursor.valid() => cursor.next(),
            Move::Prev if cursor.valid() => cursor.prev(),
            Move::Next | Move::Prev => Ok(()),
        }
    }

    /// Deals `keys` out to `count` children; the keys become unique by their sequence numbers.
    fn deal(keys: &[(Vec<u8>, usize)], count: usize) -> (Vec<Vec<Vec<u8>>>, VecCursor) {
        let mut children = vec![Vec::new(); count];
        let mut all = Vec::new();
        for (sequence, (key, child)) in (1..).zip(keys) {
            let key = internal(key, sequence);
            if let Some(child) = child.checked_rem(count) {
                children[child].push(key.clone());
                all.push(key);
            }
        }
        (children, VecCursor::new(all))
    }

    fn boxed(children: Vec<Vec<Vec<u8>>>) -> Vec<Box<dyn Cursor>> {
        children.into_iter().map(|keys| Box::new(VecCursor::new(keys)) as Box<dyn Cursor>).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_one_sorted_vector(
            keys in prop::collection::vec((user_key(), any::<usize>()), 0..60),
            count in 0_usize..9,
            moves in moves(),
        ) {
            let (children, mut model) = deal(&keys, count);
            let mut merged = merge(order(), boxed(children));
            prop_assert!(!merged.valid());
            for movement in &moves {
                apply(merged.as_mut(), movement)?;
                apply(&mut model, movement)?;
                prop_assert_eq!(merged.valid(), model.valid());
                if model.valid() {
                    prop_assert_eq!(merged.key(), model.key());
                    prop_assert_eq!(merged.payload(), model.payload());
                }
            }
        }

        #[test]
        fn an_error_invalidates_until_the_next_seek(
            keys in prop::collection::vec((user_key(), any::<usize>()), 1..60),
            count in 2_usize..6,
            faulty in any::<prop::sample::Index>(),
            calls in 1_u32..20,
            moves in moves(),
        ) {
            let (children, mut model) = deal(&keys, count);
            let mut cursors: Vec<_> = children.into_iter().map(VecCursor::new).collect();
            faulty.get_mut(&mut cursors[..]).calls_until_failure = Some(calls);
            let cursors = cursors.into_iter().map(|cursor| Box::new(cursor) as Box<dyn Cursor>).collect();
            let mut merged = MergingCursor::new(order(), cursors);
            for movement in &moves {
                if apply(&mut merged, movement).is_err() {
                    model.at = None;
                } else {
                    apply(&mut model, movement)?;
                }
                prop_assert_eq!(merged.valid(), model.valid());
                if model.valid() {
                    prop_assert_eq!(merged.key(), model.key());
                }
            }
        }
    }
}
