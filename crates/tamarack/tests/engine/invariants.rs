//! One test for each invariant of `docs/INVARIANTS.md` that can be broken from outside; the rest are tried beside
//! the code that holds them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::open;
use crate::common::time::unwatched_env;
use tamarack::testing::{Call, Fault, FaultEnv};
use tamarack::{Db, ErrorKind, IterOptions, Options, ReadOptions};

fn small() -> Options {
    Options {
        memtable_bytes: 256 << 10,
        segment_bytes_max: 64 << 10,
        inline_value_max: 0,
        ..Options::default()
    }
}

fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().contains(suffix))
        .collect();
    paths.sort();
    paths
}

fn value(key: u32, round: u8) -> Vec<u8> {
    key.to_le_bytes().iter().copied().cycle().take(200).chain([round]).collect()
}

fn fill(db: &Db, keys: u32, round: u8) {
    for key in 0..keys {
        db.put(&key.to_le_bytes(), &value(key, round)).unwrap();
    }
}

fn check_filled(db: &Db, keys: u32, round: u8) {
    for key in 0..keys {
        assert_eq!(db.get(&key.to_le_bytes()).unwrap(), Some(value(key, round)), "key {key}");
    }
}

/// I-01: whatever a reader finds while writers write, its record is in the log and whole. I-02: once a reader
/// has seen a write, nobody sees a state without it.
#[test]
fn a_pointer_that_is_seen_leads_to_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), &small()).unwrap();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..4000 {
                    let number = written.fetch_add(1, Ordering::Relaxed) as u32;
                    db.put(&(number % 64).to_le_bytes(), &value(number % 64, 0)).unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut seen = [false; 64];
                while written.load(Ordering::Relaxed) < 8000 {
                    for key in 0..64_u32 {
                        match db.get(&key.to_le_bytes()).unwrap() {
                            Some(found) => assert_eq!(found, value(key, 0)),
                            None => assert!(!seen[key as usize], "key {key} was seen and is gone"),
                        }
                        seen[key as usize] |= db.contains(&key.to_le_bytes()).unwrap();
                    }
                }
            });
        }
    });
}

/// I-04: when the manifest cannot be synced, no file that the edit drops is removed.
#[test]
fn nothing_is_removed_before_its_edit_is_durable() {
    let directory = tempfile::tempdir().unwrap();
    let (env, faults) = FaultEnv::new(unwatched_env());
    let db = Db::open_with_env(directory.path(), small(), &env).unwrap();
    fill(&db, 1000, 0);
    db.flush().unwrap();
    fill(&db, 1000, 1);
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let before = files(directory.path(), ".table");
    let manifest = files(directory.path(), "MANIFEST").pop().unwrap();
    let name = manifest.file_name().unwrap().to_str().unwrap().to_owned();
    // The name with which it was made.
    faults.inject(Fault::on(Call::SyncData).path_ending(&format!("{name}.tmp")).for_ever());
    db.compact_range(None, None).unwrap_err();
    for path in &before {
        assert!(path.exists(), "{} was removed", path.display());
    }
    check_filled(&db, 1000, 1);
    drop(db);
    faults.heal();
    check_filled(&open(directory.path(), &small()).unwrap(), 1000, 1);
}

/// I-05 and I-09: when the log cannot be synced, no table that points into it is installed, the log head stays,
/// and everything is replayed.
#[test]
fn no_table_points_to_log_that_is_not_durable() {
    let directory = tempfile::tempdir().unwrap();
    let (env, faults) = FaultEnv::new(unwatched_env());
    let db = Db::open_with_env(directory.path(), small(), &env).unwrap();
    fill(&db, 100, 0);
    faults.inject(Fault::on(Call::SyncData).path_ending(".vlog").for_ever());
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.stats().levels.iter().map(|level| level.tables).sum::<u64>(), 0);
    assert_eq!(db.put(b"x", b"y").unwrap_err().kind(), ErrorKind::ReadOnly);
    check_filled(&db, 100, 0);
    drop(db);
    faults.heal();
    let db = open(directory.path(), &small()).unwrap();
    assert_eq!(db.recovery().operations, 100);
    check_filled(&db, 100, 0);
}

/// I-06 and I-07: a segment in which nothing lives any more is removed, but not while an iterator can reach it,
/// and never before what made it dead is durable: an image of the directory taken then holds every newer value.
#[test]
fn a_dead_segment_stays_while_it_can_be_reached() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), &small()).unwrap();
    fill(&db, 1000, 0);
    let mut old = db.iter(&IterOptions::default()).unwrap();
    fill(&db, 1000, 1);
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    let first = directory.path().join("000001.vlog");
    assert!(first.exists(), "an iterator still reaches it");
    old.seek_to_first().unwrap();
    let mut count = 0;
    while old.valid() {
        assert_eq!(*old.value().unwrap().last().unwrap(), 0, "an iterator sees one moment");
        count += 1;
        old.next().unwrap();
    }
    assert_eq!(count, 1000);
    drop(old);
    db.wait_idle().unwrap();
    assert!(!first.exists(), "nobody can reach it any more");
    let image = tempfile::tempdir().unwrap();
    for path in files(directory.path(), "") {
        std::fs::copy(&path, image.path().join(path.file_name().unwrap())).unwrap();
    }
    check_filled(&open(image.path(), &small()).unwrap(), 1000, 1);
    check_filled(&db, 1000, 1);
}

/// I-08: a damaged value, key or length is an error that names the place; skipping checksums skips the value's
/// alone.
#[test]
fn no_value_is_returned_unchecked() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), &small()).unwrap();
    db.put(b"key", &[7; 500]).unwrap();
    db.flush().unwrap();
    let log = files(directory.path(), ".vlog").remove(0);
    let whole = std::fs::read(&log).unwrap();
    let record = 80;
    let unverified = ReadOptions { verify_checksums: false, ..ReadOptions::default() };
    for (at, part) in [(0, "checksum"), (4, "value checksum"), (8, "length"), (12, "key length"), (24, "key")]
    {
        flip(&log, &whole, record + at);
        for options in [&ReadOptions::default(), &unverified] {
            let error = db.get_with(b"key", options).expect_err(part);
            let place = error.as_corruption().expect(part);
            assert_eq!((&place.file, place.offset), (&log, record as u64), "{part}");
        }
    }
    flip(&log, &whole, record + 24 + 3 + 100);
    assert_eq!(db.get(b"key").unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!(db.get_with(b"key", &unverified).unwrap().unwrap().len(), 500);
}

/// Flips one byte of `whole` in the file, in place, so that an open file sees it.
fn flip(path: &Path, whole: &[u8], at: usize) {
    let mut bytes = whole.to_vec();
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
}
