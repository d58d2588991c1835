//! How many operations ended in each stretch of a workload's time.
//!
//! Each thread counts its own, with one comparison per operation and without a lock; they are added up at the end. Nobody
//! knows beforehand how long a workload takes: stretches begin short, and are joined two by two when there are too many.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Throughput over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// How long an interval is; the last one ends with the workload.
    pub interval_seconds: f64,
    /// Operations that ended in each; a batch counts where it ended.
    pub ops: Vec<u64>,
}

impl Timeline {
    /// Operations per second, and the second in the middle of the interval to which that belongs, of a workload that took
    /// so many `seconds`. A last interval that is less than half as long as the others is left out.
    pub fn rates(&self, seconds: f64) -> impl Iterator<Item = (f64, f64)> {
        let rate = move |(index, ops): (usize, &u64)| {
            let begin = index as f64 * self.interval_seconds;
            let length = self.interval_seconds.min(seconds - begin);
            (length, (begin + length / 2.0, *ops as f64 / length))
        };
        let enough =
            move |length| length >= self.interval_seconds / 2.0 || self.ops.len() == 1 && length > 0.0;
        self.ops.iter().enumerate().map(rate).filter(move |(length, _)| enough(*length)).map(|(_, rate)| rate)
    }
}

/// The timeline of one thread while it grows.
#[derive(Debug)]
pub struct Counter {
    began: Instant,
    /// When the interval ends that is counted now.
    end: Instant,
    /// Intervals are so many times as long as at the beginning: two to the power of that.
    doublings: u32,
    full: Vec<u64>,
    current: u64,
}

impl Counter {
    /// Of the shortest intervals.
    const SHORTEST: Duration = Duration::from_millis(10);
    /// So many intervals are joined two by two. Even.
    const INTERVALS_MAX: usize = 512;

    /// Nothing yet, of what begins now.
    pub fn new(began: Instant) -> Self {
        let end = began + Self::SHORTEST;
        Self { began, end, doublings: 0, full: Vec::with_capacity(Self::INTERVALS_MAX), current: 0 }
    }

    /// Counts operations that ended `now`, which is never earlier than the time before.
    pub fn count(&mut self, now: Instant, ops: u64) {
        while now >= self.end {
            self.turn();
        }
        self.current += ops;
    }

    /// Begins the next interval.
    fn turn(&mut self) {
        self.full.push(std::mem::take(&mut self.current));
        if self.full.len() == Self::INTERVALS_MAX {
            self.full = joined(&self.full);
            self.doublings += 1;
        }
        self.end = self.began + self.interval() * (self.full.len() as u32 + 1);
    }

    fn interval(&self) -> Duration {
        Self::SHORTEST * 2_u32.pow(self.doublings)
    }

    /// What all threads together did.
    pub fn sum(counters: Vec<Self>) -> Timeline {
        let doublings = counters.iter().map(|counter| counter.doublings).max().unwrap_or(0);
        let mut ops = Vec::new();
        for mut counter in counters {
            if counter.current > 0 {
                counter.full.push(counter.current);
            }
            while counter.doublings < doublings {
                counter.full = joined(&counter.full);
                counter.doublings += 1;
            }
            ops.resize(ops.len().max(counter.full.len()), 0);
            ops.iter_mut().zip(counter.full).for_each(|(sum, part)| *sum += part);
        }
        Timeline { interval_seconds: (Self::SHORTEST * 2_u32.pow(doublings)).as_secs_f64(), ops }
    }
}

/// Neighbours added up.
fn joined(intervals: &[u64]) -> Vec<u64> {
    intervals.chunks(2).map(|pair| pair.iter().sum()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A thread that does one operation each of these microseconds after the one before.
    fn counter(began: Instant, gaps: &[u64]) -> Counter {
        let mut counter = Counter::new(began);
        let mut now = began;
        for gap in gaps {
            now += Duration::from_micros(*gap);
            counter.count(now, 1);
        }
        counter
    }

    proptest! {
        #[test]
        fn every_operation_is_counted_where_it_ended(
            threads in prop::collection::vec(prop::collection::vec(0_u64..100_000, 0..1500), 1..4),
        ) {
            let began = Instant::now();
            let timeline = Counter::sum(threads.iter().map(|gaps| counter(began, gaps)).collect());
            let interval = (timeline.interval_seconds * 1e6) as u64;
            let mut expected = Vec::new();
            for gaps in &threads {
                let mut micros = 0;
                for gap in gaps {
                    micros += gap;
                    let index = (micros / interval) as usize;
                    expected.resize(expected.len().max(index + 1), 0);
                    expected[index] += 1;
                }
            }
            prop_assert_eq!(&timeline.ops, &expected);
            prop_assert!(timeline.ops.len() <= Counter::INTERVALS_MAX);
            let longest = threads.iter().map(|gaps| gaps.iter().sum::<u64>()).max().unwrap_or(0);
            prop_assert!(interval == 10_000 || longest / interval >= Counter::INTERVALS_MAX as u64 / 2 - 1);
        }
    }

    #[test]
    fn a_pause_of_an_hour_is_no_trouble() {
        let timeline = Counter::sum(vec![counter(Instant::now(), &[3_600_000_000, 1])]);
        assert_eq!(timeline.ops.iter().sum::<u64>(), 2);
        assert_eq!(timeline.ops.last(), Some(&2));
    }

    #[test]
    fn a_rate_is_that_of_the_time_there_was() {
        let timeline = Timeline { interval_seconds: 2.0, ops: vec![10, 20, 30] };
        let rates = |seconds| timeline.rates(seconds).collect::<Vec<_>>();
        assert_eq!(rates(6.0), [(1.0, 5.0), (3.0, 10.0), (5.0, 15.0)]);
        assert_eq!(rates(5.0), [(1.0, 5.0), (3.0, 10.0), (4.5, 30.0)]);
        assert_eq!(rates(4.5), [(1.0, 5.0), (3.0, 10.0)]);
        let short = Timeline { interval_seconds: 2.0, ops: vec![10] };
        assert_eq!(short.rates(0.5).collect::<Vec<_>>(), [(0.25, 20.0)]);
        assert_eq!(Timeline::default().rates(0.0).count(), 0);
    }
}
