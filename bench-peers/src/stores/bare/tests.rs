//! What comes back of the file, and what is refused.

use std::ops::Bound::{Excluded, Included, Unbounded};

use tamarack_bench::Cursor;
use tempfile::TempDir;

use super::*;
use crate::work::Work;

fn work(arguments: &str) -> Work {
    let arguments: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
    Work::parse(&arguments).expect("it can be understood")
}

fn opened(arguments: &str, direct: bool) -> Result<(TempDir, Bare), String> {
    opened_with(arguments, direct, Head::None)
}

fn opened_with(arguments: &str, direct: bool, head: Head) -> Result<(TempDir, Bare), String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let Work { plan, workloads, .. } = work(arguments);
    let setting = Setting { direct, ..Setting::default() };
    let store = open(directory.path(), &plan, &workloads, setting, head)?;
    Ok((directory, store))
}

fn key(number: usize) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

fn value(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (number * 31 + at * 7) as u8).collect()
}

/// The numbers of the values that a walk shows, of `bytes` each.
fn walked(store: &Bare, range: KeyRange<'_>, backward: bool, numbers: usize, bytes: usize) -> Vec<usize> {
    let mut walk = store.walk(range, backward).expect("it begins");
    let values: Vec<Vec<u8>> = (0..numbers).map(|number| value(number, bytes)).collect();
    let mut found = Vec::new();
    while walk.advance().expect("it goes on") {
        assert_eq!(walk.key().len(), 16);
        let value_there = walk.value().expect("it can be read");
        let number = values.iter().position(|value| value_there == value);
        found.push(number.expect("it was written"));
    }
    assert!(!walk.advance().expect("it stays at the end"));
    found
}

#[test]
fn the_latest_values_come_back() {
    for (bytes, direct, head) in [
        (1000, false, Head::None),
        (1000, true, Head::None),
        (4096, false, Head::None),
        (4096, true, Head::None),
        (9000, true, Head::None),
        (0, false, Head::None),
        (1000, false, Head::Record),
        (1000, true, Head::Record),
        (0, false, Head::Record),
    ] {
        let work = format!("fillseq --num 300 --value-size {bytes}");
        let (_directory, store) = opened_with(&work, direct, head).expect("it opens");
        let keys: Vec<Vec<u8>> = (0..300).map(key).collect();
        let values: Vec<Vec<u8>> = (0..300).map(|number| value(number, bytes)).collect();
        let stale = value(1000, bytes);
        let changes: Vec<Change<'_>> = keys.iter().map(|key| Change::Put(key, &stale)).collect();
        store.write(&changes, false).expect("it is written");
        for (key, value) in keys.iter().zip(&values).take(200) {
            store.put(key, value, false).expect("it is written");
        }
        let mut changes: Vec<Change<'_>> =
            keys.iter().zip(&values).skip(200).map(|(key, value)| Change::Put(key, value)).collect();
        changes.push(Change::Delete(&keys[8]));
        store.write(&changes, true).expect("it is written");
        store.delete(&keys[7], false).expect("it is forgotten");

        let expected = |number: usize| (number != 7 && number != 8).then(|| values[number].clone());
        let mut found = b"what was there".to_vec();
        for (number, key) in keys.iter().enumerate() {
            let is_there = store.get(key, &mut found).expect("it can be read");
            assert!(is_there.then(|| found.clone()) == expected(number), "{number}");
        }
        let at_once = store.multi_get(&keys).expect("they can be read");
        assert!(at_once == (0..300).map(expected).collect::<Vec<_>>());
        assert!(!store.get(b"0000000000000001.", &mut found).expect("it can be asked for"));
        store.settle().expect("it settles");
    }
}

#[test]
fn threads_write_and_sync_at_once() {
    let (directory, store) = opened("fillseq --num 400 --value-size 100", false).expect("it opens");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for number in thread * 100..(thread + 1) * 100 {
                    store.put(&key(number), &value(number, 100), true).expect("it is written");
                }
            });
        }
    });
    let mut found = Vec::new();
    for number in 0..400 {
        assert!(store.get(&key(number), &mut found).expect("it can be read"));
        assert!(found == value(number, 100), "{number}");
    }
    let file = directory.path().join(FILE).metadata().expect("it is there");
    assert_eq!(file.len(), 400 * 100);
}

#[test]
fn walks_show_the_file() {
    walks_show_a_file(Head::None);
    walks_show_a_file(Head::Record);
}

fn walks_show_a_file(head: Head) {
    // Eleven pieces and a part of one.
    const BYTES: usize = 200_000;
    const COUNT: usize = 57;
    let work = format!("fillseq --num {COUNT} --value-size {BYTES}");
    let (_directory, store) = opened_with(&work, false, head).expect("it opens");
    assert_eq!(walked(&store, (Unbounded, Unbounded), false, 0, BYTES), [0; 0]);
    for number in 0..COUNT {
        store.put(&key(number), &value(number, BYTES), false).expect("it is written");
    }
    let all: Vec<usize> = (0..COUNT).collect();
    let (first, second) = (key(20), key(40));
    for (range, expected) in [
        ((Unbounded, Unbounded), &all[..]),
        ((Unbounded, Excluded(&first[..])), &all[..20]),
        ((Included(&first[..]), Excluded(&second[..])), &all[20..40]),
        ((Included(&second[..]), Unbounded), &all[40..]),
    ] {
        assert_eq!(walked(&store, range, false, COUNT, BYTES), expected);
        let backward: Vec<usize> = expected.iter().rev().copied().collect();
        assert_eq!(walked(&store, range, true, COUNT, BYTES), backward);
    }
}

#[test]
fn scans_show_what_follows_a_key() {
    for (direct, head) in [(false, Head::None), (true, Head::None), (false, Head::Record)] {
        let work = "fillseq --num 300 --value-size 1000";
        let (_directory, store) = opened_with(work, direct, head).expect("it opens");
        for number in (0..300).rev().filter(|number| number % 3 > 0) {
            store.put(&key(number), &value(number + 1, 1000), false).expect("it is written");
            store.put(&key(number), &value(number, 1000), false).expect("it is written");
        }
        for (first, entries) in [(0, 100), (4, 1), (6, 2), (250, 100), (299, 5), (300, 5), (1000, 5)] {
            let mut scan = store.scan(&key(first), entries).expect("it begins");
            for number in (first..300).filter(|number| number % 3 > 0).take(entries as usize) {
                assert!(scan.advance().expect("it goes on"), "{number} of those from {first} on");
                assert_eq!(scan.key(), key(number));
                assert!(scan.value().expect("it is there") == value(number, 1000), "{number}");
            }
            assert!(!scan.advance().expect("it ends"), "{first}");
        }
    }
}

#[test]
fn a_record_has_the_key_before_its_value() {
    let (directory, store) =
        opened_with("fillseq --num 3 --value-size 100", false, Head::Record).expect("it opens");
    for number in 0..3 {
        store.put(&key(number), &value(number, 100), false).expect("it is written");
    }
    let bytes = std::fs::read(directory.path().join(FILE)).expect("it can be read");
    assert_eq!(bytes.len(), 3 * (HEADER_BYTES + 16 + 100));
    for (number, record) in bytes.chunks(HEADER_BYTES + 16 + 100).enumerate() {
        assert!(record[HEADER_BYTES..] == [key(number), value(number, 100)].concat());
    }
    store.places.set(&key(1), 2).expect("there is such a place");
    let failed = store.get(&key(1), &mut Vec::new()).expect_err("another key's record");
    assert!(failed.ends_with("here is no record of key 0000000000000001"), "{failed}");
    let failed = store.multi_get(&[key(1)]).expect_err("another key's record");
    assert!(failed.ends_with("here is no record of key 0000000000000001"), "{failed}");
}

#[test]
fn what_it_cannot_do_is_refused() {
    for (arguments, reason) in [
        ("fillseq --value-size 100..200", "values must all have one size, and not 100..200"),
        ("fillseq readseq --verify", "readseq: a walk does not know its keys, so nothing can be verified"),
    ] {
        assert_eq!(opened(arguments, false).err().as_deref(), Some(reason));
    }
    let (directory, store) = opened("fillseq --num 10 --value-size 100", false).expect("it opens");
    let longer = store.put(&key(1), &[0; 101], false).expect_err("it does not fit");
    assert!(longer.ends_with("here is one of 101 bytes beside those of 100"), "{longer}");
    let unknown = store.put(&key(10), &[0; 100], false).expect_err("there is no room for it");
    assert_eq!(unknown, "key 0000000000000010 is no number below 10");
    let Work { plan, workloads, .. } = work("fillseq");
    let again = open(directory.path(), &plan, &workloads, Setting::default(), Head::None);
    assert!(again.err().is_some_and(|error| error.starts_with("make ")));
}
