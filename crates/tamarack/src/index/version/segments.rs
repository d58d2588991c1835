//! The segments of the value log as a version sees them: which are sealed, which were moved and where to, and how
//! much of each the version's tables still reference.
//!
//! Owns: the liveness sums. Invariants: for every segment, `live` is the sum of the references of all tables of the
//! version; [`Version::audit`](super::Version::audit) derives them anew and compares. I-10: a segment that was moved
//! has its records in a sealed segment of the same version. I-13: the dead ranges of a sealed segment only grow, lie
//! among its records, and have no part of a relocation table.

use std::collections::{BTreeMap, HashSet};

use crate::base::dead_ranges::DeadRanges;
use crate::base::ids::SegmentId;
use crate::base::pointer::ValuePointer;
use crate::base::segment::{SegmentMeta, SegmentMove, SegmentReference};
use crate::base::sync::Arc;

use super::files::FileHandle;

/// A relocation takes eight bytes in memory; stored it takes a byte or two for the length of the record before it, and
/// four for its place.
const RELOCATION_MEMORY: (u64, u64) = (8, 6);

/// A sealed segment.
#[derive(Debug, Clone)]
pub struct SegmentEntry {
    /// Its size and what it once held.
    pub meta: SegmentMeta,
    /// What tables reference in it under its own id.
    pub live: Liveness,
    /// Its file.
    pub handle: Arc<FileHandle>,
}

/// A segment whose records garbage collection has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedEntry {
    /// Its relocation table, in the segment that holds its records now.
    pub table: ValuePointer,
    /// What tables still reference in it under its old id.
    pub live: Liveness,
}

/// What of a sealed segment was given back to the file system, or may be as soon as nobody can reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GivenBack {
    dead: DeadRanges,
    dead_bytes: u64,
    /// Bytes of the whole blocks in them.
    hole_bytes: u64,
}

/// What tables reference in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Liveness {
    /// Table entries that point into it.
    pub values: u64,
    /// Bytes of the records they point to.
    pub bytes: u64,
}

impl Liveness {
    /// Whether nothing is referenced.
    pub fn is_none(self) -> bool {
        self.values == 0 && self.bytes == 0
    }
}

/// Every segment that a version knows of.
#[derive(Debug, Clone, Default)]
pub struct SegmentMap {
    sealed: BTreeMap<SegmentId, SegmentEntry>,
    moved: BTreeMap<SegmentId, MovedEntry>,
    /// Sealed segments that have dead ranges.
    given_back: BTreeMap<SegmentId, GivenBack>,
    /// Segments that tables reference before the log has sealed them: a memtable may be flushed while its
    /// segment is still being written.
    unsealed: BTreeMap<SegmentId, Liveness>,
}

impl SegmentMap {
    /// The sealed segments: those of the log in its order, then the cold ones.
    pub fn sealed(&self) -> impl DoubleEndedIterator<Item = &SegmentEntry> {
        self.sealed.values()
    }

    /// The segments that tables reference but that are not sealed.
    pub fn unsealed(&self) -> impl Iterator<Item = (SegmentId, Liveness)> {
        self.unsealed.iter().map(|(&id, &live)| (id, live))
    }

    /// The sealed segment `id`.
    pub fn get(&self, id: SegmentId) -> Option<&SegmentEntry> {
        self.sealed.get(&id)
    }

    /// The segments that were moved.
    pub fn moved(&self) -> impl Iterator<Item = (SegmentId, MovedEntry)> {
        self.moved.iter().map(|(&id, &moved)| (id, moved))
    }

    /// The dead ranges of the sealed segment `id`; `None` if it has none.
    pub fn dead_ranges(&self, id: SegmentId) -> Option<&DeadRanges> {
        if self.given_back.is_empty() { None } else { self.given_back.get(&id).map(|given| &given.dead) }
    }

    /// Every sealed segment that has dead ranges, with them.
    pub fn all_dead_ranges(&self) -> impl Iterator<Item = (SegmentId, &DeadRanges)> {
        self.given_back.iter().map(|(&id, given)| (id, &given.dead))
    }

    /// Whether garbage collection has found the record at `offset` of segment `home`, where it is now, dead or hidden
    /// from every reader, and may have given its bytes back.
    pub fn is_given_back(&self, home: SegmentId, offset: u32) -> bool {
        self.dead_ranges(home).is_some_and(|dead| dead.contains(u64::from(offset)))
    }

    /// Bytes in the dead ranges of segment `id`.
    pub fn dead_bytes(&self, id: SegmentId) -> u64 {
        self.given_back.get(&id).map_or(0, |given| given.dead_bytes)
    }

    /// Bytes of whole blocks in the dead ranges of segment `id`: its file takes so much less than its length, once
    /// they were given back.
    pub fn hole_bytes(&self, id: SegmentId) -> u64 {
        self.given_back.get(&id).map_or(0, |given| given.hole_bytes)
    }

    /// The relocation table for pointers to segment `id`; `None` if its records are where they were written.
    pub fn relocation_table(&self, id: SegmentId) -> Option<ValuePointer> {
        if self.moved.is_empty() { None } else { self.moved.get(&id).map(|moved| moved.table) }
    }

    /// Bytes of memory that all relocation tables would take, about.
    pub fn relocation_memory_bytes(&self) -> u64 {
        let stored = self.moved.values().map(|moved| u64::from(moved.table.stored_len)).sum::<u64>();
        stored * RELOCATION_MEMORY.0 / RELOCATION_MEMORY.1
    }

    /// What tables reference under the id of segment `id`, sealed or not, moved or not.
    pub fn live(&self, id: SegmentId) -> Liveness {
        let sealed = self.sealed.get(&id).map(|entry| entry.live);
        let moved = || self.moved.get(&id).map(|moved| moved.live);
        sealed.or_else(moved).or_else(|| self.unsealed.get(&id).copied()).unwrap_or_default()
    }

    /// Seals a segment; what is already known to be live in it stays so.
    pub(super) fn seal(&mut self, meta: SegmentMeta, handle: Arc<FileHandle>) -> Result<(), String> {
        if self.sealed.contains_key(&meta.id) || self.moved.contains_key(&meta.id) {
            return Err(format!("segment {} is added twice", meta.id));
        }
        let live = self.unsealed.remove(&meta.id).unwrap_or_default();
        let entry = SegmentEntry { meta, live, handle };
        self.sealed.insert(meta.id, entry);
        Ok(())
    }

    /// Segment `id` has the dead ranges `dead` from now on. `handle` is a new one of its file, for versions that do not
    /// reach what is in them.
    pub(super) fn give_back(
        &mut self,
        id: SegmentId,
        dead: &DeadRanges,
        handle: Arc<FileHandle>,
        block_bytes: u64,
    ) -> Result<(), String> {
        let entry = self
            .sealed
            .get_mut(&id)
            .ok_or_else(|| format!("segment {id} has dead ranges but is not there"))?;
        if dead.end() > entry.meta.end {
            return Err(format!("a dead range of segment {id} ends at {}, behind its records", dead.end()));
        }
        if self.given_back.get(&id).is_some_and(|before| !dead.cover(&before.dead)) {
            return Err(format!("what was dead in segment {id} is not any more"));
        }
        entry.handle = handle;
        let hole_bytes = dead.hole_bytes(block_bytes);
        self.given_back.insert(id, GivenBack { dead: dead.clone(), dead_bytes: dead.bytes(), hole_bytes });
        Ok(())
    }

    /// Moves the records of segments that are sealed, whose files go, or that were moved before (or, when a whole
    /// version is made, of any). What was moved into a segment that moves must move with it (I-10): [`check_homes`](Self::check_homes)
    /// looks.
    pub(super) fn relocate(&mut self, moves: &[SegmentMove]) {
        for &SegmentMove { id, table } in moves {
            let live = self.live(id);
            self.sealed.remove(&id);
            self.given_back.remove(&id);
            self.unsealed.remove(&id);
            self.moved.insert(id, MovedEntry { table, live });
        }
    }

    /// Forgets segments in which nothing is live any more.
    pub(super) fn drop(&mut self, ids: &[SegmentId]) -> Result<(), String> {
        for id in ids {
            let live = self.live(*id);
            self.given_back.remove(id);
            if self.sealed.remove(id).is_none() && self.moved.remove(id).is_none() {
                return Err(format!("segment {id} is dropped but unknown"));
            }
            if !live.is_none() {
                return Err(format!("segment {id} is dropped with {} live values", live.values));
            }
        }
        Ok(())
    }

    /// I-10, and I-13 as far as it tells of relocation tables.
    pub(super) fn check_homes(&self) -> Result<(), String> {
        for (id, MovedEntry { table, .. }) in &self.moved {
            if !self.sealed.contains_key(&table.segment) {
                return Err(format!(
                    "segment {id} was moved to segment {}, which is not there",
                    table.segment
                ));
            }
            let start = u64::from(table.offset);
            let place = start..start + u64::from(table.stored_len).max(1);
            if self.dead_ranges(table.segment).is_some_and(|dead| dead.find(&place).is_some()) {
                return Err(format!("the relocation table of segment {id} lies in a dead range"));
            }
        }
        Ok(())
    }

    /// I-10: tables reference no segment that is gone. Of the log's segments from `head` on, which are not all
    /// sealed, nothing is known.
    pub(super) fn check_references(&self, head: SegmentId) -> Result<(), String> {
        match self.unsealed.keys().find(|id| id.is_cold() || **id < head) {
            Some(id) => Err(format!("tables reference segment {id}, which is not there")),
            None => Ok(()),
        }
    }

    /// The same without the sealed segments.
    pub(super) fn without_values(&self) -> Self {
        Self {
            sealed: BTreeMap::new(),
            moved: self.moved.clone(),
            given_back: self.given_back.clone(),
            unsealed: self.unsealed.clone(),
        }
    }

    /// The segments, under their old ids, whose records are in segment `home`.
    pub fn moved_to(&self, home: SegmentId) -> impl Iterator<Item = (SegmentId, MovedEntry)> {
        self.moved().filter(move |(_, moved)| moved.table.segment == home)
    }

    /// At most so much of each sealed segment is alive: what tables reference under any id. References to records
    /// that garbage collection found hidden count until a compaction drops them.
    pub fn live_by_home(&self) -> BTreeMap<SegmentId, Liveness> {
        let mut sums: BTreeMap<_, _> = self.sealed.iter().map(|(&id, entry)| (id, entry.live)).collect();
        for moved in self.moved.values() {
            let sum = sums.entry(moved.table.segment).or_default();
            sum.values += moved.live.values;
            sum.bytes += moved.live.bytes;
        }
        sums
    }

    /// Counts the references of a table that joins.
    pub(super) fn add(&mut self, references: &[SegmentReference]) -> Result<(), String> {
        for reference in references {
            self.change(reference.segment, |live| {
                Some(Liveness {
                    values: live.values.checked_add(reference.values)?,
                    bytes: live.bytes.checked_add(reference.bytes)?,
                })
            })
            .ok_or_else(|| format!("more than 64 bits of live bytes in segment {}", reference.segment))?;
        }
        Ok(())
    }

    /// Discounts the references of a table that leaves.
    pub(super) fn subtract(&mut self, references: &[SegmentReference]) {
        for reference in references {
            self.change(reference.segment, |live| {
                Some(Liveness {
                    values: live.values.checked_sub(reference.values)?,
                    bytes: live.bytes.checked_sub(reference.bytes)?,
                })
            })
            .expect("a table that leaves was counted when it joined");
        }
    }

    fn change(&mut self, id: SegmentId, change: impl FnOnce(Liveness) -> Option<Liveness>) -> Option<()> {
        let live = change(self.live(id))?;
        if let Some(entry) = self.sealed.get_mut(&id) {
            entry.live = live;
        } else if let Some(moved) = self.moved.get_mut(&id) {
            moved.live = live;
        } else if live == Liveness::default() {
            self.unsealed.remove(&id);
        } else {
            self.unsealed.insert(id, live);
        }
        Some(())
    }

    /// Whether both know the same segments with the same liveness.
    pub(super) fn agrees_with(&self, derived: &BTreeMap<SegmentId, Liveness>) -> Result<(), String> {
        for (&id, &live) in derived {
            if self.live(id) != live {
                return Err(format!(
                    "segment {id} counts {:?}, its tables reference {live:?}",
                    self.live(id)
                ));
            }
        }
        let sealed = self.sealed.iter().map(|(&id, entry)| (id, entry.live));
        let moved = self.moved.iter().map(|(&id, moved)| (id, moved.live));
        let unsealed = self.unsealed.iter().map(|(&id, &live)| (id, live));
        let counted: HashSet<SegmentId> = sealed
            .chain(moved)
            .chain(unsealed)
            .filter(|(_, live)| !live.is_none())
            .map(|(id, _)| id)
            .collect();
        match counted.into_iter().find(|id| !derived.contains_key(id)) {
            Some(id) => Err(format!("segment {id} counts {:?}, no table references it", self.live(id))),
            None => Ok(()),
        }
    }
}
