//! Which writes are slow, and what their thread did meanwhile, as the kernel counts it: it slept, another thread had its processor, or it took
//! faults of pages.
//!
//! Loads two million values of 1 KiB into a database in DIRECTORY, which must not be there, in a random order, and overwrites four million, as
//! fast as they go. The kernel is asked after each write that took long; what it counts is what happened since it was asked before, of
//! which most is of that write. Run with `cargo run --release -p tamarack-bench --example slow_writes DIRECTORY`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program that measures has files and clocks of its own"
)]

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use tamarack::{Db, Options};
use tamarack_bench::Random;

const KEYS: u64 = 2_000_000;
const OVERWRITES: u64 = 4_000_000;
const VALUE_BYTES: usize = 1024;
/// Values are parts of so many bytes that cannot be compressed.
const BLOCK_BYTES: usize = 4 << 20;
/// The kernel is asked after writes that took at least so many microseconds, and after each so many writes.
const SLOW_MICROS: f64 = 10.0;
const WRITES_PER_LOOK: u64 = 4096;
/// Where classes of slow writes begin, in microseconds.
const CLASSES: [f64; 8] = [SLOW_MICROS, 15.0, 50.0, 300.0, 1000.0, 1900.0, 5000.0, f64::INFINITY];

fn main() -> Result<(), Box<dyn Error>> {
    let directory =
        PathBuf::from(std::env::args_os().nth(1).ok_or("which directory? slow_writes DIRECTORY")?);
    let db = Db::open(&directory, Options { error_if_exists: true, ..Options::default() })?;
    let mut random = Random::new(1);
    let block: Vec<u8> = (0..BLOCK_BYTES).map(|_| random.below(256) as u8).collect();
    let (mut load, mut overwrites) = (Slow::new()?, Slow::new()?);
    for number in 0..KEYS {
        // Has no factor in common with the number of keys: each comes once.
        load.time(|| put(&db, number * 1_654_435_769 % KEYS, &block, &mut random))?;
    }
    load.print("load");
    for _ in 0..OVERWRITES {
        let key = random.below(KEYS);
        overwrites.time(|| put(&db, key, &block, &mut random))?;
    }
    overwrites.print("overwrites");
    Ok(db.close()?)
}

fn put(db: &Db, key: u64, block: &[u8], random: &mut Random) -> tamarack::Result<()> {
    let start = random.below((BLOCK_BYTES - VALUE_BYTES) as u64) as usize;
    // Not `format!`: a writer that allocates waits for the threads in the background that free what it has allocated.
    let mut digits = [b'0'; 16];
    let mut left = key;
    for digit in digits.iter_mut().rev() {
        *digit += (left % 10) as u8;
        left /= 10;
    }
    db.put(&digits, &block[start..start + VALUE_BYTES])
}

/// What the kernel counts of this thread.
#[derive(Clone, Copy, Default)]
struct Counts {
    sleeps: u64,
    preemptions: u64,
    faults: u64,
}

impl Counts {
    fn now() -> Result<Self, Box<dyn Error>> {
        let status = fs::read_to_string("/proc/thread-self/status")?;
        let field = |name: &str| -> Result<u64, Box<dyn Error>> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
            Ok(line.trim().parse()?)
        };
        let stat = fs::read_to_string("/proc/thread-self/stat")?;
        // Behind the name, which ends with the last parenthesis: state, six numbers, and then the faults.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let fault =
            |at: usize| -> Result<u64, Box<dyn Error>> { Ok(fields.get(at).ok_or("no faults")?.parse()?) };
        Ok(Self {
            sleeps: field("voluntary_ctxt_switches:")?,
            preemptions: field("nonvoluntary_ctxt_switches:")?,
            faults: fault(7)? + fault(9)?,
        })
    }
}

/// The writes of one kind.
struct Slow {
    begin: Instant,
    micros: Vec<f64>,
    /// Of those that were slow, how long they took, and what their thread did.
    slow: Vec<(f64, Counts)>,
    last: Counts,
}

impl Slow {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self { begin: Instant::now(), micros: Vec::new(), slow: Vec::new(), last: Counts::now()? })
    }

    fn time(&mut self, write: impl FnOnce() -> tamarack::Result<()>) -> Result<(), Box<dyn Error>> {
        if self.micros.is_empty() {
            self.begin = Instant::now();
        }
        let begin = Instant::now();
        write()?;
        let micros = begin.elapsed().as_secs_f64() * 1e6;
        self.micros.push(micros);
        if micros >= SLOW_MICROS || (self.micros.len() as u64).is_multiple_of(WRITES_PER_LOOK) {
            let now = Counts::now()?;
            if micros >= SLOW_MICROS {
                let since = Counts {
                    sleeps: now.sleeps - self.last.sleeps,
                    preemptions: now.preemptions - self.last.preemptions,
                    faults: now.faults - self.last.faults,
                };
                self.slow.push((micros, since));
            }
            self.last = now;
        }
        Ok(())
    }

    fn print(&mut self, name: &str) {
        let seconds = self.begin.elapsed().as_secs_f64();
        self.micros.sort_by(f64::total_cmp);
        let count = self.micros.len();
        let at = |share: f64| self.micros[((count as f64 * share) as usize).min(count - 1)];
        println!(
            "{name}: {:.0} a second, p99 {:.1} µs, p99.9 {:.1}, p99.99 {:.1}, longest {:.1}",
            count as f64 / seconds,
            at(0.99),
            at(0.999),
            at(0.9999),
            at(1.0),
        );
        for bounds in CLASSES.windows(2) {
            let of = |counted: fn(&Counts) -> bool| {
                let within = self.slow.iter().filter(|(micros, _)| (bounds[0]..bounds[1]).contains(micros));
                within.filter(|(_, counts)| counted(counts)).count()
            };
            println!(
                "  from {} µs: {}, in which it slept {}, was preempted {}, took faults {}, none of these {}",
                bounds[0],
                of(|_| true),
                of(|counts| counts.sleeps > 0),
                of(|counts| counts.preemptions > 0),
                of(|counts| counts.faults > 0),
                of(|counts| counts.sleeps + counts.preemptions + counts.faults == 0),
            );
        }
    }
}
