//! The disk: its content, and the log of what was done to it.
//!
//! The log is what a device sees: writes, ranges made zeros, and flushes, in the order in which they were answered. A flush
//! promises that everything answered before it survives a loss of power; nothing else does.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::content::Content;

/// Bytes of the disk: XFS takes no less than 300 MiB. It is sparse.
pub const DISK_BYTES: u64 = 320 << 20;

/// Bytes that a device writes as a whole.
pub const SECTOR: u64 = 512;

/// Something done to the disk.
#[derive(Clone)]
pub enum Entry {
    /// Bytes were written from an offset on.
    Write(u64, Arc<[u8]>),
    /// So many bytes from an offset on were made zeros.
    Clear(u64, u64),
    /// Everything before was made durable.
    Flush,
}

impl Entry {
    /// Does it to `content`.
    pub fn apply(&self, content: &mut Content) {
        match self {
            Self::Write(offset, bytes) => content.write(*offset, bytes),
            Self::Clear(offset, len) => content.clear(*offset, *len),
            Self::Flush => {}
        }
    }
}

/// What one disk is at a moment.
#[derive(Default)]
struct State {
    content: Content,
    log: Vec<Entry>,
    /// Which disk this is: each that is put in has its own number, so that nobody writes to one that is gone.
    number: u64,
}

/// The one disk of the machine, which can be taken out and replaced.
#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

impl Disk {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts in another disk, with an empty log; returns its number.
    pub fn put_in(&self, content: Content) -> u64 {
        let mut state = self.lock();
        let number = state.number + 1;
        *state = State { content, log: Vec::new(), number };
        number
    }

    /// The number of the disk that is in.
    pub fn number(&self) -> u64 {
        self.lock().number
    }

    /// What it holds.
    pub fn content(&self) -> Content {
        self.lock().content.clone()
    }

    /// What was done to it since it was put in.
    pub fn log(&self) -> Vec<Entry> {
        self.lock().log.clone()
    }

    /// How many things were done to it.
    pub fn position(&self) -> u64 {
        self.lock().log.len() as u64
    }

    /// Reads from disk `number`; false if that is not in any more.
    pub fn read(&self, number: u64, offset: u64, into: &mut [u8]) -> bool {
        let state = self.lock();
        state.content.read(offset, into);
        state.number == number
    }

    /// Does something to disk `number`; false if that is not in any more.
    pub fn act(&self, number: u64, entry: Entry) -> bool {
        let mut state = self.lock();
        if state.number != number {
            return false;
        }
        entry.apply(&mut state.content);
        state.log.push(entry);
        true
    }
}
