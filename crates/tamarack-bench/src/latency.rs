//! How long single operations took: percentiles, and a histogram from which all others can be read.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The longest time that is told apart from longer ones: an hour, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// A histogram of nanoseconds with `digits` significant decimal digits.
pub fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, digits)
        .expect("one nanosecond to one hour with up to three digits is a valid range")
}

/// Times of single operations in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub p9999: f64,
    pub max: f64,
    pub mean: f64,
}

impl Latency {
    /// From a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: histogram.max() as f64 / 1e3,
            mean: histogram.mean() / 1e3,
        }
    }
}

/// A histogram in little space: for each range of times that occurred, the longest of them in nanoseconds, and how many
/// operations it had. Ranges are a sixteenth to a thirty-second of their times wide.
///
/// ```
/// let buckets: tamarack_bench::Buckets = serde_json::from_str("[[1000, 90], [2000, 9], [50000, 1]]")?;
/// let points: Vec<(f64, f64)> = buckets.percentiles().collect();
/// assert_eq!(points, [(0.0, 1.0), (0.9, 2.0), (0.99, 50.0), (1.0, 50.0)]);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Buckets(Vec<(u64, u64)>);

impl Buckets {
    /// From a histogram of nanoseconds.
    pub fn of(fine: &Histogram<u64>) -> Self {
        let mut coarse = histogram(1);
        coarse.add(fine).expect("both histograms have the same bounds");
        let longest = fine.max();
        let bucket = |count: u64, value: u64| (value.min(longest), count);
        let recorded = coarse.iter_recorded();
        Self(
            recorded
                .map(|step| bucket(step.count_since_last_iteration(), step.value_iterated_to()))
                .collect(),
        )
    }

    /// How many operations there are in it.
    pub fn operations(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Points of the curve of latency by percentile: from which part of all operations on they took so many microseconds.
    /// The last one is the maximum.
    pub fn percentiles(&self) -> impl Iterator<Item = (f64, f64)> {
        let all = self.operations();
        let mut before = 0;
        let starts = self.0.iter().map(move |(ns, count)| {
            let part = before as f64 / all as f64;
            before += count;
            (part, *ns as f64 / 1e3)
        });
        starts.chain(self.0.last().map(|(ns, _)| (1.0, *ns as f64 / 1e3)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl Iterator<Item = u64>) -> Histogram<u64> {
        let mut fine = histogram(3);
        times.for_each(|ns| fine.saturating_record(ns));
        fine
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        let latency = Latency::of(&of((1..=100_000).map(|number| number * 1000)));
        let found =
            [latency.p50, latency.p90, latency.p99, latency.p999, latency.p9999, latency.max, latency.mean];
        let expected = [50_000.0, 90_000.0, 99_000.0, 99_900.0, 99_990.0, 100_000.0, 50_000.0];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 0.002, "{found}, not {expected}");
        }
    }

    #[test]
    fn buckets_are_few_and_near_the_times() {
        let fine = of((0..100_000).map(|number| 100 + number * number));
        let buckets = Buckets::of(&fine);
        assert!(buckets.0.len() < 500, "{} buckets", buckets.0.len());
        assert_eq!(buckets.0.iter().map(|(_, count)| count).sum::<u64>(), 100_000);
        assert_eq!(buckets.0.last().map(|(ns, _)| *ns), Some(fine.max()));
        let mut before = 0;
        for (ns, count) in &buckets.0 {
            before += count;
            let exact = fine.count_between(0, *ns);
            assert!(exact.abs_diff(before) * 1000 <= before, "{before} up to {ns}, not {exact}");
        }
        for number in (0..100_000).step_by(100) {
            let time = 100 + number * number;
            let bucket = buckets.0.iter().map(|(ns, _)| *ns).find(|ns| *ns >= time);
            let bucket = bucket.expect("the last one is the longest time");
            assert!(bucket as f64 <= time as f64 * (1.0 + 1.0 / 16.0), "{time} is in that of {bucket}");
        }
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Buckets::of(&histogram(3)), Buckets::default());
        assert_eq!(Buckets::default().percentiles().count(), 0);
    }
}
