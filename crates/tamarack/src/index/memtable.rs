//! The memtable: the newest entries of the index, in memory.
//!
//! Entries lie in a skiplist under their internal keys, so that all versions of a user key stand together, the
//! newest first. Any number of threads insert and read at once without locks. The memtable never grows past
//! the capacity it was made with: whoever inserts reserves room beforehand, under the commit lock, and freezes
//! the memtable when none is left. It never touches the log: its entries were written there before (I-01).
//!
//! Callers: `cube::commit` inserts, `cube::read` and iterators read, a flush walks it into a table.

use std::cmp;

use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::keys::{
    EntryKind, KeyOrder, TRAILER_BYTES, split_internal_key, trailer, trailer_kind, trailer_sequence, user_key,
};
use crate::base::sync::Arc;
use crate::skiplist::{ListCursor, Node, Order, SkipList, Unlinked};

use super::cursor::Cursor;
use super::key_shape::KeyShape;

/// Sorted entries in memory; see the [module](self).
#[derive(Debug)]
pub struct Memtable {
    list: Arc<SkipList<CodedOrder>>,
    capacity_bytes: usize,
    is_sample: bool,
}

/// A sample is at most so large, which is some thousand keys that point to values, and at most this part of a memtable.
const SAMPLE_BYTES_MAX: usize = 128 << 10;
const SAMPLE_PART: usize = 16;

/// What a memtable knows about a user key at some sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemtableEntry<'a> {
    /// The operation that wrote it.
    pub sequence: Sequence,
    /// What it did.
    pub kind: EntryKind,
    /// The value or the pointer, or nothing for a deletion.
    pub payload: &'a [u8],
}

/// An entry that readers do not find yet.
#[derive(Debug)]
pub struct Prepared<'a>(Unlinked<'a>);

impl Memtable {
    /// An empty memtable for entries of altogether `capacity_bytes`, as
    /// [`entry_bytes_max`](Self::entry_bytes_max) counts them. It is fastest when most user keys have
    /// the `expected` shape, and right with any: take the [`key_shape`](Self::key_shape) of the one before.
    pub fn new(order: KeyOrder, capacity_bytes: usize, expected: Option<KeyShape>) -> Self {
        let order = CodedOrder { order, shape: expected.unwrap_or_default() };
        Self { list: Arc::new(SkipList::new(order, capacity_bytes)), capacity_bytes, is_sample: false }
    }

    /// An empty memtable of `bytes`, or `least` if that is more. If nothing is known of the shape of user keys, and `least`
    /// is not too much for that, it is a *sample*: a small one, which is to go on as one of `bytes` once it is full
    /// ([`grown`](Self::grown)).
    pub fn begin(order: KeyOrder, bytes: usize, least: usize, expected: Option<KeyShape>) -> Self {
        let sample = (bytes / SAMPLE_PART).min(SAMPLE_BYTES_MAX);
        let is_sample = expected.is_none() && least <= sample;
        let capacity = if is_sample { sample } else { bytes.max(least) };
        Self { is_sample, ..Self::new(order, capacity, expected) }
    }

    /// Whether it is small because nothing was known of the keys.
    pub fn is_sample(&self) -> bool {
        self.is_sample
    }

    /// The same entries in a memtable of `capacity_bytes`, which knows what their user keys look like. Nothing may be
    /// inserted meanwhile.
    pub fn grown(&self, capacity_bytes: usize) -> Self {
        let grown = Self::new(self.list.order().order.clone(), capacity_bytes, self.key_shape());
        let mut next = self.list.first();
        while let Some(node) = next {
            let (key, trailer) = node.key().split_at(node.key().len() - TRAILER_BYTES);
            grown.list.insert([key, trailer], node.payload());
            next = node.next();
        }
        grown
    }

    /// The most bytes of capacity that an entry takes; on average it takes some 80 less. So a caller should
    /// reserve this much only while an insert is under way, and count what [`memory_bytes`](Self::memory_bytes)
    /// says once it has returned.
    pub fn entry_bytes_max(user_key_bytes: usize, payload_bytes: usize) -> usize {
        SkipList::<CodedOrder>::entry_bytes_max(user_key_bytes + TRAILER_BYTES, payload_bytes)
    }

    /// Bytes of capacity that the `ordinal`-th insert takes, counted from 0.
    pub fn entry_bytes(ordinal: usize, user_key_bytes: usize, payload_bytes: usize) -> usize {
        SkipList::<CodedOrder>::entry_bytes(ordinal as u64, user_key_bytes + TRAILER_BYTES, payload_bytes)
    }

    /// Has the processor fetch what [`prepare`](Self::prepare) of `user_key` will look at: for who has something else to do before.
    #[inline]
    pub fn prefetch(&self, user_key: &[u8]) {
        self.list.prefetch(self.list.order().user_key_code(user_key));
    }

    /// Makes the entry of what the operation numbered `sequence` did to `user_key`, for [`link`](Self::link): whoever has a record
    /// to write does that in between, while memory answers.
    ///
    /// # Panics
    /// When the memtable has no room: ruled out by the commit path.
    #[inline]
    pub fn prepare(
        &self,
        user_key: &[u8],
        sequence: Sequence,
        kind: EntryKind,
        payload: &[u8],
    ) -> Prepared<'_> {
        let trailer = trailer(sequence, kind).to_le_bytes();
        Prepared(self.list.prepare([user_key, &trailer], payload))
    }

    /// Has readers find an entry that was made in this memtable.
    ///
    /// # Panics
    /// When the key already has an entry of that number and kind: ruled out by the commit path.
    #[inline]
    pub fn link(&self, Prepared(entry): Prepared<'_>) {
        self.list.link(entry);
    }

    /// Makes and links an entry.
    ///
    /// # Panics
    /// As those two.
    pub fn insert(&self, user_key: &[u8], sequence: Sequence, kind: EntryKind, payload: &[u8]) {
        self.link(self.prepare(user_key, sequence, kind, payload));
    }

    /// The newest version of `user_key` written at or before `sequence`.
    pub fn get(&self, user_key: &[u8], sequence: Sequence) -> Option<MemtableEntry<'_>> {
        let order = self.list.order();
        let sought = trailer(sequence, EntryKind::SEEK);
        let node = self.list.seek_ge_by(order.user_key_code(user_key), |other| {
            let (other_key, other_trailer) = split(other);
            order.order.compare_user(other_key, user_key).then(sought.cmp(&other_trailer))
        })?;
        let (found_key, found) = split(node.key());
        order.order.compare_user(found_key, user_key).is_eq().then(|| MemtableEntry {
            sequence: trailer_sequence(found),
            kind: trailer_kind(found).expect("a memtable holds only keys built from a kind"),
            payload: node.payload(),
        })
    }

    /// A cursor over all entries, which keeps them alive. It also meets entries inserted after its creation.
    pub fn cursor(&self) -> MemtableCursor {
        MemtableCursor { position: ListCursor::new(Arc::clone(&self.list)) }
    }

    /// Bytes of the capacity that inserts have taken.
    pub fn memory_bytes(&self) -> usize {
        self.list.used_bytes()
    }

    /// Bytes that all entries may take together.
    pub fn capacity(&self) -> usize {
        self.capacity_bytes
    }

    /// Whether a reader finds no entry.
    pub fn is_empty(&self) -> bool {
        self.list.first().is_none()
    }

    /// What its user keys look like; `None` if it has none.
    pub fn key_shape(&self) -> Option<KeyShape> {
        let ends = [self.list.first()?, self.list.last()?];
        let keys: Vec<_> =
            ends.into_iter().chain(self.list.sample()).map(|node| user_key(node.key())).collect();
        Some(KeyShape::of(&keys))
    }
}

/// A cursor over a memtable. It never fails.
#[derive(Debug)]
pub struct MemtableCursor {
    position: ListCursor<CodedOrder>,
}

impl MemtableCursor {
    fn node(&self) -> Node<'_> {
        self.position.node().expect("key, payload, next and prev are called only on a valid cursor")
    }
}

impl Cursor for MemtableCursor {
    fn valid(&self) -> bool {
        self.position.node().is_some()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.position.seek_to_first();
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.position.seek_to_last();
        Ok(())
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        self.position.seek_ge(target);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.position.next();
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.position.prev();
        Ok(())
    }

    fn key(&self) -> &[u8] {
        self.node().key()
    }

    fn payload(&self) -> &[u8] {
        self.node().payload()
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.position.node().map(|node| (node.key(), node.payload()))
    }
}

/// The order of internal keys, with codes that tell most user keys apart.
#[derive(Debug)]
struct CodedOrder {
    order: KeyOrder,
    shape: KeyShape,
}

impl CodedOrder {
    /// Keys that are not in the order of bytes all have the same code.
    fn user_key_code(&self, user_key: &[u8]) -> u32 {
        if self.order.is_bytewise() { self.shape.code(user_key) } else { 0 }
    }
}

impl Order for CodedOrder {
    fn compare(&self, left: &[u8], right: &[u8]) -> cmp::Ordering {
        self.order.compare(left, right)
    }

    fn code(&self, key: &[u8]) -> u32 {
        self.user_key_code(user_key(key))
    }
}

fn split(internal_key: &[u8]) -> (&[u8], u64) {
    split_internal_key(internal_key).expect("a memtable holds only keys with a trailer")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::base::comparator::{Bytewise, Descending};
    use crate::base::keys::{put_internal_key, seek_key};

    fn orders() -> [KeyOrder; 2] {
        [KeyOrder::new(Arc::new(Bytewise)), KeyOrder::new(Arc::new(Descending))]
    }

    fn kind() -> impl Strategy<Value = EntryKind> {
        prop_oneof![Just(EntryKind::Delete), Just(EntryKind::Inline), Just(EntryKind::Pointer)]
    }

    /// Short keys over few bytes, so that versions pile up and prefixes match.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![Just(0_u8), Just(b'a'), Just(b'b'), Just(255)], 0..7)
    }

    fn internal(key: &[u8], sequence: u64, kind: EntryKind) -> Vec<u8> {
        let mut out = Vec::new();
        put_internal_key(&mut out, key, Sequence(sequence), kind);
        out
    }

    fn walk(
        cursor: &mut MemtableCursor,
        step: fn(&mut MemtableCursor) -> Result<()>,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut entries = Vec::new();
        while cursor.valid() {
            entries.push((cursor.key().to_vec(), cursor.payload().to_vec()));
            step(cursor)?;
        }
        Ok(entries)
    }

    proptest! {
        #[test]
        fn agrees_with_a_history(
            operations in prop::collection::vec((key(), kind(), prop::collection::vec(any::<u8>(), 0..16)), 0..80),
            probes in prop::collection::vec((key(), 0_u64..90), 1..40),
            expected in prop::option::of((key(), key())),
        ) {
            for order in orders() {
                let expected = expected.clone().map(|(a, b)| KeyShape::of(&[&a, &b]));
                let capacity = operations.iter()
                    .map(|(key, _, payload)| Memtable::entry_bytes_max(key.len(), payload.len())).sum();
                let memtable = Memtable::new(order.clone(), capacity, expected);
                let mut history = BTreeMap::new();
                let mut sorted = Vec::new();
                for (sequence, (key, kind, payload)) in (1_u64..).zip(&operations) {
                    memtable.insert(key, Sequence(sequence), *kind, payload);
                    history.insert((&key[..], sequence), (*kind, &payload[..]));
                    sorted.push((internal(key, sequence, *kind), payload.clone()));
                }
                sorted.sort_by(|left, right| order.compare(&left.0, &right.0));

                for (key, sequence) in &probes {
                    let expected = history.range((&key[..], 0)..=(&key[..], *sequence)).next_back()
                        .map(|(&(_, sequence), &(kind, payload))| MemtableEntry {
                            sequence: Sequence(sequence), kind, payload,
                        });
                    prop_assert_eq!(memtable.get(key, Sequence(*sequence)), expected);
                }

                let mut cursor = memtable.cursor();
                prop_assert!(!cursor.valid());
                cursor.seek_to_first()?;
                prop_assert_eq!(walk(&mut cursor, Cursor::next)?, &sorted[..]);
                let grown = memtable.grown(capacity + 1000);
                let mut copies = grown.cursor();
                copies.seek_to_first()?;
                prop_assert_eq!(walk(&mut copies, Cursor::next)?, &sorted[..]);
                prop_assert_eq!(grown.memory_bytes(), memtable.memory_bytes());
                for (key, sequence) in &probes {
                    let target = seek_key(key, Sequence(*sequence));
                    cursor.seek(&target)?;
                    let from = sorted.partition_point(|(key, _)| order.compare(key, &target).is_lt());
                    prop_assert_eq!(walk(&mut cursor, Cursor::next)?, &sorted[from..]);
                }
                cursor.seek_to_last()?;
                sorted.reverse();
                prop_assert_eq!(walk(&mut cursor, Cursor::prev)?, sorted);

                prop_assert_eq!(memtable.is_empty(), operations.is_empty());
                prop_assert!(memtable.memory_bytes() <= memtable.capacity());
                prop_assert_eq!(memtable.key_shape().is_none(), operations.is_empty());
            }
        }
    }

    #[test]
    fn a_sample_is_small_and_goes_on_as_a_whole_memtable() {
        let [order, _] = orders();
        let sample = Memtable::begin(order.clone(), 64 << 10, 100, None);
        assert_eq!((sample.is_sample(), sample.capacity()), (true, 4 << 10));
        sample.insert(b"k", Sequence(7), EntryKind::Inline, b"v");
        let grown = sample.grown(64 << 10);
        assert_eq!((grown.is_sample(), grown.capacity()), (false, 64 << 10));
        assert_eq!(grown.get(b"k", Sequence(7)), sample.get(b"k", Sequence(7)));
        for (least, shape, capacity) in
            [(100, grown.key_shape(), 64 << 10), (5000, None, 64 << 10), (70_000, None, 70_000)]
        {
            let whole = Memtable::begin(order.clone(), 64 << 10, least, shape);
            assert_eq!((whole.is_sample(), whole.capacity()), (false, capacity));
        }
    }

    #[test]
    fn a_cursor_keeps_the_entries() -> Result<()> {
        let [order, _] = orders();
        let memtable = Memtable::new(order, 4096, None);
        memtable.insert(b"k", Sequence(7), EntryKind::Inline, b"v");
        let mut cursor = memtable.cursor();
        drop(memtable);
        cursor.seek_to_first()?;
        assert_eq!((cursor.key(), cursor.payload()), (&internal(b"k", 7, EntryKind::Inline)[..], &b"v"[..]));
        Ok(())
    }
}
