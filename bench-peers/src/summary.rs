//! What a trial came to, as text: medians over the rounds, and how many times the best other store that is. What is no store,
//! and bounds them, is never the best.

use std::fmt::Write;

use tamarack_bench::Report;

use crate::stores::Peer;
use crate::trial::{Run, Trial};

/// A figure of a report.
type Figure = fn(&Report) -> Option<f64>;

/// The columns behind the rate: heading, decimals, and where the figure is.
const COLUMNS: [(&str, usize, Figure); 11] = [
    ("p50 µs", 1, |report| Some(report.latency_us.p50)),
    ("p99.9 µs", 1, |report| Some(report.latency_us.p999)),
    ("max ms", 1, |report| Some(report.latency_us.max / 1e3)),
    ("cpu µs/op", 2, |report| Some(report.cpu_seconds * 1e6 / report.ops as f64)),
    ("cpu %", 0, |report| Some(report.cpu_utilization * 100.0)),
    ("MB/s settled", 0, |report| Some(report.user_bytes as f64 / 1e6 / report.settled_seconds)),
    ("write amp", 2, |report| report.write_amplification),
    ("sort amp", 2, Report::sorting_amplification),
    ("read amp", 2, |report| report.read_amplification),
    ("space amp", 2, |report| report.space_amplification),
    ("memory MiB", 0, |report| report.memory_bytes_peak.map(|bytes| bytes as f64 / f64::from(1 << 20))),
];

/// A figure over the rounds.
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

/// What a store came to in one workload.
struct Line {
    store: Peer,
    /// The rate and how many times the median of the best other store its median is; or why there is none.
    rate: Result<(Spread, Option<f64>), String>,
    /// Of each column.
    figures: Vec<Option<Spread>>,
    /// How many runs of the store have failed.
    failures: usize,
}

/// A line about a run that has just ended.
pub fn brief(run: &Run) -> String {
    let rates =
        run.reports.iter().map(|report| format!("{} {:.0}/s", report.workload, report.ops_per_second));
    let failure = run.failure.iter().map(|failure| format!("failed: {failure}"));
    format!("{}: {}", run.store.name(), rates.chain(failure).collect::<Vec<_>>().join(", "))
}

/// A table for each workload, for a terminal.
pub fn text(trial: &Trial, runs: &[Run]) -> String {
    let mut text = String::new();
    for (place, workload) in trial.work.workloads.iter().enumerate() {
        let headings: String = COLUMNS.iter().map(|(heading, ..)| format!("{heading:>13}")).collect();
        text += &format!("\n{}\n", workload.name());
        text += &format!(
            "{:<14}{:>12}{:>25}{:>14}{headings}\n",
            "store", "ops/s", "least to most", "× best other"
        );
        for line in lines(trial, place, runs) {
            text += &line.text();
            text.push('\n');
        }
    }
    text
}

/// A table for each workload, in Markdown: medians, with the range behind them where there were several rounds.
pub fn markdown(trial: &Trial, runs: &[Run]) -> String {
    let mut text = String::new();
    for (place, workload) in trial.work.workloads.iter().enumerate() {
        let headings: Vec<&str> = COLUMNS.iter().map(|(heading, ..)| *heading).collect();
        let headings = headings.join(" | ");
        let rule = "---|".repeat(COLUMNS.len() + 3);
        write!(text, "\n| {} | ops/s | × best other | {headings} |\n|{rule}\n", workload.name())
            .expect("a text takes everything");
        for line in lines(trial, place, runs) {
            text += &format!("| {} |\n", line.cells().join(" | "));
        }
    }
    text
}

fn lines(trial: &Trial, place: usize, runs: &[Run]) -> Vec<Line> {
    let rate = |store| spread(store, place, runs, |report| Some(report.ops_per_second));
    let medians: Vec<(Peer, f64)> =
        trial.stores.iter().filter_map(|&store| Some((store, rate(store)?.median))).collect();
    let line = |&store: &Peer| {
        let own = || runs.iter().filter(move |run| run.store == store);
        let others = medians.iter().filter(|(other, _)| *other != store && other.is_store());
        let others = others.map(|(_, median)| *median);
        let best = others.reduce(f64::max);
        let measured = rate(store).map(|rate| {
            let times = best.map(|best| rate.median / best);
            (rate, times)
        });
        let why = || own().find_map(|run| run.failure.clone()).unwrap_or_else(|| "not run".to_owned());
        Line {
            store,
            rate: measured.ok_or_else(why),
            figures: COLUMNS.iter().map(|(.., figure)| spread(store, place, runs, *figure)).collect(),
            failures: own().filter(|run| run.failure.is_some()).count(),
        }
    };
    trial.stores.iter().map(line).collect()
}

impl Line {
    fn text(&self) -> String {
        let name = self.store.name();
        let (rate, times) = match &self.rate {
            Ok(measured) => measured,
            Err(why) => return format!("{name:<14}  {why}"),
        };
        let range = format!("{:.0}–{:.0}", rate.least, rate.most);
        let columns = self.figures.iter().zip(COLUMNS).map(|(figure, (_, decimals, _))| {
            let text = figure.as_ref().map(|spread| format!("{:.decimals$}", spread.median));
            format!("{:>13}", text.unwrap_or_else(|| "–".to_owned()))
        });
        let columns: String = columns.collect();
        let times = times.map_or("–".to_owned(), |times| format!("{times:.2}"));
        format!("{name:<14}{:>12.0}{range:>25}{times:>14}{columns}{}", rate.median, self.failed())
    }

    fn cells(&self) -> Vec<String> {
        let name = self.store.name();
        let (rate, times) = match &self.rate {
            Ok(measured) => measured,
            // A cell cannot have bars, nor ends of lines.
            Err(why) => return vec![name.to_owned(), why.replace('|', "/").replace('\n', " ")],
        };
        let times = times.map_or("–".to_owned(), |times| format!("{times:.2}"));
        let cells = self.figures.iter().zip(COLUMNS).map(|(figure, (_, decimals, _))| {
            figure.as_ref().map_or("–".to_owned(), |spread| spread.cell(decimals))
        });
        [name.to_owned(), rate.cell(0) + &self.failed(), times].into_iter().chain(cells).collect()
    }

    fn failed(&self) -> String {
        if self.failures > 0 { format!("  ({} runs failed)", self.failures) } else { String::new() }
    }
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Option<Self> {
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let median = (figures[(figures.len() - 1) / 2] + figures[figures.len() / 2]) / 2.0;
        Some(Self { least, median, most })
    }

    fn cell(&self, decimals: usize) -> String {
        let text = |figure: f64| format!("{figure:.decimals$}");
        let (least, median, most) = (text(self.least), text(self.median), text(self.most));
        if least == most { median } else { format!("{median} ({least}–{most})") }
    }
}

/// A figure of every round.
fn spread(store: Peer, place: usize, runs: &[Run], figure: Figure) -> Option<Spread> {
    let own = runs.iter().filter(|run| run.store == store);
    Spread::of(own.filter_map(|run| figure(run.reports.get(place)?)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::measure;
    use crate::trial::tests::trial;

    #[test]
    fn the_median_is_in_the_middle() {
        let spread = |figures: &[f64]| Spread::of(figures.to_vec()).map(|spread| spread.cell(1));
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0]).as_deref(), Some("3.0"));
        assert_eq!(spread(&[2.0, 1.0]).as_deref(), Some("1.5 (1.0–2.0)"));
        assert_eq!(spread(&[9.0, 1.0, 2.0]).as_deref(), Some("2.0 (1.0–9.0)"));
    }

    /// A run of a store whose only workload had this rate.
    fn run(store: Peer, ops_per_second: f64, trial: &Trial) -> Run {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut reports = Vec::new();
        let mut tell = |report: &Report| reports.push(Report { ops_per_second, ..report.clone() });
        measure(Peer::Bare, directory.path(), &trial.work, &mut tell).expect("a file can be written");
        Run { store, reports, failure: None }
    }

    #[test]
    fn what_is_no_store_is_never_the_best() {
        let stores = vec![Peer::Tamarack, Peer::Rocksdb, Peer::Bare];
        let trial = trial(stores, "fillseq --num 10");
        let runs = [(Peer::Tamarack, 200.0), (Peer::Rocksdb, 100.0), (Peer::Bare, 1000.0)]
            .map(|(store, rate)| run(store, rate, &trial));
        let times =
            lines(&trial, 0, &runs).into_iter().map(|line| line.rate.ok().and_then(|(_, times)| times));
        assert_eq!(times.collect::<Vec<_>>(), [Some(2.0), Some(0.5), Some(5.0)]);
    }
}
