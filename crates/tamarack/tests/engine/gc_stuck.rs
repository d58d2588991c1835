//! Collections that cannot help: what may pass is tried again without anybody's doing, and as long as nothing is freed
//! writers are refused before the bound is exceeded, with the reason, while deletions go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::garbage::{Content, Gate, assert_holds, delete, fill, key, value};
use crate::common::place::Place;
use crate::common::time::unwatched_env;
use crate::common::{PATIENCE_SECONDS, Random, Watchdog, fast_directory, file_names, tiny};
use tamarack::testing::{Call, Clock, EIO, Env, Fault};
use tamarack::{CheckLevel, Db, Error, ErrorKind, GcGoal, Options, WriteBatch, WriteOptions};

/// How often the engine looks.
const TICK: Duration = Duration::from_millis(100);
const SEGMENT_BYTES: u64 = 256 << 10;
/// Of the bound's slack, in segments.
const SLACK_SEGMENTS: u64 = 16;
/// What the slowest writer may write between two looks, which is for segments of 32 MiB, for such segments. The clock is moved by
/// hand, so that nobody is slowed down.
const SLOWEST: usize = (4_000_000 / 10 * SEGMENT_BYTES / (32 << 20)) as usize;

fn options() -> Options {
    Options {
        max_space_amplification: 1.1,
        segment_bytes_max: SEGMENT_BYTES,
        recovery_log_max: 4 << 20,
        memtable_bytes: 256 << 10,
        background_threads: 1,
        value_runs_max: 0,
        ..tiny()
    }
}

/// How many keys most of these write.
const KEYS: usize = 1200;

/// Values of some KiB: few make much.
fn large(number: usize, round: usize) -> Vec<u8> {
    value(number, round).repeat(20)
}

fn put(db: &Db, model: &mut Content, number: usize, round: usize) -> tamarack::Result<()> {
    db.put(&key(number), &large(number, round))?;
    model.insert(key(number), large(number, round));
    Ok(())
}

fn load(db: &Db, keys: usize) -> Content {
    let mut model = Content::new();
    (0..keys).for_each(|number| put(db, &mut model, number, 0).unwrap());
    db.flush().unwrap();
    db.wait_idle().unwrap();
    model
}

/// Overwrites some of `numbers` after the other, as slowly as writers are slowed down, until that is refused; the bound is never
/// exceeded by more than what is written until then, and the segment that is prepared.
fn overwrite_until_refused(place: &Place, db: &Db, model: &mut Content, numbers: &[usize]) -> Error {
    let mut random = Random::new(1);
    let mut numbers = (1..).map(|round| (random.pick(numbers), round));
    for _ in 0..20_000 {
        let stats = db.stats();
        assert!(
            stats.disk_bytes <= stats.disk_bytes_max + stats.leaving_bytes + 2 * SEGMENT_BYTES,
            "{stats:?}"
        );
        let is_near = stats.disk_bytes + SLACK_SEGMENTS * SEGMENT_BYTES / 8 > stats.disk_bytes_max;
        let mut left = if is_near { SLOWEST } else { 10 * SLOWEST };
        while let Some((number, round)) = (left > 0).then(|| numbers.next()).flatten() {
            if let Err(error) = put(db, model, number, round) {
                return error;
            }
            left = left.saturating_sub(large(number, round).len());
        }
        place.time.pass(TICK);
        // A tenth of a second is long for such jobs.
        while db.stats().running_jobs > db.stats().running_collections.len() as u64 {
            std::thread::yield_now();
        }
    }
    panic!("nobody is refused: {:?}", db.stats());
}

/// Lets time pass until the database has been at rest for a look.
fn rest(place: &Place, db: &Db) {
    for _ in 0..3 {
        place.time.pass(Duration::from_secs(1));
        db.wait_idle().unwrap();
    }
}

/// What is not refused is slowed down, and for want of space alone: no memtable and no table waits for anything.
fn assert_deletions_are_slowed_down(place: &Place, db: &Db) {
    db.flush().unwrap();
    while db.stats().running_jobs > 0 {
        std::thread::yield_now();
    }
    let stats = db.stats();
    assert!(stats.immutable_memtables == 0 && stats.levels[0].tables < 10, "{stats:?}");
    // At the slowest pace these take 37 ms; a writer sleeps from six on.
    let mut batch = WriteBatch::new();
    (0..5000).for_each(|_| batch.delete(b"no key").unwrap());
    let before = place.time.slept();
    db.write(&batch, &WriteOptions::default()).unwrap();
    assert!(place.time.slept() > before, "{stats:?}");
}

fn assert_accepts(place: &Place, db: &Db, model: &mut Content) {
    rest(place, db);
    let stats = db.stats();
    assert!(stats.collected_segments > 0 && stats.disk_bytes <= stats.disk_bytes_max, "{stats:?}");
    fill(db, model, 0..10, 99);
    assert_holds(db, model, "accepts");
}

#[test]
fn collections_that_failed_for_a_moment_are_tried_again_by_themselves() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a moment's failure");
    let place = Place::new(options());
    let db = place.open();
    db.pause_gc();
    let mut model = load(&db, KEYS);
    for round in 1..4 {
        // Some of each segment stay alive.
        (0..KEYS)
            .filter(|number| number % 7 > 0)
            .for_each(|number| put(&db, &mut model, number, round).unwrap());
    }
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    place.faults.inject(Fault::on(Call::Create).path_ending(".cold").for_ever().errno(EIO));
    db.resume_gc().unwrap();
    // Nobody calls anything; it is only looked.
    let begin = place.time.now();
    let pass_until = |is_over: &dyn Fn() -> bool| {
        while !is_over() {
            place.time.pass(TICK);
            std::thread::yield_now();
            assert!(place.time.now() - begin < Duration::from_secs(100_000), "{:?}", db.stats());
        }
        place.time.now() - begin
    };
    let failing = pass_until(&|| place.faults.triggered() == 3);
    assert!(failing >= Duration::from_secs(1 + 2), "more and more seldom: {failing:?}");
    place.faults.heal();
    let healed = pass_until(&|| db.stats().collected_segments > 0);
    assert!(healed - failing >= Duration::from_secs(4) - TICK, "{failing:?}, {healed:?}");
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert!(stats.collected_segments > 0 && stats.disk_bytes <= stats.disk_bytes_max, "{stats:?}");
    let told = stats.warnings.iter().filter(|warning| warning.contains("could not be collected")).count();
    assert_eq!(told, 1, "once for all of a row: {:?}", stats.warnings);
    assert_holds(&db, &model, "tried again");
}

#[test]
fn writers_are_refused_while_collections_fail_and_then_accepted_again() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "collections that fail");
    let place = Place::new(options());
    let db = place.open();
    let mut model = load(&db, KEYS);
    place.faults.inject(Fault::on(Call::Create).path_ending(".cold").for_ever().errno(EIO));
    let all: Vec<_> = (0..KEYS).collect();
    let error = overwrite_until_refused(&place, &db, &mut model, &all);
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    for part in ["garbage collection frees nothing", ".cold", "remove the cause"] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    delete(&db, &mut model, 0..10);
    assert_deletions_are_slowed_down(&place, &db);
    assert_holds(&db, &model, "refused");
    place.faults.heal();
    assert_accepts(&place, &db, &mut model);
}

#[test]
fn writers_are_refused_once_all_garbage_is_in_damaged_segments() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "damage everywhere");
    let place = Place::new(options());
    let db = place.open();
    let keys = 5 * KEYS;
    let mut model = load(&db, keys);
    db.close().unwrap();
    let stays = |number: usize| number % 5 == 1;
    let mut damaged = 0;
    for name in file_names(&place.path()).into_iter().filter(|name| name.ends_with(".vlog")) {
        let path = place.path().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        // A record that stays alive.
        let found = bytes.windows(8).position(|window| {
            let number =
                window.strip_prefix(b"key").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            number.is_some_and(stays)
        });
        if let Some(at) = found {
            bytes[at + 100] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert!(damaged > 2 * SLACK_SEGMENTS, "{damaged}");
    let db = place.open();
    let others: Vec<_> = (0..keys).filter(|&number| !stays(number)).collect();
    let error = overwrite_until_refused(&place, &db, &mut model, &others);
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.message().contains("damaged segments are left alone"), "{error}");
    let stats = db.stats();
    assert!(!stats.quarantined_segments.is_empty());
    assert_eq!(db.check(CheckLevel::Structure).quarantined_segments, stats.quarantined_segments);
    for number in others {
        assert_eq!(db.get(&key(number)).unwrap().as_ref(), model.get(&key(number)));
    }
}

#[test]
fn writers_are_refused_while_collections_may_copy_too_little() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "collections that are too slow");
    let place = Place::new(Options { gc_bytes_per_second: 1000, ..options() });
    let db = place.open();
    let mut model = load(&db, KEYS);
    // It runs, and takes long.
    let gate = Gate::at(&place.faults, Call::Write, ".cold");
    let all: Vec<_> = (0..KEYS).collect();
    let error = overwrite_until_refused(&place, &db, &mut model, &all);
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.message().contains("1000 bytes a second; raise gc_bytes_per_second"), "{error}");
    db.set_gc_bytes_per_second(0);
    drop(gate);
    assert_accepts(&place, &db, &mut model);
}

/// The clock of a machine, which notes that somebody has slept.
struct NotedClock {
    clock: Arc<dyn Clock>,
    slept: AtomicBool,
}

impl Clock for NotedClock {
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn wall(&self) -> Duration {
        self.clock.wall()
    }

    fn sleep(&self, duration: Duration) {
        self.slept.store(true, Ordering::Relaxed);
        self.clock.sleep(duration);
    }
}

#[test]
fn a_collection_that_waits_for_its_pace_goes_on_at_the_next_one() {
    let _watchdog = Watchdog::new(PATIENCE_SECONDS, "a collection at its pace");
    let (directory, env) = (fast_directory(), unwatched_env());
    let clock = Arc::new(NotedClock { clock: env.clock, slept: AtomicBool::new(false) });
    let env = Env { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..env };
    let options = Options { max_space_amplification: 1000.0, gc_bytes_per_second: 1, ..options() };
    let db = Db::open_with_env(directory.path().join("db"), options, &env).unwrap();
    let mut model = load(&db, KEYS);
    (0..KEYS).step_by(2).for_each(|number| put(&db, &mut model, number, 1).unwrap());
    db.compact_range(None, None).unwrap();
    db.wait_idle().unwrap();
    clock.slept.store(false, Ordering::Relaxed);
    std::thread::scope(|scope| {
        let collecting = scope.spawn(|| db.gc(GcGoal::Until(1.2)).unwrap());
        while !clock.slept.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        // It would sleep for hours.
        db.set_gc_bytes_per_second(0);
        assert!(collecting.join().unwrap().bytes_after > 0);
    });
    assert_holds(&db, &model, "collected at two paces");
}

/// A clock that only sleeping moves on.
#[derive(Default)]
struct SleepersClock(Mutex<Duration>);

impl Clock for SleepersClock {
    fn monotonic(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn wall(&self) -> Duration {
        self.monotonic()
    }

    fn sleep(&self, duration: Duration) {
        *self.0.lock().unwrap() += duration;
    }
}

#[test]
fn copies_take_as_long_as_the_pace_that_was_asked_for() {
    let rate = 1 << 20;
    let directory = fast_directory();
    let clock = Arc::new(SleepersClock::default());
    let env = Env { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..unwatched_env() };
    let options = Options { max_space_amplification: 1000.0, gc_bytes_per_second: rate, ..options() };
    let db = Db::open_with_env(directory.path().join("db"), options, &env).unwrap();
    let mut model = load(&db, 5 * KEYS);
    // Others each time, so that half of each segment stays alive.
    let mut overwrite = |round: usize| {
        let chosen = (0..5 * KEYS).filter(|number| (number >> round).is_multiple_of(2));
        chosen.for_each(|number| put(&db, &mut model, number, round).unwrap());
        db.compact_range(None, None).unwrap();
        db.wait_idle().unwrap();
    };
    overwrite(1);
    let spent = |what: &str, rate: Option<u64>| {
        let before = clock.monotonic();
        let done = db.gc(GcGoal::Until(1.2)).unwrap().bytes_after;
        let slept = (clock.monotonic() - before).as_secs_f64();
        let expected = rate.map_or(0.0, |rate| done as f64 / rate as f64);
        assert!(done > 4 << 20, "{what}: {done} bytes");
        assert!((slept - expected).abs() <= 0.05 * expected, "{what}: {slept} s for {done} bytes");
    };
    spent("a mebibyte a second", Some(rate));
    overwrite(2);
    db.set_gc_bytes_per_second(10 * rate);
    spent("ten", Some(10 * rate));
    overwrite(3);
    db.set_gc_bytes_per_second(0);
    spent("no limit", None);
    assert_holds(&db, &model, "collected");
}
