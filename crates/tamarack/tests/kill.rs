//! A writing process is killed at random moments, again and again on the same database: while it writes, rolls,
//! flushes and compacts, and while it recovers from the kill before.
//!
//! The test starts itself as the process to kill. That one writes numbered batches from two threads and tells of
//! every batch that was acknowledged. What a batch does follows from its number, so the state that must be found
//! follows from how many batches of each thread are there: at least all that were acknowledged.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests prepare and inspect the real world"
)]

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use common::garbage::assert_no_orphans;
use common::process::{Evidence, this_program};
use common::{PATIENCE_SECONDS, Random, Watchdog, assert_clean, content, tiny};
use tamarack::{Codec, Db, GcGoal, GcPolicy, LogMode, Options, WriteBatch, WriteOptions};

const CYCLES: u64 = 500;
const DIRECTORY: &str = "TAMARACK_KILL_DIRECTORY";
const SEED: &str = "TAMARACK_KILL_SEED";
const THREADS: usize = 2;

fn options(seed: u64) -> Options {
    let mut random = Random::new(seed);
    Options {
        log_mode: random.pick(&[LogMode::Auto, LogMode::Auto, LogMode::Plain]),
        memtable_bytes: random.pick(&[4 << 10, 16 << 10, 256 << 10]),
        segment_bytes_max: random.pick(&[4 << 10, 16 << 10]),
        value_codec: random.pick(&[Codec::None, Codec::Lz4]),
        background_threads: random.pick(&[1, 2]),
        // Something is collected all the time, mostly.
        max_space_amplification: random.pick(&[1.05, 1.05, 1.3]),
        gc: random.pick(&[GcPolicy::CostBenefit, GcPolicy::CostBenefit, GcPolicy::Tail, GcPolicy::Off]),
        ..tiny()
    }
}

/// What batch `number` of `thread` does: keys, and values or deletions.
fn operations(thread: usize, number: u64) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut random = Random::new(number << 1 | thread as u64);
    let count = if random.one_in(2) { 1 } else { 1 + random.below(8) };
    (0..count)
        .map(|_| {
            let key = format!("{thread}/key{:03}", random.below(150)).into_bytes();
            let len = match random.below(40) {
                0 => random.below(20_000),
                1..=9 => random.below(2000),
                _ => random.below(200),
            };
            (key, (!random.one_in(4)).then(|| random.bytes(len)))
        })
        .collect()
}

fn last_key(thread: usize) -> Vec<u8> {
    format!("{thread}/last").into_bytes()
}

/// The number of the last batch, and how many of the other thread's had been acknowledged when it began.
fn parse_last(value: Option<&Vec<u8>>) -> (u64, u64) {
    let Some(value) = value else { return (0, 0) };
    let (number, other) = value.split_at(8);
    (u64::from_le_bytes(number.try_into().unwrap()), u64::from_le_bytes(other.try_into().unwrap()))
}

/// The process to be killed. Does nothing when it is run as an ordinary test.
#[test]
fn the_process_to_be_killed() {
    let (Ok(directory), Ok(seed)) = (std::env::var(DIRECTORY), std::env::var(SEED)) else { return };
    let seed = seed.parse().unwrap();
    let db = Db::open(directory, options(seed)).unwrap();
    eprintln!("open 0");
    let acknowledged = [const { AtomicU64::new(0) }; THREADS];
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, acknowledged) = (&db, &acknowledged);
            scope.spawn(move || write_for_ever(db, thread, seed, acknowledged));
        }
    });
}

fn write_for_ever(db: &Db, thread: usize, seed: u64, acknowledged: &[AtomicU64; THREADS]) {
    let mut random = Random::new(seed ^ thread as u64);
    let (mut number, _) = parse_last(db.get(&last_key(thread)).unwrap().as_ref());
    loop {
        number += 1;
        let other = acknowledged[1 - thread].load(Ordering::SeqCst);
        let mut batch = WriteBatch::new();
        for (key, value) in operations(thread, number) {
            match value {
                Some(value) => batch.put(&key, &value).unwrap(),
                None => batch.delete(&key).unwrap(),
            }
        }
        batch.put(&last_key(thread), &[number.to_le_bytes(), other.to_le_bytes()].concat()).unwrap();
        db.write(&batch, &WriteOptions { sync: random.one_in(20) }).unwrap();
        acknowledged[thread].store(number, Ordering::SeqCst);
        eprintln!("{thread} {number}");
        if random.one_in(100) {
            db.gc(random.pick(&[GcGoal::Once, GcGoal::Until(1.0)])).unwrap();
        } else if random.one_in(300) {
            db.flush().unwrap();
        } else if random.one_in(1000) {
            db.compact_range(None, None).unwrap();
        }
    }
}

/// A running process, and what it says.
struct Victim {
    child: Child,
    words: Receiver<(String, u64)>,
    listener: JoinHandle<String>,
}

impl Victim {
    fn start(directory: &Path, seed: u64) -> Self {
        let mut child = this_program("the_process_to_be_killed")
            .env(DIRECTORY, directory)
            .env(SEED, seed.to_string())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let (said, words) = channel();
        let listener = std::thread::spawn(move || {
            let mut unknown = String::new();
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 0 {
                let word = line.strip_suffix('\n').and_then(|line| line.split_once(' '));
                match word.and_then(|(name, number)| Some((name.to_owned(), number.parse().ok()?))) {
                    // The parent may have stopped listening.
                    Some(word) => drop(said.send(word)),
                    None => unknown.push_str(&line),
                }
                line.clear();
            }
            unknown
        });
        Self { child, words, listener }
    }

    /// Kills it, and notes what it had acknowledged.
    fn kill(mut self, acknowledged: &mut [u64; THREADS]) {
        let ended = self.child.try_wait().unwrap();
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        let said = self.listener.join().unwrap();
        assert!(ended.is_none(), "the process ended by itself with {status}: {said}");
        self.words.try_iter().for_each(|word| note(&word, acknowledged));
    }
}

/// Notes what a process said: which thread's batch it has acknowledged, if any.
fn note((name, number): &(String, u64), acknowledged: &mut [u64; THREADS]) {
    if let Ok(thread) = name.parse::<usize>() {
        acknowledged[thread] = acknowledged[thread].max(*number);
    }
}

/// What the batches of one thread so far have made of its keys.
#[derive(Default)]
struct History {
    number: u64,
    state: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl History {
    fn advance(&mut self, thread: usize, number: u64) {
        assert!(number >= self.number, "{} batches of {thread} were there, now {number}", self.number);
        while self.number < number {
            self.number += 1;
            for (key, value) in operations(thread, self.number) {
                match value {
                    Some(value) => self.state.insert(key, value),
                    None => self.state.remove(&key),
                };
            }
        }
    }
}

fn verify(db: &Db, histories: &mut [History; THREADS], acknowledged: &[u64; THREADS]) {
    let mut found = content(db);
    let lasts: Vec<_> =
        (0..THREADS).map(|thread| parse_last(found.remove(&last_key(thread)).as_ref())).collect();
    for (thread, history) in histories.iter_mut().enumerate() {
        let (number, other) = lasts[thread];
        let wanted = acknowledged[thread];
        assert!(number >= wanted, "batch {wanted} of {thread} was acknowledged, the last found is {number}");
        assert!(lasts[1 - thread].0 >= other, "batch {number} of {thread} is there, an earlier one is not");
        history.advance(thread, number);
        let prefix = format!("{thread}/").into_bytes();
        let mine: BTreeMap<_, _> = found.iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
        let expected: BTreeMap<_, _> = history.state.iter().collect();
        assert!(mine == expected, "the state of {thread} is not that of its first {number} batches");
        for (key, value) in &history.state {
            assert!(db.get(key).unwrap().as_ref() == Some(value), "get of {key:?}");
        }
    }
    assert_clean(db);
}

fn torture(first_seed: u64, cycles: u64) {
    let directory = Evidence::new();
    let path = directory.path("db");
    let mut histories = [History::default(), History::default()];
    let mut acknowledged = [0; THREADS];
    let mut moved = false;
    for seed in first_seed..first_seed + cycles {
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("cycle {seed} of the kill test"));
        let mut random = Random::new(seed);
        let victim = Victim::start(&path, seed);
        if random.one_in(3) {
            // Into the start of the process, which recovers unless the parent has just done that.
            std::thread::sleep(Duration::from_micros(random.number() % 20_000));
        } else {
            // That it opens, and some batches; then whatever is next.
            let heard = victim.words.iter().take(1 + random.below(400));
            heard.for_each(|word| note(&word, &mut acknowledged));
            std::thread::sleep(Duration::from_micros(random.number() % 5_000));
        }
        victim.kill(&mut acknowledged);
        if random.one_in(2) || seed + 1 == first_seed + cycles {
            let db = Db::open(&path, options(seed)).unwrap();
            assert_no_orphans(&db, &path, &format!("cycle {seed}"));
            moved |= db.stats().moved_segments > 0;
            verify(&db, &mut histories, &acknowledged);
            db.close().unwrap();
        }
    }
    let written: u64 = histories.iter().map(|history| history.number).sum();
    assert!(written > cycles, "only {written} batches in {cycles} cycles: nothing was tested");
    assert!(moved, "nothing was collected in {cycles} cycles");
}

#[test]
fn every_acknowledged_batch_survives_kills_and_no_batch_is_torn() {
    let base = common::number_from_environment("TAMARACK_SEED").unwrap_or(1000);
    let cycles = common::number_from_environment("TAMARACK_SEEDS").unwrap_or(CYCLES);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| torture(base, cycles / 2));
        torture(base + cycles, cycles / 2);
        other.join().unwrap();
    });
}
