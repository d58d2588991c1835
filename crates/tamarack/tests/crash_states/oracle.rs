//! What must hold of a disk after a crash.

use tamarack::testing::{CrashState, Moment, SimDisk};
use tamarack::{CheckLevel, Db, GcGoal, IterOptions, Options, ReadOptions, WriteOptions};

use super::driver::{COPY, DATABASE};
use super::gate::with_one_worker;
use crate::common::garbage::{Content, walk};
use crate::common::history::{COPIED, History, bounds};

/// A key that no scenario writes.
const PROBE: &[u8] = b"probe";
/// One state in so many is collected and flushed before it crashes again.
const COLLECTED_ONE_IN: u64 = 4;

/// What a crash has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that was not durable.
    DurableAlone,
    /// A part of that.
    Part,
    /// Nothing.
    Nothing,
}

/// Everything in `db`, forward and backward.
pub fn content(db: &Db, what: &str) -> Content {
    content_at(db, &IterOptions::default(), what)
}

fn content_at(db: &Db, options: &IterOptions, what: &str) -> Content {
    let walk = |backward| walk(db, options, backward).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (forward, mut backward) = (walk(false), walk(true));
    backward.reverse();
    assert!(forward == backward, "{what}: backward is another order");
    let count = forward.len();
    let found: Content = forward.into_iter().collect();
    assert_eq!(found.len(), count, "{what}: a key is there twice");
    found
}

fn open(disk: &SimDisk, path: &str, options: &Options, what: &str) -> Db {
    let opened = Db::open_with_env(path, options.clone(), &with_one_worker(disk.env()));
    opened.unwrap_or_else(|error| panic!("{what}: open: {error}"))
}

/// Panics unless the state is that after some prefix of all batches, and can be lived with.
pub fn check(
    moment: &Moment,
    state: &CrashState,
    history: &History,
    keys: &[Vec<u8>],
    options: &Options,
    what: &str,
) -> Outcome {
    let disk = state.disk(moment);
    let (least, most) = bounds(moment);
    let db = open(&disk, DATABASE, options, what);
    let found = content(&db, what);
    let batches = history.find(&found, least, most).unwrap_or_else(|| {
        panic!(
            "{what}: not the state after {least} to {most} of {} batches: {}",
            history.batches(),
            brief(&found)
        )
    });
    for key in keys {
        let value = db.get(key).unwrap_or_else(|error| panic!("{what}: get: {error}"));
        assert!(value.as_ref() == found.get(key), "{what}: {} by get", key.escape_ascii());
    }
    let later = live_on(&db, &found, state.digest(), what);
    check_copy(&disk, moment, history, options, what);
    // Again: what was recovered must stay, and so must what was synced since.
    let twice = disk.crash(state.digest());
    drop(db);
    let db = open(&twice, DATABASE, options, &format!("{what}, crashed again"));
    assert!(content(&db, what) == later, "{what}: what was recovered was not durable");
    match batches {
        _ if batches == most => Outcome::Nothing,
        _ if batches == least => Outcome::DurableAlone,
        _ => Outcome::Part,
    }
}

/// Writes, reads and now and then collects, beside a snapshot. Returns what must be there from then on.
fn live_on(db: &Db, found: &Content, seed: u64, what: &str) -> Content {
    let snapshot = db.snapshot();
    let value = vec![7; 40 + (seed % 300) as usize];
    let written = db.put_with(PROBE, &value, &WriteOptions { sync: true });
    written.unwrap_or_else(|error| panic!("{what}: put: {error}"));
    let mut later = found.clone();
    later.insert(PROBE.to_vec(), value);
    if seed.is_multiple_of(COLLECTED_ONE_IN) {
        db.flush().unwrap_or_else(|error| panic!("{what}: flush: {error}"));
        db.gc(GcGoal::Once).unwrap_or_else(|error| panic!("{what}: gc: {error}"));
        db.wait_idle().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(content(db, what) == later, "{what}: a collection has changed something");
        let report = db.check(CheckLevel::Values);
        assert!(report.is_clean(), "{what}: {:#?}", report.problems);
    }
    let at_snapshot = IterOptions { snapshot: Some(snapshot.clone()), ..IterOptions::default() };
    assert!(content_at(db, &at_snapshot, what) == *found, "{what}: a snapshot has changed");
    let options = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    let probe = db.get_with(PROBE, &options).unwrap_or_else(|error| panic!("{what}: get: {error}"));
    assert!(probe.is_none() && db.get(PROBE).unwrap().is_some(), "{what}: the probe");
    later
}

/// A checkpoint that was made before the crash, or is there after it, is whole.
fn check_copy(disk: &SimDisk, moment: &Moment, history: &History, options: &Options, what: &str) {
    let current = std::path::Path::new(COPY).join("CURRENT");
    let is_there = disk.env().fs.exists(&current).unwrap();
    let copied = moment.fact(COPIED);
    assert!(is_there || copied.is_none(), "{what}: the copy is gone");
    if is_there {
        let found = content(&open(disk, COPY, options, what), what);
        let (least, most) = (copied.unwrap_or(0), copied.unwrap_or(bounds(moment).1));
        assert!(history.find(&found, least, most).is_some(), "{what}: the copy has {}", brief(&found));
    }
}

fn brief(content: &Content) -> String {
    let entry = |(key, value): (&Vec<u8>, &Vec<u8>)| {
        format!("{}={}", key.escape_ascii(), value[..value.len().min(10)].escape_ascii())
    };
    content.iter().map(entry).collect::<Vec<_>>().join(" ")
}
