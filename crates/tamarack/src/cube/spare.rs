//! The next segment of the log, made ready in the background.
//!
//! Creating a file, reserving its space and faulting in its first pages wait for the file system's journal, which
//! the sealing of the segment before keeps busy. So once a log has filled one segment, the next is prepared when all space of the present one but the
//! last step has been reserved, and beginning it is a matter of memory. A spare that is not used is removed when the cube is
//! closed; one that a crash leaves behind has no header, and is removed by recovery. Whoever needs one that nobody has begun to make makes it: to wait
//! for a thread, while all do other work, would take as long as the shortest of that.
//!
//! Lock rank: `state` is a leaf; no I/O is done under it.

use super::Cube;
use super::headroom::Claim;
use super::order::PREFAULT_BYTES;
use crate::base::error::Result;
use crate::base::ids::SegmentId;
use crate::base::names::FileName;
use crate::base::options::LogMode;
use crate::base::sync::{Arc, Condvar, Mutex};
use crate::env::Fs;
use crate::env::pool::Priority;
use crate::vlog::segment::{Blocks, PreparedSegment, RESERVE_STEP_MAX, SegmentSize};

/// Files of at least this part of a full segment are kept to become new ones.
const STOCK_PART: u64 = 4;
/// None are kept where there is no room for so many full ones beside them.
const IDLE_SEGMENTS: u64 = 4;

/// The spare of one cube.
#[derive(Debug, Default)]
pub struct Spare {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    None,
    /// That segment is to be made by a job that waits for a thread.
    Wanted(SegmentId),
    /// One is being made, or removed.
    Preparing,
    Ready(SegmentId, PreparedSegment),
}

impl Spare {
    /// The spare, if it is segment `id` and holds `bytes`; not one with large pages unless it `may_be_joined`. Waits for one that is being made;
    /// one that is only wanted is not any more.
    pub fn take(&self, id: SegmentId, bytes: u64, may_be_joined: bool) -> Option<PreparedSegment> {
        let mut state = self.state.lock();
        while matches!(*state, State::Preparing) {
            self.changed.wait(&mut state);
        }
        match std::mem::take(&mut *state) {
            State::Wanted(_) => {
                self.changed.notify_all();
                None
            }
            State::Ready(ready, spare)
                if ready == id
                    && spare.capacity() >= bytes
                    && (may_be_joined || !spare.has_large_pages()) =>
            {
                Some(spare)
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// Bytes of disk that it takes.
    pub fn bytes(&self) -> u64 {
        match &*self.state.lock() {
            State::Ready(_, spare) => spare.disk_bytes(),
            State::None | State::Wanted(_) | State::Preparing => 0,
        }
    }

    /// Waits for a spare that is wanted or being made.
    pub fn settle(&self) {
        let mut state = self.state.lock();
        while matches!(*state, State::Wanted(_) | State::Preparing) {
            self.changed.wait(&mut state);
        }
    }

    /// Removes the spare, if there is one. Waits for one that is being made or removed; one that is only wanted is not any more.
    ///
    /// # Errors
    /// `Io`; it is still there to be taken.
    pub fn discard(&self, fs: &dyn Fs) -> Result<()> {
        let mut state = self.state.lock();
        while matches!(*state, State::Preparing) {
            self.changed.wait(&mut state);
        }
        let State::Ready(id, spare) = std::mem::take(&mut *state) else {
            self.changed.notify_all();
            return Ok(());
        };
        // Whoever needs a segment of that name waits until it is vacant.
        *state = State::Preparing;
        drop(state);
        let removed = spare.discard(fs);
        self.finish(removed.is_err().then_some((id, spare)));
        removed
    }

    /// Whether the caller is to have segment `id` made: there is none, and none is wanted.
    fn want(&self, id: SegmentId) -> bool {
        let mut state = self.state.lock();
        let vacant = matches!(*state, State::None);
        if vacant {
            *state = State::Wanted(id);
        }
        vacant
    }

    /// No one makes segment `id`, should it be wanted.
    fn give_up(&self, id: SegmentId) {
        if self.begin(id) {
            self.finish(None);
        }
    }

    /// Whether the caller is to make segment `id`, because it is still wanted; it must call [`finish`](Self::finish) then.
    fn begin(&self, id: SegmentId) -> bool {
        let mut state = self.state.lock();
        let wanted = matches!(*state, State::Wanted(wanted) if wanted == id);
        if wanted {
            *state = State::Preparing;
        }
        wanted
    }

    fn finish(&self, spare: Option<(SegmentId, PreparedSegment)>) {
        *self.state.lock() = spare.map_or(State::None, |(id, spare)| State::Ready(id, spare));
        self.changed.notify_all();
    }
}

impl Cube {
    /// Has segment `id` made ready in the background.
    pub(super) fn prepare_spare(&self, id: SegmentId, blocks: Blocks) {
        let Some(cube) = self.this.upgrade() else { return };
        if self.spare.want(id) {
            let making = Making { cube, id, begun: false, spare: None };
            self.workers.submit(Priority::High, Box::new(move || making.run(blocks)));
        }
    }

    /// Makes segment `id` ready now, if that is wanted and nobody has begun.
    pub(super) fn prepare_wanted_spare(&self, id: SegmentId, blocks: Blocks) {
        if let Some(cube) = self.this.upgrade() {
            Making { cube, id, begun: false, spare: None }.run(blocks);
        }
    }

    /// A spare, or nothing if there is no room for one or it fails: then the writer that needs the segment makes it,
    /// and reports what is wrong.
    fn make_spare(&self, id: SegmentId, blocks: Blocks) -> Option<(SegmentId, PreparedSegment)> {
        let spare = match self.recycled_segment(id, blocks) {
            Some(spare) => spare,
            None => {
                let capacity = self.options.segment_bytes_max;
                let path = self.reader.segments().path(id);
                let step = RESERVE_STEP_MAX.min(capacity);
                let reserve = self.room_for(&path, step, step, Claim::Data).ok()?;
                let size = SegmentSize { capacity, reserve, blocks };
                PreparedSegment::create(&*self.env.fs, path, size, self.options.log_mode).ok()?
            }
        };
        // What cannot be done ahead is left to the writers.
        drop(spare.warm_up(PREFAULT_BYTES));
        Some((id, spare))
    }
}

impl Cube {
    /// While segments are filled one after another, those that are not needed any more become new ones; unless the disk needs
    /// their space.
    pub(super) fn keep_stock(&self) {
        if !self.has_idle_room(IDLE_SEGMENTS * self.options.segment_bytes_max) {
            self.index.files().release_stock();
            return;
        }
        let full = self.options.segment_bytes_max;
        self.index.files().keep_stock(full / STOCK_PART..=full + full / STOCK_PART);
    }

    /// Segment `id`, made of a file that is not needed any more, if there is one and data may have its space.
    pub(super) fn recycled_segment(&self, id: SegmentId, blocks: Blocks) -> Option<PreparedSegment> {
        let (fs, path) = (&*self.env.fs, self.reader.segments().path(id));
        let capacity = self.options.segment_bytes_max;
        if self.options.log_mode == LogMode::Plain || self.room_for(&path, 0, 0, Claim::Data).is_err() {
            return None;
        }
        let (file, bytes) = self.index.files().recycle(FileName::Segment(id), u64::MAX)?;
        // The footer stood behind the capacity.
        if bytes > capacity && file.set_len(capacity).is_err() {
            // Whoever makes a new one tells what is wrong.
            drop(fs.remove_file(&path));
            return None;
        }
        let blank_bytes = bytes.min(capacity);
        // Nobody counts it until it is prepared.
        self.limit_stock(capacity);
        // It is opened to writers step by step like any other: before the last the next one is prepared.
        let size = SegmentSize { capacity, reserve: RESERVE_STEP_MAX.min(capacity), blocks };
        PreparedSegment::of(fs, file, blank_bytes, path, size, self.options.log_mode).ok()
    }
}

/// The making of a spare. However it ends, and should it not begin, nobody waits for it for ever.
struct Making {
    cube: Arc<Cube>,
    id: SegmentId,
    begun: bool,
    spare: Option<(SegmentId, PreparedSegment)>,
}

impl Making {
    fn run(mut self, blocks: Blocks) {
        self.begun = self.cube.spare.begin(self.id);
        if self.begun {
            self.spare = self.cube.make_spare(self.id, blocks);
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if self.begun {
            self.cube.spare.finish(self.spare.take());
        } else {
            self.cube.spare.give_up(self.id);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_begun_to_make_is_neither_waited_for_nor_made_once_it_was_asked_for() {
        let spare = Spare::default();
        let (first, second) = (SegmentId(1), SegmentId(2));
        assert!(spare.want(first));
        assert!(!spare.want(first), "it is wanted already");
        assert!(spare.take(first, 1, true).is_none(), "whoever needs it makes it");
        assert!(!spare.begin(first), "so nobody else does");
        assert!(spare.want(second));
        assert!(!spare.begin(first), "another is wanted");
        spare.give_up(first);
        assert!(spare.begin(second), "that one is still");
        assert!(!spare.begin(second), "it is being made");
        spare.give_up(second);
        assert!(!spare.want(second), "it is, still");
        spare.finish(None);
        assert!(spare.want(second));
        spare.give_up(second);
        spare.settle();
        assert!(spare.want(first));
    }
}
