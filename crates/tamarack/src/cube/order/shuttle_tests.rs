//! The order under shuttle's schedulers: writers whose turns begin segments, reserve space and replace memtables,
//! fail once, and wait for somebody who appends a mark meanwhile.

use std::path::{Path, PathBuf};

use super::*;
use crate::base::comparator::Bytewise;
use crate::base::ids::CubeId;
use crate::base::keys::KeyOrder;
use crate::base::options::LogMode;
use crate::base::sync::{AtomicBool, AtomicU64, Ordering, PlainAtomicU64};
use crate::index::testing::MemoryFs;
use crate::vlog::segment::{Blocks, PreparedSegment, SegmentSize};

const WRITERS: u64 = 3;
const EACH: u64 = 3;
const LOG_BYTES: u64 = 40;
/// Room for three batches and a mark; only the first of them fits what is reserved at once.
const SEGMENT_SIZE: SegmentSize = SegmentSize {
    capacity: SEGMENT_HEADER_BYTES + 3 * LOG_BYTES + MARK_RECORD_BYTES as u64,
    reserve: SEGMENT_HEADER_BYTES + LOG_BYTES,
    blocks: Blocks::Noted,
};
/// Bytes of a memtable, of which a batch takes one.
const MEMTABLE_BYTES: usize = 4;

/// Turns by what they cleared.
#[derive(Debug, Default)]
struct Turns {
    memtable: AtomicU64,
    segment: AtomicU64,
    space: AtomicU64,
    plain_write: AtomicU64,
}

/// An order, and stand-ins for what its cube does for it.
struct World {
    fs: Arc<MemoryFs>,
    mode: LogMode,
    order: CommitOrder,
    publisher: Arc<Publisher>,
    health: Arc<Health>,
    clearing: AtomicBool,
    /// Turns, the first ones, that fail.
    failures: AtomicU64,
    /// Whether the next turn for space finds none yet.
    put_off: AtomicBool,
    turns: Turns,
    granted: Mutex<Vec<Granted>>,
}

/// What a batch was granted.
#[derive(Debug, Clone, Copy)]
struct Granted {
    ticket: u64,
    sequences: (u64, u64),
    start: LogPosition,
}

fn memtable() -> Arc<Memtable> {
    Arc::new(Memtable::new(KeyOrder::new(Arc::new(Bytewise)), 64, None))
}

fn path(segment: SegmentId) -> PathBuf {
    Path::new("cube").join(segment.to_string())
}

/// The bytes that stand for the records of a batch.
fn records(ticket: Ticket) -> [u8; LOG_BYTES as usize] {
    [ticket.0 as u8; LOG_BYTES as usize]
}

impl World {
    fn new(mode: LogMode) -> Arc<Self> {
        // Fewer slots than writers: some must wait for a slot.
        let publisher = Publisher::with_ring(Sequence(0), WRITERS - 1);
        let health = Arc::new(Health::default());
        let start = Start {
            tail: LogPosition::default(),
            next_segment: SegmentId(1),
            last_sequence: Sequence(0),
            memtable: memtable(),
            memtable_used: false,
            memtable_left: MEMTABLE_BYTES,
            memtable_log_bytes: 0,
        };
        Arc::new(Self {
            fs: MemoryFs::new(),
            mode,
            order: CommitOrder::new(start, 1 << 20, Arc::clone(&publisher), Arc::clone(&health)),
            publisher,
            health,
            clearing: AtomicBool::new(false),
            failures: AtomicU64::new(2),
            put_off: AtomicBool::new(true),
            turns: Turns::default(),
            granted: Mutex::default(),
        })
    }

    fn clear(self: &Arc<Self>, obstacle: Obstacle) -> Result<Cleared> {
        if matches!(obstacle, Obstacle::Others) {
            shuttle::thread::yield_now();
            return Ok(Cleared::Later);
        }
        assert!(!self.clearing.swap(true, Ordering::SeqCst), "one turn at a time");
        let cleared = self.clear_alone(obstacle);
        self.clearing.store(false, Ordering::SeqCst);
        cleared
    }

    fn clear_alone(self: &Arc<Self>, obstacle: Obstacle) -> Result<Cleared> {
        if self.failures.load(Ordering::SeqCst) > 0 {
            self.failures.fetch_sub(1, Ordering::SeqCst);
            return Err(Error::invalid_argument("told to fail"));
        }
        match obstacle {
            Obstacle::Memtable(turn) => {
                self.turns.memtable.fetch_add(1, Ordering::SeqCst);
                self.flush(&turn);
                Ok(Cleared::Memtable(memtable(), MEMTABLE_BYTES))
            }
            Obstacle::Segment(turn) => {
                self.turns.segment.fetch_add(1, Ordering::SeqCst);
                let header = turn.header(CubeId(1), 0, LogPosition::default());
                let prepared = PreparedSegment::create(&*self.fs, path(turn.id), SEGMENT_SIZE, self.mode)?;
                Ok(Cleared::Segment(Arc::new(prepared.begin(header)?), turn.claim))
            }
            Obstacle::Space { segment, end, claim, blocks, .. } => {
                if self.put_off.swap(false, Ordering::SeqCst) {
                    return Ok(Cleared::Later);
                }
                self.turns.space.fetch_add(1, Ordering::SeqCst);
                let bytes = segment.next_step(blocks).max(end.saturating_sub(segment.allocated()));
                segment.reserve(bytes, blocks)?;
                Ok(Cleared::Space(segment, claim))
            }
            Obstacle::Others => unreachable!("that is no turn"),
            Obstacle::PlainWrite(grant) => {
                self.turns.plain_write.fetch_add(1, Ordering::SeqCst);
                grant.segment.write(grant.offset, &records(grant.ticket))?;
                Ok(Cleared::PlainWrite)
            }
        }
    }

    /// As a turn that waits for a flush does: what was granted is published, and another thread syncs the log and
    /// marks that before the turn ends.
    fn flush(self: &Arc<Self>, turn: &MemtableTurn) {
        self.publisher.wait_for(turn.last_ticket).expect("no failure");
        let (world, tail) = (Arc::clone(self), turn.tail);
        let flusher =
            shuttle::thread::spawn(move || world.order.append_mark(tail).expect("it is left to a grant"));
        flusher.join().expect("no panic");
    }

    /// Commits one batch; a turn of its own that fails is tried again.
    fn commit(self: &Arc<Self>, operations: u64) {
        let claim = if operations.is_multiple_of(2) { Claim::Deletions } else { Claim::Data };
        let need = Need { log_bytes: LOG_BYTES, memtable_bytes: 1, operations, claim };
        let grant = loop {
            let mut failed = false;
            let clear = |obstacle| self.clear(obstacle).inspect_err(|_| failed = true);
            match self.order.grant(&need, clear) {
                Ok(grant) => break grant,
                Err(error) => assert!(failed, "the failure of another writer's turn: {error}"),
            }
        };
        if grant.segment.is_mapped() {
            grant.segment.write(grant.offset, &records(grant.ticket)).expect("mapped writes do not fail");
        }
        let last = grant.first_sequence.0 + operations - 1;
        self.granted.lock().push(Granted {
            ticket: grant.ticket.0,
            sequences: (grant.first_sequence.0, last),
            start: LogPosition { segment: grant.segment.header().id, offset: grant.offset },
        });
        self.publisher.publish(grant.ticket, Sequence(last)).expect("no failure");
        assert!(self.publisher.visible() >= Sequence(last));
    }

    /// Tickets, sequence numbers and places in the log name the same order; nothing overlaps, and between batches
    /// there is nothing but marks, of which this returns how many.
    fn check_order(&self) -> u64 {
        let mut granted = self.granted.lock().clone();
        granted.sort_by_key(|granted| granted.ticket);
        let (mut sequence, mut end, mut mark_bytes) = (0, LogPosition::default(), 0);
        for (granted, ticket) in granted.iter().zip(1..) {
            assert_eq!((granted.ticket, granted.sequences.0), (ticket, sequence + 1));
            sequence = granted.sequences.1;
            let start = granted.start;
            if start.segment != end.segment {
                assert_eq!(start.segment.0, end.segment.0 + 1);
                end = LogPosition { segment: start.segment, offset: SEGMENT_HEADER_BYTES };
            }
            let log = self.fs.get(&path(start.segment));
            assert!(end <= start, "{granted:?} after {end}");
            for mark in log[end.offset as usize..start.offset as usize].chunks(MARK_RECORD_BYTES) {
                assert_eq!(mark.len(), MARK_RECORD_BYTES, "{granted:?} after {end}");
                assert_ne!(mark, [0; MARK_RECORD_BYTES]);
            }
            mark_bytes += start.offset - end.offset;
            end.offset = start.offset + LOG_BYTES;
            let bytes = &log[start.offset as usize..end.offset as usize];
            assert_eq!(bytes, records(Ticket(ticket)), "{granted:?}");
        }
        assert_eq!(granted.len() as u64, WRITERS * EACH);
        assert_eq!(self.publisher.visible(), Sequence(sequence));
        mark_bytes / MARK_RECORD_BYTES as u64
    }
}

/// Writers commit while another thread syncs: all of it ends, and the order is whole. Returns how many marks are
/// in the log.
fn writers_and_a_syncer(mode: LogMode) -> u64 {
    let world = World::new(mode);
    let mut threads: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let world = Arc::clone(&world);
            shuttle::thread::spawn(move || (0..EACH).for_each(|index| world.commit(1 + (writer + index) % 2)))
        })
        .collect();
    let syncer = Arc::clone(&world);
    threads.push(shuttle::thread::spawn(move || {
        let (tail, ticket) = syncer.order.tail();
        syncer.publisher.wait_for(ticket).expect("no failure");
        syncer.order.append_mark(tail).expect("memory does not fail");
    }));
    for thread in threads {
        thread.join().expect("no panic");
    }
    let marks = world.check_order();
    let turns = &world.turns;
    let met = |count: &AtomicU64| count.load(Ordering::SeqCst);
    assert!(met(&turns.memtable) >= 2 && met(&turns.segment) >= 3, "{turns:?}");
    // What is reserved at once holds one batch, in a plain segment as in a mapped one.
    let plain_writes = if mode == LogMode::Plain { WRITERS * EACH } else { 0 };
    assert!(met(&turns.space) > 0 && met(&turns.plain_write) == plain_writes, "{turns:?}");
    world.health.check_writable().expect("a failed turn poisons nothing");
    let (segment, tail, ticket) = world.order.close();
    assert!(segment.is_some_and(|segment| segment.header().id == tail.segment));
    assert_eq!(ticket, Ticket(WRITERS * EACH));
    marks
}

/// Runs the scenario under many random schedules, then under schedules that switch at few chosen points.
fn explore(mode: LogMode, marks: &'static PlainAtomicU64) {
    let scenario = move || {
        marks.fetch_add(writers_and_a_syncer(mode), Ordering::Relaxed);
    };
    shuttle::check_random(scenario, 15_000);
    shuttle::check_pct(scenario, 15_000, 3);
    // A mark that finds no room is left out, but not in every schedule.
    assert_ne!(marks.load(Ordering::Relaxed), 0);
}

#[test]
fn mapped_commits_keep_one_order() {
    static MARKS: PlainAtomicU64 = PlainAtomicU64::new(0);
    explore(LogMode::Mapped, &MARKS);
}

#[test]
fn plain_commits_keep_one_order() {
    static MARKS: PlainAtomicU64 = PlainAtomicU64::new(0);
    explore(LogMode::Plain, &MARKS);
}
