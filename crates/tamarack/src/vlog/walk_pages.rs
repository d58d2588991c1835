//! Memory in large pages that the reads of one long walk go into when they go past the system's cache: a device fills such pages faster than small
//! ones, and who goes on reading need not take new ones from the system.

use super::reader::SegmentReader;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::memory::{Allotment, Taken};
use crate::base::sync::{Arc, Mutex};
use crate::env::{ReadPages, ReadQueue};

/// With fewer, most windows would have to do without.
const PAGES_MIN: u64 = 2;

/// What one walk has. Lock rank: a leaf; nothing is called under it.
#[derive(Debug)]
pub struct WalkPages {
    state: Mutex<State>,
    taken: Taken,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<ReadPages>,
    in_use: u64,
}

impl WalkPages {
    /// None yet, of as many as `windows` under way need, or fewer, out of `memory`. `None` if there is next to no memory, or no queue of reads, which it
    /// takes.
    pub fn new(reader: &SegmentReader, memory: &Arc<Allotment>, windows: u64) -> Option<Self> {
        if !reader.queues().are_there() {
            return None;
        }
        let taken = memory.take_up_to(windows * LARGE_PAGE_BYTES);
        let are_enough = taken.bytes() >= PAGES_MIN.min(windows) * LARGE_PAGE_BYTES;
        are_enough.then(|| Self { state: Mutex::default(), taken })
    }

    /// Lets a queue have one, as long as the result lives. `None` if all are in use.
    pub(super) fn lend(self: &Arc<Self>) -> Option<Lent> {
        let mut state = self.state.lock();
        if state.in_use >= self.taken.bytes() / LARGE_PAGE_BYTES {
            return None;
        }
        state.in_use += 1;
        Some(Lent { pages: state.idle.pop(), of: Arc::clone(self) })
    }
}

/// That a queue may have one, and that, unless it has it, or is to take one.
#[derive(Debug)]
pub(super) struct Lent {
    pages: Option<ReadPages>,
    of: Arc<WalkPages>,
}

impl Lent {
    /// Has `queue`, in which nothing is under way, read into it.
    pub fn give_to(&mut self, queue: &mut dyn ReadQueue) {
        queue.use_pages(self.pages.take());
    }

    /// Ends that, with nothing under way: another is to have what `queue` has.
    pub fn take_from(&mut self, queue: &mut dyn ReadQueue) {
        self.pages = queue.give_back_pages();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut state = self.of.state.lock();
        state.in_use -= 1;
        state.idle.extend(self.pages.take());
    }
}
