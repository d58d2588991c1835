//! Gives dead ranges of segment files back to the file system, once nobody can reach them.
//!
//! Owns: which ranges may be punched now, and whether the file system can. Never decides what is dead: an edit of the
//! manifest has said so, and is durable. I-06 for parts of files: the handle that a version holds before such an edit is
//! *superseded* by another of the same file ([`FileHandle::supersede`](super::FileHandle::supersede)); when the last holder
//! of the superseded one is gone, nobody can reach what is in the ranges, and they come here. I-12: a file with a second
//! name, which a checkpoint may have given it, is left alone for now, and no name is given while holes are punched.
//!
//! Handles are dropped by readers, so dropping one only notes the ranges; [`Files::punch`] does the work, on a thread of the
//! background. Failures cost space and nothing else: the ranges stay known, and collecting the segment frees them.

use std::io;
use std::ops::Range;

use crate::base::dead_ranges::{DeadRanges, hole};
use crate::base::error::{Error, Result};
use crate::base::ids::SegmentId;
use crate::base::names::FileName;
use crate::base::sync::{Arc, Condvar, Mutex};

use super::files::{FileHandle, Files};

/// Ranges of one segment that nobody can reach and that were not given back yet.
#[derive(Debug)]
struct Waiting {
    /// In the order of their coming, each its own.
    number: u64,
    segment: SegmentId,
    ranges: Vec<Range<u64>>,
    /// Bytes of the whole blocks in them.
    bytes: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// The file has another name.
    Shared,
    /// Punching failed: not tried again before the next open.
    Failed,
}

/// What waits to be punched, and who may. Lock rank: a leaf.
#[derive(Debug, Default)]
pub(super) struct Holes {
    state: Mutex<Queue>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    next_number: u64,
    /// Somebody punches.
    punching: bool,
    /// Checkpoints that are giving names to files.
    sharing: usize,
    /// The file system has said that it cannot.
    unsupported: bool,
}

impl Queue {
    /// Notes what became of task `number`, if it is still there; returns the bytes given back.
    fn settle(&mut self, number: u64, outcome: Outcome) -> u64 {
        let Some(at) = self.waiting.iter().position(|waiting| waiting.number == number) else { return 0 };
        match outcome {
            Outcome::Done => return self.waiting.remove(at).bytes,
            Outcome::Gone => drop(self.waiting.remove(at)),
            Outcome::Shared => self.waiting[at].state = State::Shared,
            Outcome::Failed => self.waiting[at].state = State::Failed,
            Outcome::Unsupported => self.unsupported = true,
        }
        0
    }
}

/// As long as it lives, no hole is punched.
#[derive(Debug)]
pub struct Sharing(Arc<Files>);

impl Drop for Sharing {
    fn drop(&mut self) {
        self.0.holes.state.lock().sharing -= 1;
        self.0.holes.freed.notify_all();
    }
}

impl Holes {
    /// Takes `ranges` of `segment`, which nobody can reach any more.
    pub(super) fn release(&self, segment: SegmentId, ranges: Vec<Range<u64>>, bytes: u64) {
        if bytes > 0 {
            let mut queue = self.state.lock();
            let number = queue.next_number;
            queue.next_number += 1;
            queue.waiting.push(Waiting { number, segment, ranges, bytes, state: State::New });
        }
    }

    /// Forgets what waits of `segment`, whose file goes as a whole; returns how many bytes those are.
    pub(super) fn forget(&self, segment: SegmentId) -> u64 {
        let mut queue = self.state.lock();
        let gone = queue.waiting.extract_if(.., |waiting| waiting.segment == segment);
        gone.map(|waiting| waiting.bytes).sum()
    }
}

impl Files {
    /// Whether holes can be punched here, as far as is known.
    pub fn can_punch(&self) -> bool {
        !self.holes.state.lock().unsupported
    }

    /// Whether ranges wait that were never tried.
    pub fn has_unpunched(&self) -> bool {
        let queue = self.holes.state.lock();
        !queue.unsupported && queue.waiting.iter().any(|waiting| waiting.state == State::New)
    }

    /// Bytes, by segment, that could be given back, because nobody can reach them, and were not yet.
    pub fn unpunched(&self) -> Vec<(SegmentId, u64)> {
        self.holes.state.lock().waiting.iter().map(|waiting| (waiting.segment, waiting.bytes)).collect()
    }

    /// Those of them that will not be given back soon: the file is shared, or it failed, or it cannot be done here.
    pub fn unpunchable(&self) -> Vec<(SegmentId, u64)> {
        let queue = self.holes.state.lock();
        let stuck = |waiting: &&Waiting| queue.unsupported || waiting.state != State::New;
        queue.waiting.iter().filter(stuck).map(|waiting| (waiting.segment, waiting.bytes)).collect()
    }

    /// Keeps holes from being punched while files get second names. Waits until those that are being punched are.
    pub fn begin_sharing(self: &Arc<Self>) -> Sharing {
        let mut queue = self.holes.state.lock();
        queue.sharing += 1;
        while queue.punching {
            self.holes.freed.wait(&mut queue);
        }
        drop(queue);
        Sharing(Arc::clone(self))
    }

    /// Gives back what nobody can reach; what had to wait because its file was shared is tried again if `retry`. Blocks
    /// on the device, and until others who do the same are done. Returns the bytes given back.
    pub fn punch(self: &Arc<Self>, retry: bool) -> u64 {
        let mut queue = self.holes.state.lock();
        while queue.punching {
            self.holes.freed.wait(&mut queue);
        }
        queue.punching = true;
        let (mut next, mut bytes) = (0, 0);
        // A task stays in the queue, and so in every sum, until it is done.
        while queue.sharing == 0
            && !queue.unsupported
            && let Some(task) = queue.waiting.iter().find(|waiting| waiting.number >= next)
        {
            let number = task.number;
            next = number + 1;
            if task.state == State::New || (retry && task.state == State::Shared) {
                let (segment, ranges) = (task.segment, task.ranges.clone());
                drop(queue);
                let outcome = self.punch_one(segment, &ranges);
                queue = self.holes.state.lock();
                bytes += queue.settle(number, outcome);
            }
        }
        queue.punching = false;
        drop(queue);
        self.holes.freed.notify_all();
        bytes
    }

    fn punch_one(self: &Arc<Self>, segment: SegmentId, ranges: &[Range<u64>]) -> Outcome {
        // Held so that the file stays while it is written to.
        let Some(handle) = self.known_segment(segment).filter(|handle| !handle.is_obsolete()) else {
            return Outcome::Gone;
        };
        let path = handle.path();
        let punch = || {
            let file = self.fs().open_write(&path)?;
            if file.links()? > 1 {
                return Ok(Outcome::Shared);
            }
            for hole in ranges.iter().filter_map(|range| hole(range, self.block_bytes())) {
                file.punch_hole(hole.start, hole.end - hole.start)?;
            }
            Ok(Outcome::Done)
        };
        punch().unwrap_or_else(|error: io::Error| {
            if error.kind() == io::ErrorKind::Unsupported {
                return Outcome::Unsupported;
            }
            self.failed(Error::io("punch holes into", &path, error));
            Outcome::Failed
        })
    }

    /// Takes over the handle of a segment of the version that an index was opened with. Its `dead` ranges are given back
    /// again if its file takes more space than it should: the process may have ended before they were.
    ///
    /// # Errors
    /// `Io`.
    pub fn adopt(self: &Arc<Self>, handle: &Arc<FileHandle>, dead: &DeadRanges) -> Result<()> {
        let FileName::Segment(segment) = handle.name() else { return Ok(()) };
        self.register(segment, handle);
        let path = handle.path();
        let sizes = || {
            let file = self.fs().open_read(&path)?;
            Ok((file.len()?, file.allocated_bytes()?))
        };
        let (len, allocated) =
            sizes().map_err(|error: io::Error| Error::io("read the size of", &path, error))?;
        let (block, holes) = (self.block_bytes(), dead.hole_bytes(self.block_bytes()));
        // The file system also needs blocks to tell where the others are.
        let whole = len.next_multiple_of(block) + block * (2 + dead.count() as u64 / EXTENTS_PER_BLOCK);
        if allocated > whole.saturating_sub(holes) {
            self.holes.release(segment, dead.iter().collect(), holes);
        }
        Ok(())
    }
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The file is gone, or goes: nothing is to be done.
    Gone,
    Shared,
    Failed,
    Unsupported,
}

/// Stretches of a file that a block of a file system tells of, at least.
const EXTENTS_PER_BLOCK: u64 = 128;
