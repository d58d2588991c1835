//! Garbage collection in a world that fails: no space, calls that fail one after the other, a crash between any two
//! calls. Errors are clean, nothing is lost, nothing is left over once the database has been opened again.

use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::garbage::{
    Content, KEYS, assert_holds, assert_holds_at, assert_no_orphans, assert_recovers, cold_files, compact,
    delete, fill, half_dead, quiet,
};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Watchdog, assert_clean, open};
use tamarack::testing::{Call, EIO, ENOSPC, Fault};
use tamarack::{ErrorKind, GcGoal, Options, ReadOptions};

/// A closed database to start from: half of it is dead, some is hidden by level 0, some was collected before.
struct Start {
    place: Place,
    model: Content,
}

impl Start {
    fn new() -> Self {
        let place = Place::new(quiet());
        let db = place.open();
        let mut model = half_dead(&db);
        db.gc(GcGoal::Once).unwrap();
        fill(&db, &mut model, (0..KEYS).step_by(3), 2);
        delete(&db, &mut model, (0..KEYS).step_by(10));
        db.flush().unwrap();
        assert!(db.stats().moved_segments > 0);
        db.close().unwrap();
        Self { place, model }
    }

    fn copy(&self, options: Options) -> Place {
        Place::with_copy(&self.place.path(), options)
    }
}

#[test]
fn a_full_disk_stops_a_collection_and_nothing_else() {
    let start = Start::new();
    let (mut refused, mut done) = (0, 0);
    for quota in (0..24_000).step_by(400) {
        let what = format!("{quota} bytes left");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        let place = start.copy(quiet());
        let mut model = start.model.clone();
        let db = place.open();
        // Writes need no more room than the segment they go to, which is there already.
        fill(&db, &mut model, [0], 3);
        db.wait_idle().unwrap();
        place.faults.set_quota(Some(place.faults.space_used() + quota));
        for _ in 0..3 {
            match db.gc(GcGoal::Until(1.0)) {
                Ok(_) => done += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NoSpace, "{what}: {error}");
                    refused += 1;
                }
            }
        }
        assert_holds(&db, &model, &what);
        place.faults.set_quota(None);
        fill(&db, &mut model, (0..KEYS).step_by(5), 4);
        db.flush().unwrap();
        let after = db.gc(GcGoal::Until(1.0)).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(after.segments > 0, "{what}");
        assert_holds(&db, &model, &what);
        db.close().unwrap();
        assert_recovers(&place.path(), &place.options, &model, &what);
    }
    assert!(refused > 5 && done > 5, "{refused} refused, {done} done");
}

/// Collects with the first, the second, ... call failing, until there are no more calls.
fn fail_each(start: &Start, call: Call, suffix: &str, errno: i32, prepare: impl Fn(Fault) -> Fault) {
    let mut struck = 0;
    for nth in 1.. {
        let what = format!("{call:?} number {nth} of {suffix:?} fails with {errno}");
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, what.clone());
        let place = start.copy(quiet());
        let mut model = start.model.clone();
        let db = place.open();
        db.wait_idle().unwrap();
        place.faults.inject(prepare(Fault::on(call).path_ending(suffix).nth(nth).errno(errno)));
        let outcome = db.gc(GcGoal::Until(1.0));
        let triggered = place.faults.triggered() > 0;
        place.faults.heal();
        if let Err(error) = &outcome {
            assert!(triggered, "{what}: {error}");
            // Of several collections one may find that the manifest failed just behind the edit of another.
            let manifest = error.kind() == ErrorKind::ReadOnly && suffix.is_empty();
            let clean = [ErrorKind::Io, ErrorKind::NoSpace].contains(&error.kind());
            assert!(clean || manifest, "{what}: {error}");
        }
        assert_holds(&db, &model, &what);
        // The manifest alone is not written again after a failure.
        if !suffix.is_empty() {
            fill(&db, &mut model, (0..KEYS).step_by(6), 5);
            db.flush().unwrap_or_else(|error| panic!("{what}: the database is poisoned: {error}"));
            db.gc(GcGoal::Until(1.0)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_holds(&db, &model, &what);
            db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
        } else {
            // Whether it can be closed in peace depends on what failed; it must end.
            drop(db.close());
        }
        assert_recovers(&place.path(), &place.options, &model, &what);
        if !triggered {
            break;
        }
        struck += 1;
    }
    assert!(struck > 0, "{call:?} of {suffix:?} is never called");
}

#[test]
fn each_call_on_a_cold_segment_may_fail() {
    let start = Start::new();
    for call in [Call::Create, Call::Write, Call::SyncData] {
        for errno in [EIO, ENOSPC] {
            fail_each(&start, call, ".cold", errno, |fault| fault);
        }
    }
    fail_each(&start, Call::Write, ".cold", EIO, Fault::short_write);
    fail_each(&start, Call::Write, ".cold", ENOSPC, Fault::for_ever);
    fail_each(&start, Call::RemoveFile, ".cold", EIO, |fault| fault);
}

#[test]
fn each_look_at_a_victim_may_fail() {
    let start = Start::new();
    for call in [Call::Read, Call::OpenRead, Call::Advise] {
        for suffix in [".vlog", ".cold", ".table"] {
            fail_each(&start, call, suffix, EIO, |fault| fault);
        }
    }
}

#[test]
fn each_change_of_the_manifest_and_the_directory_may_fail() {
    let start = Start::new();
    for errno in [EIO, ENOSPC] {
        fail_each(&start, Call::Write, "", errno, |fault| fault);
        fail_each(&start, Call::SyncData, "", errno, |fault| fault);
        fail_each(&start, Call::SyncDir, "", errno, |fault| fault);
    }
    fail_each(&start, Call::Write, "", EIO, Fault::short_write);
    fail_each(&start, Call::RemoveFile, ".vlog", EIO, |fault| fault);
    fail_each(&start, Call::SyncData, "", EIO, Fault::for_ever);
}

#[test]
fn a_cold_segment_that_cannot_be_removed_is_no_obstacle_to_the_next() {
    let start = Start::new();
    let place = start.copy(quiet());
    let db = place.open();
    db.wait_idle().unwrap();
    place.faults.inject(Fault::on(Call::SyncData).path_ending(".cold").for_ever());
    place.faults.inject(Fault::on(Call::RemoveFile).path_ending(".cold").for_ever());
    let known = cold_files(&place.path()).len();
    for attempt in 1..=3 {
        assert_eq!(db.gc(GcGoal::Once).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(cold_files(&place.path()).len(), known + attempt, "each leaves a file of its own");
    }
    place.faults.heal();
    assert!(db.gc(GcGoal::Once).unwrap().segments > 0);
    assert_holds(&db, &start.model, "healed");
    db.close().unwrap();
    assert_recovers(&place.path(), &place.options, &start.model, "healed");
}

/// I-04, I-09: records are durable where they have gone before the manifest says so, and that is durable before the
/// victims go.
#[test]
fn a_collection_takes_its_steps_in_an_order_that_survives_a_power_failure() {
    let start = Start::new();
    let place = start.copy(quiet());
    let db = place.open();
    db.wait_idle().unwrap();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    place.faults.watch(move |call, path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        seen.lock().unwrap().push((call, name));
    });
    let before = cold_files(&place.path());
    db.gc(GcGoal::Once).unwrap();
    place.faults.unwatch();
    let cold = cold_files(&place.path()).into_iter().find(|name| !before.contains(name)).unwrap();
    let calls = calls.lock().unwrap();
    let first = |wanted: Call, name: &str| {
        calls.iter().position(|(call, of)| *call == wanted && of.starts_with(name)).unwrap()
    };
    let last_write = calls.iter().rposition(|(call, of)| *call == Call::Write && *of == cold).unwrap();
    let order = [
        first(Call::Create, &cold),
        last_write,
        first(Call::SyncData, &cold),
        first(Call::SyncDir, "db"),
        first(Call::Write, "MANIFEST"),
        first(Call::SyncData, "MANIFEST"),
        calls.iter().position(|(call, _)| *call == Call::RemoveFile).unwrap(),
    ];
    assert!(order.is_sorted(), "{order:?} of {calls:#?}");
}

fn assert_survives(path: &Path, model: &Content, what: &str) {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, what);
    let paranoid = Options { paranoid_checks: true, ..quiet() };
    let readers = Options { read_only: true, ..quiet() };
    let db = open(path, &readers).unwrap_or_else(|error| panic!("{what}: read-only: {error}"));
    assert_holds_at(&db, model, &ReadOptions::default(), what);
    drop(db);
    let db = open(path, &paranoid).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_no_orphans(&db, path, what);
    drop(db);
    assert_recovers(path, &quiet(), model, what);
}

#[test]
fn a_crash_between_any_two_steps_of_a_collection_loses_nothing() {
    let start = Start::new();
    let place = start.copy(quiet());
    let db = place.open();
    db.wait_idle().unwrap();
    let copies = place.copies_at_each_change(|| {
        let done = db.gc(GcGoal::Until(1.0)).unwrap();
        assert!(done.records > 0 && done.hidden > 0, "{done:?}");
    });
    assert!(copies.len() > 8, "{copies:?}");
    drop(db);
    for (path, what) in copies {
        assert_survives(&path, &start.model, &what);
    }
}

#[test]
fn a_crash_between_any_two_steps_of_what_follows_loses_nothing() {
    let start = Start::new();
    let place = start.copy(quiet());
    let db = place.open();
    db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(db.stats().moved_segments > 1);
    // Pointers are replaced, moved ids forgotten, and what was left behind is dropped.
    let copies = place.copies_at_each_change(|| {
        compact(&db);
        assert_eq!(db.stats().moved_segments, 0);
        db.gc(GcGoal::Until(1.0)).unwrap();
    });
    assert_clean(&db);
    drop(db);
    for (path, what) in copies {
        assert_survives(&path, &start.model, &what);
    }
}
