//! The list against a `BTreeMap`, and under threads.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Barrier;

use proptest::prelude::*;

use super::*;
use crate::base::sync::Arc;

/// The order of bytes, with a code of the first `code_bytes` bytes.
struct Bytes {
    code_bytes: usize,
}

impl Order for Bytes {
    fn compare(&self, left: &[u8], right: &[u8]) -> cmp::Ordering {
        left.cmp(right)
    }

    fn code(&self, key: &[u8]) -> u32 {
        let byte = |at: usize| if at < self.code_bytes { key.get(at).copied().unwrap_or(0) } else { 0 };
        u32::from_be_bytes([byte(0), byte(1), byte(2), byte(3)])
    }
}

fn list(code_bytes: usize, capacity_bytes: usize) -> SkipList<Bytes> {
    SkipList::new(Bytes { code_bytes }, capacity_bytes)
}

fn keys(list: &SkipList<Bytes>) -> Vec<Vec<u8>> {
    std::iter::successors(list.first(), |node| node.next()).map(|node| node.key().to_vec()).collect()
}

fn pair(node: Node<'_>) -> (Vec<u8>, Vec<u8>) {
    (node.key().to_vec(), node.payload().to_vec())
}

fn cases() -> ProptestConfig {
    let mut config = ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 });
    config.failure_persistence = None;
    config
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn agrees_with_a_map(
        entries in prop::collection::btree_map(
            prop::collection::vec(0_u8..4, 0..8), prop::collection::vec(any::<u8>(), 0..20), 0..60,
        ).prop_flat_map(|map| Just(map.into_iter().collect::<Vec<_>>()).prop_shuffle()),
        targets in prop::collection::vec(prop::collection::vec(0_u8..4, 0..8), 1..20),
        code_bytes in 0_usize..=4,
        split in 0_usize..8,
    ) {
        let capacity = entries.iter()
            .map(|(key, payload)| SkipList::<Bytes>::entry_bytes_max(key.len(), payload.len())).sum();
        let list = list(code_bytes, capacity);
        let mut model = BTreeMap::new();
        for (key, payload) in entries {
            let (front, back) = key.split_at(split.min(key.len()));
            list.insert([front, back], &payload);
            model.insert(key, payload);
        }
        let owned = |(key, payload): (&Vec<u8>, &Vec<u8>)| (key.clone(), payload.clone());
        prop_assert_eq!(keys(&list), model.keys().cloned().collect::<Vec<_>>());
        prop_assert_eq!(list.first().map(pair), model.first_key_value().map(owned));
        prop_assert_eq!(list.last().map(pair), model.last_key_value().map(owned));
        prop_assert_eq!(list.entries(), model.len() as u64);
        prop_assert!(list.used_bytes() <= capacity);
        for target in targets {
            let at_or_after = model.range::<[u8], _>((Bound::Included(&target[..]), Bound::Unbounded)).next();
            prop_assert_eq!(list.seek_ge(&target).map(pair), at_or_after.map(owned));
            let before = model.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&target[..]))).next_back();
            prop_assert_eq!(list.seek_lt(&target).map(pair), before.map(owned));
        }
    }
}

#[test]
fn ascending_descending_and_mixed_runs_stay_sorted() {
    let count = if cfg!(miri) { 60_u64 } else { 20_000 };
    let orders: [fn(u64, u64) -> u64; 3] = [
        |index, _| index,
        |index, count| count - index,
        |index, count| (index % 2) * count + index, // two ascending streams, one behind the other
    ];
    for order in orders {
        let list = list(4, SkipList::<Bytes>::entry_bytes_max(8, 0) * count as usize);
        let mut expected = Vec::new();
        for index in 0..count {
            let key = order(index, count).to_be_bytes();
            list.insert([&key, &[]], &[]);
            expected.push(key.to_vec());
        }
        expected.sort();
        assert_eq!(keys(&list), expected);
        assert_eq!(list.last().map(|node| node.key().to_vec()), expected.pop());
    }
}

/// Keys of which most have codes that lie together, behind those of a few buckets: searches from there are given up, in one tier after the other.
#[test]
fn codes_that_crowd_are_searched_from_higher_up() {
    let count = if cfg!(miri) { 60_u64 } else { 4_000 };
    let list = list(4, SkipList::<Bytes>::entry_bytes_max(8, 0) * count as usize * 8);
    let apart = count / 10;
    let key = |number: u64| {
        let step = if number < apart { number << 49 } else { (apart << 49) + (number << 30) };
        ((1 << 62) + step).to_be_bytes()
    };
    let mut numbers: Vec<u64> = (0..count).collect();
    numbers.sort_by_key(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for number in &numbers {
        list.insert([&key(*number), &[]], &number.to_le_bytes());
    }
    assert_eq!(keys(&list), (0..count).map(|number| key(number).to_vec()).collect::<Vec<_>>());
    for number in numbers {
        let found = list.seek_ge(&key(number)).expect("it was inserted");
        assert_eq!(pair(found), (key(number).to_vec(), number.to_le_bytes().to_vec()));
    }
    let given_up = list.fingers.given_up();
    assert!(cfg!(miri) || given_up[..3].iter().all(|buckets| *buckets > 0), "{given_up:?}");
}

/// As behind a key that is written again and again: what lies between it and the next key has no node of its own.
#[test]
fn a_bucket_without_a_node_is_given_up_and_those_behind_it_know() {
    let count = if cfg!(miri) { 60_u64 } else { 4_000 };
    let list = list(1, SkipList::<Bytes>::entry_bytes_max(9, 0) * count as usize * 2);
    // The newest is before all others.
    for number in (0..count).rev() {
        list.insert([&[100], &number.to_be_bytes()], &[]);
    }
    list.insert([&[200], &[]], &[]);
    for byte in 101..200 {
        assert_eq!(list.seek_ge(&[byte]).map(Node::key), Some(&[200][..]));
    }
    let given_up = list.fingers.given_up();
    assert!(cfg!(miri) || given_up[..3] == [1, 1, 1], "{given_up:?}");
}

#[test]
fn concurrent_inserts_lose_nothing_and_stay_sorted() {
    let threads = 8;
    let each = if cfg!(miri) { 12_u64 } else { 5_000 };
    for ascending in [false, true] {
        let capacity = SkipList::<Bytes>::entry_bytes_max(16, 8) * (threads * each) as usize;
        let list = list(2, capacity);
        let start = Barrier::new(threads as usize);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (list, start) = (&list, &start);
                scope.spawn(move || {
                    start.wait();
                    for index in 0..each {
                        let number = index * threads + thread;
                        let spread =
                            if ascending { number } else { number.wrapping_mul(0x9e37_79b9_7f4a_7c15) };
                        let key = [spread.to_be_bytes(), number.to_be_bytes()].concat();
                        list.insert([&key, &[]], &number.to_le_bytes());
                        let found = list.seek_ge(&key).expect("an insert is visible once it returns");
                        assert_eq!(found.key(), key);
                        assert_eq!(found.payload(), number.to_le_bytes());
                        if index % 64 == 0 {
                            let mut last: &[u8] = &[];
                            for node in std::iter::successors(list.first(), |node| node.next()).take(500) {
                                assert!(last < node.key());
                                last = node.key();
                            }
                        }
                    }
                });
            }
        });
        let keys = keys(&list);
        assert_eq!(keys.len() as u64, threads * each);
        assert!(keys.is_sorted());
        assert_eq!(list.entries(), threads * each);
    }
}

#[test]
fn a_cursor_outlives_the_list_handle_and_walks_both_ways() {
    let list = Arc::new(list(4, 4096));
    for key in [b"b", b"a", b"c"] {
        list.insert([key, &[]], key);
    }
    let mut cursor = ListCursor::new(Arc::clone(&list));
    drop(list);
    assert!(cursor.node().is_none());
    cursor.seek_to_first();
    let mut seen = Vec::new();
    while let Some(node) = cursor.node() {
        seen.push(pair(node).0);
        cursor.next();
    }
    cursor.seek_to_last();
    while let Some(node) = cursor.node() {
        seen.push(pair(node).1);
        cursor.prev();
    }
    assert_eq!(seen.concat(), b"abccba");
    cursor.seek_ge(b"bb");
    assert_eq!(cursor.node().map(Node::key), Some(&b"c"[..]));
}

#[test]
#[should_panic(expected = "no two entries of a list have equal keys")]
fn equal_keys_are_refused() {
    let list = list(4, 4096);
    list.insert([b"key", &[]], b"1");
    list.insert([b"k", b"ey"], b"2");
}

#[test]
#[should_panic(expected = "room in an arena is reserved before it is used")]
fn an_overfull_list_is_our_mistake() {
    let list = list(4, 64);
    for key in 0_u8..10 {
        list.insert([&[key], &[]], &[0; 16]);
    }
}

#[test]
fn fingers_take_an_eleventh_of_what_entries_may() {
    for bytes in [4 << 10, 100_000, 1 << 20, 3 << 20] {
        let fingers = Fingers::new(bytes / WORD_BYTES).bytes();
        assert!(fingers <= bytes / 11 + 200, "{fingers} for {bytes}");
    }
}

#[test]
fn a_quarter_of_each_level_reaches_the_next() {
    let total = if cfg!(miri) { 1 << 13 } else { 1 << 20 };
    let mut expected = total;
    for height in 2..=5 {
        let reach = (0..total).filter(|&ordinal| tower_height(ordinal) >= height).count() as u64;
        expected /= 4;
        assert!(reach > expected * 8 / 10 && reach < expected * 12 / 10, "{reach} of {expected} at {height}");
    }
    assert!((0..total).all(|ordinal| (1..=HEIGHT_MAX).contains(&tower_height(ordinal))));
}

/// Page faults that this thread has taken, without those that waited for a device.
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
fn page_faults() -> u64 {
    let line = std::fs::read_to_string("/proc/thread-self/stat").expect("the system says so");
    // The name of the program, in parentheses, may have blanks in it.
    let (_, numbers) = line.rsplit_once(") ").expect("a name");
    numbers.split(' ').nth(7).and_then(|faults| faults.parse().ok()).expect("a number of faults")
}

/// Memory of zeros that is read first takes two: the second one has to take the page of zeros away from all processors. (An atomic
/// instruction of other processors may read first.)
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
#[test]
fn an_insert_takes_one_page_fault_for_each_page() {
    let entries = |list: &SkipList<Bytes>| {
        for entry in 0..3000_u32 {
            list.insert([&entry.wrapping_mul(2_654_435_761).to_be_bytes(), &[]], &[]);
        }
    };
    // Small enough for small pages, and its lowest fingers large enough to be mapped; programs fault pages in, too, the first time.
    let [first, second] = [(); 2].map(|()| list(4, 7 << 20));
    entries(&first);
    let before = page_faults();
    entries(&second);
    let faults = page_faults() - before;
    let pages = (second.used_bytes() + second.fingers.bytes()).div_ceil(4096) as u64;
    assert!((1..pages + 16).contains(&faults), "{faults} faults for {pages} pages");
}
