//! Relocation tables: what they take in memory, and that compactions do away with them where they take too much.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    unsafe_code,
    reason = "tests prepare and inspect the real world, and count what is allocated in it"
)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::garbage::{Content, assert_holds, compact, fill, key, quiet, value};
use common::{PATIENCE_SECONDS, Watchdog, fast_directory, open};
use tamarack::{Db, GcGoal, IterOptions, Options, ReadOptions};

/// Bytes that are allocated now, by this whole program: it has one test at a time that counts them.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: everything is the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller promises what the system's allocator wants.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller promises what the system's allocator wants.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const KEYS: usize = 30_000;

/// Collects the segments of which every second record is dead; says how many records were moved, and how many compactions there had been before.
fn moved(db: &Db) -> (Content, f64, u64) {
    let mut model = Content::new();
    fill(db, &mut model, 0..KEYS, 0);
    db.flush().unwrap();
    fill(db, &mut model, (0..KEYS).step_by(2), 1);
    compact(db);
    let compactions = db.stats().compactions;
    let done = db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(done.records as usize >= KEYS / 2, "{done:?}");
    (model, done.records as f64, compactions)
}

fn roomy() -> Options {
    Options { segment_bytes_max: 256 << 10, recovery_log_max: 64 << 20, ..quiet() }
}

/// Two tests in one, so that nobody else allocates while one counts.
#[test]
fn what_relocation_tables_take_and_how_they_go() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "relocation tables");
    each_relocated_record_takes_eight_bytes_of_memory();
    tables_that_take_too_much_go_by_themselves();
}

fn each_relocated_record_takes_eight_bytes_of_memory() {
    let directory = fast_directory();
    let (_, expected, _) = moved(&open(directory.path(), &roomy()).unwrap());
    let options = Options { block_cache_bytes: 0, row_cache_bytes: 0, ..roomy() };
    let db = open(directory.path(), &options).unwrap();
    // Opens every segment and table, but reads nothing that was moved.
    for number in (1..KEYS).step_by(2) {
        assert!(db.contains(&key(number)).unwrap());
    }
    let keys_only = IterOptions { keys_only: true, ..IterOptions::default() };
    let mut keys = db.iter(&keys_only).unwrap();
    keys.seek_to_first().unwrap();
    while keys.valid() {
        keys.next().unwrap();
    }
    drop(keys);
    let mut found = Vec::with_capacity(1 << 10);
    assert_eq!(db.stats().relocation_memory_bytes, 0);
    let before = ALLOCATED.load(Ordering::Relaxed);
    for number in 0..KEYS {
        assert!(db.get_into(&key(number), &mut found, &ReadOptions::default()).unwrap());
        assert!(found == value(number, usize::from(number % 2 == 0)));
    }
    let taken = ALLOCATED.load(Ordering::Relaxed) - before;
    let stats = db.stats();
    let records = stats.relocation_memory_bytes as f64 / 8.0;
    println!(
        "{taken} bytes for {records} relocations in {} tables, {} by their own count, {} by the index's",
        stats.moved_segments, stats.relocation_memory_bytes, stats.relocation_bytes
    );
    assert!((expected..1.01 * expected).contains(&records), "{records} relocations of {expected} records");
    let per_record = taken as f64 / expected;
    assert!((8.0..9.0).contains(&per_record), "{per_record} bytes a record");
    let ratio = stats.relocation_bytes as f64 / stats.relocation_memory_bytes as f64;
    assert!((0.6..1.7).contains(&ratio), "the index takes them for {ratio} times what they are");
    db.close().unwrap();
}

fn tables_that_take_too_much_go_by_themselves() {
    for cache_bytes in [1 << 20, 16 << 10] {
        let directory = fast_directory();
        let options = Options { relocation_cache_bytes: cache_bytes, ..roomy() };
        let db = open(directory.path(), &options).unwrap();
        let (model, _, compactions) = moved(&db);
        let before = db.stats();
        db.wait_idle().unwrap();
        let after = db.stats();
        let what =
            format!("{cache_bytes} bytes: {} tables, then {}", before.moved_segments, after.moved_segments);
        assert!(after.relocation_bytes <= cache_bytes as u64, "{what}");
        let rewritten = after.compactions > compactions;
        assert_eq!(rewritten, cache_bytes == 16 << 10, "{what}");
        assert_holds(&db, &model, &what);
        // And there it ends.
        db.wait_idle().unwrap();
        assert_eq!(db.stats().compactions, after.compactions, "{what}");
        db.close().unwrap();
        assert_holds(&open(directory.path(), &options).unwrap(), &model, &what);
    }
}
