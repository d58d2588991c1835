//! Threads that write, sync, flush, compact and walk at random, while one background thread has everything to do
//! that they wait for: nobody waits for ever, not even when the database is closed or calls fail in their midst, and
//! what was acknowledged is there. `TAMARACK_SEED` runs one seed alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{
    PATIENCE_SECONDS, Random, Watchdog, assert_clean, content, copy_directory, fast_directory,
    number_from_environment, open, tiny,
};
use tamarack::testing::{Call, ENOSPC, Env, Fault, FaultEnv, Faults, posix_env};
use tamarack::{Db, ErrorKind, IterOptions, LogMode, Options, WriteBatch, WriteOptions};

const SEEDS: u64 = 12;
const THREADS: u64 = 6;
/// Things that each thread does.
const STEPS: u64 = 250;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// One thread's keys.
#[derive(Debug, Default)]
struct Ledger {
    /// After every acknowledged write.
    kept: Entries,
    /// After the one that failed, should it be there nevertheless.
    in_doubt: Option<Entries>,
}

/// A thread that writes keys of its own.
struct Worker<'a> {
    db: &'a Db,
    thread: u64,
    random: Random,
    ledger: Ledger,
    /// What may go wrong.
    expected: &'a [ErrorKind],
    /// Things that all threads have done.
    done: &'a AtomicU64,
}

impl Worker<'_> {
    fn run(mut self) -> Ledger {
        for _ in 0..STEPS {
            self.done.fetch_add(1, Ordering::Relaxed);
            let outcome = match self.random.below(60) {
                0 => self.db.flush(),
                1 => self.db.compact_range(None, None),
                2 => self.db.sync(),
                3 => self.db.wait_idle(),
                4..=6 => self.walk(),
                _ => self.write(),
            };
            if let Err(error) = outcome {
                assert!(self.expected.contains(&error.kind()), "{error}");
                if error.kind() != ErrorKind::NoSpace || self.ledger.in_doubt.is_some() {
                    break;
                }
            }
        }
        self.done.fetch_add(STEPS, Ordering::Relaxed);
        self.ledger
    }

    /// Others write on: of this thread's keys a walk shows what this thread has written.
    fn walk(&self) -> tamarack::Result<()> {
        let options = IterOptions {
            start: Some(format!("{}/", self.thread).into_bytes()),
            end: Some(format!("{}0", self.thread).into_bytes()),
            ..IterOptions::default()
        };
        let entries: tamarack::Result<Entries> = self.db.iter(&options)?.entries().collect();
        assert!(entries? == self.ledger.kept, "thread {} misses a write", self.thread);
        Ok(())
    }

    fn write(&mut self) -> tamarack::Result<()> {
        let (mut batch, mut after) = (WriteBatch::new(), self.ledger.kept.clone());
        for _ in 0..self.random.pick(&[1, 1, 1, 7]) {
            let key = format!("{}/{}", self.thread, self.random.below(40)).into_bytes();
            // The longest ones fit neither a segment nor a memtable.
            let len = if self.random.one_in(40) { 9000 } else { self.random.pick(&[8, 30, 100, 500, 3000]) };
            if self.random.one_in(4) {
                batch.delete(&key).unwrap();
                after.remove(&key);
            } else {
                let value = self.random.bytes(len);
                batch.put(&key, &value).unwrap();
                after.insert(key, value);
            }
        }
        let outcome = self.db.write(&batch, &WriteOptions { sync: self.random.one_in(20) });
        match outcome {
            Ok(()) => self.ledger.kept = after,
            Err(_) => self.ledger.in_doubt = Some(after),
        }
        outcome
    }
}

/// A database that all threads work on.
struct World {
    what: String,
    random: Random,
    directory: tempfile::TempDir,
    options: Options,
    env: Env,
    faults: std::sync::Arc<Faults>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let options = Options {
            background_threads: 1,
            memtables_max: random.pick(&[2, 4]),
            recovery_log_max: random.pick(&[8 << 10, 64 << 10]),
            log_mode: random.pick(&[LogMode::Auto, LogMode::Plain]),
            ..tiny()
        };
        let (env, faults) = FaultEnv::new(posix_env());
        let what = format!("TAMARACK_SEED={seed}, {options:?}");
        Self { what, random, directory: fast_directory(), options, env, faults }
    }

    /// Has the threads work, and calls `disturb` once they have done something of all they have to do, if anything.
    fn work(&mut self, expected: &[ErrorKind], disturb: impl FnOnce(&Db)) -> Vec<Ledger> {
        let db = Db::open_with_env(self.directory.path(), self.options.clone(), &self.env).unwrap();
        let done = AtomicU64::new(0);
        let enough = self.random.number() % (THREADS * STEPS);
        let seed = self.random.number();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let random = Random::new(seed ^ thread);
                    let (db, done, ledger) = (&db, &done, Ledger::default());
                    let worker = Worker { db, thread, random, ledger, expected, done };
                    scope.spawn(move || worker.run())
                })
                .collect();
            while done.load(Ordering::Relaxed) < enough {
                std::thread::yield_now();
            }
            disturb(&db);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Opens the database in a world without faults.
    fn assert_recovers(&self, ledgers: Vec<Ledger>) {
        let db = Db::open(self.directory.path(), self.options.clone())
            .unwrap_or_else(|error| panic!("{}: {error}", self.what));
        let found = content(&db);
        for (thread, ledger) in ledgers.into_iter().enumerate() {
            let prefix = format!("{thread}/").into_bytes();
            let mine: Entries = found
                .iter()
                .filter(|(key, _)| key.starts_with(&prefix))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
            assert!(
                mine == ledger.kept || Some(mine) == ledger.in_doubt,
                "{}: thread {thread} finds something else than was acknowledged",
                self.what
            );
        }
        assert_clean(&db);
    }
}

fn for_each_seed(task: &str, run: impl Fn(World)) {
    let seeds = match number_from_environment("TAMARACK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS,
    };
    for seed in seeds {
        let world = World::new(seed);
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("{task}, {}", world.what));
        run(world);
    }
}

#[test]
fn nobody_waits_for_ever() {
    for_each_seed("undisturbed", |mut world| {
        let ledgers = world.work(&[], |_| ());
        assert!(ledgers.iter().all(|ledger| ledger.in_doubt.is_none()), "{}", world.what);
        world.assert_recovers(ledgers);
    });
}

#[test]
fn nobody_waits_for_ever_when_the_database_is_closed() {
    for_each_seed("closed", |mut world| {
        let mut ledgers = world.work(&[ErrorKind::Closed], |db| db.clone().close().unwrap());
        // What is refused because the database is closed has written nothing.
        ledgers.iter_mut().for_each(|ledger| ledger.in_doubt = None);
        world.assert_recovers(ledgers);
    });
}

#[test]
fn nobody_waits_for_ever_when_a_call_fails() {
    const CALLS: [Call; 8] = [
        Call::Write,
        Call::SyncData,
        Call::SyncDir,
        Call::Allocate,
        Call::Create,
        Call::SetLength,
        Call::RemoveFile,
        Call::Read,
    ];
    for_each_seed("a call fails", |mut world| {
        let fault = Fault::on(world.random.pick(&CALLS)).nth(1 + world.random.number() % 20);
        let fault = if world.random.one_in(3) { fault.errno(ENOSPC) } else { fault };
        let fault = if world.random.one_in(2) { fault.for_ever() } else { fault };
        let faults = std::sync::Arc::clone(&world.faults);
        let expected = [ErrorKind::Io, ErrorKind::NoSpace, ErrorKind::ReadOnly];
        let ledgers = world.work(&expected, |_| faults.inject(fault));
        faults.heal();
        world.assert_recovers(ledgers);
    });
}

#[test]
fn nobody_waits_for_ever_when_the_disk_is_full_for_a_while() {
    for_each_seed("a full disk", |mut world| {
        let room = world.random.number() % 20_000;
        let faults = std::sync::Arc::clone(&world.faults);
        let ledgers = world.work(&[ErrorKind::NoSpace], |db| {
            faults.set_quota(Some(faults.space_used() + room));
            // As long as it takes to be refused some times; every other thread may have been, and have ended.
            let put = |number| db.put(format!("other{number}").as_bytes(), &[1; 3000]);
            let mut puts = (0..2000).map(put);
            let refused = (0..10).filter(|_| puts.any(|put| put.is_err())).count();
            faults.set_quota(None);
            assert_eq!(refused, 10, "the disk is never full");
        });
        world.assert_recovers(ledgers);
    });
}

/// A memtable that could not be flushed stays when the database is closed, and nobody flushes it after that.
#[test]
fn nobody_waits_for_work_that_a_close_has_left_undone() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "waiting after a close that left a memtable behind");
    let world = World::new(0);
    let db = Db::open_with_env(world.directory.path(), world.options.clone(), &world.env).unwrap();
    db.put(b"key", b"value").unwrap();
    world.faults.inject(Fault::on(Call::Create).path_ending(".table").errno(ENOSPC).for_ever());
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::NoSpace);
    assert!(db.stats().warnings.iter().any(|warning| warning.contains("could not be flushed")));
    let closed = db.clone().close();
    assert!(closed.is_ok(), "the log takes no more space: {closed:?}");
    assert_eq!(db.wait_idle().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.flush().unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.compact_range(None, None).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
}

/// What a read-only handle has replayed fills several memtables, which it will never flush.
#[test]
fn a_read_only_handle_has_no_work_to_wait_for() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "waiting for a read-only handle");
    let directory = fast_directory();
    let (path, killed) = (directory.path().join("db"), directory.path().join("killed"));
    let db = open(&path, &Options::default()).unwrap();
    for number in 0..200_u32 {
        db.put(&number.to_le_bytes(), &[7; 100]).unwrap();
    }
    copy_directory(&path, &killed);
    let reader = open(&killed, &Options { read_only: true, ..tiny() }).unwrap();
    reader.wait_idle().unwrap();
    assert_eq!(content(&reader), content(&db));
}
