//! Installing edits: durable first, then visible, then the dropped files may go.
//!
//! Installers take turns. A turn is a flag under a lock, not the lock itself, so nobody waits for a device while
//! holding a lock, and readers never wait at all.

use crate::base::error::{Error, Result};
use crate::base::ids::SegmentId;
use crate::base::names::FileName;
use crate::base::sync::{Arc, Condvar, Mutex};

use super::manifest::ManifestWriter;
use super::open::Index;
use super::version::{Files, Version, VersionEdit};

/// The manifest, and whose turn it is to write it.
#[derive(Debug)]
pub struct ManifestTurns {
    /// Rank: innermost; held for a move in memory.
    slot: Mutex<Slot>,
    freed: Condvar,
}

#[derive(Debug)]
enum Slot {
    /// Opened read-only: there is nothing to write.
    ReadOnly,
    Free(ManifestWriter),
    Taken,
}

/// Somebody's turn. Dropping it passes the manifest on.
pub(super) struct Turn<'a> {
    turns: &'a ManifestTurns,
    manifest: Option<ManifestWriter>,
}

impl ManifestTurns {
    /// Turns at `manifest`; `None` if it must not be written.
    pub fn new(manifest: Option<ManifestWriter>) -> Self {
        Self { slot: Mutex::new(manifest.map_or(Slot::ReadOnly, Slot::Free)), freed: Condvar::new() }
    }

    pub(super) fn take(&self) -> Result<Turn<'_>> {
        let mut slot = self.slot.lock();
        loop {
            match std::mem::replace(&mut *slot, Slot::Taken) {
                Slot::Free(manifest) => return Ok(Turn { turns: self, manifest: Some(manifest) }),
                Slot::Taken => self.freed.wait(&mut slot),
                Slot::ReadOnly => {
                    *slot = Slot::ReadOnly;
                    return Err(Error::read_only("the database was opened read-only"));
                }
            }
        }
    }
}

impl Turn<'_> {
    fn manifest(&mut self) -> &mut ManifestWriter {
        self.manifest.as_mut().expect("a turn has the manifest until it ends")
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(manifest) = self.manifest.take() {
            *self.turns.slot.lock() = Slot::Free(manifest);
            self.turns.freed.notify_one();
        }
    }
}

impl Index {
    /// Makes `edit` durable, then current, and then lets the files that it drops go as soon as nobody can reach
    /// them any more (I-04, I-06). Waits for earlier installers and for the device.
    ///
    /// # Errors
    /// `ReadOnly` if the cube was opened read-only, or if an earlier write to the manifest failed; `Io` or
    /// `NoSpace` if this one fails. After a failed write it is unknown until the cube is opened again whether the
    /// edit counts, unless what there is of it is cut off again, which may help where the disk is full: then what was made for it is removed.
    /// The version stays as it is. `Corruption` if the edit does not fit the current version: the files it was
    /// made of are not what the engine wrote.
    ///
    pub fn install(&self, edit: VersionEdit) -> Result<Arc<Version>> {
        let turn = self.manifest.take()?;
        self.install_in(turn, edit)
    }

    /// Drops every segment before the log head into which no table points any more; whether there was one. Jobs
    /// may call this at the same time: each segment is dropped once, because the choice is made in turn.
    ///
    /// # Errors
    /// As for [`install`](Self::install).
    pub fn drop_dead_segments(&self) -> Result<bool> {
        if self.droppable_segments().is_empty() {
            return Ok(false);
        }
        let turn = self.manifest.take()?;
        let drop_segments = self.droppable_segments();
        if drop_segments.is_empty() {
            return Ok(false);
        }
        self.install_in(turn, VersionEdit { drop_segments, ..VersionEdit::default() })?;
        Ok(true)
    }

    /// The segments of the present version that may be dropped. What a running compaction or collection may point
    /// into stays; one that begins later plans on this version or a later one, and finds nothing that points there.
    fn droppable_segments(&self) -> Vec<SegmentId> {
        let version = self.version();
        let (compactions, collections) = (self.in_progress.lock(), self.collecting.lock());
        version.droppable_segments(|id| compactions.reaches(id) || collections.holds(id))
    }

    pub(super) fn install_in(&self, mut turn: Turn<'_>, mut edit: VersionEdit) -> Result<Arc<Version>> {
        let base = self.version();
        edit.next_table_id = edit.next_table_id.max(Some(self.destination.next_table_id()));
        let next = match base.apply(&edit) {
            Ok(next) => Arc::new(next),
            // What it was made of, tables or the version, is not what the engine has written; or the engine is wrong.
            Err(reason) => {
                let path = FileName::Current.path(self.files.directory());
                return Err(Error::corruption(&path, 0, "a version that an edit of the engine fits", reason));
            }
        };
        let manifest = turn.manifest();
        let too_long = manifest.is_too_long(self.options.manifest_bytes_max);
        let rotated = too_long && manifest.rotate(&next.snapshot(self.cube))?;
        if !rotated && let Err(error) = manifest.append(&edit) {
            if manifest.is_as_before() {
                discard_added(&self.files, &edit);
            }
            return Err(error);
        }
        self.current.store(next.clone());
        drop(turn);
        // I-04: only now, with the edit durable, may files that it drops go.
        mark_dropped(&base, &next, &edit);
        Ok(next)
    }

    /// The current version.
    pub fn version(&self) -> Arc<Version> {
        self.current.load_full()
    }
}

/// Lets the files go that were made for `edit`, which is known not to count: they would take space until the database is opened again.
/// Segments of the log are what they are with or without it.
fn discard_added(files: &Arc<Files>, edit: &VersionEdit) {
    let is_moved = |id| edit.drop_tables.iter().any(|&(_, dropped)| dropped == id);
    for (_, table) in edit.add_tables.iter().filter(|(_, table)| !is_moved(table.id)) {
        table.handle.mark_obsolete(table.file_bytes);
    }
    for meta in edit.add_segments.iter().filter(|meta| meta.id.is_cold()) {
        files.segment(meta.id).mark_obsolete(meta.file_bytes);
    }
}

/// Marks the files of everything that `edit` has dropped, and the parts of files that it gives back: what `base`
/// mentions and `next` does not.
fn mark_dropped(base: &Version, next: &Version, edit: &VersionEdit) {
    for &(level, id) in &edit.drop_tables {
        let moved = edit.add_tables.iter().any(|(_, table)| table.id == id);
        let dropped = base.level(usize::from(level)).iter().find(|table| table.id == id);
        if let Some(table) = dropped.filter(|_| !moved) {
            table.handle.mark_obsolete(table.file_bytes);
        }
    }
    let moved = edit.move_segments.iter().map(|moved| &moved.id);
    for &id in edit.drop_segments.iter().chain(moved) {
        if let Some(entry) = base.segments().get(id).filter(|_| next.segments().get(id).is_none()) {
            entry.handle.mark_obsolete(entry.meta.file_bytes.saturating_sub(base.segments().hole_bytes(id)));
        }
    }
    for (id, dead) in &edit.dead_ranges {
        let (Some(before), Some(after)) = (base.segments().get(*id), next.segments().get(*id)) else {
            continue;
        };
        let known = base.segments().dead_ranges(*id).cloned().unwrap_or_default();
        let ranges: Vec<_> = dead.iter().filter(|range| known.iter().all(|old| old != *range)).collect();
        let bytes = next.segments().hole_bytes(*id) - base.segments().hole_bytes(*id);
        before.handle.supersede(&after.handle, ranges, bytes);
    }
}
