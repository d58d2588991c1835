//! What a comparison came to, as text: medians over the rounds, and how many times the best other store that is.

use tamarack_bench::{Report, Workload};

use crate::compare::Run;
use crate::stores::Peer;

/// A figure of a report.
type Figure = fn(&Report) -> Option<f64>;

/// The columns behind the rate: heading, decimals, and where the figure is.
const COLUMNS: [(&str, usize, Figure); 8] = [
    ("p50 µs", 1, |report| Some(report.latency_us.p50)),
    ("p99.9 µs", 1, |report| Some(report.latency_us.p999)),
    ("max ms", 1, |report| Some(report.latency_us.max / 1e3)),
    ("cpu µs/op", 2, |report| Some(report.cpu_seconds * 1e6 / report.ops as f64)),
    ("MB/s settled", 0, |report| Some(report.user_bytes as f64 / 1e6 / report.settled_seconds)),
    ("write amp", 2, |report| report.write_amplification),
    ("read amp", 2, |report| report.read_amplification),
    ("space amp", 2, |report| report.space_amplification),
];

/// A line about a run that has just ended.
pub fn brief(run: &Run) -> String {
    let rates =
        run.reports.iter().map(|report| format!("{} {:.0}/s", report.workload, report.ops_per_second));
    let failure = run.failure.iter().map(|failure| format!("failed: {failure}"));
    format!("{}: {}", run.store.name(), rates.chain(failure).collect::<Vec<_>>().join(", "))
}

/// Prints a table for each workload.
pub fn print(stores: &[Peer], workloads: &[Workload], runs: &[Run]) {
    for (place, workload) in workloads.iter().enumerate() {
        println!("\n{}", workload.name());
        let headings: String = COLUMNS.iter().map(|(heading, ..)| format!("{heading:>13}")).collect();
        println!("{:<14}{:>12}{:>25}{:>14}{headings}", "store", "ops/s", "least to most", "× best other");
        let medians: Vec<(Peer, f64)> =
            (stores.iter()).filter_map(|&store| Some((store, median(&rates(store, place, runs))?))).collect();
        for &store in stores {
            println!("{}", row(store, place, runs, &medians));
        }
    }
}

fn row(store: Peer, place: usize, runs: &[Run], medians: &[(Peer, f64)]) -> String {
    let rates = rates(store, place, runs);
    let Some(rate) = median(&rates) else {
        let why = own(store, runs).find_map(|run| run.failure.as_deref()).unwrap_or("not run");
        return format!("{:<14}  {why}", store.name());
    };
    let best_other = medians.iter().filter(|(other, _)| *other != store).map(|(_, rate)| *rate);
    let ratio = best_other.reduce(f64::max).map_or("–".to_owned(), |best| format!("{:.2}", rate / best));
    let range = format!("{:.0}–{:.0}", rates[0], rates[rates.len() - 1]);
    let columns: String = (COLUMNS.iter())
        .map(|(_, decimals, figure)| {
            let median = median(&figures(store, place, runs, *figure));
            let text = median.map_or("–".to_owned(), |number| format!("{number:.decimals$}"));
            format!("{text:>13}")
        })
        .collect();
    let failures = own(store, runs).filter(|run| run.failure.is_some()).count();
    let failed = if failures > 0 { format!("  ({failures} runs failed)") } else { String::new() };
    format!("{:<14}{rate:>12.0}{range:>25}{ratio:>14}{columns}{failed}", store.name())
}

fn own(store: Peer, runs: &[Run]) -> impl Iterator<Item = &Run> {
    runs.iter().filter(move |run| run.store == store)
}

fn rates(store: Peer, place: usize, runs: &[Run]) -> Vec<f64> {
    figures(store, place, runs, |report| Some(report.ops_per_second))
}

/// A figure of every round, sorted.
fn figures(store: Peer, place: usize, runs: &[Run], figure: Figure) -> Vec<f64> {
    let mut figures: Vec<f64> = own(store, runs).filter_map(|run| figure(run.reports.get(place)?)).collect();
    figures.sort_by(f64::total_cmp);
    figures
}

/// The middle of `sorted`.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = sorted[(sorted.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
    }
}
