//! Garbage collection beside everything else: writers, readers, snapshots, flushes and compactions; compactions that are in
//! flight while what they read is collected; a close in its midst.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::garbage::{
    Content, Gate, KEYS, assert_holds, assert_holds_at, assert_no_orphans, assert_recovers, compact, delete,
    fill, half_dead, key, quiet, wait_for_close, walk,
};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, fast_directory, tiny};
use tamarack::testing::Call;
use tamarack::{Db, ErrorKind, GcGoal, GcPolicy, IterOptions, Options, ReadOptions};

/// Runs `meanwhile` when a compaction of everything has read its first entries and is about to write its first table.
fn while_compacting(place: &Place, db: &Db, meanwhile: impl FnOnce()) {
    db.flush().unwrap();
    let gate = Gate::at(&place.faults, Call::Create, ".table");
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| db.compact_range(None, None));
        gate.wait();
        meanwhile();
        drop(gate);
        compaction.join().unwrap().unwrap();
    });
    place.faults.unwatch();
}

/// I-11: both versions of a key end up in one table, though the record of the older one was left behind.
#[test]
fn a_compaction_that_began_under_a_snapshot_may_keep_what_is_left_behind_meanwhile() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a compaction under a snapshot");
    for deleting in [false, true] {
        let place = Place::new(quiet());
        let db = place.open();
        let mut model = half_dead(&db);
        let snapshot = db.snapshot();
        if deleting {
            delete(&db, &mut model, (0..KEYS).step_by(3));
        } else {
            fill(&db, &mut model, (0..KEYS).step_by(3), 2);
        }
        let mut hidden = 0;
        while_compacting(&place, &db, || {
            drop(snapshot);
            hidden = db.gc(GcGoal::Until(1.0)).unwrap().hidden;
        });
        assert!(hidden > 0, "deleting: {deleting}");
        assert_holds(&db, &model, &format!("deleting: {deleting}"));
        assert!(
            db.check(tamarack::CheckLevel::Values).hidden_references > 0,
            "both versions are in the table"
        );
        db.close().unwrap();
        let db = place.try_open(&Options { paranoid_checks: true, ..quiet() }).unwrap();
        db.gc(GcGoal::Until(1.0)).unwrap();
        assert_holds(&db, &model, &format!("collected, deleting: {deleting}"));
        fill(&db, &mut model, [0], 9);
        compact(&db);
        assert_eq!(db.check(tamarack::CheckLevel::Values).hidden_references, 0);
        assert_holds(&db, &model, &format!("compacted, deleting: {deleting}"));
        db.close().unwrap();
        assert_recovers(&place.path(), &quiet(), &model, "compacted");
    }
}

#[test]
fn a_compaction_may_write_pointers_to_what_has_moved_on_since() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a compaction overtaken by collections");
    for moved_before in [false, true] {
        let what = format!("moved before: {moved_before}");
        // Nothing of them stays in the cache, so that whoever needs one that is gone must have been given it.
        let place = Place::new(Options { relocation_cache_bytes: 4 << 10, ..quiet() });
        let db = place.open();
        let mut model = half_dead(&db);
        if moved_before {
            // The compaction replaces pointers by ones to cold segments that no table names otherwise.
            db.gc(GcGoal::Until(1.0)).unwrap();
        }
        fill(&db, &mut model, (0..KEYS).step_by(5), 2);
        while_compacting(&place, &db, || {
            for round in 3..8 {
                fill(&db, &mut model, (round..KEYS).step_by(9), round);
                db.flush().unwrap();
                let done = db.gc(GcGoal::Until(1.0)).unwrap();
                assert!(done.records > 0 && done.hidden > 0, "{what}, round {round}: {done:?}");
                assert_holds(&db, &model, &format!("{what}, round {round}"));
            }
        });
        assert_holds(&db, &model, &what);
        let warnings = db.stats().warnings;
        assert!(warnings.is_empty(), "{what}: it was given what has gone: {warnings:?}");
        let after = db.gc(GcGoal::Until(1.0)).unwrap();
        assert_holds(&db, &model, &format!("{what}, then {after:?}"));
        db.close().unwrap();
        let db = place.try_open(&Options { paranoid_checks: true, ..quiet() }).unwrap();
        fill(&db, &mut model, 0..KEYS, 9);
        compact(&db);
        assert_eq!(db.stats().moved_segments, 0, "{what}");
        assert_holds(&db, &model, &what);
        assert_no_orphans(&db, &place.path(), &what);
    }
}

#[test]
fn what_dies_while_it_is_collected_is_copied_in_vain_and_dropped() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "victims that die");
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = half_dead(&db);
    let gate = Gate::at(&place.faults, Call::Create, ".cold");
    std::thread::scope(|scope| {
        let collection = scope.spawn(|| db.gc(GcGoal::Once));
        gate.wait();
        delete(&db, &mut model, 0..KEYS);
        compact(&db);
        assert_eq!(db.stats().live_value_bytes, 0);
        drop(gate);
        assert!(collection.join().unwrap().unwrap().records > 0);
    });
    place.faults.unwatch();
    assert_holds(&db, &model, "all dead");
    assert_no_orphans(&db, &place.path(), "all dead");
    assert_eq!(db.stats().moved_segments, 0);
    fill(&db, &mut model, 0..KEYS, 7);
    assert_holds(&db, &model, "written again");
}

#[test]
fn a_snapshot_that_is_taken_during_a_collection_sees_its_moment() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a snapshot during a collection");
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = half_dead(&db);
    fill(&db, &mut model, (0..KEYS).step_by(3), 2);
    db.flush().unwrap();
    let gate = Gate::at(&place.faults, Call::Create, ".cold");
    std::thread::scope(|scope| {
        let collection = scope.spawn(|| db.gc(GcGoal::Until(1.0)));
        gate.wait();
        let then = model.clone();
        let settings = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        fill(&db, &mut model, 0..KEYS, 3);
        db.flush().unwrap();
        drop(gate);
        assert!(collection.join().unwrap().unwrap().hidden > 0);
        assert_holds_at(&db, &then, &settings, "then");
        compact(&db);
        db.gc(GcGoal::Until(1.0)).unwrap();
        assert_holds_at(&db, &then, &settings, "then, compacted");
    });
    place.faults.unwatch();
    assert_holds(&db, &model, "now");
}

/// The collection is held in the midst of a call, and can only end once the close has begun.
#[test]
fn a_close_ends_a_collection_on_request_and_waits_for_it() {
    for (call, suffix) in [(Call::Create, ".cold"), (Call::Write, ".cold"), (Call::SyncDir, "db")] {
        let what = format!("{call:?} of {suffix}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a close during a collection");
        let place = Place::new(quiet());
        let db = place.open();
        let model = half_dead(&db);
        let gate = Gate::at(&place.faults, call, suffix);
        std::thread::scope(|scope| {
            let [collecting, closing] = [db.clone(), db.clone()];
            let collection = scope.spawn(move || collecting.gc(GcGoal::Until(1.0)));
            gate.wait();
            let close = scope.spawn(move || closing.close());
            wait_for_close(&db);
            // A close that does not wait has every chance to end.
            (0..10_000).for_each(|_| std::thread::yield_now());
            assert!(!close.is_finished(), "{what}: the collection is held");
            drop(gate);
            close.join().unwrap().unwrap();
            assert_eq!(db.stats().running_collections, [], "{what}");
            if let Err(error) = collection.join().unwrap() {
                assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            }
        });
        for goal in [GcGoal::Once, GcGoal::Until(1000.0)] {
            assert_eq!(db.gc(goal).unwrap_err().kind(), ErrorKind::Closed, "{what}");
        }
        place.faults.unwatch();
        assert_holds_at(&db, &model, &ReadOptions::default(), &what);
        drop(db);
        assert_recovers(&place.path(), &place.options, &model, &what);
    }
}

/// Limits so small, and a goal so low, that something is collected all the time.
fn busy(random: &mut Random) -> Options {
    Options {
        max_space_amplification: random.pick(&[1.05, 1.3]),
        gc: random.pick(&[GcPolicy::CostBenefit, GcPolicy::Tail]),
        background_threads: random.pick(&[1, 2, 4]),
        memtable_bytes: random.pick(&[4 << 10, 16 << 10]),
        inline_value_max: random.pick(&[0, 40]),
        block_cache_bytes: random.pick(&[0, 1 << 20]),
        row_cache_bytes: random.pick(&[0, 16 << 10]),
        direct_reads: random.pick(&[false, true]),
        open_files_max: random.pick(&[16, 1000]),
        ..tiny()
    }
}

#[test]
fn a_database_that_is_dropped_while_it_collects_is_whole() {
    for seed in 0..15 {
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("drop during collections, seed {seed}"));
        let mut random = Random::new(seed);
        let directory = fast_directory();
        let mut model = Content::new();
        for round in 0..4 {
            let db = Db::open(directory.path(), busy(&mut random)).unwrap();
            assert_holds(&db, &model, &format!("seed {seed}, round {round}"));
            for _ in 0..300 + random.below(300) {
                let number = random.below(KEYS);
                fill(&db, &mut model, [number], round);
            }
            if random.one_in(2) {
                db.close().unwrap();
            }
        }
    }
}

const WRITERS: usize = 2;
/// What each writes, at least.
const OPERATIONS: usize = 4000;
const RACED_KEYS: usize = 60;

/// The keys of one writer.
fn raced_key(writer: usize, number: usize) -> Vec<u8> {
    [format!("{writer}/").into_bytes(), key(number)].concat()
}

/// A value that tells its key and how often the writer had written before.
fn raced_value(key: &[u8], operation: usize) -> Vec<u8> {
    let mut value = [&(operation as u64).to_le_bytes()[..], key].concat();
    value.resize(8 + key.len() + operation % 7 * 30, 0x5a);
    value
}

fn assert_own(key: &[u8], value: &[u8]) {
    let operation = u64::from_le_bytes(value[..8].try_into().unwrap()) as usize;
    assert!(value == raced_value(key, operation), "{} has a value of another key", key.escape_ascii());
}

/// Writes until there has been a race.
fn write_raced(db: &Db, writer: usize, seed: u64, rounds: &AtomicU64) -> Content {
    let mut random = Random::new(seed << 8 | writer as u64);
    let mut model = Content::new();
    let raced = || rounds.load(Ordering::Relaxed) > 0 && db.stats().collections > 10;
    for operation in 0.. {
        if operation >= OPERATIONS && operation % 100 == 0 && raced() {
            break;
        }
        let key = raced_key(writer, random.below(RACED_KEYS));
        if random.one_in(5) {
            db.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = raced_value(&key, operation);
            db.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
    model
}

/// Reads in every way until all is written. A snapshot shows the same each time.
fn read_raced(db: &Db, reader: u64, done: &AtomicBool, rounds: &AtomicU64) {
    let mut random = Random::new(reader);
    let mut held: Vec<(ReadOptions, Content)> = Vec::new();
    while !done.load(Ordering::Acquire) {
        rounds.fetch_add(1, Ordering::Relaxed);
        for _ in 0..20 {
            let key = raced_key(random.below(WRITERS), random.below(RACED_KEYS));
            if let Some(value) = db.get(&key).unwrap() {
                assert_own(&key, &value);
            }
        }
        for (key, value) in walk(db, &IterOptions::default(), random.one_in(2)).unwrap() {
            assert_own(&key, &value);
        }
        let settings = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        let options = IterOptions { snapshot: settings.snapshot.clone(), ..IterOptions::default() };
        let then: Content = walk(db, &options, false).unwrap().into_iter().collect();
        held.push((settings, then));
        let at = random.below(held.len());
        assert_holds_at(db, &held[at].1, &held[at].0, &format!("reader {reader}, a snapshot"));
        if held.len() > 4 || random.one_in(3) {
            held.swap_remove(random.below(held.len()));
        }
    }
    for (settings, then) in held {
        assert_holds_at(db, &then, &settings, &format!("reader {reader}, at the end"));
    }
}

fn maintain_raced(db: &Db, seed: u64, done: &AtomicBool) {
    let mut random = Random::new(seed ^ 0xface);
    while !done.load(Ordering::Acquire) {
        match random.below(8) {
            0..=4 => drop(db.gc(random.pick(&[GcGoal::Once, GcGoal::Until(1.0)])).unwrap()),
            5 => db.flush().unwrap(),
            6 => db.compact_range(None, None).unwrap(),
            _ => {
                let (start, end) =
                    (raced_key(0, random.below(RACED_KEYS)), raced_key(1, random.below(RACED_KEYS)));
                db.compact_range(Some(&start), Some(&end)).unwrap();
            }
        }
    }
}

fn race(seed: u64) {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("the race of seed {seed}"));
    let place = Place::new(busy(&mut Random::new(seed)));
    let db = place.open();
    let (done, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut model = Content::new();
    std::thread::scope(|scope| {
        let (db, done, rounds) = (&db, &done, &rounds);
        let writers: Vec<_> =
            (0..WRITERS).map(|writer| scope.spawn(move || write_raced(db, writer, seed, rounds))).collect();
        let others: Vec<_> = (0..2)
            .map(|reader| scope.spawn(move || read_raced(db, seed << 8 | reader, done, rounds)))
            .chain([scope.spawn(move || maintain_raced(db, seed, done))])
            .collect();
        let written: Vec<_> = writers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Release);
        let others: Vec<_> = others.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        written.into_iter().for_each(|written| model.append(&mut written.unwrap()));
        others.into_iter().for_each(|ended| ended.unwrap());
    });
    let what = format!("seed {seed}");
    assert_eq!(db.stats().warnings, Vec::<String>::new(), "{what}");
    assert_holds(&db, &model, &what);
    db.close().unwrap();
    let db = place.try_open(&Options { paranoid_checks: true, ..place.options.clone() }).unwrap();
    assert_no_orphans(&db, &place.path(), &what);
    assert_holds(&db, &model, &what);
}

#[test]
fn everything_at_once_agrees_with_the_model() {
    let base = crate::common::number_from_environment("TAMARACK_SEED").unwrap_or(0);
    (base..base + crate::common::number_from_environment("TAMARACK_SEEDS").unwrap_or(4)).for_each(race);
}
