//! What happens while nothing is written: a thread looks every now and then, and brings about what no write would.
//!
//! Garbage that writers were let off is collected as far as that is worth its while; what was kept to become new segments is
//! removed; memtables that hide much of it are flushed, so that it is seen; values are sorted, once nothing is read, either;
//! writers are refused while readers hold far too much; and the segment prepared for the next writes is given back. The
//! thread holds the cube only while it looks, and ends by itself when the cube is closed; a close waits for a look that is
//! under way, so that the lock on the directory goes with the last handle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::super::Cube;
use super::super::collect::{Effort, Reads};
use super::super::readers::ReaderStats;
use super::super::space::{Demand, Refusal, Space};
use crate::base::error::{Error, Result};
use crate::base::options::GcPolicy;
use crate::base::sync::{Arc, Condvar, Mutex};
use crate::env::panic_message;
use crate::env::unwatched::WATCHER;

/// How often it looks.
const TICK: Duration = Duration::from_millis(100);
/// Nothing is written when nothing was for so long.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// Writers are refused when readers have held too much for so long ...
const READERS_REFUSE_AFTER: Duration = Duration::from_secs(10);
/// ... or when nothing has been freed for so long, although all is taken that may be, because something hinders collections: what writers that are slowed down
/// as far as they are then write meanwhile is about a segment of the default size.
const GARBAGE_REFUSE_AFTER: Duration = Duration::from_secs(8);
/// Large pages that are looked at, to be parted, at a time: that takes some ten milliseconds at most.
const PARTED_PAGES_MAX: u64 = 64;
/// Memtables are flushed if they could hide so large a part of the slack.
const SURFACE_PART_OF_SLACK: u64 = 8;
/// A snapshot that is held for longer while space is wanted is worth a warning.
const SNAPSHOT_OLD: Duration = Duration::from_secs(3600);
/// An iterator that holds more than the slack for longer is worth one, too.
const READER_OLD: Duration = Duration::from_secs(60);

/// What the thread remembers.
#[derive(Debug, Default)]
pub(super) struct Watch {
    log_bytes: u64,
    since: Duration,
    /// What had been read, and since when it was no more.
    reads: u64,
    unread_since: Duration,
    /// What scans had cost when values were last sorted for their sake.
    pub(super) scans_paid_for: u64,
    /// Since when readers have held more than there is alive.
    exhausted_since: Option<Duration>,
    /// Since when nothing has been freed although all is taken that may be, and the least that has been taken since.
    stuck: Option<(Duration, u64)>,
    /// How much had been written when memtables or the log were last asked for in vain.
    pub(super) unflushable: Option<u64>,
    /// The number of the snapshot that was told of.
    warned_of_snapshot: Option<u64>,
    /// The number of the reader that was told of.
    warned_of_reader: Option<u64>,
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
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| cube.look(&mut watch))) {
                cube.poison_by_panic(&panic_message(&*payload));
            }
            // Whoever waits for the end of the look must find nobody who holds the cube.
            drop(cube);
            drop(look);
        }
    });
    let started = cube.env.spawn.spawn(WATCHER, body);
    started.map(drop).map_err(|error| Error::io("start a thread for", &cube.directory, error))
}

impl Cube {
    fn look(&self, watch: &mut Watch) {
        let _at_work = self.maintenance.at_work.begin();
        let (now, log_bytes) = (self.env.clock.monotonic(), self.order.log_bytes());
        let reads = Reads::of(self).reads;
        if reads != watch.reads {
            (watch.reads, watch.unread_since) = (reads, now);
        }
        self.refuse_if_it_lasts(now, watch);
        if self.index.files().has_unpunched() {
            self.punch_holes(false);
        }
        self.part_pages();
        self.warn_of_reader(now, watch);
        if log_bytes != watch.log_bytes || watch.since.is_zero() {
            (watch.log_bytes, watch.since) = (log_bytes, now);
            self.schedule();
            self.sort_for_scans(watch, log_bytes);
            self.warn_of_old_snapshot(now, watch, Demand::Busy);
            return;
        }
        if now.saturating_sub(watch.since) < IDLE_AFTER {
            // Jobs go on writing.
            self.schedule();
            return;
        }
        // No segments are filled that files could become, whether there are collections or not.
        self.index.files().release_stock();
        if self.options.gc == GcPolicy::Off {
            return;
        }
        // Those of the tables that were there when the cube was opened are not known yet.
        self.estimate_missing();
        let space = self.space();
        let mut state = self.maintenance.state.lock();
        state.idle = true;
        self.schedule_in(&mut state, &space);
        let (busy, may_flush) = (self.is_busy(&state), state.stopped.is_none());
        drop(state);
        if busy {
            return;
        }
        // Its failure costs space; a writer that needs the segment makes it itself.
        drop(self.spare.discard(&*self.env.fs));
        // What failed is not tried again before something has been written.
        if may_flush && watch.unflushable != Some(log_bytes) {
            let asked = self.surface_garbage(&space).and_then(|()| self.expose_log(self.exposed_bytes_min()));
            watch.unflushable = asked.is_err().then_some(log_bytes);
        }
        if now.saturating_sub(watch.unread_since) < IDLE_AFTER {
            self.sort_for_scans(watch, log_bytes);
        } else {
            self.start_sorting(&space, Demand::Idle, Effort::Spare);
        }
        if space.is_over_goal(Demand::Idle) {
            // A checkpoint may be gone that shared their files.
            self.punch_holes(true);
        }
        self.warn_of_old_snapshot(now, watch, Demand::Idle);
    }

    /// Where memory is scarce, the system is not to keep what nobody reads for being in one page with what somebody does.
    fn part_pages(&self) {
        if self.reader.scarcity().is_high() {
            let state = self.maintenance.state.lock();
            let unnamed: Vec<_> = state.sealed.iter().map(|meta| meta.id).collect();
            drop(state);
            let version = self.index.version();
            let is_durable = |id| version.segments().get(id).is_some() || unnamed.contains(&id);
            self.reader.segments().part_pages(PARTED_PAGES_MAX, is_durable);
        }
    }

    /// Readers that hold on to files for long take the disk's space from everybody, and so does garbage that cannot be
    /// collected.
    fn refuse_if_it_lasts(&self, now: Duration, watch: &mut Watch) {
        let state = self.maintenance.state.lock();
        let bounded = self.options.gc != GcPolicy::Off;
        // What was dead is not known to be before tables are written.
        let (paused, telling) =
            (state.gc_pauses > 0, state.compacting > 0 || state.flushing || state.sorting);
        drop(state);
        let space = self.space();
        let exhausted = bounded && space.calls_for(Refusal::Readers);
        watch.exhausted_since = exhausted.then(|| watch.exhausted_since.unwrap_or(now));
        let taken = bounded && !paused && space.calls_for(Refusal::Garbage);
        let stuck = taken && self.what_hinders_collections().is_some();
        watch.stuck = stuck.then(|| {
            let fresh = (now, space.taken());
            watch.stuck.filter(|(_, least)| *least <= fresh.1).unwrap_or(fresh)
        });
        let lasts = |since: Duration, patience| now.saturating_sub(since) >= patience;
        let refusal = if watch.exhausted_since.is_some_and(|since| lasts(since, READERS_REFUSE_AFTER)) {
            Some(Refusal::Readers)
        } else if !telling && watch.stuck.is_some_and(|(since, _)| lasts(since, GARBAGE_REFUSE_AFTER)) {
            Some(Refusal::Garbage)
        } else {
            None
        };
        self.throttle.refuse(refusal);
    }

    /// Flushes memtables if much could be dead by what is in them: as many values of average size as they hold
    /// operations.
    fn surface_garbage(&self, space: &Space) -> Result<()> {
        let version = self.index.version();
        let operations = self.publisher.visible().0.saturating_sub(version.numbers().last_sequence.0);
        let (mut values, mut bytes) = (0_u64, 0_u64);
        for live in version.segments().live_by_home().values() {
            (values, bytes) = (values + live.values, bytes + live.bytes);
        }
        if operations.saturating_mul(bytes / values.max(1)) > space.slack / SURFACE_PART_OF_SLACK {
            self.order.rotate_memtable(|turn| self.next_memtable(turn))?;
            self.schedule();
        }
        Ok(())
    }

    /// Tells of the oldest snapshot, once, if it is old and space is wanted, or more than the slack kept for it: what
    /// snapshots see counts as live, so that space may not seem to be wanted.
    fn warn_of_old_snapshot(&self, now: Duration, watch: &mut Watch, demand: Demand) {
        let (count, oldest) = self.snapshots.summary(now);
        let old = |(_, oldest): &(u64, ReaderStats)| oldest.age_seconds > SNAPSHOT_OLD.as_secs_f64();
        let Some((number, _)) = oldest.filter(old) else { return };
        if watch.warned_of_snapshot == Some(number) {
            return;
        }
        let mut stats = self.snapshots.stats(now, &self.held_for_snapshots()).into_iter();
        let Some((_, oldest)) = stats.find(|(found, _)| *found == number) else { return };
        let wanted = self.options.gc != GcPolicy::Off && self.space().is_over_goal(demand);
        if wanted || oldest.held_bytes > self.slack() {
            watch.warned_of_snapshot = Some(number);
            self.health.warn(format!(
                "{}, the oldest of {count}, has been there for {:.0} s and keeps {} bytes that the present does not need, \
                 while space is wanted: drop it if it is not needed",
                described(&oldest),
                oldest.age_seconds,
                oldest.held_bytes
            ));
        }
    }

    /// Tells of a reader, once, that has held more in files than the slack for some time. Writers are not idle then.
    fn warn_of_reader(&self, now: Duration, watch: &mut Watch) {
        let files = self.index.files();
        let slack = self.slack();
        if files.leaving_bytes() <= slack {
            return;
        }
        let forgotten = |(_, reader): &(u64, ReaderStats)| {
            reader.age_seconds > READER_OLD.as_secs_f64() && reader.held_bytes > slack
        };
        let oldest = self.readers.list(now, &files.leaving()).into_iter().find(forgotten);
        let Some((number, reader)) = oldest else { return };
        if watch.warned_of_reader.replace(number) != Some(number) {
            self.health.warn(format!(
                "{} has been there for {:.0} s and keeps {} bytes in files that the present does not need: drop it if it \
                 is not needed",
                described(&reader),
                reader.age_seconds,
                reader.held_bytes
            ));
        }
    }
}

/// What a reader is called in a warning.
fn described(reader: &ReaderStats) -> String {
    let name = reader.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
    format!("the {}{name} at sequence {}", reader.kind, reader.sequence)
}
