//! Sentences of RELIABILITY.md that need a test of their own: what open makes durable, how long the log grows, a
//! panic in the midst of a write, damage that stays where it is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::garbage::Gate;
use crate::common::place::Place;
use crate::common::time::unwatched_env;
use crate::common::{
    PATIENCE_SECONDS, Watchdog, content, copy_directory, fast_directory, file_names, open, tiny,
};
use tamarack::testing::{Call, ENOSPC, Fault, FaultEnv};
use tamarack::{CheckLevel, Comparator, Db, ErrorKind, LogMode, Options};

/// Limits under which nothing is flushed by itself.
fn unflushed() -> Options {
    Options { memtable_bytes: 1 << 20, memtables_max: 64, ..tiny() }
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

#[test]
fn what_is_recovered_is_written_again_and_synced_before_open_returns() {
    for log_mode in [LogMode::Auto, LogMode::Plain] {
        let options =
            Options { log_mode, segment_bytes_max: 1 << 20, recovery_log_max: 4 << 20, ..unflushed() };
        let directory = fast_directory();
        let [path, killed, refused] = ["db", "killed", "refused"].map(|name| directory.path().join(name));
        let db = open(&path, &options).unwrap();
        for number in 0..500 {
            db.put(&key(number), &[number as u8; 200]).unwrap();
        }
        copy_directory(&path, &killed);
        copy_directory(&path, &refused);
        let (env, faults) = FaultEnv::new(unwatched_env());
        let opened = Db::open_with_env(&killed, options.clone(), &env).unwrap();
        let recovered = opened.recovery().clone();
        assert_eq!(recovered.operations, 500);
        assert!(recovered.rewritten_bytes >= recovered.log_bytes, "{recovered}");
        assert!(faults.bytes_of(Call::Write, ".vlog") >= recovered.rewritten_bytes);
        assert!(faults.count_of(Call::SyncData, ".vlog") > 0);
        // From then on all of it is known to be durable.
        let again = directory.path().join("again");
        copy_directory(&killed, &again);
        let reopened = open(&again, &options).unwrap();
        assert_eq!((reopened.recovery().operations, reopened.recovery().rewritten_bytes), (500, 0));
        // Where it cannot be made durable, open does not return a database.
        for call in [Call::Write, Call::SyncData] {
            faults.inject(Fault::on(call).path_ending(".vlog"));
            let outcome = Db::open_with_env(&refused, options.clone(), &env);
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Io, "{call:?}");
            faults.heal();
        }
        assert_eq!(content(&open(&refused, &options).unwrap()), content(&db));
    }
}

/// A segment that was full, but not sealed, when its process was killed is no damage to those who may not seal it.
#[test]
fn what_a_kill_has_left_unsealed_can_be_checked_read_only() {
    for log_mode in [LogMode::Auto, LogMode::Plain] {
        let place = Place::new(Options { log_mode, ..unflushed() });
        let db = place.open();
        let gate = Gate::at(&place.faults, Call::SyncData, ".vlog");
        for number in 0..100 {
            db.put(&key(number), &[number as u8; 200]).unwrap();
        }
        gate.wait();
        let killed = place.beside("killed");
        copy_directory(&place.path(), &killed);
        drop(gate);
        place.faults.unwatch();
        let options = Options { read_only: true, paranoid_checks: true, ..place.options.clone() };
        let reader = open(&killed, &options).unwrap();
        assert_eq!(content(&reader), content(&db), "{log_mode:?}");
        let report = reader.check(CheckLevel::Values);
        assert!(report.is_clean() && report.records >= 100, "{log_mode:?}: {report:?}");
    }
}

/// Writers wait for flushes rather than let the log grow: when no flush succeeds they get its error.
#[test]
fn the_log_to_replay_is_kept_to_its_limit() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a log that may not grow");
    for recovery_log_max in [16 << 10, 64 << 10, 256 << 10] {
        let options = Options { recovery_log_max, ..unflushed() };
        let directory = fast_directory();
        let (path, killed) = (directory.path().join("db"), directory.path().join("killed"));
        let (env, faults) = FaultEnv::new(unwatched_env());
        let db = Db::open_with_env(&path, options.clone(), &env).unwrap();
        faults.inject(Fault::on(Call::Create).path_ending(".table").errno(ENOSPC).for_ever());
        let written = (0..10_000).find(|&number| match db.put(&key(number), &[1; 300]) {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
                true
            }
        });
        let written = written.expect("the log grows without a limit");
        copy_directory(&path, &killed);
        let recovered = open(&killed, &options).unwrap().recovery().clone();
        assert_eq!(recovered.operations, u64::from(written));
        let bytes = recovered.log_bytes;
        assert!(bytes <= recovery_log_max && bytes > recovery_log_max / 2, "{bytes} of {recovery_log_max}");
    }
}

/// However short the sessions are in which it grows, the log is flushed.
#[test]
fn the_log_of_many_short_sessions_is_kept_short() {
    for (keys, value_bytes) in [(3, 20), (60, 300)] {
        let options = Options { recovery_log_max: 256 << 10, value_runs_max: 0, ..unflushed() };
        let directory = fast_directory();
        let (mut bytes, mut operations) = (0, 0);
        for session in 0..40 {
            let db = open(directory.path(), &options).unwrap();
            bytes = db.recovery().log_bytes.max(bytes);
            operations = db.recovery().operations.max(operations);
            (0..keys).for_each(|number| db.put(&key(number), &vec![session; value_bytes]).unwrap());
        }
        assert!(bytes <= 256 << 10, "sessions of {keys} values: {bytes} bytes of log");
        assert!(operations <= 20 * u64::from(keys), "sessions of {keys} values: {operations} operations");
        let db = open(directory.path(), &options).unwrap();
        assert_eq!(db.get(&key(1)).unwrap().unwrap(), vec![39; value_bytes]);
    }
}

/// Panics when it is told to.
#[derive(Debug)]
struct Panicking(AtomicBool);

impl Comparator for Panicking {
    fn name(&self) -> &str {
        "test.Panicking"
    }
    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        assert!(!self.0.load(Ordering::Relaxed), "told to panic");
        left.cmp(right)
    }
}

/// The last handle is dropped while the thread unwinds, and the close asks the comparator, too.
#[test]
fn a_panic_inside_a_read_may_drop_the_last_handle() {
    let comparator = Arc::new(Panicking(AtomicBool::new(false)));
    let options = Options { comparator: Arc::clone(&comparator) as Arc<dyn Comparator>, ..tiny() };
    let directory = fast_directory();
    let db = open(directory.path(), &options).unwrap();
    (0..3).for_each(|number| db.put(&key(number), &[1; 100]).unwrap());
    comparator.0.store(true, Ordering::Relaxed);
    // Of a key that has been written a place may be known, and nobody is asked.
    let reader = std::thread::spawn(move || db.get(&key(5)));
    assert!(reader.join().is_err(), "it was told to panic");
    comparator.0.store(false, Ordering::Relaxed);
    let db = open(directory.path(), &options).unwrap();
    (0..3).for_each(|number| assert_eq!(db.get(&key(number)).unwrap().unwrap(), [1; 100]));
}

#[test]
fn a_panic_inside_a_write_stops_writes_and_nobody_waits_for_ever() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "writers beside one that panics");
    let comparator = Arc::new(Panicking(AtomicBool::new(false)));
    let options = Options { comparator: Arc::clone(&comparator) as Arc<dyn Comparator>, ..tiny() };
    let directory = fast_directory();
    let db = open(directory.path(), &options).unwrap();
    let acknowledged: Vec<u32> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let db = &db;
                scope.spawn(move || {
                    // More than can be written: each goes on until it is stopped.
                    let numbers =
                        (writer * 1_000_000_000..(writer + 1) * 1_000_000_000).take_while(|&number| {
                            let put = || db.put(&key(number), &[1; 100]);
                            match catch_unwind(AssertUnwindSafe(put)) {
                                Ok(Err(error)) => assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}"),
                                Ok(Ok(())) => return true,
                                Err(_panic) => {}
                            }
                            false
                        });
                    numbers.collect::<Vec<_>>()
                })
            })
            .collect();
        while db.get(&key(300)).unwrap().is_none() {
            std::thread::yield_now();
        }
        comparator.0.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    comparator.0.store(false, Ordering::Relaxed);
    for outcome in [db.put(b"key", b"value"), db.flush(), db.wait_idle(), db.compact_range(None, None)] {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ReadOnly);
    }
    let all_there = |db: &Db| {
        for number in &acknowledged {
            assert_eq!(db.get(&key(*number)).unwrap().unwrap(), [1; 100], "{number}");
        }
    };
    all_there(&db);
    assert!(db.close().is_err());
    all_there(&Db::open(directory.path(), options).unwrap());
}

/// Changes one byte in the middle of the largest file whose name ends with `suffix`.
fn damage(directory: &Path, suffix: &str) {
    let names = file_names(directory).into_iter().filter(|name| name.ends_with(suffix));
    let path =
        names.map(|name| directory.join(name)).max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(path, bytes).unwrap();
}

/// A value that is damaged is lost alone, a block of the index with the keys in it.
#[test]
fn damage_stays_where_it_is() {
    for (suffix, lost_max) in [(".vlog", 1), (".table", 100)] {
        let options = Options { table_bytes_max: 1 << 20, ..unflushed() };
        let directory = fast_directory();
        let db = open(directory.path(), &options).unwrap();
        for number in 0..1000 {
            db.put(&key(number), &[number as u8; 100]).unwrap();
        }
        db.compact_range(None, None).unwrap();
        db.close().unwrap();
        damage(directory.path(), suffix);
        let db = open(directory.path(), &options).unwrap();
        let lost = |db: &Db| {
            let outcomes = (0..1000).map(|number| (number, db.get(&key(number))));
            let wrong = |(number, outcome): (u32, tamarack::Result<Option<Vec<u8>>>)| match outcome {
                Ok(value) => {
                    assert_eq!(value.unwrap(), [number as u8; 100], "{suffix}");
                    None
                }
                Err(error) => Some(error.kind()),
            };
            let kinds: Vec<_> = outcomes.filter_map(wrong).collect();
            assert!(kinds.iter().all(|&kind| kind == ErrorKind::Corruption), "{suffix}: {kinds:?}");
            kinds.len()
        };
        let before = lost(&db);
        assert!((1..=lost_max).contains(&before), "{suffix}: {before} of 1000 keys are lost");
        if suffix == ".table" {
            assert_eq!(db.compact_range(None, None).unwrap_err().kind(), ErrorKind::Corruption);
            let flush = |round: u32| {
                db.put(&key(0), &[0; 100]).unwrap();
                for number in 0..30 {
                    db.put(&key(2000 + 30 * round + number), &[1; 100]).unwrap();
                }
                db.flush().unwrap();
                db.wait_idle()
            };
            let stopped =
                (0..50).find_map(|round| flush(round).err()).expect("no compaction in the background");
            assert_eq!(stopped.kind(), ErrorKind::Corruption, "{stopped}");
            assert!(db.stats().warnings.iter().any(|warning| warning.contains("a compaction failed")));
        }
        db.put(b"new", b"value").unwrap();
        db.flush().unwrap();
        assert!(lost(&db) <= before, "{suffix}: the damage has spread");
    }
}

/// Asks for what it was given to do, once, on a thread of the database.
#[derive(Debug)]
struct Meddling {
    own: std::thread::ThreadId,
    armed: AtomicBool,
    inside: AtomicBool,
    panics: bool,
    db: Mutex<Option<Db>>,
    refused: Mutex<Option<ErrorKind>>,
}

impl Comparator for Meddling {
    fn name(&self) -> &str {
        "test.Meddling"
    }
    fn compare(&self, left: &[u8], right: &[u8]) -> std::cmp::Ordering {
        if std::thread::current().id() != self.own && self.armed.swap(false, Ordering::SeqCst) {
            let close = self.db.lock().unwrap().clone().unwrap().close();
            self.inside.store(true, Ordering::SeqCst);
            *self.refused.lock().unwrap() = Some(close.expect_err("it waits for this thread").kind());
            // Long enough for a close that does not wait to return.
            std::thread::sleep(Duration::from_millis(50));
            self.inside.store(false, Ordering::SeqCst);
            assert!(!self.panics, "told to panic");
        }
        left.cmp(right)
    }
}

/// What is written is followed in the background, where the comparator is asked for the smallest and the largest key.
#[test]
fn who_follows_the_log_does_not_close_it_and_may_panic() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a close beside who follows the log");
    for panics in [false, true] {
        let meddling = Arc::new(Meddling {
            own: std::thread::current().id(),
            armed: AtomicBool::new(true),
            inside: AtomicBool::new(false),
            panics,
            db: Mutex::new(None),
            refused: Mutex::new(None),
        });
        // Nothing is full: no other job has a reason to run.
        let options =
            Options { comparator: Arc::clone(&meddling) as Arc<dyn Comparator>, ..Options::default() };
        let directory = fast_directory();
        let db = open(directory.path(), &options).unwrap();
        *meddling.db.lock().unwrap() = Some(db.clone());
        for number in 0..1000_u32 {
            db.put(&number.wrapping_mul(2_654_435_761).to_be_bytes(), &[1; 1000]).unwrap();
        }
        while meddling.refused.lock().unwrap().is_none() {
            std::thread::yield_now();
        }
        let closed = db.close();
        assert!(!meddling.inside.load(Ordering::SeqCst), "close has waited for it");
        assert_eq!(*meddling.refused.lock().unwrap(), Some(ErrorKind::InvalidArgument));
        assert_eq!(closed.err().map(|error| error.kind()), panics.then_some(ErrorKind::ReadOnly));
        meddling.db.lock().unwrap().take();
        let db = open(directory.path(), &options).unwrap();
        assert_eq!(content(&db).len(), 1000);
    }
}
