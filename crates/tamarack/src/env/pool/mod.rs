//! A pool of worker threads for flushes, compactions, garbage collection and parallel reads.
//!
//! Work comes in two ways: [`WorkerPool::submit`] queues a job and returns; [`WorkerPool::start`] has a group of jobs
//! done by whoever is idle, and the caller joins in when it wants them to be done. [`WorkerPool::run_all`] is both at once.
//!
//! Invariants:
//! - High priority goes before low, first come first served within each. Group jobs come in between: they finish
//!   work that has begun.
//! - Of `n >= 2` threads at most `n - 1` are in low-priority or group work at any time, so a flush never waits
//!   for a compaction to end.
//! - Nobody waits for a group's work that nobody has begun: whoever wants it done does that itself, and whoever does not
//!   takes it back. So a job on the pool may start a group, however busy the other threads are, and after `shutdown` too.
//! - A panic ends the job, not the thread. What it said is the business of whoever submitted the job.
//!
//! One lock, held for moving jobs between queues only: never while a job runs or is dropped. The completion
//! state of a group has its own lock, and neither is taken under the other.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(shuttle)]
use shuttle::thread::{self, ThreadId};
#[cfg(not(shuttle))]
use std::thread::{self, ThreadId};

use self::group::Group;
use self::queues::{Queues, Task};
pub use self::started::Started;
use crate::base::sync::{Arc, Condvar, Mutex};
use crate::env::{Env, Join};

mod group;
mod queues;
mod started;

#[cfg(all(test, shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(shuttle)))]
mod tests;

/// Something to do, once.
pub type Job = Box<dyn FnOnce() + Send>;

/// What goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Work that a writer may be waiting for: flushes and everything about the log.
    High,
    /// Work that keeps the store in shape: compactions and garbage collection.
    Low,
}

/// The pool. Dropping it shuts it down.
pub struct WorkerPool {
    shared: Arc<Shared>,
    /// Emptied by the first shutdown; held while that one waits, so that a second waits as well.
    threads: Mutex<Vec<Box<dyn Join>>>,
}

/// What the pool and its threads share. It does not hold the pool itself, so the last user's drop ends it.
struct Shared {
    state: Mutex<State>,
    /// Notified when a waiting thread may find work or should end.
    wake: Condvar,
}

struct State {
    queues: Queues,
    open: bool,
    /// The pool's own threads that have started.
    members: Vec<ThreadId>,
    panics: u64,
}

impl WorkerPool {
    /// Starts `threads` threads (at least one) called `name-0`, `name-1` and so on. If one cannot be started,
    /// those that were are ended again.
    pub fn new(env: &Env, name: &str, threads: usize) -> io::Result<Arc<Self>> {
        assert!(threads > 0, "a pool without threads would never run a job");
        let state = State {
            queues: Queues::new(threads),
            open: true,
            members: Vec::with_capacity(threads),
            panics: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
        let pool = Arc::new(Self { shared, threads: Mutex::new(Vec::with_capacity(threads)) });
        for index in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let thread = env.spawn.spawn(&format!("{name}-{index}"), Box::new(move || shared.work()))?;
            pool.threads.lock().push(thread);
        }
        Ok(pool)
    }

    /// Queues a job. Returns `false`, and drops the job, if the pool has been shut down.
    pub fn submit(&self, priority: Priority, job: Job) -> bool {
        let mut state = self.shared.state.lock();
        if !state.open {
            drop(state);
            return false;
        }
        state.queues.push(priority, job);
        drop(state);
        self.shared.wake.notify_one();
        true
    }

    /// Does all `jobs`, on idle threads and on this one, and returns when they are done. If some panic, the
    /// others are done nevertheless, and then the first panic goes on in the caller.
    pub fn run_all(&self, mut jobs: Vec<Job>) {
        if jobs.len() <= 1 {
            jobs.drain(..).for_each(|job| job());
            return;
        }
        self.start(jobs).finish();
    }

    /// Has `jobs` done on idle threads, and returns at once.
    pub fn start(&self, jobs: Vec<Job>) -> Started {
        let (group, count) = (Arc::new(Group::new(jobs.len())), jobs.len());
        if count > 0 {
            let mut state = self.shared.state.lock();
            state.queues.push_group(Arc::clone(&group), jobs);
            let threads = state.members.len();
            drop(state);
            // One call where all are wanted; no thread woken in vain where they are not.
            if count >= threads {
                self.shared.wake.notify_all();
            } else {
                for _ in 0..count {
                    self.shared.wake.notify_one();
                }
            }
        }
        Started::new(Arc::clone(&self.shared), group)
    }

    /// How many submitted jobs have panicked, and jobs of groups that nobody waited for: else whoever waits has the panic.
    pub fn panics(&self) -> u64 {
        self.shared.state.lock().panics
    }

    /// Accepts no more jobs, drops those that nobody has begun, waits for the others and ends the threads. Called
    /// from one of the pool's own threads it cannot wait for itself: it returns at once, and the threads end by
    /// themselves.
    pub fn shutdown(&self) {
        let (queued, from_inside) = {
            let mut state = self.shared.state.lock();
            state.open = false;
            (state.queues.take_submitted(), state.members.contains(&thread::current().id()))
        };
        self.shared.wake.notify_all();
        drop(queued);
        if from_inside {
            return;
        }
        let mut threads = self.threads.lock();
        for thread in threads.drain(..) {
            if thread.join().is_err() {
                // Jobs cannot end a thread, so this is a mistake of the pool's own: keep it visible.
                self.shared.count_panic();
            }
        }
    }
}

impl Shared {
    /// The life of a worker thread.
    fn work(&self) {
        self.state.lock().members.push(thread::current().id());
        while let Some(task) = self.next_task() {
            let limited = task.is_limited();
            match task {
                Task::Submitted { job, .. } => {
                    if catch_unwind(AssertUnwindSafe(job)).is_err() {
                        self.count_panic();
                    }
                }
                Task::OfGroup { group, job } => group.run(job),
            }
            if limited {
                // Nobody needs waking for the freed place. While all are taken, one other thread at most is
                // without limited work. So this thread goes on with what the limit held back; or with an
                // urgent job instead, but the arrival of that has woken the other one.
                self.state.lock().queues.end_limited();
            }
        }
    }

    /// Waits for something to do. `None` once the pool is shut down.
    fn next_task(&self) -> Option<Task> {
        let mut state = self.state.lock();
        loop {
            if !state.open {
                return None;
            }
            if let Some(task) = state.queues.claim() {
                return Some(task);
            }
            self.wake.wait(&mut state);
        }
    }

    fn count_panic(&self) {
        self.state.lock().panics += 1;
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        self.shutdown();
    }
}

impl fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerPool").field("panics", &self.panics()).finish_non_exhaustive()
    }
}
