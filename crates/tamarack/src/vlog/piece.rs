//! Pieces of the log: what the device reads into one large page of memory, in little more time than it takes for some single values.

use std::ops::Range;

use super::open_segments::OpenSegment;
use crate::base::ids::SegmentId;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::sync::{AtomicBool, Mutex, Ordering};

/// Where a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    segment: SegmentId,
    number: u32,
}

impl Place {
    /// The piece that has the byte at `offset` of `segment`.
    pub fn of(segment: SegmentId, offset: u64) -> Self {
        let number = u32::try_from(offset / LARGE_PAGE_BYTES).expect("offsets in segments have 32 bits");
        Self { segment, number }
    }

    /// Its segment.
    pub fn segment(self) -> SegmentId {
        self.segment
    }

    /// Its bytes there.
    pub fn range(self) -> Range<u64> {
        let start = u64::from(self.number) * LARGE_PAGE_BYTES;
        start..start + LARGE_PAGE_BYTES
    }
}

/// Where the pieces of segment `id` are that `range` has a part of.
pub fn pieces(id: SegmentId, range: Range<u64>) -> impl Iterator<Item = Place> {
    let first = range.start / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    let starts = (first..range.end).step_by(LARGE_PAGE_BYTES as usize);
    starts.map(move |start| Place::of(id, start))
}

/// A piece that is to be in memory before single values of it are read.
#[derive(Debug)]
pub struct Piece {
    place: Place,
    /// Whether nothing new is written to it, so that it may be in one large page.
    is_done: bool,
    /// Held by the first who comes, while it is read. Nobody waits for anything but the device under it.
    reading: Mutex<()>,
    was_read: AtomicBool,
}

impl Piece {
    /// The one at `place`, of which nothing has been read.
    pub fn new(place: Place, is_done: bool) -> Self {
        Self { place, is_done, reading: Mutex::new(()), was_read: AtomicBool::new(false) }
    }

    /// Has it read, and waits for that, unless somebody has done so. Advice: what fails is told by who reads the values.
    pub fn read(&self, segment: &OpenSegment) {
        if self.was_read() {
            return;
        }
        // Whoever comes meanwhile waits for the same.
        let _reading = self.reading.lock();
        if self.was_read() {
            return;
        }
        let range = self.place.range();
        let is_there = self.is_done && segment.load(range.clone()).is_there;
        if !is_there {
            drop(segment.file().read_ahead(range.start, LARGE_PAGE_BYTES));
        }
        self.was_read.store(true, Ordering::Relaxed);
    }

    /// Whether that has been done.
    pub fn was_read(&self) -> bool {
        self.was_read.load(Ordering::Relaxed)
    }
}
