//! Properties as text, under LevelDB's names.

use std::fmt::Write as _;

use crate::cube::stats::Stats;

/// The property `name`.
pub(super) fn property(stats: &Stats, name: &str) -> Option<String> {
    let name = name.strip_prefix("tamarack.").or_else(|| name.strip_prefix("leveldb."))?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        // A number may have a sign for Rust, and has none in a name.
        let digits = level.bytes().all(|byte| byte.is_ascii_digit());
        let level: usize = level.parse().ok().filter(|_| digits)?;
        return stats.levels.get(level).map(|level| level.tables.to_string());
    }
    match name {
        "stats" => Some(table(stats)),
        "sstables" => Some(tables_by_level(stats)),
        "approximate-memory-usage" => {
            let bytes = stats.memtable_bytes
                + stats.block_cache.bytes
                + stats.row_cache.bytes
                + stats.table_memory_bytes;
            Some(bytes.to_string())
        }
        _ => None,
    }
}

fn table(stats: &Stats) -> String {
    let mut out = String::from("Level  Tables  Size(MiB)  Entries     Values(MiB)\n");
    for level in stats.levels.iter().filter(|level| level.tables > 0) {
        let _infallible = writeln!(
            out,
            "{:>5}  {:>6}  {:>9.1}  {:>10}  {:>11.1}",
            level.level,
            level.tables,
            mebibytes(level.bytes),
            level.entries,
            mebibytes(level.referenced_value_bytes),
        );
    }
    for (name, cold) in [("Log", false), ("Cold", true)] {
        let segments = stats.segments.iter().filter(|segment| segment.is_cold() == cold);
        let (count, bytes) =
            segments.fold((0, 0), |(count, bytes), segment| (count + 1, bytes + segment.bytes));
        let _infallible = writeln!(out, "{name:<5}  {count:>6}  {:>9.1}", mebibytes(bytes));
    }
    let _infallible = writeln!(
        out,
        "Values: live {:.1} MiB, dead {:.1} MiB, hidden {:.1} MiB, leaving {:.1} MiB, holes {:.1} MiB",
        mebibytes(stats.live_value_bytes),
        mebibytes(stats.dead_value_bytes),
        mebibytes(stats.hidden_bytes),
        mebibytes(stats.leaving_bytes),
        mebibytes(stats.hole_bytes),
    );
    let _infallible = writeln!(
        out,
        "Disk: {:.1} MiB of at most {:.1}; space amplification {:.2}, write amplification {:.2}",
        mebibytes(stats.disk_bytes),
        mebibytes(stats.disk_bytes_max),
        stats.space_amplification,
        stats.write_amplification,
    );
    let _infallible = writeln!(
        out,
        "Collections: {}, of {} segments; {:.1} MiB copied, {} records left behind; {} segments moved",
        stats.collections,
        stats.collected_segments,
        mebibytes(stats.collection_bytes_written),
        stats.hidden_records,
        stats.moved_segments,
    );
    out
}

fn tables_by_level(stats: &Stats) -> String {
    let mut out = String::new();
    for level in &stats.levels {
        let _infallible = writeln!(
            out,
            "--- level {} ---\n{} tables, {} bytes, {} entries",
            level.level, level.tables, level.bytes, level.entries
        );
    }
    out
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
