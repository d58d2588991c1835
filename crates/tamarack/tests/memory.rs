//! What an open database holds in memory, by the allocator's count and by the system's, against the budget that it was given.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests prepare and inspect the real world"
)]

#[path = "common/mod.rs"]
mod common;
#[path = "common/counted.rs"]
mod counted;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use common::{Random, fast_directory};
use counted::Counted;
use tamarack::testing::watch_mapped;
use tamarack::{Db, IterOptions, Options, WriteBatch, WriteOptions};

static HELD: AtomicI64 = AtomicI64::new(0);
static MOST: AtomicI64 = AtomicI64::new(0);

#[global_allocator]
static MEMORY: Counted = Counted(hold);

/// Those of the allocator, and those that the engine maps itself.
fn hold(more: usize, less: usize) {
    let change = more as i64 - less as i64;
    let now = HELD.fetch_add(change, Ordering::Relaxed) + change;
    MOST.fetch_max(now, Ordering::Relaxed);
}

const KEYS: u64 = 120_000;
const BATCH: u64 = 100;

/// Keys that follow each other have nothing to do with each other.
fn key(number: u64) -> [u8; 16] {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [b'k'; 16];
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key
}

/// Writes all keys, a third of them with values that tables hold.
fn fill(db: &Db, round: u8) {
    let mut numbers = 0..KEYS;
    while !numbers.is_empty() {
        let mut batch = WriteBatch::new();
        for number in numbers.by_ref().take(BATCH as usize) {
            let len = if number % 3 == 0 { 200 } else { 700 };
            batch.put(&key(number), &vec![round ^ number as u8; len]).unwrap();
        }
        db.write(&batch, &WriteOptions::default()).unwrap();
    }
}

fn get_some(db: &Db, seed: u64) {
    let mut random = Random::new(seed);
    for _ in 0..KEYS / 5 {
        let number = random.below(KEYS as usize) as u64;
        let value = db.get(&key(number)).unwrap().unwrap();
        assert!([1, 2].contains(&(value[0] ^ number as u8)), "{number}");
    }
}

fn walk(db: &Db) {
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    let mut entries = 0;
    while iter.valid() {
        assert!(!iter.value().unwrap().is_empty());
        entries += 1;
        iter.next().unwrap();
    }
    assert_eq!(entries, KEYS);
}

/// A life in which everything is done that takes memory; returns the most bytes that were held in it beyond what was there
/// before.
fn most_bytes_held(options: Options) -> i64 {
    let directory = fast_directory();
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let db = Db::open(directory.path(), options.clone()).unwrap();
    fill(&db, 1);
    thread::scope(|scope| {
        scope.spawn(|| fill(&db, 2));
        scope.spawn(|| get_some(&db, 1));
    });
    // Iterators hold the memtables that they begin with, which no budget can take from them.
    db.flush().unwrap();
    thread::scope(|scope| {
        // Several at a time, so that each must do with less.
        for _ in 0..6 {
            scope.spawn(|| walk(&db));
        }
        scope.spawn(|| get_some(&db, 2));
    });
    db.sort_values().unwrap();
    db.compact_range(None, None).unwrap();
    let most = MOST.load(Ordering::Relaxed) - before;
    drop(db);
    MOST.store(before, Ordering::Relaxed);
    let db = Db::open(directory.path(), options).unwrap();
    assert_eq!(db.get(&key(7)).unwrap().unwrap(), [2 ^ 7; 700]);
    db.close().unwrap();
    most.max(MOST.load(Ordering::Relaxed) - before)
}

/// Ranges of small and of larger values in turn, and a large one now and then.
fn fill_ranges(db: &Db, ranges: u64) {
    let mut number = 0_u64;
    let mut put = |len: usize| {
        db.put(&number.to_be_bytes(), &vec![number as u8; len]).unwrap();
        number += 1;
    };
    for range in 0..ranges {
        (0..400).for_each(|_| put(300));
        (0..100).for_each(|_| put(2000));
        if range % 4 == 3 {
            put(2 << 20);
        }
    }
}

/// One at a time, because others beside it would be counted, too.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    watch_mapped(hold);
    alone
}

#[test]
fn a_walk_over_values_of_changing_sizes_holds_no_more_and_more() {
    let _alone = alone();
    let most = [64, 256].map(|ranges| {
        let directory = fast_directory();
        let options =
            Options { memory_max: Some(24 << 20), segment_bytes_max: 4 << 20, ..Options::default() };
        let db = Db::open(directory.path(), options).unwrap();
        fill_ranges(&db, ranges);
        db.flush().unwrap();
        db.wait_idle().unwrap();
        let before = HELD.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek_to_first().unwrap();
        while iter.valid() {
            assert!(!iter.value().unwrap().is_empty());
            iter.next().unwrap();
        }
        MOST.load(Ordering::Relaxed) - before
    });
    println!("{most:?} bytes");
    assert!(
        most[1] < most[0] + (8 << 20),
        "{most:?} bytes for a walk, and for one that is four times as long"
    );
}

#[test]
fn a_budget_holds_and_is_not_held_by_chance() {
    let _alone = alone();
    let budget = 24 << 20;
    let options = Options { segment_bytes_max: 4 << 20, ..Options::default() };
    let without = most_bytes_held(options.clone());
    let with = most_bytes_held(Options { memory_max: Some(budget), ..options });
    println!("{with} bytes with a budget of {budget}, {without} without");
    assert!(with <= budget as i64, "{with} of {budget}");
    assert!(without > 2 * budget as i64, "{without}: this does not try the budget");
}

/// The system's count.
#[cfg(target_os = "linux")]
mod by_the_system {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::common::process::this_program;
    use super::*;

    /// Memory of this process that belongs to no file, as the system counts it.
    fn anonymous_bytes() -> i64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<i64>().unwrap() * 1024
    }

    /// The most of it until `act` has returned, looked at every two milliseconds.
    fn most_anonymous_bytes(act: impl FnOnce()) -> i64 {
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut most = anonymous_bytes();
                while !done.load(Ordering::Relaxed) {
                    most = most.max(anonymous_bytes());
                    thread::sleep(Duration::from_millis(2));
                }
                most
            });
            act();
            done.store(true, Ordering::Relaxed);
            watch.join().unwrap()
        })
    }

    /// Bytes beyond the budget: stacks of a dozen threads, and what one arena of the allocator keeps between what is in use.
    const BEYOND_MAX: i64 = 8 << 20;

    /// Set for the process that is measured.
    const MEASURED: &str = "TAMARACK_MEASURED";

    /// The process that is measured, in which nothing else has taken memory. Does nothing when it is run as an ordinary test.
    #[test]
    fn the_process_that_is_measured() {
        if std::env::var_os(MEASURED).is_none() {
            return;
        }
        let budget = 24 << 20;
        let options = Options { segment_bytes_max: 4 << 20, memory_max: Some(budget), ..Options::default() };
        let before = anonymous_bytes();
        let mut held = 0;
        let most = most_anonymous_bytes(|| held = most_bytes_held(options)) - before;
        eprintln!("{most} bytes by the system, {held} by the allocator, with a budget of {budget}");
        assert!(most > held / 2, "{most} by the system, {held} by the allocator: this does not measure");
        assert!(most <= budget as i64 + BEYOND_MAX, "{most} by the system, {held} by the allocator");
    }

    #[test]
    fn the_system_counts_little_more_than_the_budget() {
        let mut process = this_program("by_the_system::the_process_that_is_measured");
        // By default glibc keeps memory that was freed apart for each of eight or more threads.
        process.env("MALLOC_ARENA_MAX", "1").env(MEASURED, "1");
        assert!(process.status().unwrap().success(), "see above");
    }
}
