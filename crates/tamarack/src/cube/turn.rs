//! The slow work that one writer does for all when a batch does not fit: the next segment, more reserved space,
//! the next memtable. Called by `order` without any lock, by one writer at a time.

use std::path::Path;

use super::Cube;
use super::headroom::Patience;
use super::maintain::Seal;
use super::order::{Cleared, MemtableTurn, Obstacle, SegmentTurn};
use super::state::Frozen;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::{LogPosition, SegmentId};
use crate::base::sync::Arc;
use crate::index::memtable::Memtable;
use crate::vlog::format::{MARK_RECORD_BYTES, SEGMENT_HEADER_BYTES};
use crate::vlog::open_segments::OpenSegment;
use crate::vlog::segment::{
    Blocks, PreparedSegment, RESERVE_BYTES_MIN, RESERVE_STEP_MAX, Segment, SegmentSize,
};

/// A memtable with less than this part of its room left is frozen.
const ROOM_WORTH_USING: usize = 32;

impl Cube {
    /// Clears what stands in the way of a batch, for which others are waited for while there is `patience`.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; nothing has changed then.
    pub(super) fn clear(&self, obstacle: Obstacle, patience: &mut Patience) -> Result<Cleared> {
        match obstacle {
            Obstacle::Memtable(turn) => self.next_memtable(&turn),
            Obstacle::Segment(turn) => self.next_segment(&turn, patience),
            Obstacle::Space { segment, claim, blocks, ahead: true, tail, last_ticket, .. } => {
                let step = segment.next_step(blocks);
                let room = self.room_for(segment.shared().path(), step, step, claim);
                // Whoever needs it tries again, and reports what is wrong.
                if room.and_then(|bytes| segment.reserve(bytes, blocks)).is_err() {
                    return Ok(Cleared::NoSpaceAhead);
                }
                self.prepare_next(&segment, blocks);
                self.follow(&segment, tail, last_ticket);
                Ok(Cleared::Space(segment, claim))
            }
            Obstacle::Space { segment, end, claim, blocks, ahead: false, tail, last_ticket } => {
                // It may be reserved and only not be open to data.
                let least = end.saturating_sub(segment.allocated());
                let best = if least == 0 { 0 } else { segment.next_step(blocks) };
                let room = self.room_for(segment.shared().path(), best, least, claim);
                let Some(bytes) = patience.or_wait(room)? else { return Ok(Cleared::Later) };
                segment.reserve(bytes, blocks)?;
                self.prepare_next(&segment, blocks);
                self.follow(&segment, tail, last_ticket);
                Ok(Cleared::Space(segment, claim))
            }
            Obstacle::Others => {
                self.wait_for_room(patience);
                Ok(Cleared::Later)
            }
            Obstacle::PlainWrite(_) => unreachable!("the writer itself does its plain write"),
        }
    }

    /// Freezes the active memtable, which waits for a flush if too many are frozen, and begins the next. A sample is not
    /// frozen when it is full: all that was granted in it is published, so it is copied, and goes on as the copy. Readers that
    /// have it find there all that they may see.
    ///
    /// # Errors
    /// Why flushing stopped, if it had to be waited for; nothing has changed then.
    pub(super) fn next_memtable(&self, turn: &MemtableTurn) -> Result<Cleared> {
        if !turn.must_replace && turn.used {
            // Batches were granted the most they might take. What they took is known once they are published.
            self.publisher.wait_for(turn.last_ticket)?;
            let left = turn.memtable.capacity() - turn.memtable.memory_bytes();
            if left >= turn.memtable_bytes && left > turn.memtable.capacity() / ROOM_WORTH_USING {
                return Ok(Cleared::MemtableRoom(left));
            }
            if turn.memtable.is_sample() {
                return Ok(self.grow_memtable(turn));
            }
        }
        if turn.used {
            self.wait_for_flush(turn.log_bytes)?;
        }
        let (bytes, least) = (self.options.memtable_bytes, turn.memtable_bytes);
        let shape = turn.memtable.key_shape();
        let memtable = Arc::new(Memtable::begin(self.keys.clone(), bytes, least, shape));
        let bytes = memtable.capacity();
        let frozen = turn.used.then(|| Frozen {
            memtable: Arc::clone(&turn.memtable),
            end: turn.tail,
            log_bytes: turn.log_bytes,
            barrier: turn.last_ticket,
            last_sequence: turn.last_sequence,
        });
        self.current.rotate(Arc::clone(&memtable), frozen);
        self.schedule();
        Ok(Cleared::Memtable(memtable, bytes))
    }

    fn grow_memtable(&self, turn: &MemtableTurn) -> Cleared {
        let least = turn.memtable.memory_bytes() + turn.memtable_bytes;
        let memtable = Arc::new(turn.memtable.grown(self.options.memtable_bytes.max(least)));
        self.current.replace_active(Arc::clone(&memtable));
        let left = memtable.capacity() - memtable.memory_bytes();
        Cleared::MemtableCopy(memtable, left)
    }

    /// Begins the next segment, and has the one before it, if there is one, sealed in the background. Where there is no room for it, one that has
    /// some stays.
    fn next_segment(&self, turn: &SegmentTurn, patience: &mut Patience) -> Result<Cleared> {
        if turn.id >= SegmentId::LOG_END {
            let reason = "there are no more ids for segments of the log: load the database into a new one";
            return Err(Error::unsupported(reason));
        }
        let salt = self.env.rng.random_u64();
        let salt = salt.map_err(|error| Error::io("draw a salt for", &self.directory, error))?;
        let header = turn.header(self.id, salt, self.durability.durable());
        let path = self.reader.segments().path(turn.id);
        let handle = self.index.files().segment(turn.id);
        let fewer = if turn.full.is_some() { self.wait_for_fewer_seals() } else { Ok(()) };
        let prepared = match fewer.and_then(|()| self.next_file(turn, &path, patience)) {
            Err(error) if turn.may_stay && error.kind() == ErrorKind::NoSpace => return Ok(Cleared::Stay),
            prepared => prepared?,
        };
        let Some(prepared) = prepared else { return Ok(Cleared::Later) };
        let segment = Arc::new(prepared.begin(header).inspect_err(|_| {
            // The first error is the one to report; a file without a header is swept up at the next open.
            drop(self.env.fs.remove_file(&path));
        })?);
        let open = OpenSegment::new(Arc::clone(segment.shared().file()), path, header.seed());
        self.reader.segments().insert(turn.id, open);
        self.durability.add_segment(Arc::clone(segment.shared()));
        self.current.add_segment(handle);
        if let Some(full) = &turn.full {
            self.maintenance.add_seal(Seal::new(Arc::clone(full), turn.tail.offset, turn.last_ticket));
            self.keep_stock();
            self.schedule();
        }
        self.prepare_next(&segment, turn.blocks);
        Ok(Cleared::Segment(segment, turn.claim))
    }

    /// The file of the next segment: the spare, or a new one; `None` if others are to be waited for.
    fn next_file(
        &self,
        turn: &SegmentTurn,
        path: &Path,
        patience: &mut Patience,
    ) -> Result<Option<PreparedSegment>> {
        let room = SEGMENT_HEADER_BYTES + turn.log_bytes + MARK_RECORD_BYTES as u64;
        let may_be_joined = turn.blocks == Blocks::Joined;
        self.prepare_wanted_spare(turn.id, turn.blocks);
        if let Some(spare) = self.spare.take(turn.id, room, may_be_joined) {
            return Ok(Some(spare));
        }
        if !may_be_joined && let Err(refusal) = self.room_for(path, room, room, turn.claim) {
            if turn.may_stay {
                return Err(refusal);
            }
            // Large pages are better than no segment.
            if let Some(spare) = self.spare.take(turn.id, room, true) {
                return Ok(Some(spare));
            }
        }
        let capacity = self.options.segment_bytes_max.max(room);
        // Blocks that are filled here keep everybody waiting.
        let large = turn.full.is_some() && turn.blocks != Blocks::Filled;
        let step = if large { RESERVE_STEP_MAX } else { RESERVE_BYTES_MIN };
        self.spare.discard(&*self.env.fs)?;
        let found = self.room_for(path, step.min(capacity), room, turn.claim);
        let Some(reserve) = patience.or_wait(found)? else { return Ok(None) };
        let size = SegmentSize { capacity, reserve, blocks: turn.blocks };
        PreparedSegment::create(&*self.env.fs, path.to_owned(), size, self.options.log_mode).map(Some)
    }

    /// Has the segment behind `active` made ready once all of its space is reserved but for the last step, unless it is the first, or there is no
    /// id for another: where all processors are busy, that takes longer than writing to what one step reserves.
    fn prepare_next(&self, active: &Segment, blocks: Blocks) {
        let (header, left) = (active.header(), active.capacity() - active.allocated());
        let next = SegmentId(header.id.0 + 1);
        if left <= RESERVE_STEP_MAX
            && header.predecessor != LogPosition::default()
            && next < SegmentId::LOG_END
        {
            self.prepare_spare(next, blocks);
        }
    }
}
