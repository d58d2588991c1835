//! Jobs that somebody waits for together.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Job;
use crate::base::sync::{Condvar, Mutex};

/// How far a group has come. Its unclaimed jobs wait in the pool's queues.
pub struct Group {
    progress: Mutex<Progress>,
    finished: Condvar,
}

struct Progress {
    unfinished: usize,
    first_panic: Option<Box<dyn Any + Send>>,
}

impl Group {
    /// A group of `jobs` jobs, none done yet.
    pub fn new(jobs: usize) -> Self {
        Self {
            progress: Mutex::new(Progress { unfinished: jobs, first_panic: None }),
            finished: Condvar::new(),
        }
    }

    /// Does one of the group's jobs; a panic is kept for the one who waits.
    pub fn run(&self, job: Job) {
        let outcome = catch_unwind(AssertUnwindSafe(job));
        let mut progress = self.progress.lock();
        if let Err(payload) = outcome {
            progress.first_panic.get_or_insert(payload);
        }
        progress.unfinished -= 1;
        if progress.unfinished == 0 {
            self.finished.notify_all();
        }
    }

    /// Says that `jobs` of them, which were unclaimed, will not be done.
    pub fn give_up(&self, jobs: usize) {
        self.progress.lock().unfinished -= jobs;
    }

    /// Waits until every job is done; the first panic, if there was one.
    pub fn wait(&self) -> Option<Box<dyn Any + Send>> {
        let mut progress = self.progress.lock();
        while progress.unfinished > 0 {
            self.finished.wait(&mut progress);
        }
        progress.first_panic.take()
    }
}
