//! Many threads at once: readers see whole batches only, writers lose nothing, syncs are shared, nobody waits for
//! ever. `TAMARACK_SEED` runs one seed of the random ones.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests prepare and inspect the real world"
)]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Random, Watchdog, assert_clean, content, fast_directory, number_from_environment, tiny};
use tamarack::{Db, ErrorKind, IterOptions, LogMode, Options, ReadOptions, WriteBatch, WriteOptions};

const WRITERS: u64 = 4;
const ROUNDS: u64 = 1500;
const KEYS: u64 = 8;

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

/// Eight threads that sync every write share syncs, and what they wrote is all there after a reopen.
#[test]
fn threads_that_sync_share_syncs() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let db = &db;
            scope.spawn(move || {
                for round in 0..100_u64 {
                    db.put_with(&key(thread, round), &value(round), &WriteOptions::synced()).unwrap();
                }
            });
        }
    });
    let syncs = db.stats().syncs;
    assert!(syncs < 800, "{syncs} syncs for 800 writes of 8 threads");
    db.close().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    for thread in 0..8 {
        for round in 0..100 {
            assert_eq!(number(&db.get(&key(thread, round)).unwrap().unwrap()), round);
        }
    }
}

/// Threads that do anything at random, and how many things each does.
const THREADS: u64 = 6;
const STEPS: u64 = 250;

/// What one thread wrote and was told of.
type Acknowledged = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes, reads and asks for everything that waits, until told to stop or until the database is closed.
fn do_anything(db: &Db, thread: u64, seed: u64, done: &AtomicU64) -> Acknowledged {
    let mut random = Random::new(seed << 8 | thread);
    let mut kept = Acknowledged::new();
    for _ in 0..STEPS {
        done.fetch_add(1, Ordering::Relaxed);
        let outcome = match random.below(60) {
            0 => db.flush(),
            1 => db.compact_range(None, None),
            2 => db.sync(),
            3 => db.wait_idle(),
            4..=6 => {
                // Others write on: of this thread's keys it shows what this thread has written.
                let options = IterOptions {
                    start: Some(key(thread, 0)),
                    end: Some(format!("{thread}0").into_bytes()),
                    ..IterOptions::default()
                };
                db.iter(&options).map(|iter| {
                    let found: tamarack::Result<Acknowledged> = iter.entries().collect();
                    assert!(found.is_err() || found.unwrap() == kept, "thread {thread} misses a write");
                })
            }
            _ => write_batch(db, thread, &mut random, &mut kept),
        };
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
            break;
        }
    }
    kept
}

fn write_batch(db: &Db, thread: u64, random: &mut Random, kept: &mut Acknowledged) -> tamarack::Result<()> {
    let (mut batch, mut after) = (WriteBatch::new(), kept.clone());
    for _ in 0..random.pick(&[1, 1, 1, 7]) {
        let key = key(thread, random.number() % 40);
        // The longest ones fit neither a segment nor a memtable.
        let len = if random.one_in(40) { 9000 } else { random.pick(&[8, 30, 100, 500, 3000]) };
        if random.one_in(4) {
            batch.delete(&key).unwrap();
            after.remove(&key);
        } else {
            let value = random.bytes(len);
            batch.put(&key, &value).unwrap();
            after.insert(key, value);
        }
    }
    db.write(&batch, &WriteOptions { sync: random.one_in(20) })?;
    *kept = after;
    Ok(())
}

/// One thread in the background has all flushes, seals, spares and compactions to do, each of which some writer
/// waits for; and the database may be closed in the midst of it.
#[test]
fn nobody_waits_for_ever_with_tiny_limits_and_one_background_thread() {
    let seeds = match number_from_environment("TAMARACK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..12,
    };
    for seed in seeds {
        let what = format!("TAMARACK_SEED={seed}");
        let _watchdog = Watchdog::new(60, what.clone());
        let mut random = Random::new(seed);
        let options = Options {
            background_threads: 1,
            memtables_max: random.pick(&[2, 4]),
            recovery_log_max: random.pick(&[8 << 10, 64 << 10]),
            log_mode: random.pick(&[LogMode::Auto, LogMode::Plain]),
            ..tiny()
        };
        let closes_early = random.one_in(2);
        let done = AtomicU64::new(0);
        let directory = fast_directory();
        let db = Db::open(directory.path(), options.clone()).unwrap();
        let kept: Vec<Acknowledged> = std::thread::scope(|scope| {
            let threads = (0..THREADS).map(|thread| {
                let (db, done) = (&db, &done);
                scope.spawn(move || do_anything(db, thread, seed, done))
            });
            let threads: Vec<_> = threads.collect();
            if closes_early {
                let enough = random.number() % (THREADS * STEPS);
                while done.load(Ordering::Relaxed) < enough {
                    std::thread::yield_now();
                }
                db.clone().close().unwrap();
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        if !closes_early {
            db.clone().close().unwrap();
        }
        drop(db);
        let db = common::open_when_released(directory.path(), &options).unwrap();
        let expected: Acknowledged = kept.into_iter().flatten().collect();
        assert!(content(&db) == expected, "{what}: something else than was acknowledged");
        assert_clean(&db);
    }
}
