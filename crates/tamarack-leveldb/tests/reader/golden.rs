//! Databases that Debian's LevelDB 1.23 has written, and what it finds in them itself (`tests/data/README.md`).

use std::fs;
use std::path::{Path, PathBuf};

use tamarack_leveldb::Remark;

use crate::home::{Content, Home};

/// Their names.
pub const ALL: [&str; 4] = ["snappy", "log", "compacted", "torn"];

/// Where a golden database is.
pub fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// What LevelDB finds in it.
pub fn content(name: &str) -> Content {
    let lines = fs::read_to_string(directory(name).with_extension("tsv")).expect("it lies there");
    let bytes = |digits: &str| -> Vec<u8> {
        let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
        (0..digits.len()).step_by(2).map(pair).collect()
    };
    let line = |line: &str| {
        let (key, value) = line.split_once('\t').expect("a key and a value");
        (bytes(key), bytes(value))
    };
    lines.lines().map(line).collect()
}

#[test]
fn every_database_reads_as_leveldb_reads_it() {
    for name in ALL {
        let home = Home::copy_of(&directory(name));
        let before = home.files();
        let found = home.read().expect("it is whole");
        assert_eq!(found.content, content(name), "{name}");
        assert!(!found.content.is_empty());
        assert_eq!(home.files(), before, "nothing is changed");
        let torn = found.remarks.iter().any(|remark| matches!(remark, Remark::TornLog { .. }));
        assert_eq!((torn, found.remarks.len()), (name == "torn", usize::from(name == "torn")), "{name}");
    }
}

#[test]
fn they_hold_what_they_are_for() {
    let counts = |name| Home::copy_of(&directory(name)).read().expect("it is whole").counts;
    let snappy = counts("snappy");
    assert_eq!((snappy.tables, snappy.older_versions), (1, 0));
    let log = counts("log");
    assert_eq!((log.tables, log.logs, log.log_operations, log.deletions), (0, 1, 11, 3));
    let compacted = counts("compacted");
    assert!(compacted.tables > 1 && compacted.older_versions > 0 && compacted.deletions > 0, "{compacted:?}");
}

#[test]
fn salvage_of_a_whole_database_is_the_same() {
    for name in ALL {
        let found = Home::copy_of(&directory(name)).salvage();
        assert_eq!(found.content, content(name), "{name}");
        assert_eq!(found.losses, []);
    }
}
