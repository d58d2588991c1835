//! What fails leaves nothing behind.

use super::*;
use crate::base::dead_ranges::DeadRanges;
use crate::base::error::ErrorKind;
use crate::base::segment::{Relocate, SegmentMeta, SegmentMove};
use crate::base::sync::Ordering;

/// Every call of a compaction fails once.
#[test]
fn a_failed_compaction_leaves_nothing_behind() {
    for operation in ["create", "write", "sync", "sync_dir", "read"] {
        let mut failures = 0;
        loop {
            let harness = filled(150);
            let before = (harness.table_files(), harness.live_tables());
            let compaction = harness.index.pick(Due::USUAL).expect("L0 is due");
            harness.fs.fail(operation, failures);
            let Err(error) = harness.run(compaction, &[]) else { break };
            assert_eq!(error.kind(), ErrorKind::Io, "{operation}: {error}");
            assert_eq!(harness.live_tables(), before.1);
            assert_eq!(harness.index.running_compactions(), 0);
            failures += 1;
            if harness.index.install(VersionEdit::default()).is_err() {
                // The manifest has failed: whether the edit counts is known when the index is opened again.
                continue;
            }
            assert_eq!(harness.table_files(), before.0, "{operation} {failures}");
            let compaction = harness.index.pick(Due::USUAL).expect("L0 is still due");
            harness.run(compaction, &[]).expect("a compaction may be tried again");
        }
        assert!(failures > 0, "{operation} is called");
    }
}

#[test]
fn a_cancelled_compaction_leaves_nothing_behind() {
    let harness = filled(100);
    let before = (harness.table_files(), harness.live_tables());
    let compaction = harness.index.pick(Due::USUAL).expect("L0 is due");
    let signals = Signals::default();
    signals.cancelled.store(true, Ordering::Relaxed);
    let error =
        harness.index.run(&compaction, &[], &signals, &unmoved(), 3, &run_all).expect_err("was cancelled");
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!((harness.table_files(), harness.live_tables()), before);
}

#[test]
fn a_failed_flush_leaves_nothing_behind() {
    let harness = Harness::new();
    let memtable = Memtable::new(options().table.order, 1 << 16, None);
    memtable.insert(b"key", Sequence(1), EntryKind::Inline, b"value");
    for operation in ["create", "write", "sync", "sync_dir"] {
        harness.fs.fail(operation, 0);
        let memtables = [Arc::new(Memtable::new(options().table.order, 1 << 16, None))];
        memtables[0].insert(b"key", Sequence(1), EntryKind::Inline, b"value");
        harness.index.flush(&memtables, &[]).expect_err("told to fail");
        assert!(harness.table_files().is_empty(), "{operation}");
    }
}

/// Relocation tables of a world in which segments were moved, and all of their records left behind.
#[derive(Debug)]
struct LeftBehind;

impl Relocate for LeftBehind {
    fn relocate(&self, _table: ValuePointer, _pointer: ValuePointer) -> Result<Option<ValuePointer>> {
        Ok(None)
    }
}

/// I-11: an entry whose record is not there goes if a newer version hides it, and is damage if none does.
#[test]
fn an_entry_whose_record_was_left_behind_goes_only_if_it_is_hidden() {
    for hidden in [false, true] {
        let harness = Harness::new();
        harness.flush(&[(b"a", 1, EntryKind::Pointer), (b"b", 2, EntryKind::Pointer)], &[]);
        let newer = if hidden { [b"a", b"b"] } else { [b"a", b"c"] };
        harness.flush(&[(newer[0], 3, EntryKind::Inline), (newer[1], 4, EntryKind::Inline)], &[]);
        let home = SegmentId(SegmentId::COLD_FIRST.0 + 1);
        let meta = |id| SegmentMeta {
            id,
            written: Sequence(1),
            end: 1000,
            file_bytes: 1000,
            value_records: 2,
            value_record_bytes: 500,
        };
        let table = ValuePointer { segment: home, offset: 100, stored_len: 10 };
        let edit = VersionEdit {
            add_segments: vec![meta(SegmentId(1)), meta(home)],
            move_segments: vec![SegmentMove { id: SegmentId(1), table }],
            ..VersionEdit::default()
        };
        harness.index.install(edit).expect("nothing fails");
        let mut manual = harness.index.start_manual(None, None);
        let ManualTurn::Run(compaction) = harness.index.next_manual(&mut manual) else {
            panic!("something to do")
        };
        let relocate: Arc<dyn Relocate> = Arc::new(LeftBehind);
        let done = harness.index.run(&compaction, &[], &Signals::default(), &relocate, 3, &run_all);
        match done {
            Ok((_, stats)) => assert_eq!((hidden, stats.kept), (true, 2)),
            Err(error) => assert_eq!((hidden, error.kind()), (false, ErrorKind::Corruption), "{error}"),
        }
    }
}

/// One of its victims may be found dead, and dropped, by another.
#[test]
fn a_collection_gives_back_nothing_of_what_was_dropped_meanwhile() {
    let harness = Harness::new();
    let meta = |id| SegmentMeta {
        id: SegmentId(SegmentId::COLD_FIRST.0 + id),
        written: Sequence(1),
        end: 1000,
        file_bytes: 1000,
        value_records: 2,
        value_record_bytes: 500,
    };
    let ids: Vec<SegmentId> = [1, 2].map(|id| meta(id).id).into();
    let edit = VersionEdit { add_segments: [1, 2].map(meta).into(), ..VersionEdit::default() };
    harness.index.install(edit).expect("nothing fails");
    let collection = harness.index.begin_collection(|_, _| ids.clone()).expect("it has victims");
    let dead = |ids: &[SegmentId]| {
        let range = || DeadRanges::new(std::iter::once(200..300).collect()).expect("they are in order");
        ids.iter().map(|&id| (id, range())).collect::<Vec<_>>()
    };
    let given_back = |ids: &[SegmentId]| {
        let version = harness.index.give_back(&collection, dead(ids)).expect("nothing fails");
        version.segments().all_dead_ranges().map(|(id, _)| id).collect::<Vec<_>>()
    };
    let edit = VersionEdit { drop_segments: vec![ids[0]], ..VersionEdit::default() };
    harness.index.install(edit).expect("nothing fails");
    assert_eq!(given_back(&ids[..1]), []);
    assert_eq!(given_back(&ids), [ids[1]]);
}

/// I-04: an edit that is not durable removes nothing.
#[test]
fn a_failed_manifest_write_keeps_the_version_and_the_files() {
    let mut harness = filled(20);
    let before = harness.live_tables();
    let compaction = harness.index.pick(Due::USUAL).expect("L0 is due");
    let done = harness.index.run(&compaction, &[], &Signals::default(), &unmoved(), 3, &run_all);
    let (edit, _) = done.expect("nothing fails yet");
    harness.fs.fail("sync", 0);
    harness.index.install(edit).expect_err("told to fail");
    drop(compaction);
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
