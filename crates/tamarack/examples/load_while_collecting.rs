//! What garbage collection costs whoever writes meanwhile: Figure 13 of the WiscKey paper, for this store.
//!
//! For each share of dead values, 25 to 100 percent, a database is filled, that share of it deleted at random, and then
//! loaded with new keys in random order: once without garbage collection, and once while a thread collects all the
//! time. Shown are puts per second, the 99.9th percentile of a put, and what collecting cost, as a plot.
//! Run with `cargo run --release -p tamarack --example load_while_collecting [DIRECTORY [KEYS]]`; a million keys of
//! 1 KiB take 3 GB of disk and a few minutes. Other work on the machine shows in every figure.

#![allow(
    clippy::disallowed_methods,
    reason = "a program that uses the engine has clocks and threads of its own"
)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tamarack::{Db, GcGoal, GcPolicy, Options};

const VALUE_BYTES: usize = 1024;
/// Each figure is the median of so many runs, with and without collections in turn.
const RUNS: usize = 7;
const PLOT_COLUMNS: f64 = 50.0;

/// Random numbers that a seed determines.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// What a load was like.
#[derive(Clone, Copy)]
struct Load {
    puts_per_second: f64,
    p999: Duration,
}

/// Puts `count` keys that begin with `prefix`, in random order, with values that cannot be compressed.
fn load(db: &Db, prefix: char, count: u64) -> tamarack::Result<Load> {
    let mut random = Random(u64::from(prefix as u32));
    let mut order: Vec<u64> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, (random.number() % (last as u64 + 1)) as usize);
    }
    let (mut value, mut latencies) = (vec![0; VALUE_BYTES], Vec::with_capacity(order.len()));
    let begin = Instant::now();
    for number in order {
        value.chunks_exact_mut(8).for_each(|eight| eight.copy_from_slice(&random.number().to_le_bytes()));
        let before = Instant::now();
        db.put(format!("{prefix}{number:015}").as_bytes(), &value)?;
        latencies.push(before.elapsed());
    }
    let puts_per_second = count as f64 / begin.elapsed().as_secs_f64();
    latencies.sort_unstable();
    Ok(Load { puts_per_second, p999: latencies[latencies.len() * 999 / 1000] })
}

/// A load beside `dead` percent of garbage, collected all the time or not at all.
fn measure(directory: &Path, count: u64, dead: u64, collected: bool) -> tamarack::Result<Load> {
    Db::destroy(directory)?;
    // Nothing is collected but by the thread below, which does not stop at any goal.
    let db = Db::open(directory, Options { gc: GcPolicy::Off, ..Options::default() })?;
    load(&db, 'a', count)?;
    let mut random = Random(dead);
    for number in (0..count).filter(|_| random.number() % 100 < dead) {
        db.delete(format!("a{number:015}").as_bytes())?;
    }
    db.compact_range(None, None)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let collector = scope.spawn(|| {
            while collected && !done.load(Ordering::Relaxed) {
                let report = db.gc(GcGoal::Once)?;
                if report.segments + report.punched == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        });
        let measured = load(&db, 'b', count);
        done.store(true, Ordering::Relaxed);
        collector.join().expect("the collector does not panic").and(measured)
    })
}

fn median(mut loads: Vec<Load>) -> Load {
    loads.sort_by(|left, right| left.puts_per_second.total_cmp(&right.puts_per_second));
    loads[loads.len() / 2]
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let temporary = tempfile::tempdir()?;
    let directory = arguments.next().map_or_else(|| temporary.path().join("db"), PathBuf::from);
    let count = arguments.next().map_or(Ok("1000000".into()), std::ffi::OsString::into_string);
    let count: u64 = count.map_err(|_| "KEYS is a number")?.parse()?;
    println!("dead | puts/s without, with | p99.9 without, with | lost");
    for dead in [25, 50, 75, 100] {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            without.push(measure(&directory, count, dead, false)?);
            with.push(measure(&directory, count, dead, true)?);
        }
        let (without, with) = (median(without), median(with));
        let lost = 1.0 - with.puts_per_second / without.puts_per_second;
        println!(
            "{dead:3}% | {:8.0} {:8.0} | {:8.1?} {:8.1?} | {:5.1}% |{}",
            without.puts_per_second,
            with.puts_per_second,
            without.p999,
            with.p999,
            lost * 100.0,
            "#".repeat((lost.max(0.0) * PLOT_COLUMNS).round() as usize)
        );
    }
    Db::destroy(&directory)?;
    Ok(())
}
