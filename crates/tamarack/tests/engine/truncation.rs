//! Logs that end too early. What was never synced may be cut off anywhere, and exactly the whole batches before the
//! cut come back; what was durable may not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{assert_clean, content, copy_directory, fast_directory, file_names, open, tiny};
use tamarack::{Error, ErrorKind, LogMode, Options, WriteBatch, WriteOptions};

const HEADER_BYTES: usize = 80;
const RECORD_HEADER_BYTES: usize = 24;
const BATCHES: usize = 14;

type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// A log of some batches in one directory, copied while its database was open.
struct Log {
    root: tempfile::TempDir,
    options: Options,
    /// Where each batch ends in its segment, counting from an empty log.
    ends: Vec<usize>,
    /// The state after each of them.
    states: Vec<State>,
}

impl Log {
    fn original(&self) -> PathBuf {
        self.root.path().join("copy")
    }

    /// A fresh copy to be damaged.
    fn damaged(&self) -> PathBuf {
        let path = self.root.path().join("damaged");
        copy_directory(&self.original(), &path);
        path
    }

    /// The state that a log whole up to `at` leads to.
    fn state_before(&self, at: usize) -> &State {
        let whole = self.ends.iter().take_while(|&&end| end <= at).count();
        &self.states[whole.saturating_sub(1)]
    }
}

/// Writes batches of one to four operations into one segment and syncs after those in `synced`.
fn write_log(log_mode: LogMode, synced: &[usize]) -> Log {
    let root = fast_directory();
    let options = Options { log_mode, segment_bytes_max: 64 << 10, memtable_bytes: 64 << 10, ..big() };
    let db = open(&root.path().join("db"), &options).unwrap();
    let (mut ends, mut states) = (vec![HEADER_BYTES], vec![State::new()]);
    for number in 0..BATCHES {
        let mut batch = WriteBatch::new();
        let mut state = states[number].clone();
        let mut end = ends[number] + if synced.contains(&number.wrapping_sub(1)) { 36 } else { 0 };
        for operation in 0..=number % 4 {
            let key = format!("key{}", (number * 7 + operation) % 10).into_bytes();
            end += RECORD_HEADER_BYTES + key.len();
            if (number + operation) % 5 == 4 {
                batch.delete(&key).unwrap();
                state.remove(&key);
            } else {
                let value = vec![number as u8 + 1; 3 + (number * 5 + operation * 13) % 40];
                batch.put(&key, &value).unwrap();
                end += value.len();
                state.insert(key, value);
            }
        }
        db.write(&batch, &WriteOptions { sync: synced.contains(&number) }).unwrap();
        ends.push(end);
        states.push(state);
    }
    let log = Log { root, options, ends, states };
    copy_directory(&log.root.path().join("db"), &log.original());
    assert_eq!(content(&db), log.states[BATCHES]);
    log
}

fn big() -> Options {
    Options { recovery_log_max: 1 << 20, ..tiny() }
}

/// Opens what must open, compares, writes, and opens again.
fn assert_recovers(path: &Path, options: &Options, expected: &State, what: &str) {
    let db = open(path, options).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&content(&db), expected, "{what}");
    for key in 0..10 {
        let key = format!("key{key}").into_bytes();
        assert_eq!(db.get(&key).unwrap().as_ref(), expected.get(&key), "{what}");
    }
    let mut expected = expected.clone();
    for round in 0..2_u8 {
        let key = format!("written later {round}").into_bytes();
        db.put(&key, &[round; 100]).unwrap();
        expected.insert(key, vec![round; 100]);
    }
    assert_clean(&db);
    drop(db);
    let db = open(path, options).unwrap_or_else(|error| panic!("{what}, again: {error}"));
    assert_eq!(content(&db), expected, "{what}, again");
    assert_eq!(db.recovery().torn_tail, None, "{what}, again");
}

fn segment(directory: &Path) -> PathBuf {
    directory.join("000001.vlog")
}

fn corruption(path: &Path, options: &Options, what: &str) -> Error {
    let error = match open(path, options) {
        Ok(db) => panic!("{what}: opened with {:?} and {:?}", db.recovery(), content(&db).keys()),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
    error
}

#[test]
fn an_unsynced_log_cut_at_any_byte_gives_the_batches_before_the_cut() {
    for log_mode in [LogMode::Auto, LogMode::Plain] {
        let log = write_log(log_mode, &[]);
        for at in 0..=log.ends[BATCHES] {
            let path = log.damaged();
            let whole = std::fs::read(segment(&path)).unwrap();
            std::fs::write(segment(&path), &whole[..at]).unwrap();
            assert_recovers(&path, &log.options, log.state_before(at), &format!("{log_mode:?} cut at {at}"));
        }
    }
}

#[test]
fn an_unsynced_log_with_zeros_from_any_byte_gives_the_batches_before_them() {
    let log = write_log(LogMode::Auto, &[]);
    let whole = std::fs::read(segment(&log.original())).unwrap();
    for at in 0..=log.ends[BATCHES] {
        // Zeros to the end; or a page that never reached the device, with later ones that did.
        for hole in [whole.len(), (at + 50).min(whole.len())] {
            let path = log.damaged();
            let mut bytes = whole.clone();
            bytes[at..hole].fill(0);
            // A byte that was zero before is no damage.
            let first = (at..hole).find(|&at| whole[at] != 0).unwrap_or(whole.len());
            std::fs::write(segment(&path), &bytes).unwrap();
            let what = format!("zeros at {at}..{hole}");
            assert_recovers(&path, &log.options, log.state_before(first), &what);
        }
    }
}

#[test]
fn one_flipped_bit_in_an_unsynced_log_costs_the_batches_from_there_on() {
    let log = write_log(LogMode::Plain, &[]);
    let whole = std::fs::read(segment(&log.original())).unwrap();
    for at in 0..log.ends[BATCHES] {
        let path = log.damaged();
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        std::fs::write(segment(&path), &bytes).unwrap();
        assert_recovers(&path, &log.options, log.state_before(at), &format!("a flip at {at}"));
        assert!(log.state_before(at) != &log.states[BATCHES]);
    }
}

#[test]
fn damage_below_a_mark_is_corruption_and_behind_it_a_torn_tail() {
    for log_mode in [LogMode::Auto, LogMode::Plain] {
        let synced = 8;
        let log = write_log(log_mode, &[3, synced]);
        let durable = log.ends[synced + 1];
        let whole = std::fs::read(segment(&log.original())).unwrap();
        for at in 0..log.ends[BATCHES] {
            // The marks themselves protect nothing.
            let in_mark = [4, synced + 1].iter().any(|&n| (log.ends[n]..log.ends[n] + 36).contains(&at));
            if in_mark && at > durable {
                continue;
            }
            for zeros in [false, true] {
                let path = log.damaged();
                let mut bytes = whole.clone();
                if zeros {
                    bytes[at..(at + 20).min(durable.max(at + 1))].fill(0);
                } else {
                    bytes[at] ^= 1 << (at % 8);
                }
                if bytes == whole {
                    continue;
                }
                std::fs::write(segment(&path), &bytes).unwrap();
                let what = format!("{log_mode:?}: damage at {at}, zeros {zeros}");
                if at >= durable {
                    assert_recovers(&path, &log.options, log.state_before(at), &what);
                    continue;
                }
                let error = corruption(&path, &log.options, &what);
                let place = error.as_corruption().expect("the place of the damage");
                assert_eq!(place.file, segment(&path), "{what}: {error}");
                assert!(place.offset <= at as u64 + 20, "{what}: {error}");
                assert!(
                    std::fs::read(segment(&path)).unwrap() == bytes,
                    "{what}: a refused open changes nothing"
                );
            }
        }
    }
}

/// A log of several segments, the last of them active, copied while open.
fn write_chain(synced: bool) -> (tempfile::TempDir, Options, Vec<State>) {
    let root = fast_directory();
    let options = Options { memtable_bytes: 256 << 10, ..big() };
    let db = open(&root.path().join("db"), &options).unwrap();
    let mut states = vec![State::new()];
    for number in 0..90_u8 {
        let (key, value) = (format!("key{}", number % 20).into_bytes(), vec![number; 100]);
        db.put(&key, &value).unwrap();
        let mut state = states.last().unwrap().clone();
        state.insert(key, value);
        states.push(state);
    }
    db.wait_idle().unwrap();
    if synced {
        db.sync().unwrap();
    }
    copy_directory(&root.path().join("db"), &root.path().join("copy"));
    (root, options, states)
}

/// The names of the segments of a chain, without one that was made ready for later.
fn segments(root: &Path) -> Vec<String> {
    let mut names = file_names(&root.join("copy"));
    names.retain(|name| {
        name.ends_with(".vlog") && std::fs::read(root.join("copy").join(name)).unwrap()[0] != 0
    });
    assert!(names.len() > 2);
    names
}

#[test]
fn a_sealed_segment_that_is_cut_or_missing_is_corruption() {
    let (root, options, _) = write_chain(true);
    let damaged = root.path().join("damaged");
    let segments = segments(root.path());
    for name in &segments[..segments.len() - 1] {
        let whole = std::fs::read(root.path().join("copy").join(name)).unwrap();
        let trailer = whole.len() - 32;
        let records_end = u64::from_le_bytes(whole[trailer..trailer + 8].try_into().unwrap()) as usize;
        for at in (0..records_end).step_by(7) {
            copy_directory(&root.path().join("copy"), &damaged);
            std::fs::write(damaged.join(name), &whole[..at]).unwrap();
            let what = format!("{name} cut at {at}");
            let error = corruption(&damaged, &options, &what);
            assert_eq!(error.as_corruption().unwrap().file, damaged.join(name), "{what}: {error}");
        }
        copy_directory(&root.path().join("copy"), &damaged);
        std::fs::remove_file(damaged.join(name)).unwrap();
        let error = corruption(&damaged, &options, &format!("{name} missing"));
        assert!(error.to_string().contains(name.as_str()), "{name} missing: {error}");
        // Without its footer a segment is as good: it can be walked over.
        copy_directory(&root.path().join("copy"), &damaged);
        std::fs::write(damaged.join(name), &whole[..records_end]).unwrap();
        let db = open(&damaged, &options).unwrap();
        assert_eq!(content(&db).len(), 20);
    }
}

#[test]
fn segments_behind_a_torn_one_are_not_replayed() {
    let (root, options, states) = write_chain(false);
    let damaged = root.path().join("damaged");
    let segments = segments(root.path());
    let last = segments.last().unwrap();
    let whole = std::fs::read(root.path().join("copy").join(last)).unwrap();
    for at in (0..whole.len()).step_by(13) {
        copy_directory(&root.path().join("copy"), &damaged);
        std::fs::write(damaged.join(last), &whole[..at]).unwrap();
        let what = format!("{last} cut at {at}");
        let db = open(&damaged, &options).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = content(&db);
        drop(db);
        let state =
            states.iter().find(|state| **state == found).unwrap_or_else(|| panic!("{what}: no prefix"));
        assert_recovers(&damaged, &options, state, &what);
    }
}

#[test]
fn a_batch_of_a_million_operations_is_there_as_a_whole_or_not_at_all() {
    const OPERATIONS: u32 = 1_000_000;
    let directory = fast_directory();
    let [path, whole, cut] = ["db", "whole", "cut"].map(|name| directory.path().join(name));
    // Nothing is flushed.
    let options = Options { memtable_bytes: 512 << 20, recovery_log_max: 1 << 30, ..big() };
    let db = open(&path, &options).unwrap();
    db.put(b"before", b"value").unwrap();
    let mut batch = WriteBatch::new();
    (0..OPERATIONS).for_each(|number| batch.put(&number.to_be_bytes(), b"v").unwrap());
    db.write(&batch, &WriteOptions::default()).unwrap();
    for copy in [&whole, &cut] {
        copy_directory(&path, copy);
    }
    let recovered = open(&whole, &options).unwrap();
    assert_eq!(content(&recovered).len(), OPERATIONS as usize + 1);
    let bytes_of = |name: &String| std::fs::metadata(cut.join(name)).unwrap().len();
    let log = cut.join(file_names(&cut).into_iter().max_by_key(bytes_of).unwrap());
    let bytes = std::fs::read(&log).unwrap();
    // Behind it may stand the footer of a full segment.
    let last = (OPERATIONS - 1).to_be_bytes();
    let end = bytes.windows(4).rposition(|window| window == last).unwrap();
    std::fs::write(&log, &bytes[..end]).unwrap();
    let recovered = open(&cut, &options).unwrap();
    assert_eq!(content(&recovered).into_keys().collect::<Vec<_>>(), [b"before"]);
}
