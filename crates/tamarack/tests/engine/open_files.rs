//! Files that stay open: those that reads need, as many as may be.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tamarack::testing::{Call, FaultEnv, posix_env};
use tamarack::{Db, Options};

use crate::common::garbage::Gate;
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Watchdog, fast_directory, tiny_without_gc};

/// What is open for other reasons: the segment that is written to, and the next one; and caches have several parts.
const OTHERS_MAX: usize = 4;

fn options(open_files_max: usize) -> Options {
    Options { open_files_max, row_cache_bytes: 0, block_cache_bytes: 0, ..tiny_without_gc() }
}

/// How many files of `directory` this process has open, with that ending.
fn open_files(directory: &Path, ending: &str) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let files = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    files.filter(|path| path.starts_with(directory) && path.extension() == Some(OsStr::new(ending))).count()
}

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

/// A small value that cannot be compressed.
fn inline(number: usize) -> Vec<u8> {
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec()
}

/// Reads them twice: what stays open is what was read before.
fn read_all(db: &Db, keys: usize, value_bytes: usize) {
    for number in (0..keys).chain(0..keys) {
        assert_eq!(db.get(&key(number)).unwrap().map(|value| value.len()), Some(value_bytes));
    }
}

#[test]
fn segments_have_the_files_that_tables_do_not_need() {
    const FILES_MAX: usize = 400;
    let directory = fast_directory();
    let options = Options { table_bytes_max: 1 << 20, ..options(FILES_MAX) };
    let db = Db::open(directory.path(), options.clone()).unwrap();
    (0..1500).for_each(|number| db.put(&key(number), &[7; 1000]).unwrap());
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let db = Db::open(directory.path(), options).unwrap();
    read_all(&db, 1500, 1000);
    let segments = open_files(directory.path(), "vlog");
    assert!(segments > FILES_MAX / 2, "{segments}");
}

#[test]
fn tables_have_half_of_them_if_they_are_many() {
    const FILES_MAX: usize = 60;
    let directory = fast_directory();
    let db = Db::open(directory.path(), options(FILES_MAX)).unwrap();
    (0..500).for_each(|number| db.put(&key(number), &[7; 1000]).unwrap());
    read_all(&db, 500, 1000);
    (500..10_000).for_each(|number| db.put(&key(number), &inline(number)).unwrap());
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    let tables: u64 = db.stats().levels.iter().map(|level| level.tables).sum();
    assert!(tables > FILES_MAX as u64 / 2, "{tables}");
    for number in 500..10_000 {
        assert_eq!(db.get(&key(number)).unwrap(), Some(inline(number)));
    }
    read_all(&db, 500, 1000);
    let open = |ending| open_files(directory.path(), ending);
    let (segments, tables) = (open("vlog"), open("table"));
    assert!(tables > FILES_MAX / 3 && segments + tables <= FILES_MAX + OTHERS_MAX, "{segments}, {tables}");
}

/// A log may have more segments than files may be open.
#[test]
fn recovery_opens_one_segment_after_the_other() {
    let place = Place::new(Options { memtable_bytes: 1 << 20, recovery_log_max: 4 << 20, ..options(16) });
    let db = place.open();
    (0..500).for_each(|number| db.put(&key(number), &[7; 1000]).unwrap());
    db.close().unwrap();
    let (directory, most) = (place.path(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    place.faults.watch(move |call, path| {
        if call == Call::Read && path.extension() == Some(OsStr::new("vlog")) {
            seen.fetch_max(open_files(&directory, "vlog"), Ordering::Relaxed);
        }
    });
    let db = place.open();
    place.faults.unwatch();
    assert_eq!(db.recovery().operations, 500);
    let most = most.load(Ordering::Relaxed);
    assert!((1..=4).contains(&most), "{most} segments are open at a time");
}

/// Full segments wait for a device that does not sync, and writers for them once there are many: each keeps its file open.
#[test]
fn segments_that_are_not_sealed_do_not_take_all_files() {
    const SEGMENTS: usize = 200;
    const UNSEALED_MAX: usize = 64;
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a writer that waits for segments to be sealed");
    let directory = fast_directory();
    let (env, faults) = FaultEnv::new(posix_env());
    let small = Options {
        segment_bytes_max: 64 << 10,
        memtable_bytes: 64 << 20,
        recovery_log_max: 1 << 30,
        ..options(1000)
    };
    let db = Db::open_with_env(directory.path(), small.clone(), &env).unwrap();
    let gate = Gate::at(&faults, Call::SyncData, "000001.vlog");
    let is_over = AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..SEGMENTS * 16 {
                db.put(&key(number), &[number as u8; 4096]).unwrap();
            }
            is_over.store(true, Ordering::Release);
        });
        gate.wait();
        let (mut most, mut unchanged) = (0, 0);
        // Opened as soon as the writer has waited for so long, or had nothing to wait for.
        while unchanged < 50 && !is_over.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(10));
            let open = open_files(directory.path(), "vlog");
            unchanged = if open > most { 0 } else { unchanged + 1 };
            most = most.max(open);
        }
        drop(gate);
        most
    });
    println!("{most} files of the log were open");
    assert!((UNSEALED_MAX..=UNSEALED_MAX + OTHERS_MAX).contains(&most), "{most} files were open");
    faults.unwatch();
    db.close().unwrap();
    let db = Db::open(directory.path(), small).unwrap();
    for number in 0..SEGMENTS * 16 {
        assert_eq!(db.get(&key(number)).unwrap().unwrap(), [number as u8; 4096]);
    }
}
