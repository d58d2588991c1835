//! A directory of LevelDB is told from a damaged database, and nothing in it is touched.

use std::collections::BTreeMap;
use std::path::Path;

use tamarack::{Db, Error, ErrorKind, Options};

/// What LevelDB leaves in a directory, by name.
const FILES: &[(&str, &[u8])] = &[
    ("000003.log", b"records"),
    ("000005.ldb", b"blocks"),
    ("CURRENT", b"MANIFEST-000004\n"),
    ("LOCK", b""),
    ("LOG", b"messages"),
    ("MANIFEST-000004", b"edits"),
];

fn write(directory: &Path, files: &[(&str, &[u8])]) {
    for (name, bytes) in files {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
}

fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    // A directory, such as `lost`, counts by its name alone.
    let bytes = |path: &Path| if path.is_dir() { Vec::new() } else { std::fs::read(path).unwrap() };
    entries.map(|entry| (entry.file_name().into_string().unwrap(), bytes(&entry.path()))).collect()
}

fn refused<T>(outcome: Result<T, Error>) {
    let error = outcome.err().expect("it is no database of ours");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("holds a LevelDB database"), "{error}");
    assert!(error.message().contains("tamarack import-leveldb"), "{error}");
}

#[test]
fn open_repair_and_destroy_refuse_it_and_change_nothing() {
    // Whole; with a damaged CURRENT; without one; and with a table of an older version of LevelDB.
    let other: [&[(&str, &[u8])]; 4] = [&[], &[("CURRENT", b"MANI")], &[], &[("000006.sst", b"old")]];
    for (case, other) in other.into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), FILES);
        write(directory.path(), other);
        if case == 2 {
            std::fs::remove_file(directory.path().join("CURRENT")).unwrap();
        }
        let before = content(directory.path());
        refused(Db::open(directory.path(), Options::default()));
        refused(Db::open(directory.path(), Options { read_only: true, ..Options::default() }));
        refused(Db::repair(directory.path(), &Options::default()));
        refused(Db::destroy(directory.path()));
        assert_eq!(content(directory.path()), before, "case {case}");
    }
}

#[test]
fn a_database_of_ours_beside_a_file_of_such_a_name_is_ours() {
    let directory = tempfile::tempdir().unwrap();
    Db::open(directory.path(), Options::default()).unwrap().close().unwrap();
    write(directory.path(), &[("000003.log", b"somebody's notes")]);
    Db::open(directory.path(), Options::default()).unwrap().close().unwrap();

    // Damaged, it is damaged.
    write(directory.path(), &[("CURRENT", b"MANIFEST-000001\n")]);
    let error = Db::open(directory.path(), Options::default()).expect_err("CURRENT lacks its checksum");
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(Db::repair(directory.path(), &Options::default()).unwrap().changed);
    Db::destroy(directory.path()).unwrap();
    assert_eq!(content(directory.path()).into_keys().collect::<Vec<_>>(), ["000003.log", "lost"]);
}

#[test]
fn an_empty_database_without_segments_is_told_by_its_current() {
    let directory = tempfile::tempdir().unwrap();
    Db::open(directory.path(), Options::default()).unwrap().close().unwrap();
    write(directory.path(), &[("000003.log", b"somebody's notes")]);
    for name in content(directory.path()).into_keys().filter(|name| name.ends_with(".vlog")) {
        std::fs::remove_file(directory.path().join(name)).unwrap();
    }
    Db::destroy(directory.path()).unwrap();
    assert_eq!(content(directory.path()).into_keys().collect::<Vec<_>>(), ["000003.log"]);
    // What is left is no database at all.
    Db::destroy(directory.path()).unwrap();
    Db::open(directory.path(), Options::default()).unwrap().close().unwrap();
}
