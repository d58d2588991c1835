//! Small writes that are synced one by one, for which blocks of the log are filled before they are written to.

use tamarack::testing::{Call, ENOSPC, Fault, FaultEnv, posix_env};
use tamarack::{Db, Options, WriteOptions};

use crate::common::{fast_directory, tiny_without_gc};

fn options() -> Options {
    Options {
        segment_bytes_max: 2 << 20,
        recovery_log_max: 64 << 20,
        row_cache_bytes: 0,
        ..tiny_without_gc()
    }
}

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Of all sizes around what blocks are filled for.
fn value(number: u32) -> Vec<u8> {
    let len = if number.is_multiple_of(50) { 40_000 } else { 200 + number as usize * 131 % 1500 };
    vec![number as u8 | 1; len]
}

/// Whether write `number` is synced: all for a while, then none, then some.
fn is_synced(number: u32) -> bool {
    match number / 1000 {
        0 | 3 => true,
        1 => false,
        _ => number.is_multiple_of(9),
    }
}

fn check(db: &Db, written: u32) {
    for number in 0..written {
        assert!(db.get(&key(number)).unwrap() == Some(value(number)), "{number}");
    }
}

#[test]
fn zeros_are_written_over_nothing() {
    const WRITES: u32 = 4000;
    let directory = fast_directory();
    let db = Db::open(directory.path(), options()).unwrap();
    for number in 0..WRITES {
        db.put_with(&key(number), &value(number), &WriteOptions { sync: is_synced(number) }).unwrap();
    }
    check(&db, WRITES);
    db.close().unwrap();
    check(&Db::open(directory.path(), options()).unwrap(), WRITES);
}

/// Zeros that cannot be written are those that are there anyhow.
#[test]
fn blocks_that_cannot_be_filled_are_used_as_they_are() {
    let directory = fast_directory();
    let (env, faults) = FaultEnv::new(posix_env());
    let db = Db::open_with_env(directory.path(), options(), &env).unwrap();
    faults.inject(Fault::on(Call::Write).path_ending(".vlog").errno(ENOSPC).for_ever());
    for number in (1..1000).filter(|number: &u32| !number.is_multiple_of(50)) {
        db.put_with(&key(number), &value(number), &WriteOptions::synced()).unwrap();
    }
    assert!(faults.triggered() > 1);
    faults.heal();
    drop(db);
    let db = Db::open(directory.path(), options()).unwrap();
    for number in (1..1000).filter(|number: &u32| !number.is_multiple_of(50)) {
        assert_eq!(db.get(&key(number)).unwrap(), Some(value(number)), "{number}");
    }
}

/// Files of the log.
fn segments(directory: &std::path::Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".vlog")).count()
}

/// A sync writes all of a large page in which one byte has changed.
#[test]
fn the_log_goes_on_behind_large_pages_once_little_is_written_between_syncs() {
    const LARGE_VALUE: usize = 1 << 20;
    let options = || Options { segment_bytes_max: 64 << 20, ..Options::default() };
    let directory = fast_directory();
    let db = Db::open(directory.path(), options()).unwrap();
    let synced = WriteOptions::synced();
    let mut expected = Vec::new();
    let mut put = |number: u32, len: usize, options: &WriteOptions| {
        let value = vec![number as u8 | 1; len];
        db.put_with(&key(number), &value, options).unwrap();
        expected.push(value);
        segments(directory.path())
    };
    for number in 0..3 {
        assert_eq!(put(number, LARGE_VALUE, &WriteOptions::default()), 1);
    }
    assert_eq!(put(3, 1000, &synced), 1, "nobody knew of a sync when this was written");
    for number in 4..100 {
        assert_eq!(put(number, 1000, &synced), 2);
    }
    // As much as allows large pages again.
    for number in 100..150 {
        put(number, LARGE_VALUE, &WriteOptions::default());
    }
    let all = put(150, 1000, &synced);
    assert_eq!(put(151, 1000, &synced), all, "the last two syncs were far apart");
    assert_eq!(put(152, 1000, &synced), all + 1);
    db.close().unwrap();
    let db = Db::open(directory.path(), options()).unwrap();
    for (number, value) in (0..).zip(expected) {
        assert!(db.get(&key(number)).unwrap() == Some(value), "{number}");
    }
}
