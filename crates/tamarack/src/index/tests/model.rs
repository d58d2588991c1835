//! A model drives flushes, compactions and reopening, and everything visible at any snapshot stays the same.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::lookup::Lookup;
use super::super::table::reader::TablePayload;
use super::*;
use crate::base::keys::seek_key;

/// What was written: the kind of each operation by key and sequence number.
#[derive(Default)]
struct Model {
    history: BTreeMap<Vec<u8>, BTreeMap<u64, EntryKind>>,
    sequence: u64,
}

impl Model {
    fn visible(&self, key: &[u8], snapshot: u64) -> Option<(u64, EntryKind)> {
        let (&sequence, &kind) = self.history.get(key)?.range(..=snapshot).next_back()?;
        (kind != EntryKind::Delete).then_some((sequence, kind))
    }

    fn all(&self, snapshot: u64) -> Vec<(Vec<u8>, u64, EntryKind)> {
        let visible =
            |key: &Vec<u8>| self.visible(key, snapshot).map(|(sequence, kind)| (key.clone(), sequence, kind));
        self.history.keys().filter_map(visible).collect()
    }
}

fn check(harness: &Harness, model: &Model, snapshots: &[Sequence]) {
    let version = harness.index.version();
    version.audit().expect("every version is sound");
    check_cursors(harness, &version);
    for snapshot in snapshots.iter().map(|snapshot| snapshot.0).chain([model.sequence]) {
        assert_eq!(scan(&harness.index, &version, snapshot), model.all(snapshot), "at {snapshot}");
        for key in model.history.keys() {
            let entry = harness.index.lookup(&version, key, Sequence(snapshot), true).expect("nothing fails");
            let found = entry.filter(|entry| entry.kind() != EntryKind::Delete);
            if let Some(TablePayload::Pointer(pointer)) = found.as_ref().map(|entry| &entry.payload) {
                let sequence = found.as_ref().map_or(0, |entry| entry.sequence.0);
                assert_eq!(pointer.to_bytes().to_vec(), payload(sequence, EntryKind::Pointer));
            }
            let found = found.map(|entry| (entry.sequence.0, entry.kind()));
            assert_eq!(found, model.visible(key, snapshot), "{key:?} at {snapshot}");
        }
        let lookup = |key| (key, Lookup::new(&version, key, Sequence(snapshot), true));
        let mut lookups: Vec<_> = model.history.keys().map(Vec::as_slice).map(lookup).collect();
        let mut told = BTreeMap::new();
        harness.index.look_up_all(&mut lookups, |key, entry| {
            let entry = entry.expect("nothing fails").filter(|entry| entry.kind() != EntryKind::Delete);
            let found = entry.map(|entry| (entry.sequence.0, entry.kind()));
            assert_eq!(found, model.visible(key, snapshot), "{key:?} at {snapshot}, with others");
            assert!(told.insert(key, ()).is_none(), "{key:?} is told of once");
        });
        assert_eq!(told.len(), model.history.len());
    }
    assert_eq!(harness.table_files(), harness.live_tables(), "exactly the tables of the version are there");
}

/// Cursors give the same entries backwards as forwards, and seeking leads to the right one.
fn check_cursors(harness: &Harness, version: &Version) {
    for mut cursor in harness.index.cursors(version, false) {
        let mut keys = Vec::new();
        cursor.seek_to_first().expect("nothing fails");
        while cursor.valid() {
            keys.push(cursor.key().to_vec());
            cursor.next().expect("nothing fails");
        }
        assert!(keys.is_sorted_by(|left, right| version.order().compare(left, right).is_lt()));
        cursor.seek_to_last().expect("nothing fails");
        for key in keys.iter().rev() {
            assert_eq!(cursor.key(), key);
            cursor.prev().expect("nothing fails");
        }
        assert!(!cursor.valid());
        for pair in keys.windows(2) {
            cursor.seek(&pair[1]).expect("nothing fails");
            assert_eq!(cursor.key(), pair[1]);
            cursor.prev().expect("nothing fails");
            assert_eq!(cursor.key(), pair[0]);
        }
        cursor.seek(&seek_key(b"\xff", Sequence::MAX)).expect("nothing fails");
        assert!(!cursor.valid());
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Writes these keys and flushes them.
    Write(Vec<(u8, EntryKind)>),
    Snapshot,
    Release(usize),
    Compact,
    CompactRange(u8, u8),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(EntryKind::Delete), Just(EntryKind::Inline), Just(EntryKind::Pointer)];
    prop_oneof![
        6 => prop::collection::vec((0..60_u8, kind), 1..60).prop_map(Step::Write),
        2 => Just(Step::Snapshot),
        1 => (0..4_usize).prop_map(Step::Release),
        4 => Just(Step::Compact),
        1 => (0..60_u8, 0..60_u8).prop_map(|(a, b)| Step::CompactRange(a.min(b), a.max(b))),
        1 => Just(Step::Reopen),
    ]
}

fn key(number: u8) -> Vec<u8> {
    format!("key{number:03}").into_bytes()
}

fn play(steps: &[Step]) {
    let mut harness = Harness::new();
    let mut model = Model::default();
    let mut snapshots: Vec<Sequence> = Vec::new();
    for step in steps {
        match step {
            Step::Write(operations) => {
                let mut entries = Vec::new();
                for &(number, kind) in operations {
                    model.sequence += 1;
                    model.history.entry(key(number)).or_default().insert(model.sequence, kind);
                    entries.push((key(number), model.sequence, kind));
                }
                let entries: Vec<_> = entries.iter().map(|(key, s, kind)| (&key[..], *s, *kind)).collect();
                harness.flush(&entries, &snapshots);
            }
            Step::Snapshot => {
                snapshots.push(Sequence(model.sequence));
                snapshots.dedup();
            }
            Step::Release(at) if *at < snapshots.len() => drop(snapshots.remove(*at)),
            Step::Release(_) => {}
            Step::Compact => {
                while let Some(compaction) = harness.index.pick(Due::USUAL) {
                    harness.run(compaction, &snapshots).expect("nothing fails");
                }
            }
            Step::CompactRange(start, end) => {
                let mut manual = harness.index.start_manual(Some(&key(*start)), Some(&key(*end)));
                while let ManualTurn::Run(compaction) = harness.index.next_manual(&mut manual) {
                    harness.run(compaction, &snapshots).expect("nothing fails");
                }
            }
            Step::Reopen => harness.reopen(),
        }
        check(&harness, &model, &snapshots);
    }
    harness.compact_all(&[]);
    check(&harness, &model, &[]);
    let version = harness.index.version();
    assert_eq!(
        version.tables().map(|(_, table)| table.deletes).sum::<u64>(),
        0,
        "every deletion has vanished"
    );
    let entries: u64 = version.tables().map(|(_, table)| table.entries).sum();
    assert_eq!(entries, model.all(model.sequence).len() as u64, "one entry for each visible key");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn maintenance_is_invisible(steps in prop::collection::vec(step(), 1..40)) {
        play(&steps);
    }
}
