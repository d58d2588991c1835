//! A value that stays in memory where a read has found it.

use std::fmt;
use std::ops::Deref;

use crate::base::shared_value::{HEAD_BYTES, SharedValue};
use crate::index::table::reader::BlockSlice;

/// A value in memory that it keeps in place; see [`Db::get_pinned`](crate::Db::get_pinned). It never changes, whatever
/// becomes of its key, and may be kept as long as one likes, also after the database was closed. Cheap to clone; clones
/// share the memory.
///
/// # What it holds
///
/// A value from the row cache or from the log holds itself and its key; so does one that was still in a memtable, of which it
/// is a small copy. An inline value ([`Options::inline_value_max`](crate::Options::inline_value_max)) that was found in a table holds
/// the block that it lies in, of [`Options::block_bytes`](crate::Options::block_bytes) or a little more, unless the read has put
/// it into the row cache. What caches have dropped meanwhile is held all the same, and not counted in
/// [`Options::memory_max`](crate::Options::memory_max): who keeps many for long copies them ([`into_vec`](Self::into_vec)). Nothing on
/// disk is held.
#[derive(Clone)]
pub struct PinnedValue(Memory);

#[derive(Clone)]
enum Memory {
    OfItsOwn(SharedValue),
    Block(BlockSlice),
}

impl PinnedValue {
    /// A value in memory of its own.
    pub(crate) fn shared(value: SharedValue) -> Self {
        Self(Memory::OfItsOwn(value))
    }

    /// A copy of the `value` of `key`.
    pub(crate) fn copy(key: &[u8], value: &[u8]) -> Self {
        Self::shared(SharedValue::copy(&[0; HEAD_BYTES], key, value))
    }

    /// A value in a block.
    pub(crate) fn in_block(value: BlockSlice) -> Self {
        Self(Memory::Block(value))
    }

    /// The value of `key` in memory of its own, to which it is copied if it is not there.
    pub(crate) fn in_memory_of_its_own(&mut self, key: &[u8]) -> &mut SharedValue {
        if let Memory::Block(value) = &self.0 {
            *self = Self::copy(key, value);
        }
        match &mut self.0 {
            Memory::OfItsOwn(value) => value,
            Memory::Block(_) => unreachable!("it was copied out of its block"),
        }
    }

    /// A copy, of exactly its length, which holds nothing else.
    pub fn into_vec(self) -> Vec<u8> {
        self.to_vec()
    }
}

impl Deref for PinnedValue {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::OfItsOwn(value) => value,
            Memory::Block(value) => value,
        }
    }
}

impl AsRef<[u8]> for PinnedValue {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for PinnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Equal to the same bytes, wherever they are.
impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for PinnedValue {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for PinnedValue {}
