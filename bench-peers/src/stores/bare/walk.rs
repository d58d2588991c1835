//! Walks: the file from end to end, in pieces.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use tamarack_bench::Cursor;

/// Bytes of a piece, unless a value has more.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that are asked for ahead of a walk backward. Ahead of one forward the kernel reads by itself, and for less: in large
/// pages, which pieces that it is asked for do not get.
const PIECES_AHEAD: u64 = 8;

/// A walk through a part of the file.
pub struct Walk {
    file: File,
    /// Bytes before each value.
    head_bytes: usize,
    /// Bytes of a head and a value.
    record_bytes: usize,
    /// Places that have not been read.
    rest: Range<u64>,
    backward: bool,
    /// What has been read ...
    piece: Vec<u8>,
    /// ... which of its values have not been shown ...
    unseen: Range<usize>,
    /// ... and the one that the walk is at.
    at: usize,
    /// That of every entry.
    key: Vec<u8>,
}

impl Walk {
    /// Begins one through the values at `places`.
    pub fn begin(
        path: &Path,
        places: Range<u64>,
        head_bytes: usize,
        value_bytes: usize,
        key_bytes: usize,
        backward: bool,
    ) -> io::Result<Self> {
        let file = File::open(path)?;
        fadvise(&file, 0, None, if backward { Advice::Random } else { Advice::Sequential })?;
        let walk = Self {
            file,
            head_bytes,
            record_bytes: head_bytes + value_bytes,
            rest: places,
            backward,
            piece: Vec::new(),
            unseen: 0..0,
            at: 0,
            key: vec![b'-'; key_bytes],
        };
        if backward {
            walk.ask_for(&walk.next_places(PIECES_AHEAD))?;
        }
        Ok(walk)
    }

    /// The places of so many pieces from where the walk is, as far as there are as many.
    fn next_places(&self, pieces: u64) -> Range<u64> {
        let in_a_piece = (PIECE_BYTES / self.record_bytes.max(1)).max(1) as u64;
        let count = (pieces * in_a_piece).min(self.rest.end - self.rest.start);
        if self.backward {
            self.rest.end - count..self.rest.end
        } else {
            self.rest.start..self.rest.start + count
        }
    }

    /// Has the kernel begin to read `places`.
    fn ask_for(&self, places: &Range<u64>) -> io::Result<()> {
        let record_bytes = self.record_bytes as u64;
        let (offset, bytes) = (places.start * record_bytes, (places.end - places.start) * record_bytes);
        // No bytes would stand for all that follow.
        let Some(bytes) = bytes.try_into().ok() else { return Ok(()) };
        Ok(fadvise(&self.file, offset, Some(bytes), Advice::WillNeed)?)
    }

    /// Reads the next piece; returns whether there is one.
    fn next_piece(&mut self) -> io::Result<bool> {
        let places = self.next_places(1);
        if self.backward {
            let asked = self.next_places(PIECES_AHEAD);
            self.rest.end = places.start;
            self.ask_for(&(self.next_places(PIECES_AHEAD).start..asked.start))?;
        } else {
            self.rest.start = places.end;
        }
        let count = (places.end - places.start) as usize;
        self.piece.resize(count * self.record_bytes, 0);
        self.file.read_exact_at(&mut self.piece, places.start * self.record_bytes as u64)?;
        self.unseen = 0..count;
        Ok(count > 0)
    }
}

impl Cursor for Walk {
    type Error = String;

    fn advance(&mut self) -> Result<bool, String> {
        if self.unseen.is_empty() && !self.next_piece().map_err(|error| format!("walk: {error}"))? {
            return Ok(false);
        }
        let next = if self.backward { self.unseen.next_back() } else { self.unseen.next() };
        self.at = next.expect("a piece has values");
        Ok(true)
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&mut self) -> Result<&[u8], String> {
        Ok(&self.piece[self.at * self.record_bytes..][self.head_bytes..self.record_bytes])
    }
}
