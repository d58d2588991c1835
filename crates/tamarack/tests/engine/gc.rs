//! Garbage collection on request, one thing at a time: whatever was collected, everything that can be read is there, for the
//! present, for snapshots and for iterators; what nobody can read goes, and so do moved ids.

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::garbage::{
    Content, Hold, KEYS, assert_holds, assert_holds_at, assert_no_orphans, cold_files, compact, delete, fill,
    half_dead, key, quiet, value,
};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, file_names};
use tamarack::testing::Call;
use tamarack::{
    Db, ErrorKind, GcGoal, GcReport, IterOptions, Options, ReadOptions, WriteBatch, WriteOptions,
};

fn gc(db: &Db) -> GcReport {
    db.gc(GcGoal::Until(1.0)).unwrap()
}

/// Bytes of the files of values.
fn segment_bytes(path: &Path) -> u64 {
    let names = file_names(path).into_iter();
    let segments = names.filter(|name| name.ends_with(".vlog") || name.ends_with(".cold"));
    segments.map(|name| std::fs::metadata(path.join(name)).unwrap().len()).sum()
}

#[test]
fn what_is_alive_moves_and_the_rest_goes() {
    let place = Place::new(quiet());
    let db = place.open();
    let model = half_dead(&db);
    let before = segment_bytes(&place.path());
    let done = gc(&db);
    assert!(done.segments > 3 && done.records > 30 && done.hidden == 0, "{done:?}");
    assert!(done.bytes_after < done.bytes_before, "{done:?}");
    let freed = done.bytes_before - done.bytes_after;
    assert_eq!(segment_bytes(&place.path()), before - freed);
    assert_holds(&db, &model, "collected");
    assert_no_orphans(&db, &place.path(), "collected");
    let stats = db.stats();
    assert_eq!((stats.collected_segments, stats.collected_records), (done.segments, done.records));
    assert_eq!(gc(&db), GcReport::default(), "nothing is left to collect");
    assert_eq!(place.faults.count_of(Call::Create, ".cold"), stats.collections, "no file for nothing");
}

#[test]
fn a_segment_that_is_wholly_alive_stays_and_one_that_is_wholly_hidden_goes() {
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    compact(&db);
    // Of a tiny segment of the log, its header is enough to be collected for; of a cold one it is not.
    let moved = gc(&db);
    assert_eq!(moved.hidden, 0);
    assert_holds(&db, &model, "all is alive");
    assert_eq!(gc(&db), GcReport::default(), "all is alive");
    fill(&db, &mut model, 0..KEYS, 1);
    db.flush().unwrap();
    let done = gc(&db);
    assert!(done.hidden == KEYS as u64, "{done:?}");
    assert_holds(&db, &model, "hidden");
    compact(&db);
    assert_holds(&db, &model, "compacted");
    assert_eq!(db.stats().moved_segments, 0);
    assert_no_orphans(&db, &place.path(), "compacted");
    // Everything references away, and no table says so but by its absence.
    delete(&db, &mut model, 0..KEYS);
    compact(&db);
    assert_eq!(db.stats().live_value_bytes, 0);
    gc(&db);
    assert_holds(&db, &model, "deleted");
    assert_eq!(cold_files(&place.path()).len(), 0);
}

/// A chain of collections, whose outputs are the next victims, with everything in between that moves pointers or not.
fn chain(seed: u64) {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("chain {seed}"));
    let mut random = Random::new(seed);
    let place = Place::new(quiet());
    let mut db = place.open();
    let mut model = half_dead(&db);
    let mut moved_most = 0;
    for round in 2..40 {
        let what = format!("seed {seed}, round {round}");
        let numbers: Vec<_> = (0..KEYS).filter(|_| random.one_in(5)).collect();
        fill(&db, &mut model, numbers, round);
        if random.one_in(2) {
            db.flush().unwrap();
        }
        if random.one_in(6) {
            compact(&db);
        } else if random.one_in(4) {
            let (start, end) = (key(random.below(KEYS)), key(random.below(KEYS)));
            db.compact_range(Some(&start), Some(&end)).unwrap();
        }
        db.gc(random.pick(&[GcGoal::Once, GcGoal::Until(1.0)])).unwrap();
        let stats = db.stats();
        moved_most = moved_most.max(stats.moved_segments);
        assert_no_orphans(&db, &place.path(), &what);
        if random.one_in(5) {
            db.close().unwrap();
            db = place.try_open(&Options { paranoid_checks: random.one_in(2), ..quiet() }).unwrap();
            assert_no_orphans(&db, &place.path(), &what);
            // A compaction that was due may have replaced pointers since.
            assert!(db.stats().moved_segments <= stats.moved_segments, "{what}");
        }
        assert_holds(&db, &model, &what);
    }
    assert!(moved_most > 3, "seed {seed}: at most {moved_most} segments were moved at once");
    // A table is rewritten if something is above it.
    fill(&db, &mut model, 0..KEYS, 99);
    compact(&db);
    assert_eq!(db.stats().moved_segments, 0, "seed {seed}: nothing points to where they were");
    assert_holds(&db, &model, "at the end");
    assert_no_orphans(&db, &place.path(), "at the end");
}

#[test]
fn outputs_are_collected_in_turn_and_every_pointer_is_followed() {
    (0..8).for_each(chain);
}

#[test]
fn without_a_compaction_pointers_are_followed_through_many_collections() {
    let place = Place::new(quiet());
    let mut db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    compact(&db);
    let mut collections = 0;
    for round in 1..=3 {
        // What was moved before is hidden from level 0.
        let compactions = db.stats().compactions;
        fill(&db, &mut model, (round..KEYS).step_by(5), round);
        db.flush().unwrap();
        let done = gc(&db);
        assert!(done.hidden > 0 && done.records > 0, "round {round}: {done:?}");
        collections += db.stats().collections;
        assert_eq!(db.stats().compactions, compactions, "round {round}: tables stay as they are");
        assert!(db.stats().moved_segments > 2, "round {round}");
        assert_holds(&db, &model, &format!("round {round}"));
        db.close().unwrap();
        db = place.open();
        assert_holds(&db, &model, &format!("round {round}, opened"));
    }
    assert!(collections >= 3, "{collections}");
    fill(&db, &mut model, [0], 99);
    compact(&db);
    assert_eq!(db.stats().moved_segments, 0);
    assert_holds(&db, &model, "compacted");
}

#[test]
fn snapshots_and_iterators_keep_their_moment_and_then_let_the_space_go() {
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = half_dead(&db);
    let mut held = Vec::new();
    for round in 2..10 {
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek(&key(KEYS / 2)).unwrap();
        held.push((db.snapshot(), iter, model.clone()));
        fill(&db, &mut model, (round % 3..KEYS).step_by(3), round);
        delete(&db, &mut model, (round % 7..KEYS).step_by(7));
        db.flush().unwrap();
        if round % 3 == 0 {
            compact(&db);
        }
        gc(&db);
        assert_holds(&db, &model, &format!("round {round}"));
        for (at, (snapshot, _, then)) in held.iter().enumerate() {
            let settings = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
            assert_holds_at(&db, then, &settings, &format!("round {round}, snapshot {at}"));
        }
    }
    let snapshots = held.len();
    let mut iterators = Vec::new();
    for (snapshot, mut iter, then) in held {
        drop(snapshot);
        let middle = key(KEYS / 2);
        for (key, value) in then.range(middle..) {
            assert!(iter.valid() && iter.key() == key && iter.value().unwrap() == value, "{key:?}");
            iter.next().unwrap();
        }
        assert!(!iter.valid());
        iterators.push(iter);
    }
    assert_eq!(iterators.len(), snapshots);
    compact(&db);
    gc(&db);
    let with_iterators = (db.stats().disk_bytes, segment_bytes(&place.path()));
    assert!(db.stats().leaving_bytes > 0);
    drop(iterators);
    db.wait_idle().unwrap();
    let without = (db.stats().disk_bytes, segment_bytes(&place.path()));
    assert_eq!(db.stats().leaving_bytes, 0);
    assert!(without.0 < with_iterators.0 && without.1 < with_iterators.1, "{without:?}, {with_iterators:?}");
    assert_no_orphans(&db, &place.path(), "after all");
    assert_holds(&db, &model, "after all");
}

#[test]
fn a_snapshot_alone_keeps_what_it_sees_from_being_left_behind() {
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = half_dead(&db);
    let then = model.clone();
    let snapshot = db.snapshot();
    fill(&db, &mut model, 0..KEYS / 2, 2);
    delete(&db, &mut model, KEYS / 2..KEYS);
    db.flush().unwrap();
    let done = gc(&db);
    assert!(done.hidden == 0 && done.records > 0, "a snapshot sees them: {done:?}");
    let settings = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_holds_at(&db, &then, &settings, "then");
    compact(&db);
    gc(&db);
    assert_holds_at(&db, &then, &settings, "then, compacted");
    assert_holds(&db, &model, "now");
    let before = segment_bytes(&place.path());
    drop(settings);
    compact(&db);
    gc(&db);
    assert_holds(&db, &model, "now");
    assert!(segment_bytes(&place.path()) < before * 3 / 4, "of {before}: {}", segment_bytes(&place.path()));
}

/// I-11: hides deep records behind newer versions or deletions in level 0, and leaves them behind.
fn leave_behind(place: &Place, deleting: bool) -> (Db, Content) {
    let db = place.open();
    let mut model = half_dead(&db);
    if deleting {
        delete(&db, &mut model, (0..KEYS).filter(|number| number % 3 != 0));
    } else {
        fill(&db, &mut model, (0..KEYS).filter(|number| number % 3 != 0), 2);
    }
    db.flush().unwrap();
    assert_eq!(db.stats().levels[0].tables, 1, "the newer versions are in level 0");
    let done = gc(&db);
    assert!(done.hidden > 20 && done.records > 10, "{done:?}");
    assert_eq!(db.stats().hidden_records, done.hidden);
    assert!(db.check(tamarack::CheckLevel::Values).hidden_references > 0);
    (db, model)
}

#[test]
fn what_was_left_behind_is_never_missed() {
    for deleting in [false, true] {
        let what = |how: &str| format!("{how}, deleting: {deleting}");
        let place = Place::new(quiet());
        let (db, mut model) = leave_behind(&place, deleting);
        assert_holds(&db, &model, &what("at once"));
        db.close().unwrap();
        for paranoid_checks in [true, false] {
            let db = place.try_open(&Options { paranoid_checks, ..quiet() }).unwrap();
            assert_holds(&db, &model, &what("opened"));
            db.close().unwrap();
        }
        // The versions that hide them are hidden themselves, by a memtable, by level 0, by what was compacted.
        let db = place.open();
        fill(&db, &mut model, (0..KEYS).step_by(4), 3);
        delete(&db, &mut model, (1..KEYS).step_by(4));
        assert_holds(&db, &model, &what("in memory"));
        let settings = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        db.flush().unwrap();
        gc(&db);
        assert_holds(&db, &model, &what("flushed"));
        db.compact_range(Some(&key(30)), Some(&key(90))).unwrap();
        gc(&db);
        assert_holds(&db, &model, &what("partly compacted"));
        compact(&db);
        assert_eq!(db.check(tamarack::CheckLevel::Values).hidden_references, 0, "{}", what("compacted"));
        assert_holds(&db, &model, &what("compacted"));
        assert_holds_at(&db, &model, &settings, &what("compacted, by a snapshot"));
    }
}

#[test]
fn what_tables_hide_is_known_after_opening_too() {
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    compact(&db);
    gc(&db);
    fill(&db, &mut model, (0..KEYS).step_by(2), 1);
    db.flush().unwrap();
    db.close().unwrap();
    let db = place.open();
    let done = gc(&db);
    assert!(done.hidden > KEYS as u64 / 3, "{done:?}");
    assert_holds(&db, &model, "opened");
}

#[test]
fn a_deleted_key_whose_record_was_left_behind_stays_deleted() {
    let place = Place::new(quiet());
    let (db, model) = leave_behind(&place, true);
    let gone = |db: &Db, what: &str| {
        for number in (0..KEYS).filter(|number| number % 3 != 0) {
            assert_eq!(db.get(&key(number)).unwrap(), None, "{what}: {number}");
            assert!(!db.contains(&key(number)).unwrap(), "{what}: {number}");
        }
        assert_holds(db, &model, what);
    };
    gone(&db, "tombstones in level 0");
    compact(&db);
    let entries: u64 = db.stats().levels.iter().map(|level| level.entries).sum();
    assert_eq!(entries, model.len() as u64, "the tombstones are compacted away");
    gone(&db, "without tombstones");
    gc(&db);
    gone(&db, "collected again");
    db.close().unwrap();
    gone(&place.open(), "opened");
}

#[test]
fn a_reader_of_moved_segments_needs_no_right_to_write() {
    let place = Place::new(quiet());
    let (db, model) = leave_behind(&place, false);
    db.close().unwrap();
    let before = file_names(&place.path());
    for paranoid_checks in [false, true] {
        let options = Options { read_only: true, paranoid_checks, ..quiet() };
        let db = place.try_open(&options).unwrap();
        assert_holds(&db, &model, "read-only");
        assert!(db.stats().moved_segments > 0);
        assert_eq!(db.gc(GcGoal::Once).unwrap_err().kind(), ErrorKind::ReadOnly);
        db.close().unwrap();
    }
    assert_eq!(file_names(&place.path()), before);
}

/// Survivors are sorted in memory, as many at a time as fit there.
#[test]
fn more_may_survive_than_is_sorted_at_once() {
    const MANY: usize = 125_000;
    let options =
        Options { segment_bytes_max: 64 << 20, memtable_bytes: 256 << 20, inline_value_max: 0, ..quiet() };
    let options = Options {
        recovery_log_max: 1 << 30,
        table_bytes_max: 64 << 20,
        level_bytes_base: 1 << 30,
        ..options
    };
    let place = Place::new(options);
    let db = place.open();
    // In another order than that of the keys.
    let long_key = |number: usize| format!("{:0150}", number * 7919 % MANY).into_bytes();
    let write = |each: &dyn Fn(&mut WriteBatch, usize)| {
        for chunk in (0..MANY).collect::<Vec<_>>().chunks(1000) {
            let mut batch = WriteBatch::new();
            chunk.iter().for_each(|&number| each(&mut batch, number));
            db.write(&batch, &WriteOptions::default()).unwrap();
        }
    };
    write(&|batch, number| batch.put(&long_key(number), &number.to_le_bytes()).unwrap());
    write(&|batch, number| {
        if number % 5 == 0 {
            batch.delete(&long_key(number)).unwrap();
        }
    });
    // Into the next segment, so that the first is sealed.
    db.put(b"large", &vec![1; 40 << 20]).unwrap();
    compact(&db);
    let done = gc(&db);
    assert_eq!(done.records, MANY as u64 * 4 / 5, "{done:?}");
    assert_eq!(db.stats().collections, 1);
    let alive = (0..MANY).filter(|number| number % 5 > 0);
    for number in alive.step_by(101) {
        let found = db.get(&long_key(number)).unwrap();
        assert_eq!(found.as_deref(), Some(&number.to_le_bytes()[..]), "{number}");
    }
    crate::common::assert_clean(&db);
    let report = db.check(tamarack::CheckLevel::Checksums);
    assert_eq!((report.hidden_references, report.entries), (0, done.records + 1));
}

#[test]
fn a_goal_below_one_is_refused() {
    let place = Place::new(quiet());
    let db = place.open();
    for goal in [0.0, 0.99, -1.0, f64::NAN, f64::NEG_INFINITY] {
        let error = db.gc(GcGoal::Until(goal)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{goal}: {error}");
    }
    assert_eq!(db.resume_gc().unwrap_err().kind(), ErrorKind::InvalidArgument, "there is no pause");
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    assert_eq!(db.gc(GcGoal::Until(f64::INFINITY)).unwrap(), GcReport::default());
    assert_eq!(db.get(&key(3)).unwrap(), Some(value(3, 0)));
}

/// The numbers of the keys of the records in cold segment `name`, as they stand there.
fn keys_in(place: &Place, name: &str) -> Vec<usize> {
    let bytes = std::fs::read(place.path().join(name)).unwrap();
    let numbers = bytes.windows(9).filter_map(|window| {
        let digits = window.strip_prefix(b"key")?.strip_suffix(b"<")?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    });
    numbers.collect()
}

#[test]
fn what_is_copied_is_sorted_by_key_whatever_the_order_of_its_writing() {
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = Content::new();
    // Neighbours are written far from each other.
    let scattered = |round: usize| (0..KEYS).map(move |number| (number * 73 + round * 31) % KEYS);
    fill(&db, &mut model, scattered(0), 0);
    fill(&db, &mut model, scattered(1).filter(|number| number % 3 > 0), 1);
    compact(&db);
    let done = db.gc(GcGoal::Once).unwrap();
    assert!(done.segments > 1 && done.records > 5, "{done:?}");
    let mut names = cold_files(&place.path());
    let keys = keys_in(&place, &names.pop_first().unwrap());
    assert_eq!((keys.len() as u64, names.len()), (done.records, 0), "of all victims in one file");
    assert!(keys.is_sorted(), "{keys:?}");
    assert_holds(&db, &model, "sorted");
}

#[test]
fn collections_run_side_by_side_and_have_no_victim_in_common() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "collections that are held");
    let place = Place::new(quiet());
    let db = place.open();
    let model = half_dead(&db);
    let jobs = 3;
    let hold = Hold::at(&place.faults, Call::Create, ".cold");
    std::thread::scope(|scope| {
        let collections: Vec<_> = (0..jobs).map(|_| scope.spawn(|| db.gc(GcGoal::Once))).collect();
        hold.wait_for(jobs);
        let running = db.stats().running_collections;
        assert_eq!(running.len(), jobs, "{running:?}");
        let victims: Vec<_> = running.iter().flat_map(|job| &job.victims).collect();
        let different: BTreeSet<_> = victims.iter().collect();
        assert_eq!(different.len(), victims.len(), "{running:?}");
        drop(hold);
        let done = collections.into_iter().map(|collection| collection.join().unwrap().unwrap());
        assert_eq!(done.map(|done| done.segments).sum::<u64>(), victims.len() as u64);
    });
    assert_no_orphans(&db, &place.path(), "collected");
    assert_holds(&db, &model, "collected");
}
