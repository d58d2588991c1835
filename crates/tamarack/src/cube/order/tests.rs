//! What is granted where, without threads.

use std::path::Path;

use super::*;
use crate::base::comparator::Bytewise;
use crate::base::ids::CubeId;
use crate::base::keys::KeyOrder;
use crate::base::options::LogMode;
use crate::env::Fs;
use crate::env::sim::{SimDisk, SimOptions};
use crate::index::testing::MemoryFs;
use crate::vlog::segment::{PreparedSegment, SegmentSize};

/// An order with nothing in it.
fn order() -> CommitOrder {
    let start = Start {
        tail: LogPosition::default(),
        next_segment: SegmentId(1),
        last_sequence: Sequence(0),
        memtable: Arc::new(Memtable::new(KeyOrder::new(Arc::new(Bytewise)), 64, None)),
        memtable_used: false,
        memtable_left: 1 << 20,
        memtable_log_bytes: 0,
    };
    CommitOrder::new(start, u64::MAX, Publisher::with_ring(Sequence(0), 2), Arc::default())
}

/// Begins the segment of `turn`, which holds `capacity` bytes, of which so many are reserved.
fn begin(fs: &dyn Fs, turn: &SegmentTurn, capacity: u64, reserve: u64, mode: LogMode) -> Result<Cleared> {
    let header = turn.header(CubeId(1), 0, LogPosition::default());
    let size = SegmentSize { capacity, reserve, blocks: turn.blocks };
    let path = Path::new("/db").join(turn.id.to_string());
    let segment = PreparedSegment::create(fs, path, size, mode)?.begin(header)?;
    Ok(Cleared::Segment(Arc::new(segment), turn.claim))
}

/// Clears an obstacle; segments have room for a mark behind the batch that they are made for.
fn clear(fs: &MemoryFs, obstacle: Obstacle) -> Result<Cleared> {
    match obstacle {
        Obstacle::Segment(turn) => {
            let capacity = SEGMENT_HEADER_BYTES + turn.log_bytes + MARK_RECORD_BYTES as u64;
            begin(fs, &turn, capacity, capacity, LogMode::Plain)
        }
        Obstacle::PlainWrite(_) => Ok(Cleared::PlainWrite),
        other => panic!("there is room: {other:?}"),
    }
}

#[test]
fn nothing_begins_behind_the_first_4_gib_of_a_segment() {
    let (fs, order) = (MemoryFs::new(), order());
    let need = |log_bytes| Need { log_bytes, memtable_bytes: 1, operations: 1, claim: Claim::Data };
    let granted = |log_bytes| {
        let grant = order.grant(&need(log_bytes), |obstacle| clear(&fs, obstacle)).unwrap();
        order.publisher.publish(grant.ticket, grant.first_sequence).unwrap();
        (grant.segment.header().id, grant.offset)
    };
    assert_eq!(granted(5 << 30), (SegmentId(1), SEGMENT_HEADER_BYTES), "one record may be longer");
    let (tail, _) = order.tail();
    order.append_mark(tail).unwrap();
    assert_eq!(order.tail().0, tail, "there is room for a mark, but it would be out of reach");
    assert_eq!(granted(36), (SegmentId(2), SEGMENT_HEADER_BYTES));
}

/// What is reserved, in MiB, each time that more is asked for, and whether ahead, while 30 MiB are written to a segment of 32 with large
/// pages, of which eight are reserved at a time; with `spare` space or with just what is needed.
fn asks(claim: Claim, spare: bool) -> Vec<(u64, bool)> {
    let (env, order, mut asked) = (SimDisk::new(&SimOptions::default()).env(), order(), Vec::new());
    env.fs.create_dir_all(Path::new("/db")).expect("a disk in memory");
    for _ in 0..30 {
        let need = Need { log_bytes: 1 << 20, memtable_bytes: 1, operations: 1, claim };
        let cleared = |obstacle| match obstacle {
            Obstacle::Segment(turn) => {
                assert_eq!(turn.blocks, Blocks::Joined);
                begin(&*env.fs, &turn, 32 << 20, 8 << 20, LogMode::Mapped)
            }
            Obstacle::Space { segment, claim, blocks, ahead, .. } => {
                asked.push((segment.allocated() >> 20, ahead));
                assert!(asked.len() <= 30, "nobody asks twice for what is not there: {asked:?}");
                if ahead && !spare {
                    return Ok(Cleared::NoSpaceAhead);
                }
                segment.reserve(segment.next_step(blocks), blocks)?;
                Ok(Cleared::Space(segment, claim))
            }
            other => panic!("there is room: {other:?}"),
        };
        let grant = order.grant(&need, cleared).expect("there is space");
        order.publisher.publish(grant.ticket, grant.first_sequence).expect("nothing failed");
    }
    asked
}

#[test]
fn space_is_reserved_ahead_of_data_where_pages_are_large_and_there_is_some() {
    assert_eq!(asks(Claim::Data, true), [(8, true), (16, true), (24, true)]);
    let one_by_one = [(8, true), (8, false), (16, true), (16, false), (24, true), (24, false)];
    assert_eq!(asks(Claim::Data, false), one_by_one, "asked for once, and needed all the same");
    assert_eq!(asks(Claim::Deletions, true), [(8, false), (16, false), (24, false)]);
}

/// Whether the log leaves a segment with large pages while 100 MiB are written to it, of which so many at a time are synced.
fn leaves_large_pages(mib_between_syncs: u64) -> bool {
    let (env, order) = (SimDisk::new(&SimOptions::default()).env(), order());
    env.fs.create_dir_all(Path::new("/db")).expect("a disk in memory");
    let mut leaves = false;
    for mib in 1..=100 {
        let need = Need { log_bytes: 1 << 20, memtable_bytes: 1, operations: 1, claim: Claim::Data };
        let cleared = |obstacle| match obstacle {
            Obstacle::Segment(SegmentTurn { may_stay: true, .. }) => {
                leaves = true;
                Ok(Cleared::Stay)
            }
            Obstacle::Segment(turn) => begin(&*env.fs, &turn, 128 << 20, 8 << 20, LogMode::Mapped),
            Obstacle::Space { segment, claim, blocks, .. } => {
                segment.reserve(segment.next_step(blocks), blocks)?;
                Ok(Cleared::Space(segment, claim))
            }
            other => panic!("there is room: {other:?}"),
        };
        let grant = order.grant(&need, cleared).expect("there is space");
        order.publisher.publish(grant.ticket, grant.first_sequence).expect("nothing failed");
        if mib % mib_between_syncs == 0 {
            order.append_mark(order.tail().0).expect("there is room for a mark");
        }
    }
    leaves
}

/// Small values fill a memtable of the default size with some 28 MiB of log, and that is synced when it is flushed.
#[test]
fn large_pages_are_not_left_because_of_flushes() {
    assert!(!leaves_large_pages(28));
    assert!(!leaves_large_pages(17));
    assert!(leaves_large_pages(12), "a sync writes all of a large page for what ends in it");
}

/// A sync that ends while a segment is made for a batch leaves a mark behind, for which there is no room before the batch.
#[test]
fn a_segment_that_was_made_for_a_batch_holds_it() {
    let (env, order, mut made) = (SimDisk::new(&SimOptions::default()).env(), order(), 0);
    env.fs.create_dir_all(Path::new("/db")).expect("a disk in memory");
    let need = Need { log_bytes: 1 << 20, memtable_bytes: 1, operations: 1, claim: Claim::Data };
    let cleared = |obstacle| {
        let Obstacle::Segment(turn) = obstacle else { panic!("there is room: {obstacle:?}") };
        order.append_mark(LogPosition::default())?;
        made += 1;
        assert_eq!(made, 1, "the batch fits");
        let capacity = SEGMENT_HEADER_BYTES + turn.log_bytes;
        begin(&*env.fs, &turn, capacity, capacity, LogMode::Mapped)
    };
    let grant = order.grant(&need, cleared).expect("there is space");
    assert_eq!(grant.offset, SEGMENT_HEADER_BYTES);
}
