//! The read queues of a cube that are not in use: making one takes longer than some reads.

use std::ops::{Deref, DerefMut};

use crate::base::sync::{Arc, AtomicBool, Mutex, Ordering};
use crate::env::{Fs, ReadQueue};

/// Reads that one queue has under way at a time: enough to reach an SSD's full rate.
pub const QUEUE_DEPTH: u32 = 64;
/// So many are kept for those who come next.
const IDLE_MAX: usize = 16;

/// The queues. Lock rank: a leaf; nothing is called under it.
#[derive(Debug)]
pub struct Queues {
    fs: Arc<dyn Fs>,
    idle: Mutex<Vec<Box<dyn ReadQueue>>>,
    /// Whether there are none to be had.
    none: AtomicBool,
}

impl Queues {
    /// None yet.
    pub fn new(fs: Arc<dyn Fs>) -> Self {
        Self { fs, idle: Mutex::new(Vec::new()), none: AtomicBool::new(false) }
    }

    /// An empty queue, for as long as the result lives; `None` where the file system has none. What has failed once is
    /// not tried again.
    pub fn take(&self) -> Option<Taken<'_>> {
        if self.none.load(Ordering::Relaxed) {
            return None;
        }
        let idle = self.idle.lock().pop();
        let queue = idle.or_else(|| self.fs.read_queue(QUEUE_DEPTH));
        if queue.is_none() {
            self.none.store(true, Ordering::Relaxed);
        }
        queue.map(|queue| Taken { queues: self, queue: Some(queue) })
    }

    /// Whether there are any.
    pub fn are_there(&self) -> bool {
        self.take().is_some()
    }
}

/// A queue in use.
pub struct Taken<'a> {
    queues: &'a Queues,
    queue: Option<Box<dyn ReadQueue>>,
}

impl Deref for Taken<'_> {
    type Target = dyn ReadQueue;

    fn deref(&self) -> &Self::Target {
        &**self.queue.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Taken<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut **self.queue.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let queue = self.queue.take().filter(|queue| queue.is_empty());
        let mut idle = self.queues.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.extend(queue);
        } else {
            // Closing one takes a while.
            drop(idle);
            drop(queue);
        }
    }
}
