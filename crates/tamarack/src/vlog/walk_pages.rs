//! Memory in large pages that the reads of one long walk go into when they go past the system's cache: a device fills such pages faster than small
//! ones, and who goes on reading need not take new ones from the system.

use super::reader::SegmentReader;
use crate::base::memory::{Allotment, Taken};
use crate::base::sync::{Arc, Mutex};
use crate::env::{LARGE_PAGE_BYTES, ReadPages};

/// What one walk has. Lock rank: a leaf; nothing is called under it.
#[derive(Debug)]
pub struct WalkPages {
    idle: Mutex<Vec<ReadPages>>,
    /// As much as its windows need that are under way at a time.
    _taken: Taken,
}

impl WalkPages {
    /// None yet, of as many as `windows` under way need, out of `memory`. `None` if that would be more than half of it, or there is no queue of reads,
    /// which it takes.
    pub fn new(reader: &SegmentReader, memory: &Arc<Allotment>, windows: u64) -> Option<Self> {
        if !reader.queues().are_there() {
            return None;
        }
        let bytes = windows * LARGE_PAGE_BYTES;
        let taken = memory.take_up_to(bytes);
        (taken.bytes() == bytes).then(|| Self { idle: Mutex::new(Vec::new()), _taken: taken })
    }

    /// Some that nobody uses; `None` if a queue has to take some.
    pub(super) fn take(&self) -> Option<ReadPages> {
        self.idle.lock().pop()
    }

    /// Keeps what a queue gave back.
    pub(super) fn put_back(&self, pages: Option<ReadPages>) {
        self.idle.lock().extend(pages);
    }
}
