//! The index as a whole, on a file system in memory.

mod compactions;
mod failures;
mod files;
mod hidden;
mod model;

use std::path::Path;

use crate::base::comparator::Bytewise;
use crate::base::error::Result;
use crate::base::ids::{CubeId, SegmentId, Sequence};
use crate::base::keys::{EntryKind, KeyOrder, split_internal_key, trailer_kind, trailer_sequence};
use crate::base::memory::Allotment;
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::sync::Arc;
use crate::env::pool::Job;
use crate::env::posix::posix_env;
use crate::env::{Env, Fs};

use super::cache::BlockCache;
use super::compact::{CompactionOptions, CompactionStats};
use super::manifest::TornTail;
use super::memtable::Memtable;
use super::merge::merge;
use super::table::TableOptions;
use super::testing::{MemoryFs, RecordedFiles, unmoved};
use super::version::{Version, VersionEdit};
use super::*;

const DIRECTORY: &str = "cube";
const RECORD_OVERHEAD: u64 = 32;

/// An index on a file system in memory, with tables so small that every level is used.
struct Harness {
    fs: Arc<MemoryFs>,
    recorded: RecordedFiles,
    index: Index,
}

fn options() -> IndexOptions {
    let order = KeyOrder::new(Arc::new(Bytewise));
    let table = TableOptions { block_bytes: 64, ..TableOptions::new(CubeId(0), order, RECORD_OVERHEAD) };
    let compaction = CompactionOptions {
        l0_tables: 3,
        base_weight: 2000,
        table_bytes_max: 600,
        ..CompactionOptions::default()
    };
    let blocks = Arc::new(BlockCache::new(1 << 16));
    let filters = Allotment::unlimited();
    IndexOptions { table, compaction, manifest_bytes_max: 2000, open_tables_max: 8, blocks, filters }
}

fn env(fs: &Arc<MemoryFs>) -> Env {
    Env { fs: fs.clone(), ..posix_env() }
}

impl Harness {
    fn new() -> Self {
        Self::with(options())
    }

    fn with(options: IndexOptions) -> Self {
        let (fs, recorded) = (MemoryFs::new(), RecordedFiles::default());
        let observer = Box::new(recorded.clone());
        let index = Index::create(&env(&fs), Path::new(DIRECTORY), CubeId(7), options, observer)
            .expect("nothing fails");
        Self { fs, recorded, index }
    }

    fn open(&self, read_only: bool) -> Result<(Index, Option<TornTail>)> {
        let observer = Box::new(self.recorded.clone());
        let replay = |_, _: &Version| Ok(());
        let opened =
            Index::open(&env(&self.fs), Path::new(DIRECTORY), options(), observer, read_only, replay);
        opened.map(|(index, torn, ())| (index, torn))
    }

    fn reopen(&mut self) {
        let (index, torn) = self.open(false).expect("the index is whole");
        assert_eq!(torn, None);
        self.index = index;
    }

    /// Flushes one memtable with the entries. Pointers lead into segment 1, which is there from the first.
    fn flush(&self, entries: &[(&[u8], u64, EntryKind)], snapshots: &[Sequence]) -> Arc<Version> {
        let segment = FileName::Segment(SegmentId(1)).path(Path::new(DIRECTORY));
        if !self.fs.exists(&segment).expect("nothing fails") {
            self.fs.put(&segment, b"");
        }
        let memtable = Memtable::new(options().table.order, 1 << 16, None);
        for &(key, sequence, kind) in entries {
            memtable.insert(key, Sequence(sequence), kind, &payload(sequence, kind));
        }
        let add_tables = self.index.flush(&[Arc::new(memtable)], snapshots).expect("nothing fails");
        self.index.install(VersionEdit { add_tables, ..VersionEdit::default() }).expect("nothing fails")
    }

    fn run(&self, compaction: Compaction, snapshots: &[Sequence]) -> Result<CompactionStats> {
        let (edit, stats) =
            self.index.run(&compaction, snapshots, &Signals::default(), &unmoved(), 3, &run_all)?;
        self.index.install(edit)?;
        Ok(stats)
    }

    fn compact_all(&self, snapshots: &[Sequence]) {
        let mut manual = self.index.start_manual(None, None);
        loop {
            match self.index.next_manual(&mut manual) {
                ManualTurn::Run(compaction) => drop(self.run(compaction, snapshots).expect("nothing fails")),
                ManualTurn::Blocked => panic!("nothing else runs"),
                ManualTurn::Done => return,
            }
        }
    }

    fn table_files(&self) -> Vec<String> {
        self.fs.names(DIRECTORY).into_iter().filter(|name| name.ends_with(".table")).collect()
    }

    fn live_tables(&self) -> Vec<String> {
        let version = self.index.version();
        let mut names: Vec<_> = version.tables().map(|(_, table)| table.handle.name().to_string()).collect();
        names.sort();
        names
    }
}

/// Each job on a thread of its own.
fn run_all(jobs: Vec<Job>) {
    std::thread::scope(|scope| {
        for job in jobs {
            scope.spawn(job);
        }
    });
}

/// The payload that the operation `sequence` wrote.
fn payload(sequence: u64, kind: EntryKind) -> Vec<u8> {
    let number = sequence as u32;
    match kind {
        EntryKind::Delete => Vec::new(),
        EntryKind::Inline => number.to_le_bytes().to_vec(),
        EntryKind::Pointer => {
            let pointer =
                ValuePointer { segment: SegmentId(1), offset: number * 64, stored_len: number % 200 };
            pointer.to_bytes().to_vec()
        }
    }
}

/// Everything that a reader at `snapshot` sees, through cursors; payloads are checked.
fn scan(index: &Index, version: &Version, snapshot: u64) -> Vec<(Vec<u8>, u64, EntryKind)> {
    let mut cursor = merge(version.order().clone(), index.cursors(version, true));
    let mut found: Vec<(Vec<u8>, u64, EntryKind)> = Vec::new();
    let mut last: Option<Vec<u8>> = None;
    cursor.seek_to_first().expect("nothing fails");
    while cursor.valid() {
        let (key, trailer) = split_internal_key(cursor.key()).expect("is an internal key");
        let (sequence, kind) = (trailer_sequence(trailer).0, trailer_kind(trailer).expect("has a kind"));
        assert_eq!(cursor.payload(), payload(sequence, kind));
        if sequence <= snapshot && last.as_deref() != Some(key) {
            last = Some(key.to_vec());
            if kind != EntryKind::Delete {
                found.push((key.to_vec(), sequence, kind));
            }
        }
        cursor.next().expect("nothing fails");
    }
    found
}

/// A harness with `count` keys in several overlapping tables of L0.
fn filled(count: u64) -> Harness {
    let harness = Harness::new();
    fill(&harness, count);
    harness
}

fn fill(harness: &Harness, count: u64) {
    for round in 0..4 {
        let keys: Vec<Vec<u8>> = (0..count).map(|number| format!("{number:06}").into_bytes()).collect();
        let entries: Vec<_> = keys
            .iter()
            .enumerate()
            .map(|(at, key)| (&key[..], round * count + at as u64 + 1, EntryKind::Pointer))
            .collect();
        harness.flush(&entries, &[]);
    }
}
