//! What a row is.

use crate::base::ids::Sequence;
use crate::base::prefetch::prefetch;
use crate::base::shared_value::HEAD_BYTES;
use crate::base::sync::Arc;

/// What a row takes beside its bytes: the counters in front of them, and what the allocator needs.
const OVERHEAD_BYTES: u64 = 32;
/// What the processor fetches at a time.
const LINE_BYTES: usize = 64;
/// Behind them it sees by itself what comes next.
const LINES_PREFETCHED: usize = 8;

/// A key and its value as of a moment, in one piece of memory, which lies as [`SharedValue`](crate::base::shared_value::SharedValue) says. In its
/// head are `as_of`, then the length of the key.
#[derive(Debug, Clone)]
pub struct Row(Arc<[u8]>);

impl Row {
    /// What makes a row of a value of `key` as of a moment.
    pub fn head(key: &[u8], as_of: Sequence) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&as_of.0.to_le_bytes());
        head[8..10].copy_from_slice(&(key.len() as u16).to_le_bytes());
        head
    }

    /// The row in `bytes`, which begin with its [`head`](Self::head).
    pub fn new(bytes: Arc<[u8]>) -> Self {
        debug_assert!(bytes.len() >= HEAD_BYTES);
        Self(bytes)
    }

    /// Has the processor fetch the first lines of it at the same time, instead of each when it is looked at.
    #[inline]
    pub fn prefetch(&self) {
        self.0.chunks(LINE_BYTES).take(LINES_PREFETCHED).for_each(|line| prefetch(line.as_ptr()));
    }

    /// Whose value it is.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let len = usize::from(u16::from_le_bytes([self.0[8], self.0[9]]));
        &self.0[HEAD_BYTES..HEAD_BYTES + len]
    }

    /// The moment that it was read at, or the operation that wrote it.
    #[inline]
    pub fn as_of(&self) -> Sequence {
        Sequence(u64::from_le_bytes(*self.0.first_chunk().expect("every row has a head")))
    }

    /// Head, key and value.
    pub fn into_bytes(self) -> Arc<[u8]> {
        self.0
    }

    /// Bytes of memory that a row of so many bytes of key and value takes.
    pub fn memory_bytes_of(key_and_value: u64) -> u64 {
        HEAD_BYTES as u64 + key_and_value + OVERHEAD_BYTES
    }

    /// Bytes of memory that it takes.
    pub fn memory_bytes(&self) -> u64 {
        self.0.len() as u64 + OVERHEAD_BYTES
    }
}
