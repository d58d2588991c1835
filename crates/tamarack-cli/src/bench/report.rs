//! What is reported about one workload, as a JSON object or a row of a table.

use hdrhistogram::Histogram;
use serde::Serialize;
use tamarack::Db;

use super::reclaim::Reclaim;
use crate::failure::Result;
use crate::output::{self, Output};

/// The report; its field names are part of the interface.
#[derive(Debug, Serialize)]
pub struct Report {
    pub workload: &'static str,
    pub ops: u64,
    pub seconds: f64,
    pub ops_per_second: f64,
    /// Keys and values that were written, or found, by the workload.
    pub user_bytes: u64,
    pub device_write_bytes: Option<u64>,
    pub device_read_bytes: Option<u64>,
    pub cpu_seconds: f64,
    pub latency_us: Latency,
    /// Keys and values that the database holds afterwards.
    pub live_bytes: u64,
    /// Space it occupies afterwards.
    pub disk_bytes: u64,
    /// The most space it occupied, looked at every 50 ms until everything had settled.
    pub disk_bytes_peak: u64,
    #[serde(flatten)]
    pub written: Written,
    /// `disk_bytes` for each of `live_bytes`.
    pub space_amplification: Option<f64>,
    /// `device_write_bytes` for each of `user_bytes`, of workloads that write.
    pub write_amplification: Option<f64>,
    /// Until a final sync was done and background work had settled.
    pub settled_seconds: f64,
    /// Reads that found their key.
    pub found: u64,
    /// Values whose content was compared.
    pub verified: u64,
    pub num: u64,
    pub key_size: u16,
    pub value_size: usize,
    pub threads: u64,
    pub batch_size: u32,
    pub sync: bool,
    /// Of `recover` alone.
    #[serde(flatten)]
    pub recovery: Option<Recovery>,
    /// Of `deletehalf` alone.
    #[serde(flatten)]
    pub reclaim: Option<Reclaim>,
}

/// What the engine says it has written; of `recover`, since the opening.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Written {
    pub log_bytes_written: u64,
    pub flush_bytes_written: u64,
    pub compaction_bytes_written: u64,
    pub collection_bytes_written: u64,
}

impl Written {
    /// By `db`, since it was opened.
    pub fn by(db: &Db) -> Self {
        let stats = db.stats();
        Self {
            log_bytes_written: stats.log_bytes_written,
            flush_bytes_written: stats.flush_bytes_written,
            compaction_bytes_written: stats.compaction_bytes_written,
            collection_bytes_written: stats.collection_bytes_written,
        }
    }

    /// What is more than in `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            log_bytes_written: self.log_bytes_written - before.log_bytes_written,
            flush_bytes_written: self.flush_bytes_written - before.flush_bytes_written,
            compaction_bytes_written: self.compaction_bytes_written - before.compaction_bytes_written,
            collection_bytes_written: self.collection_bytes_written - before.collection_bytes_written,
        }
    }
}

/// What opening a database took whose writer was killed.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Recovery {
    /// Bytes of log that were replayed.
    pub recovered_bytes: u64,
    pub recovered_operations: u64,
    pub open_seconds: f64,
    /// Bytes of log that were not known to be durable, and were written and synced again.
    pub rewritten_bytes: u64,
}

/// Times of single operations in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Latency {
    /// From a histogram of nanoseconds.
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        Self { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: histogram.max() as f64 / 1e3 }
    }
}

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
        "dev write",
        "dev read",
        "write amp",
        "on disk",
        "space amp",
    ]))
}

impl Report {
    /// Prints the report as a row.
    pub fn print_row(&self, output: &mut Output) -> Result<()> {
        let optional = |bytes: Option<u64>| bytes.map_or("–".to_owned(), output::bytes);
        let ratio = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let micros = |time: f64| format!("{time:.1}");
        output.line(&row([
            self.workload,
            &output::count(self.ops),
            &format!("{:.3}", self.seconds),
            &output::count(self.ops_per_second as u64),
            &micros(self.latency_us.p50),
            &micros(self.latency_us.p99),
            &micros(self.latency_us.p999),
            &micros(self.latency_us.max),
            &format!("{:.2}", self.cpu_seconds),
            &optional(self.device_write_bytes),
            &optional(self.device_read_bytes),
            &ratio(self.write_amplification),
            &output::bytes(self.disk_bytes),
            &ratio(self.space_amplification),
        ]))?;
        match &self.reclaim {
            Some(reclaim) => output.line(&format!("  {reclaim}")),
            None => Ok(()),
        }
    }
}

fn row(cells: [&str; 14]) -> String {
    const WIDTHS: [usize; 13] = [12, 9, 11, 9, 9, 9, 11, 8, 10, 10, 10, 10, 10];
    let mut line = format!("{:<13}", cells[0]);
    for (cell, width) in cells[1..].iter().zip(WIDTHS) {
        line += &format!("{cell:>width$}");
    }
    line
}
