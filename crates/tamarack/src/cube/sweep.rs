//! When a long walk has the device read what lies around a value along with it.
//!
//! Values lie in the order in which they came. A walk over values that came in another order reads a page here and a page there
//! of the log, and in the end all of it; and the device reads a *piece* of it, as much as fits into one large page of memory, in the time of some
//! fifty single reads. So the walk counts what its scattered reads of each piece cost, as bytes that the device could have read in
//! sequence meanwhile. When a quarter of a piece is paid for, and much in all, a walk that goes on will want more of it than that: whoever reads the next value
//! of it has all of it read first, and the others find theirs in memory. What is read in vain costs at most four times what was paid.
//!
//! That helps as long as the pieces stay there. Of each window a few values are tried that should be in memory by now; if more of them are
//! missing than found, nothing is read along any more. No piece is read twice for the same iterator, and of those that are due at the same time
//! so many for each window that who waits for it does not wait long.
//!
//! Large values are read as fast by themselves as in pieces, if they go into large pages, too: where there are queues of reads, whose memory
//! is in such. That is past the system's cache of files, which a long walk would fill with what it asks for once; a shorter one may be made again,
//! and so fills it.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use super::Cube;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::pointer::ValuePointer;
use crate::base::sync::Arc;
use crate::vlog::fetch::{Fetch, Route, Scattered};
use crate::vlog::loads::Loads;
use crate::vlog::piece::{Piece, Place};
use crate::vlog::plan::RUN_BYTES_MAX_PAST_CACHE;
use crate::vlog::walk_pages::WalkPages;

/// What one scattered read costs: 12 µs of the reference machine's device when many are under way, in which it reads so many
/// bytes in sequence ...
const READ_COST_BYTES: u64 = 40 * 1024;
/// ... and as many bytes in one piece at some place cost so many times what they do in sequence.
const BYTES_COST: u64 = 3;
/// The part of a piece that must be paid for ...
const PAID_PART: u64 = 4;
/// ... and what a walk has paid in all before anything is read along: one that goes over a hundred neighbours in each of some sorted runs has not.
const PAID_MIN: u64 = 16 << 20;
/// Values of so many bytes and more, up to what fits into such memory, are read by themselves ...
const LARGE_BYTES: RangeInclusive<u64> = 32 << 10..=RUN_BYTES_MAX_PAST_CACHE;
/// ... behind so many bytes of them.
const LONG_WALK_BYTES: u64 = 64 << 20;
/// So many pieces are read for one window, at most.
const PIECES_MAX: usize = 64;
/// So many values of a window are tried ...
const TRIED_MAX: usize = 4;
/// ... and so many may be missing, beyond those that are found, before that counts.
const MISSES_MAX: u64 = 4;

/// What a scattered read of `bytes` costs, as bytes that the device could have read in sequence meanwhile.
pub fn cost_of(bytes: u64) -> u64 {
    READ_COST_BYTES + BYTES_COST * bytes
}

/// What one walk knows of it: some thirty bytes for each piece that it has gone over.
#[derive(Debug, Default)]
pub struct Sweep {
    pieces: HashMap<Place, Progress>,
    /// Those that somebody will read, or does.
    under_way: HashMap<Place, Arc<Piece>>,
    /// What it has paid in all.
    paid: u64,
    /// How many more may be for this window.
    left: usize,
    hits: u64,
    misses: u64,
    /// Bytes of large values.
    large_bytes: u64,
    /// What goes past the system's cache goes into these.
    pub(super) pages: Option<Arc<WalkPages>>,
    /// What it has had loaded.
    pub(super) loads: Arc<Loads>,
}

/// Where it is with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// What has been paid so far.
    Paid(u64),
    /// It was read, or is.
    Read,
}

/// What a value lies in was read before.
#[derive(Debug)]
struct InMemory;

impl Sweep {
    /// Begins with the next window.
    fn begin_window(&mut self) {
        self.left = PIECES_MAX;
        let pieces = &mut self.pieces;
        self.under_way.retain(|place, piece| {
            let is_left = !piece.was_read() && Arc::strong_count(piece) == 1;
            if is_left {
                // Those who would have read it were given up.
                pieces.remove(place);
            }
            !is_left && !piece.was_read()
        });
    }

    /// Begins anew elsewhere: what was a long walk has ended.
    pub(super) fn turn(&mut self) {
        self.paid = 0;
        self.large_bytes = 0;
        self.pages = None;
    }

    /// Whether it goes on past the system's cache if it has pages to read into.
    pub(super) fn is_long(&self) -> bool {
        self.large_bytes > LONG_WALK_BYTES
    }

    /// Notes a scattered read of `bytes` at `place`, which `is_done` if nothing new is written to its segment. Returns the piece that is to be read
    /// before, or whether that should be in memory.
    fn note(&mut self, place: Place, bytes: u64, is_done: bool) -> Result<Option<Arc<Piece>>, InMemory> {
        let helps = self.misses <= self.hits + MISSES_MAX;
        let progress = self.pieces.entry(place).or_insert(Progress::Paid(0));
        let Progress::Paid(paid) = progress else {
            let piece = self.under_way.get(&place).ok_or(InMemory)?;
            return Ok(Some(Arc::clone(piece)));
        };
        *paid += cost_of(bytes);
        self.paid += cost_of(bytes);
        if self.paid < PAID_MIN || *paid < LARGE_PAGE_BYTES / PAID_PART || self.left == 0 || !helps {
            return Ok(None);
        }
        *progress = Progress::Read;
        self.left -= 1;
        let piece = Arc::new(Piece::new(place, is_done));
        self.under_way.insert(place, Arc::clone(&piece));
        Ok(Some(piece))
    }

    /// What should be in memory is, or is not.
    fn learn(&mut self, is_there: bool) {
        *(if is_there { &mut self.hits } else { &mut self.misses }) += 1;
    }
}

impl Cube {
    /// Notes the reads of a window that is about to be read, and has what is worth it read with them.
    pub(super) fn sweep(&self, sweep: &mut Sweep, fetch: &mut Fetch) {
        if self.reader.segments().are_direct() {
            // What is read along would not be kept.
            return fetch.take_routes(Vec::new(), sweep.pages.as_ref());
        }
        sweep.begin_window();
        let tail = self.order.tail().0.segment;
        fetch.may_load(&sweep.loads, tail);
        let (mut routes, mut tried) = (Vec::new(), Vec::new());
        for (number, Scattered { bytes, first_value, is_one_value }) in fetch.scattered() {
            if is_one_value && bytes > *LARGE_BYTES.end() {
                continue;
            }
            if is_one_value && bytes >= *LARGE_BYTES.start() {
                sweep.large_bytes += bytes;
                let goes_past = sweep.is_long() || !fetch.fills_cache();
                if goes_past && sweep.pages.is_some() {
                    routes.push((number, Route::PastCache));
                }
                if !goes_past || sweep.pages.is_some() || !fetch.fills_cache() {
                    continue;
                }
            }
            let place = Place::of(first_value.segment, first_value.offset.into());
            match sweep.note(place, bytes, first_value.segment.is_done(tail)) {
                Ok(Some(piece)) => routes.push((number, Route::Behind(piece))),
                Err(InMemory) if tried.len() < TRIED_MAX => tried.push(first_value),
                Ok(None) | Err(InMemory) => {}
            }
        }
        fetch.take_routes(routes, sweep.pages.as_ref());
        for pointer in tried {
            sweep.learn(self.is_in_memory(pointer));
        }
    }

    fn is_in_memory(&self, pointer: ValuePointer) -> bool {
        let segment = self.reader.segments().get(pointer.segment);
        let mut byte = [0];
        // Whoever reads the value is told what is wrong.
        segment.is_ok_and(|segment| {
            segment.file().read_cached(&mut byte, pointer.offset.into()).is_ok_and(|found| found)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::base::checksum::{FileKind, Seed};
    use crate::base::ids::{CubeId, SegmentId};
    use crate::env::sim::{SimDisk, SimOptions};
    use crate::vlog::open_segments::OpenSegment;

    const MIB: u64 = 1 << 20;

    fn place(number: u64) -> Place {
        Place::of(SegmentId(3), number * LARGE_PAGE_BYTES + 5)
    }

    fn segment() -> OpenSegment {
        let path = PathBuf::from("/segment");
        let file = SimDisk::new(&SimOptions::default()).env().fs.create_new(&path).expect("nothing fails");
        OpenSegment::new(file, path, Seed::new(CubeId(7), FileKind::Segment, 3, 0))
    }

    /// In its first window.
    fn begun() -> Sweep {
        let mut sweep = Sweep { paid: PAID_MIN, ..Sweep::default() };
        sweep.begin_window();
        sweep
    }

    /// Whether the read waits for a piece.
    fn waits(sweep: &mut Sweep, place: Place, bytes: u64) -> bool {
        matches!(sweep.note(place, bytes, true), Ok(Some(_)))
    }

    #[test]
    fn a_piece_is_read_once_a_quarter_of_it_is_paid_for() {
        let mut sweep = begun();
        let mut until_due =
            |number, bytes| (1..).find(|_| waits(&mut sweep, place(number), bytes)).expect("at last");
        assert_eq!(until_due(1, 0), 13, "of reads of next to nothing");
        assert_eq!(until_due(2, 64 * 1024), 3);
        assert_eq!(until_due(3, 2 * MIB), 1);
        let Ok(Some(one)) = sweep.note(place(2), 0, true) else { panic!("it is under way") };
        let Ok(Some(same)) = sweep.note(place(2), 0, true) else { panic!("it is under way") };
        assert!(Arc::ptr_eq(&one, &same), "who waits for it waits for the same");
        sweep.begin_window();
        assert!(waits(&mut sweep, place(2), 0), "as long as it was not read");
        one.read(&segment());
        sweep.begin_window();
        assert!(sweep.note(place(2), 64 * MIB, true).is_err(), "it is in memory, and never read again");
        assert!(!waits(&mut sweep, place(1), 0), "nobody has read this one, and it has to be paid for again");
        assert!(sweep.under_way.is_empty());
    }

    #[test]
    fn nothing_is_read_along_before_much_was_paid() {
        let mut sweep = Sweep::default();
        sweep.begin_window();
        let neighbours = 100 << 10;
        let first = (0..).find(|number| waits(&mut sweep, place(number % 4), neighbours)).expect("at last");
        assert!((40..60).contains(&first), "{first}");
    }

    #[test]
    fn what_begins_anew_is_no_long_walk_any_more() {
        let mut sweep = Sweep { large_bytes: LONG_WALK_BYTES + 1, ..begun() };
        assert!(sweep.is_long() && waits(&mut sweep, place(1), 2 * MIB));
        sweep.turn();
        assert!(!sweep.is_long() && !waits(&mut sweep, place(2), 2 * MIB));
    }

    #[test]
    fn few_pieces_are_read_for_one_window() {
        let mut sweep = begun();
        let due = |sweep: &mut Sweep| (0..1000).filter(|&number| waits(sweep, place(number), MIB)).count();
        assert_eq!(due(&mut sweep), PIECES_MAX);
        let held: Vec<_> = sweep.under_way.values().cloned().collect();
        sweep.begin_window();
        assert_eq!(due(&mut sweep), 2 * PIECES_MAX, "half of which were due before");
        drop(held);
    }

    #[test]
    fn who_finds_nothing_in_memory_asks_for_no_more() {
        let mut sweep = begun();
        sweep.learn(true);
        (0..=MISSES_MAX).for_each(|_| sweep.learn(false));
        assert!(waits(&mut sweep, place(5), 2 * MIB), "as many may be missing");
        sweep.learn(false);
        assert!(!waits(&mut sweep, place(6), 2 * MIB));
        sweep.learn(true);
        assert!(waits(&mut sweep, place(6), 2 * MIB));
    }
}
