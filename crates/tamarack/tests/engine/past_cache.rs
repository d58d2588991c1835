//! Reading past the kernel's cache of files, on a file system that has it if the one of temporary files does.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, fadvise};
use tamarack::testing::{Call, EIO, Fault, FaultEnv, Faults, posix_env};
use tamarack::{Db, IterOptions, Options, ReadOptions};

use crate::common::tiny_without_gc;

const KEYS: u32 = 3000;

fn key(number: u32) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Some inline, most on one or two pages, a few on many.
fn value(number: u32) -> Vec<u8> {
    let len = match number % 100 {
        0 => 70_001,
        1..10 => number as usize % 7,
        _ => 300 + number as usize * 37 % 3000,
    };
    vec![number as u8; len]
}

/// A database of all keys, in their order or not, whose files the kernel has forgotten. What follows is counted.
fn cold(directory: &Path, options: Options, step: u32) -> (Db, Arc<Faults>) {
    let options =
        Options { segment_bytes_max: 1 << 20, recovery_log_max: 4 << 20, row_cache_bytes: 0, ..options };
    let db = Db::open(directory, options.clone()).unwrap();
    (0..KEYS)
        .map(|number| number * step % KEYS)
        .for_each(|number| db.put(&key(number), &value(number)).unwrap());
    db.flush().unwrap();
    db.close().unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        let file = File::open(entry.unwrap().path()).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }
    let (env, faults) = FaultEnv::new(posix_env());
    (Db::open_with_env(directory, options, &env).unwrap(), faults)
}

fn walk(db: &Db, options: &IterOptions, backward: bool) {
    let mut iter = db.iter(options).unwrap();
    let mut numbers: Vec<u32> = (0..KEYS).collect();
    if backward {
        numbers.reverse();
        iter.seek_to_last().unwrap();
    } else {
        iter.seek_to_first().unwrap();
    }
    for number in numbers {
        assert!(iter.valid() && iter.key() == key(number), "{number}");
        assert!(iter.value().unwrap() == value(number), "{number}");
        if backward { iter.prev().unwrap() } else { iter.next().unwrap() }
    }
    assert!(!iter.valid());
}

#[test]
fn a_database_that_reads_directly_reads_the_same() {
    for step in [1, 7] {
        let directory = tempfile::tempdir().unwrap();
        let (db, faults) = cold(directory.path(), Options { direct_reads: true, ..tiny_without_gc() }, step);
        for number in (0..KEYS).map(|number| number * 13 % KEYS).take(300) {
            assert_eq!(db.get(&key(number)).unwrap().as_ref(), Some(&value(number)), "{number}");
        }
        assert!(faults.count(Call::OpenPastCache) > 0);
        let keys: Vec<Vec<u8>> = (0..KEYS).map(|number| key(number * 11 % KEYS)).collect();
        for (index, found) in db.multi_get(&keys, &ReadOptions::default()).into_iter().enumerate() {
            assert!(found.unwrap() == Some(value(index as u32 * 11 % KEYS)), "{index}");
        }
        [false, true].into_iter().for_each(|backward| walk(&db, &IterOptions::default(), backward));
        // What is written now is in memory alone.
        db.put(&key(5), &[9; 5000]).unwrap();
        assert_eq!(db.get(&key(5)).unwrap(), Some(vec![9; 5000]));
    }
}

#[test]
fn a_long_walk_that_fills_no_cache_reads_past_the_kernels() {
    for backward in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let (db, faults) = cold(directory.path(), tiny_without_gc(), 1);
        walk(&db, &IterOptions { fill_cache: false, ..IterOptions::default() }, backward);
        assert!(faults.count(Call::OpenPastCache) > 0);
    }
    let directory = tempfile::tempdir().unwrap();
    let (db, faults) = cold(directory.path(), tiny_without_gc(), 1);
    walk(&db, &IterOptions::default(), false);
    db.get(&key(7)).unwrap();
    assert_eq!(faults.count(Call::OpenPastCache), 0);
}

#[test]
fn what_cannot_be_opened_so_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (db, faults) = cold(directory.path(), Options { direct_reads: true, ..tiny_without_gc() }, 1);
    faults.inject(Fault::on(Call::OpenPastCache).errno(EIO));
    let error = db.get(&key(50)).unwrap_err();
    assert!(error.to_string().contains("open"), "{error}");
    assert_eq!(db.get(&key(50)).unwrap(), Some(value(50)), "and is tried again");
}

/// What a walk asks for once does not take the place of what others ask for again, once it is long.
#[test]
fn a_long_walk_over_large_values_in_disorder_goes_on_past_the_kernels_cache() {
    const LEN: usize = 900_000;
    let directory = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes_max: 16 << 20, value_runs_max: 0, ..Options::default() };
    let numbers = 240_u32;
    let value = |number: u32| vec![number as u8; LEN + number as usize];
    {
        let db = Db::open(directory.path(), options.clone()).unwrap();
        // No two that follow each other lie together.
        for number in (0..numbers).map(|number| number * 7 % numbers).filter(|number| number % 3 > 0) {
            db.put(&key(number), &value(number)).unwrap();
        }
        db.close().unwrap();
    }
    let walk_some = |db: &Db, entries: usize| {
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek_to_first().unwrap();
        for number in (0..numbers).filter(|number| number % 3 > 0).take(entries) {
            assert!(iter.key() == key(number) && iter.value().unwrap() == value(number), "{number}");
            iter.next().unwrap();
        }
    };
    let (env, faults) = FaultEnv::new(posix_env());
    let db = Db::open_with_env(directory.path(), options.clone(), &env).unwrap();
    walk_some(&db, 80);
    assert_eq!(faults.count(Call::OpenPastCache), 0, "it is not long yet");
    walk_some(&db, 160);
    assert!(faults.count(Call::OpenPastCache) > 0);
    db.close().unwrap();
    // The kernel's queue of reads, where there is one, with nothing in its cache.
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let file = File::open(entry.unwrap().path()).unwrap();
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }
    walk_some(&Db::open(directory.path(), options).unwrap(), 160);
}
