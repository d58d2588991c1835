//! Entries that a compaction keeps, on their way into its outputs.
//!
//! Where a record is that garbage collection has moved, the relocation table of its segment tells, which takes some hundred lookups' time to be read
//! and decoded unless it is in memory. Neighbours in key order point anywhere, so that one lookup after the other would need another table each. So many
//! entries are looked up together, table by table.

use crate::base::error::Result;
use crate::base::ids::{SegmentId, Sequence};
use crate::base::keys::{EntryKind, split_internal_key, trailer_kind};
use crate::base::pointer::ValuePointer;

/// Entries in key order, as many as fit into some bytes of memory.
#[derive(Debug)]
pub struct Staged {
    bytes_max: usize,
    /// Keys and payloads, one after the other.
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// The slots whose pointers are looked up, and the relocation tables.
    moved: Vec<(ValuePointer, usize)>,
}

#[derive(Debug)]
struct Slot {
    key_start: usize,
    payload_start: usize,
    end: usize,
    /// What the payload is, if it is a pointer.
    pointer: Option<ValuePointer>,
    /// Where that leads.
    place: Result<Option<ValuePointer>>,
    may_cut: bool,
    held: Option<(Sequence, Sequence)>,
}

/// One of them.
#[derive(Debug)]
pub struct StagedEntry<'a> {
    /// Its internal key.
    pub key: &'a [u8],
    /// What it had been stored with.
    pub payload: &'a [u8],
    /// What that is, if it is a pointer ...
    pub pointer: Option<ValuePointer>,
    /// ... and where this leads: `None` if the record was left behind.
    pub place: Result<Option<ValuePointer>>,
    /// Whether a table may end before it.
    pub may_cut: bool,
    /// The first and the last of the snapshots that it is kept for alone.
    pub held: Option<(Sequence, Sequence)>,
}

impl Staged {
    /// None yet, later so many as take `bytes_max` of memory, or one.
    pub fn new(bytes_max: usize) -> Self {
        Self { bytes_max, bytes: Vec::new(), slots: Vec::new(), moved: Vec::new() }
    }

    /// Adds an entry behind the others.
    pub fn push(&mut self, key: &[u8], payload: &[u8], may_cut: bool, held: Option<(Sequence, Sequence)>) {
        let (_, trailer) = split_internal_key(key).expect("decoders refuse internal keys without a trailer");
        let pointer = (trailer_kind(trailer) == Some(EntryKind::Pointer))
            .then(|| ValuePointer::from_bytes(payload).expect("pointer payloads are value pointers"));
        let (key_start, payload_start) = (self.bytes.len(), self.bytes.len() + key.len());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(payload);
        let end = self.bytes.len();
        self.slots.push(Slot { key_start, payload_start, end, pointer, place: Ok(pointer), may_cut, held });
    }

    /// Whether no more should be added.
    pub fn is_full(&self) -> bool {
        let each = size_of::<Slot>() + size_of::<(ValuePointer, usize)>();
        self.bytes.len() + self.slots.len() * each >= self.bytes_max
    }

    /// Looks all pointers up into segments for which there is a relocation table, one table after the other.
    pub fn look_up(
        &mut self,
        table_of: impl Fn(SegmentId) -> Option<ValuePointer>,
        find: impl Fn(ValuePointer, ValuePointer) -> Result<Option<ValuePointer>>,
    ) {
        let Self { slots, moved, .. } = self;
        let pointers = slots.iter().zip(0..).filter_map(|(slot, number)| Some((slot.pointer?, number)));
        moved.extend(pointers.filter_map(|(pointer, number)| Some((table_of(pointer.segment)?, number))));
        moved.sort_unstable_by_key(|(table, number)| (table.segment, table.offset, *number));
        for (table, number) in moved.drain(..) {
            let slot = &mut slots[number];
            slot.place = find(table, slot.pointer.expect("it has one"));
        }
    }

    /// Hands over all entries, in their order, and forgets them.
    pub fn take(&mut self, mut write: impl FnMut(StagedEntry<'_>) -> Result<()>) -> Result<()> {
        for slot in self.slots.drain(..) {
            let Slot { key_start, payload_start, end, pointer, place, may_cut, held } = slot;
            let (key, payload) = (&self.bytes[key_start..payload_start], &self.bytes[payload_start..end]);
            write(StagedEntry { key, payload, pointer, place, may_cut, held })?;
        }
        self.bytes.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::base::keys::put_internal_key;

    fn pointer(segment: u32, offset: u32) -> ValuePointer {
        ValuePointer { segment: SegmentId(segment), offset, stored_len: 7 }
    }

    fn staged(pointers: &[(u32, u32)]) -> Staged {
        let mut staged = Staged::new(1 << 20);
        for (&(segment, offset), number) in pointers.iter().zip(0_u8..) {
            let mut key = Vec::new();
            put_internal_key(&mut key, &[number], Sequence(1), EntryKind::Pointer);
            staged.push(&key, &pointer(segment, offset).to_bytes(), true, None);
        }
        staged
    }

    #[test]
    fn each_relocation_table_is_asked_for_all_at_a_time() -> Result<()> {
        let mut staged = staged(&[(1, 10), (2, 20), (3, 30), (1, 40), (2, 50), (9, 60)]);
        let (asked, mut places) = (RefCell::new(Vec::new()), Vec::new());
        // Segment 2 has its table before that of segment 1; 9 was not moved.
        let table_of = |id: SegmentId| (id.0 < 9).then(|| pointer(100 - id.0, 5));
        staged.look_up(table_of, |table, from| {
            asked.borrow_mut().push(from.segment.0);
            Ok((from.segment.0 != 3).then(|| pointer(table.segment.0, from.offset + 1)))
        });
        assert_eq!(asked.into_inner(), [3, 2, 2, 1, 1]);
        staged.take(|entry| {
            places.push((entry.key[0], entry.place?.map(|place| (place.segment.0, place.offset))));
            Ok(())
        })?;
        let moved = [Some((99, 11)), Some((98, 21)), None, Some((99, 41)), Some((98, 51)), Some((9, 60))];
        assert!(places.into_iter().eq((0..).zip(moved)), "in the order in which they came");
        staged.take(|_| panic!("none is left"))
    }

    #[test]
    fn it_is_full_when_its_memory_is() {
        assert!(!Staged::new(1).is_full() && Staged::new(0).is_full(), "there is room for one");
        let each = size_of::<Slot>() + size_of::<(ValuePointer, usize)>() + 9 + 12;
        let full = |bytes_max| Staged { bytes_max, ..staged(&[(1, 1); 100]) }.is_full();
        assert!(full(100 * each) && !full(100 * each + 1));
    }
}
