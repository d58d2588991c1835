//! What a scenario has come to in all its schedules: one that tries nothing must not pass.

use std::sync::atomic::{AtomicU64, Ordering};

use tamarack::Stats;

/// Sums over all schedules.
#[derive(Debug, Default)]
pub struct Coverage {
    pub runs: AtomicU64,
    pub collections: AtomicU64,
    pub moved_records: AtomicU64,
    pub hidden_records: AtomicU64,
    pub punched_segments: AtomicU64,
    pub compactions: AtomicU64,
    /// Versions, readers or compactions had still pointed into a moved segment when the threads had ended.
    pub moved_segments: AtomicU64,
    pub seen: AtomicU64,
    pub copies: AtomicU64,
    /// Crashes in the midst.
    pub crashes: AtomicU64,
    /// Crashes that left a log with a torn tail.
    pub torn_tails: AtomicU64,
}

impl Coverage {
    /// Adds a database's counters since it was opened.
    pub fn add(&self, stats: &Stats) {
        let add = |sum: &AtomicU64, number| {
            sum.fetch_add(number, Ordering::Relaxed);
        };
        add(&self.collections, stats.collections);
        add(&self.moved_records, stats.collected_records);
        add(&self.hidden_records, stats.hidden_records);
        add(&self.punched_segments, stats.punched_segments);
        add(&self.compactions, stats.compactions);
        add(&self.moved_segments, stats.moved_segments as u64);
    }

    /// Counts one.
    pub fn count(sum: &AtomicU64, happened: bool) {
        sum.fetch_add(u64::from(happened), Ordering::Relaxed);
    }

    /// Panics unless each of `sums` has come to something.
    pub fn assert_some(&self, sums: &[&AtomicU64]) {
        for sum in sums {
            assert!(sum.load(Ordering::Relaxed) > 0, "nothing was tried: {self:#?}");
        }
    }
}
