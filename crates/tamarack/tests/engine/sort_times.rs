//! When values are sorted without being asked for: while a database is idle, and for scans.

use std::time::Duration;

use crate::common::garbage::{Content, KEYS, assert_holds, assert_no_orphans, fill, key, quiet};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog};
use tamarack::{CheckLevel, Db, GcPolicy, IterOptions, Options};

use super::sort::{assert_holds_walk, most_runs, scattered, shuffled};

/// Until a database is idle, and looked at.
const IDLE: Duration = Duration::from_millis(1200);

/// What a database does by itself while nothing is written.
fn idle_options() -> Options {
    Options { gc: GcPolicy::CostBenefit, background_threads: 1, value_runs_max: 4, ..quiet() }
}

fn pass_idle_time(db: &Db, place: &Place) {
    for _ in 0..30 {
        place.time.pass(IDLE);
        db.wait_idle().unwrap();
    }
}

/// Values in no order that fill many segments; not flushed.
fn many_in_the_log(db: &Db) -> Content {
    let mut model = Content::new();
    // 1009 is prime: each number once.
    fill(db, &mut model, (0..3000).map(|number| number * 1009 % 3000), 0);
    model
}

/// Walks again and again over everything, while a little is written between.
fn walk_between_writes(db: &Db, place: &Place, model: &mut Content) {
    for round in 0..20 {
        fill(db, model, [KEYS], round);
        place.time.pass(IDLE / 20);
        db.wait_idle().unwrap();
        assert_holds_walk(db, model);
    }
}

#[test]
fn it_is_done_while_nothing_is_written_or_read() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "sorting while nothing is written or read");
    let place = Place::new(idle_options());
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, shuffled(&mut Random::new(9)), 0);
    for number in 0..100 {
        assert_eq!(db.get(&key(number)).unwrap().as_ref(), model.get(&key(number)));
        place.time.pass(IDLE / 20);
        db.wait_idle().unwrap();
    }
    assert_eq!(db.stats().sortings, 0, "values are read one by one");
    pass_idle_time(&db, &place);
    let stats = db.stats();
    assert!(stats.sortings > 0 && (1..=4).contains(&stats.value_runs), "{} runs", stats.value_runs);
    assert!(most_runs(&db, &place.path()) <= 4);
    assert!(stats.warnings.is_empty(), "{:?}", stats.warnings);
    assert_holds(&db, &model, "sorted");
    assert_no_orphans(&db, &place.path(), "sorted");
    let written = stats.sorting_bytes_written;
    pass_idle_time(&db, &place);
    assert_eq!(db.stats().sorting_bytes_written, written, "it comes to rest");
    assert!(db.check(CheckLevel::Values).is_clean());
}

#[test]
fn it_is_done_for_scans_while_writes_keep_coming() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "sorting for scans");
    let place = Place::new(idle_options());
    let db = place.open();
    let mut model = scattered(&db);
    let mut live = |scans: usize| {
        for round in 0..20 {
            fill(&db, &mut model, [KEYS], round);
            place.time.pass(IDLE / 20);
            db.wait_idle().unwrap();
            (0..scans).for_each(|_| assert_holds_walk(&db, &model));
        }
        db.stats().sortings
    };
    assert_eq!(live(0), 0, "who does not scan gains nothing");
    assert!(live(1) > 0);
    assert!(db.stats().value_runs <= 4);
    assert_holds(&db, &model, "sorted");
}

#[test]
fn what_is_not_flushed_is_sorted_for_scans_too() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "sorting the log for scans");
    let place = Place::new(Options { memtable_bytes: 16 << 20, ..idle_options() });
    let db = place.open();
    let mut model = many_in_the_log(&db);
    assert_eq!(db.stats().flushes, 0);
    walk_between_writes(&db, &place, &mut model);
    let stats = db.stats();
    assert!(stats.flushes > 0 && stats.sortings > 0);
    assert!(stats.flushes < 5, "not again for each few writes");
    assert_holds(&db, &model, "sorted");
}

#[test]
fn nothing_is_flushed_for_scans_while_sorting_is_not_allowed() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "scans while collections are paused");
    let place = Place::new(Options { memtable_bytes: 16 << 20, ..idle_options() });
    let db = place.open();
    let mut model = many_in_the_log(&db);
    db.pause_gc();
    walk_between_writes(&db, &place, &mut model);
    assert_eq!((db.stats().flushes, db.stats().sortings), (0, 0));
}

#[test]
fn single_values_of_seeks_bring_it_not_about() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "seeks that want one value each");
    let place = Place::new(idle_options());
    let db = place.open();
    let mut model = scattered(&db);
    for round in 0..20 {
        fill(&db, &mut model, [KEYS], round);
        place.time.pass(IDLE / 20);
        db.wait_idle().unwrap();
        for key in model.keys().step_by(3) {
            let mut iter = db.iter(&IterOptions::default()).unwrap();
            iter.seek(key).unwrap();
            assert_eq!(iter.value().unwrap(), model[key]);
        }
    }
    assert_eq!(db.stats().sortings, 0);
}

#[test]
fn what_is_asked_of_garbage_collection_holds_for_it() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "pausing");
    let off = Options { gc: GcPolicy::Off, ..idle_options() };
    for (options, paused) in [(off, false), (idle_options(), true)] {
        let place = Place::new(options);
        let db = place.open();
        let model = scattered(&db);
        if paused {
            db.pause_gc();
        }
        pass_idle_time(&db, &place);
        assert_eq!(db.stats().sortings, 0);
        if paused {
            db.resume_gc().unwrap();
            pass_idle_time(&db, &place);
            assert!(db.stats().sortings > 0);
        }
        assert_holds(&db, &model, "in the end");
    }
}

#[test]
fn readers_are_not_given_much_to_hold() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a reader that stays");
    let place = Place::new(idle_options());
    let db = place.open();
    let model = many_in_the_log(&db);
    db.flush().unwrap();
    let slack = 16 * place.options.segment_bytes_max;
    assert!(db.stats().live_value_bytes > 4 * slack);
    let iter = db.iter(&IterOptions::default()).unwrap();
    pass_idle_time(&db, &place);
    let stats = db.stats();
    assert!(stats.sortings > 0);
    assert!(stats.leaving_bytes < 2 * slack, "{} bytes are held", stats.leaving_bytes);
    drop(iter);
    let before = stats.sortings;
    pass_idle_time(&db, &place);
    assert!(db.stats().sortings > before, "it goes on when the reader is gone");
    db.sort_values().unwrap();
    assert!(db.stats().value_runs <= 4);
    assert_holds(&db, &model, "sorted at last");
}
