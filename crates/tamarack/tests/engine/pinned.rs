//! Pinned values: where they are, and that they stay what they were, whatever becomes of their keys.

use tamarack::{Codec, Db, ErrorKind, GcGoal, Options, PinnedValue, ReadOptions};

use crate::common::{fast_directory, tiny_without_gc};

const KEY: &[u8] = b"key";
const LARGE: usize = 1000;
const INLINE: usize = 16;

/// Where a value is when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Memtable,
    Table,
    Log,
    CompressedInLog,
}

const PLACES: [Place; 4] = [Place::Memtable, Place::Table, Place::Log, Place::CompressedInLog];

impl Place {
    fn value(self) -> Vec<u8> {
        let len = if matches!(self, Self::Memtable | Self::Table) { INLINE } else { LARGE };
        (0..len).map(|at| (at / 50) as u8).collect()
    }

    /// A database with the value in this place.
    fn fill(self, directory: &std::path::Path, rows: bool, blocks: bool) -> Db {
        let options = Options {
            row_cache_bytes: if rows { 128 << 10 } else { 0 },
            block_cache_bytes: if blocks { 64 << 10 } else { 0 },
            value_codec: if self == Self::CompressedInLog { Codec::Lz4 } else { Codec::None },
            inline_value_max: INLINE,
            ..tiny_without_gc()
        };
        let db = Db::open(directory, options).unwrap();
        db.put(b"before", &[1; INLINE]).unwrap();
        db.put(KEY, &self.value()).unwrap();
        if self != Self::Memtable {
            db.flush().unwrap();
        }
        db
    }
}

fn pin(db: &Db) -> PinnedValue {
    db.get_pinned(KEY, &ReadOptions::default()).unwrap().unwrap()
}

/// Overwrites, deletes, collects and displaces everything that there is.
fn live(db: &Db, seen: &dyn Fn()) {
    for round in 0..3_u32 {
        db.put(KEY, &[0xFF; LARGE]).unwrap();
        seen();
        for number in 0..300_u32 {
            db.put(&number.to_le_bytes(), &[round as u8; LARGE]).unwrap();
            db.put(&[&number.to_le_bytes()[..], b"inline"].concat(), &[round as u8; INLINE]).unwrap();
        }
        db.delete(KEY).unwrap();
        seen();
        db.flush().unwrap();
        for number in (0..300_u32).chain(0..300) {
            assert_eq!(db.get(&number.to_le_bytes()).unwrap().unwrap(), [round as u8; LARGE]);
            db.get(&[&number.to_le_bytes()[..], b"inline"].concat()).unwrap().unwrap();
        }
        seen();
        db.compact_range(None, None).unwrap();
        db.gc(GcGoal::Until(1.1)).unwrap();
        seen();
    }
    assert_eq!(db.get_pinned(KEY, &ReadOptions::default()).unwrap(), None);
    assert!(db.stats().collections > 0);
}

#[test]
fn a_pinned_value_stays_what_it_was() {
    for (place, rows, blocks) in PLACES.iter().flat_map(|place| {
        [(true, true), (true, false), (false, true), (false, false)]
            .map(|(rows, blocks)| (place, rows, blocks))
    }) {
        let directory = fast_directory();
        let db = place.fill(directory.path(), rows, blocks);
        // As it was found, as it was found again, and after others have read it.
        let values = [pin(&db), pin(&db), {
            db.get(KEY).unwrap();
            pin(&db)
        }];
        let expected = place.value();
        let seen =
            || values.iter().for_each(|value| assert_eq!(*value, expected, "{place:?} {rows} {blocks}"));
        live(&db, &seen);
        db.close().unwrap();
        seen();
        Db::destroy(directory.path()).unwrap();
        seen();
        let [first, second, third] = values;
        assert_eq!(first.into_vec(), expected);
        assert_eq!(std::thread::spawn(move || second.into_vec()).join().unwrap(), expected);
        assert_eq!(third.clone().as_ref(), expected);
        assert_eq!(format!("{third:?}"), format!("{expected:?}"));
    }
}

/// What can be shown where it is, is: each reader is given the same memory.
#[test]
fn a_value_is_shown_where_it_is() {
    for place in PLACES {
        for (rows, blocks) in [(true, true), (true, false), (false, true), (false, false)] {
            let directory = fast_directory();
            let db = place.fill(directory.path(), rows, blocks);
            let (first, second) = (pin(&db), pin(&db));
            // A row is in the memory that it was first read into. A memtable shows copies.
            let is_same = rows || (place == Place::Table && blocks);
            assert_eq!(first.as_ptr() == second.as_ptr(), is_same, "{place:?} {rows} {blocks}");
            assert_eq!(first, second);
            assert_ne!(first, [0_u8; 3]);
            let mut into = Vec::new();
            assert!(db.get_into(KEY, &mut into, &ReadOptions::default()).unwrap());
            assert_eq!(first, into);
            assert_eq!(db.stats().row_cache.hits, if rows { 2 } else { 0 });
        }
    }
}

#[test]
fn a_pinned_get_fails_as_a_get_does() {
    let (directory, other) = (fast_directory(), fast_directory());
    let db = Place::Log.fill(directory.path(), true, true);
    let other = Place::Log.fill(other.path(), true, true);
    let foreign = ReadOptions { snapshot: Some(other.snapshot()), ..ReadOptions::default() };
    assert_eq!(db.get_pinned(KEY, &foreign).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(db.get_pinned(b"none", &ReadOptions::default()).unwrap(), None);
    db.put(b"empty", b"").unwrap();
    assert_eq!(db.get_pinned(b"empty", &ReadOptions::default()).unwrap().unwrap(), b"");

    let expected = Place::Log.value();
    let is_log = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "vlog");
    for path in std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).filter(is_log)
    {
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(LARGE).position(|window| window == expected) {
            bytes[at + 100] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let unchecked = ReadOptions { verify_checksums: false, ..ReadOptions::default() };
    for _ in 0..3 {
        let damaged = db.get_pinned(KEY, &unchecked).unwrap().unwrap();
        assert!(damaged.len() == LARGE && damaged != expected);
        assert_eq!(db.get_pinned(KEY, &ReadOptions::default()).unwrap_err().kind(), ErrorKind::Corruption);
    }
}

/// A snapshot's value is not that of the row, nor a row's that of the snapshot.
#[test]
fn a_value_is_pinned_as_of_its_moment() {
    for place in PLACES {
        let directory = fast_directory();
        let db = place.fill(directory.path(), true, true);
        let before = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
        db.put(KEY, b"new").unwrap();
        for _ in 0..3 {
            assert_eq!(pin(&db), b"new");
            assert_eq!(db.get_pinned(KEY, &before).unwrap().unwrap(), place.value());
        }
    }
}

/// Equal keys may be longer than they were written: the record is not as long as the key lets one expect.
#[test]
fn a_value_is_pinned_under_another_spelling_of_its_key() {
    #[derive(Debug)]
    struct WithoutDots;
    impl tamarack::Comparator for WithoutDots {
        fn name(&self) -> &str {
            "test.WithoutDots"
        }
        fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
            let letters = |key: &[u8]| key.iter().copied().filter(|&byte| byte != b'.').collect::<Vec<_>>();
            letters(left).cmp(&letters(right))
        }
    }
    let directory = fast_directory();
    for codec in [Codec::None, Codec::Lz4] {
        let comparator = std::sync::Arc::new(WithoutDots);
        let options = Options { comparator, value_codec: codec, ..tiny_without_gc() };
        let db = Db::open(directory.path(), options).unwrap();
        db.put(b"a.b.c", &[7; LARGE]).unwrap();
        for key in [&b"abc"[..], b"a.b.c", b"....a....b....c", b"abc...."] {
            assert_eq!(db.get_pinned(key, &ReadOptions::default()).unwrap().unwrap(), [7; LARGE]);
        }
    }
}
