//! Plots of a report's distributions: latency by percentile, throughput over time.

use super::figures::Plot;
use super::lines::{Axis, Line, Lines};
use super::number;
use super::results::{Results, Setting, Sizes, describe_size, usual_size};
use super::scale::Scale;
use crate::report::Report;

/// More points than that cannot be told apart, and would only make the page long.
const POINTS_MAX: usize = 80;

/// Latency by percentile, for each setting at its usual size of values.
pub fn latency(results: &Results<'_>) -> Vec<Plot> {
    plots(results, percentiles, |setting, lines| {
        let ends = lines.iter().filter_map(|line| line.points.last());
        let end = ends.map(|(x, _)| *x).fold(1.0, f64::max);
        let ticks = PERCENTILES.iter().map(|(part, text)| (nines(*part), (*text).to_owned()));
        let ticks = ticks.filter(|(place, _)| *place <= end).collect();
        let times = lines.iter().flat_map(|line| line.points.iter()).map(|(_, micros)| *micros);
        Lines {
            label: format!("latency of {} by percentile", setting.label()),
            x: Axis { title: "percentile".to_owned(), scale: Scale::Linear(0.0, end), ticks },
            y: Axis::new("latency", Scale::log(times), number::micros),
            lines,
            marked: false,
        }
    })
}

/// Operations per second over time, likewise.
pub fn time(results: &Results<'_>) -> Vec<Plot> {
    plots(results, rates, |setting, lines| {
        let points = || lines.iter().flat_map(|line| line.points.iter());
        let end = points().map(|(second, _)| *second).fold(0.0, f64::max);
        let highest = Scale::from_zero(points().map(|(_, rate)| *rate));
        let scale = Scale::Linear(0.0, if end > 0.0 { end } else { 1.0 });
        Lines {
            label: format!("operations per second of {} over time", setting.label()),
            x: Axis::new("seconds", scale, number::plain),
            y: Axis::new("operations per second", highest, number::count),
            lines,
            marked: false,
        }
    })
}

/// A plot for each setting of which a report has at least two `points`.
fn plots<'r>(
    results: &'r Results<'_>,
    points: fn(&Report) -> Vec<(f64, f64)>,
    plot: impl Fn(&Setting<'_>, Vec<Line<'r>>) -> Lines<'r>,
) -> Vec<Plot> {
    let of_setting = |setting: &Setting<'_>, sizes: &Sizes<'_>| {
        let (size, measured) = usual_size(sizes)?;
        let lines = results.series.iter().enumerate().filter_map(|(series, known)| {
            let points = points(measured.get(&series)?.report);
            (points.len() > 1).then(|| Line {
                series,
                name: known.label.as_str(),
                dashed: false,
                points: thinned(points),
            })
        });
        let lines: Vec<Line<'_>> = lines.collect();
        let detail = describe_size(size);
        let title = setting.label();
        (!lines.is_empty()).then(|| Plot { title, detail, svg: plot(setting, lines).draw() })
    };
    results.settings.iter().filter_map(|(setting, sizes)| of_setting(setting, sizes)).collect()
}

/// What stands beside the axis of percentiles.
const PERCENTILES: [(f64, &str); 8] = [
    (0.0, "0"),
    (0.5, "50"),
    (0.9, "90"),
    (0.99, "99"),
    (0.999, "99.9"),
    (0.9999, "99.99"),
    (0.99999, "99.999"),
    (0.999_999, "99.9999"),
];

/// Where a percentile stands: each nine takes as much room as the one before.
fn nines(part: f64) -> f64 {
    -(1.0 - part).log10()
}

/// The maximum stands where the slowest of so many operations is one part of them.
fn percentiles(report: &Report) -> Vec<(f64, f64)> {
    let slowest = (report.latency_histogram.operations() as f64).log10();
    let place = |part: f64| if part < 1.0 { nines(part).min(slowest) } else { slowest };
    report.latency_histogram.percentiles().map(|(part, micros)| (place(part), micros)).collect()
}

fn rates(report: &Report) -> Vec<(f64, f64)> {
    let rates: Vec<(f64, f64)> = report.throughput.rates(report.seconds).collect();
    // Neighbours in the mean, so that a short interval says as much as a longer one.
    let together = rates.len().div_ceil(POINTS_MAX).max(1);
    let mean = |points: &[(f64, f64)]| {
        let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
        (sum.0 / points.len() as f64, sum.1 / points.len() as f64)
    };
    rates.chunks(together).map(mean).collect()
}

/// Some of the points, the last one always.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len() - 1;
    let kept = points.into_iter().enumerate().filter(|(index, _)| index % every == 0 || *index == last);
    kept.map(|(_, point)| point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_nine_takes_the_same_room() {
        let places: Vec<f64> = PERCENTILES.iter().map(|(part, _)| nines(*part)).collect();
        for (place, expected) in places.into_iter().zip([0.0, 0.301, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) {
            assert!((place - expected).abs() < 0.001, "{place}, not {expected}");
        }
    }

    #[test]
    fn few_points_stay_and_many_are_thinned() {
        let points = |count: u32| (0..count).map(|index| (f64::from(index), 1.0)).collect::<Vec<_>>();
        assert_eq!(thinned(points(80)), points(80));
        let few = thinned(points(1000));
        assert!(few.len() <= POINTS_MAX + 1 && few.last() == Some(&(999.0, 1.0)), "{few:?}");
    }
}
