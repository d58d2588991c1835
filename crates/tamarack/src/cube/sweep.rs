//! When a long walk has the device read whole segments, from front to back.
//!
//! Values lie in the order in which they came. A walk over values that came in another order reads a page here and a page there
//! of every segment, and in the end all of them; and the device reads a segment from front to back in the time of eight hundred
//! single reads. So the walk counts what its scattered reads of each segment cost, as bytes that the device could have read in
//! sequence meanwhile. When a quarter of a segment is paid for, a walk that goes on will want more of it than that: the device is asked for
//! all of it, in the background, and the windows to come find their pages in memory.
//!
//! That helps as long as the pages stay there. Of each window one value is tried that should be in memory by now; if more of them are
//! missing than found, nothing is read in advance any more. No segment is asked for twice by the same iterator, and no more than one
//! for each window.

use std::collections::HashMap;

use super::Cube;
use crate::base::ids::SegmentId;
use crate::base::pointer::ValuePointer;
use crate::base::sync::Arc;
use crate::env::pool::Priority;
use crate::vlog::fetch::Fetch;
use crate::vlog::loads::Loads;

/// What one scattered read costs: 12 µs of the reference machine's device when many are under way, in which it reads so many
/// bytes in sequence ...
const READ_COST_BYTES: u64 = 40 * 1024;
/// ... and as many bytes in one piece at some place cost so many times what they do in sequence.
const BYTES_COST: u64 = 3;
/// The part of a segment that must be paid for.
const PAID_PART: u64 = 4;
/// A segment is in memory when so many windows more have been read.
const WINDOWS_UNTIL_READ: u64 = 4;
/// A segment is loaded in steps of so many bytes: after each, somebody may have lost interest.
const LOADED_AT_A_TIME: usize = 16 << 20;
/// So many values may be missing, beyond those that are found, before that counts.
const MISSES_MAX: u64 = 4;

/// What a scattered read of `bytes` costs, as bytes that the device could have read in sequence meanwhile.
pub fn cost_of(bytes: u64) -> u64 {
    READ_COST_BYTES + BYTES_COST * bytes
}

/// What one walk knows of it.
#[derive(Debug, Default)]
pub struct Sweep {
    windows: u64,
    segments: HashMap<SegmentId, Progress>,
    hits: u64,
    misses: u64,
    /// What it has had loaded.
    pub(super) loads: Arc<Loads>,
}

/// Where it is with a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// What has been paid so far.
    Paid(u64),
    /// It is read whole since this window.
    Asked(u64),
}

impl Sweep {
    /// Begins with the next window.
    fn begin_window(&mut self) {
        self.windows += 1;
    }

    /// Notes a scattered read of `bytes` of `segment`, which may have up to `segment_bytes`. Returns whether that one is worth being
    /// read whole.
    fn note(&mut self, segment: SegmentId, bytes: u64, segment_bytes: u64) -> bool {
        let progress = self.segments.entry(segment).or_insert(Progress::Paid(0));
        let Progress::Paid(paid) = progress else { return false };
        *paid += cost_of(bytes);
        *paid >= segment_bytes / PAID_PART && self.misses <= self.hits + MISSES_MAX
    }

    /// The device is asked for `segment`.
    fn asked(&mut self, segment: SegmentId) {
        self.segments.insert(segment, Progress::Asked(self.windows));
    }

    /// Whether what is in `segment` should be in memory.
    fn should_have(&self, segment: SegmentId) -> bool {
        let asked = |since: u64| self.windows - since >= WINDOWS_UNTIL_READ;
        matches!(self.segments.get(&segment), Some(&Progress::Asked(since)) if asked(since))
    }

    /// What should be in memory is, or is not.
    fn learn(&mut self, is_there: bool) {
        *(if is_there { &mut self.hits } else { &mut self.misses }) += 1;
    }
}

impl Cube {
    /// Notes the reads of a window that is about to be read, and has the device begin with what is worth it.
    pub(super) fn sweep(&self, sweep: &mut Sweep, fetch: &mut Fetch) {
        if self.reader.segments().are_direct() {
            // What is read whole would not be kept.
            return;
        }
        sweep.begin_window();
        let tail = self.order.tail().0.segment;
        fetch.may_load(&sweep.loads, tail);
        let (mut due, mut known) = (None, None);
        for (segment, bytes, first) in fetch.scattered() {
            if sweep.note(segment, bytes, self.options.segment_bytes_max) {
                due = due.or(Some(segment));
            } else if known.is_none() && sweep.should_have(segment) {
                known = Some(first);
            }
        }
        if let Some(pointer) = known {
            sweep.learn(self.is_in_memory(pointer));
        }
        if let Some(segment) = due {
            sweep.asked(segment);
            self.read_whole(segment, tail, &sweep.loads);
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

    /// Has the device read all of segment `id`, unless it is much larger than what was paid for: in large pages if it is done while `tail` is the
    /// last one of the log, and as long as the walk that `loads` knows goes on. Advice: what fails is read later, by those who want it.
    fn read_whole(&self, id: SegmentId, tail: SegmentId, loads: &Arc<Loads>) {
        let Ok(segment) = self.reader.segments().get(id) else { return };
        let bytes_max = self.options.segment_bytes_max.saturating_mul(2);
        let (may_load, walk) = (id.is_done(tail), Arc::downgrade(loads));
        let read = move || {
            let Ok(bytes) = segment.file().len() else { return };
            if bytes > bytes_max {
                return;
            }
            let mut is_there = may_load;
            for at in (0..bytes).step_by(LOADED_AT_A_TIME).take_while(|_| may_load) {
                if walk.strong_count() == 0 {
                    return;
                }
                is_there &= segment.load(at..bytes.min(at + LOADED_AT_A_TIME as u64)).is_there;
            }
            if !is_there {
                drop(segment.file().read_ahead(0, bytes));
            }
        };
        self.read_pool().submit(Priority::High, Box::new(read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const ID: SegmentId = SegmentId(3);

    #[test]
    fn a_segment_is_read_whole_once_a_quarter_of_it_is_paid_for() {
        let mut sweep = Sweep::default();
        let until_due = |sweep: &mut Sweep, segment: u32, bytes| {
            (1..).find(|_| sweep.note(SegmentId(segment), bytes, 32 * MIB)).expect("at last")
        };
        assert_eq!(until_due(&mut sweep, 1, 0), 205, "of reads of next to nothing");
        assert_eq!(until_due(&mut sweep, 2, 64 * 1024), 36);
        sweep.asked(SegmentId(2));
        assert!(!sweep.note(SegmentId(2), 64 * MIB, 32 * MIB), "only once");
    }

    #[test]
    fn who_finds_nothing_in_memory_asks_for_no_more() {
        let mut sweep = Sweep::default();
        sweep.begin_window();
        assert!(sweep.note(ID, 32 * MIB, 32 * MIB));
        sweep.asked(ID);
        for _ in 0..WINDOWS_UNTIL_READ {
            assert!(!sweep.should_have(ID), "not yet");
            sweep.begin_window();
        }
        assert!(sweep.should_have(ID) && !sweep.should_have(SegmentId(4)));
        sweep.learn(true);
        (0..=MISSES_MAX).for_each(|_| sweep.learn(false));
        assert!(sweep.note(SegmentId(5), 32 * MIB, 32 * MIB), "as many may be missing");
        sweep.learn(false);
        assert!(!sweep.note(SegmentId(6), 32 * MIB, 32 * MIB));
    }
}
