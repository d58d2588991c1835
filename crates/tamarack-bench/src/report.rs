//! What is reported about one workload.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::reclaim::Reclaim;

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
    /// What the store says of itself.
    #[serde(flatten)]
    pub written: Option<Written>,
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
    /// Of `readwhilewriting` alone: writes of the thread that only writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written_meanwhile: Option<u64>,
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

/// Bytes that a store says it has written; of `recover`, since the opening.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Written {
    pub log_bytes_written: u64,
    pub flush_bytes_written: u64,
    pub compaction_bytes_written: u64,
    pub collection_bytes_written: u64,
}

impl Written {
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
