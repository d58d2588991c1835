//! Calls that fail, targets that are refused, and what an interruption leaves.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tamarack::testing::{Call, Fault};
use tamarack::{Db, ErrorKind, GcPolicy, Options};

use super::{Model, churn, churn_and_collect};
use crate::common::place::Place;
use crate::common::{
    PATIENCE_SECONDS, Random, Watchdog, assert_clean, content, copy_directory, file_names, open, tiny,
};

/// One database for all failures of calls.
fn template() -> (Place, Model) {
    let place = Place::new(tiny());
    let (mut model, mut random) = (Model::new(), Random::new(5));
    let db = place.open();
    churn_and_collect(&db, &mut model, &mut random);
    db.close().unwrap();
    std::fs::rename(place.path(), place.beside("template")).unwrap();
    (place, model)
}

/// Makes a checkpoint while the `nth` call from now fails, and all later ones, too, if it is `lasting`. Returns whether
/// there was such a call.
fn checkpoint_with_fault(place: &Place, model: &Model, nth: u64, lasting: bool) -> bool {
    let what = format!("call {nth}{}", if lasting { " and all later ones" } else { "" });
    copy_directory(&place.beside("template"), &place.path());
    let db = place.open();
    db.put(b"new", &[1; 100]).unwrap();
    let mut model = model.clone();
    model.insert(b"new".to_vec(), vec![1; 100]);
    let before = place.faults.triggered();
    let fault = Fault::on_any().nth(nth);
    place.faults.inject(if lasting { fault.for_ever() } else { fault });
    let outcome = db.checkpoint(place.beside("deep/copy"));
    let triggered = place.faults.triggered() > before;
    place.faults.heal();
    assert!(content(&db) == model, "{what}: the original has changed");
    match &outcome {
        Ok(_) => {
            place.assert_copy("deep/copy", &model);
            Db::destroy(place.beside("deep/copy")).unwrap();
        }
        Err(error) => {
            let expected = [ErrorKind::Io, ErrorKind::ReadOnly];
            assert!(triggered && expected.contains(&error.kind()), "{what}: {error}");
            assert!(
                lasting || !place.beside("deep").exists(),
                "{what}: something was left behind by {error}"
            );
            assert_refused_or_whole(place, &model, &what);
            Db::destroy(place.beside("deep/copy")).unwrap();
        }
    }
    drop(std::fs::remove_dir(place.beside("deep")));
    drop(db);
    let db = open(&place.path(), &tiny()).unwrap();
    assert!(content(&db) == model, "{what}: the original has lost something");
    assert_clean(&db);
    triggered
}

/// A checkpoint that failed and could not be removed either is no database, unless nothing but the last sync is missing.
fn assert_refused_or_whole(place: &Place, model: &Model, what: &str) {
    match open(&place.beside("deep/copy"), &Options { create_if_missing: false, ..tiny() }) {
        Ok(copy) => assert!(content(&copy) == *model, "{what}: a database of something else was left behind"),
        Err(error) => {
            let expected = [ErrorKind::Corruption, ErrorKind::InvalidArgument];
            assert!(expected.contains(&error.kind()), "{what}: {error}");
        }
    }
}

#[test]
fn every_call_may_fail() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "checkpoints in which one call fails");
    let (place, model) = template();
    let calls = (1..).find(|&nth| !checkpoint_with_fault(&place, &model, nth, false)).unwrap();
    assert!(calls > 30, "a checkpoint makes more than {calls} calls");
}

#[test]
fn all_calls_may_fail_from_some_call_on() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "checkpoints in which calls fail for ever");
    let (place, model) = template();
    let calls = (1..).find(|&nth| !checkpoint_with_fault(&place, &model, nth, true)).unwrap();
    assert!(calls > 30, "a checkpoint makes more than {calls} calls");
}

#[test]
fn of_a_checkpoint_that_failed_all_goes_that_can_be_removed() {
    let place = Place::new(tiny());
    let (mut model, mut random) = (Model::new(), Random::new(8));
    let db = place.open();
    churn_and_collect(&db, &mut model, &mut random);
    // Both checkpoints have the same tables.
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db.checkpoint(place.beside("whole")).unwrap();
    let names = file_names(&place.beside("whole"));
    let stays = names.iter().find(|name| name.ends_with(".table")).expect("there are tables");
    place.faults.inject(Fault::on(Call::Rename).path_ending("copy/CURRENT"));
    place.faults.inject(Fault::on(Call::RemoveFile).path_ending(&format!("copy/{stays}")));
    let error = db.checkpoint(place.beside("copy")).unwrap_err();
    assert_eq!((error.kind(), place.faults.triggered()), (ErrorKind::Io, 2), "{error}");
    let left = file_names(&place.beside("copy"));
    assert!(names.len() > 3 && left == [stays.clone()], "{left:?} of {names:?}");
}

#[test]
fn an_interrupted_checkpoint_is_refused_and_can_be_destroyed() {
    let place = Place::new(tiny());
    let (mut model, mut random) = (Model::new(), Random::new(6));
    let db = place.open();
    churn_and_collect(&db, &mut model, &mut random);
    db.checkpoint(place.beside("copy")).unwrap();
    // What a crash may leave: any of the files, but not CURRENT; in the end the manifest alone.
    std::fs::remove_file(place.beside("copy/CURRENT")).unwrap();
    let mut names = file_names(&place.beside("copy"));
    names.sort_by_key(|name| name.starts_with("MANIFEST"));
    for name in names {
        let error = open(&place.beside("copy"), &tiny()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.to_string().contains("CURRENT"), "{error}");
        assert!(error.to_string().contains("a checkpoint that was interrupted"), "{error}");
        let error = db.checkpoint(place.beside("copy")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        std::fs::remove_file(place.beside("copy").join(name)).unwrap();
    }
    std::fs::remove_dir(place.beside("copy")).unwrap();

    db.checkpoint(place.beside("copy")).unwrap();
    std::fs::remove_file(place.beside("copy/CURRENT")).unwrap();
    Db::destroy(place.beside("copy")).unwrap();
    assert!(!place.beside("copy").exists());
    db.checkpoint(place.beside("copy")).unwrap();
    place.assert_copy("copy", &model);
}

/// What both have is neither written nor cut, though without a manifest nobody knows that it was sealed.
#[test]
fn what_repairs_an_interrupted_checkpoint_leaves_the_original_alone() {
    let place = Place::new(Options { gc: GcPolicy::Off, ..tiny() });
    let (mut model, mut random) = (Model::new(), Random::new(11));
    let db = place.open();
    churn(&db, &mut model, &mut random, 600);
    db.checkpoint(place.beside("copy")).unwrap();
    let copy = place.beside("copy");
    db.close().unwrap();
    // The last segment alone is a copy, and may be missing, too.
    let names = file_names(&copy);
    let is_own = |name: &&String| std::fs::metadata(copy.join(name)).unwrap().nlink() == 1;
    let log = names.iter().filter(|name| name.ends_with(".vlog"));
    let (own, common): (Vec<&String>, Vec<&String>) = log.partition(is_own);
    let goes = names.iter().filter(|name| *name == "CURRENT" || name.starts_with("MANIFEST"));
    goes.chain(own).for_each(|name| std::fs::remove_file(copy.join(name)).unwrap());
    let shared = || {
        let files = common.iter().map(|name| std::fs::metadata(place.path().join(name)).unwrap());
        files.map(|of| (of.len(), of.mtime(), of.mtime_nsec())).collect::<Vec<_>>()
    };
    let before = shared();
    assert!(!before.is_empty(), "segments of the log are shared");
    Db::repair(&copy, &tiny()).unwrap();
    let repaired = open(&copy, &tiny()).unwrap();
    churn(&repaired, &mut Model::new(), &mut random, 100);
    assert_clean(&repaired);
    repaired.close().unwrap();
    assert_eq!(shared(), before);
    let db = place.open();
    assert!(content(&db) == model);
    assert_clean(&db);
}

#[test]
fn a_target_that_is_in_use_is_left_alone() {
    let place = Place::new(tiny());
    let db = place.open();
    db.put(b"key", b"value").unwrap();
    let refused = |path: &Path| {
        let error = db.checkpoint(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("empty directory"), "{error}");
    };
    std::fs::create_dir(place.beside("full")).unwrap();
    std::fs::write(place.beside("full/notes"), b"mine").unwrap();
    std::fs::write(place.beside("file"), b"mine").unwrap();
    refused(&place.beside("full"));
    refused(&place.beside("file"));
    refused(&place.path());
    assert_eq!(file_names(&place.beside("full")), ["notes"]);
    assert_eq!(std::fs::read(place.beside("file")).unwrap(), b"mine");
    assert_eq!(content(&db).len(), 1);

    // An empty directory will do, and stays when the checkpoint fails.
    std::fs::create_dir(place.beside("copy")).unwrap();
    place.faults.inject(Fault::on(Call::Rename).path_ending("CURRENT"));
    assert_eq!(db.checkpoint(place.beside("copy")).unwrap_err().kind(), ErrorKind::Io);
    assert!(file_names(&place.beside("copy")).is_empty());
    db.checkpoint(place.beside("copy")).unwrap();
    place.assert_copy("copy", &content(&db));

    db.clone().close().unwrap();
    assert_eq!(db.checkpoint(place.beside("late")).unwrap_err().kind(), ErrorKind::Closed);
    assert!(!place.beside("late").exists());
}

#[test]
fn everything_is_synced_before_a_copy_is_in_force() {
    let place = Place::new(tiny());
    let (mut model, mut random) = (Model::new(), Random::new(7));
    let db = place.open();
    churn(&db, &mut model, &mut random, 200);
    place.faults.set_unsupported(Call::Link, true);
    place.faults.reset_counts();
    db.checkpoint(place.beside("outer/copy")).unwrap();
    for name in file_names(&place.beside("outer/copy")) {
        // What gets its name once it is whole is known by the one it was made with.
        let is_renamed = name == "CURRENT" || name.starts_with("MANIFEST");
        let path = format!("outer/copy/{name}{}", if is_renamed { ".tmp" } else { "" });
        assert_eq!(place.faults.count_of(Call::SyncData, &path), 1, "{name} was not synced");
    }
    // The names of the copies, that of the manifest, that of CURRENT.
    assert_eq!(place.faults.count_of(Call::SyncDir, "outer/copy"), 3);
    assert_eq!(place.faults.count_of(Call::SyncDir, "outer"), 1, "the name of the copy");
    let root = place.root().file_name().unwrap().to_str().unwrap();
    assert_eq!(place.faults.count_of(Call::SyncDir, root), 1, "the name of the directory around it");
}
