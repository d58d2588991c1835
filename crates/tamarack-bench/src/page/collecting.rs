//! Plots of what garbage collection costs writers, by the share of dead values: Figure 13 of the WiscKey paper.

use std::collections::BTreeMap;

use super::figures::Plot;
use super::lines::{Axis, Line, Lines};
use super::number;
use super::results::{Results, Setting, Size, describe_size};
use super::scale::Scale;
use crate::report::Report;
use crate::workload::Workload;

/// What is plotted of a report.
struct Figure {
    title: &'static str,
    of: fn(&Report) -> f64,
    text: fn(f64) -> String,
}

const FIGURES: [Figure; 2] = [
    Figure { title: "puts per second", of: |report| report.ops_per_second, text: number::count },
    Figure { title: "99.9th percentile of a put", of: |report| report.latency_us.p999, text: number::micros },
];

/// Reports by the percentage of dead values, for each series.
type ByShare<'r> = BTreeMap<u8, &'r Report>;

/// What one plot is of: a setting but for workload and share, and a size; with the reports of each series while garbage was
/// collected, and while it was not.
struct Group<'r> {
    setting: Setting<'r>,
    size: Size,
    with: BTreeMap<usize, ByShare<'r>>,
    without: BTreeMap<usize, ByShare<'r>>,
}

/// All plots: for each setting and size of values of which some keys were written while garbage was collected.
pub fn plots(results: &Results<'_>) -> Vec<Plot> {
    let groups = groups(results);
    let collected = groups.iter().filter(|group| !group.with.is_empty());
    collected.flat_map(|group| FIGURES.iter().map(|figure| plot(results, group, figure))).collect()
}

fn groups<'r>(results: &'r Results<'r>) -> Vec<Group<'r>> {
    let mut groups: Vec<Group<'r>> = Vec::new();
    for (setting, sizes) in results.settings.iter().filter(|(setting, _)| setting.is_beside_garbage()) {
        let collects = setting.workload == Workload::Fillwhilecollecting.name();
        let setting = setting.without_garbage();
        for (&size, measured) in sizes {
            let known = groups.iter().position(|group| group.size == size && group.setting.is_like(&setting));
            let index = known.unwrap_or_else(|| {
                let (with, without) = (BTreeMap::new(), BTreeMap::new());
                groups.push(Group { setting: setting.clone(), size, with, without });
                groups.len() - 1
            });
            let group = &mut groups[index];
            let reports = if collects { &mut group.with } else { &mut group.without };
            for (&series, one) in measured {
                let Some(percent) = one.report.dead_percent else { continue };
                reports.entry(series).or_default().insert(percent, one.report);
            }
        }
    }
    groups
}

fn plot(results: &Results<'_>, group: &Group<'_>, figure: &Figure) -> Plot {
    let points = |reports: &ByShare<'_>| {
        reports.iter().map(|(percent, report)| (f64::from(*percent), (figure.of)(report))).collect()
    };
    let names: Vec<String> = results.series.iter().map(|series| format!("{}, GC", series.label)).collect();
    let with = group.with.iter().map(|(&series, reports)| Line {
        series,
        name: &names[series],
        dashed: false,
        points: points(reports),
    });
    let without = group.without.iter().map(|(&series, reports)| Line {
        series,
        name: &results.series[series].label,
        dashed: true,
        points: points(reports),
    });
    let lines: Vec<Line<'_>> = with.chain(without).collect();
    let numbers: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter()).map(|(_, number)| *number).collect();
    let plot = Lines {
        label: format!("{} beside garbage, by the share of dead values", figure.title),
        x: Axis {
            title: "percent of the old values that are dead".to_owned(),
            scale: Scale::Linear(0.0, 100.0),
            ticks: [0_u8, 25, 50, 75, 100].map(|percent| (percent.into(), format!("{percent} %"))).into(),
        },
        y: Axis::new(figure.title, Scale::fitting(numbers.iter().copied()), figure.text),
        lines,
        marked: true,
    };
    let label = group.setting.label();
    let differs = label.strip_prefix(group.setting.workload).unwrap_or_default();
    let detail = format!("{}{differs}", describe_size(group.size));
    Plot { title: figure.title.to_owned(), detail, svg: plot.draw() }
}
