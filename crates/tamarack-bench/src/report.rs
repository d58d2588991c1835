//! What is reported about one workload.

use serde::{Deserialize, Serialize};

use crate::latency::{Buckets, Latency};
use crate::plan::Distribution;
use crate::reclaim::Reclaim;
use crate::timeline::Timeline;

/// The report; its field names are part of the interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub workload: String,
    /// How often it has been run on the same open store, this time included: the store is no longer as it was the first time.
    #[serde(default)]
    pub pass: u32,
    pub ops: u64,
    pub seconds: f64,
    pub ops_per_second: f64,
    /// Keys and values that were written, or found, by the workload.
    pub user_bytes: u64,
    /// Those of them that were found.
    #[serde(default)]
    pub user_bytes_read: u64,
    pub device_write_bytes: Option<u64>,
    pub device_read_bytes: Option<u64>,
    pub cpu_seconds: f64,
    /// `cpu_seconds` for each of `settled_seconds`: 1 is one processor all the time.
    #[serde(default)]
    pub cpu_utilization: f64,
    pub latency_us: Latency,
    /// All of the latencies: `[nanoseconds, operations]` for each range of times that occurred.
    #[serde(default)]
    pub latency_histogram: Buckets,
    #[serde(default)]
    pub throughput: Timeline,
    /// Keys and values that the database holds afterwards.
    pub live_bytes: u64,
    /// Space it occupies afterwards.
    pub disk_bytes: u64,
    /// The most space it occupied, looked at every 50 ms until everything had settled; of `recover` while it was opened, and after.
    pub disk_bytes_peak: u64,
    /// The most memory of the process that belongs to no file, looked at likewise, of `recover` while it opened. What it takes to
    /// measure is a part of it.
    #[serde(default)]
    pub memory_bytes_peak: Option<u64>,
    /// What the store says of itself.
    #[serde(flatten)]
    pub written: Option<Written>,
    /// `disk_bytes` for each of `live_bytes`.
    pub space_amplification: Option<f64>,
    /// `device_write_bytes` for each of `user_bytes` that was not read. `None` of workloads whose operations write nothing;
    /// who writes beside those of `readwhilewriting` is not one of them.
    pub write_amplification: Option<f64>,
    /// `device_read_bytes` for each of `user_bytes_read`. What background work has read until it settled is among them, and
    /// what the page cache gave is not.
    #[serde(default)]
    pub read_amplification: Option<f64>,
    /// Until a final sync was done and background work had settled.
    pub settled_seconds: f64,
    /// Reads that found their key.
    pub found: u64,
    /// Values whose content was compared.
    pub verified: u64,
    /// Of `readwhilewriting` alone: writes of the thread that only writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_meanwhile: Option<u64>,
    pub num: u64,
    pub key_size: u16,
    /// Bytes of a value; on average, where sizes vary.
    pub value_size: usize,
    /// How they vary, as [`ValueSize`](crate::ValueSize) writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_sizes: Option<String>,
    pub threads: u64,
    /// Operations a second at which they were due, if they did not follow each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    pub batch_size: u32,
    #[serde(default)]
    pub keys_per_read: u32,
    #[serde(default)]
    pub entries_per_seek: u32,
    /// The fill that has written the keys, if this is not one itself and they were not there before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_by: Option<String>,
    /// By which its keys were drawn, if they were.
    #[serde(default)]
    pub distribution: Distribution,
    #[serde(default)]
    pub cold: bool,
    /// Whether everything had been read before.
    #[serde(default)]
    pub warm: bool,
    /// The memory that the process was limited to, page cache included.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Whether every write was synced.
    pub sync: bool,
    /// Of how many writes of a thread one was, if not of every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_every: Option<u64>,
    /// Of `fillbesidegarbage` and `fillwhilecollecting` alone: how many percent of the values were dead that were there before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_percent: Option<u8>,
    /// Of `fillwhilecollecting` alone.
    #[serde(flatten)]
    pub collected: Option<Collected>,
    /// Of `recover` alone.
    #[serde(flatten)]
    pub recovery: Option<Recovery>,
    /// Of `deletehalf` alone.
    #[serde(flatten)]
    pub reclaim: Option<Reclaim>,
}

impl Report {
    /// Bytes that were written to sort values, with the index to them, for each byte of keys and values that was written. `None` if
    /// the store says nothing about that, or the workload has not written.
    pub fn sorting_amplification(&self) -> Option<f64> {
        let written = self.user_bytes.checked_sub(self.user_bytes_read).filter(|bytes| *bytes > 0)?;
        Some(self.written?.for_sorting() as f64 / written as f64)
    }
}

/// Bytes that a store says it has written; of `recover`, since the opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    pub log_bytes_written: u64,
    pub flush_bytes_written: u64,
    pub compaction_bytes_written: u64,
    pub collection_bytes_written: u64,
    #[serde(default)]
    pub sorting_bytes_written: u64,
    /// Bytes of index that compactions wrote so that it points to where the sorted values are; a part of `compaction_bytes_written`.
    #[serde(default)]
    pub sorting_index_bytes_written: u64,
}

impl Written {
    /// All that was written to sort values.
    pub fn for_sorting(&self) -> u64 {
        self.sorting_bytes_written + self.sorting_index_bytes_written
    }

    /// What is more than in `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            log_bytes_written: self.log_bytes_written - before.log_bytes_written,
            flush_bytes_written: self.flush_bytes_written - before.flush_bytes_written,
            compaction_bytes_written: self.compaction_bytes_written - before.compaction_bytes_written,
            collection_bytes_written: self.collection_bytes_written - before.collection_bytes_written,
            sorting_bytes_written: self.sorting_bytes_written - before.sorting_bytes_written,
            sorting_index_bytes_written: self.sorting_index_bytes_written
                - before.sorting_index_bytes_written,
        }
    }
}

/// What garbage collection has done on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collected {
    /// Files that garbage was taken out of.
    pub collected_files: u64,
    /// Bytes of what was alive in them and had to be written again.
    pub copied_bytes: u64,
    /// Bytes of disk that this gave back, once nobody reads there any more.
    pub freed_bytes: u64,
}

impl Collected {
    /// Counts `other` as well.
    pub fn add(&mut self, other: &Self) {
        self.collected_files += other.collected_files;
        self.copied_bytes += other.copied_bytes;
        self.freed_bytes += other.freed_bytes;
    }
}

/// What opening a database took whose writer was killed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Bytes of log that were replayed.
    pub recovered_bytes: u64,
    pub recovered_operations: u64,
    pub open_seconds: f64,
    /// Bytes of log that were not known to be durable, and were written and synced again.
    pub rewritten_bytes: u64,
}
