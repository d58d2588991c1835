//! Properties as text, under LevelDB's names.

use std::fmt::Write as _;

use crate::cube::stats::Stats;

/// The property `name`.
pub(super) fn property(stats: &Stats, name: &str) -> Option<String> {
    let name = name.strip_prefix("tamarack.").or_else(|| name.strip_prefix("leveldb."))?;
    if let Some(level) = name.strip_prefix("num-files-at-level") {
        let level: usize = level.parse().ok()?;
        return stats.levels.get(level).map(|level| level.tables.to_string());
    }
    match name {
        "stats" => Some(table(stats)),
        "sstables" => Some(tables_by_level(stats)),
        "approximate-memory-usage" => {
            let bytes = stats.memtable_bytes + stats.block_cache.bytes + stats.table_memory_bytes;
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
    let _infallible = writeln!(
        out,
        "Log    {:>6}  {:>9.1}  live {:.1} MiB, dead {:.1} MiB; write amplification {:.2}",
        stats.segments.len(),
        mebibytes(stats.log_bytes),
        mebibytes(stats.live_value_bytes),
        mebibytes(stats.dead_value_bytes),
        stats.write_amplification,
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
