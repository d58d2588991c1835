//! What changes a file, and what becomes of its bytes by that: the entries of a file's journal.

use std::ops::Range;

use crate::base::sync::Arc;

/// A change of a file that is not durable yet.
#[derive(Debug, Clone)]
pub struct Effect {
    /// When it was made: changes of the whole disk are counted.
    pub at: u64,
    /// What it does.
    pub change: Change,
}

/// What a change does.
#[derive(Debug, Clone)]
pub enum Change {
    /// Bytes were written. Through a mapping they may be caught half written.
    Write { offset: u64, bytes: Arc<Vec<u8>>, mapped: bool },
    /// The file was cut, or extended with zeros.
    SetLength(u64),
    /// Space was reserved up to here, and the file extended to it.
    Reserve(u64),
    /// A range was given back, and reads as zeros.
    Punch(Range<u64>),
    /// A range was made to read as zeros, its space reserved.
    Zero(Range<u64>),
}

impl Change {
    /// The file's length after it, if it was `len` before.
    pub fn len_after(&self, len: u64) -> u64 {
        match self {
            // What is mapped lies inside the file.
            Self::Write { mapped: true, .. } | Self::Punch(_) => len,
            Self::Write { offset, bytes, .. } => len.max(offset + bytes.len() as u64),
            Self::SetLength(len) => *len,
            Self::Reserve(end) | Self::Zero(Range { end, .. }) => len.max(*end),
        }
    }

    /// Which change it is, but for its bytes.
    pub fn numbers(&self) -> Vec<u64> {
        match self {
            Self::Write { offset, mapped, .. } => vec![0, *offset, u64::from(*mapped)],
            Self::SetLength(len) => vec![1, *len],
            Self::Reserve(end) => vec![2, *end],
            Self::Punch(range) => vec![3, range.start, range.end],
            Self::Zero(range) => vec![4, range.start, range.end],
        }
    }

    /// What it writes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Write { bytes, .. } => bytes,
            Self::SetLength(_) | Self::Reserve(_) | Self::Punch(_) | Self::Zero(_) => &[],
        }
    }

    /// Whether it brings bytes, which reach the disk page by page, in any order.
    pub fn is_data(&self) -> bool {
        matches!(self, Self::Write { .. })
    }

    /// Does to `window`, the bytes of a file from `start` on, what it does to the file.
    pub fn apply(&self, start: u64, window: &mut [u8]) {
        let len = window.len();
        match self {
            Self::Write { offset, bytes, .. } => {
                let part = overlap(*offset..offset + bytes.len() as u64, start, len);
                if !part.is_empty() {
                    let from = (start + part.start as u64 - offset) as usize;
                    let copied = &bytes[from..from + part.len()];
                    window[part].copy_from_slice(copied);
                }
            }
            Self::SetLength(end) => window[overlap(*end..u64::MAX, start, len)].fill(0),
            Self::Punch(range) | Self::Zero(range) => window[overlap(range.clone(), start, len)].fill(0),
            Self::Reserve(_) => {}
        }
    }

    /// Does what a write has done when only its first `len` bytes have been copied.
    pub fn apply_first(&self, len: u64, start: u64, window: &mut [u8]) {
        if let Self::Write { offset, bytes, mapped } = self {
            let first = Arc::new(bytes[..(len as usize).min(bytes.len())].to_vec());
            Self::Write { offset: *offset, bytes: first, mapped: *mapped }.apply(start, window);
        }
    }
}

/// The part of a window of `len` bytes from `start` on that lies in `range`, counted from the window's start.
fn overlap(range: Range<u64>, start: u64, len: usize) -> Range<usize> {
    let inside = |at: u64| at.saturating_sub(start).min(len as u64) as usize;
    inside(range.start)..inside(range.end)
}

/// A file's bytes after all of `journal`.
pub fn apply_all<'a>(bytes: &mut Vec<u8>, journal: impl IntoIterator<Item = &'a Effect>) {
    for Effect { change, .. } in journal {
        let len = change.len_after(bytes.len() as u64);
        bytes.resize(len as usize, 0);
        change.apply(0, bytes);
    }
}
