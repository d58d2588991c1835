//! Compactions in parts and side by side, and what may be asked of their outcome.

use super::super::read::RangeSize;
use super::*;
use crate::base::sync::{AtomicBool, Ordering};

#[test]
fn a_large_compaction_runs_in_parts() {
    let mut options = options();
    options.compaction.base_weight = 1 << 30;
    let harness = Harness::with(options);
    fill(&harness, 400);
    harness.run(harness.index.pick(Due::USUAL).expect("L0 is due"), &[]).expect("nothing fails");
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
    let signals = Signals::default();
    let ran = harness.index.run(&compaction, &[], &signals, &unmoved(), 3, &counting);
    let (edit, stats) = ran.expect("nothing fails");
    harness.index.install(edit).expect("nothing fails");
    drop(compaction);
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

/// Though all of them begin at the same key.
#[test]
fn tables_of_the_same_keys_are_compacted_in_parts_of_about_the_same_size() {
    let harness = Harness::new();
    fill(&harness, 400);
    let compaction = harness.index.pick(Due::USUAL).expect("L0 is due");
    assert!(compaction.plan().lower.is_empty());
    let signals = Signals::default();
    let written = signals.written.clone();
    let of_parts = crate::base::sync::Mutex::new(Vec::new());
    let one_by_one = |jobs: Vec<Job>| {
        for job in jobs {
            let before = written.load(Ordering::Relaxed);
            job();
            of_parts.lock().push(written.load(Ordering::Relaxed) - before);
        }
    };
    let ran = harness.index.run(&compaction, &[], &signals, &unmoved(), 3, &one_by_one);
    let (edit, stats) = ran.expect("nothing fails");
    harness.index.install(edit).expect("nothing fails");
    drop(compaction);
    let of_parts = std::mem::take(&mut *of_parts.lock());
    assert_eq!((of_parts.len(), of_parts.iter().sum()), (3, stats.bytes_written));
    let (least, most) = (of_parts.iter().min(), of_parts.iter().max());
    assert!(least.zip(most).is_some_and(|(least, most)| least * 4 > most * 3), "{of_parts:?}");
    assert_eq!(scan(&harness.index, &harness.index.version(), 5000).len(), 400);
}

#[test]
fn marks_part_a_table_evenly() {
    let harness = filled(400);
    let keys: Vec<Vec<u8>> = (0..400).map(|number| format!("{number:06}").into_bytes()).collect();
    let version = harness.index.version();
    let table = &version.level(0)[0];
    let reader = harness.index.tables.get(table.id).expect("it is whole");
    for count in [1, 2, 7, 50] {
        let marks = reader.marks(count).expect("it is whole");
        assert!(marks.len() <= count && marks.is_sorted());
        assert!(marks.last().is_some_and(|last| &last[..] >= table.largest_user_key()));
        let before = |mark: &Vec<u8>| keys.partition_point(|key| key < mark);
        let before: Vec<usize> = std::iter::once(0).chain(marks.iter().map(before)).collect();
        let pieces = before.windows(2).map(|pair| pair[1] - pair[0]);
        let whole = 400 / marks.len();
        assert!(pieces.clone().all(|piece| piece < 2 * whole), "{before:?}");
        assert!(pieces.take(marks.len() - 1).all(|piece| piece > whole / 2), "{before:?}");
    }
}

/// I-06.
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

#[test]
fn a_moved_table_stays() {
    let mut harness = Harness::new();
    for round in 0..4 {
        harness.flush(&[(format!("key{round}").as_bytes(), round + 1, EntryKind::Pointer)], &[]);
    }
    let before = harness.table_files();
    while let Some(compaction) = harness.index.pick(Due::USUAL) {
        harness.run(compaction, &[]).expect("nothing fails");
    }
    assert!(!harness.index.version().level(1).is_empty());
    assert_eq!(harness.table_files(), before);
    harness.reopen();
    assert_eq!(harness.table_files(), before);
    assert_eq!(scan(&harness.index, &harness.index.version(), 5000).len(), 4);
}

#[test]
fn tables_that_are_gone_are_not_kept_open() {
    let harness = filled(100);
    scan(&harness.index, &harness.index.version(), 5000);
    harness.compact_all(&[]);
    scan(&harness.index, &harness.index.version(), 5000);
    assert!(harness.index.tables().open_tables() <= harness.live_tables().len());
}

#[test]
fn the_newest_entry_wins_whichever_table_of_l0_it_is_in() {
    let harness = Harness::new();
    harness.flush(&[(b"k", 9, EntryKind::Inline), (b"z", 2, EntryKind::Inline)], &[]);
    harness.flush(&[(b"k", 5, EntryKind::Delete), (b"z", 3, EntryKind::Inline)], &[]);
    let version = harness.index.version();
    let find = |key: &[u8], snapshot| {
        let entry = harness.index.lookup(&version, key, Sequence(snapshot), true).expect("nothing fails");
        entry.map(|entry| entry.sequence.0)
    };
    assert_eq!((find(b"k", 10), find(b"k", 8), find(b"k", 4)), (Some(9), Some(5), None));
    assert_eq!((find(b"z", 10), find(b"z", 2), find(b"a", 10)), (Some(3), Some(2), None));
}
