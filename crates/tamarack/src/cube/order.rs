//! The order of commits: who writes what where.
//!
//! # The commit protocol
//!
//! 1. *Grant.* Under one short lock a batch gets its ticket, its sequence numbers, its range of the active log
//!    segment and its share of the active memtable. Tickets, sequence numbers and log positions grow together, so
//!    all three name the same order.
//! 2. *Fill.* Without any lock the writer copies its records into its range of the mapped segment and, record by
//!    record after that (I-01), links them into the memtable. Writers fill in parallel.
//! 3. *Publish.* The writer reports its ticket done; tickets become visible in order (`publish`).
//! 4. *Sync*, if asked for: `durability` makes the log durable up to the end of the batch, for everyone who asks
//!    at the same time, and a mark that says so is appended to the log.
//!
//! When a batch does not fit — the segment is full or should be left, its reserved space is (or will soon be) used up, or the memtable is full —
//! one writer takes the *turn*: it sets a flag under the lock, leaves the lock, does the slow work (files,
//! memory, waiting for a flush), and installs the outcome under the lock again. Meanwhile nobody is granted
//! anything, so what the turn saw stays true; nobody is granted a later place first; and no I/O happens under the
//! lock. A turn that fails changes nothing, and its writer alone gets the error.
//! One that finds no room while jobs may make some changes nothing either: its writer waits for a job without the turn, and
//! tries again, so that deletions, for which there is room, and a close go on meanwhile.
//!
//! A batch never crosses from one segment into the next, nor from one memtable into the next. In a segment with
//! plain writes the fill itself is done as a turn, so that a failed write leaves no hole behind which others
//! have already written.
//!
//! Lock rank: `state` is taken alone or before the leaf locks of `durability` and `health`.

#[cfg(all(test, loom))]
mod loom_tests;
mod obstacle;
#[cfg(all(test, shuttle))]
mod shuttle_tests;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use obstacle::{Cleared, MemtableTurn, Obstacle, SegmentTurn};

use crate::base::error::{Error, Result};
use crate::base::ids::{LogPosition, SegmentId, Sequence};
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::sync::{Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use crate::index::memtable::Memtable;
use crate::vlog::format::{MARK_RECORD_BYTES, SEGMENT_HEADER_BYTES, encode_mark};
use crate::vlog::segment::{Blocks, CALLED_BYTES_MIN, Segment};

use super::headroom::Claim;
use super::health::Health;
use super::publish::{Publisher, Ticket};

/// What a batch takes.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// Bytes of log.
    pub log_bytes: u64,
    /// Bytes of memtable, at most.
    pub memtable_bytes: usize,
    /// Operations.
    pub operations: u64,
    /// What it wants space for.
    pub claim: Claim,
}

/// What a batch was given, for itself alone.
#[derive(Debug)]
pub struct Grant {
    /// Its place in the order.
    pub ticket: Ticket,
    /// The sequence number of its first operation.
    pub first_sequence: Sequence,
    /// The segment its records go to.
    pub segment: Arc<Segment>,
    /// Where they begin there.
    pub offset: u64,
    /// The memtable its operations go to.
    pub memtable: Arc<Memtable>,
    /// A range of the segment further on whose page faults somebody should take now.
    pub prefault: Option<std::ops::Range<u64>>,
}

/// Pages are faulted in this far ahead of the writers, half of it at a time, for whoever has that done wakes a thread ...
pub const PREFAULT_BYTES: u64 = 4 << 20;
/// ... or this part of what was written since the last sync, if that is more: in the end all that is reserved, at a time.
const PREFAULT_PART: u64 = 8;
/// ... but only once this much was written without a sync: a sync writes every page that was faulted in, used or
/// not.
const PREFAULT_AFTER_BYTES: u64 = 1 << 20;

/// Where pages are large, space is reserved before writers need it, so that its page faults are taken by the time they get there.
const RESERVE_AHEAD_BYTES: u64 = LARGE_PAGE_BYTES;

/// Records begin in the first 4 GiB of a segment, for that is as far as pointers and footers reach: what ends behind them begins one.
const OFFSETS_END: u64 = 1 << 32;

/// Where there was no room to leave a segment for, it is seen again after so many bytes.
const STAY_BYTES: u64 = 1 << 20;

/// The order of one cube.
#[derive(Debug)]
pub struct CommitOrder {
    state: Mutex<State>,
    free: Condvar,
    /// Bytes of log that one memtable may stand for.
    memtable_log_max: AtomicU64,
    publisher: Arc<Publisher>,
    health: Arc<Health>,
}

#[derive(Debug)]
struct State {
    turning: bool,
    closed: bool,
    last_ticket: u64,
    last_sequence: u64,
    tail: LogPosition,
    batches_end: LogPosition,
    next_segment: SegmentId,
    segment: Option<Arc<Segment>>,
    memtable: Arc<Memtable>,
    memtable_left: usize,
    memtable_used: bool,
    log_bytes: u64,
    memtable_log_start: u64,
    /// Bytes of log that the memtable stands for and that were not granted here.
    memtable_log_replayed: u64,
    /// The durable position of a mark that is still to be written.
    pending_mark: Option<LogPosition>,
    /// What `log_bytes` was at the last sync ...
    synced_at: u64,
    /// ... and by how much it had grown since the one before.
    sync_distance: u64,
    /// The end of the range of the segment that was faulted in ahead.
    prefaulted: u64,
    /// How far the log goes on in this segment in any case.
    stays_until: u64,
    /// How far data may go in the segment; deletions may go as far as it is reserved.
    open_to_data: u64,
    /// What that was when there was no space to be reserved ahead.
    no_space_ahead_of: u64,
}

/// Where an order begins.
#[derive(Debug)]
pub struct Start {
    /// The end of the recovered log.
    pub tail: LogPosition,
    /// An id that no segment has had.
    pub next_segment: SegmentId,
    /// The last operation.
    pub last_sequence: Sequence,
    /// The active memtable.
    pub memtable: Arc<Memtable>,
    /// Whether it holds recovered operations.
    pub memtable_used: bool,
    /// Bytes left in it.
    pub memtable_left: usize,
    /// Bytes of log that it stands for.
    pub memtable_log_bytes: u64,
}

impl CommitOrder {
    /// An order that goes on from `start`.
    pub fn new(start: Start, memtable_log_max: u64, publisher: Arc<Publisher>, health: Arc<Health>) -> Self {
        let state = State {
            turning: false,
            closed: false,
            last_ticket: 0,
            last_sequence: start.last_sequence.0,
            tail: start.tail,
            batches_end: start.tail,
            next_segment: start.next_segment,
            segment: None,
            memtable: start.memtable,
            memtable_left: start.memtable_left,
            memtable_used: start.memtable_used,
            log_bytes: 0,
            memtable_log_start: 0,
            memtable_log_replayed: start.memtable_log_bytes,
            pending_mark: None,
            synced_at: 0,
            sync_distance: u64::MAX,
            prefaulted: 0,
            stays_until: 0,
            open_to_data: 0,
            no_space_ahead_of: 0,
        };
        let memtable_log_max = AtomicU64::new(memtable_log_max);
        Self { state: Mutex::new(state), free: Condvar::new(), memtable_log_max, publisher, health }
    }

    /// Grants `need`. Obstacles are given to `clear`, one at a time and, but for [`Obstacle::Others`], to one caller at a time, without a lock.
    ///
    /// # Errors
    /// Whatever `clear` fails with; `ReadOnly` if the cube is poisoned; `Closed`.
    pub fn grant(&self, need: &Need, mut clear: impl FnMut(Obstacle) -> Result<Cleared>) -> Result<Grant> {
        let mut state = self.state.lock();
        loop {
            self.wait_for_turn(&mut state)?;
            if let Some(earlier) = self.publisher.blocks(Ticket(state.last_ticket + 1)) {
                drop(state);
                self.publisher.wait_for(earlier)?;
                state = self.state.lock();
                continue;
            }
            state.write_pending_mark(need)?;
            let Some(obstacle) = state.obstacle(need, self.memtable_log_max.load(Ordering::Relaxed)) else {
                return Ok(state.assign(need));
            };
            let plain = matches!(obstacle, Obstacle::PlainWrite(_));
            state.turning = true;
            drop(state);
            let mut turn = Turn { order: self, finished: false };
            let cleared = clear(obstacle);
            state = turn.finish();
            let cleared = cleared?;
            if matches!(cleared, Cleared::Later) {
                drop(state);
                clear(Obstacle::Others)?;
                state = self.state.lock();
                continue;
            }
            state.install(cleared);
            if plain {
                return Ok(state.assign(need));
            }
        }
    }

    /// Appends a mark which says that the log is durable up to `durable`, if the present segment has room for it
    /// (the header of the next one will say it otherwise). Never waits for a turn, because a turn may wait for
    /// whoever has synced; the mark is then left to the next grant.
    ///
    /// # Errors
    /// `Io` or `NoSpace` from a plain write. The log is as durable without the mark.
    pub fn append_mark(&self, durable: LogPosition) -> Result<()> {
        let mut state = self.state.lock();
        state.pending_mark = Some(durable);
        if durable.segment == state.tail.segment {
            state.sync_distance = state.log_bytes - state.synced_at;
            state.synced_at = state.log_bytes;
        }
        if state.turning || state.closed {
            return Ok(());
        }
        let Some((segment, mark)) = state.take_mark() else { return Ok(()) };
        if segment.is_mapped() {
            segment.write(state.tail.offset, &mark)?;
        } else {
            let offset = state.tail.offset;
            state.turning = true;
            drop(state);
            let mut turn = Turn { order: self, finished: false };
            let written = self.write_plainly(&segment, offset, &mark);
            state = turn.finish();
            written?;
        }
        state.advance(MARK_RECORD_BYTES as u64);
        Ok(())
    }

    /// Writes to a plain `segment` what ends its log, for a caller to whom that place was granted or who has the turn. Nothing stays of what
    /// failed that whoever recovers the log could take for records: the next ones may go elsewhere. If it cannot be taken away the cube is poisoned.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn write_plainly(&self, segment: &Segment, offset: u64, bytes: &[u8]) -> Result<()> {
        segment.write(offset, bytes).inspect_err(|error| {
            if segment.cut(offset).is_err() {
                self.health.poison(error);
            }
        })
    }

    /// Has the active memtable replaced by `replace`. Nothing happens if it is empty.
    ///
    /// # Errors
    /// Whatever `replace` fails with; `ReadOnly`; `Closed`.
    pub fn rotate_memtable(&self, replace: impl FnOnce(&MemtableTurn) -> Result<Cleared>) -> Result<()> {
        let mut state = self.state.lock();
        self.wait_for_turn(&mut state)?;
        if !state.memtable_used {
            return Ok(());
        }
        let memtable = state.memtable_turn(0, true);
        state.turning = true;
        drop(state);
        let mut turn = Turn { order: self, finished: false };
        let cleared = replace(&memtable);
        state = turn.finish();
        state.install(cleared?);
        Ok(())
    }

    /// Has the last segment ended by `replace`, which begins the next one. Nothing happens if nothing is in it. Returns whether that was
    /// done; else others are to be waited for.
    ///
    /// # Errors
    /// Whatever `replace` fails with; `ReadOnly`; `Closed`.
    pub fn end_segment(&self, replace: impl FnOnce(SegmentTurn) -> Result<Cleared>) -> Result<bool> {
        let mut state = self.state.lock();
        self.wait_for_turn(&mut state)?;
        if state.tail.offset <= SEGMENT_HEADER_BYTES {
            return Ok(true);
        }
        let segment = state.segment_turn(0, Claim::Data);
        state.turning = true;
        drop(state);
        let mut turn = Turn { order: self, finished: false };
        let cleared = replace(segment);
        state = turn.finish();
        let cleared = cleared?;
        if matches!(cleared, Cleared::Later) {
            return Ok(false);
        }
        state.install(cleared);
        // Even if nothing is in it, flushing it moves the log head into the new segment.
        state.memtable_used = true;
        Ok(true)
    }

    /// Refuses every further grant, waits for the present turn, and returns what is left to finish: the active
    /// segment with the end of its records, and the last ticket.
    pub fn close(&self) -> (Option<Arc<Segment>>, LogPosition, Ticket) {
        let mut state = self.state.lock();
        state.closed = true;
        while state.turning {
            self.free.wait(&mut state);
        }
        (state.segment.take(), state.tail, Ticket(state.last_ticket))
    }

    /// The end of the log and the last ticket: once that is published, everything before that end is written.
    pub fn tail(&self) -> (LogPosition, Ticket) {
        let state = self.state.lock();
        (state.tail, Ticket(state.last_ticket))
    }

    /// The same without what may follow the last batch, a mark or the head of a segment: they need not be durable for themselves.
    pub fn end_of_batches(&self) -> (LogPosition, Ticket) {
        let state = self.state.lock();
        (state.batches_end, Ticket(state.last_ticket))
    }

    /// Bytes of log granted since the cube was opened.
    pub fn log_bytes(&self) -> u64 {
        self.state.lock().log_bytes
    }

    /// Lets memtables stand for at most `bytes` of log from now on.
    pub fn limit_memtable_log(&self, bytes: u64) {
        self.memtable_log_max.store(bytes, Ordering::Relaxed);
    }

    /// The active segment, if there is one, and the end of its records.
    pub fn active_segment(&self) -> Option<(Arc<Segment>, u64)> {
        let state = self.state.lock();
        state.segment.clone().map(|segment| (segment, state.tail.offset))
    }

    fn wait_for_turn(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        loop {
            self.health.check_writable()?;
            if state.closed {
                return Err(Error::closed());
            }
            if !state.turning {
                return Ok(());
            }
            self.free.wait(state);
        }
    }
}

/// Ends a turn even if its work panics, so that nobody waits for it for ever.
struct Turn<'a> {
    order: &'a CommitOrder,
    finished: bool,
}

impl<'a> Turn<'a> {
    fn finish(&mut self) -> MutexGuard<'a, State> {
        self.finished = true;
        let mut state = self.order.state.lock();
        state.turning = false;
        self.order.free.notify_all();
        state
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.finished {
            let cause = Error::invalid_argument("a panic while the log or the memtable was being changed");
            self.order.health.poison(&cause);
            drop(self.finish());
        }
    }
}

impl State {
    /// What stands in the way of `need`, most distant first.
    fn obstacle(&self, need: &Need, memtable_log_max: u64) -> Option<Obstacle> {
        let span = self.memtable_log_replayed + self.log_bytes - self.memtable_log_start;
        let long_log = self.memtable_used && span + need.log_bytes > memtable_log_max;
        if need.memtable_bytes > self.memtable_left || long_log {
            return Some(Obstacle::Memtable(self.memtable_turn(need.memtable_bytes, long_log)));
        }
        let end = self.tail.offset + need.log_bytes;
        let next_segment = || Obstacle::Segment(self.segment_turn(need.log_bytes, need.claim));
        let Some(segment) = &self.segment else { return Some(next_segment()) };
        let is_far = end > OFFSETS_END && self.tail.offset > SEGMENT_HEADER_BYTES;
        if end > segment.capacity() || is_far {
            // A memtable that would have to go before the next segment is full goes with this one: a full segment is
            // not mapped any more when it is synced, which interrupts nobody.
            if self.memtable_used && span + segment.capacity() > memtable_log_max {
                return Some(Obstacle::Memtable(self.memtable_turn(need.memtable_bytes, true)));
            }
            return Some(next_segment());
        }
        if self.should_leave(segment, need) {
            let turn = self.segment_turn(need.log_bytes, need.claim);
            return Some(Obstacle::Segment(SegmentTurn { may_stay: true, ..turn }));
        }
        let open = if need.claim == Claim::Data { self.open_to_data } else { segment.allocated() };
        let ahead = end <= open;
        if !ahead || self.should_reserve_ahead(segment, end, need) {
            return Some(Obstacle::Space {
                segment: Arc::clone(segment),
                end,
                claim: need.claim,
                blocks: self.blocks(need.log_bytes),
                ahead,
                tail: self.tail.offset,
                last_ticket: Ticket(self.last_ticket),
            });
        }
        (!segment.is_mapped()).then(|| Obstacle::PlainWrite(self.next_grant()))
    }

    /// Whether whoever is granted what ends at `end` of `segment` should reserve space for those that come after.
    fn should_reserve_ahead(&self, segment: &Segment, end: u64, need: &Need) -> bool {
        let open = self.open_to_data;
        end + RESERVE_AHEAD_BYTES > open
            && open != self.no_space_ahead_of
            && need.claim == Claim::Data
            && open == segment.allocated()
            && open < segment.capacity()
            && segment.is_joined(self.tail.offset)
            && self.blocks(need.log_bytes) == Blocks::Joined
    }

    fn memtable_turn(&self, memtable_bytes: usize, must_replace: bool) -> MemtableTurn {
        MemtableTurn {
            must_replace,
            memtable: Arc::clone(&self.memtable),
            used: self.memtable_used,
            memtable_bytes,
            tail: self.tail,
            log_bytes: self.log_bytes,
            last_ticket: Ticket(self.last_ticket),
            last_sequence: Sequence(self.last_sequence),
        }
    }

    fn segment_turn(&self, log_bytes: u64, claim: Claim) -> SegmentTurn {
        SegmentTurn {
            full: self.segment.clone(),
            may_stay: false,
            tail: self.tail,
            id: self.next_segment,
            first_sequence: Sequence(self.last_sequence + 1),
            log_bytes,
            claim,
            blocks: self.blocks(log_bytes),
            last_ticket: Ticket(self.last_ticket),
        }
    }

    /// What becomes of the blocks that are reserved for a batch of `bytes` and those after it.
    fn blocks(&self, bytes: u64) -> Blocks {
        let since = self.log_bytes - self.synced_at;
        Blocks::between_syncs(bytes.max(since).max(self.sync_distance))
    }

    /// Whether the log should go on in a segment without large pages, although `segment` has room: a sync would write all of such
    /// a page for `need`. Deletions stay, whatever theirs writes: there may be no room elsewhere.
    fn should_leave(&self, segment: &Segment, need: &Need) -> bool {
        let begun = self.tail.offset > SEGMENT_HEADER_BYTES && segment.is_joined(self.tail.offset);
        begun
            && self.tail.offset >= self.stays_until
            && need.claim == Claim::Data
            && self.blocks(need.log_bytes) != Blocks::Joined
    }

    fn next_grant(&self) -> Grant {
        Grant {
            ticket: Ticket(self.last_ticket + 1),
            first_sequence: Sequence(self.last_sequence + 1),
            segment: Arc::clone(self.segment.as_ref().expect("obstacles are cleared before a grant")),
            offset: self.tail.offset,
            memtable: Arc::clone(&self.memtable),
            prefault: None,
        }
    }

    fn assign(&mut self, need: &Need) -> Grant {
        let mut grant = self.next_grant();
        // Large records take no page faults where pages are small; small ones among them take their own.
        if need.log_bytes < CALLED_BYTES_MIN as u64 * need.operations || grant.segment.is_joined(grant.offset)
        {
            grant.prefault = self.prefault(&grant.segment);
        }
        self.last_ticket += 1;
        self.last_sequence += need.operations;
        self.advance(need.log_bytes);
        self.batches_end = self.tail;
        self.memtable_left -= need.memtable_bytes;
        self.memtable_used = true;
        grant
    }

    /// The range to fault in next, if it is time for one.
    fn prefault(&mut self, segment: &Segment) -> Option<std::ops::Range<u64>> {
        let tail = self.tail.offset;
        let since = self.log_bytes - self.synced_at;
        let ahead = PREFAULT_BYTES.max(since / PREFAULT_PART);
        if since <= PREFAULT_AFTER_BYTES || tail + ahead / 2 < self.prefaulted || !segment.is_mapped() {
            return None;
        }
        let range = self.prefaulted.max(tail)..(tail + ahead).min(segment.allocated());
        self.prefaulted = range.end;
        (!range.is_empty()).then_some(range)
    }

    fn advance(&mut self, bytes: u64) {
        self.tail.offset += bytes;
        self.log_bytes += bytes;
    }

    /// The mark that waits to be written, and the segment that has room for it.
    fn take_mark(&mut self) -> Option<(Arc<Segment>, [u8; MARK_RECORD_BYTES])> {
        let durable = self.pending_mark.take()?;
        let segment = self.segment.clone()?;
        let offset = self.tail.offset;
        let end = offset + MARK_RECORD_BYTES as u64;
        if end > segment.allocated().min(OFFSETS_END) {
            return None;
        }
        let mark = encode_mark(segment.header().seed(), offset, Sequence(self.last_sequence), durable);
        Some((segment, mark))
    }

    /// Writes a mark that found a turn under way, where that takes no system call; elsewhere the next one will do. So it will where a
    /// segment was made for `need`, which would not fit behind it: else that may need segment after segment.
    fn write_pending_mark(&mut self, need: &Need) -> Result<()> {
        let is_new = self.tail.offset == SEGMENT_HEADER_BYTES;
        let end = self.tail.offset + MARK_RECORD_BYTES as u64 + need.log_bytes;
        let must_wait = |segment: &Arc<Segment>| {
            !segment.is_mapped() || is_new && end > segment.capacity().min(OFFSETS_END)
        };
        if self.pending_mark.is_none() || self.segment.as_ref().is_some_and(must_wait) {
            return Ok(());
        }
        if let Some((segment, mark)) = self.take_mark() {
            segment.write(self.tail.offset, &mark)?;
            self.advance(MARK_RECORD_BYTES as u64);
        }
        Ok(())
    }

    fn install(&mut self, cleared: Cleared) {
        match cleared {
            Cleared::Memtable(memtable, bytes) => {
                self.memtable = memtable;
                self.memtable_left = bytes;
                self.memtable_used = false;
                self.memtable_log_start = self.log_bytes;
                self.memtable_log_replayed = 0;
            }
            Cleared::Segment(segment, claim) => {
                self.tail = LogPosition { segment: segment.header().id, offset: SEGMENT_HEADER_BYTES };
                self.next_segment = SegmentId(segment.header().id.0 + 1);
                self.prefaulted = 0;
                self.stays_until = 0;
                self.open_to_data = if claim == Claim::Data { segment.allocated() } else { 0 };
                self.no_space_ahead_of = 0;
                self.segment = Some(segment);
            }
            Cleared::MemtableRoom(bytes) => self.memtable_left = bytes,
            Cleared::MemtableCopy(memtable, bytes) => (self.memtable, self.memtable_left) = (memtable, bytes),
            Cleared::Space(segment, claim) => {
                if claim == Claim::Data {
                    self.open_to_data = segment.allocated();
                }
            }
            Cleared::NoSpaceAhead => self.no_space_ahead_of = self.open_to_data,
            Cleared::Stay => self.stays_until = self.tail.offset + STAY_BYTES,
            Cleared::PlainWrite | Cleared::Later => {}
        }
    }
}
