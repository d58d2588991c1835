//! What is granted where, without threads.

use std::path::PathBuf;

use super::*;
use crate::base::comparator::Bytewise;
use crate::base::ids::CubeId;
use crate::base::keys::KeyOrder;
use crate::base::options::LogMode;
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

/// Clears an obstacle; segments have room for a mark behind the batch that they are made for.
fn clear(fs: &MemoryFs, obstacle: Obstacle) -> Result<Cleared> {
    match obstacle {
        Obstacle::Segment(turn) => {
            let header = turn.header(CubeId(1), 0, LogPosition::default());
            let capacity = SEGMENT_HEADER_BYTES + turn.log_bytes + MARK_RECORD_BYTES as u64;
            let size = SegmentSize { capacity, reserve: capacity, blocks: turn.blocks };
            let path = PathBuf::from(turn.id.to_string());
            let segment = PreparedSegment::create(fs, path, size, LogMode::Plain)?.begin(header)?;
            Ok(Cleared::Segment(Arc::new(segment), turn.claim))
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
