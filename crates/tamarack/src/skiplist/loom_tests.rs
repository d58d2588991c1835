//! The list under loom, which looks for races in nodes and tries every value that a link may be found to have.

use loom::thread;

use super::*;
use crate::base::sync::{Arc, explore};

/// The order of bytes, with codes that tell half of the keys apart, spread so that each is in a bucket of its own.
#[derive(Debug)]
struct Coarse;

impl Order for Coarse {
    fn compare(&self, left: &[u8], right: &[u8]) -> cmp::Ordering {
        left.cmp(right)
    }

    fn code(&self, key: &[u8]) -> u32 {
        u32::from(key[0] / 2) << 25
    }
}

type List = Arc<SkipList<Coarse>>;

/// A list with these keys, and room for `more`.
fn list(keys: &[u8], more: usize) -> List {
    let capacity = SkipList::<Coarse>::entry_bytes_max(1, 1) * (keys.len() + more);
    let list = Arc::new(SkipList::new(Coarse, capacity));
    keys.iter().for_each(|key| insert(&list, *key));
    list
}

fn insert(list: &List, key: u8) {
    list.insert([&[key], &[]], &[!key]);
}

/// The key of `node`, which must be whole.
fn key(node: Node<'_>) -> u8 {
    assert_eq!((node.key().len(), node.payload()), (1, &[!node.key()[0]][..]));
    node.key()[0]
}

fn scan(list: &List) -> Vec<u8> {
    let keys: Vec<u8> = std::iter::successors(list.first(), |node| node.next()).map(key).collect();
    assert!(keys.is_sorted_by(|left, right| left < right), "{keys:?}");
    keys
}

/// A thread that inserts `key` and finds it.
fn inserting(list: &List, sought: u8) -> thread::JoinHandle<()> {
    let list = Arc::clone(list);
    thread::spawn(move || {
        insert(&list, sought);
        assert_eq!(list.seek_ge(&[sought]).map(key), Some(sought), "an insert is visible once it returns");
    })
}

/// A node that is found, going along, down or to the end, is whole.
#[test]
fn loom_what_is_found_is_whole() {
    let scans = explore("an insert, a scan and searches", 2, || {
        // The second insert has a tower of three levels.
        let list = list(&[10], 1);
        let writer = inserting(&list, 20);
        let found = scan(&list);
        assert!(matches!(list.seek_ge(&[15]).map(key), None | Some(20)));
        assert!(matches!(list.last().map(key), Some(10 | 20)));
        writer.join().expect("no panic");
        assert_eq!(scan(&list), [10, 20]);
        found
    });
    assert_eq!(scans, [vec![10], vec![10, 20]]);
}

/// A search that begins at the finger that an insert has just left finds what was there before.
#[test]
fn loom_a_finger_leads_to_what_is_behind_it() {
    let before = explore("an insert that leaves a finger and a search", 2, || {
        let list = list(&[200], 1);
        let writer = inserting(&list, 20);
        assert_eq!(list.seek_ge(&[199]).map(key), Some(200));
        let before = list.seek_lt(&[200]).map(key);
        writer.join().expect("no panic");
        assert_eq!(scan(&list), [20, 200]);
        before
    });
    assert_eq!(before, [None, Some(20)]);
}

/// Two nodes that go to one place, at the end of the list, with one code: each insert may follow the other's tail.
#[test]
fn loom_inserts_at_one_place_keep_the_order() {
    explore("two inserts at the end", 2, || {
        let list = list(&[], 2);
        let writer = inserting(&list, 20);
        insert(&list, 21);
        assert_eq!(list.seek_ge(&[21]).map(key), Some(21));
        writer.join().expect("no panic");
        assert_eq!(scan(&list), [20, 21]);
    });
}
