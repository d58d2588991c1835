//! The core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010, table 2; F is younger
//! than the paper and comes with YCSB).
//!
//! Records are numbered in the order in which they are inserted, and scattered over the keys, as YCSB's hashed order does.
//! Reads and updates draw records by Zipf's law: from those that were loaded, spread over all of them; or, for D, from the
//! newest ones backward; unless the plan has another distribution. Where YCSB's own generator follows the growing number of records, the law here stays that of the
//! loaded ones; at most one record in twenty is new.
//!
//! The law is that of the paper, over the records. The Java program draws from 10^16 numbers and folds these onto the records by a hash: of a
//! million records the most popular one gets some 3.8 % of the draws there, and 6.5 % here and in others that follow the paper.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::keys::Random;

/// How many records there are. A record counts once it and all before it are there, so that nobody looks for one that is on
/// its way.
#[derive(Debug)]
pub struct Records {
    next: AtomicU64,
    there: AtomicU64,
    /// Those that are there while an earlier one is not.
    ahead: Mutex<BTreeSet<u64>>,
}

impl Records {
    /// So many.
    pub fn new(count: u64) -> Self {
        Self { next: AtomicU64::new(count), there: AtomicU64::new(count), ahead: Mutex::default() }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.there.load(Ordering::Acquire)
    }

    /// The number of a new one.
    pub fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The record of that number is there.
    pub fn add(&self, record: u64) {
        let mut ahead = self.ahead.lock().expect("nobody panics with the lock");
        ahead.insert(record);
        let mut there = self.there.load(Ordering::Relaxed);
        while ahead.remove(&there) {
            there += 1;
        }
        self.there.store(there, Ordering::Release);
    }
}

/// What a workload does, in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    reads: u8,
    updates: u8,
    inserts: u8,
    scans: u8,
    /// Reads that are followed by an update of the same record; the rest to a hundred.
    modifications: u8,
    /// Whether the newest records are drawn most.
    pub latest: bool,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Update,
    Insert,
    /// Of so many records.
    Scan(u64),
    Modify,
}

/// The longest scan.
const SCAN_MAX: u64 = 100;

impl Mix {
    pub const A: Self = Self::of([50, 50, 0, 0, 0], false);
    pub const B: Self = Self::of([95, 5, 0, 0, 0], false);
    pub const C: Self = Self::of([100, 0, 0, 0, 0], false);
    pub const D: Self = Self::of([95, 0, 5, 0, 0], true);
    pub const E: Self = Self::of([0, 0, 5, 95, 0], false);
    pub const F: Self = Self::of([50, 0, 0, 0, 50], false);

    const fn of(parts: [u8; 5], latest: bool) -> Self {
        let [reads, updates, inserts, scans, modifications] = parts;
        assert!(reads + updates + inserts + scans + modifications == 100, "parts of a hundred");
        Self { reads, updates, inserts, scans, modifications, latest }
    }

    /// The next operation.
    pub fn draw(&self, random: &mut Random) -> Operation {
        let mut place = random.below(100) as u8;
        for (part, operation) in [
            (self.reads, Operation::Read),
            (self.updates, Operation::Update),
            (self.inserts, Operation::Insert),
            (self.modifications, Operation::Modify),
        ] {
            if place < part {
                return operation;
            }
            place -= part;
        }
        Operation::Scan(1 + random.below(SCAN_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_once_all_before_it_are_there() {
        let records = Records::new(10);
        let taken = [records.take(), records.take(), records.take()];
        assert_eq!(taken, [10, 11, 12]);
        records.add(12);
        records.add(11);
        assert_eq!(records.count(), 10);
        records.add(10);
        assert_eq!((records.count(), records.take()), (13, 13));
    }

    #[test]
    fn operations_have_their_published_parts() {
        const DRAWS: usize = 200_000;
        // Reads, updates, inserts, scans, reads that an update follows; whether the newest records are drawn most.
        let table = [
            (Mix::A, [50, 50, 0, 0, 0], false),
            (Mix::B, [95, 5, 0, 0, 0], false),
            (Mix::C, [100, 0, 0, 0, 0], false),
            (Mix::D, [95, 0, 5, 0, 0], true),
            (Mix::E, [0, 0, 5, 95, 0], false),
            (Mix::F, [50, 0, 0, 0, 50], false),
        ];
        for (mix, hundredths, latest) in table {
            let mut random = Random::new(1);
            let mut counts = [0; 5];
            for _ in 0..DRAWS {
                counts[match mix.draw(&mut random) {
                    Operation::Read => 0,
                    Operation::Update => 1,
                    Operation::Insert => 2,
                    Operation::Scan(_) => 3,
                    Operation::Modify => 4,
                }] += 1;
            }
            for (count, hundredths) in counts.into_iter().zip(hundredths) {
                let (draws, part) = (DRAWS as f64, f64::from(hundredths) / 100.0);
                let off = (f64::from(count) - draws * part).abs();
                assert!(off <= 4.5 * (draws * part * (1.0 - part)).sqrt(), "{mix:?}: {counts:?} of {DRAWS}");
            }
            assert_eq!(mix.latest, latest, "{mix:?}");
        }
    }

    #[test]
    fn scans_have_all_lengths_from_one_to_a_hundred_alike() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 101];
        for _ in 0..200_000 {
            if let Operation::Scan(length) = Mix::E.draw(&mut random) {
                counts[length as usize] += 1;
            }
        }
        assert_eq!(counts[0], 0);
        let mean = f64::from(counts.iter().sum::<u32>()) / 100.0;
        let chi_square: f64 = counts[1..].iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum();
        // With 99 degrees of freedom, a fair draw exceeds this once in a hundred thousand times.
        assert!(chi_square < 170.0, "chi-square is {chi_square}: {counts:?}");
    }
}
