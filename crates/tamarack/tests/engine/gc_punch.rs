//! Large dead values are given back by holes in the files of their segments: what is left can be read, by everybody who
//! could read it before, and nobody takes a hole for data.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::common::garbage::{
    Content, assert_holds, assert_holds_at, assert_no_orphans, compact, key, quiet,
};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Watchdog, copy_directory, file_names};
use tamarack::testing::{Call, EIO, ENOSPC, Fault};
use tamarack::{Db, ErrorKind, GcGoal, GcPolicy, GcReport, IterOptions, Options, ReadOptions};

/// Bytes of a large value.
const LARGE: usize = 512 << 10;
/// How many keys [`holed`] writes.
const KEYS: usize = 24;

/// Segments of eight large values.
fn roomy() -> Options {
    Options { segment_bytes_max: 4 << 20, ..quiet() }
}

fn large(number: usize, round: usize) -> Vec<u8> {
    format!("<{number:05}@{round:04}>").into_bytes().into_iter().cycle().take(LARGE + number).collect()
}

fn fill(db: &Db, model: &mut Content, numbers: impl IntoIterator<Item = usize>, round: usize) {
    for number in numbers {
        db.put(&key(number), &large(number, round)).unwrap();
        model.insert(key(number), large(number, round));
    }
}

/// Writes large values and every other of them again; all is in tables, compacted if `seen`: else what is dead is
/// hidden.
fn half_dead(db: &Db, seen: bool) -> Content {
    let mut model = Content::new();
    fill(db, &mut model, 0..KEYS, 0);
    db.flush().unwrap();
    fill(db, &mut model, (0..KEYS).step_by(2), 1);
    db.flush().unwrap();
    if seen {
        compact(db);
    }
    model
}

/// Collects until nothing is gained by holes any more; no segment may be copied.
fn punch(db: &Db) -> GcReport {
    let mut all = GcReport::default();
    loop {
        let done = db.gc(GcGoal::Once).unwrap();
        assert_eq!(done.segments, 0, "{done:?}");
        all.add(&done);
        if done.punched == 0 {
            return all;
        }
    }
}

/// Bytes that the segments in `directory` take up on the device.
fn allocated(directory: &Path) -> u64 {
    let blocks = |name: &String| std::fs::metadata(directory.join(name)).unwrap().blocks() * 512;
    let names = file_names(directory);
    names.iter().filter(|name| name.ends_with(".vlog") || name.ends_with(".cold")).map(blocks).sum()
}

fn assert_recovers(path: &Path, model: &Content, what: &str) {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, what);
    let readers = Options { read_only: true, ..roomy() };
    let db = Db::open(path, readers).unwrap_or_else(|error| panic!("{what}: read-only: {error}"));
    assert_holds_at(&db, model, &ReadOptions::default(), what);
    drop(db);
    let paranoid = Options { paranoid_checks: true, ..roomy() };
    let db = Db::open(path, paranoid).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_no_orphans(&db, path, what);
    let mut model = model.clone();
    assert_holds(&db, &model, what);
    fill(&db, &mut model, (1..KEYS).step_by(4), 9);
    db.flush().unwrap();
    compact(&db);
    db.gc(GcGoal::Until(1.0)).unwrap_or_else(|error| panic!("{what}: gc: {error}"));
    assert_holds(&db, &model, what);
    db.close().unwrap();
}

#[test]
fn blocks_of_dead_values_are_given_back_and_the_others_stay() {
    let place = Place::new(roomy());
    let db = place.open();
    let model = half_dead(&db, true);
    let (before, counted) = (allocated(&place.path()), db.stats().disk_bytes);
    let done = punch(&db);
    assert!(done.punched >= 3, "{done:?}");
    let expected = (KEYS / 2 * (LARGE - 8192)) as u64;
    assert!(done.hole_bytes >= expected, "{done:?}");
    let after = allocated(&place.path());
    assert!(before - after >= expected, "{before} bytes, then {after}");
    let stats = db.stats();
    assert_eq!(stats.hole_bytes, done.hole_bytes);
    assert_eq!(counted - stats.disk_bytes, done.hole_bytes, "what is counted is what is there");
    assert_eq!((stats.leaving_bytes, stats.punched_segments, stats.collected_segments), (0, done.punched, 0));
    let of_segments: u64 = stats.segments.iter().map(|segment| segment.hole_bytes).sum();
    assert_eq!(of_segments, stats.hole_bytes);
    assert_holds(&db, &model, "punched");
    db.close().unwrap();
    let calls = place.faults.count(Call::PunchHole);
    let db = place.open();
    db.wait_idle().unwrap();
    assert_eq!(place.faults.count(Call::PunchHole), calls, "they are there already");
    assert_eq!(db.stats().hole_bytes, done.hole_bytes);
    assert_holds(&db, &model, "opened again");
    db.close().unwrap();
    assert_recovers(&place.path(), &model, "opened again");
}

/// I-11: what is hidden is given back before a compaction has dropped its entry, which then is never missed.
#[test]
fn hidden_values_are_given_back_and_never_missed() {
    let place = Place::new(roomy());
    let db = place.open();
    let mut model = half_dead(&db, false);
    let done = punch(&db);
    assert!(done.hole_bytes > 0, "{done:?}");
    assert!(db.check(tamarack::CheckLevel::Values).hidden_references > 0);
    assert_holds(&db, &model, "hidden");
    // The same range grows, under the same entries.
    fill(&db, &mut model, [1, 5], 2);
    db.flush().unwrap();
    assert!(punch(&db).hole_bytes > 0);
    assert_holds(&db, &model, "more is hidden");
    assert_recovers_copy(&place, &model, "before the compaction");
    compact(&db);
    assert_eq!(db.check(tamarack::CheckLevel::Values).hidden_references, 0);
    assert_holds(&db, &model, "compacted");
    db.close().unwrap();
    assert_recovers(&place.path(), &model, "compacted");
}

fn assert_recovers_copy(place: &Place, model: &Content, what: &str) {
    let copy = place.beside("copy");
    copy_directory(&place.path(), &copy);
    assert_recovers(&copy, model, what);
}

/// I-06, for parts of files.
#[test]
fn whoever_began_to_read_before_goes_on() {
    let place = Place::new(roomy());
    let db = place.open();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    db.flush().unwrap();
    let old = model.clone();
    let (snapshot, mut iter) = (db.snapshot(), db.iter(&IterOptions::default()).unwrap());
    iter.seek_to_first().unwrap();
    fill(&db, &mut model, (0..KEYS).step_by(2), 1);
    db.flush().unwrap();
    compact(&db);
    assert_eq!(db.gc(GcGoal::Once).unwrap(), GcReport::default(), "a snapshot sees all of it");
    drop(snapshot);
    // Nothing but the iterator reaches what was overwritten now.
    compact(&db);
    let before = allocated(&place.path());
    let done = punch(&db);
    assert!(done.hole_bytes > 0);
    db.wait_idle().unwrap();
    assert_eq!(allocated(&place.path()), before, "the iterator still reads it");
    let stats = db.stats();
    assert!(stats.leaving_bytes >= done.hole_bytes, "tables go with it");
    assert_eq!(stats.hole_bytes, done.hole_bytes);
    assert_holds(&db, &model, "while the iterator reads");
    let mut found = Content::new();
    while iter.valid() {
        found.insert(iter.key().to_vec(), iter.value().unwrap().to_vec());
        iter.next().unwrap();
    }
    assert!(found == old, "the iterator sees what it saw");
    drop(iter);
    db.wait_idle().unwrap();
    assert!(allocated(&place.path()) < before - done.hole_bytes / 2);
    assert_eq!(db.stats().leaving_bytes, 0);
    assert_holds(&db, &model, "punched");
    db.close().unwrap();
    assert_recovers(&place.path(), &model, "punched");
}

/// I-12.
#[test]
fn files_that_a_checkpoint_shares_get_no_holes_as_long_as_it_is_there() {
    let place = Place::new(roomy());
    let db = place.open();
    let model = half_dead(&db, true);
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    let copy = place.beside("copy");
    let before = allocated(&place.path());
    // The manifests of both have the holes, no file has.
    assert!(punch(&db).hole_bytes > 0);
    db.checkpoint(&copy).unwrap();
    drop(iter);
    db.wait_idle().unwrap();
    assert_eq!(place.faults.count(Call::PunchHole), 0, "the checkpoint shares the files");
    assert_eq!((allocated(&place.path()), db.stats().hole_bytes), (before, 0));
    assert_holds(&db, &model, "shared");
    assert_recovers_copy_of(&place, &copy, &model);
    std::fs::remove_dir_all(&copy).unwrap();
    db.wait_idle().unwrap();
    assert!(allocated(&place.path()) < before && db.stats().hole_bytes > 0);
    assert_holds(&db, &model, "no longer shared");
}

/// Opens and collects the checkpoint itself; the original must not notice.
fn assert_recovers_copy_of(place: &Place, copy: &Path, model: &Content) {
    let copied = Db::open(copy, roomy()).unwrap();
    assert_holds(&copied, model, "the copy");
    copied.wait_idle().unwrap();
    let files = allocated(&place.path());
    copied.gc(GcGoal::Until(1.0)).unwrap();
    assert_holds(&copied, model, "the copy, collected");
    copied.close().unwrap();
    assert_eq!(allocated(&place.path()), files);
}

#[test]
fn segments_of_a_checkpoint_are_copied_instead() {
    let place = Place::new(roomy());
    let db = place.open();
    let model = half_dead(&db, true);
    let copy = place.beside("copy");
    db.checkpoint(&copy).unwrap();
    let done = db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(done.segments > 0 && done.punched == 0, "{done:?}");
    assert_holds(&db, &model, "copied");
    drop(db);
    assert_recovers(&copy, &model, "the copy");
}

#[test]
fn a_file_system_without_holes_gets_copies() {
    let place = Place::new(roomy());
    place.faults.set_unsupported(Call::PunchHole, true);
    let db = place.open();
    let model = half_dead(&db, true);
    let before = db.stats().disk_bytes;
    let first = db.gc(GcGoal::Once).unwrap();
    assert!(first.punched > 0, "{first:?}");
    assert_eq!((db.stats().disk_bytes, db.stats().hole_bytes), (before, 0), "nothing was given back");
    assert_eq!(place.faults.count(Call::PunchHole), 1, "one answer is enough");
    let second = db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(second.segments > 0 && second.punched == 0, "{second:?}");
    let stats = db.stats();
    // Somebody who looked at the version before may not have let go of it yet.
    assert!(stats.disk_bytes - stats.leaving_bytes < before - (KEYS / 2 * LARGE / 2) as u64, "{stats:?}");
    assert_eq!(place.faults.count(Call::PunchHole), 1);
    assert!(db.stats().warnings.is_empty(), "{:?}", db.stats().warnings);
    assert_holds(&db, &model, "copied");
    db.close().unwrap();
    assert_recovers(&place.path(), &model, "copied");
}

#[test]
fn a_segment_with_holes_can_be_collected_moved_and_dropped() {
    let place = Place::new(roomy());
    let db = place.open();
    let mut model = half_dead(&db, true);
    punch(&db);
    for number in (1..KEYS).step_by(4) {
        db.delete(&key(number)).unwrap();
        model.remove(&key(number));
    }
    db.flush().unwrap();
    compact(&db);
    db.close().unwrap();
    // The paper's policy always copies.
    let db = place.try_open(&Options { gc: GcPolicy::Tail, ..roomy() }).unwrap();
    let holes = db.stats().hole_bytes;
    let done = db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(done.segments > 0 && done.punched == 0, "{done:?}");
    let stats = db.stats();
    assert!(stats.hole_bytes < holes && stats.moved_segments > 0, "{stats:?}");
    assert_holds(&db, &model, "copied");
    assert_recovers_copy(&place, &model, "copied");
    db.close().unwrap();
    // Cold segments get holes as well, around the relocation tables that are still needed.
    let db = place.open();
    fill(&db, &mut model, (0..KEYS).step_by(3), 3);
    db.flush().unwrap();
    punch(&db);
    assert!(db.stats().segments.iter().any(|segment| segment.is_cold() && segment.hole_bytes > 0));
    assert!(db.stats().moved_segments > 0);
    assert_holds(&db, &model, "cold");
    assert_recovers_copy(&place, &model, "cold");
    compact(&db);
    assert_eq!(db.stats().moved_segments, 0);
    assert_holds(&db, &model, "compacted");
    for number in 0..KEYS {
        db.delete(&key(number)).unwrap();
    }
    db.flush().unwrap();
    compact(&db);
    assert_holds(&db, &Content::new(), "dropped");
    let stats = db.stats();
    assert_eq!((stats.hole_bytes, stats.leaving_bytes), (0, 0), "{stats:?}");
    db.close().unwrap();
    assert_recovers(&place.path(), &Content::new(), "dropped");
}

/// A closed database to start from, hidden and plain garbage in it.
fn start() -> (Place, Content) {
    let place = Place::new(roomy());
    let db = place.open();
    let mut model = half_dead(&db, true);
    fill(&db, &mut model, [1, 9, 17], 2);
    db.flush().unwrap();
    db.close().unwrap();
    (place, model)
}

fn fail_each(call: Call, suffix: &str, errno: i32) {
    let (start, model) = start();
    for nth in 1.. {
        let what = format!("{call:?} number {nth} of {suffix:?} fails with {errno}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        let place = Place::with_copy(&start.path(), roomy());
        let db = place.open();
        db.wait_idle().unwrap();
        place.faults.inject(Fault::on(call).path_ending(suffix).nth(nth).errno(errno));
        let outcome = db.gc(GcGoal::Until(1.0));
        let triggered = place.faults.triggered() > 0;
        place.faults.heal();
        if let Err(error) = outcome {
            assert!(triggered, "{what}: {error}");
            let clean = [ErrorKind::Io, ErrorKind::NoSpace, ErrorKind::ReadOnly].contains(&error.kind());
            assert!(clean, "{what}: {error}");
        }
        assert_holds(&db, &model, &what);
        drop(db.close());
        assert_recovers(&place.path(), &model, &what);
        if !triggered {
            assert!(nth > 1, "{call:?} of {suffix:?} is never called");
            return;
        }
    }
}

#[test]
fn each_call_of_a_hole_may_fail() {
    for (call, suffix) in [
        (Call::PunchHole, ".vlog"),
        (Call::OpenWrite, ".vlog"),
        (Call::Length, ".vlog"),
        (Call::Write, ""),
        (Call::SyncData, ""),
        (Call::Read, ".vlog"),
    ] {
        fail_each(call, suffix, EIO);
    }
    fail_each(Call::Write, "", ENOSPC);
    fail_each(Call::PunchHole, ".vlog", ENOSPC);
}

/// I-04, I-13: the edit is durable before the first hole is there, and a crash in between loses neither.
#[test]
fn a_crash_between_any_two_steps_loses_nothing() {
    let (start, model) = start();
    let db = start.open();
    db.wait_idle().unwrap();
    let copies = start.copies_at_each_change(|| {
        let done = db.gc(GcGoal::Once).unwrap();
        assert!(done.punched > 0, "{done:?}");
    });
    let step = |text: &str| copies.iter().position(|(_, what)| what.contains(text)).unwrap();
    let order = [step("Write of MANIFEST"), step("SyncData of MANIFEST"), step("PunchHole")];
    assert!(order.is_sorted(), "{copies:?}");
    let holes = db.stats().hole_bytes;
    drop(db);
    for (path, what) in &copies[order[2]..] {
        // The copies have no holes in their files, only in their manifest: they are punched again.
        let again = Db::open(path, roomy()).unwrap();
        again.wait_idle().unwrap();
        let stats = again.stats();
        assert_eq!((stats.hole_bytes, stats.leaving_bytes), (holes, 0), "{what}");
        let lengths: u64 = stats.segments.iter().map(|segment| segment.bytes).sum();
        assert!(allocated(path) <= lengths - holes + (64 << 10), "{what}");
    }
    for (path, what) in copies {
        assert_recovers(&path, &model, &what);
    }
}
