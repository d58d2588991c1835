//! Losses of power on a simulated disk: at every change that a scenario makes of the disk, and at random ones, also while
//! the database is being opened after another one, again and again. What is left is a prefix of all operations, and no
//! shorter than what was durable; what has once been recovered stays.
//!
//! A failure names its seed. `TAMARACK_SEED=<seed> TAMARACK_SEEDS=1 cargo test -p tamarack --test engine crash` tries it again;
//! threads of the process are not scheduled by the seed, so that it may take several times.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::garbage::{Content, walk};
use crate::common::time::unwatched;
use crate::common::writer::{KEYS, Writer, acknowledged, durable};
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, number_from_environment, tiny, tiny_without_gc};
use tamarack::testing::{DiskFault, SimDisk, SimOptions};
use tamarack::{CheckLevel, Db, GcGoal, GcPolicy, IterOptions, LogMode, Options, WriteOptions};

fn open(disk: &SimDisk, options: &Options, what: &str) -> Db {
    let opened = Db::open_with_env("/db", options.clone(), &unwatched(disk.env()));
    opened.unwrap_or_else(|error| panic!("{what}: open: {error}"))
}

/// Everything in `db`, which must agree with itself.
fn content(db: &Db, what: &str) -> Content {
    let walk = |backward| {
        let found = walk(db, &IterOptions::default(), backward);
        found.unwrap_or_else(|error| panic!("{what}: {error}")).into_iter().collect::<Content>()
    };
    let found = walk(false);
    assert!(found == walk(true), "{what}: backward");
    for (key, value) in &found {
        assert!(db.get(key).unwrap().as_ref() == Some(value), "{what}: {} by get", key.escape_ascii());
    }
    let report = db.check(CheckLevel::Values);
    assert!(report.is_clean(), "{what}: {:#?}", report.problems);
    found
}

/// Writes, flushes, compacts, collects and copies, with a kill at change `at` if it comes to that. Returns what was
/// written.
fn scenario(disk: &SimDisk, options: &Options, at: u64) -> Writer {
    disk.kill_at(at);
    let mut writer = Writer::new(0, false);
    let db = open(disk, options, "new");
    for number in 0..KEYS {
        assert!(writer.put(&db, disk, number, number % 8 == 7));
    }
    db.flush().unwrap();
    for number in (0..KEYS).step_by(2) {
        assert!(writer.put(&db, disk, number, false));
    }
    (1..KEYS).step_by(6).for_each(|number| assert!(writer.delete(&db, disk, number, false)));
    db.compact_range(None, None).unwrap();
    db.gc(GcGoal::Until(1.0)).unwrap();
    // Nothing of this is flushed or synced: segments are filled and sealed in the background.
    for number in (0..2 * KEYS).step_by(3) {
        assert!(writer.put(&db, disk, number % KEYS, false));
    }
    db.checkpoint("/copy").unwrap();
    assert!(writer.delete(&db, disk, 0, true));
    db.close().unwrap();
    writer
}

/// What a kill has left is whole, and stays whatever the power does once a database was opened on it.
fn assert_recovered_for_good(
    killed: &SimDisk,
    writer: &Writer,
    options: &Options,
    random: &mut Random,
    what: &str,
) {
    for _ in 0..2 {
        let crashed = killed.crash(random.number());
        let found = content(&open(&crashed, options, what), what);
        writer.assert_since(&found, killed.fact(durable(0)).unwrap_or(0), what);
    }
    let db = open(killed, options, what);
    let found = content(&db, what);
    writer.assert_since(&found, killed.fact(acknowledged(0)).unwrap_or(0), what);
    let mut crashes = vec![killed.crash_to_durable(), killed.crash(random.number())];
    // From then on the manifest names what was recovered.
    db.flush().unwrap();
    crashes.extend([killed.crash_to_durable(), killed.crash(random.number())]);
    for crashed in crashes {
        let later = content(&open(&crashed, options, &format!("{what}, then a loss of power")), what);
        assert!(later == found, "{what}: what was recovered was not durable");
    }
}

#[test]
fn whatever_is_recovered_is_durable_wherever_the_process_died() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "kills at every change");
    for log_mode in [LogMode::Auto, LogMode::Plain] {
        let options = Options { log_mode, ..tiny_without_gc() };
        let mut random = Random::new(7);
        for at in 0.. {
            let disk = SimDisk::new(&SimOptions { seed: at, block_bytes: 512, ..SimOptions::default() });
            let writer = scenario(&disk, &options, at);
            let Some(killed) = disk.take_killed() else { break };
            let what = format!("{log_mode:?}, killed at change {at}");
            assert_recovered_for_good(&killed, &writer, &options, &mut random, &what);
        }
    }
}

#[test]
fn a_directory_that_a_killed_process_has_made_is_made_durable_by_the_next() {
    for path in ["/db", "/some/where/db"] {
        let mut kills = 0;
        for at in 0.. {
            let disk = SimDisk::new(&SimOptions { seed: at, ..SimOptions::default() });
            disk.kill_at(at);
            Db::open_with_env(path, tiny_without_gc(), &unwatched(disk.env())).unwrap().close().unwrap();
            let Some(killed) = disk.take_killed() else { break };
            kills += 1;
            let db = Db::open_with_env(path, tiny_without_gc(), &unwatched(killed.env())).unwrap();
            db.put_with(b"key", b"value", &WriteOptions { sync: true }).unwrap();
            let again = killed.crash_to_durable();
            let db = Db::open_with_env(path, tiny_without_gc(), &unwatched(again.env())).unwrap();
            assert_eq!(
                db.get(b"key").unwrap().as_deref(),
                Some(&b"value"[..]),
                "{path}, killed at change {at}"
            );
        }
        assert!(kills > 5);
    }
}

/// Writes until something fails, and closes. Returns how many writes were acknowledged.
fn write_and_close(disk: &SimDisk, options: &Options) -> tamarack::Result<usize> {
    let db = Db::open_with_env("/db", options.clone(), &unwatched(disk.env()))?;
    let mut acknowledged = 0;
    for number in 0..3 * KEYS {
        let sync = WriteOptions { sync: number % 8 == 7 };
        if db.put_with(format!("{number:03}").as_bytes(), &vec![7; 120 + number * 37 % 250], &sync).is_err() {
            break;
        }
        acknowledged += 1;
    }
    // Where that fails the log has everything nevertheless.
    drop(db.close());
    Ok(acknowledged)
}

/// The system takes for durable what a failed sync has not brought to the disk: the next open must not.
#[test]
fn what_is_recovered_after_a_failed_sync_is_durable_whichever_failed() {
    for log_mode in [LogMode::Auto, LogMode::Plain] {
        let options = Options { log_mode, ..tiny_without_gc() };
        let mut failed = 0;
        for at in 0.. {
            let disk = SimDisk::new(&SimOptions { seed: at, block_bytes: 512, ..SimOptions::default() });
            disk.inject(DiskFault::SyncFails, at, at);
            let acknowledged = write_and_close(&disk, &options).unwrap_or(0);
            if disk.struck() == 0 {
                break;
            }
            failed += 1;
            let (what, killed) = (format!("{log_mode:?}, a sync fails after change {at}"), disk.kill());
            let db = open(&killed, &options, &what);
            let found = content(&db, &what);
            assert!(found.len() >= acknowledged, "{what}: {} of {acknowledged}", found.len());
            for flushed in [false, true] {
                if flushed {
                    db.flush().unwrap();
                }
                let what = format!("{what}, then a loss of power (flushed: {flushed})");
                let later = content(&open(&killed.crash_to_durable(), &options, &what), &what);
                assert!(later == found, "{what}: what was recovered was not durable");
            }
        }
        assert!(failed > 50, "hardly any sync has failed");
    }
}

/// What threads have written before a sync of another one began is durable when that one returns.
#[test]
fn a_sync_covers_what_all_threads_have_acknowledged() {
    const WRITERS: u64 = 3;
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "syncs beside writers");
    for (seed, log_mode) in (0..).zip([LogMode::Auto, LogMode::Plain]) {
        let options = Options { log_mode, ..tiny_without_gc() };
        let disk = SimDisk::new(&SimOptions { seed, block_bytes: 512, ..SimOptions::default() });
        let db = open(&disk, &options, "new");
        let ended = AtomicBool::new(false);
        let (writers, crashes) = thread::scope(|scope| {
            let write = |number| {
                let (db, disk, ended) = (&db, &disk, &ended);
                scope.spawn(move || {
                    let mut writer = Writer::new(number, false);
                    for key in (0..KEYS).cycle() {
                        assert!(writer.put(db, disk, key, false));
                        if ended.load(Ordering::Relaxed) {
                            return writer;
                        }
                    }
                    unreachable!("keys go round")
                })
            };
            let threads: Vec<_> = (0..WRITERS).map(write).collect();
            let mut crashes = Vec::new();
            for sync in 0..25 {
                let least = loop {
                    let least: Vec<_> =
                        (0..WRITERS).map(|number| disk.fact(acknowledged(number)).unwrap_or(0)).collect();
                    if least.iter().all(|least| *least > 5 * sync) {
                        break least;
                    }
                    thread::yield_now();
                };
                db.sync().unwrap();
                crashes.push((least, disk.crash_to_durable()));
            }
            ended.store(true, Ordering::Relaxed);
            (threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>(), crashes)
        });
        drop(db);
        for (number, (least, crashed)) in crashes.into_iter().enumerate() {
            let what = format!("{log_mode:?}, after sync {number}");
            let found = content(&open(&crashed, &options, &what), &what);
            for (writer, least) in writers.iter().zip(least) {
                writer.assert_since(&found, least, &what);
            }
        }
    }
}

/// Limits at which everything happens by itself.
fn busy(random: &mut Random) -> Options {
    Options {
        gc: random.pick(&[GcPolicy::CostBenefit, GcPolicy::Tail]),
        max_space_amplification: random.pick(&[1.05, 1.3]),
        log_mode: random.pick(&[LogMode::Auto, LogMode::Plain]),
        background_threads: random.pick(&[1, 2]),
        inline_value_max: random.pick(&[0, 16, 200]),
        ..tiny()
    }
}

fn step(db: &Db, disk: &SimDisk, writer: &mut Writer, random: &mut Random) {
    let (number, sync) = (random.below(KEYS), random.one_in(10));
    match random.below(40) {
        0 => db.flush().unwrap(),
        1 => db.compact_range(None, None).unwrap(),
        2 => drop(db.gc(random.pick(&[GcGoal::Once, GcGoal::Until(1.0)])).unwrap()),
        3 => {
            db.sync().unwrap();
            writer.note_durable(disk);
        }
        4..12 => assert!(writer.delete(db, disk, number, sync)),
        _ => assert!(writer.put(db, disk, number, sync)),
    }
}

/// Crashes of one database, one after the other; the disk goes on from each.
fn crash_again_and_again(seed: u64) {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("crashes of seed {seed}"));
    let mut random = Random::new(seed);
    let mut disk = SimDisk::new(&SimOptions { seed, block_bytes: 512, ..SimOptions::default() });
    let large = random.one_in(3);
    let mut writer = Writer::new(0, large);
    for round in 0..8 {
        let what = format!("seed {seed}, round {round}");
        let options = busy(&mut random);
        // While the database is opened, or later.
        let changes = random.pick(&[20, 300, 1500]);
        disk.kill_at(disk.changes() + random.below(changes) as u64);
        let db = open(&disk, &options, &what);
        let found = content(&db, &what);
        let left = writer.assert_since(&found, disk.fact(durable(0)).unwrap_or(0), &what);
        writer.forget_after(left);
        // When open returns, what it has recovered is durable.
        writer.note_durable(&disk);
        for _ in 0..random.below(400) {
            step(&db, &disk, &mut writer, &mut random);
        }
        let killed = disk.take_killed().unwrap_or_else(|| disk.kill());
        writer.assert_now(&content(&db, &what), &what);
        drop(db);
        disk = if random.one_in(3) { killed } else { killed.crash(random.number()) };
    }
}

/// Whoever creates a database may lose power at any time; or be killed before its name is durable, and whoever opens it
/// then may lose power.
#[test]
fn a_database_that_was_hardly_created_can_always_be_opened() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "databases that were hardly created");
    let options = tiny_without_gc();
    let mut lives = 0;
    for change in 0.. {
        let disk = SimDisk::new(&SimOptions { seed: 4, block_bytes: 512, ..SimOptions::default() });
        disk.kill_at(change);
        drop(open(&disk, &options, "new"));
        let Some(killed) = disk.take_killed() else { break };
        for seed in 0..32 {
            drop(open(&killed.crash(seed), &options, &format!("crash {seed} at change {change}")));
            lives += 1;
        }
        for later in 0.. {
            let disk = killed.kill();
            disk.kill_at(disk.changes() + later);
            drop(open(&disk, &options, "killed"));
            let Some(killed) = disk.take_killed() else { break };
            for seed in 0..8 {
                let what = format!("killed at change {change} and {later}, crash {seed}");
                drop(open(&killed.crash(seed), &options, &what));
                lives += 1;
            }
        }
    }
    assert!(lives > 500, "{lives}");
}

#[test]
fn crashes_again_and_again_leave_a_prefix() {
    let base = number_from_environment("TAMARACK_SEED").unwrap_or(0);
    let seeds = number_from_environment("TAMARACK_SEEDS").unwrap_or(250);
    (base..base + seeds).for_each(crash_again_and_again);
}
