//! The table of rows: what is found, what goes, and what it takes.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::base::shared_value::SharedValue;

fn row(key: u64, value: &[u8]) -> Row {
    row_as_of(1, key, value)
}

fn row_as_of(as_of: u64, key: u64, value: &[u8]) -> Row {
    let key = key.to_le_bytes();
    Row::new(SharedValue::copy(&Row::head(&key, Sequence(as_of)), &key, value).into_bytes())
}

/// A hash as good as those of keys.
fn hash(key: u64) -> u64 {
    crate::base::keys::hash_user_key(&key.to_le_bytes())
}

fn keys_in(table: &RowTable, keys: impl Iterator<Item = u64>) -> Vec<u64> {
    keys.filter(|&key| table.get(hash(key), &key.to_le_bytes()).is_some()).collect()
}

/// Every row is where it is looked for, and the sums are right.
fn check(table: &RowTable) {
    for shard in &table.shards {
        let shard = shard.0.read();
        assert!(shard.sets.len().is_power_of_two() && !shard.is_too_large());
        assert_eq!(shard.sets_wanted(), shard.sets.len());
        let rows = shard.sets.iter().flat_map(|set| &set.rows).flatten();
        let sums = rows.fold((0, 0), |(rows, bytes), row| (rows + 1, bytes + row.memory_bytes()));
        assert_eq!(sums, (shard.rows, shard.row_bytes));
        for (at, set) in shard.sets.iter().enumerate() {
            let ways = (0..WAYS).filter(|&way| set.rows[way].is_some());
            assert!(ways.into_iter().all(|way| shard.set(set.hashes[way]) == at));
        }
    }
}

#[test]
fn while_there_is_memory_hardly_a_row_goes() {
    let table = RowTable::new(1 << 30, 1 << 10, 2);
    let many = 100_000;
    for key in 0..many {
        table.insert(hash(key), row(key, b"value"));
        if key.is_power_of_two() {
            check(&table);
        }
    }
    check(&table);
    let there = keys_in(&table, 0..many).len() as u64;
    assert!((many * 995 / 1000..=many).contains(&there), "{there}");
    let bytes = table.bytes();
    (0..many).for_each(|key| table.insert(hash(key), row(key, b"value")));
    check(&table);
    assert!((bytes..bytes * 101 / 100).contains(&table.bytes()), "each takes the place of the one before it");
}

#[test]
fn what_is_used_outlives_what_is_not() {
    let table = RowTable::new(1 << 20, 1 << 10, 1);
    let (used, many) = (500, 50_000);
    for key in 0..many {
        table.insert(hash(key), row(key, &[7; 300]));
        if key % 500 == 0 {
            keys_in(&table, 0..used);
        }
    }
    check(&table);
    let there = keys_in(&table, 0..used).len();
    assert!(there > 450, "{there} of {used}");
    let others = keys_in(&table, used..many);
    let newer = others.iter().filter(|&&key| key > many - 4_000).count();
    assert!(others.len() > 1_000 && newer * 10 > others.len() * 8, "{newer} of {}", others.len());
}

#[test]
fn what_is_written_more_often_than_it_is_read_is_left_as_it_is() {
    let table = RowTable::new(1 << 20, 1 << 10, 1);
    let get = || table.get(hash(7), &7_u64.to_le_bytes());
    let renewed = |as_of| {
        let mut made = false;
        table.renew(hash(7), &7_u64.to_le_bytes(), Sequence(as_of), || {
            made = true;
            row_as_of(as_of, 7, b"new")
        });
        made
    };
    assert!(!renewed(2), "there is none");
    table.insert(hash(7), row(7, b"old"));
    assert!(!renewed(3), "nobody has asked for it");
    (0..2).for_each(|_| drop(get()));
    assert_eq!([4, 5, 6].map(renewed), [true, true, false], "once for each time");
    assert_eq!(get().map(|row| row.as_of()), Some(Sequence(5)));
    assert!(!renewed(5), "it is not newer");
    assert!(renewed(7));
    check(&table);
}

#[test]
fn rows_that_are_made_anew_larger_take_no_more_than_there_is() {
    let table = RowTable::new(1 << 20, 1 << 10, 1);
    let many = 3000;
    (0..many).for_each(|key| table.insert(hash(key), row(key, &[7; 100])));
    let read = || keys_in(&table, 0..many).len();
    let before = read();
    assert!(before as u64 > many * 95 / 100 && !table.was_full());
    for key in 0..many {
        table.renew(hash(key), &key.to_le_bytes(), Sequence(2), || row_as_of(2, key, &[8; 900]));
    }
    check(&table);
    assert!(table.was_full() && read() < before);
}

#[test]
fn a_full_set_loses_the_one_that_is_used_least() {
    let table = RowTable::new(1 << 20, 1 << 10, 1);
    // The same set for all, whatever their number.
    let full = WAYS as u64;
    let get = |key: u64| table.get(5, &key.to_le_bytes());
    (0..full).for_each(|key| table.insert(5, row(key, b"")));
    assert!((0..full).filter(|&key| key != 2).all(|key| get(key).is_some()));
    table.insert(5, row(full, b""));
    check(&table);
    let there: Vec<_> = (0..=full).filter(|&key| get(key).is_some()).collect();
    assert_eq!(there, [0, 1, 3, 4, 5, 6]);
}

#[test]
fn one_row_that_comes_does_not_move_the_hand_round() {
    let table = RowTable::new(16 << 20, 1 << 10, 1);
    let full = (0..1_000_000).find(|&key| {
        table.insert(hash(key), row(key, &[7; 300]));
        table.shards[0].0.read().hand > 0
    });
    let keys = 0..=full.expect("there is an end to it");
    let there = (0..USES_MAX).map(|_| keys_in(&table, keys.clone()).len()).max().expect("some");
    let hand = || table.shards[0].0.read().hand;
    let before = hand();
    table.insert(0, row(u64::MAX, &[7; 300]));
    check(&table);
    let in_vain = PASSED_MAX * usize::from(USES_MAX);
    // A set that is empty is none that it can take.
    assert!((in_vain + 1..in_vain + 20).contains(&(hand() - before)));
    assert!(keys_in(&table, keys).len() >= there - WAYS);
}

#[test]
fn large_rows_that_nobody_uses_do_not_displace_small_ones() {
    let table = RowTable::new(1 << 20, 8 << 10, 1);
    let small = 0..1_000;
    small.clone().for_each(|key| table.insert(hash(key), row(key, &[7; 20])));
    for key in 1_000..5_000 {
        table.insert(hash(key), row(key, &[7; 4_000]));
        if key % 100 == 0 {
            keys_in(&table, small.clone());
        }
    }
    check(&table);
    let there = keys_in(&table, small).len();
    assert!(there > 900, "{there}");
}

#[test]
fn sets_go_when_rows_become_few() {
    let table = RowTable::new(1 << 20, 64 << 10, 1);
    let sets = || table.shards.iter().map(|shard| shard.0.read().sets.len()).sum::<usize>();
    (0..10_000).for_each(|key| table.insert(hash(key), row(key, b"value")));
    let many = sets();
    (10_000..11_000).for_each(|key| table.insert(hash(key), row(key, &[7; 40_000])));
    check(&table);
    assert!(sets() <= many / 8, "{many}, {}", sets());
    let there = keys_in(&table, 10_000..11_000).len();
    assert!(there > 15, "{there} of 26 that would fit alone");
}

#[test]
fn a_row_that_takes_the_place_of_another_has_its_uses() {
    let table = RowTable::new(1 << 20, 1 << 10, 1);
    let uses = || {
        let shard = table.shards[0].0.read();
        let set = &shard.sets[shard.set(5)];
        set.uses[set.find(5, &7_u64.to_le_bytes()).expect("it is there")].load(Ordering::Relaxed)
    };
    table.insert(5, row(7, b"old"));
    assert_eq!(uses(), 1);
    (0..5).for_each(|_| assert!(table.get(5, &7_u64.to_le_bytes()).is_some()));
    table.insert(5, row(7, b"new"));
    assert_eq!(uses(), USES_MAX);
}

#[test]
fn readers_see_rows_while_sets_change() {
    let table = RowTable::new(1 << 30, 1 << 10, 1);
    table.insert(hash(0), row(0, b"value"));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (1..50_000).for_each(|key| table.insert(hash(key), row(key, b"value"))));
        while !writer.is_finished() {
            assert_eq!(keys_in(&table, 0..1), [0]);
        }
    });
    check(&table);
}

#[test]
fn one_thread_makes_sets_for_all_who_find_too_few() {
    let mut shard = Shard::new(1 << 30);
    let mut gone = Vec::new();
    let mut insert = |shard: &mut Shard, keys: std::ops::Range<u64>| {
        keys.for_each(|key| {
            let _has_room = shard.insert(set_hash(hash(key)), row(key, b""), &mut gone);
        });
    };
    insert(&mut shard, 0..9);
    let wanted = shard.begin_to_change();
    assert_eq!((wanted, shard.begin_to_change()), (Some(2 * SETS_MIN), None), "the first makes them");
    let mut larger = sets(2 * SETS_MIN);
    shard.change_sets(&mut larger, &mut Vec::new());
    assert_eq!((shard.sets.len(), larger.len(), shard.begin_to_change()), (2 * SETS_MIN, SETS_MIN, None));
    // Whoever made them while rows went has made them in vain.
    insert(&mut shard, 9..17);
    assert_eq!(shard.begin_to_change(), Some(4 * SETS_MIN));
    let there = shard.rows;
    let rows = shard.sets.iter_mut().flat_map(|set| &mut set.rows).filter(|row| row.is_some());
    let taken: Vec<_> = rows.take(5).filter_map(Option::take).collect();
    shard.rows -= taken.len();
    shard.change_sets(&mut sets(4 * SETS_MIN), &mut Vec::new());
    assert_eq!((shard.sets.len(), shard.rows), (2 * SETS_MIN, there - 5));
    insert(&mut shard, 17..25);
    assert_eq!(shard.begin_to_change(), Some(4 * SETS_MIN), "the next who finds too few makes them");
}

#[test]
fn rows_that_come_before_their_sets_are_no_want_of_memory() {
    let mut shard = Shard::new(1 << 30);
    let insert = |shard: &mut Shard, keys: std::ops::Range<u64>| {
        let insert = |key| shard.insert(set_hash(hash(key)), row(key, b""), &mut Vec::new());
        keys.map(insert).collect::<Vec<_>>()
    };
    insert(&mut shard, 0..9);
    assert_eq!(shard.begin_to_change(), Some(2 * SETS_MIN));
    assert!(insert(&mut shard, 9..40).iter().all(|&has_room| has_room));
    // Nobody waits for a thread that takes so long.
    assert_eq!(shard.begin_to_change(), Some(2 * SETS_MIN));
    let rows = shard.rows;
    for made_in_vain in [false, true] {
        let mut made = sets(2 * SETS_MIN);
        shard.change_sets(&mut made, &mut Vec::new());
        assert_eq!(made.len() == 2 * SETS_MIN, made_in_vain);
    }
    assert_eq!((shard.sets.len(), shard.rows), (2 * SETS_MIN, rows));
}

#[test]
fn what_threads_insert_side_by_side_is_counted_right() {
    let table = RowTable::new(1 << 30, 1 << 10, 1);
    let many = 20_000;
    std::thread::scope(|scope| {
        for first in 0..3 {
            let table = &table;
            scope.spawn(move || {
                (first..many).step_by(3).for_each(|key| table.insert(hash(key), row(key, b"value")));
            });
        }
    });
    for shard in &table.shards {
        let mut shard = shard.0.write();
        while let Some(wanted) = shard.begin_to_change() {
            shard.change_sets(&mut sets(wanted), &mut Vec::new());
        }
    }
    check(&table);
    assert!(!table.was_full());
}

#[test]
fn a_table_of_tiny_rows_is_full_when_it_has_as_many_sets_as_it_may() {
    let table = RowTable::new(1 << 20, 1 << 10, 1);
    assert!((0..100_000).any(|key| {
        table.insert(hash(key), row(key, b""));
        table.was_full()
    }));
    check(&table);
    assert!(table.bytes() > 400_000, "{}", table.bytes());
}

#[test]
fn a_table_without_memory_keeps_nothing() {
    let table = RowTable::new(0, 0, usize::MAX);
    table.insert(7, row(7, b"value"));
    assert_eq!((table.get(7, &7_u64.to_le_bytes()).is_none(), table.bytes()), (true, 0));
}

proptest! {
    #[test]
    fn what_is_there_is_what_was_put_there_last(
        steps in proptest::collection::vec((0_u64..300, 0_usize..200, 0..4), 1..600),
        alike in any::<bool>(),
    ) {
        let table = RowTable::new(20 << 10, 300, 1);
        let hash_of = |key: u64| if alike { key % 7 } else { hash(key) };
        let mut model = BTreeMap::new();
        for (now, (key, len, action)) in (2..).zip(steps) {
            let mut put = || model.insert(key, len);
            match action {
                0 => {
                    table.insert(hash_of(key), row_as_of(now, key, &vec![1; len]));
                    put();
                }
                1 => table.renew(hash_of(key), &key.to_le_bytes(), Sequence(now), || {
                    put();
                    row_as_of(now, key, &vec![1; len])
                }),
                _ => {
                    let found = table.get(hash_of(key), &key.to_le_bytes());
                    let put = model.get(&key).map(|&len| row(key, &vec![1; len]).memory_bytes());
                    prop_assert!(found.is_none_or(|row| Some(row.memory_bytes()) == put));
                }
            }
        }
        check(&table);
    }
}
