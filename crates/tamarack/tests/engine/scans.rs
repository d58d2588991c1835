//! Walks that are long enough for values to be read ahead: what they show, what they read, and where they tell errors.

use std::ops::Bound;
use std::time::Duration;

use crate::common::garbage::{Content, walk};
use crate::common::place::Place;
use crate::common::time::unwatched;
use crate::common::{Random, fast_directory, file_names, open, tiny_without_gc};
use tamarack::testing::{Call, FaultEnv, SimDisk, SimOptions};
use tamarack::{Codec, Db, ErrorKind, Iter, IterOptions, Options, ReadOptions};

const KEYS: usize = 6000;

fn options() -> Options {
    Options {
        memtable_bytes: 1 << 20,
        segment_bytes_max: 3 << 20,
        recovery_log_max: 64 << 20,
        table_bytes_max: 64 << 10,
        level_bytes_base: 256 << 10,
        value_codec: Codec::Lz4,
        ..tiny_without_gc()
    }
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Values of every kind: in the index, and in the log as they are or compressed, some larger than what is read at once.
fn value(number: usize, round: usize) -> Vec<u8> {
    let mut random = Random::new((number * 10 + round) as u64);
    match random.below(8) {
        0 => random.bytes(9),
        1 | 2 => format!("{number} in round {round} ").repeat(100).into_bytes(),
        3 if number.is_multiple_of(500) => random.bytes(400_000),
        3 => random.bytes(9000),
        _ => random.bytes(700),
    }
}

/// A database whose keys were written in a random order, partly again, and partly deleted.
fn mixed(db: &Db) -> Content {
    let mut model = Content::new();
    let mut random = Random::new(7);
    for round in 0..2 {
        for step in 0..KEYS >> round {
            let number = if round == 0 { step * 4999 % KEYS } else { random.below(KEYS) };
            if round == 1 && random.one_in(4) {
                db.delete(&key(number)).unwrap();
                model.remove(&key(number));
            } else {
                db.put(&key(number), &value(number, round)).unwrap();
                model.insert(key(number), value(number, round));
            }
        }
    }
    model
}

/// A database whose keys were written in order, with values of a size.
fn in_order(db: &Db, keys: usize, value_bytes: usize) -> Content {
    let mut model = Content::new();
    for number in 0..keys {
        let value = Random::new(number as u64).bytes(value_bytes);
        db.put(&key(number), &value).unwrap();
        model.insert(key(number), value);
    }
    model
}

fn assert_at(iter: &mut Iter, expected: Option<(&Vec<u8>, &Vec<u8>)>, with_value: bool) {
    assert_eq!(iter.valid().then(|| iter.key()), expected.map(|(key, _)| &key[..]));
    if let Some((key, value)) = expected.filter(|_| with_value) {
        assert!(iter.value().unwrap() == value, "the value of {key:?}");
    }
}

#[test]
fn long_walks_show_every_entry_in_both_directions() {
    let directory = fast_directory();
    let db = open(directory.path(), &options()).unwrap();
    let model = mixed(&db);
    for settle in [false, true] {
        if settle {
            db.compact_range(None, None).unwrap();
        }
        let mut expected: Vec<_> = model.clone().into_iter().collect();
        assert!(walk(&db, &IterOptions::default(), false).unwrap() == expected);
        expected.reverse();
        assert!(walk(&db, &IterOptions::default(), true).unwrap() == expected);
    }
}

#[test]
fn a_walk_may_turn_and_leave_off_wherever_it_has_read_ahead() {
    let directory = fast_directory();
    let db = open(directory.path(), &options()).unwrap();
    let model = mixed(&db);
    let mut random = Random::new(5);
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    for _ in 0..60 {
        if random.one_in(8) {
            iter = db.iter(&IterOptions::default()).unwrap();
        }
        if random.one_in(2) || !iter.valid() {
            let from = key(random.below(KEYS));
            iter.seek(&from).unwrap();
            assert_at(&mut iter, model.range(from..).next(), true);
        }
        let (forward, asks_one_in) = (random.one_in(2), random.pick(&[1, 1, 2, 50]));
        for _ in 0..random.below(1500) {
            if !iter.valid() {
                break;
            }
            let at = Bound::Excluded(iter.key().to_vec());
            let expected = if forward {
                iter.next().unwrap();
                model.range((at, Bound::Unbounded)).next()
            } else {
                iter.prev().unwrap();
                model.range((Bound::Unbounded, at)).next_back()
            };
            assert_at(&mut iter, expected, random.one_in(asks_one_in));
        }
    }
}

/// Whoever ends a walk has read little for nothing, wherever that is: no more lies ahead than behind, but for what is left of windows.
#[test]
fn a_walk_that_ends_has_read_a_few_times_what_it_went_over() {
    let directory = fast_directory();
    let db = open(directory.path(), &options()).unwrap();
    in_order(&db, KEYS, 1000);
    let read = || db.stats().value_read_bytes;
    for (length, from) in [20, 70, 90, 130, 200, 300, 600, 1000].into_iter().zip((0..).step_by(500)) {
        let before = read();
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek(&key(from)).unwrap();
        for _ in 1..length {
            assert!(!iter.value().unwrap().is_empty());
            iter.next().unwrap();
        }
        assert!(!iter.value().unwrap().is_empty());
        // Those who read ahead come that far.
        std::thread::sleep(Duration::from_millis(20));
        drop(iter);
        let values = (read() - before) / 1030;
        assert!((length / 2..=4 * length + 64).contains(&values), "{values} values for {length}");
    }
}

#[test]
fn a_long_walk_reads_neighbours_together_and_nothing_that_it_is_not_asked_for() {
    let directory = fast_directory();
    let db = open(
        directory.path(),
        &Options { segment_bytes_max: 64 << 20, recovery_log_max: 256 << 20, ..options() },
    )
    .unwrap();
    let model = in_order(&db, KEYS, 1000);
    let reads = || (db.stats().value_reads, db.stats().value_read_bytes);

    let before = reads();
    let keys_only = IterOptions { keys_only: true, ..IterOptions::default() };
    assert_eq!(walk_keys(&db, &keys_only), KEYS);
    assert_eq!(walk_keys(&db, &IterOptions::default()), KEYS);
    assert_eq!(reads(), before, "values that nobody asked for");

    for backward in [false, true] {
        let before = reads();
        assert_eq!(walk(&db, &IterOptions::default(), backward).unwrap().len(), model.len());
        let (count, bytes) = (reads().0 - before.0, reads().1 - before.1);
        assert!(count < 60, "{count} reads for {KEYS} values");
        assert!(bytes < (KEYS * 1040) as u64, "{bytes} bytes of {KEYS} values");
    }

    // Whoever wants one value in a hundred pays for a small window each time.
    let before = reads();
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    iter.seek_to_first().unwrap();
    for number in 0..KEYS {
        if number % 100 == 0 {
            assert!(iter.value().unwrap() == model[&key(number)]);
        }
        iter.next().unwrap();
    }
    let bytes = reads().1 - before.1;
    assert!(bytes < (KEYS / 100 * 64 * 1040) as u64, "{bytes} bytes for {} values", KEYS / 100);
}

fn walk_keys(db: &Db, options: &IterOptions) -> usize {
    let mut iter = db.iter(options).unwrap();
    iter.seek_to_first().unwrap();
    let mut count = 0;
    while iter.valid() {
        assert_eq!(iter.key(), key(count));
        iter.next().unwrap();
        count += 1;
    }
    count
}

#[test]
fn a_damaged_record_spoils_no_other_that_was_read_with_it() {
    let directory = fast_directory();
    let model = in_order(&open(directory.path(), &options()).unwrap(), KEYS, 1000);
    let db = open(directory.path(), &options()).unwrap();
    db.flush().unwrap();
    let log = file_names(directory.path()).into_iter().filter(|name| name.ends_with(".vlog")).nth(1).unwrap();
    let log = directory.path().join(log);
    let mut bytes = std::fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    for backward in [false, true] {
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        if backward {
            iter.seek_to_last().unwrap();
        } else {
            iter.seek_to_first().unwrap();
        }
        let (mut shown, mut failed) = (0, 0);
        while iter.valid() {
            let expected = &model[iter.key()];
            match iter.value() {
                Ok(value) => assert!(value == expected),
                Err(error) => {
                    assert_eq!(error.as_corruption().expect("damage").file, log);
                    assert!(iter.value().is_err(), "it stays where it is, and so does the error");
                    failed += 1;
                }
            }
            shown += 1;
            if backward { iter.prev().unwrap() } else { iter.next().unwrap() }
        }
        assert_eq!((shown, failed), (KEYS, 1));
    }
}

#[test]
fn an_error_of_the_index_is_told_when_the_walk_gets_there() {
    let directory = fast_directory();
    let options = Options { table_bytes_max: 8 << 20, memtable_bytes: 8 << 20, ..options() };
    let db = open(directory.path(), &options).unwrap();
    let model = in_order(&db, KEYS, 100);
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let table = file_names(directory.path()).into_iter().find(|name| name.ends_with(".table")).unwrap();
    let table = directory.path().join(table);
    let mut bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&table, bytes).unwrap();

    let db = open(directory.path(), &options).unwrap();
    let mut iter = db.iter(&IterOptions::default()).unwrap();
    let mut shown = 0;
    for backward in [false, true] {
        if backward {
            iter.seek_to_last().unwrap();
        } else {
            iter.seek_to_first().unwrap();
        }
        let error = loop {
            assert!(iter.valid(), "the walk ends in the damaged block");
            let expected = &model[iter.key()];
            assert!(iter.value().unwrap() == expected);
            shown += 1;
            if let Err(error) = if backward { iter.prev() } else { iter.next() } {
                break error;
            }
        };
        assert_eq!(error.as_corruption().expect("damage").file, table);
        assert!(!iter.valid());
        assert_eq!(iter.next().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert!((KEYS - 100..KEYS).contains(&shown), "all but a block's entries are shown: {shown}");
}

/// Whatever block is damaged, what is shown before a walk gets there is what is there: no older version of it, and nothing that was deleted.
#[test]
fn no_older_version_is_shown_before_an_error_of_the_index() {
    const DAMAGES: usize = 24;
    let directory = fast_directory();
    let options = Options { table_bytes_max: 8 << 20, memtable_bytes: 8 << 20, ..options() };
    let db = open(directory.path(), &options).unwrap();
    let mut model = in_order(&db, KEYS, 100);
    db.compact_range(None, None).unwrap();
    db.close().unwrap();
    let table = file_names(directory.path()).into_iter().find(|name| name.ends_with(".table")).unwrap();
    let db = open(directory.path(), &options).unwrap();
    for (number, (key, value)) in std::mem::take(&mut model).into_iter().enumerate() {
        if number.is_multiple_of(2) {
            db.delete(&key).unwrap();
        } else {
            let newer = [b"newer ", &value[..]].concat();
            db.put(&key, &newer).unwrap();
            model.insert(key, newer);
        }
    }
    db.close().unwrap();
    let table = directory.path().join(table);
    let whole = std::fs::read(&table).unwrap();
    let mut errors = [0; 2];
    for damage in 0..DAMAGES {
        let mut bytes = whole.clone();
        bytes[damage * whole.len() / DAMAGES] ^= 1;
        std::fs::write(&table, bytes).unwrap();
        let Ok(db) = open(directory.path(), &options) else { continue };
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        for backward in [false, true] {
            let (mut moved, mut shown) =
                (if backward { iter.seek_to_last() } else { iter.seek_to_first() }, 0);
            while moved.is_ok() && iter.valid() {
                shown += 1;
                let value = iter.value().unwrap().to_vec();
                assert_eq!(Some(&value), model.get(iter.key()), "backward: {backward}, damage {damage}");
                moved = if backward { iter.prev() } else { iter.next() };
            }
            assert!(!iter.valid(), "it stands nowhere after an error");
            errors[usize::from(backward)] += usize::from(moved.is_err());
            if !backward {
                let given = db.iter(&IterOptions::default()).unwrap().entries();
                assert_eq!(given.take_while(Result::is_ok).count(), shown, "all before the error");
            }
        }
    }
    assert!(errors.iter().all(|&count| count > DAMAGES / 2), "most are met: {errors:?}");
}

/// Behind the end of its range there may be a lot that a walk does not see, and does not read.
#[test]
fn a_walk_that_may_not_see_what_lies_behind_its_range_does_not_look_for_it() {
    let place = Place::new(Options { table_bytes_max: 16 << 10, ..options() });
    let db = place.open();
    let before = in_order(&db, 10, 100);
    let snapshot = db.snapshot();
    for number in 10..KEYS {
        db.put(&key(number), &[7; 100]).unwrap();
    }
    db.compact_range(None, None).unwrap();
    let mut walk = IterOptions { snapshot: Some(snapshot), end: Some(key(10)), ..IterOptions::default() };
    let mut reads = [0; 2];
    for count in &mut reads {
        let already = place.faults.count_of(Call::Read, ".table");
        let shown: Content = db.iter(&walk).unwrap().entries().map(Result::unwrap).collect();
        *count = place.faults.count_of(Call::Read, ".table") - already;
        assert!(shown == before);
        walk.end = None;
    }
    assert!(4 * reads[0] < reads[1], "bounded, and without a bound: {reads:?} reads");
}

/// Bytes of a piece of the log that is read with a value of it.
const PIECE_BYTES: u64 = 2 << 20;

/// Pieces of the log are read with the values of a long walk that lie in disorder, each once, and not with those of others.
#[test]
fn a_long_walk_over_values_in_disorder_has_pieces_of_the_log_read() {
    let place = Place::new(options());
    let db = place.open();
    let number = |step: usize| step * 4999 % (3 * KEYS);
    (0..3 * KEYS).for_each(|step| db.put(&key(number(step)), &Random::new(step as u64).bytes(700)).unwrap());
    db.flush().unwrap();
    // What cannot be read into large pages is read ahead.
    place.faults.set_unsupported(Call::Load, true);
    let asked = || place.faults.count_of(Call::ReadAhead, ".vlog");
    let walk_some = |entries: usize| {
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek_to_first().unwrap();
        for _ in 0..entries {
            assert!(iter.valid() && !iter.value().unwrap().is_empty());
            iter.next().unwrap();
        }
    };
    walk_some(100);
    assert_eq!(asked(), 0, "of a short walk");
    walk_some(3 * KEYS);
    let log = file_names(&place.path()).into_iter().filter(|name| name.ends_with(".vlog"));
    let pieces: u64 =
        log.map(|name| std::fs::metadata(place.path().join(name)).unwrap().len().div_ceil(PIECE_BYTES)).sum();
    assert!(pieces >= 4 && (1..=pieces).contains(&asked()), "{} of {pieces}", asked());
}

/// A database on a disk whose files can be loaded, and what it has had read: by [`Call::Load`] and by [`Call::ReadAhead`].
fn loadable(segment_bytes_max: u64) -> (Db, impl Fn() -> [u64; 2]) {
    let (env, faults) = FaultEnv::new(unwatched(SimDisk::new(&SimOptions::default()).env()));
    let options = Options { segment_bytes_max, value_runs_max: 0, ..Options::default() };
    let db = Db::open_with_env("/db", options, &env).unwrap();
    (db, move || [Call::Load, Call::ReadAhead].map(|call| faults.count_of(call, ".vlog")))
}

/// Walks over all of `db`, whose values are all `value`.
fn walk_over(db: &Db, value: &[u8], fill_cache: bool) {
    let mut iter = db.iter(&IterOptions { fill_cache, ..IterOptions::default() }).unwrap();
    iter.seek_to_first().unwrap();
    while iter.valid() {
        assert!(iter.value().unwrap() == value);
        iter.next().unwrap();
    }
}

/// Pieces of the log are read into large pages, but for those of the segment that is written to.
#[test]
fn pieces_of_the_log_are_loaded_for_long_walks_in_disorder() {
    let (db, calls) = loadable(36 << 20);
    let value = vec![7; 20_000];
    let keys = || (0..1600).map(|step| key(step * 497 % 1600));
    keys().for_each(|key| db.put(&key, &value).unwrap());
    walk_over(&db, &value, true);
    let [loads, ahead] = calls();
    assert!(loads == 0 && (1..=18).contains(&ahead), "{loads}, {ahead}");
    // Another segment.
    let others = (0..300).map(|step| key(2000 + step * 97 % 300));
    others.for_each(|key| db.put(&key, &value).unwrap());
    walk_over(&db, &value, true);
    let loads = calls()[0];
    assert!((1..=18).contains(&loads), "{loads}");
    db.close().unwrap();
}

#[test]
fn large_values_that_are_not_to_come_into_the_cache_bring_nothing_else_there() {
    let (db, calls) = loadable(8 << 20);
    for len in [1_500_000, 3_000_000] {
        let value = vec![8; len];
        (0..90).map(|step| key(step * 37 % 90)).for_each(|key| db.put(&key, &value).unwrap());
        walk_over(&db, &value, false);
        assert_eq!(calls(), [0, 0], "{len}");
    }
    db.close().unwrap();
}

/// Large pages are read for long walks along the log, not of the segment that is written to, and for nobody else.
#[test]
fn only_long_walks_along_the_log_load_it() {
    let (env, faults) = FaultEnv::new(unwatched(SimDisk::new(&SimOptions::default()).env()));
    let options = Options { segment_bytes_max: 8 << 20, ..Options::default() };
    let db = Db::open_with_env("/db", options, &env).unwrap();
    let value = vec![7; 2000];
    (0..3500).for_each(|number| db.put(&key(number), &value).unwrap());
    let loads_of = |entries: usize, options: &IterOptions| {
        let before = faults.count_of(Call::Load, ".vlog");
        let mut iter = db.iter(options).unwrap();
        iter.seek_to_first().unwrap();
        for _ in 0..entries {
            assert_eq!(iter.value().unwrap(), value);
            iter.next().unwrap();
        }
        drop(iter);
        faults.count_of(Call::Load, ".vlog") - before
    };
    let usual = IterOptions::default();
    assert_eq!(loads_of(3500, &usual), 0, "all of it is in the segment that is written to");
    (3500..8000).for_each(|number| db.put(&key(number), &value).unwrap());
    assert_eq!(loads_of(100, &usual), 0, "that is no long walk");
    assert_eq!(loads_of(8000, &IterOptions { fill_cache: false, ..usual.clone() }), 0, "past the cache");
    let keys: Vec<_> = (0..2000).map(key).collect();
    let found = db.multi_get(&keys, &ReadOptions::default());
    assert!(found.into_iter().all(|found| found.unwrap().as_deref() == Some(&value[..])));
    assert_eq!(faults.count_of(Call::Load, ".vlog"), 0, "many keys at once are no walk");
    assert!(loads_of(8000, &usual) > 0);
    db.close().unwrap();
}

/// On this disk whatever is loaded has to be read for that, as if it had gone since.
#[test]
fn a_long_walk_gives_up_what_it_has_gone_over_where_memory_is_scarce() {
    let (env, faults) = FaultEnv::new(unwatched(SimDisk::new(&SimOptions::default()).env()));
    let db =
        Db::open_with_env("/db", Options { segment_bytes_max: 8 << 20, ..Options::default() }, &env).unwrap();
    let (keys, value) = (30_000, vec![7; 2000]);
    (0..keys).for_each(|number| db.put(&key(number), &value).unwrap());
    let unloads = |entries: usize| {
        let before = faults.count_of(Call::Unload, ".vlog");
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek_to_first().unwrap();
        for number in 0..entries {
            assert_eq!(iter.key(), key(number));
            assert_eq!(iter.value().unwrap(), value);
            iter.next().unwrap();
        }
        faults.count_of(Call::Unload, ".vlog") - before
    };
    assert_eq!(unloads(1000), 0, "it may want it yet");
    let pieces = (keys * value.len()) as u64 >> 21;
    assert!((pieces / 2..=pieces).contains(&unloads(keys)));
    db.close().unwrap();
}

#[test]
fn walks_over_keys_alone_do_not_have_later_ones_read_more() {
    let directory = fast_directory();
    let db = open(directory.path(), &options()).unwrap();
    for number in 0..KEYS {
        db.put(&key(number), &[7; 900]).unwrap();
    }
    db.flush().unwrap();
    let reads_of_a_seek = || {
        let before = db.stats().value_read_bytes;
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek(&key(KEYS / 2)).unwrap();
        assert_eq!(iter.value().unwrap(), [7; 900]);
        db.stats().value_read_bytes - before
    };
    let one = reads_of_a_seek();
    for _ in 0..100 {
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek_to_first().unwrap();
        (0..50).for_each(|_| iter.next().unwrap());
    }
    assert_eq!(reads_of_a_seek(), one);
    for _ in 0..100 {
        let mut iter = db.iter(&IterOptions::default()).unwrap();
        iter.seek_to_first().unwrap();
        for _ in 0..20 {
            iter.value().unwrap();
            iter.next().unwrap();
        }
    }
    let many = reads_of_a_seek();
    assert!(many > 10 * one && many <= 20 * one, "as many as these walks: {many} and {one}");
}

/// A walk of so many entries from the middle on, and how many bytes of values were read by the time its first value was there, and at its end.
fn bytes_of_a_walk(db: &Db, expected_entries: Option<usize>, entries: usize, backward: bool) -> [u64; 2] {
    let before = db.stats().value_read_bytes;
    let mut iter = db.iter(&IterOptions { expected_entries, ..IterOptions::default() }).unwrap();
    iter.seek(&key(KEYS / 2)).unwrap();
    if backward {
        iter.prev().unwrap();
    }
    let mut first = 0;
    for step in 0..entries {
        let number = if backward { KEYS / 2 - 1 - step } else { KEYS / 2 + step };
        assert_eq!(iter.key(), key(number));
        assert_eq!(iter.value().unwrap(), [7; 900]);
        if step == 0 {
            first = db.stats().value_read_bytes - before;
        }
        if backward { iter.prev() } else { iter.next() }.unwrap();
    }
    // Those who read ahead come that far.
    std::thread::sleep(Duration::from_millis(20));
    // It waits for what has begun.
    drop(iter);
    [first, db.stats().value_read_bytes - before]
}

#[test]
fn what_a_caller_expects_is_read_together_and_nothing_behind_it() {
    let directory = fast_directory();
    let db = open(directory.path(), &Options { value_codec: Codec::None, ..options() }).unwrap();
    for step in 0..KEYS {
        // 4999 is prime to the number of keys: neighbours lie apart.
        db.put(&key(step * 4999 % KEYS), &[7; 900]).unwrap();
    }
    db.flush().unwrap();
    let [_, one] = bytes_of_a_walk(&db, Some(0), 1, false);
    assert!((900..1000).contains(&one), "one record, not {one} bytes");
    for backward in [false, true] {
        for entries in [2, 40, 64, 65, 500, 1000] {
            // What lies between two of many is read with them where that is little.
            let [first, all] = bytes_of_a_walk(&db, Some(entries), entries, backward);
            assert!(first == all && all >= entries as u64 * one, "{first} and {all} bytes for {entries}");
            let [as_many, more] = bytes_of_a_walk(&db, Some(entries), entries + 1, backward);
            assert!(as_many == first && more > all && more <= 4 * all, "who goes on reads on: {more}");
        }
        // It is no promise, and later walks learn nothing from it.
        let [forty, _] = bytes_of_a_walk(&db, Some(40), 40, backward);
        assert_eq!(bytes_of_a_walk(&db, Some(40), 1, backward), [forty; 2]);
        let [first, _] = bytes_of_a_walk(&db, None, 1, backward);
        assert_eq!(first, one);
    }
    let [first, all] = bytes_of_a_walk(&db, Some(usize::MAX), KEYS / 2, false);
    assert!(first < all, "as much as there is memory for, not {first} of {all}");

    // It has not said what it will want behind a turn.
    let mut iter = db.iter(&IterOptions { expected_entries: Some(1000), ..IterOptions::default() }).unwrap();
    iter.seek(&key(KEYS / 2)).unwrap();
    (0..1000).for_each(|_| iter.next().unwrap());
    let before = db.stats().value_read_bytes;
    iter.prev().unwrap();
    assert_eq!(iter.value().unwrap(), [7; 900]);
    assert_eq!(db.stats().value_read_bytes - before, one);

    // To expect nothing is to expect one; who goes on reads on as others do, however far those go.
    let far: Vec<_> = (0..100).map(|_| bytes_of_a_walk(&db, None, 40, false)).collect();
    assert!(far.iter().all(|[_, all]| *all >= 40 * one));
    assert_eq!(bytes_of_a_walk(&db, Some(0), 1, false), [one; 2]);
    assert_eq!(bytes_of_a_walk(&db, Some(0), 2, false), bytes_of_a_walk(&db, Some(1), 2, false));
}
