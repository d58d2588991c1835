//! What waits for a worker, and who may take it. Pure bookkeeping under the pool's lock: no job runs here.

use std::collections::VecDeque;

use super::group::Group;
use super::{Job, Priority};
use crate::base::sync::Arc;

/// The three queues of a pool and the limit that keeps a thread free for urgent work.
pub struct Queues {
    high: VecDeque<Job>,
    low: VecDeque<Job>,
    /// Groups with jobs that nobody has claimed; one whose last job is claimed leaves the queue.
    groups: VecDeque<(Arc<Group>, VecDeque<Job>)>,
    /// Threads in limited work, at most `limited_max`.
    limited: usize,
    limited_max: usize,
}

/// A claimed piece of work.
pub enum Task {
    /// A job of its own.
    Submitted { priority: Priority, job: Job },
    /// A job whose group waits for it.
    OfGroup { group: Arc<Group>, job: Job },
}

impl Task {
    /// Whether the work counts against the limit, and so must be followed by [`Queues::end_limited`].
    pub fn is_limited(&self) -> bool {
        !matches!(self, Self::Submitted { priority: Priority::High, .. })
    }
}

impl Queues {
    /// Empty queues for a pool of `threads`.
    pub fn new(threads: usize) -> Self {
        Self {
            high: VecDeque::new(),
            low: VecDeque::new(),
            groups: VecDeque::new(),
            limited: 0,
            // The only thread of a pool has to do everything.
            limited_max: threads.saturating_sub(1).max(1),
        }
    }

    /// Queues a job behind its equals.
    pub fn push(&mut self, priority: Priority, job: Job) {
        match priority {
            Priority::High => self.high.push_back(job),
            Priority::Low => self.low.push_back(job),
        }
    }

    /// Queues a group behind the others. `jobs` is not empty.
    pub fn push_group(&mut self, group: Arc<Group>, jobs: Vec<Job>) {
        debug_assert!(!jobs.is_empty(), "a queued group has unclaimed jobs");
        self.groups.push_back((group, jobs.into()));
    }

    /// The next thing that one of the pool's threads should do.
    pub fn claim(&mut self) -> Option<Task> {
        if let Some(job) = self.high.pop_front() {
            return Some(Task::Submitted { priority: Priority::High, job });
        }
        if self.limited == self.limited_max {
            return None;
        }
        let task = self.claim_limited()?;
        self.limited += 1;
        Some(task)
    }

    fn claim_limited(&mut self) -> Option<Task> {
        if let Some((group, job)) = self.claim_of_group_at(0) {
            return Some(Task::OfGroup { group, job });
        }
        let job = self.low.pop_front()?;
        Some(Task::Submitted { priority: Priority::Low, job })
    }

    /// An unclaimed job of `group`, for the thread that waits for the group. Not limited: that thread is either
    /// not the pool's, or its present job has been counted.
    pub fn claim_of_group(&mut self, group: &Arc<Group>) -> Option<Job> {
        let at = self.groups.iter().position(|(queued, _)| Arc::ptr_eq(queued, group))?;
        self.claim_of_group_at(at).map(|(_, job)| job)
    }

    fn claim_of_group_at(&mut self, at: usize) -> Option<(Arc<Group>, Job)> {
        let (group, jobs) = self.groups.get_mut(at)?;
        let job = jobs.pop_front().expect("a queued group has unclaimed jobs");
        let group = Arc::clone(group);
        if jobs.is_empty() {
            self.groups.remove(at);
        }
        Some((group, job))
    }

    /// Takes out the unclaimed jobs of `group`.
    pub fn take_group(&mut self, group: &Arc<Group>) -> VecDeque<Job> {
        let at = self.groups.iter().position(|(queued, _)| Arc::ptr_eq(queued, group));
        at.and_then(|at| self.groups.remove(at)).map(|(_, jobs)| jobs).unwrap_or_default()
    }

    /// A thread is done with limited work.
    pub fn end_limited(&mut self) {
        debug_assert!(self.limited > 0, "whoever ends limited work has begun it");
        self.limited -= 1;
    }

    /// Takes out every submitted job that nobody has claimed. Groups stay: whoever started them does them, or takes
    /// them out.
    pub fn take_submitted(&mut self) -> Vec<Job> {
        self.high.drain(..).chain(self.low.drain(..)).collect()
    }
}
