//! Which plots a comparison has: each appears when there are reports with its data.

use std::collections::{BTreeMap, BTreeSet};

use super::bars::{Bar, Bars};
use super::collecting;
use super::curves;
use super::lines::{Axis, Line, Lines};
use super::metric::{self, Metric};
use super::number;
use super::results::{
    BySeries, BySize, Measured, Results, Series, Setting, Size, Sizes, describe_size, usual_size,
};
use super::scale::Scale;

/// Plots that belong together.
pub struct Section {
    pub title: &'static str,
    /// How to read them.
    pub note: &'static str,
    pub plots: Vec<Plot>,
}

/// A plot.
pub struct Plot {
    pub title: String,
    pub detail: String,
    pub svg: String,
}

/// All plots, in their order.
pub fn sections(results: &Results<'_>) -> Vec<Section> {
    let of = |metric: &Metric| plots(results, metric);
    let section = |title, note, plots| Section { title, note, plots };
    let all = [
        section("Throughput", THROUGHPUT, throughput(results)),
        section("YCSB", YCSB, ycsb(results)),
        section("Write amplification", WRITE, of(&metric::WRITE_AMPLIFICATION)),
        section("Read amplification", READ, of(&metric::READ_AMPLIFICATION)),
        section("Space", SPACE, of(&metric::SPACE_AMPLIFICATION)),
        section("Processor time", PROCESSOR, of(&metric::PROCESSOR)),
        section("Processor utilisation", UTILIZATION, of(&metric::UTILIZATION)),
        section("Overwriting, beside loading", OVERWRITING, overwriting(results)),
        section("GC (WiscKey, Figure 13)", COLLECTING, collecting::plots(results)),
        section("Space given back", RECLAIM, of(&metric::RECLAIM)),
        section("Opening after a kill", OPENING, of(&metric::OPENING)),
        section("Latency by percentile", LATENCY, curves::latency(results)),
        section("Throughput over time", TIME, curves::time(results)),
    ];
    all.into_iter().filter(|section| !section.plots.is_empty()).collect()
}

const THROUGHPUT: &str = "More is better. As Figures 7 (fillseq), 9 (fillrandom), 11 (readrandom) and 12 (readseq, after either \
    fill) of the WiscKey paper, where values of several sizes were measured.";
const YCSB: &str = "Operations per second, more is better; each workload has a scale of its own, from zero. As Figure 15 of the \
    WiscKey paper.";
const WRITE: &str = "Bytes that reached the device, counted by the operating system until all had settled, for each byte of keys \
    and values; less is better. As Figure 10 of the WiscKey paper.";
const READ: &str = "Bytes that came from the device, counted by the operating system, for each byte of keys and values that was \
    read; less is better, and below 1 the page cache helped.";
const SPACE: &str = "Space on disk when all had settled, for each live byte; less is better. As Figure 14 of the WiscKey paper.";
const PROCESSOR: &str =
    "Time of all threads, with background work until all had settled, for each operation; less is better.";
const UTILIZATION: &str = "The same time for each second that went by until all had settled: how many processors were busy, not how much \
    each operation asks of them. As Table 1 of the WiscKey paper.";
const OVERWRITING: &str = "How fast keys are overwritten, as a part of how fast they were written first: fillrandom leaves nothing \
    dead, overwrite does, so that compaction and garbage collection have more to do. The WiscKey paper has no such figure: its Figure 13 \
    loads new keys beside garbage collection.";
const COLLECTING: &str = "New keys are written in random order where a part of the old ones has been deleted: “GC”, the solid line, while \
    a thread does nothing but collect garbage; the dashed line without collecting. As Figure 13 of the WiscKey paper.";
const RECLAIM: &str =
    "Until the directory was below its bound again after half of the keys had been deleted; less is better.";
const OPENING: &str = "Until a database was open whose writer was killed; less is better.";
const LATENCY: &str = "How long the quickest operations up to each percentile took at most; lower is better.";
const TIME: &str = "Operations per second while the workload went on; an even line is better.";

/// In bytes where operations have values, else in operations.
fn throughput(results: &Results<'_>) -> Vec<Plot> {
    let plot = |setting: &Setting<'_>, sizes| {
        let bytes = Grid::of(results, setting, sizes, &metric::BYTES)?;
        if bytes.sizes() > 1 {
            bytes.plot()
        } else {
            Grid::of(results, setting, sizes, &metric::OPERATIONS)?.plot()
        }
    };
    results.settings.iter().filter_map(|(setting, sizes)| plot(setting, sizes)).collect()
}

/// Bars for each size; workloads of the same setting stand together.
fn ycsb(results: &Results<'_>) -> Vec<Plot> {
    let mut groups: Vec<(&Setting<'_>, Vec<Plot>)> = Vec::new();
    for (setting, sizes) in &results.settings {
        let Some(grid) = Grid::of(results, setting, sizes, &metric::YCSB) else { continue };
        let plots = grid.values.iter().map(|(size, values)| grid.bars(*size, values));
        match groups.iter_mut().find(|(other, _)| setting.is_like(other)) {
            Some((_, group)) => group.extend(plots),
            None => groups.push((setting, plots.collect())),
        }
    }
    groups.into_iter().flat_map(|(_, plots)| plots).collect()
}

/// A plot of a metric for each setting that has it.
fn plots(results: &Results<'_>, metric: &Metric) -> Vec<Plot> {
    let plot = |setting: &Setting<'_>, sizes| Grid::of(results, setting, sizes, metric)?.plot();
    results.settings.iter().filter_map(|(setting, sizes)| plot(setting, sizes)).collect()
}

/// How fast each series overwrites, beside how fast it fills.
fn overwriting(results: &Results<'_>) -> Vec<Plot> {
    let mut all = Vec::new();
    for (setting, sizes) in results.settings.iter().filter(|(setting, _)| setting.workload == "overwrite") {
        let like = |(other, _): &&(Setting<'_>, _)| other.workload == "fillrandom" && setting.is_like(other);
        let Some((_, fills)) = results.settings.iter().find(like) else { continue };
        let part = |size: &Size, series: &usize, overwrite: &Measured<'_>| {
            let fill = fills.get(size)?.get(series)?;
            Some(overwrite.report.ops_per_second / fill.report.ops_per_second)
        };
        let grid = Grid {
            results,
            label: setting.label(),
            title: "throughput of overwrite as part of that of fillrandom",
            text: number::ratio,
            reference: Some((1.0, "fillrandom")),
            values: values(sizes, part),
        };
        all.extend(grid.plot());
    }
    all
}

/// The numbers that `of` finds; sizes for which there is none are left out.
fn values(sizes: &Sizes<'_>, of: impl Fn(&Size, &usize, &Measured<'_>) -> Option<f64>) -> BySize<f64> {
    let of_size = |(size, measured): (&Size, &BySeries<Measured<'_>>)| {
        let numbers = measured.iter().filter_map(|(series, one)| Some((*series, of(size, series, one)?)));
        let numbers: BySeries<f64> = numbers.collect();
        (!numbers.is_empty()).then_some((*size, numbers))
    };
    sizes.iter().filter_map(of_size).collect()
}

/// Numbers that make one plot: of a setting, by size and series.
struct Grid<'r> {
    results: &'r Results<'r>,
    label: String,
    /// What the numbers are.
    title: &'static str,
    text: fn(f64) -> String,
    reference: Option<(f64, &'static str)>,
    values: BySize<f64>,
}

impl<'r> Grid<'r> {
    /// Those of a metric; `None` if the setting does not have it.
    fn of(
        results: &'r Results<'r>,
        setting: &Setting<'_>,
        sizes: &Sizes<'_>,
        metric: &Metric,
    ) -> Option<Self> {
        (metric.applies)(setting).then(|| Self {
            results,
            label: setting.label(),
            title: metric.title,
            text: metric.text,
            reference: metric.reference,
            values: values(sizes, |_, _, measured| (metric.of)(measured.report)),
        })
    }

    /// Of how many different sizes there are values.
    fn sizes(&self) -> usize {
        self.values.keys().map(|(size, _)| size).collect::<BTreeSet<_>>().len()
    }

    /// By the size of values, if there are several; else as bars; `None` if there are no numbers.
    fn plot(&self) -> Option<Plot> {
        if self.sizes() > 1 {
            return self.lines();
        }
        let (size, values) = usual_size(&self.values)?;
        Some(self.bars(size, values))
    }

    fn lines(&self) -> Option<Plot> {
        let line = |series: usize, name| {
            // Of one size with several numbers of keys, the largest number counts.
            let points =
                self.values.iter().filter_map(|((size, _), numbers)| Some((*size, *numbers.get(&series)?)));
            let points: BTreeMap<usize, f64> = points.collect();
            let points = points.into_iter().map(|(size, value)| (size.max(1) as f64, value)).collect();
            Line { series, name, dashed: false, points }
        };
        let all = self.results.series.iter().enumerate();
        let lines = all.map(|(index, series)| line(index, series.label.as_str()));
        let lines: Vec<Line<'_>> = lines.filter(|line| !line.points.is_empty()).collect();
        let ticks: BTreeSet<usize> = self.values.keys().map(|(size, _)| (*size).max(1)).collect();
        let ticks: Vec<f64> = ticks.into_iter().map(|size| size as f64).collect();
        let scale = Scale::Log(*ticks.first()?, *ticks.last()?);
        let numbers = self.values.values().flat_map(|numbers| numbers.values()).copied();
        let plot = Lines {
            label: format!("{} of {} by the size of values", self.title, self.label),
            x: Axis {
                title: "bytes per value".to_owned(),
                scale,
                ticks: ticks.into_iter().map(|size| (size, number::size(size))).collect(),
            },
            y: Axis::new(self.title, Scale::fitting(numbers), self.text),
            lines,
            marked: true,
        };
        Some(Plot { title: self.label.clone(), detail: String::new(), svg: plot.draw() })
    }

    /// Bars of one size of values, one for each series.
    fn bars(&self, size: Size, numbers: &BySeries<f64>) -> Plot {
        let bar = |(index, series): (usize, &'r Series<'r>)| {
            let number = numbers.get(&index).map(|number| (*number, (self.text)(*number)));
            let value = number.map(Ok).or_else(|| series.reason().map(Err))?;
            Some(Bar { series: index, name: series.label.as_str(), value })
        };
        let plot = Bars {
            label: format!("{} of {}", self.title, self.label),
            bars: self.results.series.iter().enumerate().filter_map(bar).collect(),
            reference: self.reference.map(|(number, text)| (number, text.to_owned())),
        };
        let detail = format!("{}; {}", self.title, describe_size(size));
        Plot { title: self.label.clone(), detail, svg: plot.draw() }
    }
}
