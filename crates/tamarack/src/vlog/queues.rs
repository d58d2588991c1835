//! The read queues of a cube that are not in use: making one takes longer than some reads.

use std::ops::{Deref, DerefMut};

use crate::base::sync::{Arc, AtomicU64, Mutex, Ordering};
use crate::env::{Fs, ReadQueue};

/// Reads that one queue has under way at a time: enough to reach an SSD's full rate.
pub const QUEUE_DEPTH: u32 = 64;
/// So many are kept for those who come next.
const IDLE_MAX: usize = 16;

/// The queues. Each takes a file descriptor, in use at most some two megabytes beside the pages that it [was given](ReadQueue::use_pages), and at rest some half a megabyte. Lock rank: a
/// leaf; nothing is called under it.
#[derive(Debug)]
pub struct Queues {
    fs: Arc<dyn Fs>,
    idle: Mutex<Vec<Box<dyn ReadQueue>>>,
    supply: AtomicU64,
}

/// Nobody has asked the file system for a queue.
const UNKNOWN: u64 = 0;
/// It has given one.
const SOME: u64 = 1;
/// It has none, or those that it gives do not work.
const NONE: u64 = 2;

impl Queues {
    /// None yet.
    pub fn new(fs: Arc<dyn Fs>) -> Arc<Self> {
        Arc::new(Self { fs, idle: Mutex::new(Vec::new()), supply: AtomicU64::new(UNKNOWN) })
    }

    /// An empty queue, for as long as the result lives; `None` where there are none, or none more at this moment.
    pub fn take(self: &Arc<Self>) -> Option<Taken> {
        if self.supply.load(Ordering::Relaxed) == NONE {
            return None;
        }
        let idle = self.idle.lock().pop();
        let queue = idle.or_else(|| self.make());
        queue.map(|queue| Taken { queues: Arc::clone(self), queue: Some(queue) })
    }

    /// Whether there are any.
    pub fn are_there(self: &Arc<Self>) -> bool {
        if self.supply.load(Ordering::Relaxed) == UNKNOWN {
            // It stays for the first who needs one.
            drop(self.take());
        }
        self.supply.load(Ordering::Relaxed) == SOME
    }

    fn make(&self) -> Option<Box<dyn ReadQueue>> {
        let queue = self.fs.read_queue(QUEUE_DEPTH);
        // Where there was one, it is the process that has run short of something.
        let supply = if queue.is_some() { SOME } else { NONE };
        self.supply.compare_exchange(UNKNOWN, supply, Ordering::Relaxed, Ordering::Relaxed).ok();
        queue
    }

    fn put_back(&self, mut queue: Box<dyn ReadQueue>) {
        if !queue.is_empty() {
            return;
        }
        if !queue.rest() {
            self.supply.store(NONE, Ordering::Relaxed);
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(queue);
        } else {
            // Closing one takes a while.
            drop(idle);
            drop(queue);
        }
    }
}

/// A queue in use.
pub struct Taken {
    queues: Arc<Queues>,
    queue: Option<Box<dyn ReadQueue>>,
}

impl Deref for Taken {
    type Target = dyn ReadQueue;

    fn deref(&self) -> &Self::Target {
        &**self.queue.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Taken {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut **self.queue.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            self.queues.put_back(queue);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::env::fault::FaultEnv;
    use crate::env::sim::{SimDisk, SimOptions};

    #[test]
    fn queues_are_kept_for_others_where_there_are_any() {
        let none = SimDisk::new(&SimOptions::default()).env();
        let queues = Queues::new(Arc::clone(&none.fs));
        assert!(!queues.are_there() && queues.take().is_none());

        let (some, _) = FaultEnv::new(none);
        let queues = Queues::new(some.fs);
        assert!(queues.are_there());
        assert_eq!(queues.idle.lock().len(), 1, "the one that was asked for to see");
        let taken: Vec<_> = (0..2 * IDLE_MAX).map(|_| queues.take().expect("there are any")).collect();
        assert_eq!(queues.idle.lock().len(), 0);
        drop(taken);
        assert_eq!(queues.idle.lock().len(), IDLE_MAX);
    }

    /// A queue that has stopped working.
    #[derive(Debug)]
    struct Worn;

    impl ReadQueue for Worn {
        fn has_room(&self, _: usize) -> bool {
            true
        }

        fn is_empty(&self) -> bool {
            true
        }

        fn begin(&mut self, _: usize, _: &Arc<dyn crate::env::File>, _: u64, _: usize) {}

        fn submit(&mut self) {}

        fn finish_some(&mut self, _: &mut dyn FnMut(usize, std::io::Result<&[u8]>)) {}

        fn rest(&mut self) -> bool {
            false
        }
    }

    #[test]
    fn where_one_does_not_work_none_is_taken_any_more() {
        let (env, _) = FaultEnv::new(SimDisk::new(&SimOptions::default()).env());
        let queues = Queues::new(env.fs);
        assert!(queues.are_there());
        queues.put_back(Box::new(Worn));
        assert!(!queues.are_there() && queues.take().is_none());
    }
}
