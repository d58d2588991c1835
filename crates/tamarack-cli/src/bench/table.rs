//! Reports as rows of a table.

use tamarack_bench::{Collected, Reclaim, Report, Written};

use crate::failure::Result;
use crate::output::{self, Output};

/// Prints the heading of the table.
pub fn print_heading(output: &mut Output) -> Result<()> {
    output.line(&row([
        "workload",
        "ops",
        "seconds",
        "ops/s",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "max µs",
        "cpu s",
        "cpu %",
        "dev write",
        "dev read",
        "write amp",
        "read amp",
        "on disk",
        "space amp",
        "memory",
    ]))
}

/// Prints a report as a row.
pub fn print_row(report: &Report, output: &mut Output) -> Result<()> {
    let optional = |bytes: Option<u64>| bytes.map_or("–".to_owned(), output::bytes);
    let ratio = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
    let micros = |time: f64| format!("{time:.1}");
    output.line(&row([
        &report.workload,
        &output::count(report.ops),
        &format!("{:.3}", report.seconds),
        &output::count(report.ops_per_second as u64),
        &micros(report.latency_us.p50),
        &micros(report.latency_us.p99),
        &micros(report.latency_us.p999),
        &micros(report.latency_us.max),
        &format!("{:.2}", report.cpu_seconds),
        &format!("{:.0}", report.cpu_utilization * 100.0),
        &optional(report.device_write_bytes),
        &optional(report.device_read_bytes),
        &ratio(report.write_amplification),
        &ratio(report.read_amplification),
        &output::bytes(report.disk_bytes),
        &ratio(report.space_amplification),
        &optional(report.memory_bytes_peak),
    ]))?;
    if let Some(written) = report.written.filter(|written| written.for_sorting() > 0) {
        output.line(&format!("  {}", describe_sorting(&written, report.sorting_amplification())))?;
    }
    if let Some(text) = describe_missed(report) {
        output.line(&format!("  {text}"))?;
    }
    if let Some(writes) = report.written_meanwhile {
        let rate = output::count((writes as f64 / report.seconds.max(f64::MIN_POSITIVE)) as u64);
        output.line(&format!("  {} written meanwhile, {rate}/s", output::count(writes)))?;
    }
    if let Some(percent) = report.dead_percent {
        let collected = report.collected.as_ref().map(describe_collected).unwrap_or_default();
        output.line(&format!("  beside {percent} % of dead values{collected}"))?;
    }
    match &report.reclaim {
        Some(reclaim) => output.line(&format!("  {}", describe(reclaim))),
        None => Ok(()),
    }
}

/// How many keys were there, if some that were asked for were not, and should have been.
fn describe_missed(report: &Report) -> Option<String> {
    let (found, asked) = (report.found, report.ops);
    let gets = ["readrandom", "multireadrandom", "readwhilewriting"].contains(&&*report.workload);
    (gets && found < asked)
        .then(|| format!("{} of {} keys were there", output::count(found), output::count(asked)))
}

fn describe_sorting(written: &Written, amplification: Option<f64>) -> String {
    let (values, index) =
        (output::bytes(written.sorting_bytes_written), output::bytes(written.sorting_index_bytes_written));
    let per = amplification.map_or(String::new(), |ratio| format!(", {ratio:.2} for each byte written"));
    format!("sorting wrote {values} of values and {index} of index{per}")
}

fn describe_collected(collected: &Collected) -> String {
    let (copied, freed) = (output::bytes(collected.copied_bytes), output::bytes(collected.freed_bytes));
    let files = output::count(collected.collected_files);
    format!(", collected from {files} files meanwhile: {freed} freed, {copied} copied")
}

fn describe(reclaim: &Reclaim) -> String {
    let bound = output::bytes(reclaim.bound_bytes);
    let below = match reclaim.below_bound_seconds {
        Some(seconds) => format!("below the bound of {bound} after {seconds:.1} s"),
        None => format!("never below the bound of {bound}"),
    };
    let (ratio, bytes) = (reclaim.rest_space_amplification, output::bytes(reclaim.rest_disk_bytes));
    format!(
        "{below}, at rest after {:.1} s with {ratio:.2} times the live bytes, {bytes}",
        reclaim.rest_seconds
    )
}

fn row(cells: [&str; 17]) -> String {
    const WIDTHS: [usize; 16] = [12, 9, 11, 9, 9, 9, 11, 8, 7, 10, 10, 10, 10, 10, 10, 10];
    let mut line = format!("{:<20}", cells[0]);
    for (cell, width) in cells[1..].iter().zip(WIDTHS) {
        line += &format!("{cell:>width$}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sorting_wrote_is_told() {
        let written = Written {
            log_bytes_written: 1 << 20,
            flush_bytes_written: 0,
            compaction_bytes_written: 4096,
            collection_bytes_written: 0,
            sorting_bytes_written: 1 << 20,
            sorting_index_bytes_written: 2048,
        };
        let expected = "sorting wrote 1.00 MiB of values and 2.00 KiB of index";
        assert_eq!(describe_sorting(&written, None), expected);
        let per_byte = format!("{expected}, 1.02 for each byte written");
        assert_eq!(describe_sorting(&written, Some(1.0195)), per_byte);
    }

    #[test]
    fn what_was_collected_is_told() {
        let collected = Collected { collected_files: 1234, copied_bytes: 1 << 20, freed_bytes: 3 << 20 };
        let expected = ", collected from 1,234 files meanwhile: 3.00 MiB freed, 1.00 MiB copied";
        assert_eq!(describe_collected(&collected), expected);
    }

    #[test]
    fn what_never_came_down_is_told() {
        let reclaim = Reclaim {
            bound_bytes: 150,
            below_bound_seconds: None,
            rest_seconds: 7.0,
            rest_disk_bytes: 151,
            rest_space_amplification: 1.51,
        };
        let expected =
            "never below the bound of 150 B, at rest after 7.0 s with 1.51 times the live bytes, 151 B";
        assert_eq!(describe(&reclaim), expected);
    }
}
