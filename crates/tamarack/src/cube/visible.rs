//! The entries that a reader at one moment sees: of every key the newest version that is not newer than the
//! moment, and no deleted keys.
//!
//! Each step copies an entry to where the caller collects them; one that fails adds none. Forward the inner cursor then stands on the entry itself,
//! backward before every version of its key; so a change of direction is a new search.

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
    /// Forward, the key of which the newest visible version was met last; backward, the one of which versions are being met.
    decided: Decided,
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
        Self { inner, order, sequence, start, end, decided: Decided::default() }
    }

    /// Adds the first visible entry at or after `key`, or of the range if `None`, to `out`; `false` if there is none.
    pub fn first_from(&mut self, key: Option<&[u8]>, out: &mut Entries<'_>) -> Result<bool> {
        let below = |start: &Vec<u8>| key.is_none_or(|key| self.order.compare_user(key, start).is_lt());
        let from = self.start.as_ref().filter(|start| below(start)).map(Vec::as_slice).or(key);
        match from {
            Some(key) => self.inner.seek(&seek_key(key, Sequence::MAX))?,
            None => self.inner.seek_to_first()?,
        }
        self.decided.forget();
        self.scan_forward(out)
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
        self.scan_backward(out)
    }

    /// Adds the next visible entry; only after a forward step that gave one.
    pub fn next_entry(&mut self, out: &mut Entries<'_>) -> Result<bool> {
        self.inner.next()?;
        self.scan_forward(out)
    }

    /// Adds the previous visible entry; only after a backward step.
    pub fn previous_entry(&mut self, out: &mut Entries<'_>) -> Result<bool> {
        self.scan_backward(out)
    }

    /// From the inner cursor on, adds the first visible entry of a key that is not decided, and leaves the cursor on it.
    fn scan_forward(&mut self, out: &mut Entries<'_>) -> Result<bool> {
        while let Some((internal_key, payload)) = self.inner.entry() {
            let (key, trailer) = split(internal_key);
            // First: behind the range there may be much that this reader does not see.
            if self.end.as_ref().is_some_and(|end| self.order.compare_user(key, end).is_ge()) {
                return Ok(false);
            }
            if self.decided.is(&self.order, key) || trailer_sequence(trailer) > self.sequence {
                self.inner.next()?;
                continue;
            }
            // The newest version that is visible: older ones are nothing to this reader.
            self.decided.set(key);
            if out.push(key, trailer, payload)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// From the inner cursor back, adds the last visible entry, and leaves the cursor before all versions of its key.
    fn scan_backward(&mut self, out: &mut Entries<'_>) -> Result<bool> {
        let mut found = false;
        self.decided.forget();
        while let Some((internal_key, payload)) = self.inner.entry() {
            let (key, trailer) = split(internal_key);
            if !self.decided.is(&self.order, key) {
                if found {
                    return Ok(true);
                }
                if self.start.as_ref().is_some_and(|start| self.order.compare_user(key, start).is_lt()) {
                    return Ok(false);
                }
                self.decided.set(key);
            }
            // Backward, the versions of a key come oldest first: the last visible one met is the newest.
            if trailer_sequence(trailer) <= self.sequence {
                if found {
                    out.pop();
                }
                found = out.push(key, trailer, payload)?;
            }
            self.inner.prev().inspect_err(|_| {
                // Whether it is the newest is not known.
                if found {
                    out.pop();
                }
            })?;
        }
        Ok(found)
    }
}

/// The key whose versions are being met, if there is one.
#[derive(Debug, Default)]
struct Decided {
    key: Vec<u8>,
    there: bool,
}

impl Decided {
    fn is(&self, order: &KeyOrder, key: &[u8]) -> bool {
        self.there && order.is_same(&self.key, key)
    }

    fn set(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.there = true;
    }

    fn forget(&mut self) {
        self.there = false;
    }
}

fn split(internal_key: &[u8]) -> (&[u8], u64) {
    split_internal_key(internal_key).expect("cursors give well-formed internal keys")
}
