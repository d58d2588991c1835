//! The one way to walk over entries of the index, whatever holds them.

use crate::base::error::Result;

/// A position among entries ordered by internal key.
///
/// A new cursor is invalid until a seek succeeds. After any call has returned an error the cursor is invalid;
/// a later seek may be tried. Moving past either end makes it invalid, without an error. `key` and `payload`
/// may be called only while it is valid, and what they return lives until the next call that moves it.
pub trait Cursor: Send {
    /// Whether the cursor stands on an entry.
    fn valid(&self) -> bool;
    /// Goes to the first entry.
    fn seek_to_first(&mut self) -> Result<()>;
    /// Goes to the last entry.
    fn seek_to_last(&mut self) -> Result<()>;
    /// Goes to the first entry whose internal key is at or after `target`, an internal key.
    fn seek(&mut self, target: &[u8]) -> Result<()>;
    /// Goes to the next entry; only while valid.
    fn next(&mut self) -> Result<()>;
    /// Goes to the previous entry; only while valid.
    fn prev(&mut self) -> Result<()>;
    /// The entry's internal key, well-formed.
    fn key(&self) -> &[u8];
    /// The entry's payload: empty for a deletion, the value if inline, or the twelve bytes of
    /// [`ValuePointer::to_bytes`](crate::base::pointer::ValuePointer::to_bytes).
    fn payload(&self) -> &[u8];
    /// Key and payload of the entry it stands on, if it is valid.
    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.valid().then(|| (self.key(), self.payload()))
    }
}
