//! The entries that a reader at one moment sees: of every key the newest version that is not newer than the
//! moment, and no deleted keys.
//!
//! Each step copies an entry to where the caller collects them, and leaves the inner cursor beyond every version of its
//! key. So a change of direction is a new search.

use super::entries::Entries;
use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::keys::{KeyOrder, seek_key, split_internal_key, trailer_sequence};
use crate::index::cursor::Cursor;

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

    /// Adds the first visible entry at or after `key`, or of the range if `None`, to `out`; `false` if there is none.
    pub fn first_from(&mut self, key: Option<&[u8]>, out: &mut Entries<'_>) -> Result<bool> {
        let below = |start: &Vec<u8>| key.is_none_or(|key| self.order.compare_user(key, start).is_lt());
        let from = self.start.as_ref().filter(|start| below(start)).map(Vec::as_slice).or(key);
        match from {
            Some(key) => self.inner.seek(&seek_key(key, Sequence::MAX))?,
            None => self.inner.seek_to_first()?,
        }
        self.next_entry(out)
    }

    /// Adds the last visible entry before `key`, or of the range if `None`, to `out`; `false` if there is none.
    pub fn last_before(&mut self, key: Option<&[u8]>, out: &mut Entries<'_>) -> Result<bool> {
        let above = |end: &Vec<u8>| key.is_none_or(|key| self.order.compare_user(key, end).is_gt());
        let from = self.end.as_ref().filter(|end| above(end)).map(Vec::as_slice).or(key);
        match from {
            None => self.inner.seek_to_last()?,
            Some(key) => {
                self.inner.seek(&seek_key(key, Sequence::MAX))?;
                if self.inner.valid() { self.inner.prev()? } else { self.inner.seek_to_last()? }
            }
        }
        self.previous_entry(out)
    }

    /// Adds the next visible entry; only after a forward step.
    pub fn next_entry(&mut self, out: &mut Entries<'_>) -> Result<bool> {
        while self.inner.valid() {
            let (key, trailer) = split(self.inner.key());
            if self.end.as_ref().is_some_and(|end| self.order.compare_user(key, end).is_ge()) {
                return Ok(false);
            }
            if trailer_sequence(trailer) > self.sequence {
                self.inner.next()?;
                continue;
            }
            // The newest version that is visible: it decides, and the older ones are nothing to this reader.
            let begun = out.begin(key);
            let value = out.value(trailer, self.inner.payload())?;
            self.inner.next()?;
            while self.inner.valid() {
                let (next, _) = split(self.inner.key());
                if self.order.compare_user(next, out.key(&begun)).is_ne() {
                    break;
                }
                self.inner.next()?;
            }
            if out.end(begun, value) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds the previous visible entry; only after a backward step.
    pub fn previous_entry(&mut self, out: &mut Entries<'_>) -> Result<bool> {
        while self.inner.valid() {
            let (key, _) = split(self.inner.key());
            if self.start.as_ref().is_some_and(|start| self.order.compare_user(key, start).is_lt()) {
                return Ok(false);
            }
            let mut begun = out.begin(key);
            // Backward, the versions of a key come oldest first: the last visible one met is the newest, and the one
            // whose spelling of the key is shown.
            let mut newest = None;
            while self.inner.valid() {
                let (key, trailer) = split(self.inner.key());
                if self.order.compare_user(key, out.key(&begun)).is_ne() {
                    break;
                }
                if trailer_sequence(trailer) <= self.sequence {
                    out.begin_again(&mut begun, key);
                    newest = out.value(trailer, self.inner.payload())?;
                }
                self.inner.prev()?;
            }
            if out.end(begun, newest) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn split(internal_key: &[u8]) -> (&[u8], u64) {
    split_internal_key(internal_key).expect("cursors give well-formed internal keys")
}
