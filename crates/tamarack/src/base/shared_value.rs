//! A value in memory of its own that many may hold, with its key in front of it.
//!
//! It lies there as in a record of the log and as in a row of the row cache. So what was read of the log becomes a row, and a
//! row the value in a reader's hands, without being copied: `vlog` reads into such memory, `cube` keeps and shows it.

use std::fmt;
use std::ops::Deref;

use super::sync::Arc;

/// Bytes in front of the key, for the header of a record or of a row.
pub const HEAD_BYTES: usize = 24;

/// The bytes from `start` on; holding them holds what is in front of them.
#[derive(Clone)]
pub struct SharedValue {
    bytes: Arc<[u8]>,
    start: usize,
}

impl SharedValue {
    /// The value that begins at `start` of `bytes`, behind a head and a key.
    #[inline]
    pub fn new(bytes: Arc<[u8]>, start: usize) -> Self {
        Self { bytes, start }
    }

    /// A value of `len` zeros under `key`, behind a head of zeros.
    pub fn zeroed(key: &[u8], len: usize) -> Self {
        let start = HEAD_BYTES + key.len();
        let mut value = Self { bytes: shared_zeros(start + len), start };
        value.bytes_mut()[HEAD_BYTES..start].copy_from_slice(key);
        value
    }

    /// A copy of `value` under `key`, behind `head`.
    pub fn copy(head: &[u8; HEAD_BYTES], key: &[u8], value: &[u8]) -> Self {
        let start = HEAD_BYTES + key.len();
        let mut copy = Self { bytes: shared_zeros(start + value.len()), start };
        let bytes = copy.bytes_mut();
        bytes[..HEAD_BYTES].copy_from_slice(head);
        bytes[HEAD_BYTES..start].copy_from_slice(key);
        bytes[start..].copy_from_slice(value);
        copy
    }

    /// The value, for its only holder.
    pub fn value_mut(&mut self) -> &mut [u8] {
        let start = self.start;
        &mut self.bytes_mut()[start..]
    }

    /// What lies in front of its key, for its only holder.
    pub fn head_mut(&mut self) -> &mut [u8; HEAD_BYTES] {
        self.bytes_mut().first_chunk_mut().expect("every value has a head")
    }

    /// Head, key and value.
    #[inline]
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Head, key and value, no longer as a value.
    pub fn into_bytes(self) -> Arc<[u8]> {
        self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        Arc::get_mut(&mut self.bytes).expect("nobody else holds what is still being made")
    }
}

impl Deref for SharedValue {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl fmt::Debug for SharedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// So many zeros in memory that can be shared once it has been filled.
pub fn shared_zeros(len: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, len).collect()
}
