//! Garbage collection against everything that may happen at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::coverage::Coverage;
use crate::roles::Role::{
    self, Checkpoint, Close, Collect, Compact, Delete, Iterate, Overwrite, Read, Reinsert, Snapshot,
    WriteLarge,
};
use crate::schedule::explore;
use crate::world::run;

/// Schedules of each scenario, unless the environment says otherwise.
const SCHEDULES: u64 = 500;
/// So many schedules come to everything that there is to come to.
const SCHEDULES_TELLING: u64 = 100;

/// Explores the scenario in which `roles` are played at the same time.
fn explore_roles(name: &'static str, roles: &'static [Role]) -> Arc<Coverage> {
    let coverage = Arc::new(Coverage::default());
    let sums = Arc::clone(&coverage);
    let runs = explore(name, SCHEDULES, move |seed| {
        run(seed, roles, &sums);
    });
    println!("{name}: {coverage:?}");
    if runs >= SCHEDULES_TELLING {
        let Coverage { collections, moved_records, hidden_records, compactions, crashes, torn_tails, .. } =
            &*coverage;
        coverage.assert_some(&[collections, moved_records, hidden_records, compactions, crashes, torn_tails]);
        if roles.iter().any(|role| matches!(role, Snapshot | Iterate)) {
            coverage.assert_some(&[&coverage.seen]);
        }
        if roles.contains(&Checkpoint) {
            coverage.assert_some(&[&coverage.copies]);
        }
        if roles.contains(&WriteLarge) {
            coverage.assert_some(&[&coverage.punched_segments]);
        }
    }
    coverage
}

#[test]
fn shuttle_collect_and_delete() {
    explore_roles("shuttle_collect_and_delete", &[Delete, Collect, Compact]);
}

/// I-11: what is left behind while newer versions are written, flushed and compacted is missed by nobody.
#[test]
fn shuttle_collect_and_overwrite() {
    explore_roles("shuttle_collect_and_overwrite", &[Overwrite, Overwrite, Collect, Compact]);
}

#[test]
fn shuttle_collect_and_reinsert() {
    explore_roles("shuttle_collect_and_reinsert", &[Reinsert, Collect, Collect, Compact]);
}

#[test]
fn shuttle_collect_and_snapshot() {
    explore_roles("shuttle_collect_and_snapshot", &[Overwrite, Collect, Compact, Snapshot]);
}

#[test]
fn shuttle_collect_and_read() {
    explore_roles("shuttle_collect_and_read", &[Overwrite, Collect, Compact, Read, Read]);
}

/// I-06: an iterator reads on in files that collections and compactions have replaced.
#[test]
fn shuttle_collect_and_iterate() {
    explore_roles("shuttle_collect_and_iterate", &[Reinsert, Collect, Compact, Iterate]);
}

/// Compactions drop tombstones together with the pointers below them while both are collected.
#[test]
fn shuttle_collect_and_compact() {
    explore_roles("shuttle_collect_and_compact", &[Delete, Overwrite, Collect, Compact, Compact, Snapshot]);
}

#[test]
fn shuttle_collect_and_checkpoint() {
    explore_roles("shuttle_collect_and_checkpoint", &[Overwrite, Collect, Compact, Checkpoint]);
}

#[test]
fn shuttle_punch_and_checkpoint() {
    explore_roles("shuttle_punch_and_checkpoint", &[WriteLarge, Collect, Compact, Checkpoint]);
}

#[test]
fn shuttle_punch_and_read() {
    explore_roles("shuttle_punch_and_read", &[WriteLarge, Collect, Collect, Compact, Snapshot, Iterate]);
}

#[test]
fn shuttle_collect_and_close() {
    explore_roles("shuttle_collect_and_close", &[Overwrite, Collect, Compact, Snapshot, Checkpoint, Close]);
}

/// The same seed gives the same run, call by call and byte by byte.
#[test]
fn shuttle_runs_can_be_replayed() {
    let traces: Arc<Mutex<[BTreeMap<u64, u64>; 2]>> = Arc::default();
    for round in 0..2 {
        let traces = Arc::clone(&traces);
        explore("shuttle_runs_can_be_replayed", 30, move |seed| {
            let roles = [Overwrite, WriteLarge, Collect, Compact, Snapshot, Checkpoint];
            let trace = run(seed, &roles, &Coverage::default());
            traces.lock().unwrap()[round].insert(seed, trace);
        });
    }
    let [first, second] = &*traces.lock().unwrap();
    assert_eq!(first, second);
}
