//! What happens while nothing is written, by a clock that is moved by hand: the spare segment is given back, readers
//! that hold too much for too long are told of, and nobody is locked out by a look when the database is closed.

use std::path::PathBuf;
use std::time::Duration;

use crate::common::garbage::{Content, Gate, KEYS, assert_holds, compact, delete, fill, key, value};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Watchdog, file_names, tiny};
use tamarack::testing::{Call, EIO, Fault};
use tamarack::{Db, ErrorKind, IterOptions, Options};

/// How often the engine looks.
const TICK: Duration = Duration::from_millis(100);
/// From then on a database is idle.
const IDLE: Duration = Duration::from_secs(1);
/// The age from which on a snapshot is worth a warning.
const HOUR: Duration = Duration::from_secs(3600);

/// Small limits; space is wanted if `wanted`, and never otherwise.
fn options(wanted: bool) -> Options {
    Options { max_space_amplification: if wanted { 1.05 } else { 1000.0 }, background_threads: 1, ..tiny() }
}

/// Segments of the log that are made ready and not written yet.
fn spares(place: &Place) -> Vec<PathBuf> {
    let names = file_names(&place.path()).into_iter().filter(|name| name.ends_with(".vlog"));
    let paths = names.map(|name| place.path().join(name));
    paths.filter(|path| std::fs::read(path).unwrap().iter().all(|&byte| byte == 0)).collect()
}

#[test]
fn a_spare_segment_that_cannot_be_given_back_is_used() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a spare segment that cannot be given back");
    let place = Place::new(options(false));
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let spare = spares(&place).pop().expect("the next segment is ready");
    let name = spare.file_name().unwrap().to_str().unwrap().to_owned();
    place.faults.inject(Fault::on(Call::RemoveFile).path_ending(&name).errno(EIO));
    while place.faults.triggered() == 0 {
        place.time.pass(IDLE);
    }
    fill(&db, &mut model, 0..KEYS, 1);
    let begun = std::fs::read(&spare).is_ok_and(|bytes| bytes.iter().any(|&byte| byte != 0));
    assert!(begun || !spare.exists(), "{name} is in nobody's way");
    db.close().unwrap();
    assert_holds(&place.open(), &model, "opened");
}

#[test]
fn a_spare_segment_is_given_back_when_nothing_is_written() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "giving a spare segment back");
    // Who sorts values has segments ended, and the next ones made ready.
    let place = Place::new(Options { value_runs_max: 0, ..options(false) });
    let db = place.open();
    let mut model = Content::new();
    for round in 0..3 {
        fill(&db, &mut model, 0..KEYS, round);
        db.wait_idle().unwrap();
        assert_eq!(spares(&place).len(), 1, "round {round}: the next segment is ready");
        // As long as there are writes, however few, it stays.
        for number in 0..3 {
            place.time.pass(IDLE - TICK);
            fill(&db, &mut model, [number], round);
        }
        // With nothing in memory, a look has nothing else to do.
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let before = db.stats().disk_bytes;
        place.time.pass(TICK);
        place.time.pass(IDLE - TICK);
        assert_eq!(spares(&place).len(), 1, "round {round}: the last write is not old yet");
        place.time.pass(TICK);
        assert_eq!(spares(&place).len(), 0, "round {round}: the space is given back");
        let given_back = before - db.stats().disk_bytes;
        assert_eq!(given_back, place.options.segment_bytes_max, "round {round}: and not counted any more");
        assert_holds(&db, &model, &format!("round {round}"));
    }
    db.close().unwrap();
    assert_holds(&place.open(), &model, "opened");
}

#[test]
fn a_close_during_a_look_leaves_no_lock_behind() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a close during a look");
    let place = Place::new(options(false));
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    db.wait_idle().unwrap();
    place.time.pass(TICK);
    // The look gives the spare segment back.
    let gate = Gate::at(&place.faults, Call::RemoveFile, ".vlog");
    std::thread::scope(|scope| {
        let passing = scope.spawn(|| place.time.pass(IDLE));
        gate.wait();
        let closing = scope.spawn(|| {
            drop(db);
            place.try_open(&place.options)
        });
        // A close that does not wait has time to show it.
        (0..10_000).take_while(|_| !closing.is_finished()).for_each(|_| std::thread::yield_now());
        drop(gate);
        let db = closing.join().unwrap().expect("the lock went with the last handle");
        assert_holds(&db, &model, "opened at once");
        passing.join().unwrap();
    });
}

#[test]
fn nobody_looks_at_a_database_that_is_closed() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a look after the close");
    let place = Place::new(options(false));
    let db = place.open();
    let other = db.clone();
    assert_eq!(place.time.watchers(), 1);
    db.close().unwrap();
    place.time.pass(TICK);
    assert_eq!(place.time.watchers(), 0);
    // It closes once more, in vain.
    drop(other);
    place.open();
}

/// Readers hold what is dead: more than twice the slack, while nothing is alive.
fn exhaust(db: &Db, model: &mut Content) -> tamarack::Iter {
    fill(db, model, 0..KEYS * 3, 0);
    compact(db);
    let mut reader = db.iter(&IterOptions::default()).unwrap();
    reader.seek_to_first().unwrap();
    delete(db, model, 0..KEYS * 3);
    compact(db);
    assert!(db.stats().leaving_bytes > 2 * 8 * (4 << 10), "{:?}", db.stats());
    reader
}

#[test]
fn writes_are_refused_while_readers_hold_too_much_for_long() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "readers that hold too much");
    let place = Place::new(options(false));
    let db = place.open();
    let mut model = Content::new();
    let refuse_after = Duration::from_secs(10);
    for round in 1..4 {
        let what = format!("round {round}");
        let reader = exhaust(&db, &mut model);
        // It may be for a moment only.
        place.time.pass(TICK);
        fill(&db, &mut model, [1], round);
        place.time.pass(refuse_after - TICK);
        fill(&db, &mut model, [2], round);
        place.time.pass(TICK);
        let error = db.put(&key(3), &value(3, round)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
        assert!(error.message().contains("only readers still need"), "{what}: {error}");
        // Deletions make room.
        delete(&db, &mut model, [1]);
        assert_holds(&db, &model, &what);
        assert!(reader.valid() && reader.key() == key(0), "{what}: readers go on");
        drop(reader);
        fill(&db, &mut model, 3..6, round);
        place.time.pass(refuse_after);
        fill(&db, &mut model, 6..9, round);
        assert_holds(&db, &model, &what);
    }
}

#[test]
fn readers_that_let_go_in_time_are_not_held_against_writers() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "readers that let go");
    let place = Place::new(options(false));
    let db = place.open();
    let mut model = Content::new();
    for round in 1..4 {
        let reader = exhaust(&db, &mut model);
        for _ in 0..3 {
            place.time.pass(Duration::from_secs(3));
            fill(&db, &mut model, [1], round);
        }
        drop(reader);
        // Seen by a look: the time begins anew.
        place.time.pass(TICK);
    }
}

fn snapshot_warnings(db: &Db) -> Vec<String> {
    let warnings = db.stats().warnings.into_iter();
    warnings.filter(|warning| warning.contains("the snapshot")).collect()
}

/// Lets time pass until the database has been at rest for a look.
fn rest(place: &Place, db: &Db) {
    for _ in 0..10 {
        place.time.pass(IDLE);
        db.wait_idle().unwrap();
    }
}

#[test]
fn an_old_snapshot_is_told_of_while_space_is_wanted() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a snapshot that is held");
    for wanted in [true, false] {
        let place = Place::new(options(wanted));
        let db = place.open();
        let mut model = Content::new();
        fill(&db, &mut model, 0..KEYS, 0);
        let [first, second] = [db.snapshot_named("nightly"), db.snapshot()];
        let sequence = db.stats().last_sequence;
        // None of it is collected.
        db.pause_gc();
        (1..4).for_each(|round| fill(&db, &mut model, 0..KEYS, round));
        compact(&db);
        rest(&place, &db);
        assert_eq!(snapshot_warnings(&db), [""; 0], "it is not old yet");
        place.time.pass(HOUR);
        rest(&place, &db);
        let expected = if wanted { 1 } else { 0 };
        let warnings = snapshot_warnings(&db);
        assert_eq!(warnings.len(), expected, "once, if space is wanted: {warnings:?}");
        for part in ["\"nightly\"", &format!("at sequence {sequence},"), "oldest of 2,", "for 36", "keeps "] {
            assert!(warnings.iter().all(|warning| warning.contains(part)), "{part}: {warnings:?}");
        }
        // Once it is gone, the next one is another.
        drop(first);
        rest(&place, &db);
        let warnings = snapshot_warnings(&db);
        assert_eq!(warnings.len(), 2 * expected, "the second is as old: {warnings:?}");
        assert!(warnings.iter().skip(1).all(|warning| !warning.contains("nightly")), "{warnings:?}");
        drop(second);
        rest(&place, &db);
        let third = db.snapshot();
        rest(&place, &db);
        assert_eq!(snapshot_warnings(&db).len(), 2 * expected, "the third is not old yet");
        place.time.pass(HOUR);
        rest(&place, &db);
        assert_eq!(snapshot_warnings(&db).len(), 3 * expected, "{:?}", snapshot_warnings(&db));
        drop(third);
    }
}

#[test]
fn an_old_snapshot_is_told_of_while_writes_keep_coming() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a snapshot that is held beside writes");
    let place = Place::new(options(true));
    let db = place.open();
    let mut model = Content::new();
    let snapshot = db.snapshot_named("forgotten");
    place.time.pass(HOUR + TICK);
    // Nothing is collected, so that space is wanted for certain.
    db.pause_gc();
    fill(&db, &mut model, 0..4 * KEYS, 0);
    fill(&db, &mut model, (0..4 * KEYS).step_by(2), 1);
    compact(&db);
    for round in 2..20 {
        fill(&db, &mut model, [0], round);
        place.time.pass(TICK);
    }
    let warnings = snapshot_warnings(&db);
    assert!(warnings.len() == 1 && warnings[0].contains("\"forgotten\""), "{warnings:?}: {:?}", db.stats());
    drop(snapshot);
}

#[test]
fn an_iterator_that_holds_much_is_told_of_with_its_age() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "an iterator that holds much");
    let place = Place::new(options(false));
    let db = place.open();
    let mut model = Content::new();
    let warnings = || -> Vec<String> {
        let warnings = db.stats().warnings.into_iter();
        warnings.filter(|warning| warning.contains("the iterator")).collect()
    };
    for round in 1..3 {
        let reader = exhaust(&db, &mut model);
        let held = db.stats().readers[0].held_bytes;
        // A young one that holds as much, or nothing, is not told of beside it.
        let young = db.iter(&IterOptions::default()).unwrap();
        place.time.pass(Duration::from_secs(60));
        assert_eq!(warnings().len(), round - 1, "it may be at work: {:?}", warnings());
        place.time.pass(TICK);
        place.time.pass(Duration::from_secs(30));
        let told = warnings();
        assert_eq!(told.len(), round, "once: {told:?}");
        for part in [&format!("keeps {held} bytes"), "for 60 s", "at sequence "] {
            assert!(told[round - 1].contains(part), "{part}: {told:?}");
        }
        drop((reader, young));
    }
    // One that holds nothing may stay as long as it likes.
    let harmless = db.iter(&IterOptions::default()).unwrap();
    place.time.pass(HOUR);
    place.time.pass(TICK);
    assert_eq!(warnings().len(), 2, "{:?}", warnings());
    drop(harmless);
}

#[test]
fn an_old_snapshot_that_keeps_much_is_told_of_even_if_space_is_not_wanted() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a snapshot that keeps much");
    let place = Place::new(options(false));
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..4 * KEYS, 0);
    let snapshot = db.snapshot_named("large");
    fill(&db, &mut model, 0..4 * KEYS, 1);
    compact(&db);
    place.time.pass(HOUR + TICK);
    rest(&place, &db);
    let held = db.stats().readers[0].held_bytes;
    let told = snapshot_warnings(&db);
    assert!(told.len() == 1 && told[0].contains(&format!("keeps {held} bytes")), "{told:?}");
    drop(snapshot);
}
