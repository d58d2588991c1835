//! What happens while nothing is written: a thread looks every now and then, and brings about what no write would.
//!
//! Garbage that writers were let off is collected down to the goal; memtables that hide much of it are flushed, so that
//! it is seen; writers are refused while readers hold far too much; and the segment prepared for the next writes is
//! given back. The thread holds the cube only while it looks, and ends by itself when the cube is closed; a close waits
//! for a look that is under way, so that the lock on the directory goes with the last handle.

use std::time::Duration;

use super::super::Cube;
use super::super::space::{Demand, Space};
use crate::base::error::{Error, Result};
use crate::base::options::GcPolicy;
use crate::base::sync::{Arc, Condvar, Mutex};

/// How often it looks.
const TICK: Duration = Duration::from_millis(100);
/// Nothing is written when nothing was for so long.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Writers are refused when readers have held too much for so long.
const REFUSE_AFTER: Duration = Duration::from_secs(10);
/// Memtables are flushed if they could hide so large a part of the slack.
const SURFACE_PART_OF_SLACK: u64 = 8;
/// A snapshot that is held for longer while space is wanted is worth a warning.
const SNAPSHOT_OLD: Duration = Duration::from_secs(3600);

/// What the thread remembers.
#[derive(Debug, Default)]
struct Watch {
    log_bytes: u64,
    since: Duration,
    /// Since when readers have held more than there is alive.
    exhausted_since: Option<Duration>,
    warned: bool,
}

/// Lets whoever closes a cube wait until the thread has let go of it. Lock rank: a leaf.
#[derive(Debug, Default)]
pub struct Lookout {
    state: Mutex<LookoutState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LookoutState {
    ended: bool,
    looking: bool,
}

impl Lookout {
    /// Lets nobody look any more, and waits for a look that is under way.
    pub fn end(&self) {
        let mut state = self.state.lock();
        state.ended = true;
        while state.looking {
            self.changed.wait(&mut state);
        }
    }

    /// Begins a look, which lasts until the result is dropped; `None` once there are to be no more.
    fn begin(&self) -> Option<Look<'_>> {
        let mut state = self.state.lock();
        if state.ended {
            return None;
        }
        state.looking = true;
        Some(Look(self))
    }
}

/// One look.
struct Look<'a>(&'a Lookout);

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.0.state.lock().looking = false;
        self.0.changed.notify_all();
    }
}

/// Starts the thread that watches `cube`.
///
/// # Errors
/// `Io` if it cannot be started.
pub fn watch(cube: &Arc<Cube>) -> Result<()> {
    let (clock, mut watch) = (cube.env.clock.clone(), Watch::default());
    let (lookout, watched) = (Arc::clone(&cube.maintenance.lookout), Arc::downgrade(cube));
    let body = Box::new(move || {
        loop {
            clock.sleep(TICK);
            let Some(look) = lookout.begin() else { return };
            let Some(cube) = watched.upgrade() else { return };
            cube.look(&mut watch);
            // Whoever waits for the end of the look must find nobody who holds the cube.
            drop(cube);
            drop(look);
        }
    });
    let started = cube.env.spawn.spawn("tamarack-idle", body);
    started.map(drop).map_err(|error| Error::io("start a thread for", &cube.directory, error))
}

impl Cube {
    fn look(&self, watch: &mut Watch) {
        let (now, log_bytes) = (self.env.clock.monotonic(), self.order.log_bytes());
        self.refuse_if_exhausted(now, watch);
        if self.index.files().has_unpunched() {
            self.punch_holes(false);
        }
        if log_bytes != watch.log_bytes || watch.since.is_zero() {
            (watch.log_bytes, watch.since) = (log_bytes, now);
            self.schedule();
            return;
        }
        if now.saturating_sub(watch.since) < IDLE_AFTER || self.options.gc == GcPolicy::Off {
            return;
        }
        // Those of the tables that were there when the cube was opened are not known yet.
        self.estimate_missing();
        let space = self.space();
        let mut state = self.maintenance.state.lock();
        state.idle = true;
        self.schedule_in(&mut state, &space);
        let busy = state.is_busy();
        drop(state);
        if busy {
            return;
        }
        // Its failure costs space; a writer that needs the segment makes it itself.
        drop(self.spare.discard(&*self.env.fs));
        self.surface_garbage(&space);
        if space.is_over_goal(Demand::Idle) {
            // A checkpoint may be gone that shared their files.
            self.punch_holes(true);
            self.warn_of_old_snapshot(now, watch);
        }
    }

    /// Readers that hold on to files for long take the disk's space from everybody.
    fn refuse_if_exhausted(&self, now: Duration, watch: &mut Watch) {
        let exhausted = self.options.gc != GcPolicy::Off && self.space().is_exhausted();
        let since = exhausted.then(|| watch.exhausted_since.unwrap_or(now));
        watch.exhausted_since = since;
        self.throttle.refuse(since.is_some_and(|since| now.saturating_sub(since) >= REFUSE_AFTER));
    }

    /// Flushes memtables if much could be dead by what is in them: as many values of average size as they hold
    /// operations. If that fails, whoever waits for a flush hears why.
    fn surface_garbage(&self, space: &Space) {
        let version = self.index.version();
        let operations = self.publisher.visible().0.saturating_sub(version.numbers().last_sequence.0);
        let (mut values, mut bytes) = (0_u64, 0_u64);
        for live in version.segments().live_by_home().values() {
            (values, bytes) = (values + live.values, bytes + live.bytes);
        }
        if operations.saturating_mul(bytes / values.max(1)) > space.slack / SURFACE_PART_OF_SLACK {
            drop(self.order.rotate_memtable(|turn| self.next_memtable(turn)));
            self.schedule();
        }
    }

    fn warn_of_old_snapshot(&self, now: Duration, watch: &mut Watch) {
        let (count, oldest) = self.snapshots.summary();
        let Some(age) = oldest.map(|taken| now.saturating_sub(taken)).filter(|&age| age > SNAPSHOT_OLD)
        else {
            watch.warned = false;
            return;
        };
        if !std::mem::replace(&mut watch.warned, true) {
            self.health.warn(format!(
                "space is wanted, and the oldest of {count} snapshots has been held for {} s: drop it if it is not needed",
                age.as_secs()
            ));
        }
    }
}
