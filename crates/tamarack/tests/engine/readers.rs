//! What `Stats` says of those who read at moments that have passed: what they are, since when, and what they keep.

use std::time::Duration;

use crate::common::garbage::{Content, Gate, KEYS, assert_holds, compact, delete, fill, half_dead, quiet};
use crate::common::place::Place;
use crate::common::{PATIENCE_SECONDS, Watchdog, fast_directory, open};
use tamarack::testing::Call;
use tamarack::{Db, IterOptions, ReaderKind, ReaderStats};

fn iterator(db: &Db) -> tamarack::Iter {
    db.iter(&IterOptions::default()).unwrap()
}

/// What each reader holds, and holds alone.
fn held(db: &Db) -> Vec<(u64, u64)> {
    db.stats().readers.iter().map(|reader| (reader.held_bytes, reader.held_alone_bytes)).collect()
}

#[test]
fn readers_are_listed_with_their_names_and_ages_as_long_as_they_are_there() {
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = Content::new();
    assert_eq!(db.stats().readers, []);
    fill(&db, &mut model, 0..5, 0);
    let named = db.snapshot_named("backup");
    place.time.pass(Duration::from_secs(5));
    fill(&db, &mut model, 5..7, 0);
    let reader = iterator(&db);
    let clone = named.clone();
    place.time.pass(Duration::from_secs(10));
    fill(&db, &mut model, 7..8, 0);
    let unnamed = db.snapshot();
    let at_the_snapshot =
        db.iter(&IterOptions { snapshot: Some(named.clone()), ..IterOptions::default() }).unwrap();
    let reader_stats = |kind, name: Option<&str>, sequence, age_seconds| ReaderStats {
        kind,
        name: name.map(str::to_owned),
        sequence,
        age_seconds,
        ..ReaderStats::default()
    };
    let backup = reader_stats(ReaderKind::Snapshot, Some("backup"), 5, 15.0);
    let stats = db.stats();
    let mut young = stats.readers[2..].to_vec();
    young.sort_by_key(|reader| reader.sequence);
    assert_eq!(stats.readers[..2], [backup.clone(), reader_stats(ReaderKind::Iterator, None, 7, 10.0)]);
    assert_eq!(
        young,
        [reader_stats(ReaderKind::Iterator, None, 5, 0.0), reader_stats(ReaderKind::Snapshot, None, 8, 0.0)]
    );
    assert_eq!((stats.snapshots, stats.oldest_snapshot_seconds), (2, Some(15.0)));
    drop((reader, unnamed, named));
    assert_eq!(db.stats().readers.len(), 2, "the iterator and the clone hold the snapshot");
    drop(at_the_snapshot);
    assert_eq!(db.stats().readers, [backup]);
    drop(clone);
    let stats = db.stats();
    assert_eq!((stats.readers, stats.snapshots, stats.oldest_snapshot_seconds), (vec![], 0, None));
}

#[test]
fn what_iterators_keep_is_counted_for_each_and_alone() {
    let directory = fast_directory();
    let db = open(directory.path(), &quiet()).unwrap();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    compact(&db);
    let [first, second] = [iterator(&db), iterator(&db)];
    assert_eq!(held(&db), [(0, 0), (0, 0)], "the present needs all there is");
    fill(&db, &mut model, KEYS..2 * KEYS, 0);
    delete(&db, &mut model, 0..KEYS);
    compact(&db);
    let both = db.stats().leaving_bytes;
    assert!(both > 0);
    assert_eq!(held(&db), [(both, 0), (both, 0)], "each would keep it without the other");
    let third = iterator(&db);
    delete(&db, &mut model, KEYS..2 * KEYS);
    compact(&db);
    let all = db.stats().leaving_bytes;
    let [(old, 0), (same, 0), (new, alone)] = held(&db)[..] else { panic!("{:?}", db.stats().readers) };
    // The segment that was written when the first two began has also what only the third sees.
    let shared = old - both;
    assert_eq!((same, alone), (old, new - shared));
    assert!(0 < shared && shared < alone && all == both + new, "{:?}", db.stats().readers);
    drop(first);
    assert_eq!(held(&db), [(old, both), (new, alone)]);
    drop(second);
    db.wait_idle().unwrap();
    assert_eq!((held(&db), db.stats().leaving_bytes), (vec![(new, new)], new));
    drop(third);
    db.wait_idle().unwrap();
    assert_eq!((held(&db), db.stats().leaving_bytes), (vec![], 0));
    assert_holds(&db, &model, "all readers are gone");
}

#[test]
fn a_checkpoint_under_way_is_a_reader() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a checkpoint that is held");
    let place = Place::new(quiet());
    let db = place.open();
    let mut model = half_dead(&db);
    let sequence = db.stats().last_sequence;
    let gate = Gate::at(&place.faults, Call::SyncDir, "copy");
    std::thread::scope(|scope| {
        let copying = scope.spawn(|| db.checkpoint(place.beside("copy")));
        gate.wait();
        let readers = db.stats().readers;
        drop(gate);
        copying.join().unwrap().unwrap();
        let seen: Vec<_> = readers.iter().map(|reader| (reader.kind, reader.sequence)).collect();
        assert_eq!(seen, [(ReaderKind::Checkpoint, sequence)]);
    });
    assert_eq!(db.stats().readers, []);
    fill(&db, &mut model, 0..KEYS, 2);
    assert_holds(&db, &model, "copied");
}

/// About what the values of so many keys take in the log.
fn value_bytes(numbers: usize) -> u64 {
    let record = 24 + crate::common::garbage::key(0).len() + crate::common::garbage::value(0, 0).len();
    (numbers * record) as u64
}

#[test]
fn what_snapshots_keep_is_what_they_alone_see() {
    let directory = fast_directory();
    let db = open(directory.path(), &quiet()).unwrap();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    compact(&db);
    let first = db.snapshot_named("first");
    assert_eq!(held(&db), [(0, 0)], "the present needs all there is");
    fill(&db, &mut model, 0..KEYS / 2, 1);
    assert_eq!(held(&db), [(0, 0)], "it is not known yet");
    // Known from one table and the next, then from one table.
    for step in [Db::flush, |db: &Db| db.compact_range(None, None)] {
        step(&db).unwrap();
        let half = value_bytes(KEYS / 2);
        assert_eq!(held(&db), [(half, half)]);
    }
    let second = db.snapshot();
    assert_eq!(held(&db)[1], (0, 0));
    // Of these, the first sees the values of round 0, the second those of round 1 or 0.
    delete(&db, &mut model, KEYS / 4..KEYS * 3 / 4);
    for step in [Db::flush, |db: &Db| db.compact_range(None, None)] {
        step(&db).unwrap();
        let (quarter, half) = (value_bytes(KEYS / 4), value_bytes(KEYS / 2));
        assert_eq!(held(&db), [(half + quarter, half), (half, quarter)]);
    }
    let before = db.stats().live_bytes;
    drop(first);
    assert_eq!(held(&db), [(value_bytes(KEYS / 2), value_bytes(KEYS / 2))], "what both saw is now for one");
    drop(second);
    assert_eq!(held(&db), []);
    // A compaction that has something to do finds that nobody needs them.
    fill(&db, &mut model, 0..KEYS, 2);
    compact(&db);
    let third = db.snapshot();
    assert_eq!(held(&db), [(0, 0)]);
    assert!(db.stats().live_bytes < before, "{} of {before}", db.stats().live_bytes);
    drop(third);
    assert_holds(&db, &model, "all snapshots are gone");
}

#[test]
fn what_lies_below_two_versions_is_counted_for_the_older_alone() {
    let directory = fast_directory();
    let db = open(directory.path(), &quiet()).unwrap();
    let mut model = Content::new();
    fill(&db, &mut model, 0..KEYS, 0);
    compact(&db);
    let first = db.snapshot();
    fill(&db, &mut model, 0..KEYS / 2, 1);
    let second = db.snapshot();
    fill(&db, &mut model, 0..KEYS / 2, 2);
    // The table of level 0 has two versions, the one below it the third.
    db.flush().unwrap();
    let half = value_bytes(KEYS / 2);
    assert_eq!(held(&db), [(half, half); 2]);
    compact(&db);
    assert_eq!(held(&db), [(half, half); 2]);
    drop((first, second));
}
