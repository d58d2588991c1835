//! What fuzzers run, without one: each target takes every input that is kept in `fuzz/corpus` and a number of mutations of
//! each. None panics, on any thread, none walks in circles, and none asks for more memory than its bytes can be worth.
//!
//! `TAMARACK_SEED` and `TAMARACK_MUTATIONS` choose other mutations and how many of each target's. A failure writes its input
//! to a file and names it. `TAMARACK_SEED_CORPUS=1` writes the seeds anew (`cargo xtask fuzz --seed-corpus`).
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    unsafe_code,
    reason = "tests read and write files, and memory is counted where it is given"
)]
#![cfg(not(shuttle))]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use common::{PATIENCE_SECONDS, Random, Watchdog, number_from_environment};
use tamarack::testing::fuzz::{MEMORY_BYTES, TARGETS, Target};
use tamarack::testing::watch_mapped;

/// Mutations of the inputs of a target, where one takes no longer than most.
const MUTATIONS: u64 = 4000;
/// What one input may ask for in all, for each byte that it may ask for at once.
const TOTAL_FACTOR: usize = 64;

/// The system's memory, counted.
struct Counted;

static LARGEST: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    LARGEST.fetch_max(bytes, Relaxed);
    TOTAL.fetch_add(bytes, Relaxed);
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static MEMORY: Counted = Counted;

fn corpus(target: &Target) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus")).join(target.name)
}

/// The kept inputs of a target, by name.
fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<_> = std::fs::read_dir(corpus(target))
        .unwrap_or_else(|error| panic!("{}: {error}", corpus(target).display()))
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
        })
        .collect();
    inputs.sort();
    assert!(!inputs.is_empty(), "{}: nothing is kept", target.name);
    inputs
}

/// What running inputs has cost at most.
#[derive(Debug, Default)]
struct Cost {
    inputs: u64,
    largest: usize,
    total: usize,
    failures: Vec<String>,
}

/// So many failures of a target are told.
const FAILURES_MAX: usize = 5;

/// Runs one input, and notes what is wrong.
fn try_input(target: &Target, data: &[u8], what: &str, cost: &mut Cost) {
    let panics = PANICS.load(Relaxed);
    LARGEST.store(0, Relaxed);
    TOTAL.store(0, Relaxed);
    let outcome = std::panic::catch_unwind(|| (target.run)(data));
    let (largest, total) = (LARGEST.load(Relaxed), TOTAL.load(Relaxed));
    cost.inputs += 1;
    cost.largest = cost.largest.max(largest);
    cost.total = cost.total.max(total);
    let allowed = MEMORY_BYTES + target.memory_per_byte * data.len();
    let mut wrong = Vec::new();
    if outcome.is_err() || PANICS.load(Relaxed) > panics {
        wrong.push("it panicked".to_owned());
    }
    if largest > allowed || total > TOTAL_FACTOR * allowed {
        wrong.push(format!(
            "it took {largest} bytes of memory at once, {total} in all; {allowed} are allowed"
        ));
    }
    if !wrong.is_empty() && cost.failures.len() < FAILURES_MAX {
        let name = format!("tamarack-fuzz-{}-{}", target.name, cost.failures.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, data).unwrap();
        let wrong = wrong.join("; ");
        cost.failures.push(format!("{}, {what}: {wrong}; the input is {}", target.name, path.display()));
    }
}

/// Changes `data` as bytes go wrong: flipped, cut, repeated, moved, in place of lengths, or those of another input.
fn mutate(data: &mut Vec<u8>, random: &mut Random, others: &[(String, Vec<u8>)]) {
    const EDGES: [u64; 8] = [0, 1, 0x7f, 0x80, 0xffff, u32::MAX as u64, i64::MAX as u64, u64::MAX];
    for _ in 0..1 + random.below(4) {
        let at = random.below(data.len() + 1);
        match random.below(9) {
            0 | 1 if at < data.len() => data[at] ^= 1 << random.below(8),
            2 if at < data.len() => data[at] = random.number() as u8,
            3 => data.truncate(at),
            4 => {
                let edge = random.pick(&EDGES).to_le_bytes();
                data.iter_mut()
                    .skip(at)
                    .zip(edge)
                    .take(1 << random.below(4))
                    .for_each(|(byte, new)| *byte = new);
            }
            5 => {
                let end = (at + random.below(64)).min(data.len());
                let piece = data[at..end].to_vec();
                let to = random.below(data.len() + 1);
                drop(data.splice(to..to, piece));
            }
            6 => drop(data.drain(at..(at + random.below(32)).min(data.len()))),
            7 => {
                let other = &others[random.below(others.len())].1;
                let from = random.below(other.len() + 1);
                data.truncate(at);
                data.extend_from_slice(&other[from..]);
            }
            _ => {
                let len = random.below(9);
                let new = random.bytes(len);
                drop(data.splice(at..at, new));
            }
        }
    }
}

/// Counts panics of every thread: those in the background are caught, and end in an error. Says what those on the
/// test's own thread say.
fn count_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Relaxed);
        usual(info);
    }));
}

// One test: memory is counted for the whole process.
#[test]
fn no_bytes_cause_a_panic_an_endless_loop_or_large_allocations() {
    // What is mapped past the allocator counts, too.
    watch_mapped(|more, _| count(more));
    if number_from_environment("TAMARACK_SEED_CORPUS").is_some() {
        return TARGETS.iter().for_each(write_seeds);
    }
    count_panics();
    let seed = number_from_environment("TAMARACK_SEED").unwrap_or(1);
    let mut failures = Vec::new();
    for target in TARGETS {
        let _watchdog = Watchdog::new(PATIENCE_SECONDS, format!("inputs of the fuzz target {}", target.name));
        let begin = std::time::Instant::now();
        let inputs = inputs(target);
        // Golden databases are made when they are first wanted.
        (target.run)(&inputs[0].1);
        let mut cost = Cost::default();
        for (name, data) in &inputs {
            try_input(target, data, name, &mut cost);
        }
        let mutations = number_from_environment("TAMARACK_MUTATIONS").unwrap_or(MUTATIONS / target.weight);
        for number in 0..mutations {
            let mut random = Random::of_step(seed, number);
            let (name, data) = &inputs[number as usize % inputs.len()];
            let mut data = data.clone();
            mutate(&mut data, &mut random, &inputs);
            try_input(target, &data, &format!("mutation {number} of seed {seed}, of {name}"), &mut cost);
        }
        tell(target, &cost, begin.elapsed());
        failures.append(&mut cost.failures);
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Not with println, whose words the test's own capture would keep to itself.
fn tell(target: &Target, cost: &Cost, took: Duration) {
    let Cost { inputs, largest, total, .. } = cost;
    let (name, seconds) = (target.name, took.as_secs_f64());
    let words = format!(
        "fuzz {name}: {inputs} inputs in {seconds:.1} s; at most {largest} bytes of memory at once, {total} in all\n"
    );
    std::io::stderr().write_all(words.as_bytes()).unwrap();
}

/// Writes the seeds of a target among its kept inputs; what fuzzers have found stays.
fn write_seeds(target: &Target) {
    std::fs::create_dir_all(corpus(target)).unwrap();
    for (name, data) in (target.seeds)() {
        std::fs::write(corpus(target).join(format!("seed-{name}")), data).unwrap();
    }
}
