//! What the way through Go must not change, and what it costs.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::time::Instant;

use super::*;

fn store(separated_min: Option<u32>) -> (tempfile::TempDir, Badger) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let setting = Setting { cache_bytes: Some(1 << 20), ..Setting::default() };
    let store = open(directory.path(), setting, false, separated_min).expect("it opens");
    (directory, store)
}

fn keys(store: &Badger, range: (Bound<&str>, Bound<&str>), backward: bool) -> Vec<String> {
    let range = (range.0.map(str::as_bytes), range.1.map(str::as_bytes));
    let mut walk = store.walk(range, backward).expect("it begins");
    let mut keys = Vec::new();
    while walk.advance().expect("it goes on") {
        keys.push(String::from_utf8(walk.key().to_vec()).expect("keys are text"));
    }
    assert!(!walk.advance().expect("it stays at the end"));
    keys
}

#[test]
fn values_of_any_length_come_back() {
    for separated_min in [None, Some(128)] {
        let (_directory, store) = store(separated_min);
        let value = |number: usize| vec![number as u8; number * number * 7];
        let names: Vec<Vec<u8>> = (0..200).map(|number| format!("{number:03}").into_bytes()).collect();
        let changes: Vec<Change<'_>> = names.iter().map(|key| Change::Put(key, b"replaced")).collect();
        store.write(&changes, false).expect("it is written");
        for (number, key) in names.iter().enumerate() {
            store.put(key, &value(number), number % 50 == 0).expect("it is written");
        }
        store.delete(&names[7], true).expect("it is deleted");
        store.write(&[Change::Delete(&names[8]), Change::Put(&names[9], b"")], true).expect("it is written");
        let expected = |number: usize| match number {
            7 | 8 => None,
            9 => Some(Vec::new()),
            _ => Some(value(number)),
        };
        let mut found = b"what was there".to_vec();
        for (number, key) in names.iter().enumerate() {
            let value = store.get(key, &mut found).expect("it can be read").then(|| found.clone());
            assert!(value == expected(number), "{number}");
        }
        for (from, to) in [(0, 200), (0, 0), (5, 10), (199, 200), (0, 200)] {
            let values = store.multi_get(&names[from..to]).expect("they can be read");
            assert!(values == (from..to).map(expected).collect::<Vec<_>>(), "{from}");
        }
        for backward in [false, true] {
            let mut walk = store.walk((Unbounded, Unbounded), backward).expect("it begins");
            let mut numbers: Vec<usize> = (0..200).filter(|number| expected(*number).is_some()).collect();
            if backward {
                numbers.reverse();
            }
            for number in numbers {
                assert!(walk.advance().expect("it goes on"));
                assert_eq!(walk.key(), names[number]);
                assert!(Some(walk.value().expect("it can be read").to_vec()) == expected(number), "{number}");
            }
            assert!(!walk.advance().expect("it ends"));
        }
        store.settle().expect("it settles");
    }
}

#[test]
fn walks_keep_to_their_range() {
    let (_directory, store) = store(None);
    assert_eq!(keys(&store, (Unbounded, Unbounded), false), [""; 0]);
    for key in ["b", "d", "f", "h"] {
        store.put(key.as_bytes(), b"", false).expect("it is written");
    }
    for (range, expected) in [
        ((Unbounded, Unbounded), &["b", "d", "f", "h"][..]),
        ((Included("d"), Included("f")), &["d", "f"]),
        ((Excluded("d"), Excluded("f")), &[]),
        ((Excluded("b"), Excluded("h")), &["d", "f"]),
        ((Included("c"), Included("g")), &["d", "f"]),
        ((Excluded("a"), Excluded("z")), &["b", "d", "f", "h"]),
        ((Included("i"), Unbounded), &[]),
        ((Unbounded, Excluded("b")), &[]),
    ] {
        assert_eq!(keys(&store, range, false), expected, "{range:?}");
        let backward: Vec<&str> = expected.iter().rev().copied().collect();
        assert_eq!(keys(&store, range, true), backward, "{range:?}");
    }
}

#[test]
fn what_badger_refuses_is_told() {
    let (directory, store) = store(None);
    let refused = store.put(b"", b"value", false).expect_err("Badger has no empty keys");
    assert!(refused.contains("Key cannot be empty"), "{refused}");
    let locked = open(directory.path(), Setting::default(), true, None).err().expect("it is open already");
    assert!(locked.contains("Another process is using this Badger database"), "{locked}");
}

#[test]
#[ignore = "prints times, says something on an idle machine; in bench-peers: cargo test --release -- --ignored --nocapture the_way"]
fn the_way_into_go_and_back() {
    const TIMES: u32 = 1_000_000;
    library::cross().expect("the library can be loaded");
    let started = Instant::now();
    for _ in 0..TIMES {
        library::cross().expect("the library is loaded");
    }
    println!("{:?}", started.elapsed() / TIMES);
}
