//! What garbage collection asks of the index: which records of some segments are alive, and one edit that says where
//! they have gone.
//!
//! Owns: the register of running collections, which keeps two of them from taking the same segment and keeps
//! segments in place while they are collected. Never reads a value. Called by `cube::collect`.
//!
//! Why the answer stays right while the world goes on: only segments whose every record is in tables are collected,
//! so no memtable points into them; tables that come later get their entries from these tables, so they point to
//! no record that these do not. What dies meanwhile is copied in vain.

use std::collections::HashSet;

use crate::base::dead_ranges::DeadRanges;
use crate::base::error::Result;
use crate::base::ids::{SegmentId, Sequence, TableId};
use crate::base::keys::{EntryKind, split_internal_key, trailer_kind, trailer_sequence};
use crate::base::pointer::ValuePointer;
use crate::base::segment::{SegmentMeta, SegmentMove};
use crate::base::sync::{Arc, Mutex};

use super::cursor::Cursor;
use super::hidden::{Above, is_hidden};
use super::hidden_among::{Pointing, hidden_among};
use super::open::Index;
use super::table::reader::TableReader;
use super::version::{SegmentEntry, Version, VersionEdit};

/// The collections that run: the segments that they take, and those that they have written and not handed over.
#[derive(Debug, Default)]
pub struct Collecting {
    victims: HashSet<SegmentId>,
}

impl Collecting {
    /// Whether `segment` is being collected.
    pub fn holds(&self, segment: SegmentId) -> bool {
        self.victims.contains(&segment)
    }
}

/// A collection that is registered as running, until it is dropped.
#[derive(Debug)]
pub struct Collection {
    version: Version,
    victims: Vec<SegmentEntry>,
    /// Cold segments that no table points into yet.
    copies: Vec<SegmentId>,
    collecting: Arc<Mutex<Collecting>>,
}

impl Drop for Collection {
    fn drop(&mut self) {
        let mut collecting = self.collecting.lock();
        self.victims.iter().map(|victim| &victim.meta.id).chain(&self.copies).for_each(|id| {
            collecting.victims.remove(id);
        });
    }
}

/// One pointer of a table into a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The offset of the record, under the id that the table uses.
    pub offset: u32,
    /// The level of the table.
    pub level: u8,
    /// The table.
    pub table: TableId,
}

impl Collection {
    /// The version whose tables say what is alive, [without values](Version::without_values).
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// The segments that are collected, which it keeps in place.
    pub fn victims(&self) -> &[SegmentEntry] {
        &self.victims
    }
}

impl Index {
    /// Registers a collection of what `choose` picks from the present version; `None` if it picks nothing. It must
    /// pick nothing that is being collected, and only what [`is_collectable`](Version::is_collectable).
    pub fn begin_collection(
        &self,
        choose: impl FnOnce(&Version, &Collecting) -> Vec<SegmentId>,
    ) -> Option<Collection> {
        let version;
        let victims = {
            let mut collecting = self.collecting.lock();
            version = self.version();
            let victims = choose(&version, &collecting);
            debug_assert!(victims.iter().all(|&victim| !collecting.holds(victim)), "one collection each");
            collecting.victims.extend(&victims);
            victims
        };
        let entry = |id| version.segments().get(id).expect("victims are chosen from this version").clone();
        let victims = victims.into_iter().map(entry).collect();
        let version = version.without_values();
        let collecting = self.collecting.clone();
        let collection = Collection { version, victims, copies: Vec::new(), collecting };
        (!collection.victims.is_empty()).then_some(collection)
    }

    /// Whether `segment` is being collected.
    pub fn is_collecting(&self, segment: SegmentId) -> bool {
        self.collecting.lock().holds(segment)
    }

    /// Every pointer of the collection's tables that uses the id `segment`, sorted by offset.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn references(&self, collection: &Collection, segment: SegmentId) -> Result<Vec<Reference>> {
        let mut found = Vec::new();
        for (level, meta) in collection.version.tables() {
            if meta.references.iter().all(|reference| reference.segment != segment) {
                continue;
            }
            let table = self.tables.get(meta.id)?;
            let offsets = table.references()?.set_of(segment)?;
            found.extend(offsets.into_iter().map(|offset| Reference { offset, level, table: meta.id }));
        }
        found.sort_unstable_by_key(|reference| reference.offset);
        Ok(found)
    }

    /// Whether the entry to which `reference` belongs, of `user_key` with `sequence`, is hidden from every reader,
    /// now and later. `snapshots` are sorted, and were listed after the collection began.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn is_hidden(
        &self,
        collection: &Collection,
        reference: Reference,
        user_key: &[u8],
        sequence: Sequence,
        snapshots: &[Sequence],
    ) -> Result<bool> {
        let above = Above::Table(reference.level, reference.table);
        is_hidden(&self.tables, &collection.version, above, user_key, sequence, snapshots)
    }

    /// For each of `entries`, sorted by key and then from the newest version to the oldest, the same as
    /// [`is_hidden`](Self::is_hidden).
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn hidden_among(
        &self,
        collection: &Collection,
        entries: &[Pointing<'_>],
        snapshots: &[Sequence],
    ) -> Result<Vec<bool>> {
        hidden_among(&self.tables, &collection.version, entries, snapshots)
    }

    /// Those of `offsets`, of records of `segment`, to which an entry points that is not hidden. The newer version may
    /// have come to stand in the same table since the record was left behind: a compaction that began under a snapshot
    /// keeps both, though the snapshot may be gone before it ends.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn visible_among(
        &self,
        version: &Version,
        segment: SegmentId,
        offsets: &HashSet<u32>,
    ) -> Result<Vec<u32>> {
        let mut visible = Vec::new();
        for (_, meta) in version.tables() {
            if meta.references.iter().all(|reference| reference.segment != segment) {
                continue;
            }
            let mut cursor = TableReader::cursor(&self.tables.get(meta.id)?, false);
            cursor.seek_to_first()?;
            while cursor.valid() {
                let (user_key, trailer) =
                    split_internal_key(cursor.key()).expect("cursors refuse keys without a trailer");
                if trailer_kind(trailer) == Some(EntryKind::Pointer)
                    && let Some(pointer) = ValuePointer::from_bytes(cursor.payload())
                    && pointer.segment == segment
                    && offsets.contains(&pointer.offset)
                {
                    let sequence = trailer_sequence(trailer);
                    if !is_hidden(&self.tables, version, Above::Everything, user_key, sequence, &[])? {
                        visible.push(pointer.offset);
                    }
                }
                cursor.next()?;
            }
        }
        Ok(visible)
    }

    /// Says that nobody will read what is in the dead ranges of victims of `collection` any more, their old ones among
    /// them. What is in them is given back to the file system once nobody can reach it: [`punch`](super::version::Files::punch). Victims that
    /// were dropped meanwhile, because everything in them had died, are left out.
    ///
    /// # Errors
    /// As for [`install`](Self::install).
    pub fn give_back(
        &self,
        collection: &Collection,
        mut dead: Vec<(SegmentId, DeadRanges)>,
    ) -> Result<Arc<Version>> {
        debug_assert!(
            dead.iter().all(|(id, _)| collection.victims.iter().any(|victim| victim.meta.id == *id))
        );
        let turn = self.manifest.take()?;
        let version = self.version();
        dead.retain(|(id, _)| version.segments().get(*id).is_some());
        if dead.is_empty() {
            return Ok(version);
        }
        self.install_in(turn, VersionEdit { dead_ranges: dead, ..VersionEdit::default() })
    }

    /// Adds the cold segments `copies`, which hold records of the victims of `collection`. No table points into them
    /// before compactions have [replaced](Self::next_replacing) pointers; until `collection` is dropped they stay nevertheless,
    /// and are not collected. Their files and names are durable.
    ///
    /// # Errors
    /// As for [`install`](Self::install).
    pub fn add_copies(&self, collection: &mut Collection, copies: Vec<SegmentMeta>) -> Result<Arc<Version>> {
        collection.copies.extend(copies.iter().map(|meta| meta.id));
        collection.collecting.lock().victims.extend(&collection.copies);
        self.install(VersionEdit { add_segments: copies, ..VersionEdit::default() })
    }

    /// Ends `collection`: one edit adds `output`, which holds every record that was copied, and moves the victims and
    /// what had been moved into them there. The victims' files go when nobody can reach them any more. `None` if
    /// all of them were dropped meanwhile, because everything in them had died: then nothing has changed.
    ///
    /// The files behind `output` and their names are durable.
    ///
    /// # Errors
    /// As for [`install`](Self::install).
    pub fn finish_collection(
        &self,
        collection: Collection,
        output: SegmentMeta,
        mut moves: Vec<SegmentMove>,
    ) -> Result<Option<Arc<Version>>> {
        let turn = self.manifest.take()?;
        let version = self.version();
        let segments = version.segments();
        moves.retain(|moved| {
            segments.get(moved.id).is_some() || segments.relocation_table(moved.id).is_some()
        });
        if moves.is_empty() {
            return Ok(None);
        }
        let edit = VersionEdit { add_segments: vec![output], move_segments: moves, ..VersionEdit::default() };
        let version = self.install_in(turn, edit)?;
        drop(collection);
        Ok(Some(version))
    }
}
