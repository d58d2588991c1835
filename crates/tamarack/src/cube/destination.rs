//! Where the value that a get finds goes: into memory of the caller's, or nowhere, for it is pinned where it is.

use super::pinned::PinnedValue;
use super::rows::{Missing, Rows};
use crate::base::error::Result;
use crate::base::ids::Sequence;
use crate::base::pointer::ValuePointer;
use crate::base::shared_value::SharedValue;
use crate::index::table::reader::BlockSlice;
use crate::vlog::reader::SegmentReader;

/// An inline value where it lies.
#[derive(Debug)]
pub enum InlineValue<'a> {
    /// In a memtable.
    Memtable(&'a [u8]),
    /// In a block of a table.
    Block(BlockSlice),
}

impl AsRef<[u8]> for InlineValue<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Memtable(value) => value,
            Self::Block(value) => value,
        }
    }
}

/// What a get is told: at most one value, in one of three ways, and after two of these whether it may become a row.
pub trait Destination {
    /// The value is in a row.
    fn take(&mut self, value: SharedValue);

    /// The value of `key` is in the index.
    fn take_inline(&mut self, key: &[u8], value: InlineValue<'_>);

    /// The value of `key` is in the log, at `pointer`.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    fn read(&mut self, reader: &SegmentReader, pointer: ValuePointer, key: &[u8], verify: bool)
    -> Result<()>;

    /// The value of `key`, which is not in a row, may become one as of a moment.
    fn keep(&mut self, rows: &Rows, missing: Missing, key: &[u8], as_of: Sequence);
}

/// Takes a copy, over what it had.
impl Destination for Vec<u8> {
    #[inline]
    fn take(&mut self, value: SharedValue) {
        replace(self, &value);
    }

    fn take_inline(&mut self, _key: &[u8], value: InlineValue<'_>) {
        replace(self, value.as_ref());
    }

    fn read(
        &mut self,
        reader: &SegmentReader,
        pointer: ValuePointer,
        key: &[u8],
        verify: bool,
    ) -> Result<()> {
        reader.read(pointer, key, verify, self)
    }

    fn keep(&mut self, rows: &Rows, missing: Missing, key: &[u8], as_of: Sequence) {
        rows.keep(missing, key, self, as_of);
    }
}

fn replace(value: &mut Vec<u8>, bytes: &[u8]) {
    value.clear();
    value.extend_from_slice(bytes);
}

/// Pins it.
impl Destination for Option<PinnedValue> {
    #[inline]
    fn take(&mut self, value: SharedValue) {
        *self = Some(PinnedValue::shared(value));
    }

    /// A value in a memtable is copied: it is small, and the memtable, of which nothing could be freed, is large.
    fn take_inline(&mut self, key: &[u8], value: InlineValue<'_>) {
        *self = Some(match value {
            InlineValue::Memtable(value) => PinnedValue::copy(key, value),
            InlineValue::Block(value) => PinnedValue::in_block(value),
        });
    }

    fn read(
        &mut self,
        reader: &SegmentReader,
        pointer: ValuePointer,
        key: &[u8],
        verify: bool,
    ) -> Result<()> {
        *self = Some(PinnedValue::shared(reader.read_shared(pointer, key, verify)?));
        Ok(())
    }

    fn keep(&mut self, rows: &Rows, missing: Missing, key: &[u8], as_of: Sequence) {
        if let Some(value) = self {
            rows.keep_pinned(missing, key, value, as_of);
        }
    }
}
