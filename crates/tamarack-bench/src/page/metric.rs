//! What is plotted of a report as one number.

use crate::report::Report;

use super::number;
use super::results::Setting;

/// A number of a report.
pub struct Metric {
    /// What it is, with its unit.
    pub title: &'static str,
    /// `None` where it makes no sense, or was not found out.
    pub of: fn(&Report) -> Option<f64>,
    /// How it is written.
    pub text: fn(f64) -> String,
    /// Which settings have it.
    pub applies: fn(&Setting<'_>) -> bool,
    /// A number that is marked, and what it is.
    pub reference: Option<(f64, &'static str)>,
}

/// What opening a database took is no throughput.
fn is_work(setting: &Setting<'_>) -> bool {
    setting.workload != "recover"
}

/// What has a section of its own is left out.
fn is_usual_work(setting: &Setting<'_>) -> bool {
    is_work(setting) && !setting.is_ycsb() && !setting.is_beside_garbage()
}

fn writes_or_deletes(setting: &Setting<'_>) -> bool {
    ["fill", "overwrite", "delete", "ycsbload"].iter().any(|begin| setting.workload.starts_with(begin))
}

/// Bytes of keys and values in a second: of workloads whose operations have a value each.
pub const BYTES: Metric = Metric {
    title: "MB/s of keys and values",
    of: |report| {
        let values = report.user_bytes > report.ops * u64::from(report.key_size);
        (values && report.seconds > 0.0).then(|| report.user_bytes as f64 / 1e6 / report.seconds)
    },
    text: number::plain,
    applies: is_usual_work,
    reference: None,
};

/// Operations in a second.
pub const OPERATIONS: Metric = Metric {
    title: "operations per second",
    of: |report| Some(report.ops_per_second),
    text: number::count,
    applies: is_usual_work,
    reference: None,
};

/// The same of what YCSB mixes.
pub const YCSB: Metric = Metric { applies: |setting| setting.is_ycsb(), ..OPERATIONS };

/// Bytes to the device for each byte that was written.
pub const WRITE_AMPLIFICATION: Metric = Metric {
    title: "bytes to the device per byte written",
    of: |report| report.write_amplification,
    text: number::ratio,
    applies: writes_or_deletes,
    reference: Some((1.0, "1")),
};

/// Bytes from the device for each byte that was read.
pub const READ_AMPLIFICATION: Metric = Metric {
    title: "bytes from the device per byte read",
    of: |report| report.read_amplification,
    text: number::ratio,
    applies: is_work,
    reference: Some((1.0, "1")),
};

/// Bytes on disk for each live one.
pub const SPACE_AMPLIFICATION: Metric = Metric {
    title: "bytes on disk per live byte",
    of: |report| report.space_amplification,
    text: number::ratio,
    applies: writes_or_deletes,
    reference: Some((1.0, "live data")),
};

/// Processor time of one operation, with what it causes in the background.
pub const PROCESSOR: Metric = Metric {
    title: "processor time per operation",
    of: |report| (report.ops > 0).then(|| report.cpu_seconds * 1e6 / report.ops as f64),
    text: number::micros,
    applies: is_work,
    reference: None,
};

/// How much of the processors that takes: seconds of them in a second until all has settled.
pub const UTILIZATION: Metric = Metric {
    title: "processors in use",
    of: |report| (report.settled_seconds > 0.0).then(|| report.cpu_seconds / report.settled_seconds),
    text: number::percent,
    applies: is_work,
    reference: Some((1.0, "one processor")),
};

/// Until a database was open.
pub const OPENING: Metric = Metric {
    title: "time to open",
    of: |report| report.recovery.map(|recovery| recovery.open_seconds),
    text: number::seconds,
    applies: |setting| setting.workload == "recover",
    reference: None,
};

/// Until deleted values had been given back.
pub const RECLAIM: Metric = Metric {
    title: "time until the directory was below its bound",
    of: |report| report.reclaim.and_then(|reclaim| reclaim.below_bound_seconds),
    text: number::seconds,
    applies: |setting| setting.workload == "deletehalf",
    reference: None,
};
