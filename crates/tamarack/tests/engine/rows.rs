//! The row cache, as a program sees it: reads are the same with it, and cost less.

use std::sync::atomic::{AtomicBool, Ordering};

use tamarack::{Db, ErrorKind, Options, ReadOptions, WriteBatch, WriteOptions};

use crate::common::{fast_directory, tiny};

fn options() -> Options {
    Options { row_cache_bytes: 1 << 20, ..tiny() }
}

fn hits(db: &Db) -> u64 {
    db.stats().row_cache.hits
}

/// Reads `key` until it has a row.
fn warm(db: &Db, key: &[u8]) {
    for _ in 0..2 {
        db.get(key).unwrap();
    }
}

#[test]
fn what_is_read_again_costs_neither_index_nor_log() {
    let directory = fast_directory();
    let db = Db::open(directory.path(), Options { block_cache_bytes: 0, ..options() }).unwrap();
    let (large, inline) = (vec![7; 1000], vec![8; 10]);
    db.put(b"large", &large).unwrap();
    db.put(b"inline", &inline).unwrap();
    db.flush().unwrap();
    [&b"large"[..], b"inline"].iter().for_each(|key| warm(&db, key));
    let before = db.stats();
    for _ in 0..10 {
        assert_eq!(db.get(b"large").unwrap().as_ref(), Some(&large));
        assert_eq!(db.get(b"inline").unwrap().as_ref(), Some(&inline));
        let many = db.multi_get(&[&b"inline"[..], b"large", b"none"], &ReadOptions::default());
        let many: Vec<_> = many.into_iter().map(Result::unwrap).collect();
        assert_eq!(many, [Some(inline.clone()), Some(large.clone()), None]);
    }
    let after = db.stats();
    assert_eq!(after.row_cache.hits - before.row_cache.hits, 40);
    assert_eq!(after.value_reads, before.value_reads);
    assert!(after.row_cache.bytes > 1010);
    let without = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    db.put(b"other", &large).unwrap();
    for _ in 0..4 {
        assert_eq!(db.get_with(b"other", &without).unwrap().as_ref(), Some(&large));
    }
    assert_eq!(hits(&db), after.row_cache.hits, "nothing is kept of reads that leave no trace");
}

/// I-15.
#[test]
fn a_row_never_hides_a_write_nor_shows_one_to_an_older_snapshot() {
    let directory = fast_directory();
    let db = Db::open(directory.path(), options()).unwrap();
    db.put(b"key", &[1; 100]).unwrap();
    let first = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    warm(&db, b"key");
    assert_eq!((db.get(b"key").unwrap(), hits(&db)), (Some(vec![1; 100]), 1));
    assert_eq!(db.get_with(b"key", &first).unwrap(), Some(vec![1; 100]));
    assert_eq!(hits(&db), 2, "a snapshot of the same moment");
    db.put(b"key", &[2; 100]).unwrap();
    for _ in 0..3 {
        assert_eq!(db.get(b"key").unwrap(), Some(vec![2; 100]));
        assert_eq!(db.multi_get(&[b"key"], &ReadOptions::default()).remove(0).unwrap(), Some(vec![2; 100]));
        assert_eq!(db.get_with(b"key", &first).unwrap(), Some(vec![1; 100]));
    }
    let mut batch = WriteBatch::new();
    batch.delete(b"key").unwrap();
    batch.put(b"other", b"").unwrap();
    db.write(&batch, &WriteOptions::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(db.get(b"key").unwrap(), None);
        assert_eq!(db.get_with(b"key", &first).unwrap(), Some(vec![1; 100]));
        db.flush().unwrap();
        db.compact_range(None, None).unwrap();
    }
    db.put(b"key", &[3; 100]).unwrap();
    db.close().unwrap();
    let db = Db::open(directory.path(), options()).unwrap();
    warm(&db, b"key");
    assert_eq!((db.get(b"key").unwrap(), hits(&db)), (Some(vec![3; 100]), 1));
}

/// I-15: readers beside writers, few keys, all of them in rows: none goes back behind what was acknowledged.
#[test]
fn readers_beside_writers_never_go_back() {
    const KEYS: u64 = 4;
    const ROUNDS: u64 = 20_000;
    let directory = fast_directory();
    let db = Db::open(directory.path(), Options { row_cache_bytes: 16 << 10, ..options() }).unwrap();
    let value = |round: u64| round.to_le_bytes().repeat(4);
    let round_of = |value: &[u8]| u64::from_le_bytes(*value.first_chunk().unwrap());
    (0..KEYS).for_each(|key| db.put(&[key as u8], &value(0)).unwrap());
    let done = AtomicBool::new(false);
    let acknowledged: Vec<_> = (0..KEYS).map(|_| std::sync::atomic::AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for key in (0..KEYS).cycle() {
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                    let before = acknowledged[key as usize].load(Ordering::Acquire);
                    let found = round_of(&db.get(&[key as u8]).unwrap().unwrap());
                    assert!(found >= before, "key {key}: {found} after {before}");
                    let keys: [&[u8]; 2] = [&[0], &[1]];
                    let both = db.multi_get(&keys, &ReadOptions::default());
                    let both: Vec<u64> =
                        both.into_iter().map(|value| round_of(&value.unwrap().unwrap())).collect();
                    assert!(both[0] == both[1] || both[0] == both[1] + 1, "two moments: {both:?}");
                }
            });
        }
        for round in 1..=ROUNDS {
            // One after the other, so that the first is never behind the second, and ahead by one at most.
            for key in 0..KEYS {
                db.put(&[key as u8], &value(round)).unwrap();
                acknowledged[key as usize].store(round, Ordering::Release);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(hits(&db) > 0, "no row was tried");
}

#[test]
fn what_was_not_checked_is_not_kept() {
    let directory = fast_directory();
    let db = Db::open(directory.path(), options()).unwrap();
    db.put(b"key", &[0xA5; 500]).unwrap();
    let damage = |path: &std::path::Path| {
        let mut bytes = std::fs::read(path).unwrap();
        let at = bytes.windows(500).position(|window| window == [0xA5; 500]);
        at.map(|at| {
            bytes[at + 100] ^= 1;
            std::fs::write(path, &bytes).unwrap();
        })
    };
    db.flush().unwrap();
    let files = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.filter_map(|path| damage(&path)).count(), 1);
    let unchecked = ReadOptions { verify_checksums: false, ..ReadOptions::default() };
    for _ in 0..3 {
        assert_eq!(db.get_with(b"key", &unchecked).unwrap().unwrap().len(), 500);
    }
    assert_eq!(db.get(b"key").unwrap_err().kind(), ErrorKind::Corruption);
}
