//! Tables: every shape, and what is damage in them.

use crate::builder::{Edit, Op, Shape, Table, append, delete, entries, footer, internal, put};
use crate::home::{Content, Home, model, texts};

/// A database with one table.
fn home(table: &Table) -> Home {
    let home = Home::with(&[Edit::first(0, 9, 1000).add(1, 5, table)]);
    home.write("000005.ldb", &table.bytes);
    home
}

/// Keys that have beginnings in common, the empty key, an empty value, values larger than a block.
fn some_ops() -> Vec<Op> {
    let mut ops: Vec<Op> =
        (0..200).map(|at| put(&format!("fruit/{:03}", at * 7 % 200), &format!("{at} pears"))).collect();
    ops.extend([put("", "the empty key"), put("empty", ""), put("large", &"apple ".repeat(500))]);
    ops.extend([put("fruit/007", "newer"), delete("fruit/008"), Op::Put(vec![0xff; 300], vec![0; 5000])]);
    ops
}

#[test]
fn every_shape_is_read() {
    let ops = some_ops();
    for compression in [0, 1, 2] {
        for (block_bytes, restart_interval) in [(1, 1), (200, 16), (4096, 2), (1 << 20, 16)] {
            for (filter, short_successor) in [(false, true), (true, false)] {
                let shape = Shape { compression, block_bytes, restart_interval, filter, short_successor };
                let found = home(&shape.table(&entries(1, &ops))).read().expect("whole");
                assert_eq!(found.content, model(&ops), "{shape:?}");
                assert_eq!(found.counts.older_versions, 2);
            }
        }
    }
}

#[test]
fn bytes_behind_the_table_mean_nothing() {
    let mut table = Shape::default().table(&entries(1, &some_ops()));
    let home = home(&table);
    table
        .bytes
        .extend_from_slice(b"LevelDB looks for the footer where the manifest says that the table ends");
    home.write("000005.ldb", &table.bytes);
    assert_eq!(home.content(), model(&some_ops()));
}

#[test]
fn forged_tables_are_damage_with_the_place() {
    let plain = Shape { compression: 0, ..Shape::default() };
    let one = |key: &[u8]| (key.to_vec(), b"1".to_vec());
    let (a, b) = (internal(b"a", 2, 1), internal(b"b", 1, 1));
    let good = plain.table(&[one(&a), one(&b)]);
    let with = |blocks: &[u8], compression: u8| {
        // A table of one data block, with these bytes.
        let mut bytes = Vec::new();
        let place = append(&mut bytes, compression, blocks);
        let mut handle = Vec::new();
        crate::builder::varint(&mut handle, place.0);
        crate::builder::varint(&mut handle, place.1);
        let meta = append(&mut bytes, 0, &plain.block(&[]));
        let index = append(&mut bytes, 0, &plain.block(&[(b.clone(), handle)]));
        footer(&mut bytes, meta, index);
        Table { bytes, ..good.clone() }
    };
    assert_eq!(home(&with(&plain.block(&[one(&a), one(&b)]), 0)).content(), texts(&[("a", "1"), ("b", "1")]));
    let cases = [
        ("keys out of order", with(&plain.block(&[one(&a), one(&b), one(&a)]), 0), "order"),
        ("the same key twice", with(&plain.block(&[one(&a), one(&a), one(&b)]), 0), "order"),
        ("another first key", with(&plain.block(&[one(&internal(b"aa", 2, 1)), one(&b)]), 0), "first key"),
        ("another last key", with(&plain.block(&[one(&a)]), 0), "last key"),
        ("no entries", with(&plain.block(&[]), 0), "last key"),
        (
            "a key beyond",
            with(&plain.block(&[one(&a), one(&b), one(&internal(b"c", 1, 1))]), 0),
            "keys between",
        ),
        ("a key too short", with(&plain.block(&[one(b"a")]), 0), "internal keys"),
        ("an unknown kind", with(&plain.block(&[one(&internal(b"a", 2, 2))]), 0), "internal keys"),
        ("a number beyond", with(&plain.block(&[one(&internal(b"a", 1001, 1))]), 0), "up to 1000"),
        ("no block", with(b"\xff\xff\xff\xff", 0), "a data block"),
        ("another compression", with(&plain.block(&[one(&a), one(&b)]), 7), "a block"),
    ];
    for (name, table, expected) in cases {
        let home = home(&table);
        let damage = home.damage();
        assert!(damage.file.ends_with("000005.ldb") && damage.offset == 0, "{name}: {damage}");
        assert!(damage.expected.contains(expected), "{name}: {damage}");
        let found = home.salvage();
        assert!(!found.losses.is_empty(), "{name}");
        let all = texts(&[("a", "1"), ("aa", "1"), ("b", "1")]);
        assert!(found.content.iter().all(|entry| all.get(entry.0) == Some(entry.1)), "{name}: {found:?}");
    }
}

#[test]
fn a_table_that_is_shorter_than_the_manifest_says_is_damage() {
    let table = Shape::default().table(&entries(1, &some_ops()));
    let home = home(&table);
    for len in [0, 1, 47, 48, table.bytes.len() / 2, table.bytes.len() - 1] {
        home.write("000005.ldb", &table.bytes[..len]);
        let damage = home.damage();
        assert_eq!(damage.offset, len as u64, "{damage}");
        assert!(damage.expected.contains(&table.bytes.len().to_string()), "{damage}");
    }
}

#[test]
fn a_table_of_another_name_is_noticed() {
    let (one, two) = (
        Shape::default().table(&entries(1, &[put("a", "1"), put("b", "1")])),
        Shape::default().table(&entries(1, &[put("b", "1"), put("c", "1")])),
    );
    let home = Home::with(&[Edit::first(0, 9, 1000).add(1, 5, &one)]);
    home.write("000005.ldb", &two.bytes);
    assert!(home.damage().expected.contains("the first key"));
}

#[test]
fn many_tables_overlap_in_every_way() {
    // Every third key in each of three sets of tables, and a newer version of some; levels matter to nobody.
    let mut edit = Edit::first(0, 99, 10_000);
    let home = Home::new();
    let mut expected = Content::new();
    let mut number = 10;
    let mut sequence = 1;
    for set in 0..3_u64 {
        for part in 0..5_u64 {
            let range = (part * 40..part * 40 + 40).filter(|key| key % 3 == set || key % 7 == 0);
            let ops: Vec<Op> = range.map(|key| put(&format!("{key:04}"), &format!("set {set}"))).collect();
            let table = Shape::default().table(&entries(sequence, &ops));
            sequence += ops.len() as u64;
            expected.extend(model(&ops));
            edit = edit.add(6 - set, number, &table);
            home.write(&format!("{number:06}.ldb"), &table.bytes);
            number += 1;
        }
    }
    home.manifest(&[edit]);
    assert_eq!(home.content(), expected);
}
