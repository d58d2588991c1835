//! The disk as a test sees it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::crash::{Fate, Kind};
use super::faults::DiskFault;
use super::fs::SimFs;
use super::moment::Moment;
use super::random::{Random, SimRng};
use super::state::State;
use super::time::{SimClock, SimThreads};
use crate::base::sync::{Arc, PlainMutex, PlainMutexGuard, interleave};
use crate::env::Env;

/// What a world is like.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Determines every random number that the engine gets.
    pub seed: u64,
    /// Bytes of a block of the file system.
    pub block_bytes: u64,
    /// Bytes that fit on the disk.
    pub capacity_bytes: u64,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self { seed: 0, block_bytes: 4096, capacity_bytes: 1 << 40 }
    }
}

/// A simulated disk, and the world around it. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Shared>,
    env: Env,
}

/// What the disk, its files and its mappings share.
pub struct Shared {
    state: PlainMutex<State>,
}

impl Shared {
    /// The disk's state. A point at which another thread may go first.
    pub fn lock(&self) -> PlainMutexGuard<'_, State> {
        interleave();
        self.lock_at_once()
    }

    /// The same where a thread must not wait for another: when something is dropped, or looked at from outside.
    pub fn lock_at_once(&self) -> PlainMutexGuard<'_, State> {
        self.state.lock()
    }
}

impl SimDisk {
    /// An empty disk in a new world.
    pub fn new(options: &SimOptions) -> Self {
        let state = State::new(options.block_bytes, options.capacity_bytes);
        Self::with_state(state, options.seed, Duration::from_secs(1))
    }

    fn with_state(state: State, seed: u64, now: Duration) -> Self {
        let shared = Arc::new(Shared { state: PlainMutex::new(state) });
        let env = Env {
            fs: Arc::new(SimFs::new(Arc::clone(&shared))),
            clock: Arc::new(SimClock::at(now)),
            rng: Arc::new(SimRng::new(seed)),
            spawn: Arc::new(SimThreads),
        };
        Self { shared, env }
    }

    /// The world in which this is the disk.
    pub fn env(&self) -> Env {
        self.env.clone()
    }

    /// The disk after a loss of power at this moment, in a world of its own. What survives of that which was in flight
    /// depends on `seed`. This disk goes on as it is.
    pub fn crash(&self, seed: u64) -> Self {
        let state = self.shared.lock_at_once();
        let mut fate = Fate::from_seed(seed, state.changes());
        self.with_image(state.crashed(&mut fate), seed)
    }

    /// Takes a picture as [`kill`](Self::kill) does, when change (or sync) number `change` is about to be made, for
    /// [`take_killed`](Self::take_killed). Only the last one that was asked for is taken.
    pub fn kill_at(&self, change: u64) {
        self.shared.lock_at_once().kill_at(change);
    }

    /// The disk after the kill that was asked for, if it has come to that.
    pub fn take_killed(&self) -> Option<Self> {
        let killed = self.shared.lock_at_once().take_killed()?;
        Some(self.with_image(killed, 0))
    }

    /// Keeps each [`Moment`] from now on, for [`take_moments`](Self::take_moments).
    pub fn record(&self) {
        self.shared.lock_at_once().record();
    }

    /// The moments between all changes since [`record`](Self::record), before the first and after the last included.
    pub fn take_moments(&self) -> Vec<Moment> {
        self.shared.lock_at_once().take_moments()
    }

    /// Plans something to go wrong with this disk: once, at the first call that it can strike, `changes` changes from now
    /// or later. Where chance has a part in it, it follows from `seed`.
    pub fn inject(&self, fault: DiskFault, changes: u64, seed: u64) {
        let mut state = self.shared.lock_at_once();
        let from = state.changes() + changes;
        state.plan.add(fault, from, seed);
    }

    /// How much has gone wrong.
    pub fn struck(&self) -> u64 {
        self.shared.lock_at_once().plan.struck()
    }

    /// Flips a bit, which `seed` chooses, of a file: in memory, on the device, and where it is between. Returns the file
    /// and the offset.
    pub fn rot(&self, seed: u64) -> Option<(PathBuf, u64)> {
        let mut state = self.shared.lock_at_once();
        let (id, offset) = state.rot(seed)?;
        Some((state.path_of(id)?, offset))
    }

    /// How many open files and mappings there are.
    pub fn open_handles(&self) -> u64 {
        self.shared.lock_at_once().open_handles()
    }

    /// A disk in a world of its own.
    pub(super) fn from_image(state: State, seed: u64) -> Self {
        Self::with_state(state, seed, Duration::from_secs(1))
    }

    /// Notes that `number` holds for `subject` from now on: something that a crash must not take back, for example.
    pub fn note_fact(&self, subject: u64, number: u64) {
        self.shared.lock_at_once().facts.insert(subject, number);
    }

    /// What was noted for `subject` last; in the picture of a crash, before that.
    pub fn fact(&self, subject: u64) -> Option<u64> {
        self.shared.lock_at_once().facts.get(&subject).copied()
    }

    /// The disk after the death of the process at this moment, in a world of its own: everything that was written is
    /// there, but a loss of power may still take what was in flight.
    pub fn kill(&self) -> Self {
        let killed = self.shared.lock_at_once().killed();
        self.with_image(killed, 0)
    }

    /// The disk after a loss of power that took everything in flight.
    pub fn crash_to_durable(&self) -> Self {
        let state = self.shared.lock_at_once();
        self.with_image(state.crashed(&mut Fate::of(Kind::Nothing, 0)), 0)
    }

    /// A digest of every call to the file system so far, its arguments and bytes included: equal for two runs that did
    /// the same things in the same order.
    pub fn trace(&self) -> u64 {
        self.shared.lock_at_once().trace()
    }

    /// How many changes of files and names there were, syncs included.
    pub fn changes(&self) -> u64 {
        self.shared.lock_at_once().changes()
    }

    /// A world that goes on with `state`.
    fn with_image(&self, state: State, seed: u64) -> Self {
        let random = Random::new(seed ^ state.trace()).number();
        Self::with_state(state, random, self.env.clock.monotonic())
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimDisk").finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
