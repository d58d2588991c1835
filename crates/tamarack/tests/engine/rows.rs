//! The row cache, as a program sees it: reads are the same with it, and cost less.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tamarack::{Db, ErrorKind, GcGoal, Options, ReadOptions, Stats, WriteBatch, WriteOptions};

use crate::common::{fast_directory, open, tiny, tiny_without_gc};

fn options() -> Options {
    Options { row_cache_bytes: 1 << 20, ..tiny() }
}

fn hits(db: &Db) -> u64 {
    db.stats().row_cache.hits
}

/// Reads `key`, so that it has a row: there is room for all.
fn warm(db: &Db, key: &[u8]) {
    db.get(key).unwrap();
}

#[test]
fn what_is_read_again_costs_neither_index_nor_log() {
    let directory = fast_directory();
    let db = open(directory.path(), &Options { block_cache_bytes: 0, ..options() }).unwrap();
    let (large, inline) = (vec![7; 1000], vec![8; 10]);
    db.put(b"large", &large).unwrap();
    db.put(b"inline", &inline).unwrap();
    db.flush().unwrap();
    [&b"large"[..], b"inline"].iter().for_each(|key| warm(&db, key));
    let before = db.stats();
    for _ in 0..10 {
        assert_eq!(db.get(b"large").unwrap().as_ref(), Some(&large));
        assert_eq!(db.get(b"inline").unwrap().as_ref(), Some(&inline));
        let many = db.multi_get(&[&b"inline"[..], b"large"], &ReadOptions::default());
        let many: Vec<_> = many.into_iter().map(Result::unwrap).collect();
        assert_eq!(many, [Some(inline.clone()), Some(large.clone())]);
    }
    let after = db.stats();
    assert_eq!(after.row_cache.hits - before.row_cache.hits, 40);
    let reads = |stats: &Stats| (stats.value_reads, stats.data_block_reads, stats.index_block_reads);
    assert_eq!(reads(&after), reads(&before));
    assert!(after.row_cache.bytes > 1010);
    let without = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    db.put(b"other", &large).unwrap();
    for _ in 0..4 {
        assert_eq!(db.get_with(b"other", &without).unwrap().as_ref(), Some(&large));
    }
    assert_eq!(hits(&db), after.row_cache.hits, "nothing is kept of reads that leave no trace");
}

#[test]
fn what_is_read_and_written_in_turn_stays_in_its_row() {
    let directory = fast_directory();
    let db = open(directory.path(), &options()).unwrap();
    let value = |round: u8| vec![round; 1000];
    db.put(b"key", &value(0)).unwrap();
    // As many as do not fit.
    for number in 0..2000_u16 {
        db.put(&number.to_be_bytes(), &value(0)).unwrap();
        warm(&db, &number.to_be_bytes());
    }
    (0..4).for_each(|_| warm(&db, b"key"));
    let before = db.stats();
    for round in 1..=10 {
        let mut batch = WriteBatch::new();
        batch.put(b"key", b"not for long").unwrap();
        batch.put(b"key", &value(round)).unwrap();
        db.write(&batch, &WriteOptions::default()).unwrap();
        assert_eq!(db.get(b"key").unwrap(), Some(value(round)));
    }
    let after = db.stats();
    assert_eq!(after.row_cache.hits - before.row_cache.hits, 10);
    assert_eq!(after.value_reads, before.value_reads, "none of the log");
    db.delete(b"key").unwrap();
    assert_eq!(db.get(b"key").unwrap(), None);
    db.put(b"key", &value(20)).unwrap();
    assert_eq!(db.get(b"key").unwrap(), Some(value(20)));
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

/// Values that are too large for rows. Nothing of the index stays in memory, so each look into it is counted.
#[test]
fn where_a_value_lies_is_known_until_it_is_written_again() {
    let directory = fast_directory();
    let options = Options { block_cache_bytes: 0, row_cache_bytes: 64 << 10, ..tiny_without_gc() };
    let (usual, value) = (ReadOptions::default(), |round: u8| vec![round; 3000]);
    let blocks = |db: &Db| db.stats().data_block_reads;
    let looks = |db: &Db, key: &[u8], expected: Option<Vec<u8>>| {
        let before = blocks(db);
        assert!(db.get(key).unwrap() == expected, "another value of {key:?}");
        blocks(db) - before
    };
    let all = |db: &Db, keys: Range<u8>, read: &ReadOptions| {
        let keys: Vec<[u8; 1]> = keys.map(|key| [key]).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let before = blocks(db);
        let values: Vec<_> = db.multi_get(&keys, read).into_iter().map(Result::unwrap).collect();
        (values, blocks(db) - before)
    };
    let db = Db::open(directory.path(), options.clone()).unwrap();
    for key in 0..40_u8 {
        db.put(&[key], &value(key)).unwrap();
    }
    db.flush().unwrap();
    // Compactions read blocks, too.
    db.wait_idle().unwrap();
    assert_eq!(looks(&db, &[7], Some(value(7))), 0, "the write told");
    let before = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    db.put(&[7], &value(77)).unwrap();
    db.delete(&[8]).unwrap();
    db.put(&[9], b"inline").unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(looks(&db, &[7], Some(value(77))), 0);
    assert!(looks(&db, &[8], None) > 0);
    assert!(looks(&db, &[9], Some(b"inline".to_vec())) > 0);
    for (key, then) in [(7, 7), (8, 8), (9, 9)] {
        assert_eq!(db.get_with(&[key], &before).unwrap(), Some(value(then)));
    }
    drop(before);
    db.put(&[8], &value(8)).unwrap();
    // The values move, and their segments go.
    for key in (0..40_u8).filter(|key| key % 4 > 0) {
        db.put(&[key], &value(key + 100)).unwrap();
    }
    db.flush().unwrap();
    db.gc(GcGoal::Until(1.0)).unwrap();
    db.compact_range(None, None).unwrap();
    for key in 0..40_u8 {
        let expected = Some(value(if key % 4 > 0 { key + 100 } else { key }));
        looks(&db, &[key], expected.clone());
        assert_eq!(looks(&db, &[key], expected.clone()), 0, "the look told");
        assert_eq!(all(&db, key..key + 1, &usual), (vec![expected], 0), "many keys at once, too");
    }
    db.close().unwrap();
    let db = Db::open(directory.path(), options).unwrap();
    assert!(looks(&db, &[4], Some(value(4))) > 0);
    assert_eq!(looks(&db, &[4], Some(value(4))), 0);
    let unkept = ReadOptions { fill_cache: false, ..ReadOptions::default() };
    assert_eq!(db.get_with(&[12], &unkept).unwrap(), Some(value(12)));
    assert!(looks(&db, &[12], Some(value(12))) > 0, "reads that leave no trace leave no place");
    // The same for many keys at once: places that are known, and those that are not; a value that is gone; ones that moved.
    let expected = |keys: Range<u8>| {
        keys.map(|key| Some(value(if key % 4 > 0 { key + 100 } else { key }))).collect::<Vec<_>>()
    };
    let (values, unkept) = (all(&db, 20..40, &unkept), all(&db, 20..40, &unkept).1);
    assert_eq!(values.0, expected(20..40));
    assert!(unkept > 0, "reads that leave no trace leave no place");
    assert_eq!(all(&db, 20..40, &usual).0, expected(20..40));
    assert_eq!(all(&db, 20..40, &usual), (expected(20..40), 0));
    for key in 20..30_u8 {
        db.delete(&[key]).unwrap();
    }
    db.put(&[30], b"inline").unwrap();
    db.flush().unwrap();
    let (values, looked) = all(&db, 20..40, &usual);
    assert!(looked > 0);
    assert_eq!(values[..10], vec![None; 10]);
    assert_eq!(values[10], Some(b"inline".to_vec()));
    assert_eq!(values[11..], expected(31..40));
}

/// Tells readers to end, however the writer does.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// I-15. The value of one key is too large for a row, so that the other's must not come from one that is older.
#[test]
fn readers_beside_writers_see_whole_batches_and_never_go_back() {
    const ROUNDS: u64 = 10_000;
    let directory = fast_directory();
    let options = Options { row_cache_bytes: 16 << 10, ..tiny_without_gc() };
    let db = Db::open(directory.path(), options).unwrap();
    let value = |round: u64, times| round.to_le_bytes().repeat(times);
    let round_of = |value: &[u8]| u64::from_le_bytes(*value.first_chunk().unwrap());
    let write = |round| {
        let mut batch = WriteBatch::new();
        batch.put(b"small", &value(round, 4)).unwrap();
        batch.put(b"large", &value(round, 50)).unwrap();
        db.write(&batch, &WriteOptions::default()).unwrap();
    };
    write(0);
    // As many as do not fit, so that writes make rows anew.
    for number in 0..200_u8 {
        db.put(&[number], &value(0, 20)).unwrap();
        warm(&db, &[number]);
    }
    let (done, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    last = acknowledged.load(Ordering::Acquire).max(last);
                    let found = round_of(&db.get(b"small").unwrap().unwrap());
                    assert!(found >= last, "{found} after {last}");
                    let both = db.multi_get(&[b"small", b"large"], &ReadOptions::default());
                    let both: Vec<u64> =
                        both.into_iter().map(|value| round_of(&value.unwrap().unwrap())).collect();
                    assert!(both[0] == both[1] && both[0] >= found, "{both:?} after {found}");
                    last = both[0];
                }
            });
        }
        let _done = Done(&done);
        for round in 1..=ROUNDS {
            write(round);
            acknowledged.store(round, Ordering::Release);
            if round % 8 == 0 {
                // Time for rows to be kept, and served.
                (0..4).for_each(|_| drop(db.get(b"small").unwrap()));
            }
        }
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
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "vlog"));
    assert_eq!(files.filter_map(|path| damage(&path)).count(), 1);
    let unchecked = ReadOptions { verify_checksums: false, ..ReadOptions::default() };
    for _ in 0..3 {
        assert_eq!(db.get_with(b"key", &unchecked).unwrap().unwrap().len(), 500);
    }
    assert_eq!(db.get(b"key").unwrap_err().kind(), ErrorKind::Corruption);
}
