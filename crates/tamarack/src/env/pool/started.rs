//! A group of jobs on its way.

use std::panic::resume_unwind;

use super::Shared;
use super::group::Group;
use crate::base::sync::Arc;

/// Jobs that [`WorkerPool::start`](super::WorkerPool::start) was given. Dropped before they are done, it takes back those that
/// nobody has begun and waits for the others: whoever drops it may let go of what they use.
pub struct Started {
    pool: Arc<Shared>,
    group: Arc<Group>,
}

impl Started {
    pub(super) fn new(pool: Arc<Shared>, group: Arc<Group>) -> Self {
        Self { pool, group }
    }

    /// Does those that nobody has begun, and returns when all are done. If some panic, the others are done
    /// nevertheless, and then the first panic goes on in the caller.
    pub fn finish(self) {
        loop {
            let claimed = self.pool.state.lock().queues.claim_of_group(&self.group);
            match claimed {
                Some(job) => self.group.run(job),
                None => break,
            }
        }
        if let Some(payload) = self.group.wait() {
            resume_unwind(payload);
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let unclaimed = self.pool.state.lock().queues.take_group(&self.group);
        self.group.give_up(unclaimed.len());
        drop(unclaimed);
        if self.group.wait().is_some() {
            self.pool.count_panic();
        }
    }
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").finish_non_exhaustive()
    }
}
