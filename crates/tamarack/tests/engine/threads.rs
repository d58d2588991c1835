//! Many threads at once: readers see whole batches only, writers lose nothing, syncs are shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tamarack::testing::{Call, FaultEnv, posix_env};
use tamarack::{Db, IterOptions, Options, ReadOptions, WriteBatch, WriteOptions};

use crate::common::fast_directory;

const WRITERS: u64 = 4;
const ROUNDS: u64 = 1500;
const KEYS: u64 = 8;
/// As many batches of each writer fill the first memtable, which is a sample, while there is room in what it becomes.
const ROUNDS_OF_GROWTH: u64 = 20;
const DATABASES: usize = 180;
/// A value that takes so long to copy that some writer is always at it.
const LONG: usize = 256 << 10;
/// Threads that sync every write.
const SYNCERS: u64 = 8;

fn small() -> Options {
    Options {
        memtable_bytes: 64 << 10,
        segment_bytes_max: 64 << 10,
        inline_value_max: 16,
        ..Options::default()
    }
}

fn key(writer: u64, key: u64) -> Vec<u8> {
    format!("{writer}/{key}").into_bytes()
}

/// A value that says `number`, long enough to live in the log for every other number.
fn value(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(if number.is_multiple_of(2) { 1 } else { 10 })
}

fn number(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().unwrap())
}

/// Each writer sets all its keys to the next number in one batch; whoever reads them at one moment must find equal
/// numbers, never smaller than seen before.
#[test]
fn readers_see_whole_batches_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), small()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let db = &db;
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        let mut batch = WriteBatch::new();
                        for index in 0..KEYS {
                            batch.put(&key(writer, index), &value(round)).unwrap();
                        }
                        db.write(&batch, &WriteOptions::default()).unwrap();
                    }
                })
            })
            .collect();
        for reader in 0..4 {
            let (db, done) = (&db, &done);
            scope.spawn(move || read_until(db, done, reader));
        }
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Release);
    });
    for writer in 0..WRITERS {
        for index in 0..KEYS {
            assert_eq!(number(&db.get(&key(writer, index)).unwrap().unwrap()), ROUNDS);
        }
    }
    assert!(db.check(tamarack::CheckLevel::Values).is_clean());
}

/// The first memtable is small, and copied once a batch does not fit: whoever writes beside that loses nothing, and finds it at
/// once.
#[test]
fn writers_beside_the_growth_of_the_first_memtable_lose_nothing() {
    let options = Options { segment_bytes_max: 32 << 20, ..small() };
    // By the index alone: a get may know where the value is without it.
    let is_there = |db: &Db, key: &[u8]| db.contains(key).unwrap();
    for _ in 0..DATABASES {
        let directory = fast_directory();
        let db = Db::open(directory.path(), options.clone()).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let db = &db;
                scope.spawn(move || {
                    for round in 0..ROUNDS_OF_GROWTH {
                        let keys = round * KEYS..(round + 1) * KEYS;
                        let long = writer.is_multiple_of(2);
                        let mut batch = WriteBatch::new();
                        for index in keys.clone().take(if long { 1 } else { KEYS as usize }) {
                            batch.put(&key(writer, index), if long { &[7; LONG] } else { b"short" }).unwrap();
                        }
                        db.write(&batch, &WriteOptions::default()).unwrap();
                        assert!(is_there(db, &key(writer, keys.start)), "what was just written");
                    }
                });
            }
        });
        for writer in 0..WRITERS {
            assert!((0..ROUNDS_OF_GROWTH).all(|round| is_there(&db, &key(writer, round * KEYS))));
        }
    }
}

fn read_until(db: &Db, done: &AtomicBool, reader: u64) {
    let mut seen = [0; WRITERS as usize];
    while !done.load(Ordering::Acquire) {
        for writer in 0..WRITERS {
            let numbers =
                if reader.is_multiple_of(2) { by_snapshot(db, writer) } else { by_iterator(db, writer) };
            let first = numbers.first().copied().unwrap_or(0);
            assert!(numbers.iter().all(|&number| number == first), "a divided batch: {numbers:?}");
            assert!(numbers.is_empty() || numbers.len() as u64 == KEYS, "a divided batch: {numbers:?}");
            assert!(first >= seen[writer as usize], "a batch that was seen is gone");
            seen[writer as usize] = first;
        }
    }
}

fn by_snapshot(db: &Db, writer: u64) -> Vec<u64> {
    let options = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    let keys: Vec<_> = (0..KEYS).map(|index| key(writer, index)).collect();
    let values = db.multi_get(&keys, &options);
    values.into_iter().filter_map(|value| value.unwrap()).map(|value| number(&value)).collect()
}

fn by_iterator(db: &Db, writer: u64) -> Vec<u64> {
    let (start, end) = (Some(key(writer, 0)), Some(key(writer + 1, 0)));
    let iter = db.iter(&IterOptions { start, end, ..IterOptions::default() }).unwrap();
    iter.entries().map(|entry| number(&entry.unwrap().1)).collect()
}

/// Eight threads that sync every write share syncs, and what they wrote is all there after a reopen. A sync is held until
/// every other thread has begun its next write, as a slow device would hold it.
#[test]
fn threads_that_sync_share_syncs() {
    let directory = tempfile::tempdir().unwrap();
    let (env, faults) = FaultEnv::new(posix_env());
    let db = Db::open_with_env(directory.path(), Options::default(), &env).unwrap();
    let outside = Arc::new(AtomicU64::new(SYNCERS));
    let others = Arc::clone(&outside);
    faults.watch(move |call, _| {
        while call == Call::SyncData && others.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    });
    std::thread::scope(|scope| {
        for thread in 0..SYNCERS {
            let (db, outside) = (&db, &outside);
            scope.spawn(move || {
                for round in 0..100_u64 {
                    outside.fetch_sub(1, Ordering::Release);
                    db.put_with(&key(thread, round), &value(round), &WriteOptions::synced()).unwrap();
                    outside.fetch_add(1, Ordering::Release);
                }
                outside.fetch_sub(1, Ordering::Release);
            });
        }
    });
    faults.unwatch();
    let syncs = db.stats().syncs;
    assert!(syncs < 800, "{syncs} syncs for 800 writes of 8 threads");
    db.close().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    for thread in 0..SYNCERS {
        for round in 0..100 {
            assert_eq!(number(&db.get(&key(thread, round)).unwrap().unwrap()), round);
        }
    }
}
