//! Work that is counted, not timed: reads for a get, calls for a put.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests prepare and inspect the real world"
)]

mod common;

use common::time::unwatched_env;
use tamarack::testing::{Call, FaultEnv};
use tamarack::{Db, Options};

const KEYS: u32 = 5000;

fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_le_bytes()
}

/// With the index in memory, a get of a value in the log is one read of the log and no other; so is the worst case
/// that `stats` promises at least as many.
#[test]
fn a_get_is_one_read_when_the_index_is_cached() {
    let directory = tempfile::tempdir().unwrap();
    let (env, faults) = FaultEnv::new(unwatched_env());
    let db = Db::open_with_env(directory.path(), Options::default(), &env).unwrap();
    for number in 0..KEYS {
        db.put(&key(number), &[number as u8; 1024]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    for number in 0..KEYS {
        assert!(db.contains(&key(number)).unwrap());
    }
    faults.reset_counts();
    for number in 0..KEYS {
        assert_eq!(db.get(&key(number)).unwrap().unwrap(), [number as u8; 1024]);
    }
    assert_eq!(faults.count_of(Call::Read, ".vlog"), u64::from(KEYS));
    assert_eq!(faults.count_of(Call::Read, ".table"), 0);
    assert!(db.stats().worst_case_reads >= 1);
}

/// A put into a mapped log makes no system call: ten thousand make a few, for space.
#[test]
fn puts_make_no_system_calls() {
    let directory = tempfile::tempdir().unwrap();
    let (env, faults) = FaultEnv::new(unwatched_env());
    let db = Db::open_with_env(directory.path(), Options::default(), &env).unwrap();
    db.put(b"first", b"begins the log").unwrap();
    faults.reset_counts();
    for number in 0..10_000_u32 {
        db.put(&key(number), &[1; 1024]).unwrap();
    }
    let calls = [Call::Write, Call::SyncData, Call::Allocate, Call::Read].map(|call| faults.count(call));
    assert!(calls.iter().sum::<u64>() < 20, "writes, syncs, reservations, reads: {calls:?}");
    faults.reset_counts();
    db.sync().unwrap();
    assert_eq!(faults.count(Call::SyncData), 1, "one sync serves them all");
}
