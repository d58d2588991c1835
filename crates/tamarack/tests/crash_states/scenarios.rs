//! What is done before and while the power may fail. Limits are tiny, so that a few writes fill a segment or a memtable.

use tamarack::testing::{CrashStates, SimDisk, SimOptions};
use tamarack::{LogMode, Options};

use super::driver::{Driver, Operation, Recording};
use super::explore::COMBINATIONS_MAX;
use crate::common::history::History;
use crate::common::{Random, tiny_without_gc};

/// Something that is done in the same way every time.
pub struct Scenario {
    pub name: String,
    pub options: Options,
    seed: u64,
    act: Act,
}

/// Steps of a random scenario in which the power may fail.
const STEPS: usize = 10;
/// Crashes that are recovered from.
const RECOVERIES: usize = 12;

type Act = Box<dyn Fn(&mut Driver) + Sync>;

impl Scenario {
    fn new(name: &str, options: Options, act: impl Fn(&mut Driver) + Sync + 'static) -> Self {
        let seed =
            name.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(257).wrapping_add(u64::from(byte)));
        Self { name: name.to_owned(), options, seed, act: Box::new(act) }
    }

    /// Runs it, and keeps all moments.
    pub fn record(&self) -> Recording {
        let disk = SimDisk::new(&SimOptions { seed: self.seed, block_bytes: 512, ..SimOptions::default() });
        let mut driver = Driver::new(disk, &self.options, History::new());
        (self.act)(&mut driver);
        driver.end()
    }
}

fn plain() -> Options {
    Options { log_mode: LogMode::Plain, ..tiny_without_gc() }
}

/// Room for everything in one segment and one memtable.
fn roomy() -> Options {
    Options {
        segment_bytes_max: 32 << 10,
        memtable_bytes: 32 << 10,
        recovery_log_max: 4 << 20,
        ..tiny_without_gc()
    }
}

/// The scenarios that are the same in every run.
pub fn fixed() -> Vec<Scenario> {
    let mut all = vec![
        Scenario::new("create", tiny_without_gc(), |driver| {
            driver.record();
            driver.open();
            driver.put(0, 100, false);
            driver.close();
        }),
        Scenario::new("put", roomy(), puts),
        Scenario::new("put, plain writes", Options { log_mode: LogMode::Plain, ..roomy() }, puts),
        Scenario::new("delete", roomy(), deletes),
        Scenario::new("batch", roomy(), batches),
        Scenario::new("batch, plain writes", Options { log_mode: LogMode::Plain, ..roomy() }, batches),
        Scenario::new("synced and not", roomy(), sync_mix),
        Scenario::new("flush", tiny_without_gc(), flushes),
        Scenario::new("compaction", tiny_without_gc(), compactions),
        Scenario::new("garbage collection", tiny_without_gc(), collections),
        Scenario::new("collection under writes", plain(), collections_under_writes),
        Scenario::new("hole punching", Options { segment_bytes_max: 512 << 10, ..roomy() }, punching),
        Scenario::new("manifest rotation", Options { memtable_bytes: 4 << 10, ..roomy() }, rotation),
        Scenario::new("segment roll", tiny_without_gc(), rolls),
        Scenario::new("segment roll, plain writes", plain(), rolls),
        Scenario::new("checkpoint", tiny_without_gc(), checkpoints),
        Scenario::new("close", tiny_without_gc(), closes),
    ];
    all.extend((0..RECOVERIES).map(|part| recovery("recovery", 1, part)));
    all.extend((0..RECOVERIES).map(|part| recovery("recovery of a recovery", 2, part)));
    all
}

fn puts(driver: &mut Driver) {
    driver.open();
    driver.record();
    for round in 0..4 {
        for number in 0..6 {
            driver.put(number, 150 + 170 * (number + round) % 800, false);
        }
        driver.sync();
    }
}

fn deletes(driver: &mut Driver) {
    driver.open();
    (0..8).for_each(|key| driver.put(key, 300, false));
    driver.flush();
    driver.record();
    for round in 0..4 {
        driver.delete(round, false);
        driver.put(round + 1, 450, false);
        driver.delete(round + 1, false);
        driver.delete(round + 2, round % 2 == 1);
        driver.put(round, 700, false);
        driver.sync();
    }
}

fn batches(driver: &mut Driver) {
    driver.open();
    driver.record();
    for round in 0..3 {
        driver.batch(&[(0, Some(500)), (1, Some(700)), (2, Some(30))], false);
        driver.batch(&[(3, Some(900)), (0, None), (4, Some(10 + round))], false);
        driver.batch(&[(5, Some(600)), (3, None)], round == 1);
        driver.sync();
    }
}

fn sync_mix(driver: &mut Driver) {
    driver.open();
    driver.record();
    for round in 0..30 {
        driver.put(round % 7, 100 + 137 * round % 900, round % 3 == 2);
        if round % 11 == 10 {
            driver.sync();
        }
    }
}

fn flushes(driver: &mut Driver) {
    driver.open();
    driver.record();
    for round in 0..6 {
        for number in 0..3 {
            driver.put((round + number) % 8, 200 + 230 * number, false);
        }
        driver.delete(round, false);
        driver.flush();
    }
}

fn compactions(driver: &mut Driver) {
    driver.open();
    for round in 0..3 {
        (0..8).for_each(|key| driver.put(key, 100 + 90 * round, false));
        driver.delete(round, false);
        driver.flush();
    }
    driver.record();
    driver.compact();
    driver.put(0, 600, false);
    driver.put(1, 12, false);
    driver.compact();
    driver.delete(2, false);
    driver.flush();
    driver.put(3, 900, false);
    driver.compact();
}

fn half_dead(driver: &mut Driver) {
    driver.open();
    (0..12).for_each(|key| driver.put(key, 700, false));
    driver.flush();
    (0..12).step_by(2).for_each(|key| driver.put(key, 650, false));
    driver.delete(3, false);
    driver.flush();
    driver.compact();
}

fn collections(driver: &mut Driver) {
    half_dead(driver);
    driver.record();
    (0..3).for_each(|_| {
        driver.gc();
    });
    driver.compact();
    driver.gc();
}

fn collections_under_writes(driver: &mut Driver) {
    half_dead(driver);
    driver.record();
    for round in 0..4 {
        driver.put(round, 500, false);
        driver.put(round + 4, 800, false);
        driver.gc();
        driver.delete(round + 1, false);
        if round % 2 == 1 {
            driver.flush();
        }
    }
    driver.compact();
}

fn punching(driver: &mut Driver) {
    driver.open();
    (0..6).for_each(|key| driver.put(key, 60 << 10, false));
    driver.flush();
    // Its segment is sealed then.
    driver.close();
    driver.open();
    driver.batch(&[(1, Some(100)), (2, None)], false);
    driver.flush();
    driver.compact();
    driver.record();
    let punched: u64 = (0..3).map(|_| driver.gc().punched).sum();
    assert!(punched > 0, "nothing was given back");
    driver.put(1, 300, false);
    driver.gc();
    driver.close();
    driver.open();
}

fn rotation(driver: &mut Driver) {
    driver.open();
    let edit = |driver: &mut Driver, round: usize| {
        driver.put(round % 8, 200, false);
        driver.flush();
    };
    (0..14).for_each(|round| edit(driver, round));
    driver.record();
    (0..30).for_each(|round| edit(driver, round));
}

fn rolls(driver: &mut Driver) {
    driver.open();
    driver.record();
    for round in 0..24 {
        driver.put(round % 9, 500 + 71 * round % 500, round % 8 == 7);
    }
    driver.batch(&[(0, Some(3000)), (1, Some(3000)), (2, None)], true);
}

fn checkpoints(driver: &mut Driver) {
    driver.open();
    (0..12).for_each(|key| driver.put(key, 500, false));
    driver.flush();
    driver.put(0, 300, false);
    driver.put(1, 300, false);
    driver.record();
    driver.checkpoint();
    driver.put(2, 400, false);
    driver.delete(0, false);
    driver.flush();
    driver.compact();
    driver.gc();
}

fn closes(driver: &mut Driver) {
    driver.open();
    driver.record();
    for round in 0..5 {
        driver.put(round, 300, false);
        driver.put(round + 1, 800, false);
        driver.delete(round, false);
        driver.close();
        driver.open();
    }
}

/// Opens what a crash has left, `depth` times: each in the midst of the opening before. `part` of all parts says where the
/// crashes are.
fn recovery(name: &str, depth: usize, part: usize) -> Scenario {
    Scenario::new(&format!("{name}-{part}"), tiny_without_gc(), move |driver| {
        let mut recording = {
            driver.open();
            driver.put(0, 400, true);
            driver.record();
            (1..9).for_each(|key| driver.put(key, 150 + 100 * key, false));
            driver.delete(2, false);
            driver.recording()
        };
        for level in 0..depth {
            let next = crashed(&recording, part + level, &tiny_without_gc());
            let last = std::mem::replace(driver, next);
            drop(last.end());
            driver.record();
            driver.open();
            driver.put(3, 333, false);
            if level + 1 < depth {
                recording = driver.recording();
            }
        }
        driver.put(4, 444, false);
        driver.close();
    })
}

/// A driver of the disk that a crash has left.
fn crashed(recording: &Recording, part: usize, options: &Options) -> Driver {
    let index = (recording.moments.len() - 1) * (part % RECOVERIES + 1) / RECOVERIES;
    let moment = &recording.moments[index];
    let states = CrashStates::new(COMBINATIONS_MAX).all(moment);
    let states = states.unwrap_or_else(|| CrashStates::new(COMBINATIONS_MAX).sampled(moment, 0, 200));
    let state = &states[states.len() * (part % 4 + 1) / 5];
    Driver::new(state.disk(moment), options, recording.history.clone())
}

/// Whatever belongs to `seed`. Garbage is collected when it says so: in the background it would depend on chance when a
/// collection looks at what is dead.
pub fn random(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let options = Options {
        log_mode: random.pick(&[LogMode::Auto, LogMode::Auto, LogMode::Plain]),
        segment_bytes_max: random.pick(&[4 << 10, 4 << 10, 8 << 10]),
        inline_value_max: random.pick(&[0, 16, 200]),
        ..tiny_without_gc()
    };
    Scenario::new(&format!("random-{seed}"), options, move |driver| {
        let mut random = random.clone();
        driver.open();
        for _ in 0..random.below(30) {
            step(driver, &mut random);
        }
        driver.record();
        for _ in 0..STEPS {
            step(driver, &mut random);
        }
    })
}

fn step(driver: &mut Driver, random: &mut Random) {
    let mut operation = || -> Operation {
        let len = random.pick(&[10, 100, 300, 600, 900]) + random.below(100);
        (random.below(10), (!random.one_in(4)).then_some(len))
    };
    let (first, second, third) = (operation(), operation(), operation());
    let sync = random.one_in(7);
    match random.below(26) {
        0..14 => driver.batch(&[first], sync),
        14..18 => driver.batch(&[first, second, third], sync),
        18 => driver.sync(),
        19 | 20 => driver.flush(),
        21 => driver.compact(),
        22..25 => {
            driver.gc();
        }
        _ => {
            driver.close();
            driver.open();
        }
    }
}
