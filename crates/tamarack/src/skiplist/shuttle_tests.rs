//! The list under shuttle's schedulers, which choose the order of all accesses to links.

use super::*;
use crate::base::sync::Arc;

/// The order of bytes, with a code that tells only half of the keys apart.
#[derive(Debug)]
struct Coarse;

impl Order for Coarse {
    fn compare(&self, left: &[u8], right: &[u8]) -> cmp::Ordering {
        left.cmp(right)
    }

    fn code(&self, key: &[u8]) -> u32 {
        u32::from(key.first().copied().unwrap_or(0) / 2)
    }
}

const WRITERS: u8 = 3;
const EACH: u8 = 4;

/// Runs `scenario` under many random schedules, then under schedules that switch at few chosen points.
fn explore(scenario: fn()) {
    shuttle::check_random(scenario, 12_000);
    shuttle::check_pct(scenario, 12_000, 3);
}

/// Writers insert keys that `key` deals out while a reader scans again and again.
fn writers_and_a_reader(key: fn(writer: u8, index: u8) -> u8) {
    let capacity = SkipList::<Coarse>::entry_bytes_max(1, 1) * usize::from(WRITERS * EACH);
    let list = Arc::new(SkipList::new(Coarse, capacity));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let list = Arc::clone(&list);
            shuttle::thread::spawn(move || {
                for index in 0..EACH {
                    let key = key(writer, index);
                    list.insert([&[key], &[]], &[!key]);
                    let found = list.seek_ge(&[key]).expect("an insert is visible once it returns");
                    assert_eq!((found.key(), found.payload()), (&[key][..], &[!key][..]));
                }
            })
        })
        .collect();
    let reader = {
        let list = Arc::clone(&list);
        shuttle::thread::spawn(move || {
            let mut before = Vec::new();
            for _ in 0..3 {
                let now = scan(&list);
                assert!(before.iter().all(|key| now.contains(key)), "an entry once seen stays");
                before = now;
            }
        })
    };
    for thread in writers.into_iter().chain([reader]) {
        thread.join().expect("no thread panics");
    }
    assert_eq!(scan(&list).len(), usize::from(WRITERS * EACH));
    assert_eq!(list.entries(), u64::from(WRITERS * EACH));
    assert!(levels_are_sorted(&list));
}

fn scan(list: &SkipList<Coarse>) -> Vec<u8> {
    let keys: Vec<u8> =
        std::iter::successors(list.first(), |node| node.next()).map(|node| node.key()[0]).collect();
    assert!(keys.is_sorted_by(|left, right| left < right), "{keys:?}");
    keys
}

fn levels_are_sorted(list: &SkipList<Coarse>) -> bool {
    (0..HEIGHT_MAX).all(|level| {
        let nodes =
            std::iter::successors(list.nodes.head(level).load().target(), |slot| slot.load().target());
        nodes.map(|slot| slot.node().key()[0]).is_sorted_by(|left, right| left < right)
    })
}

#[test]
fn interleaved_keys() {
    explore(|| writers_and_a_reader(|writer, index| index * WRITERS + writer));
}

#[test]
fn ascending_and_descending_writers() {
    explore(|| {
        writers_and_a_reader(|writer, index| {
            let index = if writer == 1 { EACH - 1 - index } else { index };
            index * WRITERS + writer
        });
    });
}

#[test]
fn every_writer_inserts_in_front_of_the_others() {
    explore(|| writers_and_a_reader(|writer, index| u8::MAX - index * WRITERS - writer));
}
