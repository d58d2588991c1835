//! What repair asks of the index: which tables are whole, what is left of the others, new tables from all of it, and a
//! manifest that puts them in force.
//!
//! Owns: the directory beside the cube's in which new tables are built; nothing in the cube's own directory is touched
//! before [`put_in_force`]. Never reads the log. Memory: the entries of one run, the open tables' indexes and filters
//! (as many as the options allow), and one block for each of the disjoint runs that a merge walks over.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::ids::{CubeId, SegmentId, Sequence, TableId};
use crate::base::keys::{
    EntryKind, KeyOrder, put_internal_key, split_internal_key, trailer_kind, trailer_sequence,
};
use crate::base::memory::Allotment;
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentReference;
use crate::base::sync::Arc;
use crate::env::Fs;

use super::cache::{BlockCache, TableCache};
use super::contradictions::contradictions;
use super::cursor::Cursor;
use super::level_cursor::LevelCursor;
use super::manifest::ManifestWriter;
use super::merge::merge;
use super::output::{Destination, Output};
use super::table::TableOptions;
use super::table::salvage::{Remains, Visit, salvage};
use super::version::{FileObserver, Files, HeldBytes, TableMeta, Version, VersionEdit};

/// Bytes of entries that are sorted in memory at a time.
const RUN_BYTES_MAX: usize = 32 << 20;

/// What became of a key in a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Its newest version is there.
    Kept,
    /// Its newest version is a deletion.
    Deleted,
    /// Its newest version points to a record that is lost.
    Lost,
}

/// What a look at a table came to.
#[derive(Debug)]
pub enum Examined {
    /// All of it is right.
    Whole(Arc<TableMeta>),
    /// Something is not; the error says what was met first.
    Damaged(Error),
}

/// Where tables are built anew.
#[derive(Debug)]
pub struct Workshop {
    files: Arc<Files>,
    directory: PathBuf,
    options: TableOptions,
    table_bytes_max: u64,
    cache: Arc<TableCache>,
    destination: Destination,
}

/// Entries in any order, which become sorted tables.
#[derive(Debug)]
pub struct Runs<'a> {
    workshop: &'a Workshop,
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    bytes: usize,
    tables: Vec<Arc<TableMeta>>,
}

/// Files of a repair are removed by the repair.
struct Nobody;

impl FileObserver for Nobody {
    fn removing(&self, _file: FileName) {}
    fn failed(&self, _error: Error) {}
}

/// Handles for the files in `directory`, of which none is ever removed through them.
pub fn files_in(fs: &Arc<dyn Fs>, directory: &Path) -> Arc<Files> {
    Files::new(Arc::clone(fs), directory, Box::new(Nobody))
}

impl Workshop {
    /// Builds tables with numbers from `next` on in `scratch`; tables with smaller numbers are in `directory`.
    pub fn new(
        fs: &Arc<dyn Fs>,
        (directory, scratch): (&Path, &Path),
        options: TableOptions,
        table_bytes_max: u64,
        open_tables_max: usize,
        next: TableId,
    ) -> Self {
        let (old, new) = (directory.to_path_buf(), scratch.to_path_buf());
        let path_of = move |id| FileName::Table(id).path(if id < next { &old } else { &new });
        let blocks = Arc::new(BlockCache::new(0));
        let (shared_fs, filters) = (Arc::clone(fs), Allotment::unlimited());
        let cache = TableCache::new(shared_fs, path_of, options.clone(), blocks, filters, open_tables_max);
        let files = files_in(fs, scratch);
        let destination = Destination::new(Arc::clone(&files), options.clone(), next);
        let directory = directory.to_path_buf();
        Self { files, directory, options, table_bytes_max, cache: Arc::new(cache), destination }
    }

    /// Reads every byte of table `id` of the cube; `meta` is what the manifest says of it, if there is one.
    ///
    /// # Errors
    /// `Io`, `Unsupported`, `InvalidArgument` for another order of keys.
    pub fn examine(&self, id: TableId, meta: Option<&TableMeta>) -> Result<Examined> {
        match self.examine_strictly(id, meta) {
            Ok(meta) => Ok(Examined::Whole(meta)),
            Err(error) if error.kind() == ErrorKind::Corruption => Ok(Examined::Damaged(error)),
            Err(error) => Err(error),
        }
    }

    fn examine_strictly(&self, id: TableId, meta: Option<&TableMeta>) -> Result<Arc<TableMeta>> {
        let path = FileName::Table(id).path(&self.directory);
        let fs = self.files.fs();
        if !fs.exists(&path).map_err(|error| Error::io("look for", &path, error))? {
            return Err(Error::corruption(&path, 0, "a file that the manifest mentions", "no such file"));
        }
        let table = self.cache.get(id)?;
        table.verify()?;
        let properties = table.properties();
        let references = table.references()?.summary().to_vec();
        let found = TableMeta {
            id,
            file_bytes: table.file_bytes(),
            entries: properties.entries,
            deletes: properties.deletes,
            inline_bytes: meta.map_or(0, |meta| meta.inline_bytes),
            smallest: properties.smallest.clone(),
            largest: properties.largest.clone(),
            sequences: properties.sequences,
            referenced_value_bytes: references.iter().map(|reference| reference.bytes).sum(),
            references,
            held: HeldBytes::new(),
            handle: self.files.table(id),
        };
        let wrong = meta.map(|meta| contradictions(meta, &table)).transpose()?;
        wrong.into_iter().flatten().next().map_or(Ok(Arc::new(found)), Err)
    }

    /// What is left of table `id`; its entries go to `visit`.
    ///
    /// # Errors
    /// `Io`, `Unsupported`; whatever `visit` fails with.
    pub fn salvage(&self, id: TableId, visit: Visit<'_>) -> Result<Remains> {
        let path = FileName::Table(id).path(&self.directory);
        match self.files.fs().open_read(&path) {
            Ok(file) => salvage(file, path, id, &self.options, visit),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Remains { lost: vec![(None, None)], ..Remains::default() })
            }
            Err(error) => Err(Error::io("open", &path, error)),
        }
    }

    /// Entries that come in any order.
    pub fn runs(&self) -> Runs<'_> {
        Runs { workshop: self, entries: Vec::new(), bytes: 0, tables: Vec::new() }
    }

    /// The offsets of all records that `tables` point to under the id `segment`, sorted.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn offsets(&self, tables: &[Arc<TableMeta>], segment: SegmentId) -> Result<Vec<u32>> {
        let mut offsets = Vec::new();
        for meta in tables.iter().filter(|meta| points_into(meta, segment)) {
            offsets.extend(self.cache.get(meta.id)?.references()?.set_of(segment)?);
        }
        offsets.sort_unstable();
        offsets.dedup();
        Ok(offsets)
    }

    /// Shows key, sequence number and pointer of every entry that points into one of `segments`.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn pointers(
        &self,
        tables: &[Arc<TableMeta>],
        segments: &HashSet<SegmentId>,
        visit: &mut dyn FnMut(&[u8], Sequence, ValuePointer),
    ) -> Result<()> {
        for meta in tables.iter().filter(|meta| segments.iter().any(|&id| points_into(meta, id))) {
            let mut cursor = self.cursor(std::slice::from_ref(meta));
            cursor.seek_to_first()?;
            while cursor.valid() {
                let (key, trailer) =
                    split_internal_key(cursor.key()).expect("cursors refuse keys without a trailer");
                if trailer_kind(trailer) == Some(EntryKind::Pointer)
                    && let Some(pointer) = ValuePointer::from_bytes(cursor.payload())
                    && segments.contains(&pointer.segment)
                {
                    visit(key, trailer_sequence(trailer), pointer);
                }
                cursor.next()?;
            }
        }
        Ok(())
    }

    /// Walks over the newest version of every key in `tables`, and tells what becomes of it. With `write`, those that are
    /// kept become new tables that lie side by side, their data durable.
    ///
    /// # Errors
    /// `Io`, `NoSpace`, `Corruption`.
    pub fn merge(
        &self,
        tables: &[Arc<TableMeta>],
        write: bool,
        is_lost: &dyn Fn(ValuePointer) -> bool,
        told: &mut dyn FnMut(&[u8], Sequence, Fate),
    ) -> Result<Vec<Arc<TableMeta>>> {
        let order = &self.options.order;
        let mut cursor = self.cursor(tables);
        let mut output = Output::new(self.destination.clone(), FileName::Current.path(&self.directory));
        let mut last: Option<Vec<u8>> = None;
        cursor.seek_to_first()?;
        while cursor.valid() {
            let (key, trailer) =
                split_internal_key(cursor.key()).expect("cursors refuse keys without a trailer");
            if last.as_ref().is_some_and(|last| order.compare_user(last, key).is_eq()) {
                cursor.next()?;
                continue;
            }
            let fate = match trailer_kind(trailer) {
                Some(EntryKind::Delete) | None => Fate::Deleted,
                Some(EntryKind::Inline) => Fate::Kept,
                Some(EntryKind::Pointer) => {
                    let pointer = ValuePointer::from_bytes(cursor.payload());
                    if pointer.is_none_or(is_lost) { Fate::Lost } else { Fate::Kept }
                }
            };
            told(key, trailer_sequence(trailer), fate);
            last.get_or_insert_default().clear();
            last.get_or_insert_default().extend_from_slice(key);
            if write && fate == Fate::Kept {
                if output.open_bytes() >= self.table_bytes_max {
                    output.cut()?;
                }
                output.add(cursor.key(), cursor.payload(), None)?;
            }
            cursor.next()?;
        }
        output.finish()
    }

    /// A number that no table has had.
    pub fn next_table_id(&self) -> TableId {
        self.destination.next_table_id()
    }

    /// A cursor over the entries of all `tables`, whose ranges may overlap.
    fn cursor(&self, tables: &[Arc<TableMeta>]) -> Box<dyn Cursor> {
        let order = &self.options.order;
        let mut sorted = tables.to_vec();
        sorted.sort_by(|left, right| order.compare(&left.smallest, &right.smallest));
        let mut rows: Vec<Vec<Arc<TableMeta>>> = Vec::new();
        for table in sorted {
            let behind = |row: &Vec<Arc<TableMeta>>| {
                row.last().is_some_and(|last| {
                    order.compare_user(last.largest_user_key(), table.smallest_user_key()).is_lt()
                })
            };
            match rows.iter().position(behind) {
                Some(at) => rows[at].push(table),
                None => rows.push(vec![table]),
            }
        }
        if rows.is_empty() {
            rows.push(Vec::new());
        }
        let cursor = |row| {
            let (order, cache) = (order.clone(), Arc::clone(&self.cache));
            Box::new(LevelCursor::new(Arc::new(row), order, cache, false)) as Box<dyn Cursor>
        };
        merge(order.clone(), rows.into_iter().map(cursor).collect())
    }
}

impl Runs<'_> {
    /// Adds an entry.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn add(
        &mut self,
        user_key: &[u8],
        sequence: Sequence,
        kind: EntryKind,
        payload: &[u8],
    ) -> Result<()> {
        let mut key = Vec::with_capacity(user_key.len() + 8);
        put_internal_key(&mut key, user_key, sequence, kind);
        self.add_internal(&key, payload)
    }

    /// Adds an entry with its internal key.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn add_internal(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        self.bytes += key.len() + payload.len() + 2 * size_of::<Vec<u8>>();
        self.entries.push((key.to_vec(), payload.to_vec()));
        if self.bytes >= RUN_BYTES_MAX { self.sort() } else { Ok(()) }
    }

    fn sort(&mut self) -> Result<()> {
        let order = &self.workshop.options.order;
        let mut entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        entries.sort_by(|left, right| order.compare(&left.0, &right.0));
        entries.dedup_by(|left, right| order.compare(&left.0, &right.0).is_eq());
        let mut output =
            Output::new(self.workshop.destination.clone(), FileName::Current.path(&self.workshop.directory));
        for (key, payload) in &entries {
            output.add(key, payload, None)?;
        }
        self.tables.extend(output.finish()?);
        Ok(())
    }

    /// The tables.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn finish(mut self) -> Result<Vec<Arc<TableMeta>>> {
        self.sort()?;
        Ok(self.tables)
    }
}

fn points_into(meta: &TableMeta, segment: SegmentId) -> bool {
    meta.references.iter().any(|reference: &SegmentReference| reference.segment == segment)
}

/// Checks that `edit` makes a whole version, and puts manifest `number` with it in force in `directory`.
///
/// # Errors
/// `Corruption` if the edit breaks an invariant: nothing was written; `Io`, `NoSpace`.
pub fn put_in_force(
    fs: &Arc<dyn Fs>,
    directory: &Path,
    cube: CubeId,
    order: &KeyOrder,
    number: u64,
    edit: &VersionEdit,
) -> Result<()> {
    let files = files_in(fs, directory);
    let version = Version::empty(order.clone(), Arc::clone(&files)).apply(edit).map_err(|reason| {
        let path = FileName::Manifest(number).path(directory);
        Error::corruption(&path, 0, "a repaired version that is whole", reason)
    })?;
    ManifestWriter::create(files, cube, number, &version.snapshot(cube)).map(drop)
}
