//! Removing files that nobody can reach any more.
//!
//! Whoever drops the last handle of an obsolete file *dooms* it: a writer, an iterator, a flush. Removing it takes
//! milliseconds where the file system tells the device of every block that it gives back, so that is left to a job, one
//! at a time. Once the cube is being closed no job begins any more: who dooms a file removes it, and the close what is left.
//!
//! A file may be doomed while any lock is held, so that only the queue of the workers is locked for it, and nobody is woken.
//! So whoever is about to begin a job and finds the cube closing must not have been waited for: until then it is only
//! *about to*, which nobody waits for, and the close lets that moment pass before it waits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;

use super::super::Cube;
use crate::base::swap::ArcSwapOption;
use crate::base::sync::{Arc, AtomicBool, Ordering, spin_hint};
use crate::env::panic_message;
use crate::env::pool::Priority;

/// How whoever dooms a file finds the cube: files are there before it, and after.
pub type RemoverSlot = Arc<ArcSwapOption<Weak<Cube>>>;

/// The removal job of one cube.
#[derive(Debug, Default)]
pub struct Removal {
    /// Whether somebody is about to begin it, and may yet find that the cube is being closed.
    beginning: AtomicBool,
    /// Whether it runs or waits for a worker, or a caller will do its work.
    under_way: AtomicBool,
    /// Whether it is a caller.
    by_caller: AtomicBool,
}

impl Cube {
    /// Whether a job removes files, or will soon; its end wakes whoever waits.
    pub(super) fn is_removing(&self) -> bool {
        !self.removal.by_caller.load(Ordering::Acquire) && self.is_removing_anywhere()
    }

    /// The same, also if it is a caller.
    fn is_removing_anywhere(&self) -> bool {
        let soon = || self.index.files().has_doomed() && !self.maintenance.is_ending();
        self.removal.under_way.load(Ordering::Acquire) || soon()
    }

    /// Has the doomed files removed. Returns whether a job does it.
    pub(in super::super) fn start_removal(&self) -> bool {
        loop {
            if self.removal.beginning.swap(true, Ordering::SeqCst) {
                return true;
            }
            let cube = self.this.upgrade().filter(|_| !self.maintenance.is_ending());
            let is_ending = cube.is_none();
            let begins = cube.filter(|_| !self.removal.under_way.swap(true, Ordering::SeqCst));
            let submitted = begins.map(|cube| {
                // The workers outlive the cube: they refuse when the process is ending.
                self.workers.submit(Priority::High, Box::new(move || cube.removal_job()))
            });
            self.removal.beginning.store(false, Ordering::SeqCst);
            if submitted == Some(false) {
                self.removal.under_way.store(false, Ordering::SeqCst);
            }
            if is_ending || submitted == Some(false) {
                return false;
            }
            // Others may have doomed files since the job ended, and relied on this call. A job that has not ended looks again.
            if self.removal.under_way.load(Ordering::SeqCst) || !self.index.files().has_doomed() {
                return true;
            }
        }
    }

    /// Once the cube is closing: waits until nobody is about to begin a job who does not know.
    pub(super) fn settle_removal(&self) {
        while self.removal.beginning.load(Ordering::SeqCst) {
            spin_hint();
        }
    }

    /// Does `work` for a caller who asks for space: what it dooms is gone when this returns.
    pub(super) fn removing_here<T>(&self, work: impl FnOnce() -> T) -> T {
        let removes = !self.removal.under_way.swap(true, Ordering::SeqCst);
        if removes {
            self.removal.by_caller.store(true, Ordering::Release);
        }
        let _at_work = self.maintenance.at_work.begin();
        let _here = Here { cube: self, removes };
        work()
    }

    fn removal_job(&self) {
        let _at_work = self.maintenance.at_work.begin();
        let files = self.index.files();
        let end = || self.removal.under_way.store(false, Ordering::Release);
        loop {
            let removed = catch_unwind(AssertUnwindSafe(|| {
                // What was doomed stays as far as there is room for it by now.
                self.limit_stock(0);
                files.finish_removal();
            }));
            if let Err(payload) = removed {
                return self.end_panicked(|_| end(), &panic_message(&*payload));
            }
            self.end_job(|_| end());
            // Some may have been doomed before it ended, when nobody else began.
            let more = files.has_doomed() && !self.maintenance.is_ending();
            if !more || self.removal.under_way.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

/// A caller who removes what is doomed when this is dropped, or waits for the job that does.
struct Here<'a> {
    cube: &'a Cube,
    removes: bool,
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.cube.index.files().release_stock();
        if self.removes {
            self.cube.removal.by_caller.store(false, Ordering::Release);
            return self.cube.removal_job();
        }
        let mut state = self.cube.maintenance.state.lock();
        while self.cube.is_removing_anywhere() {
            self.cube.maintenance.changed.wait(&mut state);
        }
    }
}
