//! Entries that an iterator has walked over and its caller has not: their keys and inline values in one piece of memory.

use std::ops::Range;

use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::keys::{EntryKind, trailer_kind};
use crate::base::pointer::ValuePointer;

/// One entry.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Where its key is, among the bytes of all.
    pub key: Range<usize>,
    /// What is known of its value.
    pub value: Value,
}

/// Where a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Among the bytes of all.
    Inline(Range<usize>),
    /// In the log.
    Pointer(ValuePointer),
    /// Read and checked: the bytes from `start` on of a share, as long as the pointer says, stored by `codec`.
    Fetched { pointer: ValuePointer, share: usize, start: usize, codec: Codec },
    /// It could not be read, for the error of this number.
    Failed(usize),
}

/// Takes entries in.
#[derive(Debug)]
pub struct Entries<'a> {
    /// Their keys and inline values.
    pub bytes: &'a mut Vec<u8>,
    /// What there is.
    pub slots: &'a mut Vec<Slot>,
    /// Bytes of their values, as stored.
    pub value_bytes: &'a mut u64,
}

impl Entries<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of memory that they take once their values are read, at most: inline ones count twice.
    pub fn memory_bytes(&self) -> u64 {
        *self.value_bytes + (self.bytes.len() + size_of_val(&self.slots[..])) as u64
    }

    /// Adds the entry that an internal key of `key` and `trailer` has by `payload`; `false` for a deletion, which is none.
    #[inline]
    pub fn push(&mut self, key: &[u8], trailer: u64, payload: &[u8]) -> Result<bool> {
        let start = self.bytes.len();
        let key_end = start + key.len();
        let (value, value_bytes) = match trailer_kind(trailer) {
            Some(EntryKind::Pointer) => {
                // Tables check every payload when they decode it; memtables hold what we put there.
                let bad = || Error::invalid_argument("an index entry whose pointer does not decode");
                let pointer = ValuePointer::from_bytes(payload).ok_or_else(bad)?;
                self.bytes.extend_from_slice(key);
                (Value::Pointer(pointer), u64::from(pointer.stored_len))
            }
            Some(EntryKind::Inline) => {
                self.bytes.extend_from_slice(key);
                self.bytes.extend_from_slice(payload);
                (Value::Inline(key_end..self.bytes.len()), payload.len() as u64)
            }
            Some(EntryKind::Delete) => return Ok(false),
            None => return Err(Error::invalid_argument("an index entry of unknown kind")),
        };
        *self.value_bytes += value_bytes;
        self.slots.push(Slot { key: start..key_end, value });
        Ok(true)
    }

    /// Takes the last entry out again.
    pub fn pop(&mut self) {
        let Some(slot) = self.slots.pop() else { return };
        self.bytes.truncate(slot.key.start);
        *self.value_bytes -= match &slot.value {
            Value::Inline(range) => range.len() as u64,
            Value::Pointer(pointer) | Value::Fetched { pointer, .. } => u64::from(pointer.stored_len),
            Value::Failed(_) => 0,
        };
    }
}
