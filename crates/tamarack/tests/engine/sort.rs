//! Sorting values: whatever order they came in, few sorted runs are left over any key; everything that can be read is
//! there, for the present, for snapshots and for iterators, however the sorting goes or ends.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::common::garbage::{
    Content, Gate, KEYS, assert_holds, assert_holds_at, assert_no_orphans, assert_recovers, cold_files,
    compact, delete, fill, key, quiet, segment_name, value,
};
use crate::common::place::Place;
use crate::common::world::model::KeyOrder;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, copy_directory, file_names};
use tamarack::testing::{Call, EIO, ENOSPC, Fault};
use tamarack::{CheckLevel, Db, ErrorKind, GcGoal, IterOptions, Options, ReadOptions, WriteOptions};

/// Nothing happens unless it is asked for, and `runs` are allowed.
pub fn quiet_with(runs: u32) -> Options {
    Options { value_runs_max: runs, ..quiet() }
}

/// All keys in a random order.
pub fn shuffled(random: &mut Random) -> Vec<usize> {
    let mut numbers: Vec<_> = (0..KEYS).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, random.below(last + 1));
    }
    numbers
}

/// Values in a random order, in segments and tables.
pub fn scattered(db: &Db) -> Content {
    let mut model = Content::new();
    fill(db, &mut model, shuffled(&mut Random::new(7)), 0);
    db.flush().unwrap();
    model
}

/// Reads from the log that a walk over everything takes.
fn reads_of_a_walk(db: &Db, model: &Content) -> u64 {
    let before = db.stats().value_reads;
    assert_holds_walk(db, model);
    db.stats().value_reads - before
}

pub fn assert_holds_walk(db: &Db, model: &Content) {
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    let mut found = 0;
    while iter.valid() {
        assert!(model.get(iter.key()).map(Vec::as_slice) == Some(iter.value().unwrap()));
        found += 1;
        iter.next().unwrap();
    }
    assert_eq!(found, model.len());
}

/// The key ranges of the segments that hold values, by the keys of the records in their files.
pub fn most_runs(db: &Db, path: &Path) -> usize {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for segment in db.stats().segments.iter().filter(|segment| segment.live_bytes > 0) {
        let bytes = std::fs::read(path.join(segment_name(segment.id))).unwrap();
        let keys: Vec<usize> = (0..bytes.len().saturating_sub(9))
            .filter(|&at| bytes[at..].starts_with(b"key") && bytes[at + 8] == b'<')
            .map(|at| std::str::from_utf8(&bytes[at + 3..at + 8]).unwrap().parse().unwrap())
            .collect();
        assert!(keys.is_sorted(), "segment {} is not sorted", segment.id);
        ranges.push((keys[0], *keys.last().unwrap()));
    }
    (0..KEYS)
        .map(|key| ranges.iter().filter(|(low, high)| (*low..=*high).contains(&key)).count())
        .max()
        .unwrap()
}

#[test]
fn values_in_any_order_are_sorted_and_read_from_front_to_back() {
    for runs in [1, 2, 8] {
        let place = Place::new(quiet_with(runs));
        let db = place.open();
        let model = scattered(&db);
        let before = reads_of_a_walk(&db, &model);
        db.sort_values().unwrap();
        let what = format!("at most {runs} runs");
        let stats = db.stats();
        assert!((1..=u64::from(runs)).contains(&stats.value_runs), "{what}: {}", stats.value_runs);
        assert!(most_runs(&db, &place.path()) <= runs as usize, "{what}");
        assert!(stats.sortings > 0 && stats.sorting_index_bytes_written > 0, "{what}");
        assert!(stats.sorting_bytes_written >= stats.live_value_bytes, "{what}: each value was written");
        assert!(stats.sorting_bytes_written < 4 * stats.live_value_bytes, "{what}: and not often");
        assert_eq!((stats.collections, stats.moved_segments), (0, 0), "{what}: pointers lead there at once");
        assert_holds(&db, &model, &what);
        assert_no_orphans(&db, &place.path(), &what);
        if runs == 1 {
            let after = reads_of_a_walk(&db, &model);
            assert!(after * 2 < before, "{after} reads of the log instead of {before}");
        }
        let written = db.stats().sorting_bytes_written;
        db.sort_values().unwrap();
        assert_eq!(db.stats().sorting_bytes_written, written, "{what}: there is nothing left to sort");
        db.close().unwrap();
        let db = place.open();
        db.sort_values().unwrap();
        let stats = db.stats();
        assert_eq!((stats.sortings, stats.value_runs <= runs.into()), (0, true), "{what}: opened again");
        assert_holds(&db, &model, &what);
    }
}

#[test]
fn who_wants_values_left_alone_gets_that() {
    let place = Place::new(quiet_with(0));
    let db = place.open();
    let model = scattered(&db);
    db.sort_values().unwrap();
    assert_eq!(db.stats().sortings, 0);
    assert_eq!(cold_files(&place.path()).len(), 0);
    assert_holds(&db, &model, "as they came");
}

/// Where equal keys may differ in their bytes, more versions of one than fit into a segment still lie in one run.
#[test]
fn versions_written_with_different_equal_keys_are_sorted_once() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "sorting versions of equal keys");
    let place = Place::new(Options { comparator: KeyOrder::Caseless.comparator(), ..quiet_with(1) });
    let db = place.open();
    let put = |key: &[u8], round: u8| db.put(key, &[round; 300]).unwrap();
    let mut snapshots = Vec::new();
    for round in 0..60 {
        put(if round % 2 == 0 { b"middle" } else { b"MIDDLE" }, round);
        snapshots.push(db.snapshot());
        put(&[b'z' - round % 26; 3], round);
    }
    db.sort_values().unwrap();
    let stats = db.stats();
    assert_eq!(stats.value_runs, 1);
    assert!(stats.sorting_bytes_written < 2 * stats.live_value_bytes, "each value was written about once");
    for (round, snapshot) in (0..).zip(&snapshots) {
        let options = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
        assert_eq!(db.get_with(b"Middle", &options).unwrap().as_deref(), Some(&[round; 300][..]));
    }
    let written = stats.sorting_bytes_written;
    db.sort_values().unwrap();
    assert_eq!(db.stats().sorting_bytes_written, written, "there is nothing left to sort");
}

#[test]
fn values_that_came_in_order_stay_where_they_are() {
    let place = Place::new(quiet_with(1));
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    db.sort_values().unwrap();
    let stats = db.stats();
    assert_eq!((stats.sortings, stats.value_runs), (0, 1));
    assert_holds(&db, &model, "in order");
}

#[test]
fn large_values_stay_where_they_are() {
    let options = Options { segment_bytes_max: 256 << 10, recovery_log_max: 4 << 20, ..quiet_with(1) };
    let place = Place::new(options);
    let db = place.open();
    let mut model = Content::new();
    for number in [5, 3, 9, 1, 7, 2, 8, 4] {
        let large = value(number, 0).repeat(400);
        db.put(&key(number), &large).unwrap();
        model.insert(key(number), large);
    }
    db.sort_values().unwrap();
    assert_eq!(db.stats().sortings, 0);
    assert_holds(&db, &model, "large");
}

#[test]
fn snapshots_and_iterators_see_what_they_saw() {
    let place = Place::new(quiet_with(1));
    let db = place.open();
    let mut model = scattered(&db);
    let mut random = Random::new(3);
    fill(&db, &mut model, shuffled(&mut random).into_iter().take(KEYS / 2), 1);
    delete(&db, &mut model, (0..KEYS).step_by(7));
    let (then, snapshot) = (model.clone(), db.snapshot());
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    fill(&db, &mut model, shuffled(&mut random).into_iter().take(KEYS / 2), 2);
    delete(&db, &mut model, (0..KEYS).step_by(5));
    db.flush().unwrap();
    db.sort_values().unwrap();
    assert!(db.stats().sortings > 0);
    let at = ReadOptions { snapshot: Some(snapshot.clone()), ..ReadOptions::default() };
    assert_holds_at(&db, &then, &at, "the snapshot");
    assert_holds(&db, &model, "the present");
    for (key, value) in &then {
        assert_eq!(iter.key(), key);
        assert_eq!(iter.value().unwrap(), value);
        iter.next().unwrap();
    }
    assert!(!iter.valid());
    drop((iter, at));
    compact(&db);
    db.sort_values().unwrap();
    assert_holds(&db, &model, "compacted");
    assert_no_orphans(&db, &place.path(), "compacted");
}

/// I-11: compactions that replace pointers find the newer version of what has no copy.
#[test]
fn what_is_hidden_is_left_behind_and_never_missed() {
    let place = Place::new(quiet_with(1));
    let db = place.open();
    let mut model = scattered(&db);
    compact(&db);
    fill(&db, &mut model, (0..KEYS).step_by(2), 1);
    db.flush().unwrap();
    let before = db.stats();
    db.sort_values().unwrap();
    let after = db.stats();
    assert!(
        after.live_value_bytes * 5 < before.live_value_bytes * 4,
        "tables have forgotten what was hidden"
    );
    assert!(after.sorting_bytes_written < before.log_bytes, "only what is alive was copied");
    assert_holds(&db, &model, "sorted");
    compact(&db);
    assert_holds(&db, &model, "compacted");
    assert_no_orphans(&db, &place.path(), "compacted");
}

/// Sorting between everything else that moves pointers or not.
fn chain(seed: u64) {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("chain {seed}"));
    let mut random = Random::new(seed);
    let runs = random.pick(&[1, 2, 4]);
    let place = Place::new(quiet_with(runs));
    let mut db = place.open();
    let mut model = scattered(&db);
    let mut sorted = 0;
    for round in 2..30 {
        let what = format!("seed {seed}, round {round}");
        let numbers: Vec<_> = shuffled(&mut random).into_iter().filter(|_| random.one_in(4)).collect();
        fill(&db, &mut model, numbers, round);
        let numbers: Vec<_> = (0..KEYS).filter(|_| random.one_in(20)).collect();
        delete(&db, &mut model, numbers);
        match random.below(6) {
            0 => db.flush().unwrap(),
            1 => compact(&db),
            2 => {
                db.flush().unwrap();
                db.gc(random.pick(&[GcGoal::Once, GcGoal::Until(1.0)])).map(drop).unwrap();
            }
            3 => {
                let (start, end) = (key(random.below(KEYS)), key(random.below(KEYS)));
                db.compact_range(Some(&start), Some(&end)).unwrap();
            }
            _ => {
                db.sort_values().unwrap();
                assert!(db.stats().value_runs <= runs.into(), "{what}");
            }
        }
        assert_no_orphans(&db, &place.path(), &what);
        if random.one_in(5) {
            sorted += db.stats().sortings;
            db.close().unwrap();
            db = place.try_open(&Options { paranoid_checks: random.one_in(2), ..quiet_with(runs) }).unwrap();
        }
        assert_holds(&db, &model, &what);
    }
    assert!(sorted + db.stats().sortings > 3, "seed {seed}");
}

#[test]
fn chains_of_everything_agree_with_the_model() {
    (1..7).for_each(chain);
}

/// I-10: whether a table was rewritten or not, its pointers lead to sealed segments of the version.
#[test]
fn a_crash_between_any_two_steps_loses_nothing() {
    let place = Place::new(quiet_with(2));
    let db = place.open();
    let mut model = scattered(&db);
    fill(&db, &mut model, (0..KEYS).step_by(3), 1);
    db.sync().unwrap();
    let copies = place.copies_at_each_change(|| db.sort_values().unwrap());
    assert!(db.stats().sortings > 0);
    assert!(copies.len() > 30, "{} steps", copies.len());
    for (copy, what) in &copies {
        assert_recovers(copy, &place.options, &model, what);
    }
    db.close().unwrap();
}

/// Sorts with the first, the second, ... call failing, until there are no more calls.
fn fail_each(call: Call, suffix: &str, errno: i32) {
    let start = Place::new(quiet_with(2));
    let db = start.open();
    let model = scattered(&db);
    db.close().unwrap();
    let mut struck = 0;
    for nth in 1.. {
        let what = format!("{call:?} number {nth} of {suffix:?} fails with {errno}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        let place = Place::with_copy(&start.path(), quiet_with(2));
        let mut model = model.clone();
        let db = place.open();
        db.wait_idle().unwrap();
        place.faults.inject(Fault::on(call).path_ending(suffix).nth(nth).errno(errno));
        let outcome = db.sort_values();
        // Files are removed in the background.
        drop(db.wait_idle());
        let triggered = place.faults.triggered() > 0;
        place.faults.heal();
        if let Err(error) = &outcome {
            assert!(triggered, "{what}: {error}");
            assert!([ErrorKind::Io, ErrorKind::NoSpace].contains(&error.kind()), "{what}: {error}");
        }
        assert_holds(&db, &model, &what);
        fill(&db, &mut model, (0..KEYS).step_by(6), 5);
        db.flush().unwrap_or_else(|error| panic!("{what}: the database is poisoned: {error}"));
        assert_holds(&db, &model, &what);
        drop(db.close());
        assert_recovers(&place.path(), &place.options, &model, &what);
        if !triggered {
            break;
        }
        struck += 1;
    }
    assert!(struck > 0, "{call:?} of {suffix:?} is never called");
}

#[test]
fn each_call_may_fail() {
    for errno in [EIO, ENOSPC] {
        fail_each(Call::Create, ".cold", errno);
        fail_each(Call::Write, ".cold", errno);
        fail_each(Call::Create, ".table", errno);
    }
    fail_each(Call::SyncData, ".cold", EIO);
    fail_each(Call::Read, ".vlog", EIO);
    fail_each(Call::RemoveFile, ".vlog", EIO);
}

/// A compaction that replaces pointers goes on to find the copies in place when another one has failed.
#[test]
fn what_a_compaction_points_to_stays_when_another_fails() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "two compactions replace pointers, one fails");
    let tables = Options { table_bytes_max: 4 << 10, segment_bytes_max: 64 << 10, ..quiet_with(1) };
    let place = Place::new(Options { background_threads: 2, ..tables });
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, (0..6007).map(|step| step * 4999 % 6007), 0);
    compact(&db);
    // The first to have written its tables is held before it installs them; the next to write some is told that there is no space.
    let (faults, writes_tables) = (place.faults.clone(), AtomicU8::new(0));
    let gate = Gate::when(&place.faults, move |call, path| match call {
        Call::Create if path.extension().is_some_and(|extension| extension == "table") => {
            writes_tables.fetch_max(1, Ordering::Relaxed);
            false
        }
        call => {
            let is_first = || writes_tables.compare_exchange(1, 2, Ordering::Relaxed, Ordering::Relaxed);
            let has_written = call == Call::SyncDir && is_first().is_ok();
            if has_written {
                faults.inject(Fault::on(Call::Create).path_ending(".table").errno(ENOSPC));
            }
            has_written
        }
    });
    std::thread::scope(|scope| {
        let sorting = scope.spawn(|| db.sort_values());
        gate.wait();
        assert_eq!(sorting.join().unwrap().unwrap_err().kind(), ErrorKind::NoSpace);
        place.faults.heal();
        db.put(b"", b"").unwrap();
        db.flush().unwrap();
        db.gc(GcGoal::Until(1.0)).unwrap();
        drop(gate);
    });
    place.faults.unwatch();
    db.delete(b"").unwrap();
    db.wait_idle().unwrap();
    assert_holds(&db, &model, "one has failed");
    let warnings = db.stats().warnings;
    assert!(warnings.iter().all(|warning| !warning.contains("reference")), "{warnings:?}");
    db.sort_values().unwrap();
    assert_eq!(db.stats().value_runs, 1);
    assert_holds(&db, &model, "sorted again");
    assert_no_orphans(&db, &place.path(), "sorted again");
}

#[test]
fn a_damaged_segment_is_kept_and_the_others_are_sorted() {
    let place = Place::new(quiet_with(1));
    let db = place.open();
    let mut model = scattered(&db);
    db.close().unwrap();
    let record = [key(71), value(71, 0)].concat();
    let (name, at) = file_names(&place.path())
        .into_iter()
        .find_map(|name| {
            let bytes = std::fs::read(place.path().join(&name)).unwrap();
            bytes.windows(record.len()).position(|window| window == record).map(|at| (name, at))
        })
        .unwrap();
    let mut bytes = std::fs::read(place.path().join(&name)).unwrap();
    bytes[at + 20] ^= 1;
    std::fs::write(place.path().join(&name), bytes).unwrap();
    let db = place.open();
    let error = db.sort_values().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains(&name), "{error}");
    db.sort_values().unwrap();
    let stats = db.stats();
    assert_eq!(stats.quarantined_segments.iter().map(|&id| segment_name(id)).collect::<Vec<_>>(), [name]);
    assert!(stats.sortings > 0 && stats.value_runs == 1);
    assert_eq!(db.get(&key(71)).unwrap_err().kind(), ErrorKind::Corruption);
    model.remove(&key(71));
    for (key, value) in &model {
        assert_eq!(db.get(key).unwrap().as_ref(), Some(value));
    }
}

/// Nobody would have pointers lead to the copies any more, so they are not waited for.
#[test]
fn a_compaction_that_meets_damage_while_values_are_copied_ends_it() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a compaction meets damage while values are copied");
    let place = Place::new(Options { background_threads: 2, ..quiet_with(1) });
    let db = place.open();
    scattered(&db);
    compact(&db);
    let gate = Gate::when(&place.faults, |call, path| {
        call == Call::Create && path.extension().is_some_and(|extension| extension == "cold")
    });
    std::thread::scope(|scope| {
        let sorting = scope.spawn(|| db.sort_values());
        gate.wait();
        let names = file_names(&place.path()).into_iter().filter(|name| name.ends_with(".table"));
        for table in names.map(|name| place.path().join(name)) {
            let mut bytes = std::fs::read(&table).unwrap();
            bytes[10] ^= 1;
            std::fs::write(&table, bytes).unwrap();
        }
        // Level 0 is compacted as soon as there is enough of it.
        let is_stopped = || db.stats().warnings.iter().any(|warning| warning.contains("a compaction failed"));
        let mut number = 0;
        while !is_stopped() {
            db.put(&key(number), b"again").unwrap();
            db.flush().unwrap();
            number += 1;
        }
        // Others that have begun end, too.
        while db.stats().running_jobs > 1 {
            std::thread::yield_now();
        }
        drop(gate);
        assert_eq!(sorting.join().unwrap().unwrap_err().kind(), ErrorKind::Corruption);
    });
    place.faults.unwatch();
    let stats = db.stats();
    assert_eq!((stats.sortings, stats.running_jobs), (1, 0));
    db.put(b"goes", b"on").unwrap();
    db.close().unwrap();
}

#[test]
fn keys_that_do_not_fit_into_memory_are_not_sorted_at_once() {
    let place =
        Place::new(Options { memory_max: Some(16 << 20), segment_bytes_max: 256 << 10, ..quiet_with(1) });
    let db = place.open();
    let mut model = Content::new();
    let mut random = Random::new(6);
    for number in (0..1500).map(|number| number * 1009 % 1500) {
        let long = [key(number), vec![b'k'; 20_000]].concat();
        let value = random.bytes(600);
        db.put(&long, &value).unwrap();
        model.insert(long, value);
    }
    db.flush().unwrap();
    db.sort_values().unwrap();
    let stats = db.stats();
    assert!(stats.sortings > 4, "{} of {} bytes", stats.sortings, stats.sorted_bytes);
    assert_holds(&db, &model, "sorted with long keys");
}

#[test]
fn a_close_ends_it_and_nothing_is_left_over() {
    for (call, suffix) in [(Call::Create, ".cold"), (Call::SyncData, ".cold"), (Call::Create, ".table")] {
        let what = format!("closed at {call:?} of {suffix}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        let place = Place::new(quiet_with(1));
        let db = place.open();
        let model = scattered(&db);
        let gate = Gate::at(&place.faults, call, suffix);
        std::thread::scope(|scope| {
            let sorting = scope.spawn(|| db.sort_values());
            gate.wait();
            let closing = scope.spawn(|| db.clone().close());
            while db.put_with(b"", b"", &WriteOptions::default()).is_ok() {
                std::thread::yield_now();
            }
            drop(gate);
            assert_eq!(sorting.join().unwrap().unwrap_err().kind(), ErrorKind::Closed, "{what}");
            closing.join().unwrap().unwrap();
        });
        place.faults.unwatch();
        drop(db);
        let db = place.open();
        db.delete(b"").unwrap();
        assert_no_orphans(&db, &place.path(), &what);
        assert_holds(&db, &model, &what);
    }
}

#[test]
fn writers_go_on_beside_it() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "writing while values are sorted");
    let place = Place::new(quiet_with(1));
    let db = place.open();
    let mut model = scattered(&db);
    let gate = Gate::at(&place.faults, Call::Create, ".cold");
    std::thread::scope(|scope| {
        let sorting = scope.spawn(|| db.sort_values());
        gate.wait();
        fill(&db, &mut model, (0..KEYS).step_by(2), 1);
        delete(&db, &mut model, (0..KEYS).step_by(9));
        db.compact_range(None, None).unwrap();
        drop(gate);
        sorting.join().unwrap().unwrap();
    });
    place.faults.unwatch();
    assert_holds(&db, &model, "sorted");
    compact(&db);
    db.sort_values().unwrap();
    assert_eq!(db.stats().value_runs, 1);
    assert_holds(&db, &model, "sorted again");
    assert_no_orphans(&db, &place.path(), "sorted again");
}

#[test]
fn a_checkpoint_of_a_sorted_database_is_whole() {
    let place = Place::new(quiet_with(1));
    let db = place.open();
    let model = scattered(&db);
    db.sort_values().unwrap();
    db.checkpoint(place.beside("copy")).unwrap();
    let mut now = model.clone();
    fill(&db, &mut now, shuffled(&mut Random::new(5)), 1);
    db.sort_values().unwrap();
    assert_holds(&db, &now, "the original");
    let kept = place.beside("kept");
    copy_directory(&place.beside("copy"), &kept);
    assert_recovers(&kept, &place.options, &model, "the copy");
}

#[test]
fn what_does_not_fit_into_memory_is_read_again() {
    let place =
        Place::new(Options { memory_max: Some(16 << 20), segment_bytes_max: 256 << 10, ..quiet_with(1) });
    let db = place.open();
    let mut model = Content::new();
    let mut random = Random::new(5);
    for number in (0..6000).map(|number| number * 1009 % 6000) {
        let value = random.bytes(500);
        db.put(&key(number), &value).unwrap();
        model.insert(key(number), value);
    }
    db.flush().unwrap();
    db.sort_values().unwrap();
    let stats = db.stats();
    assert_eq!(stats.value_runs, 1);
    assert!(stats.sorted_bytes / stats.sortings > 1 << 20, "a job takes more than it holds at a time");
    assert_holds(&db, &model, "sorted in portions");
    assert!(db.check(CheckLevel::Values).is_clean());
}
