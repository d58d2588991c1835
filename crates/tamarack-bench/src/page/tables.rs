//! Tables: who was measured, and all figures.

use crate::report::Report;

use super::metric;
use super::number;
use super::results::{Measured, Results, Series, Setting, Sizes};
use super::svg::{escape, series_class};

/// Who was measured, and why somebody was not.
pub fn stores(results: &Results<'_>) -> String {
    let mut text = String::from("<section>\n<h2>Stores</h2>\n<table class=\"stores\">\n");
    text +=
        "<thead><tr><th>store</th><th>version</th><th>options</th><th>measured</th></tr></thead>\n<tbody>\n";
    for (index, series) in results.series.iter().enumerate() {
        let reports = match series.reports {
            1 => "1 report".to_owned(),
            reports => format!("{reports} reports"),
        };
        let measured = [&reports]
            .into_iter()
            .filter(|_| series.reports > 0 || series.missing.is_empty())
            .map(|reports| escape(reports));
        let missing =
            series.missing.iter().map(|reason| format!("<span class=\"none\">{}</span>", escape(reason)));
        let state: Vec<String> = measured.chain(missing).collect();
        text += &format!(
            "<tr><th class=\"name {}\">{}</th><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            series_class(index),
            escape(&series.label),
            escape(series.version),
            escape(series.options),
            state.join("<br>")
        );
    }
    text + "</tbody>\n</table>\n</section>\n"
}

/// A column: its heading, and what it says of a report.
type Column = (&'static str, fn(&Report) -> Option<String>);

const COLUMNS: [Column; 16] = [
    ("ops/s", |report| Some(number::whole(report.ops_per_second as u64))),
    ("MB/s", |report| (metric::BYTES.of)(report).map(number::plain)),
    ("mean", |report| Some(number::micros(report.latency_us.mean))),
    ("p50", |report| Some(number::micros(report.latency_us.p50))),
    ("p90", |report| Some(number::micros(report.latency_us.p90))),
    ("p99", |report| Some(number::micros(report.latency_us.p99))),
    ("p99.9", |report| Some(number::micros(report.latency_us.p999))),
    ("p99.99", |report| Some(number::micros(report.latency_us.p9999))),
    ("max", |report| Some(number::micros(report.latency_us.max))),
    ("cpu/op", |report| (metric::PROCESSOR.of)(report).map(metric::PROCESSOR.text)),
    ("cpu", |report| (metric::UTILIZATION.of)(report).map(metric::UTILIZATION.text)),
    ("write amp", |report| report.write_amplification.map(number::ratio)),
    ("read amp", |report| report.read_amplification.map(number::ratio)),
    ("space amp", |report| report.space_amplification.map(number::ratio)),
    ("sort amp", |report| report.sorting_amplification().map(number::ratio)),
    ("memory", |report| report.memory_bytes_peak.map(number::memory)),
];

/// Every figure, a table for each setting.
pub fn figures(results: &Results<'_>) -> String {
    if results.settings.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<section>\n<h2>All figures</h2>\n<p class=\"note\">Times are those of single operations, of \
        whole batches where there are such, of all keys that are read at once; the best throughput is bold. Of what is written, \
        “sort amp” is the part of sorting values, for each byte of keys and values; “memory” is the most that belonged to no \
        file, with what measuring takes. Of several runs the one with \
        the median throughput is shown, with the distance of the slowest and the fastest from it.</p>\n",
    );
    for (setting, sizes) in &results.settings {
        text += &table(results, setting, sizes);
    }
    text + "</section>\n"
}

fn table(results: &Results<'_>, setting: &Setting<'_>, sizes: &Sizes<'_>) -> String {
    let mut text =
        format!("<h3>{}</h3>\n<div class=\"wide\"><table class=\"figures\">\n", escape(&setting.label()));
    text += "<thead><tr><th>value</th><th>keys</th><th class=\"name\">store</th>";
    for (heading, _) in COLUMNS {
        text += &format!("<th>{heading}</th>");
    }
    text += "<th>runs</th></tr></thead>\n";
    for ((size, num), measured) in sizes {
        let best = measured.values().map(|one| one.report.ops_per_second).fold(0.0, f64::max);
        let row = |(index, series): (usize, &Series<'_>)| {
            let cells = match measured.get(&index) {
                Some(measured) => cells(measured, best),
                None => none(&series.reason()?),
            };
            let label = escape(&series.label);
            Some(format!("<th class=\"name {}\">{label}</th>{cells}</tr>\n", series_class(index)))
        };
        let rows: Vec<String> = results.series.iter().enumerate().filter_map(row).collect();
        let (size, num, span) = (number::size(*size as f64), number::whole(*num), rows.len());
        text += &format!("<tbody>\n<tr><td rowspan=\"{span}\">{size}</td><td rowspan=\"{span}\">{num}</td>");
        text += &rows.join("<tr>");
        text += "</tbody>\n";
    }
    text + "</table></div>\n"
}

fn none(reason: &str) -> String {
    format!("<td class=\"none\" colspan=\"{}\">{}</td>", COLUMNS.len() + 1, escape(reason))
}

fn cells(measured: &Measured<'_>, best: f64) -> String {
    let is_best = measured.report.ops_per_second == best;
    let mut text = String::new();
    for (heading, of) in COLUMNS {
        let value = of(measured.report).unwrap_or_else(|| "–".to_owned());
        let class = if is_best && heading == "ops/s" { " class=\"best\"" } else { "" };
        text += &format!("<td{class}>{}</td>", escape(&value));
    }
    text + &format!("<td>{}</td>", escape(&measured.describe_runs()))
}
