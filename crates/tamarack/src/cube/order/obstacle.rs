//! What stands in the way of a grant, and how it was cleared.

use super::Grant;
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};
use crate::base::sync::Arc;
use crate::cube::headroom::Claim;
use crate::cube::publish::Ticket;
use crate::index::memtable::Memtable;
use crate::vlog::format::SegmentHeader;
use crate::vlog::segment::{Blocks, Segment};

/// What stands between a batch and its grant, and what the holder of the turn needs to know to clear it.
#[derive(Debug)]
pub enum Obstacle {
    /// The memtable is full, or the log it stands for is long enough.
    Memtable(MemtableTurn),
    /// The segment is full, or its pages are too large, or there is none.
    Segment(SegmentTurn),
    /// The segment's reserved space is used up, or soon will be.
    Space {
        /// The segment.
        segment: Arc<Segment>,
        /// The end of the range that must be reserved, and open to `claim`.
        end: u64,
        /// What for.
        claim: Claim,
        /// What becomes of its blocks.
        blocks: Blocks,
        /// Whether the batch does without that space: it is reserved so that others find its page faults taken.
        ahead: bool,
        /// The end of the log in it.
        tail: u64,
        /// The last ticket granted.
        last_ticket: Ticket,
    },
    /// The segment takes plain writes, which are done in log order.
    PlainWrite(Grant),
    /// What the turn before was for has to wait for others. That is no turn: who needs less goes on meanwhile.
    Others,
}

/// What is known when the memtable must be replaced.
#[derive(Debug)]
pub struct MemtableTurn {
    /// The one to replace.
    pub memtable: Arc<Memtable>,
    /// Whether anything was granted in it.
    pub used: bool,
    /// Bytes the next one must hold.
    pub memtable_bytes: usize,
    /// Whether it must be replaced however much room it still has: batches are granted the most that they may
    /// take, so a memtable that seems full may have room left.
    pub must_replace: bool,
    /// The end of the log.
    pub tail: LogPosition,
    /// Bytes of log granted since the cube was opened.
    pub log_bytes: u64,
    /// The last ticket granted.
    pub last_ticket: Ticket,
    /// The last sequence number granted.
    pub last_sequence: Sequence,
}

/// What is known when the next segment must be begun.
#[derive(Debug)]
pub struct SegmentTurn {
    /// The segment that ends, if there is one.
    pub full: Option<Arc<Segment>>,
    /// Whether it has room for the batch all the same.
    pub may_stay: bool,
    /// The end of the log.
    pub tail: LogPosition,
    /// The id of the next segment.
    pub id: SegmentId,
    /// The smallest sequence number it can hold.
    pub first_sequence: Sequence,
    /// Bytes of records it must hold.
    pub log_bytes: u64,
    /// What for.
    pub claim: Claim,
    /// What becomes of its blocks.
    pub blocks: Blocks,
    /// The last ticket granted.
    pub last_ticket: Ticket,
}

impl SegmentTurn {
    /// The header of that segment, in a log that is known to be durable up to `durable`.
    pub fn header(&self, cube: CubeId, salt: u64, durable: LogPosition) -> SegmentHeader {
        let (predecessor, first_sequence) = (self.tail, self.first_sequence);
        SegmentHeader { cube, id: self.id, salt, predecessor, first_sequence, durable }
    }
}

/// How a turn ended.
#[derive(Debug)]
pub enum Cleared {
    /// Here is the next memtable, which holds this many bytes.
    Memtable(Arc<Memtable>, usize),
    /// The memtable has this many bytes left after all.
    MemtableRoom(usize),
    /// Here is one with all operations of the memtable, to go on with; it has this many bytes left.
    MemtableCopy(Arc<Memtable>, usize),
    /// Here is the next segment; what is reserved of it was taken for this.
    Segment(Arc<Segment>, Claim),
    /// The segment that has room stays.
    Stay,
    /// All the space of this segment that is reserved is open to this.
    Space(Arc<Segment>, Claim),
    /// None was to be had that is not needed yet.
    NoSpaceAhead,
    /// The records are written.
    PlainWrite,
    /// Nothing is: whoever needs it waits for others first, and tries again.
    Later,
}
