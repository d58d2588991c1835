//! Commits under loom, from the grant to the reader: order, publisher, memtables and read state together.

use std::path::Path;

use loom::thread;

use super::*;
use crate::base::comparator::Bytewise;
use crate::base::ids::CubeId;
use crate::base::keys::{EntryKind, KeyOrder};
use crate::base::options::LogMode;
use crate::base::sync::explore;
use crate::cube::state::{Current, Frozen, ReadState};
use crate::index::testing::{MemoryFs, RecordedFiles};
use crate::index::version::{Files, Version};
use crate::vlog::segment::{Blocks, PreparedSegment, SegmentSize};

const LOG_BYTES: u64 = 40;
const SEGMENT_SIZE: SegmentSize = SegmentSize { capacity: 4096, reserve: 4096, blocks: Blocks::Noted };
/// Batches for which a memtable is said to have room.
const MEMTABLE_BATCHES: usize = 2;

/// An order, and of its cube what commits and readers meet.
struct World {
    fs: Arc<MemoryFs>,
    order: CommitOrder,
    publisher: Arc<Publisher>,
    current: Current,
}

fn keys() -> KeyOrder {
    KeyOrder::new(Arc::new(Bytewise))
}

fn memtable() -> Arc<Memtable> {
    Arc::new(Memtable::new(keys(), MEMTABLE_BATCHES * Memtable::entry_bytes_max(1, 0), None))
}

impl World {
    /// One with a batch in it, so that there is a segment, and a memtable with room for so many more.
    fn new(room: usize) -> Arc<Self> {
        let fs = MemoryFs::new();
        let files = Files::new(fs.clone(), Path::new("cube"), Box::new(RecordedFiles::default()));
        let active = memtable();
        let current = Current::new(ReadState {
            active: Arc::clone(&active),
            frozen: Vec::new(),
            version: Arc::new(Version::empty(keys(), files)),
            unregistered: Vec::new(),
            flushed_log_bytes: 0,
            replayed_log_bytes: 0,
        });
        let publisher = Publisher::with_ring(Sequence(0), 2);
        let start = Start {
            tail: LogPosition::default(),
            next_segment: SegmentId(1),
            last_sequence: Sequence(0),
            memtable: active,
            memtable_used: false,
            memtable_left: 1 + room,
            memtable_log_bytes: 0,
        };
        let order = CommitOrder::new(start, 1 << 20, Arc::clone(&publisher), Arc::default());
        let world = Arc::new(Self { fs, order, publisher, current });
        world.commit();
        world
    }

    fn clear(&self, obstacle: Obstacle) -> Result<Cleared> {
        match obstacle {
            Obstacle::Memtable(turn) => {
                let next = memtable();
                let frozen = Frozen {
                    memtable: turn.memtable,
                    end: turn.tail,
                    log_bytes: turn.log_bytes,
                    barrier: turn.last_ticket,
                    last_sequence: turn.last_sequence,
                };
                self.current.rotate(Arc::clone(&next), Some(frozen));
                Ok(Cleared::Memtable(next, MEMTABLE_BATCHES))
            }
            Obstacle::Segment(turn) => {
                let header = turn.header(CubeId(1), 0, LogPosition::default());
                let path = Path::new("cube").join(turn.id.to_string());
                let prepared = PreparedSegment::create(&*self.fs, path, SEGMENT_SIZE, LogMode::Mapped)?;
                Ok(Cleared::Segment(Arc::new(prepared.begin(header)?), turn.claim))
            }
            other => unreachable!("nothing else is in the way: {other:?}"),
        }
    }

    /// Commits one operation, whose key is its sequence number, and returns that.
    fn commit(&self) -> u64 {
        let need = Need { log_bytes: LOG_BYTES, memtable_bytes: 1, operations: 1, claim: Claim::Data };
        let grant = self.order.grant(&need, |obstacle| self.clear(obstacle)).expect("nothing fails");
        let sequence = grant.first_sequence;
        grant.memtable.insert(&[sequence.0 as u8], sequence, EntryKind::Delete, &[]);
        self.publisher.publish(grant.ticket, sequence).expect("nothing fails");
        assert!(self.publisher.visible() >= sequence, "an acknowledged operation is visible");
        sequence.0
    }

    /// I-02: a reader finds all operations up to the moment at which it reads, whichever memtable they are in.
    fn read(&self) -> Sequence {
        let (state, sequence) = self.current.at_present(|| self.publisher.visible());
        for number in 1..=sequence.0 {
            let frozen = state.frozen.iter().map(|frozen| &frozen.memtable);
            let mut memtables = std::iter::once(&state.active).chain(frozen);
            let found = memtables.any(|memtable| memtable.get(&[number as u8], sequence).is_some());
            assert!(found, "I-02: operation {number} is missing at {sequence:?}");
        }
        sequence
    }
}

/// What is visible is found, also while a memtable is replaced.
#[test]
fn loom_a_reader_beside_a_rotation_finds_what_is_visible() {
    let seen = explore("a writer that replaces the memtable and a reader", 2, || {
        let world = World::new(1);
        let writing = Arc::clone(&world);
        let writer = thread::spawn(move || [writing.commit(), writing.commit()]);
        let sequence = world.read();
        assert_eq!(writer.join().expect("no panic"), [2, 3]);
        assert_eq!((world.read(), world.current.load().frozen.len()), (Sequence(3), 1));
        sequence.0
    });
    assert_eq!(seen, [1, 2, 3]);
}

/// Writers are granted one order, and whoever meets another's turn goes on when that ends.
#[test]
fn loom_writers_beside_a_rotation_keep_one_order() {
    let granted = explore("two writers, one of whom replaces the memtable", 2, || {
        let world = World::new(0);
        let writing = Arc::clone(&world);
        let writer = thread::spawn(move || writing.commit());
        let first = world.commit();
        let second = writer.join().expect("no panic");
        assert_eq!((world.read(), world.current.load().frozen.len()), (Sequence(3), 1));
        (first, second)
    });
    assert_eq!(granted, [(2, 3), (3, 2)]);
}
