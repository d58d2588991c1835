//! What the engine reports, as JSON: one object each, under the names of the engine's own fields.

use serde_json::{Map, Value, json};
use tamarack::{
    CheckReport, CheckpointReport, CollectionStats, Error, GcReport, LevelStats, LostRange, ReaderStats,
    RecoveryReport, RepairReport, RepairedManifest, SegmentStats, Stats,
};

/// Figures about a database.
pub fn stats(stats: &Stats) -> Value {
    let parts = [amounts(stats), work(stats), collection(stats), shape(stats)];
    let fields = parts.into_iter().filter_map(|part| match part {
        Value::Object(fields) => Some(fields),
        _ => None,
    });
    Value::Object(fields.flatten().collect::<Map<_, _>>())
}

/// The figure `name` among `stats`; a point leads into an object, as in `block_cache.hits`. `None` if there is none, or
/// it is no number.
pub fn number(stats: &Value, name: &str) -> Option<f64> {
    name.split('.').try_fold(stats, |value, part| value.get(part))?.as_f64()
}

fn amounts(stats: &Stats) -> Value {
    json!({
        "disk_bytes": stats.disk_bytes, "disk_bytes_max": stats.disk_bytes_max, "log_bytes": stats.log_bytes,
        "table_bytes": stats.table_bytes, "live_bytes": stats.live_bytes, "hidden_bytes": stats.hidden_bytes,
        "leaving_bytes": stats.leaving_bytes,
        "stock_bytes": stats.stock_bytes, "hole_bytes": stats.hole_bytes,
        "live_value_bytes": stats.live_value_bytes, "dead_value_bytes": stats.dead_value_bytes,
        "space_amplification": stats.space_amplification, "memtable_bytes": stats.memtable_bytes,
        "immutable_memtables": stats.immutable_memtables, "table_memory_bytes": stats.table_memory_bytes,
        "unfiltered_tables": stats.unfiltered_tables,
        "open_tables": stats.open_tables, "last_sequence": stats.last_sequence,
        "worst_case_reads": stats.worst_case_reads,
    })
}

fn work(stats: &Stats) -> Value {
    json!({
        "user_bytes_written": stats.user_bytes_written, "operations_written": stats.operations_written,
        "log_bytes_written": stats.log_bytes_written, "flush_bytes_written": stats.flush_bytes_written,
        "compaction_bytes_read": stats.compaction_bytes_read,
        "compaction_bytes_written": stats.compaction_bytes_written,
        "write_amplification": stats.write_amplification, "flushes": stats.flushes,
        "compactions": stats.compactions, "running_jobs": stats.running_jobs, "syncs": stats.syncs, "stalls": stats.stalls,
        "stall_seconds": stats.stall_seconds, "value_reads": stats.value_reads,
        "value_read_bytes": stats.value_read_bytes, "index_block_reads": stats.index_block_reads,
        "data_block_reads": stats.data_block_reads,
        "block_cache": {
            "hits": stats.block_cache.hits, "misses": stats.block_cache.misses, "bytes": stats.block_cache.bytes,
        },
        "row_cache": {
            "hits": stats.row_cache.hits, "misses": stats.row_cache.misses, "bytes": stats.row_cache.bytes,
        },
    })
}

fn collection(stats: &Stats) -> Value {
    json!({
        "collections": stats.collections, "collected_segments": stats.collected_segments,
        "recycled_segments": stats.recycled_segments,
        "collected_bytes": stats.collected_bytes, "collection_bytes_written": stats.collection_bytes_written,
        "sortings": stats.sortings, "sorted_bytes": stats.sorted_bytes,
        "sorting_bytes_written": stats.sorting_bytes_written,
        "sorting_index_bytes_written": stats.sorting_index_bytes_written, "value_runs": stats.value_runs,
        "punched_segments": stats.punched_segments, "collected_records": stats.collected_records,
        "hidden_records": stats.hidden_records, "moved_segments": stats.moved_segments,
        "relocation_memory_bytes": stats.relocation_memory_bytes, "relocation_bytes": stats.relocation_bytes,
        "quarantined_segments": stats.quarantined_segments,
        "running_collections": stats.running_collections.iter().map(running).collect::<Vec<_>>(),
    })
}

fn shape(stats: &Stats) -> Value {
    json!({
        "snapshots": stats.snapshots, "oldest_snapshot_seconds": stats.oldest_snapshot_seconds,
        "warnings": stats.warnings,
        "readers": stats.readers.iter().map(reader).collect::<Vec<_>>(),
        "levels": stats.levels.iter().map(level).collect::<Vec<_>>(),
        "segments": stats.segments.iter().map(segment).collect::<Vec<_>>(),
    })
}

fn running(collection: &CollectionStats) -> Value {
    json!({
        "job": collection.job, "victims": collection.victims, "bytes": collection.bytes,
        "live_bytes": collection.live_bytes, "bytes_done": collection.bytes_done,
        "bytes_to_do": collection.bytes_to_do,
    })
}

fn reader(reader: &ReaderStats) -> Value {
    json!({
        "kind": reader.kind.to_string(), "name": reader.name, "sequence": reader.sequence,
        "age_seconds": reader.age_seconds, "held_bytes": reader.held_bytes,
        "held_alone_bytes": reader.held_alone_bytes,
    })
}

fn level(level: &LevelStats) -> Value {
    json!({
        "level": level.level, "tables": level.tables, "bytes": level.bytes, "entries": level.entries,
        "referenced_value_bytes": level.referenced_value_bytes,
    })
}

fn segment(segment: &SegmentStats) -> Value {
    json!({
        "id": segment.id, "file": segment.file_name(), "cold": segment.is_cold(), "bytes": segment.bytes,
        "live_bytes": segment.live_bytes, "hole_bytes": segment.hole_bytes, "dead_bytes": segment.dead_bytes,
        "sealed": segment.sealed,
    })
}

/// What garbage collection did.
pub fn gc(report: &GcReport) -> Value {
    json!({
        "segments": report.segments, "bytes_before": report.bytes_before, "bytes_after": report.bytes_after,
        "records": report.records, "punched": report.punched, "hole_bytes": report.hole_bytes,
        "hidden": report.hidden,
    })
}

/// What a checkpoint shares and copies.
pub fn checkpoint(report: &CheckpointReport) -> Value {
    json!({
        "linked_files": report.linked_files, "linked_bytes": report.linked_bytes,
        "copied_files": report.copied_files, "copied_bytes": report.copied_bytes,
    })
}

/// What a check found.
pub fn check(report: &CheckReport) -> Value {
    json!({
        "clean": report.is_clean(), "tables": report.tables, "segments": report.segments,
        "entries": report.entries, "hidden_references": report.hidden_references, "records": report.records,
        "bytes_read": report.bytes_read, "quarantined_segments": report.quarantined_segments,
        "problems": report.problems.iter().map(problem).collect::<Vec<_>>(),
    })
}

/// What opening found in the log.
pub fn recovery(report: &RecoveryReport) -> Value {
    let torn = report.torn_tail.map(
        |torn| json!({ "segment": torn.segment, "offset": torn.offset, "ignored_bytes": torn.ignored_bytes }),
    );
    json!({
        "log_bytes": report.log_bytes, "batches": report.batches, "operations": report.operations,
        "rewritten_bytes": report.rewritten_bytes, "torn_tail": torn, "seconds": report.seconds,
    })
}

/// What a repair found and did.
pub fn repair(report: &RepairReport) -> Value {
    json!({
        "clean": report.is_clean(), "changed": report.changed, "dry_run": report.dry_run,
        "manifest_whole": report.manifest == RepairedManifest::Whole, "tables": report.tables,
        "damaged_tables": report.damaged_tables, "index_rebuilt": report.index_rebuilt, "keys": report.keys,
        "segments": report.segments, "damaged_segments": report.damaged_segments,
        "copied_records": report.copied_records, "copied_bytes": report.copied_bytes,
        "log_operations": report.log_operations,
        "damage": report.damage.iter().map(problem).collect::<Vec<_>>(),
        "lost": report.lost.iter().map(lost).collect::<Vec<_>>(),
        "moved": report.moved, "text": report.to_string(),
    })
}

fn problem(error: &Error) -> Value {
    let mut problem = json!({ "kind": error.kind().to_string(), "message": error.message() });
    if let Some(corruption) = error.as_corruption() {
        problem["file"] = json!(corruption.file.display().to_string());
        problem["offset"] = json!(corruption.offset);
        problem["expected"] = json!(corruption.expected);
        problem["found"] = json!(corruption.found);
    }
    problem
}

/// Keys are any bytes and JSON is text: a key is written as its bytes in hexadecimal digits.
fn lost(range: &LostRange) -> Value {
    let key = |key: &Option<Vec<u8>>| {
        key.as_ref().map(|key| key.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    json!({
        "first_hex": key(&range.first), "last_hex": key(&range.last), "operations": range.operations,
        "may_be_older": range.loss == tamarack::Loss::MayBeOlder, "reason": range.reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_engine_is_reported_under_its_name() {
        let all = stats(&Stats::default());
        let shown = format!("{:?}", Stats::default());
        let shown = shown.replace(&format!("{:?}", Stats::default().block_cache), "()");
        let fields =
            shown.trim_start_matches("Stats {").split(", ").filter_map(|field| field.split_once(':'));
        let fields: Vec<&str> = fields.map(|(name, _)| name.trim()).collect();
        assert!(fields.len() > 40, "{fields:?}");
        for field in fields {
            assert!(all.get(field).is_some(), "{field} is not reported");
        }
    }

    #[test]
    fn numbers_are_found_by_name() {
        let mut figures = Stats { disk_bytes: 7, ..Stats::default() };
        figures.block_cache.hits = 9;
        let all = stats(&figures);
        assert_eq!(number(&all, "disk_bytes"), Some(7.0));
        assert_eq!(number(&all, "block_cache.hits"), Some(9.0));
        assert_eq!(number(&all, "block_cache"), None, "an object is no number");
        assert_eq!(number(&all, "warnings"), None);
        assert_eq!(number(&all, "no_such_figure"), None);
    }
}
