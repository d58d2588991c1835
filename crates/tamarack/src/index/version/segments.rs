//! The segments of the value log as a version sees them: which are sealed, and how much of each the version's
//! tables still reference.
//!
//! Owns: the liveness sums. Invariant: for every segment, `live_values` and `live_bytes` are the sums of the
//! references of all tables of the version; [`Version::audit`](super::Version::audit) derives them anew and
//! compares.

use std::collections::BTreeMap;

use crate::base::ids::SegmentId;
use crate::base::segment::{SegmentMeta, SegmentReference};
use crate::base::sync::Arc;

use super::files::FileHandle;

/// A sealed segment.
#[derive(Debug, Clone)]
pub struct SegmentEntry {
    /// Its size and what it once held.
    pub meta: SegmentMeta,
    /// Table entries of this version that point into it.
    pub live_values: u64,
    /// Bytes of the records they point to.
    pub live_bytes: u64,
    /// Its file.
    pub handle: Arc<FileHandle>,
}

/// What tables reference in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Liveness {
    /// Table entries that point into it.
    pub values: u64,
    /// Bytes of the records they point to.
    pub bytes: u64,
}

/// Every segment that a version knows of.
#[derive(Debug, Clone, Default)]
pub struct SegmentMap {
    sealed: BTreeMap<SegmentId, SegmentEntry>,
    /// Segments that tables reference before the log has sealed them: a memtable may be flushed while its
    /// segment is still being written.
    unsealed: BTreeMap<SegmentId, Liveness>,
}

impl SegmentMap {
    /// The sealed segments in log order.
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

    /// What tables reference in segment `id`, sealed or not.
    pub fn live(&self, id: SegmentId) -> Liveness {
        match self.sealed.get(&id) {
            Some(entry) => Liveness { values: entry.live_values, bytes: entry.live_bytes },
            None => self.unsealed.get(&id).copied().unwrap_or_default(),
        }
    }

    /// Seals a segment; what is already known to be live in it stays so.
    pub(super) fn seal(&mut self, meta: SegmentMeta, handle: Arc<FileHandle>) -> Result<(), String> {
        if self.sealed.contains_key(&meta.id) {
            return Err(format!("segment {} is added twice", meta.id));
        }
        let live = self.unsealed.remove(&meta.id).unwrap_or_default();
        let entry = SegmentEntry { meta, live_values: live.values, live_bytes: live.bytes, handle };
        self.sealed.insert(meta.id, entry);
        Ok(())
    }

    /// Forgets a sealed segment in which nothing is live any more.
    pub(super) fn remove(&mut self, id: SegmentId) -> Result<SegmentEntry, String> {
        let entry = self.sealed.remove(&id).ok_or_else(|| format!("segment {id} is dropped but unknown"))?;
        if entry.live_values > 0 || entry.live_bytes > 0 {
            return Err(format!("segment {id} is dropped with {} live values", entry.live_values));
        }
        Ok(entry)
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
            (entry.live_values, entry.live_bytes) = (live.values, live.bytes);
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
        let mut counted = self
            .sealed
            .values()
            .filter(|entry| entry.live_values > 0 || entry.live_bytes > 0)
            .map(|e| e.meta.id);
        let mut unsealed = self.unsealed.keys().copied();
        match counted
            .find(|id| !derived.contains_key(id))
            .or_else(|| unsealed.find(|id| !derived.contains_key(id)))
        {
            Some(id) => Err(format!("segment {id} counts {:?}, no table references it", self.live(id))),
            None => Ok(()),
        }
    }
}
