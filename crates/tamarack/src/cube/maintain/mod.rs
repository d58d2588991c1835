//! Background work: which jobs run, and what waits for them.
//!
//! Six kinds of job run on the shared workers. *Following* reads what is written of the log while it is in memory. *Sealing*
//! finishes full segments, in log order. *Flushing* turns frozen memtables into tables, oldest first; it first makes the log
//! durable up to their end, so that no table ever points to bytes that a crash could take back (I-09). *Compacting* rewrites
//! tables, *collecting* copies live values out of segments that are mostly dead, and *sorting* copies them out of segments where
//! they lie in disorder. One following, one sealing, one flushing and one sorting job run at a time, and as many compactions and collections as do not touch each
//! other. Every change of memtables, segments or tables ends with [`Cube::schedule`], which starts what has become
//! possible. What has become superfluous by all that is removed by [`removal`].
//!
//! A failure for want of space stops sealing and flushing and is told to the writers that wait for them; the next
//! one to ask starts them again. Any other failure there poisons the cube. A compaction or a collection that fails
//! stops its kind for a while, or, where it met damage, until the cube is opened again ([`stopped`]). Lock rank: under
//! `state` only the registers of the index, the estimates of `inventory` and the head-room are locked, for a look.

mod collect;
mod compact;
mod flush;
mod follow;
mod idle;
mod removal;
mod sort;
mod stopped;

pub use idle::watch;
pub use removal::{Removal, RemoverSlot};

use follow::Written;
use idle::Lookout;
use stopped::Stopped;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::Cube;
use super::collect::Replacing;
use super::headroom::Filled;
use super::publish::Ticket;
use super::space::{Demand, Space};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::SegmentId;
use crate::base::options::GcPolicy;
use crate::base::segment::SegmentMeta;
use crate::base::sync::{Arc, AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use crate::env::at_work::AtWork;
use crate::env::panic_message;
use crate::env::pool::Priority;
use crate::index::Due;
use crate::vlog::segment::{Segment, SegmentFile};

/// A full segment that waits to be sealed.
#[derive(Debug)]
pub struct Seal {
    /// Its file.
    pub file: Arc<SegmentFile>,
    /// The segment as long as it may still be written to.
    pub writing: Option<Arc<Segment>>,
    /// Where its records end.
    pub end: u64,
    /// Once this ticket is published, all its records are written.
    pub barrier: Ticket,
}

/// The background work of one cube.
#[derive(Debug, Default)]
pub struct Maintenance {
    state: Mutex<State>,
    changed: Condvar,
    at_work: Arc<AtWork>,
    /// Set when compactions should stop as soon as they can.
    pub(super) cancelled: Arc<AtomicBool>,
    /// The thread that looks while nothing is written.
    lookout: Arc<Lookout>,
}

#[derive(Debug, Default)]
struct State {
    closing: bool,
    /// Whether the log is followed; nobody but a close waits for that.
    following: bool,
    /// What is to be followed next.
    written: Option<Written>,
    /// Whether a sealing job waits for a worker.
    seal_queued: bool,
    /// Whether somebody seals: that job, or a flush that got there first and must not wait for a worker.
    sealing: bool,
    flushing: bool,
    compacting: usize,
    collecting: usize,
    /// Whether values are being sorted: copied, in the background or on a caller's thread, or ...
    sorting: bool,
    /// ... copied so far, and pointers are being replaced.
    replacing: Option<Box<Replacing>>,
    /// The segments in which there was nothing left to sort.
    surveyed: Option<sort::Surveyed>,
    /// Collections on their callers' threads.
    requested: usize,
    /// How many jobs have ended.
    ended: u64,
    /// How many had when the compaction began to wait that waits for room.
    waits_since: Option<u64>,
    /// Whether nothing has been written lately, or somebody waits for all to settle.
    idle: bool,
    /// How often somebody has asked for no collections in the background.
    gc_pauses: usize,
    /// Full segments, oldest first.
    seals: VecDeque<Seal>,
    /// Sealed segments that no manifest edit has named yet.
    sealed: Vec<SegmentMeta>,
    /// The space when jobs were last scheduled.
    space: Space,
    /// Why flushing stopped, until somebody starts it again.
    stopped: Option<Error>,
    /// Why no compactions run.
    compaction_stopped: Stopped,
    /// Why no collections run.
    collection_stopped: Stopped,
}

impl Seal {
    /// A segment whose records end at `end`; the last of them was granted `barrier`.
    pub fn new(segment: Arc<Segment>, end: u64, barrier: Ticket) -> Self {
        Self { file: Arc::clone(segment.shared()), writing: Some(segment), end, barrier }
    }
}

impl Maintenance {
    /// Work that begins with the segments recovery has sealed.
    pub fn new(sealed: Vec<SegmentMeta>) -> Self {
        Self { state: Mutex::new(State { sealed, ..State::default() }), ..Self::default() }
    }

    /// Adds a full segment.
    pub fn add_seal(&self, seal: Seal) {
        let mut state = self.state.lock();
        state.seals.push_back(seal);
        state.idle = false;
    }

    /// Where the records of segment `id` end, if it waits to be sealed.
    pub fn end_of_unsealed(&self, id: SegmentId) -> Option<u64> {
        let state = self.state.lock();
        state.seals.iter().find(|seal| seal.file.header().id == id).map(|seal| seal.end)
    }

    /// Refuses work once a close has begun.
    ///
    /// # Errors
    /// `Closed`.
    pub fn check_open(&self) -> Result<()> {
        if self.state.lock().closing { Err(Error::closed()) } else { Ok(()) }
    }

    /// The sealed segments that no manifest edit has named yet.
    pub fn unregistered(&self) -> Vec<SegmentMeta> {
        self.state.lock().sealed.clone()
    }

    /// Jobs that run, or wait for a worker.
    pub fn running_jobs(&self) -> u64 {
        self.state.lock().running_jobs() as u64
    }

    /// Whether a close has begun.
    pub fn is_ending(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Wakes everybody who waits for background work, to look at the cube's health.
    pub fn wake_all(&self) {
        drop(self.state.lock());
        self.changed.notify_all();
    }
}

impl Cube {
    /// Starts every job that has become possible, and sets how much writers are slowed down.
    pub(super) fn schedule(&self) {
        let space = self.space();
        self.schedule_in(&mut self.maintenance.state.lock(), &space);
    }

    fn schedule_in(&self, state: &mut MutexGuard<'_, State>, space: &Space) {
        let Some(this) = self.this.upgrade() else { return };
        state.space = *space;
        if state.closing || self.health.is_poisoned() || self.options.read_only {
            return;
        }
        let may_seal = !state.sealing && !state.seal_queued && state.stopped.is_none();
        if may_seal && !state.seals.is_empty() {
            state.seal_queued = true;
            let end = |state: &mut State| (state.seal_queued, state.sealing) = (false, false);
            this.start(state, Priority::High, end, Cube::seal_job);
        }
        if !state.flushing && state.stopped.is_none() && !self.current.peek().frozen.is_empty() {
            state.flushing = true;
            let end = |state: &mut State| (state.flushing, state.sealing) = (false, false);
            this.start(state, Priority::High, end, Cube::flush_job);
        }
        // Where a close has cancelled such jobs, one that began would end at once, and another begin, until jobs are refused.
        if self.maintenance.cancelled.load(Ordering::Relaxed) {
            return;
        }
        let demand = if state.idle { Demand::Idle } else { Demand::Busy };
        let waits = self.start_compactions(&this, state, space, demand);
        let Filled { wanted, waited, .. } = self.headroom.filled();
        let space = &Space { wanted, waited, ..*space };
        self.start_replacing(&this, state);
        if state.idle {
            self.index.files().release_stock();
        }
        self.index.files().limit_stock(space.stock_max());
        let collected = self.start_collections(&this, state, space, demand);
        if waits && !collected {
            self.start_without_room(&this, state);
        }
        // Values that are being sorted take more than they will.
        let passing = state.sorting && demand == Demand::Idle;
        if space.is_over_goal(demand) && !collected && !passing && state.compacting == 0 {
            // What is dead is hidden: merging levels before they are due shows where.
            self.start_due(&this, state, Due::EAGER, |_, _| true);
        }
        self.order.limit_memtable_log(self.memtable_log_max(space));
        self.slow_writers(state, space);
    }

    /// Sets how much writers are slowed down to what space is there by now, while a job fills some.
    pub(super) fn follow_space(&self) {
        let seen = self.maintenance.state.lock().space;
        let space = self.taken_now(seen);
        self.index.files().limit_stock(space.stock_max());
        self.slow_writers(&self.maintenance.state.lock(), &space);
    }

    /// Keeps no more files to become new ones than leave room, by now, for new files of `bytes`. Returns whether any is removed
    /// for that.
    pub(super) fn limit_stock(&self, bytes: u64) -> bool {
        let seen = self.maintenance.state.lock().space;
        self.index.files().limit_stock(self.taken_now(seen).stock_max().saturating_sub(bytes))
    }

    fn slow_writers(&self, state: &State, space: &Space) {
        // Who wants no collections gets no bound, and is not slowed down for its sake.
        let bounded = self.options.gc != GcPolicy::Off && state.gc_pauses == 0;
        let garbage = if bounded { space.debt() } else { 0.0 };
        self.throttle.set_debt(self.debt().max(garbage).min(1.0), self.env.clock.monotonic());
    }

    /// Runs `job` on the workers. If it panics, the cube is poisoned and `end` takes the job out of the state, so
    /// that nobody waits for it.
    fn start(
        self: &Arc<Self>,
        state: &mut State,
        priority: Priority,
        end: fn(&mut State),
        job: impl FnOnce(&Cube) + Send + 'static,
    ) {
        let cube = Arc::clone(self);
        let body = Box::new(move || {
            let _at_work = cube.maintenance.at_work.begin();
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job(&cube))) {
                cube.end_panicked(end, &panic_message(&*payload));
            }
        });
        // The workers outlive the cube, so a refusal means that the process is ending.
        if !self.workers.submit(priority, body) {
            end(state);
            self.health.warn("background work was refused: the workers have been shut down".into());
        }
    }

    /// How far background work is behind, from 0 to 1: the worse of memtables that wait for a flush, tables that
    /// wait in level 0, and log that would have to be replayed.
    pub(super) fn debt(&self) -> f64 {
        let state = self.current.peek();
        let memtables = state.frozen.len() as f64 / self.options.memtables_max as f64;
        let level0 = state.version.level(0).len() as f64 / LEVEL0_TABLES_MAX as f64;
        memtables.max(level0).min(1.0)
    }

    /// Starts again what stopped because the disk was full, for a caller who is about to wait for it: there may be
    /// space by now, and if there is none, the caller gets an error of the present.
    pub(super) fn retry_for_want_of_space(&self) {
        self.retry(is_full);
    }

    /// The same for everything that stopped for a reason that may have passed, for a caller who has asked for the work.
    pub(super) fn retry_on_request(&self) {
        self.retry(|_| true);
    }

    fn retry(&self, is: fn(&Error) -> bool) {
        let mut state = self.maintenance.state.lock();
        let lifted = [
            state.stopped.take_if(|error| is_full(error)).is_some(),
            state.compaction_stopped.lift_if(is),
            state.collection_stopped.lift_if(is),
        ];
        drop(state);
        if lifted.contains(&true) {
            self.schedule();
        }
    }

    /// Waits until a job has ended that may have made space, after starting what can be started. Returns whether there
    /// was one.
    pub(super) fn wait_for_a_job(&self) -> bool {
        self.retry_for_want_of_space();
        let mut state = self.maintenance.state.lock();
        let (before, begin) = (state.ended, self.env.clock.monotonic());
        while state.ended == before {
            let is_over = state.closing || self.maintenance.is_ending();
            if is_over || self.health.is_poisoned() || !self.is_busy(&state) {
                return false;
            }
            self.maintenance.changed.wait(&mut state);
        }
        self.throttle.note_wait(self.env.clock.monotonic() - begin);
        true
    }

    /// Waits until another memtable may be frozen. `log_bytes` is the log granted so far.
    ///
    /// # Errors
    /// Why flushing stopped; the next call starts it again.
    pub(super) fn wait_for_flush(&self, log_bytes: u64) -> Result<()> {
        let mut waited = None;
        self.retry_for_want_of_space();
        let mut state = self.maintenance.state.lock();
        let result = loop {
            if let Err(error) = self.health.check_writable() {
                break Err(error);
            }
            let shown = self.current.peek();
            let frozen = shown.frozen.len();
            let unflushed = shown.unflushed_log_bytes(log_bytes);
            drop(shown);
            let long_log = frozen > 0 && unflushed > self.options.recovery_log_max / 4 * 3;
            if frozen + 1 < self.options.memtables_max && !long_log {
                break Ok(());
            }
            if let Some(error) = state.stopped.take() {
                drop(state);
                self.schedule();
                break Err(error);
            }
            waited.get_or_insert_with(|| self.env.clock.monotonic());
            self.maintenance.changed.wait(&mut state);
        };
        if let Some(begin) = waited {
            self.throttle.note_wait(self.env.clock.monotonic() - begin);
        }
        result
    }

    /// Waits until no job runs and none is possible; what failed for a reason that may have passed is tried again first. What a
    /// read-only cube has replayed is never flushed.
    ///
    /// # Errors
    /// Why a job stopped, or why the cube is poisoned; `Closed` if it was closed with work undone.
    pub fn wait_idle(&self) -> Result<()> {
        self.retry_on_request();
        self.punch_holes(true);
        let space = self.space();
        let mut state = self.maintenance.state.lock();
        state.idle = true;
        self.schedule_in(&mut state, &space);
        let mut has_looked = false;
        loop {
            self.health.check_writable()?;
            let stopped = state.stopped.as_ref().or(state.compaction_stopped.why());
            if let Some(error) = stopped.or(state.collection_stopped.why()) {
                return Err(error.clone());
            }
            if !self.is_busy(&state) {
                // The space may have been another when jobs were last scheduled, and whoever prepares a segment, which is no job,
                // may be the last to hold a file.
                if !std::mem::replace(&mut has_looked, true) {
                    drop(state);
                    self.spare.settle();
                    let space = self.space();
                    state = self.maintenance.state.lock();
                    state.idle = true;
                    self.schedule_in(&mut state, &space);
                    continue;
                }
                let done = state.seals.is_empty() && self.current.peek().frozen.is_empty();
                if done || self.options.read_only {
                    drop(state);
                    // The jobs have let go of what they were reading.
                    self.punch_holes(true);
                    return Ok(());
                }
                if state.closing {
                    return Err(Error::closed());
                }
            } else {
                has_looked = false;
            }
            self.maintenance.changed.wait(&mut state);
        }
    }

    /// Whether this thread does background work of the cube, whose end it cannot wait for.
    pub fn is_at_work_here(&self) -> bool {
        self.maintenance.at_work.has_this_thread()
    }

    /// Has jobs that copy or merge end soon, and whoever waits for one be woken.
    pub(super) fn cancel_jobs(&self) {
        self.maintenance.cancelled.store(true, Ordering::SeqCst);
        self.maintenance.wake_all();
    }

    /// Accepts no more jobs, lets the running ones end, and returns the segments not sealed yet. Whoever waits for
    /// jobs that will not run any more is woken, to find the cube closed.
    pub(super) fn stop_maintenance(&self) -> VecDeque<Seal> {
        self.settle_removal();
        // Before jobs are refused: a look may wait for one.
        self.maintenance.lookout.end();
        let mut state = self.maintenance.state.lock();
        state.closing = true;
        let given_up = state.give_up_replacing();
        while self.is_busy(&state) || state.following || state.requested > 0 {
            self.maintenance.changed.wait(&mut state);
        }
        self.maintenance.changed.notify_all();
        let seals = std::mem::take(&mut state.seals);
        drop(state);
        drop(given_up);
        seals
    }

    /// Ends a job: `finish` changes the state and whatever became possible is started under one lock, so that nobody
    /// finds the cube idle in between.
    fn end_job(&self, finish: impl FnOnce(&mut State)) {
        let mut state = self.maintenance.state.lock();
        let space = loop {
            let ended = state.ended;
            drop(state);
            let space = self.space();
            state = self.maintenance.state.lock();
            // A removal that has ended meanwhile has made space, and has left what that makes possible to this job.
            if state.ended == ended {
                break space;
            }
        };
        finish(&mut state);
        state.ended += 1;
        // A comparator of the user's may be asked. The job has ended, whatever comes of that.
        let scheduled = catch_unwind(AssertUnwindSafe(|| self.schedule_in(&mut state, &space)));
        drop(state);
        if let Err(payload) = scheduled {
            self.poison_by_panic(&panic_message(&*payload));
        }
        self.maintenance.changed.notify_all();
    }

    /// Runs a job, which is counted in the state already, on its caller's thread; `end` takes it out of the state.
    fn run_here<T>(&self, end: fn(&mut State), job: impl FnOnce() -> Result<T>) -> Result<T> {
        let _at_work = self.maintenance.at_work.begin();
        match catch_unwind(AssertUnwindSafe(job)) {
            Ok(result) => {
                self.end_job(end);
                result
            }
            Err(payload) => {
                self.end_panicked(end, &panic_message(&*payload));
                resume_unwind(payload);
            }
        }
    }

    /// Ends a job that panicked: nobody knows what it left undone.
    fn end_panicked(&self, end: impl FnOnce(&mut State), said: &str) {
        self.poison_by_panic(said);
        end(&mut self.maintenance.state.lock());
        self.maintenance.changed.notify_all();
    }

    fn poison_by_panic(&self, said: &str) {
        self.poison(&Error::invalid_argument(format!("a panic in background work: {said}")));
    }

    /// Whether anything is under way.
    fn is_busy(&self, state: &State) -> bool {
        state.is_busy() || self.is_removing()
    }

    /// What a failed job means for the cube. Returns whether the job may be tried again on request.
    fn judge(&self, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::NoSpace | ErrorKind::Closed => true,
            _ => {
                self.poison(error);
                false
            }
        }
    }
}

impl State {
    /// Leaves pointers as they are; what was held for replacing them is returned, to be dropped without a lock.
    fn give_up_replacing(&mut self) -> Option<Box<Replacing>> {
        let replacing = self.replacing.take();
        if replacing.is_some() {
            self.sorting = false;
        }
        replacing
    }

    fn is_busy(&self) -> bool {
        self.running_jobs() > 0
    }

    fn running_jobs(&self) -> usize {
        let single = [self.seal_queued || self.sealing, self.flushing, self.sorting];
        self.compacting + self.collecting + single.into_iter().filter(|&runs| runs).count()
    }
}

fn is_full(error: &Error) -> bool {
    error.kind() == ErrorKind::NoSpace
}

/// Tables in level 0 at which writers are slowed down most.
const LEVEL0_TABLES_MAX: usize = 40;
