//! Internal keys: a user key with the sequence number and kind of the operation that wrote it.
//!
//! An internal key is the user key followed by eight bytes, the little-endian `sequence << 8 | kind`. Internal
//! keys are ordered by user key, then by *descending* sequence number, so that a search for (key, snapshot)
//! meets the newest visible version first.

use std::cmp::Ordering;

use super::comparator::Comparator;
use super::ids::Sequence;
use super::sync::Arc;

/// Bytes that an internal key adds to its user key.
pub const TRAILER_BYTES: usize = 8;

/// The hash of user keys in filters, in the hash indexes of blocks, and in the row cache.
pub fn hash_user_key(user_key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(user_key)
}

/// What an entry of the index says about its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// The key was deleted; the payload is empty.
    Delete = 0,
    /// The payload is the value itself.
    Inline = 1,
    /// The payload is a pointer into the value log.
    Pointer = 2,
}

impl EntryKind {
    /// The kind encoded as `byte`.
    pub fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Delete),
            1 => Some(Self::Inline),
            2 => Some(Self::Pointer),
            _ => None,
        }
    }

    /// The largest kind: with it, a search key sorts before every entry of the same sequence number.
    pub const SEEK: Self = Self::Pointer;
}

/// The trailer of an internal key as a number.
pub fn trailer(sequence: Sequence, kind: EntryKind) -> u64 {
    debug_assert!(sequence <= Sequence::MAX);
    sequence.0 << 8 | kind as u64
}

/// The sequence number in a trailer.
pub fn trailer_sequence(trailer: u64) -> Sequence {
    Sequence(trailer >> 8)
}

/// The kind in a trailer, if it is one.
pub fn trailer_kind(trailer: u64) -> Option<EntryKind> {
    EntryKind::from_byte(trailer as u8)
}

/// Appends the internal key of (`user_key`, `sequence`, `kind`) to `out`.
pub fn put_internal_key(out: &mut Vec<u8>, user_key: &[u8], sequence: Sequence, kind: EntryKind) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&trailer(sequence, kind).to_le_bytes());
}

/// The internal key that sorts before every entry of `user_key` visible at `sequence`, and after all newer.
pub fn seek_key(user_key: &[u8], sequence: Sequence) -> Vec<u8> {
    let mut key = Vec::with_capacity(user_key.len() + TRAILER_BYTES);
    put_internal_key(&mut key, user_key, sequence, EntryKind::SEEK);
    key
}

/// The user key and trailer of an internal key; `None` if it is shorter than a trailer.
pub fn split_internal_key(internal_key: &[u8]) -> Option<(&[u8], u64)> {
    let (user_key, trailer) = internal_key.split_last_chunk::<TRAILER_BYTES>()?;
    Some((user_key, u64::from_le_bytes(*trailer)))
}

/// The user key of a well-formed internal key, one that a decoder has already checked.
pub fn user_key(internal_key: &[u8]) -> &[u8] {
    split_internal_key(internal_key).expect("decoders refuse internal keys without a trailer").0
}

/// The order of internal keys over a comparator of user keys. Cheap to clone.
#[derive(Debug, Clone)]
pub struct KeyOrder {
    comparator: Arc<dyn Comparator>,
    bytewise: bool,
}

impl KeyOrder {
    /// The order over `comparator`.
    pub fn new(comparator: Arc<dyn Comparator>) -> Self {
        Self { bytewise: comparator.is_bytewise(), comparator }
    }

    /// The comparator of user keys.
    pub fn comparator(&self) -> &Arc<dyn Comparator> {
        &self.comparator
    }

    /// Whether user keys are ordered as unsigned bytes.
    pub fn is_bytewise(&self) -> bool {
        self.bytewise
    }

    /// The order of two user keys.
    pub fn compare_user(&self, left: &[u8], right: &[u8]) -> Ordering {
        if self.bytewise { left.cmp(right) } else { self.comparator.compare(left, right) }
    }

    /// Whether two user keys are equal.
    #[inline]
    pub fn is_same(&self, left: &[u8], right: &[u8]) -> bool {
        left == right || (!self.bytewise && self.comparator.compare(left, right).is_eq())
    }

    /// The order of two well-formed internal keys: user keys ascending, trailers descending.
    pub fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let (left_key, left_trailer) =
            split_internal_key(left).expect("decoders refuse internal keys without a trailer");
        let (right_key, right_trailer) =
            split_internal_key(right).expect("decoders refuse internal keys without a trailer");
        self.compare_user(left_key, right_key).then(right_trailer.cmp(&left_trailer))
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparator::Bytewise;
    use super::*;

    fn internal(key: &[u8], sequence: u64, kind: EntryKind) -> Vec<u8> {
        let mut out = Vec::new();
        put_internal_key(&mut out, key, Sequence(sequence), kind);
        out
    }

    #[test]
    fn newer_versions_come_first() {
        let order = KeyOrder::new(Arc::new(Bytewise));
        let old = internal(b"k", 1, EntryKind::Pointer);
        let new = internal(b"k", 2, EntryKind::Delete);
        assert_eq!(order.compare(&new, &old), Ordering::Less);
        assert_eq!(order.compare(&internal(b"", 9, EntryKind::Inline), &new), Ordering::Less);
    }

    #[test]
    fn a_seek_key_meets_the_newest_visible_version() {
        let order = KeyOrder::new(Arc::new(Bytewise));
        let seek = seek_key(b"k", Sequence(5));
        assert!(order.compare(&seek, &internal(b"k", 6, EntryKind::Pointer)).is_gt());
        assert!(order.compare(&seek, &internal(b"k", 5, EntryKind::Pointer)).is_le());
        assert!(order.compare(&seek, &internal(b"k", 5, EntryKind::Delete)).is_lt());
    }

    #[test]
    fn short_internal_keys_are_refused() {
        assert_eq!(split_internal_key(b"1234567"), None);
        assert_eq!(split_internal_key(b"12345678").map(|(key, _)| key.len()), Some(0));
    }
}
