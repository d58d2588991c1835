//! How far the log is on the device, and the group commit that moves it.
//!
//! Whoever needs the log durable up to a position asks [`Durability::sync_to`]. If nobody is syncing, the caller
//! becomes the leader: it syncs for everyone who has asked so far, with one `fdatasync` per segment that may
//! hold unsynced bytes (almost always one), while later callers wait and are served by the next leader. After a
//! failure the position never moves again: the caller poisons the cube.
//!
//! A caller may ask only for positions below which every record is written (its commit is published). Lock rank:
//! `state`, a leaf; it is not held during a sync.

#[cfg(all(test, loom))]
mod loom_tests;

use std::collections::VecDeque;

use crate::base::error::{Error, Result};
use crate::base::ids::LogPosition;
use crate::base::sync::{Arc, AtomicU64, Condvar, Mutex, Ordering};
use crate::env::Fs;
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
    syncing: bool,
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
        let state =
            State { durable, wanted: durable, syncing: false, failure: None, segments: VecDeque::new() };
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
    pub fn sync_to(&self, fs: &dyn Fs, position: LogPosition) -> Result<Synced> {
        let mut state = self.state.lock();
        state.wanted = state.wanted.max(position);
        loop {
            if state.durable >= position {
                return Ok(Synced::Already);
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if !state.syncing {
                break;
            }
            self.changed.wait(&mut state);
        }
        state.syncing = true;
        let target = state.wanted;
        let segments: Vec<_> =
            state.segments.iter().filter(|s| s.header().id <= target.segment).cloned().collect();
        drop(state);
        let result = segments.iter().try_for_each(|segment| segment.sync(fs));
        self.syncs.fetch_add(segments.len() as u64, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.syncing = false;
        self.changed.notify_all();
        if let Err(error) = result {
            state.failure = Some(error.clone());
            return Err(error);
        }
        state.durable = state.durable.max(target);
        while state.segments.front().is_some_and(|segment| segment.header().id < target.segment) {
            state.segments.pop_front();
        }
        Ok(Synced::Now(target))
    }
}
