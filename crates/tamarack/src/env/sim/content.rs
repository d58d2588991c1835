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
        for (index, byte) in buf[..there].iter_mut().enumerate() {
            let at = start + index;
            *byte = match at.checked_sub(mapped.len()) {
                None => mapped[at].load(Ordering::Relaxed),
                Some(at) => self.rest.get(at).copied().unwrap_or(0),
            };
        }
        there
    }

    /// Writes `bytes` at `offset`; the file grows if need be.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mapped = self.mapped_bytes().len();
        let start = offset as usize;
        let end = start + bytes.len();
        let behind = end.saturating_sub(mapped);
        if self.rest.len() < behind {
            self.rest.resize(behind, 0);
        }
        for (index, &byte) in bytes.iter().enumerate() {
            self.store(start + index, byte);
        }
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
        let written = self.mapped_bytes().len() + self.rest.len();
        for at in range.start as usize..(range.end.min(self.len) as usize).min(written) {
            self.store(at, 0);
        }
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
        (self.mapped, self.rest) = (Some(Arc::clone(&memory)), vec![0; all.len() - bytes]);
        for (at, &byte) in all.iter().enumerate() {
            self.store(at, byte);
        }
        Some(memory)
    }

    fn mapped_bytes(&self) -> &[PlainAtomicU8] {
        self.mapped.as_ref().map_or(&[], |memory| &memory.0)
    }

    /// Writes one byte to where there is room for it.
    fn store(&mut self, at: usize, byte: u8) {
        let mapped = self.mapped_bytes();
        match at.checked_sub(mapped.len()) {
            None => mapped[at].store(byte, Ordering::Relaxed),
            Some(at) => self.rest[at] = byte,
        }
    }
}
