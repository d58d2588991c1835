//! Each operation of the public interface, once, in the simplest case, and the arguments it refuses.

use std::sync::atomic::{AtomicBool, Ordering};

use tamarack::{
    Bytewise, Codec, Comparator, Db, ErrorKind, GcGoal, IterOptions, LogMode, Options, ReadOptions,
    WriteBatch, WriteOptions,
};

fn small() -> Options {
    Options {
        memtable_bytes: 64 << 10,
        segment_bytes_max: 64 << 10,
        inline_value_max: 16,
        ..Options::default()
    }
}

fn all(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    db.iter(&IterOptions::default()).unwrap().entries().map(|entry| entry.unwrap()).collect()
}

#[test]
fn values_of_every_size_come_back() {
    for (mode, codec) in
        [(LogMode::Auto, Codec::None), (LogMode::Plain, Codec::None), (LogMode::Auto, Codec::Lz4)]
    {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { log_mode: mode, value_codec: codec, ..small() };
        let db = Db::open(directory.path(), options.clone()).unwrap();
        let value = |len: usize| -> Vec<u8> { (0..len).map(|at| (at / 7) as u8).collect() };
        let sizes = [0_usize, 1, 15, 16, 17, 100, 4096, 65_536, 1_000_000];
        for len in sizes {
            db.put(&len.to_le_bytes(), &value(len)).unwrap();
        }
        db.put(b"", b"empty key").unwrap();
        let check = |db: &Db| {
            for len in sizes {
                assert_eq!(db.get(&len.to_le_bytes()).unwrap(), Some(value(len)), "{len} {mode:?} {codec:?}");
            }
            assert_eq!(db.get(b"").unwrap().unwrap(), b"empty key");
            assert_eq!(all(db).len(), sizes.len() + 1);
        };
        check(&db);
        db.flush().unwrap();
        check(&db);
        db.compact_range(None, None).unwrap();
        check(&db);
        db.close().unwrap();
        let db = Db::open(directory.path(), options).unwrap();
        check(&db);
        assert!(db.check(tamarack::CheckLevel::Values).is_clean());
    }
}

#[test]
fn batches_deletes_and_snapshots() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), small()).unwrap();
    db.put(b"a", b"1").unwrap();
    let before = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.delete(b"a").unwrap();
    batch.put(b"b", &[7; 100]).unwrap();
    batch.put(b"b", &[8; 100]).unwrap();
    db.write(&batch, &WriteOptions::synced()).unwrap();
    assert_eq!(db.get(b"a").unwrap(), None);
    assert!(!db.contains(b"a").unwrap() && db.contains(b"b").unwrap());
    assert_eq!(db.get(b"b").unwrap().unwrap(), [8; 100]);
    let at_before = ReadOptions { snapshot: Some(before), ..ReadOptions::default() };
    for _ in 0..2 {
        assert_eq!(db.get_with(b"a", &at_before).unwrap().unwrap(), b"1");
        assert_eq!(db.get_with(b"b", &at_before).unwrap(), None);
        db.compact_range(None, None).unwrap();
    }
    let other = tempfile::tempdir().unwrap();
    let other = Db::open(other.path(), small()).unwrap();
    assert_eq!(other.get_with(b"a", &at_before).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn unacceptable_arguments_are_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), small()).unwrap();
    let before = db.stats().log_bytes_written;
    let long = vec![0; tamarack::KEY_BYTES_MAX + 1];
    assert_eq!(db.put(&long, b"").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.delete(&long).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // Nobody touches these zeros, so they take no memory.
    let longer = vec![0; usize::try_from(tamarack::VALUE_BYTES_MAX).unwrap() + 1];
    assert_eq!(db.put(b"key", &longer).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.stats().log_bytes_written, before);
    db.put(&long[1..], b"the longest key").unwrap();
    assert_eq!(db.get(&long[1..]).unwrap().unwrap(), b"the longest key");
    let mut iter = db.iter(&IterOptions { keys_only: true, ..IterOptions::default() }).unwrap();
    assert_eq!(iter.next().unwrap_err().kind(), ErrorKind::InvalidArgument);
    iter.seek_to_first().unwrap();
    assert_eq!(iter.value().unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// A value of 4 GiB is there three times over: in the test, in the log, and as what is read. `cargo xtask test` must run on
/// ordinary machines, so this is run by hand.
#[test]
#[ignore = "takes 13 GiB of memory and 9 GB of disk space: cargo test --release -p tamarack --test engine -- --ignored"]
fn the_longest_value_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut value = vec![0; usize::try_from(tamarack::VALUE_BYTES_MAX).unwrap()];
    for (number, chunk) in value.chunks_mut(4096).enumerate() {
        chunk[0] = number as u8;
        chunk[chunk.len() - 1] = (number >> 8) as u8;
    }
    let db = Db::open(directory.path(), Options::default()).unwrap();
    db.put(b"garbage", &value[..1 << 20]).unwrap();
    db.put(b"longest", &value).unwrap();
    db.delete(b"garbage").unwrap();
    assert!(db.get(b"longest").unwrap().unwrap() == value);
    db.close().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    db.flush().unwrap();
    assert!(db.get(b"longest").unwrap().unwrap() == value);
    db.delete(b"longest").unwrap();
    db.compact_range(None, None).unwrap();
    db.gc(GcGoal::Until(1.0)).unwrap();
    assert!(db.check(tamarack::CheckLevel::Values).is_clean());
    assert!(db.stats().disk_bytes < 1 << 30, "{:?}", db.stats());
}

#[test]
fn opening_says_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    let absent = Db::open(&path, Options { create_if_missing: false, ..small() }).unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::InvalidArgument);
    assert!(!path.exists(), "a refused open creates nothing");
    assert_eq!(
        Db::open(&path, Options { read_only: true, ..small() }).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    let db = Db::open(&path, small()).unwrap();
    assert_eq!(Db::open(&path, small()).unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(Db::destroy(&path).unwrap_err().kind(), ErrorKind::Locked);
    db.put(b"k", b"v").unwrap();
    db.close().unwrap();
    let exists = Db::open(&path, Options { error_if_exists: true, ..small() }).unwrap_err();
    assert_eq!(exists.kind(), ErrorKind::InvalidArgument);
    let options = Options { comparator: std::sync::Arc::new(Reverse), ..small() };
    let other = Db::open(&path, options).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::InvalidArgument);
    assert!(other.message().contains("Reverse") && other.message().contains("Bytewise"), "{other}");
    let bad = Db::open(&path, Options { block_bytes: 1, ..small() }).unwrap_err();
    assert!(bad.message().contains("block_bytes"), "{bad}");
    Db::destroy(&path).unwrap();
    assert!(!path.exists());
    Db::destroy(&path).unwrap();
}

#[test]
fn files_of_others_in_the_directory_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("db");
    Db::open(&path, small()).unwrap().close().unwrap();
    std::fs::write(path.join("notes.tmp"), b"mine").unwrap();
    std::fs::create_dir(path.join("cache.tmp")).unwrap();
    std::fs::write(path.join("CURRENT.tmp"), b"cut off").unwrap();
    Db::open(&path, small()).unwrap().close().unwrap();
    assert!(!path.join("CURRENT.tmp").exists());
    Db::destroy(&path).unwrap();
    let mut left: Vec<_> =
        std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["cache.tmp", "notes.tmp"]);
}

#[test]
fn a_database_in_a_directory_that_cannot_be_removed_can_be_destroyed() {
    let directory = tempfile::tempdir().unwrap();
    let (there, link) = (directory.path().join("there"), directory.path().join("link"));
    std::fs::create_dir(&there).unwrap();
    std::os::unix::fs::symlink(&there, &link).unwrap();
    let db = Db::open(&link, small()).unwrap();
    db.put(b"k", b"v").unwrap();
    db.close().unwrap();
    Db::destroy(&link).unwrap();
    assert_eq!(std::fs::read_dir(&there).unwrap().count(), 0);
    Db::destroy(&link).unwrap();
}

#[derive(Debug)]
struct Reverse;

impl Comparator for Reverse {
    fn name(&self) -> &str {
        "test.Reverse"
    }
    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        Bytewise.compare(right, left)
    }
}

#[test]
fn a_custom_order_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { comparator: std::sync::Arc::new(Reverse), ..small() };
    let db = Db::open(directory.path(), options).unwrap();
    for key in 0..200_u8 {
        db.put(&[key], &[key; 50]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    db.put(&[255], b"newest").unwrap();
    let keys: Vec<u8> = all(&db).iter().map(|(key, _)| key[0]).collect();
    let expected: Vec<u8> = std::iter::once(255).chain((0..200).rev()).collect();
    assert_eq!(keys, expected);
    assert_eq!(db.get(&[77]).unwrap().unwrap(), [77; 50]);
}

static PANIC: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Panicking;

impl Comparator for Panicking {
    fn name(&self) -> &str {
        "test.Panicking"
    }
    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        assert!(!PANIC.load(Ordering::Relaxed), "told to panic");
        left.cmp(right)
    }
}

#[test]
fn a_panic_in_the_background_is_quoted_and_nobody_hangs() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { comparator: std::sync::Arc::new(Panicking), ..small() };
    let db = Db::open(directory.path(), options.clone()).unwrap();
    for key in 0..100_u8 {
        db.put(&[key], &[key; 50]).unwrap();
    }
    PANIC.store(true, Ordering::Relaxed);
    let error = db.flush().unwrap_err();
    PANIC.store(false, Ordering::Relaxed);
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert!(error.message().contains("a panic in background work: told to panic"), "{error}");
    assert_eq!(db.put(b"k", b"v").unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(db.get(&[7]).unwrap().unwrap(), [7; 50]);
    assert_eq!(db.close().unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(all(&Db::open(directory.path(), options).unwrap()).len(), 100);
}

#[test]
fn read_only_opens_replay_without_writing() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), small()).unwrap();
    db.put(b"flushed", &[1; 100]).unwrap();
    db.flush().unwrap();
    db.put(b"in the log", &[2; 100]).unwrap();
    db.close().unwrap();
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| (entry.as_ref().unwrap().file_name(), entry.unwrap().metadata().unwrap().len()))
            .collect();
        names.sort();
        names
    };
    let before = names();
    let options = Options { read_only: true, ..small() };
    let reader = Db::open(directory.path(), options.clone()).unwrap();
    let second = Db::open(directory.path(), options).unwrap();
    for db in [&reader, &second] {
        assert_eq!(db.get(b"flushed").unwrap().unwrap(), [1; 100]);
        assert_eq!(db.get(b"in the log").unwrap().unwrap(), [2; 100]);
        assert_eq!(db.put(b"x", b"y").unwrap_err().kind(), ErrorKind::ReadOnly);
        assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    assert_eq!(Db::open(directory.path(), small()).unwrap_err().kind(), ErrorKind::Locked);
    drop((reader, second));
    assert_eq!(names(), before);
}

#[test]
fn a_torn_manifest_is_told_as_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), small()).unwrap();
    db.put(b"k", &[1; 100]).unwrap();
    db.close().unwrap();
    let current = std::fs::read_to_string(directory.path().join("CURRENT")).unwrap();
    let manifest = directory.path().join(current.lines().next().unwrap());
    let mut bytes = std::fs::read(&manifest).unwrap();
    bytes.extend_from_slice(b"an edit whose write was cut");
    std::fs::write(&manifest, bytes).unwrap();
    let db = Db::open(directory.path(), small()).unwrap();
    assert_eq!(db.get(b"k").unwrap().unwrap(), [1; 100]);
    let warnings = db.stats().warnings;
    assert!(matches!(&warnings[..], [warning] if warning.contains("27 bytes at offset")), "{warnings:?}");
    db.close().unwrap();
    assert!(Db::open(directory.path(), small()).unwrap().stats().warnings.is_empty());
}

#[test]
fn a_small_database_leaves_small_files() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), Options::default()).unwrap();
    db.put(b"key", b"value").unwrap();
    db.close().unwrap();
    let bytes: u64 =
        std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len()).sum();
    assert!(bytes < 1024, "{bytes} bytes for one small pair");
}

#[test]
fn sizes_and_properties() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path(), small()).unwrap();
    for key in 0..20_000_u32 {
        db.put(&key.to_be_bytes(), &[3; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let whole = db.approximate_size(None, None).unwrap();
    let half = db.approximate_size(None, Some(&10_000_u32.to_be_bytes())).unwrap();
    assert!((2_000_000..4_000_000).contains(&whole), "{whole}");
    assert!((half as f64 / whole as f64 - 0.5).abs() < 0.1, "{half} of {whole}");
    assert!(db.property("leveldb.stats").unwrap().contains("Level"));
    let level: u64 = (0..7)
        .map(|n| db.property(&format!("leveldb.num-files-at-level{n}")).unwrap().parse::<u64>().unwrap())
        .sum();
    assert!(level > 0);
    for unknown in ["leveldb.unknown", "leveldb.num-files-at-level7", "leveldb.num-files-at-level+1"] {
        assert_eq!(db.property(unknown), None);
    }
    let values = db.multi_get(&[5_u32.to_be_bytes(), 99_999_u32.to_be_bytes()], &ReadOptions::default());
    assert_eq!(values[0].as_ref().unwrap().as_ref().unwrap().len(), 100);
    assert_eq!(values[1].as_ref().unwrap(), &None);
}

#[test]
fn what_is_replayed_counts_as_alive() {
    // In one memtable, which is gone on with, and in several, which are flushed at once.
    for memtable_bytes in [1 << 20, 4 << 10] {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { memtable_bytes, ..small() };
        let write = |db: &Db, keys: std::ops::Range<u32>| {
            for key in keys {
                db.put(&key.to_be_bytes(), &[7; 1000]).unwrap();
            }
        };
        let db = Db::open(directory.path(), Options { memtable_bytes: 4 << 20, ..options.clone() }).unwrap();
        write(&db, 0..500);
        db.close().unwrap();
        let db = Db::open(directory.path(), options).unwrap();
        assert_eq!(db.recovery().operations, 500);
        let expect = |live: u64, when: &str| {
            let stats = db.stats();
            let about = live * 9 / 10..live * 11 / 10;
            assert!(
                about.contains(&stats.live_bytes),
                "{} bytes of {live} are alive {when}",
                stats.live_bytes
            );
        };
        expect(500 * 1004, "after opening");
        db.flush().unwrap();
        expect(500 * 1004, "after the flush");
        write(&db, 500..1000);
        expect(1000 * 1004, "after new keys");
    }
}
