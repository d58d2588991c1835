//! The entries that a reader at one moment sees: of every key the newest version that is not newer than the
//! moment, and no deleted keys.
//!
//! Going forward the inner cursor stands on the entry itself; going backward it stands before all versions of the
//! entry's key, and the entry is kept in a copy. A change of direction moves the inner cursor over the versions of
//! the present key.

use crate::base::error::{Error, Result};
use crate::base::ids::Sequence;
use crate::base::keys::{EntryKind, KeyOrder, seek_key, split_internal_key, trailer_kind, trailer_sequence};
use crate::base::pointer::ValuePointer;
use crate::index::cursor::Cursor;

/// Where a visible entry's value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Here.
    Inline(Vec<u8>),
    /// In the log.
    Pointer(ValuePointer),
}

/// One visible entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub payload: Payload,
}

/// Walks over the visible entries of a range.
pub struct VisibleCursor {
    inner: Box<dyn Cursor>,
    order: KeyOrder,
    sequence: Sequence,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
}

impl VisibleCursor {
    /// The entries of `start..end` visible at `sequence`.
    pub fn new(
        inner: Box<dyn Cursor>,
        order: KeyOrder,
        sequence: Sequence,
        start: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
    ) -> Self {
        Self { inner, order, sequence, start, end }
    }

    /// The first visible entry at or after `key`, or of the range if `None`; the inner cursor then stands behind
    /// every version of it.
    pub fn first_from(&mut self, key: Option<&[u8]>) -> Result<Option<Entry>> {
        let below = |start: &Vec<u8>| key.is_none_or(|key| self.order.compare_user(key, start).is_lt());
        let from = self.start.as_ref().filter(|start| below(start)).map(Vec::as_slice).or(key);
        match from {
            Some(key) => self.inner.seek(&seek_key(key, Sequence::MAX))?,
            None => self.inner.seek_to_first()?,
        }
        self.scan_forward()
    }

    /// The next visible entry; only after a forward step.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        self.scan_forward()
    }

    /// The last visible entry before `key`, or of the range if `None`; the inner cursor then stands before every
    /// version of it.
    pub fn last_before(&mut self, key: Option<&[u8]>) -> Result<Option<Entry>> {
        let above = |end: &Vec<u8>| key.is_none_or(|key| self.order.compare_user(key, end).is_gt());
        let from = self.end.as_ref().filter(|end| above(end)).map(Vec::as_slice).or(key);
        match from {
            None => self.inner.seek_to_last()?,
            Some(key) => {
                self.inner.seek(&seek_key(key, Sequence::MAX))?;
                if self.inner.valid() { self.inner.prev()? } else { self.inner.seek_to_last()? }
            }
        }
        self.scan_backward()
    }

    /// The previous visible entry; only after a backward step.
    pub fn previous_entry(&mut self) -> Result<Option<Entry>> {
        self.scan_backward()
    }

    /// From the inner cursor on, the first key with a visible version; leaves the cursor behind its versions.
    fn scan_forward(&mut self) -> Result<Option<Entry>> {
        let mut done: Option<Vec<u8>> = None;
        while self.inner.valid() {
            let (key, trailer) = split(self.inner.key());
            if self.end.as_ref().is_some_and(|end| self.order.compare_user(key, end).is_ge()) {
                return Ok(None);
            }
            let decided = done.as_ref().is_some_and(|done| self.order.compare_user(key, done).is_eq());
            if decided || trailer_sequence(trailer) > self.sequence {
                self.inner.next()?;
                continue;
            }
            let entry = entry(key, trailer, self.inner.payload())?;
            let mut current = done.take().unwrap_or_default();
            current.clear();
            current.extend_from_slice(key);
            self.inner.next()?;
            match entry {
                None => done = Some(current),
                Some(entry) => {
                    self.skip_versions(&current)?;
                    return Ok(Some(entry));
                }
            }
        }
        Ok(None)
    }

    /// Moves forward over the versions of `key`.
    fn skip_versions(&mut self, key: &[u8]) -> Result<()> {
        while self.inner.valid() && self.order.compare_user(split(self.inner.key()).0, key).is_eq() {
            self.inner.next()?;
        }
        Ok(())
    }

    /// From the inner cursor back, the last key with a visible version; leaves the cursor before its versions.
    fn scan_backward(&mut self) -> Result<Option<Entry>> {
        while self.inner.valid() {
            let key = split(self.inner.key()).0.to_vec();
            if self.start.as_ref().is_some_and(|start| self.order.compare_user(&key, start).is_lt()) {
                return Ok(None);
            }
            // Backward, the versions of a key come oldest first: the last visible one met is the newest.
            let mut newest = None;
            while self.inner.valid() {
                let (this, trailer) = split(self.inner.key());
                if self.order.compare_user(this, &key).is_ne() {
                    break;
                }
                if trailer_sequence(trailer) <= self.sequence {
                    newest = entry(this, trailer, self.inner.payload())?;
                }
                self.inner.prev()?;
            }
            if newest.is_some() {
                return Ok(newest);
            }
        }
        Ok(None)
    }
}

fn split(internal_key: &[u8]) -> (&[u8], u64) {
    split_internal_key(internal_key).expect("cursors give well-formed internal keys")
}

/// The entry, or `None` for a deletion.
fn entry(key: &[u8], trailer: u64, payload: &[u8]) -> Result<Option<Entry>> {
    let payload = match trailer_kind(trailer) {
        Some(EntryKind::Delete) => return Ok(None),
        Some(EntryKind::Inline) => Payload::Inline(payload.to_vec()),
        Some(EntryKind::Pointer) => ValuePointer::from_bytes(payload).map(Payload::Pointer).ok_or_else(
            // Tables check every payload when they decode it; memtables hold what we put there.
            || Error::invalid_argument("an index entry whose pointer does not decode"),
        )?,
        None => return Err(Error::invalid_argument("an index entry of unknown kind")),
    };
    Ok(Some(Entry { key: key.to_vec(), payload }))
}
