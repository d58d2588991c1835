//! The index as a whole: a model drives flushes, compactions and reopening, and everything visible at any snapshot
//! stays the same.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;

use crate::base::comparator::Bytewise;
use crate::base::error::{ErrorKind, Result};
use crate::base::ids::{CubeId, LogPosition, SegmentId, Sequence};
use crate::base::keys::{EntryKind, KeyOrder, split_internal_key, trailer_kind, trailer_sequence};
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::segment::SegmentMeta;
use crate::base::sync::{Arc, AtomicBool, Ordering};
use crate::env::pool::Job;
use crate::env::posix::posix_env;
use crate::env::{Env, Fs};

use super::cache::BlockCache;
use super::compact::{CompactionOptions, CompactionStats};
use super::memtable::Memtable;
use super::merge::merge;
use super::table::TableOptions;
use super::table::reader::TablePayload;
use super::testing::{MemoryFs, RecordedFiles};
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
    let compaction =
        CompactionOptions { l0_tables: 3, base_weight: 2000, table_bytes_max: 600, due_permille: 1000 };
    let blocks = Arc::new(BlockCache::new(1 << 16));
    IndexOptions { table, compaction, manifest_bytes_max: 2000, open_tables_max: 8, blocks }
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

    fn open(&self, read_only: bool) -> Result<(Index, RecoveredState)> {
        let observer = Box::new(self.recorded.clone());
        Index::open(&env(&self.fs), Path::new(DIRECTORY), options(), observer, read_only)
    }

    fn reopen(&mut self) -> RecoveredState {
        let (index, state) = self.open(false).expect("the index is whole");
        self.index = index;
        state
    }

    /// Flushes one memtable with the entries. Pointers lead into segment 1, which is there from the first.
    fn flush(&self, entries: &[(&[u8], u64, EntryKind)], snapshots: &[Sequence]) -> Arc<Version> {
        let segment = FileName::Segment(SegmentId(1)).path(Path::new(DIRECTORY));
        if !self.fs.exists(&segment).expect("nothing fails") {
            self.fs.put(&segment, b"");
        }
        let memtable = Memtable::new(options().table.order, 1 << 16, b"");
        for &(key, sequence, kind) in entries {
            memtable.insert(key, Sequence(sequence), kind, &payload(sequence, kind));
        }
        self.index.flush(&[Arc::new(memtable)], snapshots, VersionEdit::default()).expect("nothing fails")
    }

    fn run(&self, compaction: Compaction, snapshots: &[Sequence]) -> Result<CompactionStats> {
        self.index.run(compaction, snapshots, &Arc::default(), 3, &run_all)
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

/// What was written: the kind of each operation by key and sequence number.
#[derive(Default)]
struct Model {
    history: BTreeMap<Vec<u8>, BTreeMap<u64, EntryKind>>,
    sequence: u64,
}

impl Model {
    fn visible(&self, key: &[u8], snapshot: u64) -> Option<(u64, EntryKind)> {
        let (&sequence, &kind) = self.history.get(key)?.range(..=snapshot).next_back()?;
        (kind != EntryKind::Delete).then_some((sequence, kind))
    }

    fn all(&self, snapshot: u64) -> Vec<(Vec<u8>, u64, EntryKind)> {
        let visible =
            |key: &Vec<u8>| self.visible(key, snapshot).map(|(sequence, kind)| (key.clone(), sequence, kind));
        self.history.keys().filter_map(visible).collect()
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

fn check(harness: &Harness, model: &Model, snapshots: &[Sequence]) {
    let version = harness.index.version();
    version.audit().expect("every version is sound");
    for snapshot in snapshots.iter().map(|snapshot| snapshot.0).chain([model.sequence]) {
        assert_eq!(scan(&harness.index, &version, snapshot), model.all(snapshot), "at {snapshot}");
        for key in model.history.keys() {
            let entry = harness.index.lookup(&version, key, Sequence(snapshot), true).expect("nothing fails");
            let found = entry.filter(|entry| entry.kind() != EntryKind::Delete);
            if let Some(TablePayload::Pointer(pointer)) = found.as_ref().map(|entry| &entry.payload) {
                let sequence = found.as_ref().map_or(0, |entry| entry.sequence.0);
                assert_eq!(pointer.to_bytes().to_vec(), payload(sequence, EntryKind::Pointer));
            }
            let found = found.map(|entry| (entry.sequence.0, entry.kind()));
            assert_eq!(found, model.visible(key, snapshot), "{key:?} at {snapshot}");
        }
    }
    assert_eq!(harness.table_files(), harness.live_tables(), "exactly the tables of the version are there");
}

#[derive(Debug, Clone)]
enum Step {
    /// Writes these keys and flushes them.
    Write(Vec<(u8, EntryKind)>),
    Snapshot,
    Release(usize),
    Compact,
    CompactRange(u8, u8),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(EntryKind::Delete), Just(EntryKind::Inline), Just(EntryKind::Pointer)];
    prop_oneof![
        6 => prop::collection::vec((0..60_u8, kind), 1..60).prop_map(Step::Write),
        2 => Just(Step::Snapshot),
        1 => (0..4_usize).prop_map(Step::Release),
        4 => Just(Step::Compact),
        1 => (0..60_u8, 0..60_u8).prop_map(|(a, b)| Step::CompactRange(a.min(b), a.max(b))),
        1 => Just(Step::Reopen),
    ]
}

fn key(number: u8) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

fn play(steps: &[Step]) {
    let mut harness = Harness::new();
    let mut model = Model::default();
    let mut snapshots: Vec<Sequence> = Vec::new();
    for step in steps {
        match step {
            Step::Write(operations) => {
                let mut entries = Vec::new();
                for &(number, kind) in operations {
                    model.sequence += 1;
                    model.history.entry(key(number)).or_default().insert(model.sequence, kind);
                    entries.push((key(number), model.sequence, kind));
                }
                let entries: Vec<_> = entries.iter().map(|(key, s, kind)| (&key[..], *s, *kind)).collect();
                harness.flush(&entries, &snapshots);
            }
            Step::Snapshot => {
                snapshots.push(Sequence(model.sequence));
                snapshots.dedup();
            }
            Step::Release(at) if *at < snapshots.len() => drop(snapshots.remove(*at)),
            Step::Release(_) => {}
            Step::Compact => {
                while let Some(compaction) = harness.index.pick(1000) {
                    harness.run(compaction, &snapshots).expect("nothing fails");
                }
            }
            Step::CompactRange(start, end) => {
                let mut manual = harness.index.start_manual(Some(&key(*start)), Some(&key(*end)));
                while let ManualTurn::Run(compaction) = harness.index.next_manual(&mut manual) {
                    harness.run(compaction, &snapshots).expect("nothing fails");
                }
            }
            Step::Reopen => drop(harness.reopen()),
        }
        check(&harness, &model, &snapshots);
    }
    harness.compact_all(&[]);
    check(&harness, &model, &[]);
    let version = harness.index.version();
    assert_eq!(
        version.tables().map(|(_, table)| table.deletes).sum::<u64>(),
        0,
        "every deletion has vanished"
    );
    let entries: u64 = version.tables().map(|(_, table)| table.entries).sum();
    assert_eq!(entries, model.all(model.sequence).len() as u64, "one entry for each visible key");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn maintenance_is_invisible(steps in prop::collection::vec(step(), 1..40)) {
        play(&steps);
    }
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

#[test]
fn a_large_compaction_runs_in_parts() {
    let mut options = options();
    options.compaction.base_weight = 1 << 30;
    let harness = Harness::with(options);
    fill(&harness, 400);
    harness.run(harness.index.pick(1000).expect("L0 is due"), &[]).expect("nothing fails");
    harness.flush(&[(b"000000", 2000, EntryKind::Pointer), (b"999999", 2001, EntryKind::Pointer)], &[]);
    let before = harness.index.version();
    let mut manual = harness.index.start_manual(None, None);
    let ManualTurn::Run(compaction) = harness.index.next_manual(&mut manual) else {
        panic!("there is something to compact")
    };
    assert!(compaction.plan().input_bytes() > 3000);
    let parts = std::sync::atomic::AtomicUsize::new(0);
    let counting = |jobs: Vec<Job>| {
        parts.store(jobs.len(), Ordering::Relaxed);
        run_all(jobs);
    };
    let stats = harness.index.run(compaction, &[], &Arc::default(), 3, &counting).expect("nothing fails");
    assert_eq!(parts.load(Ordering::Relaxed), 3);
    assert_eq!(
        stats.bytes_read,
        before.tables().filter(|(level, _)| *level < 2).map(|(_, t)| t.file_bytes).sum()
    );
    let after = harness.index.version();
    after.audit().expect("is sound");
    let bytes: Vec<u64> = after.level(1).iter().map(|table| table.file_bytes).collect();
    assert!(bytes.len() > 3 && bytes.iter().all(|&bytes| bytes < 1500), "{bytes:?}");
    assert_eq!(scan(&harness.index, &after, 5000).len(), 401);
}

#[test]
fn versions_keep_their_files() {
    let harness = filled(50);
    let old = harness.index.version();
    let before = scan(&harness.index, &old, 5000);
    harness.compact_all(&[]);
    assert!(harness.table_files().len() > harness.live_tables().len());
    assert_eq!(scan(&harness.index, &old, 5000), before);
    drop(old);
    assert_eq!(harness.table_files(), harness.live_tables());
    assert_eq!(harness.recorded.failures(), 0);
}

#[test]
fn a_failed_compaction_leaves_nothing_behind() {
    for (operation, skip) in
        [("create", 1), ("write", 1), ("sync", 0), ("sync", 1), ("sync_dir", 0), ("read", 3)]
    {
        let harness = filled(100);
        let before = (harness.table_files(), harness.live_tables());
        let compaction = harness.index.pick(1000).expect("L0 is due");
        harness.fs.fail(operation, skip);
        let error = harness.run(compaction, &[]).expect_err("told to fail");
        assert_eq!(error.kind(), ErrorKind::Io, "{operation}: {error}");
        assert_eq!((harness.table_files(), harness.live_tables()), before, "{operation}");
        assert_eq!(harness.index.running_compactions(), 0);
        let compaction = harness.index.pick(1000).expect("L0 is still due");
        harness.run(compaction, &[]).expect("a compaction may be tried again");
    }
}

#[test]
fn a_cancelled_compaction_leaves_nothing_behind() {
    let harness = filled(100);
    let before = (harness.table_files(), harness.live_tables());
    let compaction = harness.index.pick(1000).expect("L0 is due");
    let cancelled = Arc::new(AtomicBool::new(true));
    let error = harness.index.run(compaction, &[], &cancelled, 3, &run_all).expect_err("was cancelled");
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!((harness.table_files(), harness.live_tables()), before);
}

#[test]
fn a_failed_flush_leaves_nothing_behind() {
    let harness = Harness::new();
    let memtable = Memtable::new(options().table.order, 1 << 16, b"");
    memtable.insert(b"key", Sequence(1), EntryKind::Inline, b"value");
    for operation in ["create", "write", "sync", "sync_dir"] {
        harness.fs.fail(operation, 0);
        let memtables = [Arc::new(Memtable::new(options().table.order, 1 << 16, b""))];
        memtables[0].insert(b"key", Sequence(1), EntryKind::Inline, b"value");
        harness.index.flush(&memtables, &[], VersionEdit::default()).expect_err("told to fail");
        assert!(harness.table_files().is_empty(), "{operation}");
    }
}

#[test]
fn a_failed_manifest_write_keeps_the_version_and_the_files() {
    let mut harness = filled(20);
    let before = harness.live_tables();
    let compaction = harness.index.pick(1000).expect("L0 is due");
    // The first sync is the output's, the second the manifest's.
    harness.fs.fail("sync", 1);
    harness.run(compaction, &[]).expect_err("told to fail");
    assert_eq!(harness.live_tables(), before);
    assert_eq!(
        harness.index.install(VersionEdit::default()).expect_err("is poisoned").kind(),
        ErrorKind::ReadOnly
    );
    assert!(harness.table_files().len() > before.len(), "the edit may be found, so its tables must stay");
    harness.reopen();
    assert_eq!(harness.table_files(), harness.live_tables());
    assert_eq!(scan(&harness.index, &harness.index.version(), 5000).len(), 20);
}

#[test]
fn opening_finds_what_create_and_install_left() {
    let mut harness = filled(10);
    let segment = SegmentMeta {
        id: SegmentId(1),
        end: 900,
        file_bytes: 1000,
        value_records: 40,
        value_record_bytes: 880,
    };
    harness.fs.put(&FileName::Segment(segment.id).path(Path::new(DIRECTORY)), &[0; 1000]);
    let head = LogPosition { segment: SegmentId(2), offset: 96 };
    let edit = VersionEdit { add_segments: vec![segment], log_head: Some(head), ..VersionEdit::default() };
    harness.index.install(edit).expect("nothing fails");
    let state = harness.reopen();
    assert_eq!((state.cube, state.log_head, state.manifest_torn), (CubeId(7), head, None));
    assert_eq!((state.last_sequence, state.next_segment_id), (Sequence(40), SegmentId(2)));
    let version = harness.index.version();
    assert_eq!(version.segments().get(SegmentId(1)).expect("is there").live_values, 40);
    assert_eq!(harness.index.live_files(&version).len(), 5);
}

#[test]
fn dead_segments_go_when_the_edit_is_durable() {
    let harness = filled(10);
    let path = FileName::Segment(SegmentId(1)).path(Path::new(DIRECTORY));
    let active = harness.index.files().segment(SegmentId(1));
    let segment =
        SegmentMeta { id: SegmentId(1), end: 0, file_bytes: 0, value_records: 40, value_record_bytes: 880 };
    let head = LogPosition { segment: SegmentId(2), offset: 0 };
    let edit = VersionEdit { add_segments: vec![segment], log_head: Some(head), ..VersionEdit::default() };
    let version = harness.index.install(edit).expect("nothing fails");
    assert_eq!(version.droppable_segments(head), []);
    let keys: Vec<Vec<u8>> = (0..10).map(|number| format!("{number:06}").into_bytes()).collect();
    let deletes: Vec<_> = keys.iter().zip(100..).map(|(key, at)| (&key[..], at, EntryKind::Delete)).collect();
    harness.flush(&deletes, &[]);
    harness.compact_all(&[]);
    let version_before = harness.index.version();
    let dead = version_before.droppable_segments(head);
    assert_eq!(dead, [SegmentId(1)]);
    harness
        .index
        .install(VersionEdit { drop_segments: dead, ..VersionEdit::default() })
        .expect("nothing fails");
    drop((version, version_before));
    assert!(harness.fs.exists(&path).expect("nothing fails"), "the log still holds the handle");
    drop(active);
    assert!(!harness.fs.exists(&path).expect("nothing fails"));
}

#[test]
fn what_does_not_belong_is_removed_unless_read_only() {
    let mut harness = filled(10);
    for name in ["999999.table", "MANIFEST-000099", "CURRENT.tmp", "000009.vlog", "notes.txt"] {
        harness.fs.put(&Path::new(DIRECTORY).join(name), b"rest");
    }
    let names = harness.fs.names(DIRECTORY);
    let changes = harness.fs.changes();
    let (index, _) = harness.open(true).expect("is whole");
    assert_eq!((harness.fs.names(DIRECTORY), harness.fs.changes()), (names, changes));
    assert_eq!(index.install(VersionEdit::default()).expect_err("read-only").kind(), ErrorKind::ReadOnly);
    assert_eq!(scan(&index, &index.version(), 5000).len(), 10);
    harness.reopen();
    let names = harness.fs.names(DIRECTORY);
    assert!(
        !names.iter().any(|name| ["999999.table", "MANIFEST-000099", "CURRENT.tmp"].contains(&&name[..]))
    );
    assert!(names.contains(&"000009.vlog".to_owned()) && names.contains(&"notes.txt".to_owned()));
}

#[test]
fn missing_and_cut_files_are_named() {
    let harness = filled(10);
    let path = harness.index.version().level(0)[0].handle.path();
    let whole = harness.fs.get(&path);
    harness.fs.put(&path, &whole[..whole.len() - 1]);
    let error = harness.open(false).expect_err("is cut");
    assert!(error.is_corruption() && error.message().contains("000004.table"), "{error}");
    harness.fs.remove_file(&path).expect("is there");
    let error = harness.open(true).expect_err("is missing");
    assert!(error.is_corruption() && error.message().contains("000004.table"), "{error}");
    harness.fs.put(&path, &whole);
    harness.fs.remove_file(&FileName::Segment(SegmentId(1)).path(Path::new(DIRECTORY))).expect("is there");
    let error = harness.open(true).expect_err("a table points into it");
    assert!(error.is_corruption() && error.message().contains("000001.vlog"), "{error}");
}

#[test]
fn creating_twice_is_refused() {
    let harness = Harness::new();
    let observer = Box::new(RecordedFiles::default());
    let again = Index::create(&env(&harness.fs), Path::new(DIRECTORY), CubeId(8), options(), observer);
    assert_eq!(again.expect_err("there is one already").kind(), ErrorKind::InvalidArgument);
}

#[test]
fn sizes_are_about_right() {
    let harness = filled(200);
    harness.compact_all(&[]);
    let version = harness.index.version();
    let size = |start: Option<&[u8]>, end: Option<&[u8]>| {
        harness.index.approximate_size(&version, start, end).expect("nothing fails")
    };
    let all = size(None, None);
    assert_eq!(all.table_bytes, version.tables().map(|(_, table)| table.file_bytes).sum::<u64>());
    assert_eq!(all.value_bytes, version.tables().map(|(_, table)| table.referenced_value_bytes).sum::<u64>());
    let (low, high) = (size(None, Some(b"000100")), size(Some(b"000100"), None));
    assert_eq!(low.value_bytes + high.value_bytes, all.value_bytes);
    let share = low.value_bytes * 100 / all.value_bytes;
    // The first hundred values have 1 to 100 bytes, the others 101 to 199, each with 38 of record and key.
    assert!((25..=40).contains(&share), "about a third of the values, not {share} %");
    assert_eq!(size(Some(b"000100"), Some(b"000100")), RangeSize::default());
    assert_eq!(size(Some(b"x"), Some(b"z")), RangeSize::default());
}

#[test]
fn installers_and_readers_on_many_threads() {
    let harness = filled(60);
    let expected = scan(&harness.index, &harness.index.version(), 5000);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (harness, expected, done) = (&harness, &expected, &done);
        for _ in 0..2 {
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(&scan(&harness.index, &harness.index.version(), 5000), expected);
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    for _ in 0..10 {
                        let mut manual = harness.index.start_manual(None, None);
                        while let ManualTurn::Run(compaction) = harness.index.next_manual(&mut manual) {
                            harness.run(compaction, &[]).expect("nothing fails");
                        }
                        harness.index.install(VersionEdit::default()).expect("nothing fails");
                    }
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().expect("nobody panics"));
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(harness.table_files(), harness.live_tables());
    assert_eq!(harness.recorded.failures(), 0);
}
