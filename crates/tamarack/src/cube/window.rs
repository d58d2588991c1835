//! What an iterator has read ahead: entries in the order of its direction, and their values once somebody wants them.
//!
//! Nothing here is allocated for an entry. Keys lie in one piece of memory, values in the buffers that they were read
//! into; both go on to later windows.

use super::Cube;
use super::collect::SCATTERED_BYTES_MAX;
use super::entries::{Entries, Slot, Value};
use super::reading::{Look, Reading};
use super::sweep::Sweep;
use crate::base::codec::Codec;
use crate::base::error::{Error, Result};
use crate::base::pointer::ValuePointer;
use crate::base::sync::{Arc, Ordering};
use crate::index::version::Version;
use crate::vlog::fetch::How;
use crate::vlog::plan::Wanted;

/// Entries and, as far as they were read, values.
#[derive(Debug, Default)]
pub struct Window {
    /// Ends before what it reads with goes.
    reading: Option<Reading>,
    /// Whether values have been asked for.
    begun: bool,
    /// Keys and inline values; shared with whoever reads values.
    bytes: Arc<Vec<u8>>,
    slots: Vec<Slot>,
    value_bytes: u64,
    shares: Vec<Vec<u8>>,
    errors: Vec<Error>,
}

/// What a window's values are read with.
pub struct Source<'a> {
    /// Has the log.
    pub cube: &'a Cube,
    /// Where records have gone.
    pub version: &'a Version,
    /// How they are read.
    pub how: How,
}

/// A value of a window.
pub enum Shown<'a> {
    /// As it is.
    Plain(&'a [u8]),
    /// Stored by a codec.
    Packed(ValuePointer, Codec, &'a [u8]),
}

impl Window {
    /// Takes entries in.
    pub fn entries(&mut self) -> Entries<'_> {
        if Arc::get_mut(&mut self.bytes).is_none() {
            self.bytes = Arc::default();
        }
        let bytes = Arc::get_mut(&mut self.bytes).expect("nobody else has it");
        Entries { bytes, slots: &mut self.slots, value_bytes: &mut self.value_bytes }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of their values, as stored.
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes
    }

    /// The key of entry `at`.
    pub fn key(&self, at: usize) -> &[u8] {
        &self.bytes[self.slots[at].key.clone()]
    }

    /// Whether values have been or are being read.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// Whether values are being read.
    pub fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether the value of entry `at` has to be read and nobody does.
    pub fn is_unread(&self, at: usize) -> bool {
        !self.begun && matches!(self.slots[at].value, Value::Pointer(_))
    }

    /// Begins to read every value from entry `from` on, into memory of `buffers` as far as there is some; `ahead`, for a walk, if
    /// nobody waits for them yet. Ends in [`finish`](Self::finish).
    pub fn begin(
        &mut self,
        from: usize,
        source: &Source<'_>,
        buffers: &mut Vec<Vec<u8>>,
        ahead: Option<&mut Sweep>,
    ) {
        self.begun = true;
        let mut wanted = Vec::with_capacity(self.slots.len() - from);
        for (place, slot) in self.slots.iter_mut().enumerate().skip(from) {
            let Value::Pointer(pointer) = slot.value else { continue };
            match source.cube.present_place(source.version, pointer) {
                Ok(pointer) => wanted.push(Wanted { place, pointer, key: slot.key.clone() }),
                Err(error) => {
                    slot.value = Value::Failed(self.errors.len());
                    self.errors.push(error);
                }
            }
        }
        if wanted.is_empty() {
            return;
        }
        let (count, bytes) = wanted
            .iter()
            .fold((0, 0), |(count, bytes), want| (count + 1, bytes + u64::from(want.pointer.stored_len)));
        let (keys, waits) = (Arc::clone(&self.bytes), ahead.is_none());
        let look = ahead.map_or(Look::Here, Look::Meanwhile);
        let reading = source.cube.read_values(keys, wanted, source.how, buffers, look);
        // Of larger values the order matters little. What is read ahead of a long walk costs not much more than its bytes, for `sweep`
        // bounds that.
        if bytes < SCATTERED_BYTES_MAX * count {
            let cost = bytes + if waits { reading.scattered_cost() } else { 0 };
            source.cube.counters.scan_cost_bytes.fetch_add(cost, Ordering::Relaxed);
        }
        self.reading = Some(reading);
    }

    /// Waits until the values are there that are being read. Buffers that none of them needed go back to `buffers`.
    pub fn finish(&mut self, buffers: &mut Vec<Vec<u8>>) {
        let Some(reading) = self.reading.take() else { return };
        let (fetched, mut unused) = reading.finish();
        buffers.append(&mut unused);
        for share in fetched {
            for found in share.found {
                let (start, codec, pointer) = (found.stored.range.start, found.stored.codec, found.pointer);
                self.slots[found.place].value =
                    Value::Fetched { pointer, share: self.shares.len(), start, codec };
            }
            for (place, error) in share.failed {
                self.slots[place].value = Value::Failed(self.errors.len());
                self.errors.push(error);
            }
            self.shares.push(share.bytes);
        }
    }

    /// The value of entry `at`, which was read.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn value(&self, at: usize) -> Result<Shown<'_>> {
        match &self.slots[at].value {
            Value::Inline(range) => Ok(Shown::Plain(&self.bytes[range.clone()])),
            &Value::Fetched { pointer, share, start, codec } => {
                let stored = &self.shares[share][start..start + pointer.stored_len as usize];
                Ok(if codec == Codec::None {
                    Shown::Plain(stored)
                } else {
                    Shown::Packed(pointer, codec, stored)
                })
            }
            &Value::Failed(error) => Err(self.errors[error].clone()),
            Value::Pointer(_) => unreachable!("values are shown after they were read"),
        }
    }

    /// Forgets everything, and hands its values' memory to `buffers`.
    pub fn clear(&mut self, buffers: &mut Vec<Vec<u8>>) {
        self.reading = None;
        self.begun = false;
        if let Some(bytes) = Arc::get_mut(&mut self.bytes) {
            bytes.clear();
        }
        self.slots.clear();
        self.value_bytes = 0;
        self.errors.clear();
        buffers.append(&mut self.shares);
    }
}
