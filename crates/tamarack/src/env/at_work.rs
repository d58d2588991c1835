//! Which threads do a cube's background work at the moment. A listener or a comparator of the user's that is called by one of them must not wait
//! for the end of that work, as a close does.

#[cfg(shuttle)]
use shuttle::thread::{self, ThreadId};
#[cfg(not(shuttle))]
use std::thread::{self, ThreadId};

use crate::base::sync::Mutex;

/// The threads. Its lock is held for moments, and nothing else is locked under it.
#[derive(Debug, Default)]
pub struct AtWork(Mutex<Vec<ThreadId>>);

/// This thread is one of them until this is dropped.
#[derive(Debug)]
pub struct Working<'a>(&'a AtWork);

impl AtWork {
    /// Has this thread among them; it may be already.
    pub fn begin(&self) -> Working<'_> {
        self.0.lock().push(thread::current().id());
        Working(self)
    }

    /// Whether this thread is one of them.
    pub fn has_this_thread(&self) -> bool {
        self.0.lock().contains(&thread::current().id())
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let mut threads = self.0.0.lock();
        let this = thread::current().id();
        let place = threads.iter().rposition(|thread| *thread == this).expect("this thread is at work");
        threads.swap_remove(place);
    }
}
