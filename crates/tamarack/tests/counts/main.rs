//! Work that is counted, not timed, so that what costs more fails on any machine: calls of the operating system and the bytes
//! that they move, what is written in the background, allocations.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests prepare and inspect the real world"
)]

mod allocations;
#[path = "../common/mod.rs"]
mod common;
#[path = "../common/counted.rs"]
mod counted;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::time::unwatched_env;
use common::{assert_clean, fast_directory};
use tamarack::testing::{Call, Env, FaultEnv, Faults};
use tamarack::{Db, GcGoal, IterOptions, Options, ReadOptions, WriteOptions};
use tempfile::TempDir;

const KEYS: u32 = 5000;

/// Keys that follow each other have nothing to do with each other.
fn key(number: u32) -> [u8; 4] {
    number.wrapping_mul(2_654_435_761).to_le_bytes()
}

/// A database with [`KEYS`] values of 1 KiB, in the order in which `order` gives their keys.
fn filled(order: impl Fn(u32) -> [u8; 4]) -> (TempDir, Db, Arc<Faults>) {
    let (env, faults) = FaultEnv::new(unwatched_env());
    let (directory, db) = filled_in(&env, Options::default(), order);
    (directory, db, faults)
}

fn filled_in(env: &Env, options: Options, order: impl Fn(u32) -> [u8; 4]) -> (TempDir, Db) {
    let directory = fast_directory();
    let db = Db::open_with_env(directory.path(), options, env).unwrap();
    for number in 0..KEYS {
        db.put(&order(number), &[number as u8; 1024]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    (directory, db)
}

/// With the index in memory, a get of a value in the log is one read of the log and no other; so is the worst case
/// that `stats` promises at least as many.
#[test]
fn a_get_is_one_read_when_the_index_is_cached() {
    let (_directory, db, faults) = filled(key);
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

/// A put into a mapped log makes no system call: ten thousand make a few, for space. (What is written is read in the background, for
/// the footer.)
#[test]
fn puts_make_no_system_calls() {
    let directory = tempfile::tempdir().unwrap();
    let (env, faults) = FaultEnv::new(unwatched_env());
    let db = Db::open_with_env(directory.path(), Options::default(), &env).unwrap();
    db.put(b"first", b"begins the log").unwrap();
    let (writer, calls) = (thread::current().id(), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&calls);
    faults.watch(move |_, _| {
        counted.fetch_add(u64::from(thread::current().id() == writer), Ordering::Relaxed);
    });
    for number in 0..10_000_u32 {
        db.put(&key(number), &[1; 1024]).unwrap();
    }
    faults.unwatch();
    let calls = calls.load(Ordering::Relaxed);
    assert!((1..20).contains(&calls), "{calls} calls of the thread that writes");
    faults.reset_counts();
    db.sync().unwrap();
    assert_eq!(faults.count(Call::SyncData), 1, "one sync serves them all");
}

/// What a segment's footer says is read while the segment is written, and in memory: not when the segment is full.
#[test]
fn the_log_is_followed_while_it_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let (env, faults) = FaultEnv::new(unwatched_env());
    let options = Options { segment_bytes_max: 4 << 20, ..Options::default() };
    let db = Db::open_with_env(directory.path(), options, &env).unwrap();
    let followed = || faults.bytes_of(Call::Read, ".vlog");
    for number in 0..3000 {
        db.put(&key(number), &[1; 1024]).unwrap();
    }
    let patience = Instant::now() + Duration::from_secs(60);
    while followed() == 0 {
        assert!(Instant::now() < patience, "of 3 MB nothing is read");
        thread::sleep(Duration::from_millis(1));
    }
    for number in 3000..10_000 {
        db.put(&key(number), &[1; 1024]).unwrap();
    }
    db.wait_idle().unwrap();
    let log_bytes = db.stats().log_bytes_written;
    assert!(followed() < log_bytes + log_bytes / 4, "{} of {log_bytes} bytes are read", followed());
    db.flush().unwrap();
    assert_clean(&db);
}

/// Where each small write is synced, the blocks of the log are filled with zeros, once, before they are written to; nowhere else, for that is
/// as much more for the device to write.
#[test]
fn blocks_are_filled_for_small_synced_writes_alone() {
    let write = |puts: u32, value_bytes: usize, synced_every: u32| {
        let directory = tempfile::tempdir().unwrap();
        let (env, faults) = FaultEnv::new(unwatched_env());
        let options = Options { segment_bytes_max: 1 << 20, recovery_log_max: 1 << 30, ..Options::default() };
        let db = Db::open_with_env(directory.path(), options, &env).unwrap();
        for number in 0..puts {
            let sync = number % synced_every == synced_every - 1;
            db.put_with(&key(number), &vec![1; value_bytes], &WriteOptions { sync }).unwrap();
        }
        db.wait_idle().unwrap();
        let written = faults.bytes_of(Call::Write, ".vlog");
        println!(
            "{puts} puts of {value_bytes} bytes, every {synced_every}th synced: {written} bytes by calls"
        );
        written as f64 / (f64::from(puts) * value_bytes as f64)
    };
    let zeros = write(8000, 1000, 1);
    assert!((0.8..1.4).contains(&zeros), "{zeros} bytes of zeros for each byte");
    assert!(write(8000, 1000, 100) < 0.02, "footers");
    assert!(write(8000, 1000, 8001) < 0.02, "footers");
    assert!(write(200, 40_000, 1) < 1.05, "large values go to the file by a call");
}

/// Values are written once, and their index entries a few times: limits are a tenth and a thirtieth of the values.
#[test]
fn a_load_is_written_hardly_more_than_once() {
    for (value_bytes, puts, limit) in [(1024, 40_000_u32, 1.10), (4096, 20_000, 1.03)] {
        let directory = fast_directory();
        // As many flushes and levels as a large database has with ordinary limits.
        let options = Options {
            memtable_bytes: 256 << 10,
            table_bytes_max: 256 << 10,
            level_bytes_base: 128 << 10,
            ..Options::default()
        };
        let db = Db::open_with_env(directory.path(), options, &unwatched_env()).unwrap();
        for number in 0..puts {
            db.put(&[&[7; 12][..], &key(number)].concat(), &vec![number as u8; value_bytes]).unwrap();
            // A flush takes all memtables that wait for one: on a slow machine, several.
            if number % (puts / 5) == 0 {
                db.flush().unwrap();
            }
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let stats = db.stats();
        assert!(stats.flushes >= 5 && stats.compactions >= 3, "{} {}", stats.flushes, stats.compactions);
        let background = stats.flush_bytes_written + stats.compaction_bytes_written;
        let written = (stats.log_bytes_written + background) as f64 / stats.user_bytes_written as f64;
        println!("{value_bytes} B: {written:.4} bytes written for each of the user's");
        assert!(written <= limit, "{value_bytes} B: {written}");
    }
}

/// A value that is not cached costs itself and its header, and one read.
#[test]
fn a_get_reads_what_it_returns() {
    let (_directory, db, faults) = filled(key);
    faults.reset_counts();
    for number in (0..KEYS).step_by(7) {
        db.get(&key(number)).unwrap().unwrap();
    }
    let gets = u64::from(KEYS.div_ceil(7));
    assert_eq!(faults.count_of(Call::Read, ".vlog"), gets);
    let bytes = faults.bytes_of(Call::Read, ".vlog") / gets;
    assert!(bytes < 1024 + 64, "{bytes} bytes for a value of 1024");
}

/// Neighbours in the log are read together.
#[test]
fn a_scan_in_the_order_of_writing_joins_its_reads() {
    let (_directory, db, faults) = filled(u32::to_be_bytes);
    faults.reset_counts();
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    let mut found = 0;
    while iter.valid() {
        assert_eq!(iter.value().unwrap().len(), 1024);
        found += 1;
        iter.next().unwrap();
    }
    assert_eq!(found, KEYS);
    let reads = faults.count_of(Call::Read, ".vlog");
    println!("{reads} reads for {KEYS} values");
    assert!(reads < u64::from(KEYS) / 50, "{reads} reads");
    faults.reset_counts();
    let mut iter = db.iter(&IterOptions { keys_only: true, ..IterOptions::default() }).unwrap();
    iter.seek_to_first().unwrap();
    while iter.valid() {
        iter.next().unwrap();
    }
    assert_eq!(faults.count_of(Call::Read, ".vlog"), 0, "keys are in the index");
}

/// Many keys at once: their values are sorted by place, and neighbours are read together.
#[test]
fn keys_that_are_read_at_once_join_their_reads() {
    let (_directory, db, faults) = filled(u32::to_be_bytes);
    faults.reset_counts();
    let keys: Vec<_> = (100..164).rev().map(u32::to_be_bytes).collect();
    let values = db.multi_get(&keys, &ReadOptions::default());
    assert!(values.into_iter().all(|value| value.unwrap().is_some()));
    assert_eq!(faults.count_of(Call::Read, ".vlog"), 1);
}

/// On the path of a write and of a read into memory of the caller's nothing is allocated, but for rows.
#[test]
fn puts_and_gets_hardly_allocate() {
    // What counts calls allocates.
    let options = Options { row_cache_bytes: 0, ..Options::default() };
    let (_directory, db) = filled_in(&unwatched_env(), options, key);
    let count = 4000_u32;
    let value = [1; 1024];
    let puts = allocations::during(|| (0..count).for_each(|number| db.put(&key(number), &value).unwrap()));
    let mut into = Vec::with_capacity(2048);
    let mut get = |number| db.get_into(&key(number), &mut into, &ReadOptions::default()).unwrap();
    // From the memtable.
    let warm = allocations::during(|| (0..count).for_each(|number| assert!(get(number))));
    db.flush().unwrap();
    (0..count).for_each(|number| assert!(get(number)));
    // From tables whose blocks are cached, and from the log.
    let cached = allocations::during(|| (0..count).for_each(|number| assert!(get(number))));
    println!(
        "allocations for {count} puts, gets from the memtable, gets from tables: {puts}, {warm}, {cached}"
    );
    assert!(puts < 40 && warm < 40 && cached < 40, "{puts} {warm} {cached}");
}

/// A row is one piece of memory; a get that finds one takes none.
#[test]
fn rows_are_allocated_when_they_are_kept() {
    let (_directory, db) = filled_in(&unwatched_env(), Options::default(), key);
    let mut into = Vec::with_capacity(2048);
    let mut get = |number| assert!(db.get_into(&key(number), &mut into, &ReadOptions::default()).unwrap());
    // The index comes into memory.
    let without = ReadOptions { verify_checksums: false, ..ReadOptions::default() };
    (0..KEYS).for_each(|number| drop(db.get_with(&key(number), &without).unwrap()));
    let kept = allocations::during(|| (0..KEYS).for_each(&mut get));
    let found = allocations::during(|| (0..KEYS).for_each(&mut get));
    println!("allocations for {KEYS} gets that keep a row, and that find one: {kept}, {found}");
    let keys = u64::from(KEYS);
    // The cache grows, too.
    assert!((keys..keys + keys / 10).contains(&kept) && found < 40, "{kept} {found}");
}

/// Neither a row nor a value in a cached block is copied to be pinned, and what is read of the log is in the memory of its row.
#[test]
fn pinned_values_are_neither_allocated_nor_copied() {
    for (rows, value_bytes) in [(true, 1024), (false, 100)] {
        let directory = fast_directory();
        let options = Options {
            inline_value_max: 128,
            row_cache_bytes: if rows { Options::default().row_cache_bytes } else { 0 },
            ..Options::default()
        };
        let db = Db::open_with_env(directory.path(), options, &unwatched_env()).unwrap();
        (0..KEYS).for_each(|number| db.put(&key(number), &vec![number as u8; value_bytes]).unwrap());
        db.compact_range(None, None).unwrap();
        // The index comes into memory.
        (0..KEYS).for_each(|number| assert!(db.contains(&key(number)).unwrap()));
        let pin = |number: u32| db.get_pinned(&key(number), &ReadOptions::default()).unwrap().unwrap();
        let (mut pinned, mut again) = (Vec::with_capacity(KEYS as usize), Vec::with_capacity(KEYS as usize));
        let kept = allocations::during(|| pinned.extend((0..KEYS).map(pin)));
        let mut held = 0;
        let found = allocations::during(|| {
            held = allocations::most_held_during(|| again.extend((0..KEYS).map(pin)));
        });
        println!("allocations to pin {KEYS} values, and again: {kept}, {found}; {held} bytes more");
        let keys = u64::from(KEYS);
        // The cache grows, too.
        let once = if rows { keys..keys + keys / 10 } else { 0..40 };
        assert!(once.contains(&kept) && found < 40 && held < 64 << 10, "{kept} {found} {held}");
        let mut apart = 0;
        for ((number, first), second) in (0..KEYS).zip(&pinned).zip(&again) {
            assert_eq!((&**first, &**second), (&*vec![number as u8; value_bytes], &**first));
            apart += u64::from(first.as_ptr() != second.as_ptr());
        }
        // Of a row that has made room for another of its set, another is made.
        assert!(apart <= if rows { found } else { 0 }, "one piece of memory, but for {apart} of {found}");
    }
}

/// A collection sorts what is alive by parts: what it holds does not grow with segments.
#[test]
fn a_collection_holds_a_part_of_what_it_copies() {
    let directory = fast_directory();
    let options = Options {
        segment_bytes_max: 128 << 20,
        recovery_log_max: 1 << 30,
        max_space_amplification: 1000.0,
        block_cache_bytes: 0,
        row_cache_bytes: 0,
        ..Options::default()
    };
    let db = Db::open_with_env(directory.path(), options, &unwatched_env()).unwrap();
    let keys = 120_000;
    for number in (0..keys).chain((0..keys).filter(|number| number % 3 == 0)) {
        db.put(&key(number), &[number as u8; 1024]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    let mut copied = 0;
    let held = allocations::most_held_during(|| copied = db.gc(GcGoal::Once).unwrap().bytes_after);
    assert!(copied > 70 << 20, "{copied} bytes were copied");
    assert!(held < 30 << 20, "{held} bytes of memory for {copied} bytes of copies");
}
