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

/// An entry of which the value is still to be found: its key's place.
#[derive(Debug)]
pub struct Begun(Range<usize>);

impl Entries<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of their values, as stored.
    pub fn value_bytes(&self) -> u64 {
        *self.value_bytes
    }

    /// Begins an entry for `key`.
    pub fn begin(&mut self, key: &[u8]) -> Begun {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        Begun(start..self.bytes.len())
    }

    /// The key of an entry.
    pub fn key(&self, begun: &Begun) -> &[u8] {
        &self.bytes[begun.0.clone()]
    }

    /// Begins the same entry anew with another spelling of its key.
    pub fn begin_again(&mut self, begun: &mut Begun, key: &[u8]) {
        self.bytes.truncate(begun.0.start);
        *begun = self.begin(key);
    }

    /// The value that an internal key with `trailer` has by `payload`; `None` for a deletion.
    pub fn value(&mut self, trailer: u64, payload: &[u8]) -> Result<Option<Value>> {
        match trailer_kind(trailer) {
            Some(EntryKind::Delete) => Ok(None),
            Some(EntryKind::Inline) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(payload);
                Ok(Some(Value::Inline(start..self.bytes.len())))
            }
            Some(EntryKind::Pointer) => {
                let pointer = ValuePointer::from_bytes(payload);
                // Tables check every payload when they decode it; memtables hold what we put there.
                let bad = || Error::invalid_argument("an index entry whose pointer does not decode");
                pointer.map(|pointer| Some(Value::Pointer(pointer))).ok_or_else(bad)
            }
            None => Err(Error::invalid_argument("an index entry of unknown kind")),
        }
    }

    /// Ends an entry. Whether it stays: one without a value does not.
    pub fn end(&mut self, begun: Begun, value: Option<Value>) -> bool {
        let Some(value) = value else {
            self.bytes.truncate(begun.0.start);
            return false;
        };
        *self.value_bytes += match &value {
            Value::Pointer(pointer) => u64::from(pointer.stored_len),
            _ => (self.bytes.len() - begun.0.end) as u64,
        };
        self.slots.push(Slot { key: begun.0, value });
        true
    }
}
