//! Each file of a small database is removed, each is cut. Whatever is read then is right, or an error that names the file:
//! never a missing key, a wrong value or a panic. `tests/rot.rs` does the same with single bytes.
//!
//! The database has tables at several levels, sealed segments and a log tail, and was closed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{Random, copy_directory, fast_directory, file_names, open, tiny};
use tamarack::{CheckLevel, Codec, Db, Error, ErrorKind, IterOptions, Options, ReadOptions};

struct Golden {
    root: tempfile::TempDir,
    expected: BTreeMap<Vec<u8>, Vec<u8>>,
    absent: Vec<Vec<u8>>,
}

fn options() -> Options {
    Options { block_codec: Codec::Lz4, value_codec: Codec::Lz4, background_threads: 1, ..tiny() }
}

/// Where a file bears the last number of its kind, or the one before, nothing may be written that is not found again.
#[test]
fn strays_with_the_last_numbers_of_their_kind_do_no_harm() {
    for stray in [
        "2147483646.vlog",
        "2147483647.vlog",
        "2147483646.cold",
        "2147483647.cold",
        "18446744073709551614.table",
        "18446744073709551615.table",
        "MANIFEST-18446744073709551614",
        "MANIFEST-18446744073709551615",
    ] {
        let root = fast_directory();
        let (path, copy) = (root.path().join("db"), root.path().join("copy"));
        let db = open(&path, &options()).unwrap();
        db.put(b"1", &[1; 100]).unwrap();
        db.flush().unwrap();
        db.close().unwrap();
        std::fs::write(path.join(stray), "").unwrap();
        let db = open(&path, &options()).unwrap_or_else(|error| panic!("{stray}: {error}"));
        db.put(b"2", &[2; 100]).unwrap();
        copy_directory(&path, &copy);
        drop(db);
        for path in [&path, &copy] {
            let db = open(path, &options()).unwrap_or_else(|error| panic!("{stray}: {error}"));
            assert_eq!(db.get(b"2").unwrap(), Some(vec![2; 100]), "{stray}");
            db.close().unwrap();
            std::fs::write(path.join(stray), "").unwrap();
            if let Err(error) = Db::repair(path, &options()) {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{stray}: {error}");
            }
            let db = open(path, &options()).unwrap_or_else(|error| panic!("{stray}, repaired: {error}"));
            assert_eq!(db.get(b"1").unwrap(), Some(vec![1; 100]), "{stray}, repaired");
            assert_eq!(db.get(b"2").unwrap(), Some(vec![2; 100]), "{stray}, repaired");
            db.flush().unwrap();
            db.close().unwrap();
            // Damage makes a repair write files of each kind.
            let of_kind =
                |kind: &str| file_names(path).into_iter().find(|name| name.ends_with(kind) && *name != stray);
            for kind in [".vlog", ".table"] {
                let file = path.join(of_kind(kind).unwrap());
                let mut bytes = std::fs::read(&file).unwrap();
                let at = if kind == ".vlog" { bytes.len().min(140) - 1 } else { bytes.len() / 3 };
                bytes[at] ^= 1;
                std::fs::write(&file, bytes).unwrap();
            }
            std::fs::write(path.join(stray), "").unwrap();
            if let Err(error) = Db::repair(path, &options()) {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{stray}, damaged: {error}");
                assert!(error.to_string().contains(stray), "{error}");
                std::fs::remove_file(path.join(stray)).unwrap();
                Db::repair(path, &options()).unwrap();
            }
            let db = open(path, &options()).unwrap_or_else(|error| panic!("{stray}, damaged: {error}"));
            let found = [b"1", b"2"]
                .map(|key| db.get(key).unwrap_or_else(|error| panic!("{stray}, damaged: {error}")));
            for (value, byte) in found.into_iter().zip([1, 2]) {
                assert!(value.is_none_or(|value| value == [byte; 100]), "{stray}, damaged");
            }
            db.put(b"3", &[3; 100]).unwrap();
            db.close().unwrap();
            let db = open(path, &options()).unwrap_or_else(|error| panic!("{stray}, again: {error}"));
            assert_eq!(db.get(b"3").unwrap(), Some(vec![3; 100]), "{stray}, again");
        }
    }
}

impl Golden {
    /// Makes a database, closes it, and keeps a copy of its files.
    fn new() -> Self {
        let root = fast_directory();
        let db = open(&root.path().join("db"), &options()).unwrap();
        let mut expected = BTreeMap::new();
        let mut put = |number: usize, round: u8| {
            let key = format!("key{number:04}").into_bytes();
            let value = match number % 4 {
                0 => vec![round; 5],
                1 => vec![round; 90],
                _ => Random::new(number as u64).bytes(100 + usize::from(round)),
            };
            db.put(&key, &value).unwrap();
            expected.insert(key, value);
        };
        (0..130).for_each(|number| put(number, 1));
        db.compact_range(None, None).unwrap();
        (0..130).step_by(9).for_each(|number| put(number, 2));
        db.delete(b"key0001").unwrap();
        db.flush().unwrap();
        db.wait_idle().unwrap();
        (0..130).step_by(17).for_each(|number| put(number, 3));
        db.delete(b"key0005").unwrap();
        db.sync().unwrap();
        for key in [b"key0001", b"key0005"] {
            expected.remove(&key[..]);
        }
        let levels = db.stats().levels.iter().filter(|level| level.tables > 0).count();
        assert!(levels > 1 && db.stats().segments.len() > 2, "{:?}", db.stats());
        let absent = vec![b"key0001".to_vec(), b"key0005".to_vec(), b"key0060x".to_vec(), b"zzz".to_vec()];
        db.close().unwrap();
        copy_directory(&root.path().join("db"), &root.path().join("copy"));
        Self { root, expected, absent }
    }

    fn copy(&self) -> PathBuf {
        self.root.path().join("copy")
    }

    /// Opens `path` and reads everything in every way. `file` is the damaged one.
    fn try_all(&self, path: &Path, file: &str, options: &Options, what: &str) -> Outcome {
        let mut outcome = Outcome { file: file.to_owned(), what: what.to_owned(), errors: 0 };
        match open(path, options) {
            Err(error) => outcome.accept(&error),
            Ok(db) => self.read_all(&db, &mut outcome),
        }
        outcome
    }

    fn read_all(&self, db: &Db, outcome: &mut Outcome) {
        let what = outcome.what.clone();
        for (key, value) in &self.expected {
            if let Some(found) = outcome.unless_error(db.get(key)) {
                assert!(found.as_ref() == Some(value), "{what}: get of {key:?} gives {found:?}");
            }
            if let Some(found) = outcome.unless_error(db.contains(key)) {
                assert!(found, "{what}: {key:?} is not contained");
            }
        }
        for key in &self.absent {
            if let Some(found) = outcome.unless_error(db.get(key)) {
                assert!(found.is_none(), "{what}: {key:?} is there");
            }
        }
        let keys: Vec<_> = self.expected.keys().collect();
        for (key, found) in keys.iter().zip(db.multi_get(&keys, &ReadOptions::default())) {
            if let Some(found) = outcome.unless_error(found) {
                assert!(found.as_ref() == Some(&self.expected[*key]), "{what}: multi_get of {key:?}");
            }
        }
        self.scan(db, outcome, false);
        self.scan(db, outcome, true);
    }

    /// Walks until the end or an error: what comes before it is right.
    fn scan(&self, db: &Db, outcome: &mut Outcome, backward: bool) {
        let what = outcome.what.clone();
        let Some(mut iter) = outcome.unless_error(db.iter(&IterOptions::default())) else { return };
        let placed = if backward { iter.seek_to_last() } else { iter.seek_to_first() };
        let mut expected: Vec<_> = self.expected.iter().collect();
        if backward {
            expected.reverse();
        }
        let mut moved = outcome.unless_error(placed);
        for (key, value) in expected {
            if moved.is_none() {
                return;
            }
            assert!(iter.valid(), "{what}: a scan ends before {key:?}, backward: {backward}");
            assert_eq!(iter.key(), key, "{what}: backward: {backward}");
            if let Some(found) = outcome.unless_error(iter.value().map(<[u8]>::to_vec)) {
                assert!(&found == value, "{what}: a scan gives a wrong value of {key:?}");
            }
            let step = if backward { iter.prev() } else { iter.next() };
            moved = outcome.unless_error(step);
        }
        assert!(moved.is_none() || !iter.valid(), "{what}: a scan goes on behind the end");
    }
}

/// What reading a damaged database came to.
struct Outcome {
    file: String,
    what: String,
    errors: usize,
}

impl Outcome {
    fn unless_error<T>(&mut self, outcome: tamarack::Result<T>) -> Option<T> {
        outcome.map_err(|error| self.accept(&error)).ok()
    }

    /// An error is acceptable if it says what is wrong and where.
    fn accept(&mut self, error: &Error) {
        self.errors += 1;
        let what = &self.what;
        match error.kind() {
            ErrorKind::Corruption => {
                let place = error.as_corruption().unwrap_or_else(|| panic!("{what}: no place in {error}"));
                let named = place.file.file_name().unwrap().to_str().unwrap();
                // A manifest that was cut is a whole one of an earlier time: what is gone since is named.
                let cut = self.file.starts_with("MANIFEST") && what.contains("cut");
                assert!(cut || named == self.file, "{what}: {error}");
            }
            ErrorKind::Unsupported => assert!(error.message().contains(&self.file), "{what}: {error}"),
            kind => panic!("{what}: {kind}: {error}"),
        }
    }
}

#[test]
fn a_missing_or_cut_file_is_named() {
    let golden = Golden::new();
    let path = golden.root.path().join("damaged");
    for name in file_names(&golden.copy()) {
        for (read_only, paranoid_checks) in [(true, false), (false, false), (false, true)] {
            let options = Options { read_only, paranoid_checks, ..options() };
            copy_directory(&golden.copy(), &path);
            std::fs::remove_file(path.join(&name)).unwrap();
            let before = file_names(&path);
            let what = format!("{name} missing, read-only: {read_only}");
            let outcome = golden.try_all(&path, &name, &options, &what);
            assert_eq!(outcome.errors, 1, "{what}: it opens");
            assert_eq!(file_names(&path), before, "{what}: a refused open changes nothing");
            let whole = std::fs::read(golden.copy().join(&name)).unwrap();
            for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
                copy_directory(&golden.copy(), &path);
                std::fs::write(path.join(&name), &whole[..cut]).unwrap();
                let what = format!("{name} cut to {cut} of {}", whole.len());
                let outcome = golden.try_all(&path, &name, &options, &what);
                assert!(outcome.errors > 0 || name.starts_with("MANIFEST"), "{what}: it opens");
            }
        }
    }
}

#[test]
fn each_level_of_a_check_finds_what_those_below_do_not_look_at() {
    const KEY: &[u8] = b"key of the log";
    const VALUE: &[u8] = b"a value that is longer than what tables hold themselves";
    const INLINE: &[u8] = b"a short value";
    let root = fast_directory();
    let (original, path) = (root.path().join("db"), root.path().join("damaged"));
    let options = Options { block_codec: Codec::None, value_codec: Codec::None, ..options() };
    let db = open(&original, &options).unwrap();
    db.put(KEY, VALUE).unwrap();
    db.put(b"another", INLINE).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let (vlog, table) = (".vlog", ".table");
    let damages = [
        (table, None, CheckLevel::Structure),
        (vlog, None, CheckLevel::Structure),
        (table, Some(INLINE), CheckLevel::Checksums),
        (vlog, Some(KEY), CheckLevel::Liveness),
        (vlog, Some(VALUE), CheckLevel::Values),
    ];
    for (kind, within, found_by) in damages {
        copy_directory(&original, &path);
        let name = file_names(&path).into_iter().find(|name| name.ends_with(kind)).unwrap();
        let mut bytes = std::fs::read(path.join(&name)).unwrap();
        match within {
            Some(part) => {
                let at = bytes.windows(part.len()).position(|window| window == part).unwrap();
                bytes[at + 2] ^= 1;
            }
            None => bytes.push(0),
        }
        std::fs::write(path.join(&name), &bytes).unwrap();
        let what = format!("{name}: {:?}", within.map(<[u8]>::escape_ascii).map(|part| part.to_string()));
        let opened = open(&path, &Options { read_only: true, ..options.clone() });
        let db = match opened {
            Err(error) => {
                assert!(found_by == CheckLevel::Structure, "{what}: {error}");
                assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
                continue;
            }
            Ok(db) => db,
        };
        for level in [CheckLevel::Structure, CheckLevel::Checksums, CheckLevel::Liveness, CheckLevel::Values]
        {
            let report = db.check(level);
            assert_eq!(report.is_clean(), level < found_by, "{what}: {level:?}: {:?}", report.problems);
        }
    }
}

#[test]
fn a_paranoid_open_notices_damage_that_no_read_meets() {
    let golden = Golden::new();
    let path = golden.root.path().join("damaged");
    for name in
        file_names(&golden.copy()).iter().filter(|name| name.ends_with(".table") || name.ends_with(".vlog"))
    {
        let whole = std::fs::read(golden.copy().join(name)).unwrap();
        for at in (0..whole.len()).step_by(23) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            copy_directory(&golden.copy(), &path);
            std::fs::write(path.join(name), &bytes).unwrap();
            // Opened for writing, it would make a footer that is not in use yet anew.
            let options = Options { paranoid_checks: true, read_only: true, ..options() };
            let what = format!("byte {at} of {} of {name}", whole.len());
            let outcome = golden.try_all(&path, name, &options, &what);
            assert!(outcome.errors > 0, "{what}: not noticed");
        }
    }
}
