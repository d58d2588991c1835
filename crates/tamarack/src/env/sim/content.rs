//! The bytes of a file as everybody sees them at present, its mappings included.
//!
//! A file that was mapped keeps its first bytes in memory that never moves, and that mappings share; what lies behind
//! is an ordinary vector. Bytes at and behind the length are zero, so that growing a file needs no writing.

#![expect(unsafe_code, reason = "a mapping hands out its bytes as a slice")]

use std::ops::Range;
use std::slice;

use crate::base::sync::{Arc, Ordering, PlainAtomicU8};

/// Memory that a file and its mappings share. Bytes are atomics, for an image of the disk may be taken while somebody
/// writes.
#[derive(Debug)]
pub struct Memory(Box<[PlainAtomicU8]>);

impl Memory {
    fn new(bytes: usize) -> Self {
        Self((0..bytes).map(|_| PlainAtomicU8::new(0)).collect())
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The bytes of `range`.
    ///
    /// # Safety
    /// While the result lives nobody writes any byte of it.
    pub unsafe fn bytes(&self, range: Range<usize>) -> &[u8] {
        let part = &self.0[range];
        // SAFETY: a `PlainAtomicU8` has the layout of a `u8`, `part` lives as long as `self`, and the caller promises that
        // nobody writes meanwhile.
        unsafe { slice::from_raw_parts(part.as_ptr().cast::<u8>(), part.len()) }
    }
}

/// A file's bytes and length.
#[derive(Debug, Default)]
pub struct Content {
    len: u64,
    mapped: Option<Arc<Memory>>,
    /// The bytes behind what is mapped, as far as any was written.
    rest: Vec<u8>,
}

impl Content {
    /// A file that holds `bytes`.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len() as u64, mapped: None, rest: bytes }
    }

    /// Its length.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads from `offset` until `buf` is full or the file ends; how many bytes that were.
    pub fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let there = self.len.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (mapped, start) = (self.mapped_bytes(), offset as usize);
        let (before, behind) = split(start..start + there, mapped.len());
        let (first, second) = buf[..there].split_at_mut(before.len());
        for (byte, memory) in first.iter_mut().zip(&mapped[before]) {
            *byte = memory.load(Ordering::Relaxed);
        }
        let written = self.rest.get(behind.start..).unwrap_or_default();
        let written = &written[..written.len().min(second.len())];
        second[..written.len()].copy_from_slice(written);
        second[written.len()..].fill(0);
        there
    }

    /// Writes `bytes` at `offset`; the file grows if need be.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        let (before, behind) = split(start..end, self.mapped_bytes().len());
        let (first, second) = bytes.split_at(before.len());
        for (memory, byte) in self.mapped_bytes()[before].iter().zip(first) {
            memory.store(*byte, Ordering::Relaxed);
        }
        if self.rest.len() < behind.end {
            self.rest.resize(behind.end, 0);
        }
        self.rest[behind].copy_from_slice(second);
        self.len = self.len.max(end as u64);
    }

    /// Cuts or extends the file with zeros.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.zero(len..self.len);
        }
        self.len = len;
    }

    /// Turns the bytes of `range` into zeros, as far as the file reaches.
    pub fn zero(&mut self, range: Range<u64>) {
        let mapped = self.mapped_bytes().len();
        let end = (range.end.min(self.len) as usize).min(mapped + self.rest.len());
        let (before, behind) = split((range.start as usize).min(end)..end, mapped);
        self.mapped_bytes()[before].iter().for_each(|memory| memory.store(0, Ordering::Relaxed));
        self.rest[behind].fill(0);
    }

    /// The memory of the first `len` bytes, to be shared with a mapping. `None` if a shorter part is mapped already.
    pub fn map(&mut self, len: u64) -> Option<Arc<Memory>> {
        let bytes = len as usize;
        let reusable = self.mapped.as_ref().filter(|memory| memory.len() >= bytes);
        if let Some(memory) = reusable {
            return Some(Arc::clone(memory));
        }
        if self.mapped.as_ref().is_some_and(|memory| Arc::strong_count(memory) > 1) {
            return None;
        }
        let mut all = vec![0; (self.len as usize).max(bytes)];
        self.read(&mut all, 0);
        let memory = Arc::new(Memory::new(bytes));
        for (shared, &byte) in memory.0.iter().zip(&all) {
            shared.store(byte, Ordering::Relaxed);
        }
        (self.mapped, self.rest) = (Some(Arc::clone(&memory)), all.split_off(bytes));
        Some(memory)
    }

    fn mapped_bytes(&self) -> &[PlainAtomicU8] {
        self.mapped.as_ref().map_or(&[], |memory| &memory.0)
    }
}

/// The part of `range` before `mapped`, and the part behind it, counted from there.
fn split(range: Range<usize>, mapped: usize) -> (Range<usize>, Range<usize>) {
    let before = range.start.min(mapped)..range.end.min(mapped);
    (before, range.start.saturating_sub(mapped)..range.end.saturating_sub(mapped))
}
