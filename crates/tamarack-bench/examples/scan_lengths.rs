//! What scans of some lengths cost whose values are not in memory, and how much they read for that: from how far a walk reads ahead of
//! where it will end.
//!
//! The database in DIRECTORY has to be there, and takes no harm: `tamarack bench fillrandom --num 1000000 --idle-seconds 8 --db DIRECTORY`
//! makes one whose values are in sorted runs. Before the scans of each length its files are taken out of the page cache.
//! Run with `cargo run --release -p tamarack-bench --example scan_lengths DIRECTORY`. Other work on the machine shows in every figure.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program that measures has files and clocks of its own"
)]

use std::error::Error;
use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{Advice, fadvise};
use tamarack::{Db, IterOptions, Options};
use tamarack_bench::Random;

/// Fewest and most entries of a scan, and how many scans.
const SCANS: [(u64, u64, u32); 7] = [
    (1, 100, 3000),
    (50, 50, 3000),
    (200, 200, 2000),
    (500, 500, 1000),
    (1000, 1000, 500),
    (5000, 5000, 100),
    (20_000, 20_000, 30),
];
/// Of so many keys one is where scans may begin.
const KEYS_PER_BEGINNING: usize = 997;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).ok_or("which directory? scan_lengths DIRECTORY")?;
    let directory = PathBuf::from(directory);
    let options = Options { create_if_missing: false, ..Options::default() };
    let beginnings = beginnings(&Db::open(&directory, options.clone())?)?;
    let mut random = Random::new(1);
    for (least, most, scans) in SCANS {
        evict(&directory)?;
        let db = Db::open(&directory, options.clone())?;
        let (mut entries, mut value_bytes, begin) = (0_u32, 0, Instant::now());
        for _ in 0..scans {
            let mut iter = db.iter(&IterOptions::default())?;
            iter.seek(&beginnings[random.below(beginnings.len() as u64) as usize])?;
            let mut left = least + random.below(most - least + 1);
            while iter.valid() {
                value_bytes += black_box(iter.value()?).len() as u64;
                entries += 1;
                left -= 1;
                if left == 0 {
                    break;
                }
                iter.next()?;
            }
        }
        let micros = begin.elapsed().as_secs_f64() * 1e6;
        let read = db.stats().value_read_bytes as f64 / value_bytes.max(1) as f64;
        println!(
            "{least} to {most} entries: {:.1} µs for a scan, {:.2} for an entry, {read:.2} bytes read for each byte of values",
            micros / f64::from(scans),
            micros / f64::from(entries),
        );
        db.close()?;
    }
    Ok(())
}

/// Some keys, in order; reads no value.
fn beginnings(db: &Db) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut iter = db.iter(&IterOptions { keys_only: true, ..IterOptions::default() })?;
    let (mut keys, mut number) = (Vec::new(), 0_usize);
    iter.seek_to_first()?;
    while iter.valid() {
        if number.is_multiple_of(KEYS_PER_BEGINNING) {
            keys.push(iter.key().to_vec());
        }
        number += 1;
        iter.next()?;
    }
    if keys.is_empty() { Err("the database is empty: fill it before".into()) } else { Ok(keys) }
}

/// Takes the files of a closed database out of the page cache.
fn evict(directory: &Path) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let file = File::open(entry?.path())?;
        if file.metadata()?.is_file() {
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
