//! Whole pages.

use super::*;
use crate::comparison::{Outcome, Row};
use crate::latency::{Buckets, Latency};
use crate::machine::Machine;
use crate::report::Report;

fn report(workload: &str, value_size: usize, rate: f64) -> Report {
    let mut histogram = crate::latency::histogram(3);
    (1..2000_u64).for_each(|ns| histogram.saturating_record(ns * ns));
    let ops = 1000;
    let json = serde_json::json!({
        "workload": workload, "ops": ops, "seconds": ops as f64 / rate, "ops_per_second": rate,
        "user_bytes": ops * (16 + value_size), "cpu_seconds": 0.01, "live_bytes": 1000, "disk_bytes": 1200,
        "latency_us": Latency::of(&histogram), "latency_histogram": Buckets::of(&histogram),
        "throughput": {"interval_seconds": 0.01, "ops": [10, 20, 30]},
        "disk_bytes_peak": 1300, "space_amplification": 1.2, "write_amplification": 1.05, "read_amplification": 4.2,
        "settled_seconds": 1.0, "found": 0, "verified": 0, "num": 1000, "key_size": 16, "value_size": value_size,
        "threads": 1, "batch_size": 1, "sync": false, "distribution": "uniform",
        "log_bytes_written": 1, "flush_bytes_written": 2, "compaction_bytes_written": 3, "collection_bytes_written": 4,
        "sorting_bytes_written": ops * (16 + value_size), "sorting_index_bytes_written": 0, "memory_bytes_peak": 3 << 20,
    });
    serde_json::from_value(json).expect("it has all fields that a report must have")
}

fn row(store: &str, outcome: Outcome) -> Row {
    Row { store: store.into(), version: "1.0".into(), options: "defaults".into(), outcome }
}

fn measured(store: &str, workload: &str, value_size: usize, rate: f64) -> Row {
    row(store, Outcome::Report(Box::new(report(workload, value_size, rate))))
}

fn comparison(rows: Vec<Row>) -> Comparison {
    Comparison { rows, ..Comparison::new(Machine::default(), "compare <all>".into()) }
}

/// The titles of the sections.
fn sections(html: &str) -> Vec<&str> {
    html.split("<h2>").skip(1).filter_map(|rest| rest.split_once("</h2>")).map(|(title, _)| title).collect()
}

/// The part of the page from a section's title to the next one's.
fn section<'h>(html: &'h str, title: &str) -> &'h str {
    let (_, rest) =
        html.split_once(&format!("<h2>{title}</h2>")).unwrap_or_else(|| panic!("no {title} in {html}"));
    rest.split("<h2>").next().expect("a split has a first part")
}

#[test]
fn a_plot_appears_when_there_are_data_for_it() {
    let html = page(&comparison(vec![measured("one", "fillrandom", 1024, 1000.0)]));
    let always = [
        "Throughput",
        "Write amplification",
        "Read amplification",
        "Space",
        "Processor time",
        "Processor utilisation",
    ];
    let expected: Vec<&str> = ["Stores"].into_iter().chain(always).collect();
    assert_eq!(
        sections(&html),
        [&expected[..], &["Latency by percentile", "Throughput over time", "All figures"]].concat()
    );
    let mut bare = report("readrandom", 1024, 1000.0);
    (bare.read_amplification, bare.space_amplification) = (None, None);
    bare.latency_histogram = Buckets::default();
    bare.throughput.ops.clear();
    let html = page(&comparison(vec![row("one", Outcome::Report(Box::new(bare)))]));
    assert_eq!(
        sections(&html),
        ["Stores", "Throughput", "Processor time", "Processor utilisation", "All figures"]
    );
    assert_eq!(sections(&page(&comparison(Vec::new()))), ["Stores"]);
}

#[test]
fn several_sizes_make_lines_and_one_makes_bars() {
    let rows = |sizes: &[usize]| {
        let both = |size: &usize| {
            [measured("one", "fillrandom", *size, 1e5), measured("two", "fillrandom", *size, 1e4)]
        };
        sizes.iter().flat_map(both).collect::<Vec<_>>()
    };
    let one = page(&comparison(rows(&[1024])));
    let throughput = section(&one, "Throughput");
    assert!(throughput.contains("bar s0") && throughput.contains("bar s1"), "{throughput}");
    assert!(throughput.contains(">100 k</text>") && !throughput.contains("class=\"line"), "{throughput}");
    let three = page(&comparison(rows(&[64, 1024, 65_536])));
    let throughput = section(&three, "Throughput");
    assert!(throughput.contains("line s0") && throughput.contains(">64 KiB</text>"), "{throughput}");
    assert_eq!(throughput.matches("class=\"mark s1").count(), 3);
    assert!(section(&three, "Write amplification").contains("line s1"));
}

#[test]
fn a_store_without_reports_is_a_row_that_says_so() {
    let reason = "cannot load <its library>";
    let rows = vec![
        measured("one", "fillrandom", 1024, 1000.0),
        row("two", Outcome::Missing(reason.into())),
        measured("three", "readrandom", 1024, 1000.0),
    ];
    let html = page(&comparison(rows));
    let escaped = "cannot load &lt;its library&gt;";
    assert!(section(&html, "Stores").contains(escaped) && section(&html, "All figures").contains(escaped));
    assert!(section(&html, "Throughput").contains("cannot load"), "beside the bars, too");
    let filled = section(&html, "All figures").split("<h3>").nth(1).expect("there is a table");
    assert!(
        filled.starts_with("fillrandom<") && !filled.contains(">three<"),
        "nobody says that three failed"
    );
    assert!(!html.contains("<its") && html.contains("compare &lt;all&gt;"), "texts are escaped");
}

#[test]
fn series_of_one_name_are_told_apart() {
    let of = |version: &str, options: &str| {
        let report = Outcome::Report(Box::new(report("fillrandom", 1024, 1000.0)));
        Row { store: "one".into(), version: version.into(), options: options.into(), outcome: report }
    };
    let html = page(&comparison(vec![of("1", "a"), of("1", "b"), of("2", "a")]));
    assert!(html.contains("<title>one 1 (1), one 1 (2) and one 2, measured side by side</title>"), "{html}");
}

#[test]
fn of_several_runs_the_median_is_shown() {
    let rates = [1000.0, 5000.0, 2000.0];
    let rows = rates.map(|rate| measured("one", "fillrandom", 1024, rate)).into_iter();
    let html = page(&comparison(rows.collect()));
    let throughput = section(&html, "Throughput");
    assert!(throughput.contains(">2 k</text>") && !throughput.contains(">5 k</text>"), "{throughput}");
    assert!(section(&html, "All figures").contains("3 (−50 to +150 %)"));
}

#[test]
fn a_workload_that_was_run_again_is_another_setting() {
    let mut again = report("readrandom", 1024, 5000.0);
    again.pass = 2;
    let rows =
        vec![measured("one", "readrandom", 1024, 1000.0), row("one", Outcome::Report(Box::new(again)))];
    let html = page(&comparison(rows));
    let throughput = section(&html, "Throughput");
    assert!(throughput.contains(">1 k</text>") && throughput.contains(">5 k</text>"), "{throughput}");
    assert!(throughput.contains("readrandom, pass 2"), "{throughput}");
}

#[test]
fn what_was_read_after_different_fills_is_not_one_measurement() {
    let read = |fill: &str, rate| {
        let loaded_by = Some(fill.to_owned());
        row("one", Outcome::Report(Box::new(Report { loaded_by, ..report("readseq", 1024, rate) })))
    };
    let mut all = comparison(vec![measured("one", "fillseq", 1024, 1.0), read("fillseq", 5000.0)]);
    let random = vec![measured("one", "fillrandom", 1024, 1.0), read("fillrandom", 1000.0)];
    all.join(comparison(random)).expect("it is of the same machine");
    let html = page(&all);
    let throughput = section(&html, "Throughput");
    assert!(throughput.contains(">5 k</text>") && throughput.contains(">1 k</text>"), "{throughput}");
    for label in ["readseq after fillseq", "readseq after fillrandom"] {
        assert!(throughput.contains(label), "{throughput}");
    }
    assert!(!html.contains("2 (−"), "nothing was run twice");
}

#[test]
fn sorting_memory_and_processors_stand_in_the_table() {
    let html = page(&comparison(vec![measured("one", "fillrandom", 1024, 1000.0)]));
    let figures = section(&html, "All figures");
    for (heading, figure) in [("sort amp", "1"), ("memory", "3 MiB"), ("cpu", "1 %")] {
        assert!(figures.contains(&format!("<th>{heading}</th>")), "{figures}");
        assert!(figures.contains(&format!("<td>{figure}</td>")), "{figure} in {figures}");
    }
    assert!(section(&html, "Processor utilisation").contains("Table 1"));
}

#[test]
fn overwriting_stands_beside_loading() {
    let rows = vec![measured("one", "fillrandom", 1024, 1000.0), measured("one", "overwrite", 1024, 650.0)];
    let html = page(&comparison(rows));
    assert!(section(&html, "Overwriting, beside loading").contains(">0.65</text>"), "{html}");
}

#[test]
fn collecting_is_a_plot_by_the_share_of_dead_values() {
    let of = |store: &str, workload: &str, dead_percent, rate| {
        let dead_percent = Some(dead_percent);
        row(store, Outcome::Report(Box::new(Report { dead_percent, ..report(workload, 1024, rate) })))
    };
    let rates = [(25, 500.0), (50, 550.0), (100, 600.0)];
    let rows = rates.iter().flat_map(|&(dead, rate)| {
        [
            of("one", "fillwhilecollecting", dead, rate),
            of("one", "fillbesidegarbage", dead, 2.0 * rate),
            of("two", "fillbesidegarbage", dead, 3.0 * rate),
        ]
    });
    let html = page(&comparison(rows.collect()));
    let collecting = section(&html, "GC (WiscKey, Figure 13)");
    assert_eq!(collecting.matches("<figure>").count(), 2, "puts per second, and their latency: {collecting}");
    for (line, count) in [("line s0", 2), ("line dashed s0", 2), ("line dashed s1", 2), ("line s1", 0)] {
        assert_eq!(collecting.matches(&format!("class=\"{line}\"")).count(), count, "{line}: {collecting}");
    }
    for mark in ["one, GC: 50 %, 550<", "one: 25 %, 1000<"] {
        let mark = mark.replace("1000", "1 k");
        assert!(collecting.contains(&mark), "no {mark} in {collecting}");
    }
    assert!(section(&html, "All figures").contains("<h3>fillwhilecollecting, 25 % dead</h3>"), "{html}");
    assert!(!sections(&html).contains(&"Throughput"), "it has a plot of its own");
    let alone = page(&comparison(vec![of("one", "fillbesidegarbage", 50, 1.0)]));
    assert!(!sections(&alone).contains(&"GC (WiscKey, Figure 13)"), "nobody has collected");
}

#[test]
fn ycsb_has_a_panel_for_each_workload_and_size() {
    let workloads = ["ycsbload", "ycsba", "ycsbc"];
    let rows = workloads.into_iter().flat_map(|workload| {
        [measured("one", workload, 1024, 1000.0), measured("one", workload, 16_384, 900.0)]
    });
    let html = page(&comparison(rows.collect()));
    assert_eq!(section(&html, "YCSB").matches("<figure>").count(), 6);
    assert!(!sections(&html).contains(&"Throughput"));
}

#[test]
fn the_page_is_one_small_file_that_loads_nothing() {
    let stores = ["one", "two", "three", "four", "five", "six"];
    let workloads =
        ["fillseq", "fillrandom", "overwrite", "readrandom", "readseq", "seekrandom", "ycsba", "ycsbe"];
    let of_store = |store: &'static str| {
        let of_size = move |size: usize| workloads.map(|workload| measured(store, workload, size, 1234.5));
        [64, 256, 1024, 4096, 16_384, 65_536].into_iter().flat_map(of_size)
    };
    let html = page(&comparison(stores.into_iter().flat_map(of_store).collect()));
    assert!(html.len() < 400_000, "{} bytes", html.len());
    for outside in ["<script", "<link", "<img", "http:", "https:", "@import", "url(", "src="] {
        assert!(!html.contains(outside), "{outside}");
    }
    for tag in ["section", "figure", "table", "tr", "svg", "tbody", "text", "dl"] {
        let (opened, closed) =
            (html.matches(&format!("<{tag}")).count(), html.matches(&format!("</{tag}>")).count());
        // A table's rows and a row's elements share their beginnings.
        assert!(opened == closed || matches!(tag, "t" | "tr"), "{opened} of {tag} opened, {closed} closed");
    }
}

#[test]
fn a_comparison_comes_back_from_its_json() {
    let rows = vec![measured("one", "fillrandom", 1024, 1000.0), row("two", Outcome::Missing("why".into()))];
    let before = comparison(rows);
    let json = serde_json::to_string(&before).expect("it serialises");
    let after: Comparison = serde_json::from_str(&json).expect("it comes back");
    assert_eq!(after, before);
    assert_eq!(page(&after), page(&before));
    let report = after.rows[0].report().expect("it was measured");
    assert_eq!(report.written.map(|written| written.collection_bytes_written), Some(4));
    assert_eq!((report.recovery, report.reclaim), (None, None));
}
