//! How far the log is on the device, and the group commit that moves it.
//!
//! Whoever needs the log durable up to a position asks [`Durability::sync_to`]. If nobody is syncing, the caller
//! becomes the leader: it syncs for everyone who has asked so far, with one `fdatasync` per segment that may
//! hold unsynced bytes (almost always one), while later callers wait and are served by the next leader. That one first
//! lets those come back who were in the same company a moment ago: else callers split into two groups that wait for each
//! other's syncs. After a failure the position never moves again: the caller poisons the cube.
//!
//! A caller may ask only for positions below which every record is written (its commit is published). Lock rank:
//! `state`, a leaf; it is not held during a sync.

#[cfg(all(test, loom))]
mod loom_tests;

use std::collections::VecDeque;

use crate::base::error::{Error, Result};
use crate::base::ids::LogPosition;
use crate::base::sync::{Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, YIELDS_MAX};
use crate::env::{Env, Spawn};
use crate::vlog::segment::SegmentFile;

/// The durable part of one cube's log.
#[derive(Debug)]
pub struct Durability {
    state: Mutex<State>,
    changed: Condvar,
    syncs: AtomicU64,
}

#[derive(Debug)]
struct State {
    durable: LogPosition,
    wanted: LogPosition,
    /// Whether there is a leader.
    syncing: bool,
    /// Callers who are in [`Durability::sync_to`], the leader included.
    callers: usize,
    /// How many there were when the last sync ended, those included for whom it was.
    company: usize,
    failure: Option<Error>,
    /// The segments that may hold bytes beyond `durable`, oldest first.
    segments: VecDeque<Arc<SegmentFile>>,
}

/// What a call of [`Durability::sync_to`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synced {
    /// The log already was, or another caller made it, durable that far.
    Already,
    /// This call synced; the log is durable up to here, which a mark should tell.
    Now(LogPosition),
}

impl Durability {
    /// A log that is durable up to `durable`, its present end.
    pub fn new(durable: LogPosition) -> Self {
        let state = State {
            durable,
            wanted: durable,
            syncing: false,
            callers: 0,
            company: 0,
            failure: None,
            segments: VecDeque::new(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), syncs: AtomicU64::new(0) }
    }

    /// The position up to which the log is durable.
    pub fn durable(&self) -> LogPosition {
        self.state.lock().durable
    }

    /// How many syncs were done.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Tells of a segment that records will be written to.
    pub fn add_segment(&self, segment: Arc<SegmentFile>) {
        self.state.lock().segments.push_back(segment);
    }

    /// Makes the log durable up to `position`. Blocks on the device.
    ///
    /// # Errors
    /// `Io`, and the same error for every later call: what was not durable before may never be.
    pub fn sync_to(&self, env: &Env, position: LogPosition) -> Result<Synced> {
        let mut state = self.state.lock();
        state.wanted = state.wanted.max(position);
        state.callers += 1;
        let (mut state, result) = self.wait_or_lead(env, position, state);
        state.callers -= 1;
        result
    }

    fn wait_or_lead<'a>(
        &'a self,
        env: &Env,
        position: LogPosition,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, Result<Synced>) {
        loop {
            if state.durable >= position {
                return (state, Ok(Synced::Already));
            }
            if let Some(failure) = state.failure.clone() {
                return (state, Err(failure));
            }
            if !state.syncing {
                break;
            }
            self.changed.wait(&mut state);
        }
        state.syncing = true;
        let state = self.gather(&*env.spawn, state);
        let target = state.wanted;
        let segments: Vec<_> =
            state.segments.iter().filter(|s| s.header().id <= target.segment).cloned().collect();
        drop(state);
        let result = segments.iter().try_for_each(|segment| segment.sync(&*env.fs));
        self.syncs.fetch_add(segments.len() as u64, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.syncing = false;
        state.company = state.callers;
        self.changed.notify_all();
        if let Err(error) = result {
            state.failure = Some(error.clone());
            return (state, Err(error));
        }
        state.durable = state.durable.max(target);
        while state.segments.front().is_some_and(|segment| segment.header().id < target.segment) {
            state.segments.pop_front();
        }
        (state, Ok(Synced::Now(target)))
    }

    /// Lets those come who have just been served, for a small part of the time that a sync takes.
    fn gather<'a>(&'a self, threads: &dyn Spawn, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        for _ in 0..YIELDS_MAX {
            if state.callers >= state.company {
                break;
            }
            drop(state);
            threads.yield_now();
            state = self.state.lock();
        }
        state
    }
}
