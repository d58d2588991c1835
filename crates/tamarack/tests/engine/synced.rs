//! Small writes that are synced one by one, for which blocks of the log are filled before they are written to.

use tamarack::testing::{Call, ENOSPC, Fault, FaultEnv, posix_env};
use tamarack::{Db, Options, WriteBatch, WriteOptions};

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

/// A sync appends a mark, which is nothing to be synced by the next one.
#[test]
fn nothing_is_synced_twice() {
    let directory = fast_directory();
    let db = Db::open(directory.path(), options()).unwrap();
    db.sync().unwrap();
    assert_eq!(db.stats().syncs, 0, "there is nothing yet");
    for number in 0..20 {
        db.put(&key(number), &value(number)).unwrap();
        db.sync().unwrap();
        let once = db.stats();
        for _ in 0..3 {
            db.sync().unwrap();
            db.write(&WriteBatch::new(), &WriteOptions { sync: true }).unwrap();
        }
        let again = db.stats();
        assert_eq!((again.syncs, again.log_bytes_written), (once.syncs, once.log_bytes_written), "{number}");
        assert_eq!(once.syncs, u64::from(number) + 1);
    }
    // The head of a segment that is begun behind the last batch waits for the next one.
    let mut number = 20;
    while db.stats().log_bytes_written < options().segment_bytes_max {
        db.put_with(&key(number), &value(number), &WriteOptions { sync: true }).unwrap();
        number += 1;
    }
    check(&db, number);
    db.close().unwrap();
    check(&Db::open(directory.path(), options()).unwrap(), number);
}
