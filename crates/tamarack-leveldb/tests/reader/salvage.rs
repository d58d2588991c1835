//! What is saved of a damaged database, block by block, and what is said of the rest.

use tamarack_leveldb::{Covers, Loss};

use crate::builder::{Edit, Log, Op, Shape, Table, append, batch, delete, entries, footer, put, varint};
use crate::home::{Content, Found, Home, model, texts};

fn ops(range: std::ops::Range<usize>) -> Vec<Op> {
    range.map(|at| put(&format!("key{at:04}"), &format!("value {at}"))).collect()
}

fn home(table: &Table) -> Home {
    let home = Home::with(&[Edit::first(0, 9, 1000).add(1, 5, table)]);
    home.write("000005.ldb", &table.bytes);
    home
}

fn flip(home: &Home, table: &Table, at: u64) {
    let mut bytes = table.bytes.clone();
    bytes[at as usize] ^= 1;
    home.write("000005.ldb", &bytes);
}

/// The one loss there is.
fn loss(found: &Found) -> &Loss {
    assert_eq!(found.losses.len(), 1, "{:?}", found.losses);
    &found.losses[0]
}

/// Whether `key` is one that the loss names.
fn is_covered(loss: &Loss, key: &[u8]) -> bool {
    match &loss.covers {
        Covers::Keys { from, up_to } => {
            from.as_ref().is_none_or(|from| from.as_slice() <= key)
                && up_to.as_ref().is_none_or(|up_to| up_to.as_slice() >= key)
        }
        _ => false,
    }
}

/// Everything that is missing in `found` is covered by its loss.
fn covers_what_is_missing(found: &Found, all: &Content) {
    let missing: Vec<_> = all.keys().filter(|key| !found.content.contains_key(*key)).collect();
    assert!(!missing.is_empty());
    assert!(missing.iter().all(|key| is_covered(loss(found), key)), "{missing:?} {:?}", found.losses);
}

#[test]
fn a_damaged_block_costs_its_entries_alone() {
    let ops = ops(0..100);
    for shape in [Shape::default(), Shape { compression: 0, short_successor: false, ..Shape::default() }] {
        let table = shape.table(&entries(1, &ops));
        assert!(table.blocks.len() > 10);
        let home = home(&table);
        for (number, (offset, len)) in table.blocks.iter().enumerate() {
            flip(&home, &table, offset + len / 2);
            assert_eq!(home.damage().offset, *offset, "block {number}");
            let found = home.salvage();
            assert!(found.content.len() > 80, "block {number}: {}", found.content.len());
            assert_eq!((loss(&found).damage.offset, loss(&found).bytes), (*offset, len + 5));
            covers_what_is_missing(&found, &model(&ops));
            let named = model(&ops).keys().filter(|key| is_covered(loss(&found), key)).count();
            assert!(named < 20, "block {number}: {named} keys are named");
        }
    }
}

#[test]
fn each_of_several_damaged_blocks_names_its_own_keys() {
    let ops = ops(0..100);
    let table = Shape::default().table(&entries(1, &ops));
    let home = home(&table);
    let mut bytes = table.bytes.clone();
    for number in [3, 4, 5] {
        bytes[table.blocks[number].0 as usize] ^= 1;
    }
    home.write("000005.ldb", &bytes);
    let found = home.salvage();
    let all = model(&ops);
    let named = |loss: &Loss| all.keys().filter(|key| is_covered(loss, key)).count();
    assert_eq!(found.losses.len(), 3);
    assert!(found.losses.iter().all(|loss| (1..20).contains(&named(loss))), "{:?}", found.losses);
    let missing = all.keys().filter(|key| !found.content.contains_key(*key));
    let is_named = |key: &Vec<u8>| found.losses.iter().any(|loss| is_covered(loss, key));
    assert!(missing.into_iter().all(is_named), "{:?}", found.losses);
}

#[test]
fn blocks_that_an_index_names_and_a_walk_does_not_find_are_missing() {
    // The second of three blocks has a right checksum and is none: the walk cannot tell it from the blocks behind the data.
    let shape = Shape { compression: 0, ..Shape::default() };
    let rest = entries(1, &ops(0..3));
    let mut bytes = Vec::new();
    let mut places = Vec::new();
    for (at, entry) in rest.iter().enumerate() {
        let raw =
            if at == 1 { b"no block at all".to_vec() } else { shape.block(std::slice::from_ref(entry)) };
        let (offset, len) = append(&mut bytes, 0, &raw);
        let mut place = Vec::new();
        varint(&mut place, offset);
        varint(&mut place, len);
        places.push((entry.0.clone(), place));
    }
    let index = append(&mut bytes, 0, &shape.block(&places));
    footer(&mut bytes, (0, 0), index);
    let (smallest, largest) = (rest[0].0.clone(), rest[2].0.clone());
    let table = Table { bytes, smallest, largest, blocks: Vec::new(), index };
    let home = home(&table);
    assert_eq!(home.salvage().content.len(), 2, "the index leads to both that are blocks");
    flip(&home, &table, table.bytes.len() as u64 - 1);
    let found = home.salvage();
    assert_eq!(found.content, model(&ops(0..1)));
    covers_what_is_missing(&found, &model(&ops(0..3)));
}

#[test]
fn a_lost_index_costs_nothing_where_the_blocks_are_whole() {
    let ops = ops(0..100);
    for filter in [false, true] {
        let table = Shape { filter, ..Shape::default() }.table(&entries(1, &ops));
        let home = home(&table);
        // The footer's magic number: all is found by walking, and so is the index.
        flip(&home, &table, table.bytes.len() as u64 - 1);
        let found = home.salvage();
        assert_eq!(found.content, model(&ops));
        assert_eq!((&loss(&found).covers, loss(&found).bytes), (&Covers::Nothing, 0));
        // The index itself: all is found, but nothing says that it is all.
        flip(&home, &table, table.index.0 + 3);
        assert_eq!(home.damage().offset, table.index.0);
        let found = home.salvage();
        assert_eq!(found.content, model(&ops));
        assert!(matches!(loss(&found).covers, Covers::Keys { .. }));
    }
}

#[test]
fn of_a_table_that_was_cut_the_blocks_in_front_are_saved() {
    let ops = ops(0..100);
    let table = Shape::default().table(&entries(1, &ops));
    let home = home(&table);
    let (offset, _) = table.blocks[7];
    home.write("000005.ldb", &table.bytes[..offset as usize + 20]);
    let found = home.salvage();
    assert!(found.content.len() > 30 && found.content.len() < 90, "{}", found.content.len());
    assert_eq!(loss(&found).bytes, table.bytes.len() as u64 - offset);
    covers_what_is_missing(&found, &model(&ops));
    // Without a manifest as well, but then nobody knows which keys are missing.
    home.remove("MANIFEST-000002");
    let again = home.salvage();
    assert_eq!(again.content, found.content);
    assert_eq!(again.losses.len(), 2, "CURRENT leads nowhere, and the table: {:?}", again.losses);
}

#[test]
fn values_that_look_like_an_index_are_values() {
    // The values are places of blocks; only those of the blocks before would make an index of theirs.
    let table = Shape { compression: 0, block_bytes: 1, ..Shape::default() };
    let pairs: Vec<Op> =
        (0..20_u8).map(|at| Op::Put(vec![b'a' + at], vec![at, 17 + u8::from(at % 2 == 0)])).collect();
    let table = table.table(&entries(1, &pairs));
    let home = home(&table);
    flip(&home, &table, table.bytes.len() as u64 - 1);
    assert_eq!(home.salvage().content, model(&pairs));
}

#[test]
fn what_hid_an_older_version_may_be_lost() {
    let old = Shape::default().table(&entries(1, &[put("a", "old"), put("b", "old"), put("c", "old")]));
    let new = Shape::default().table(&entries(4, &[put("a", "new"), delete("b")]));
    let home = Home::with(&[Edit::first(0, 9, 10).add(2, 5, &old).add(1, 6, &new)]);
    home.write("000005.ldb", &old.bytes);
    let mut bytes = new.bytes.clone();
    bytes[2] ^= 1;
    home.write("000006.ldb", &bytes);
    let found = home.salvage();
    assert_eq!(found.content, texts(&[("a", "old"), ("b", "old"), ("c", "old")]));
    // So both keys are named, and the third is not.
    assert!(is_covered(loss(&found), b"a") && is_covered(loss(&found), b"b"));
    assert!(!is_covered(loss(&found), b"c"));
}

#[test]
fn everything_else_goes_on() {
    let (one, two) = (
        Shape::default().table(&entries(1, &ops(0..50))),
        Shape::default().table(&entries(51, &ops(50..100))),
    );
    let home = Home::with(&[Edit::first(4, 9, 200).add(1, 5, &one).add(1, 6, &two)]);
    home.write("000005.ldb", b"");
    home.write("000006.ldb", &two.bytes);
    home.write("000004.log", Log::of(&[batch(201, &ops(100..120))]));
    let found = home.salvage();
    assert_eq!(found.content, model(&ops(50..120)));
    covers_what_is_missing(&found, &model(&ops(0..120)));
    assert_eq!(found.counts.tables, 2);
}
