//! Manifests: what edits come to, what is missing, and whose they are.

use tamarack_leveldb::{Covers, Error, Options, Remark};

use crate::builder::{Edit, Log, Shape, Table, batch, delete, entries, put};
use crate::home::{Home, read, texts};

fn table(sequence: u64, ops: &[crate::builder::Op]) -> Table {
    Shape::default().table(&entries(sequence, ops))
}

fn refused(home: &Home) -> String {
    match home.read().expect_err("it cannot be read") {
        Error::NotLevelDb(text) => text,
        other => panic!("another error: {other}"),
    }
}

#[test]
fn tables_come_move_and_go() {
    let (one, two) = (table(1, &[put("a", "1"), put("b", "1")]), table(3, &[put("b", "2"), delete("a")]));
    let home = Home::with(&[
        Edit::first(0, 3, 0),
        Edit::default().add(0, 5, &one).number(4, 2),
        // A move: the same table leaves one level and comes to another, in whatever order the edit says so.
        Edit::default().add(1, 5, &one).remove(0, 5).add(0, 7, &two).number(4, 4),
        Edit::default().add(0, 8, &two),
        Edit::default().remove(0, 8),
    ]);
    home.write("000005.ldb", &one.bytes);
    home.write("000007.sst", &two.bytes);
    home.write("000006.ldb", b"what a compaction has left");
    let found = home.read().expect("whole");
    assert_eq!(found.content, texts(&[("b", "2")]));
    assert_eq!(found.remarks, [Remark::UnusedTables(1)]);
    assert_eq!((found.counts.older_versions, found.counts.deletions), (2, 1));
}

#[test]
fn a_missing_table_is_named() {
    let one = table(1, &[put("a", "1"), put("b", "1")]);
    let home = Home::with(&[Edit::first(0, 9, 5).add(1, 5, &one)]);
    home.write("000004.log", Log::of(&[batch(6, &[put("c", "1")])]));
    let damage = home.damage();
    assert!(damage.file.ends_with("000005.ldb") && damage.found == "none", "{damage}");
    let found = home.salvage();
    assert_eq!(found.content, texts(&[("c", "1")]));
    let covers = Covers::Keys { from: Some(b"a".to_vec()), up_to: Some(b"b".to_vec()) };
    assert_eq!((found.losses.len(), &found.losses[0].covers), (1, &covers));
}

#[test]
fn an_edit_has_to_say_everything() {
    let edits = [
        Edit::default().number(2, 0).number(4, 0),
        Edit::default().number(3, 5).number(4, 0),
        Edit::default().number(2, 0).number(3, 5),
    ];
    for edit in edits {
        let damage = Home::with(&[edit]).damage();
        assert!(damage.file.ends_with("MANIFEST-000002"), "{damage}");
    }
    // Without a comparator's name it is the order of bytes.
    let home = Home::with(&[Edit::default().number(2, 0).number(3, 5).number(4, 0)]);
    assert_eq!(home.content(), texts(&[]));
}

#[test]
fn current_has_to_name_a_manifest() {
    let home = Home::with(&[Edit::first(0, 3, 0)]);
    home.write("000004.log", Log::of(&[batch(1, &[put("a", "1")])]));
    for current in
        [&b""[..], b"MANIFEST-000002", b"MANIFEST-\n", b"../MANIFEST-000002\n", b"\xff\n", b"000004.log\n"]
    {
        home.write("CURRENT", current);
        let damage = home.damage();
        assert!(damage.file.ends_with("CURRENT"), "{damage}");
        // The manifest is there, so nothing is lost.
        let found = home.salvage();
        assert_eq!((found.content, found.losses.len()), (texts(&[("a", "1")]), 1));
        assert_eq!(found.losses[0].covers, Covers::Nothing);
    }
    home.write("CURRENT", b"MANIFEST-000009\n");
    assert!(home.damage().file.ends_with("MANIFEST-000009"));
    home.remove("CURRENT");
    assert!(home.damage().file.ends_with("CURRENT"));
    assert_eq!(home.salvage().content, texts(&[("a", "1")]));
}

#[test]
fn a_torn_edit_was_never_made() {
    let one = table(1, &[put("a", "1")]);
    let first = Edit::first(0, 3, 5).add(1, 5, &one);
    let home = Home::with(&[first.clone(), Edit::default().remove(1, 5)]);
    home.write("000005.ldb", &one.bytes);
    assert_eq!(home.content(), texts(&[]));
    let bytes = Log::of(&[first.0, Edit::default().remove(1, 5).0]);
    home.write("MANIFEST-000002", &bytes[..bytes.len() - 1]);
    let found = home.read().expect("a crash leaves such a manifest");
    assert_eq!(found.content, texts(&[("a", "1")]));
    assert!(matches!(found.remarks.as_slice(), [Remark::TornManifest { .. }]), "{:?}", found.remarks);
}

#[test]
fn without_a_manifest_sequence_numbers_decide() {
    let old = table(1, &[put("a", "old"), put("b", "old"), put("c", "old")]);
    let new = table(4, &[put("a", "new"), delete("b")]);
    let home = Home::with(&[Edit::first(4, 9, 5).add(2, 5, &old).add(0, 6, &new)]);
    home.write("000005.ldb", &old.bytes);
    home.write("000006.ldb", &new.bytes);
    home.write("000003.log", Log::of(&[batch(1, &[put("a", "oldest")])]));
    home.write("000004.log", Log::of(&[batch(6, &[put("d", "log")])]));
    let whole = texts(&[("a", "new"), ("c", "old"), ("d", "log")]);
    assert_eq!(home.content(), whole);
    home.write("MANIFEST-000002", b"nothing of a manifest is left in this one");
    assert!(home.damage().file.ends_with("MANIFEST-000002"));
    let found = home.salvage();
    assert_eq!(found.content, whole);
    assert_eq!((found.losses.len(), &found.losses[0].covers), (1, &Covers::Files));
    home.remove("MANIFEST-000002");
    assert_eq!(home.salvage().content, whole);
    // The table with the deletion is gone, and with nothing that names it, nobody knows: so the report says `Files`.
    home.remove("000006.ldb");
    let found = home.salvage();
    assert_eq!(found.content, texts(&[("a", "old"), ("b", "old"), ("c", "old"), ("d", "log")]));
    assert_eq!(found.losses[0].covers, Covers::Files);
}

#[test]
fn a_comparator_of_somebody_elses_is_named() {
    // The order is that of the last byte.
    let reversed = Shape::default().table(&[
        (crate::builder::internal(b"za", 3, 1), b"1".to_vec()),
        (crate::builder::internal(b"yb", 2, 1), b"2".to_vec()),
        (crate::builder::internal(b"yb", 1, 1), b"0".to_vec()),
        (crate::builder::internal(b"xc", 5, 1), b"3".to_vec()),
        (crate::builder::internal(b"wd", 4, 0), Vec::new()),
    ]);
    let edit = Edit::default().comparator("mine").number(2, 4).number(3, 9).number(4, 5).add(1, 5, &reversed);
    let home = Home::with(&[edit]);
    home.write("000005.ldb", &reversed.bytes);
    home.write("000004.log", Log::of(&[batch(6, &[put("ad", "4"), delete("za")])]));
    let error = home.read().expect_err("the order is not known");
    assert!(matches!(&error, Error::Comparator { name, .. } if name == "mine"), "{error}");
    for memory_bytes in [1, 1 << 20] {
        let options = Options { any_comparator: true, memory_bytes, ..Options::default() };
        let found = read(home.path(), options).expect("entries are entries");
        assert_eq!(found.content, texts(&[("ad", "4"), ("xc", "3"), ("yb", "2")]), "{memory_bytes}");
        assert_eq!(found.remarks, [Remark::OtherOrder("mine".to_owned())]);
        assert_eq!((found.counts.older_versions, found.counts.deletions), (2, 2));
    }
}

#[test]
fn other_stores_are_told() {
    let home = Home::with(&[Edit::first(0, 3, 0)]);
    home.write("OPTIONS-000007", b"");
    assert!(refused(&home).contains("RocksDB"));
    // Fields of RocksDB's, under its name of the same order.
    let home = Home::with(&[Edit::first(0, 3, 0), Edit::default().number(103, 7)]);
    assert!(refused(&home).contains("RocksDB"));
    let home = Home::with(&[Edit::default().comparator("rocksdb.ReverseBytewiseComparator")]);
    assert!(refused(&home).contains("RocksDB"));
    // A table of RocksDB's.
    let mut one = table(1, &[put("a", "1")]);
    let home = Home::with(&[Edit::first(0, 9, 5).add(1, 5, &one)]);
    let magic = one.bytes.len() - 8;
    one.bytes[magic..].copy_from_slice(&0x88e2_41b7_85f4_cff7_u64.to_le_bytes());
    home.write("000005.sst", &one.bytes);
    assert!(refused(&home).contains("RocksDB"));
    // Nothing at all, and files of a store whose manifest has the same name.
    let home = Home::new();
    assert!(refused(&home).contains("no LevelDB database"));
    home.write("notes.txt", b"mine");
    home.write("CURRENT", b"TAMARACK and some bytes");
    home.write("MANIFEST-000001", b"of another store");
    assert!(refused(&home).contains("no LevelDB database"));
    let salvaged = read(home.path(), Options { salvage: true, ..Options::default() });
    assert!(matches!(salvaged, Err(Error::NotLevelDb(_))), "{salvaged:?}");
}
