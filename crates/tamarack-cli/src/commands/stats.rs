//! `stats`: the shape of a database, its space and its work, for a person or in JSON.

use clap::Args;
use serde_json::{Value, json};
use tamarack::{CollectionStats, ReaderStats, SegmentStats};

use crate::failure::{Outcome, Result};
use crate::open::Database;
use crate::output::{self, Align, Output, Table, bytes, count, percent};

/// Show levels, segments, space and work of a database
#[derive(Debug, Args)]
pub struct Stats {
    #[command(flatten)]
    database: Database,

    /// List every segment instead of the ten largest
    #[arg(long)]
    all_segments: bool,
}

impl Stats {
    /// Segments shown to a person who did not ask for all of them.
    const SEGMENTS_SHOWN: usize = 10;

    /// Runs the command.
    pub fn run(self, json: bool) -> Result<Outcome> {
        let db = self.database.open_for_reading()?;
        let stats = db.stats();
        let mut output = Output::new();
        if json {
            output.json(&to_json(&stats))?;
        } else {
            output.line(&summary(&stats))?;
            output.bytes(levels(&stats).as_bytes())?;
            output.line("")?;
            let shown = if self.all_segments { usize::MAX } else { Self::SEGMENTS_SHOWN };
            output.bytes(segments(&stats, shown).as_bytes())?;
        }
        output.finish()?;
        db.close()?;
        Ok(Outcome::Done)
    }
}

fn summary(stats: &tamarack::Stats) -> String {
    let cold = stats.segments.iter().filter(|segment| segment.is_cold());
    let cold: u64 = cold.map(|segment| segment.bytes).sum();
    let lines = [
        ("on disk", bytes(stats.disk_bytes)),
        ("  log segments", bytes(stats.log_bytes - cold)),
        ("  cold segments", bytes(cold)),
        ("  tables", bytes(stats.table_bytes)),
        ("  holes", format!("{} of the segments, given back", bytes(stats.hole_bytes))),
        ("  leaving", bytes(stats.leaving_bytes)),
        ("live data", bytes(stats.live_bytes)),
        ("live values", bytes(stats.live_value_bytes)),
        (
            "dead values",
            format!(
                "{} ({} of the segments)",
                bytes(stats.dead_value_bytes),
                percent(stats.dead_value_bytes, stats.log_bytes)
            ),
        ),
        ("hidden values", format!("{} (estimated)", bytes(stats.hidden_bytes))),
        (
            "space amplification",
            format!("{:.2}; the limit is {} on disk", stats.space_amplification, bytes(stats.disk_bytes_max)),
        ),
        (
            "moved segments",
            format!("{}, {} in memory", count(stats.moved_segments), bytes(stats.relocation_memory_bytes)),
        ),
        ("device reads per get", format!("at most {}", stats.worst_case_reads)),
        ("memtables", format!("{}, {} waiting", bytes(stats.memtable_bytes), stats.immutable_memtables)),
        ("last sequence", count(stats.last_sequence)),
    ];
    let mut text = String::new();
    let quarantined = quarantined(stats).into_iter().map(|name| ("quarantined", name));
    let readers = stats.readers.iter().map(|reader| ("reader", described(reader)));
    let warnings = stats.warnings.iter().map(|warning| ("warning", warning.clone()));
    let all = lines.into_iter().chain(since_opening(stats)).chain(readers).chain(quarantined).chain(warnings);
    for (name, value) in all {
        text += &format!("  {name:<22}{value}\n");
    }
    text
}

/// Who reads at a moment that has passed, since when, and what that keeps on disk.
fn described(reader: &ReaderStats) -> String {
    let name = reader.name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default();
    format!(
        "{}{name}, {} old, at sequence {}: holds {}, {} of it alone",
        reader.kind,
        output::seconds(reader.age_seconds),
        count(reader.sequence),
        bytes(reader.held_bytes),
        bytes(reader.held_alone_bytes)
    )
}

/// The names of the segments that are damaged and left alone.
fn quarantined(stats: &tamarack::Stats) -> Vec<String> {
    let damaged = |segment: &&SegmentStats| stats.quarantined_segments.contains(&segment.id);
    stats.segments.iter().filter(damaged).map(SegmentStats::file_name).collect()
}

/// What happened since the database was opened, as far as anything did. The counters of work live in the
/// process that has the database open, so a database opened only to be looked at has little to tell.
fn since_opening(stats: &tamarack::Stats) -> Vec<(&'static str, String)> {
    let cache = &stats.block_cache;
    let lookups = cache.hits + cache.misses;
    let rows = &stats.row_cache;
    let asked = rows.hits + rows.misses;
    let reads = stats.value_reads + stats.data_block_reads + stats.index_block_reads;
    let lines = [
        (
            stats.user_bytes_written > 0,
            "write amplification",
            format!("{:.2} of {}", stats.write_amplification, bytes(stats.user_bytes_written)),
        ),
        (
            stats.collections > 0,
            "collections",
            format!(
                "{}: {} freed, {} copied, {} left behind",
                count(stats.collections),
                output::plural(stats.collected_segments, "segment"),
                bytes(stats.collection_bytes_written),
                output::plural(stats.hidden_records, "record")
            ),
        ),
        (
            stats.sortings > 0,
            "sorted values",
            format!(
                "{}: {} copied, {} of index rewritten",
                bytes(stats.sorted_bytes),
                bytes(stats.sorting_bytes_written),
                bytes(stats.sorting_index_bytes_written)
            ),
        ),
        (
            lookups > 0,
            "block cache",
            format!("{}, {} hits", bytes(cache.bytes), percent(cache.hits, lookups)),
        ),
        (asked > 0, "row cache", format!("{}, {} hits", bytes(rows.bytes), percent(rows.hits, asked))),
        (
            reads > 0,
            "reads",
            format!(
                "{}, {}, {}",
                output::plural(stats.value_reads, "value"),
                output::plural(stats.data_block_reads, "data block"),
                output::plural(stats.index_block_reads, "index block")
            ),
        ),
        (stats.syncs > 0, "syncs", count(stats.syncs)),
        (
            stats.stalls > 0,
            "stalls",
            format!("{}, {}", count(stats.stalls), output::seconds(stats.stall_seconds)),
        ),
    ];
    lines.into_iter().filter(|(shown, _, _)| *shown).map(|(_, name, value)| (name, value)).collect()
}

fn levels(stats: &tamarack::Stats) -> String {
    let mut table = Table::new(&[
        ("level", Align::Left),
        ("tables", Align::Right),
        ("bytes", Align::Right),
        ("entries", Align::Right),
        ("value bytes", Align::Right),
    ]);
    let deepest = stats.levels.iter().rposition(|level| level.tables > 0).unwrap_or(0);
    for level in stats.levels.iter().take(deepest + 1) {
        table.row(vec![
            format!("L{}", level.level),
            count(level.tables),
            bytes(level.bytes),
            count(level.entries),
            bytes(level.referenced_value_bytes),
        ]);
    }
    table.render()
}

fn segments(stats: &tamarack::Stats, shown: usize) -> String {
    let mut table = Table::new(&[
        ("segment", Align::Left),
        ("bytes", Align::Right),
        ("live", Align::Right),
        ("dead", Align::Right),
        ("live share", Align::Right),
        ("state", Align::Left),
    ]);
    let mut segments: Vec<_> = stats.segments.iter().collect();
    if segments.len() > shown {
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.bytes));
    }
    for segment in segments.iter().take(shown) {
        table.row(vec![
            segment.file_name(),
            bytes(segment.bytes),
            bytes(segment.live_bytes),
            bytes(segment.dead_bytes),
            percent(segment.live_bytes, segment.bytes),
            if segment.sealed { "sealed".into() } else { "open".into() },
        ]);
    }
    let mut text = table.render();
    if segments.len() > shown {
        text += &format!(
            "  and {} (--all-segments lists them)\n",
            output::plural((segments.len() - shown) as u64, "smaller one")
        );
    }
    text
}

fn to_json(stats: &tamarack::Stats) -> Value {
    let levels: Vec<Value> = stats
        .levels
        .iter()
        .map(|level| {
            json!({
                "level": level.level, "tables": level.tables, "bytes": level.bytes, "entries": level.entries,
                "referenced_value_bytes": level.referenced_value_bytes,
            })
        })
        .collect();
    let segments: Vec<Value> = stats
        .segments
        .iter()
        .map(|segment| {
            json!({
                "id": segment.id, "file": segment.file_name(), "cold": segment.is_cold(), "bytes": segment.bytes, "live_bytes": segment.live_bytes,
                "hole_bytes": segment.hole_bytes, "dead_bytes": segment.dead_bytes, "sealed": segment.sealed,
            })
        })
        .collect();
    let mut all = json!({
        "disk_bytes": stats.disk_bytes, "log_bytes": stats.log_bytes, "table_bytes": stats.table_bytes,
        "live_value_bytes": stats.live_value_bytes, "dead_value_bytes": stats.dead_value_bytes,
        "memtable_bytes": stats.memtable_bytes, "immutable_memtables": stats.immutable_memtables,
        "last_sequence": stats.last_sequence, "snapshots": stats.snapshots,
        "oldest_snapshot_seconds": stats.oldest_snapshot_seconds,
        "operations_written": stats.operations_written, "user_bytes_written": stats.user_bytes_written, "log_bytes_written": stats.log_bytes_written,
        "flush_bytes_written": stats.flush_bytes_written,
        "flushes": stats.flushes, "compactions": stats.compactions,
        "write_amplification": stats.write_amplification,
        "compaction_bytes_read": stats.compaction_bytes_read,
        "compaction_bytes_written": stats.compaction_bytes_written,
        "block_cache": {
            "hits": stats.block_cache.hits, "misses": stats.block_cache.misses, "bytes": stats.block_cache.bytes,
        },
        "row_cache": {
            "hits": stats.row_cache.hits, "misses": stats.row_cache.misses, "bytes": stats.row_cache.bytes,
        },
        "value_reads": stats.value_reads, "value_read_bytes": stats.value_read_bytes,
        "index_block_reads": stats.index_block_reads, "data_block_reads": stats.data_block_reads,
        "open_tables": stats.open_tables, "table_memory_bytes": stats.table_memory_bytes,
        "unfiltered_tables": stats.unfiltered_tables,
        "running_jobs": stats.running_jobs,
        "syncs": stats.syncs, "stalls": stats.stalls, "stall_seconds": stats.stall_seconds,
        "worst_case_reads": stats.worst_case_reads, "warnings": stats.warnings, "levels": levels, "segments": segments,
    });
    let space = space_to_json(stats);
    if let (Value::Object(all), Value::Object(space)) = (&mut all, space) {
        all.extend(space);
    }
    all
}

/// What is alive, what it takes up, and what garbage collection did about it.
fn space_to_json(stats: &tamarack::Stats) -> Value {
    json!({
        "live_bytes": stats.live_bytes, "hidden_bytes": stats.hidden_bytes, "leaving_bytes": stats.leaving_bytes,
        "stock_bytes": stats.stock_bytes, "hole_bytes": stats.hole_bytes,
        "space_amplification": stats.space_amplification, "disk_bytes_max": stats.disk_bytes_max,
        "moved_segments": stats.moved_segments, "relocation_memory_bytes": stats.relocation_memory_bytes,
        "relocation_bytes": stats.relocation_bytes,
        "quarantined_segments": quarantined(stats),
        "readers": stats.readers.iter().map(reader_to_json).collect::<Vec<_>>(),
        "running_collections": stats.running_collections.iter().map(collection_to_json).collect::<Vec<_>>(),
        "collections": stats.collections, "collected_segments": stats.collected_segments,
        "recycled_segments": stats.recycled_segments,
        "collected_bytes": stats.collected_bytes, "collection_bytes_written": stats.collection_bytes_written,
        "sortings": stats.sortings, "sorted_bytes": stats.sorted_bytes,
        "sorting_bytes_written": stats.sorting_bytes_written,
        "sorting_index_bytes_written": stats.sorting_index_bytes_written, "value_runs": stats.value_runs,
        "punched_segments": stats.punched_segments,
        "collected_records": stats.collected_records, "hidden_records": stats.hidden_records,
    })
}

fn reader_to_json(reader: &ReaderStats) -> Value {
    json!({
        "kind": reader.kind.to_string(), "name": reader.name, "sequence": reader.sequence,
        "age_seconds": reader.age_seconds, "held_bytes": reader.held_bytes,
        "held_alone_bytes": reader.held_alone_bytes,
    })
}

fn collection_to_json(collection: &CollectionStats) -> Value {
    json!({
        "job": collection.job, "victims": collection.victims, "bytes": collection.bytes,
        "live_bytes": collection.live_bytes, "bytes_done": collection.bytes_done,
        "bytes_to_do": collection.bytes_to_do,
    })
}

#[cfg(test)]
mod tests {
    use tamarack::{Db, IterOptions, Options};

    use super::*;

    /// Nobody else can have open what the program has, so it meets readers of its own alone.
    #[test]
    fn readers_are_shown_with_what_they_are_called() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let db = Db::open(directory.path(), Options::default()).expect("an empty directory");
        let _snapshot = db.snapshot_named("nightly");
        let _iter = db.iter(&IterOptions::default()).expect("nothing to read");
        let stats = db.stats();
        let text = summary(&stats);
        assert!(text.contains("snapshot \"nightly\", ") && text.contains("  reader  "), "{text}");
        assert!(text.contains("iterator, ") && text.contains("holds 0 B, 0 B of it alone"), "{text}");
        let readers = to_json(&stats)["readers"].clone();
        assert_eq!((&readers[0]["kind"], &readers[0]["name"]), (&json!("snapshot"), &json!("nightly")));
        assert_eq!((&readers[1]["kind"], &readers[1]["name"]), (&json!("iterator"), &Value::Null));
    }
}
