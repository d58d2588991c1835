//! What is hidden is hidden, whether it is asked for one entry or for many at once (I-11).

use proptest::prelude::*;

use super::super::cursor::Cursor;
use super::super::hidden::{Above, is_hidden};
use super::super::hidden_among::{Pointing, hidden_among};
use super::super::table::reader::TableReader;
use super::*;

/// A flush of these keys, a compaction if one is due, or a snapshot.
#[derive(Debug, Clone)]
enum Step {
    Write(Vec<u8>),
    Compact,
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(0..80_u8, 1..40).prop_map(Step::Write),
        2 => Just(Step::Compact),
        1 => Just(Step::Snapshot),
    ]
}

/// An entry, its sequence number and where it is.
type Entry = (Vec<u8>, Sequence, Reference);

/// Every entry of every table, sorted.
fn entries(harness: &Harness, version: &Version) -> Vec<Entry> {
    let mut found = Vec::new();
    for (level, table) in version.tables() {
        let reader = harness.index.tables.get(table.id).expect("nothing fails");
        let mut cursor = TableReader::cursor(&reader, false);
        cursor.seek_to_first().expect("nothing fails");
        while cursor.valid() {
            let (user_key, trailer) = split_internal_key(cursor.key()).expect("a whole key");
            let reference = Reference { offset: 0, level, table: table.id };
            found.push((user_key.to_vec(), trailer_sequence(trailer), reference));
            cursor.next().expect("nothing fails");
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0).then(right.1.cmp(&left.1)));
    found
}

/// Compares both ways for every `part`-th entry: with few the tables are asked, with all those that have no filter are
/// walked through.
fn compare(harness: &Harness, snapshots: &[Sequence], part: usize) -> usize {
    let version = harness.index.version();
    let entries: Vec<_> = entries(harness, &version).into_iter().step_by(part).collect();
    let pointing: Vec<_> = (entries.iter())
        .map(|(user_key, sequence, reference)| Pointing {
            user_key,
            sequence: *sequence,
            reference: *reference,
        })
        .collect();
    let tables = &harness.index.tables;
    let among = hidden_among(tables, &version, &pointing, snapshots).expect("nothing fails");
    for (entry, hidden) in pointing.iter().zip(&among) {
        let above = Above::Table(entry.reference.level, entry.reference.table);
        let alone = is_hidden(tables, &version, above, entry.user_key, entry.sequence, snapshots);
        assert_eq!(*hidden, alone.expect("nothing fails"), "{entry:?}");
    }
    among.iter().filter(|hidden| **hidden).count()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn one_by_one_and_among_many_the_same_is_hidden(
        steps in prop::collection::vec(step(), 1..30),
        filter_bits_per_key in prop_oneof![Just(0), Just(2), Just(10)],
    ) {
        let table = TableOptions { filter_bits_per_key, ..options().table };
        let harness = Harness::with(IndexOptions { table, ..options() });
        let (mut sequence, mut snapshots) = (0, Vec::new());
        for step in steps {
            match step {
                Step::Write(keys) => {
                    let keys: Vec<_> = keys.iter().map(|key| format!("key{key:03}").into_bytes()).collect();
                    let numbered: Vec<_> = keys.iter().zip(sequence + 1..).collect();
                    let entries: Vec<_> =
                        numbered.iter().map(|(key, number)| (&key[..], *number, EntryKind::Pointer)).collect();
                    sequence += keys.len() as u64;
                    harness.flush(&entries, &snapshots);
                }
                Step::Compact => {
                    if let Some(compaction) = harness.index.pick(Due::USUAL) {
                        harness.run(compaction, &snapshots).expect("nothing fails");
                    }
                }
                Step::Snapshot if snapshots.last() != Some(&Sequence(sequence)) => {
                    snapshots.push(Sequence(sequence));
                }
                Step::Snapshot => {}
            }
            for part in [1, 2, 13] {
                compare(&harness, &snapshots, part);
                compare(&harness, &[], part);
            }
        }
    }
}

#[test]
fn an_overwritten_entry_is_hidden_unless_a_snapshot_sees_it() {
    let harness = Harness::new();
    harness.flush(&[(b"a", 1, EntryKind::Pointer), (b"b", 2, EntryKind::Pointer)], &[]);
    harness.flush(&[(b"a", 3, EntryKind::Delete)], &[]);
    assert_eq!(compare(&harness, &[], 1), 1);
    assert_eq!(compare(&harness, &[Sequence(2)], 1), 0);
    assert_eq!(compare(&harness, &[Sequence(3)], 1), 1);
}
