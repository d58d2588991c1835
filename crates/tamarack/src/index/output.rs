//! The tables that a flush or a compaction writes.
//!
//! Owns: naming, creating, cutting and finishing output files, and removing them when the job fails. Entries come
//! in key order; which ones is the caller's decision. A finished table's data is durable, its name after
//! [`Destination::sync_names`], which the caller calls before an edit mentions the table.

use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::ids::{Sequence, TableId};
use crate::base::keys::{EntryKind, split_internal_key, trailer_kind, user_key};
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::sync::{Arc, AtomicU64, Ordering};

use super::table::TableOptions;
use super::table::builder::{TableBuilder, TableSummary};
use super::version::{FileHandle, Files, HeldBytes, TableMeta};

/// Where new tables go. Cheap to clone; clones share the counter of ids.
#[derive(Debug, Clone)]
pub struct Destination {
    files: Arc<Files>,
    options: TableOptions,
    next_table_id: Arc<AtomicU64>,
}

impl Destination {
    /// Tables shaped by `options`, with ids from `next_id` on.
    pub fn new(files: Arc<Files>, options: TableOptions, next_id: TableId) -> Self {
        Self { files, options, next_table_id: Arc::new(AtomicU64::new(next_id.0)) }
    }

    /// The id that the next table will have, or a smaller one.
    pub fn next_table_id(&self) -> TableId {
        TableId(self.next_table_id.load(Ordering::Relaxed))
    }

    /// The path of a file of the cube.
    pub fn path(&self, name: FileName) -> PathBuf {
        name.path(self.files.directory())
    }

    /// Makes the names of all finished tables durable.
    pub fn sync_names(&self) -> Result<()> {
        let directory = self.files.directory();
        self.files.fs().sync_dir(directory).map_err(|error| Error::sync(directory, error))
    }

    /// Bytes that an entry takes, in the log if it points there, else in a table.
    pub fn stored_bytes(&self, internal_key: &[u8], payload: &[u8]) -> u64 {
        let (key, trailer) =
            split_internal_key(internal_key).expect("decoders refuse internal keys without a trailer");
        let pointer = (trailer_kind(trailer) == Some(EntryKind::Pointer))
            .then(|| ValuePointer::from_bytes(payload).expect("pointer payloads are value pointers"));
        let inline = (internal_key.len() + payload.len()) as u64;
        let record_len = |pointer: ValuePointer| {
            self.options.record_overhead + key.len() as u64 + u64::from(pointer.stored_len)
        };
        pointer.map_or(inline, record_len)
    }

    fn start_table(&self, source: &Path) -> Result<OpenTable> {
        let id = TableId(self.next_table_id.fetch_add(1, Ordering::Relaxed));
        let handle = self.files.table(id);
        let path = handle.path();
        let file = self.files.fs().create_new(&path).map_err(|error| Error::io("create", &path, error))?;
        let builder = TableBuilder::new(file, path, source.to_path_buf(), id, &self.options);
        Ok(OpenTable { builder, held: HeldBytes::new(), handle })
    }
}

#[derive(Debug)]
struct OpenTable {
    builder: TableBuilder,
    held: HeldBytes,
    handle: Arc<FileHandle>,
}

/// The output of one job, in key order. Dropping it before [`finish`](Self::finish) removes every file.
#[derive(Debug)]
pub struct Output {
    destination: Destination,
    source: PathBuf,
    open: Option<OpenTable>,
    finished: Vec<Arc<TableMeta>>,
}

impl Output {
    /// Nothing yet. `source` is where entries come from.
    pub fn new(destination: Destination, source: PathBuf) -> Self {
        Self { destination, source, open: None, finished: Vec::new() }
    }

    /// Adds an entry behind all others to the open table, or to a new one if none is open. `held` is the first and the
    /// last of the snapshots for which alone it is kept.
    pub fn add(
        &mut self,
        internal_key: &[u8],
        payload: &[u8],
        held: Option<(Sequence, Sequence)>,
    ) -> Result<()> {
        let open = match &mut self.open {
            Some(open) => open,
            None => {
                if let Some(last) = self.finished.last() {
                    self.check_behind(last, internal_key)?;
                }
                self.open.insert(self.destination.start_table(&self.source)?)
            }
        };
        if let Some(snapshots) = held {
            let bytes = self.destination.stored_bytes(internal_key, payload);
            *open.held.entry(snapshots).or_default() += bytes;
        }
        open.builder.add(internal_key, payload)
    }

    /// An error unless the entry is one of a user key behind `last`: an input was not in order.
    fn check_behind(&self, last: &TableMeta, internal_key: &[u8]) -> Result<()> {
        let order = &self.destination.options.order;
        if order.compare_user(last.largest_user_key(), user_key(internal_key)).is_lt() {
            return Ok(());
        }
        let found = "others, here or in a table near";
        Err(Error::corruption(&self.source, 0, "keys in ascending order", found))
    }

    /// About how long the open table is; 0 if none is open.
    pub fn open_bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.builder.estimated_file_bytes())
    }

    /// Finishes the open table, if there is one, and returns how long it is. The next entry starts another.
    pub fn cut(&mut self) -> Result<u64> {
        let Some(OpenTable { builder, held, handle }) = self.open.take() else { return Ok(0) };
        // Until the table is whole, leaving this function early must remove its file.
        let summary = builder.finish().inspect_err(|_| handle.mark_obsolete(0))?;
        let table = table_meta(summary, held, handle);
        let bytes = table.file_bytes;
        self.finished.push(Arc::new(table));
        Ok(bytes)
    }

    /// Finishes the open table and hands over all tables, whose files are no longer removed.
    pub fn finish(mut self) -> Result<Vec<Arc<TableMeta>>> {
        self.cut()?;
        Ok(std::mem::take(&mut self.finished))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            open.handle.mark_obsolete(0);
        }
        discard(&self.finished);
    }
}

/// Removes the files of `tables`, which no edit has mentioned, when the last holder lets go of them.
pub fn discard(tables: &[Arc<TableMeta>]) {
    tables.iter().for_each(|table| table.handle.mark_obsolete(table.file_bytes));
}

fn table_meta(summary: TableSummary, held: HeldBytes, handle: Arc<FileHandle>) -> TableMeta {
    TableMeta {
        id: summary.id,
        file_bytes: summary.file_bytes,
        entries: summary.entries,
        deletes: summary.deletes,
        inline_bytes: summary.inline_bytes,
        smallest: summary.smallest,
        largest: summary.largest,
        sequences: summary.sequences,
        referenced_value_bytes: summary.references.iter().map(|reference| reference.bytes).sum(),
        references: summary.references,
        held,
        handle,
    }
}
