//! What the engine reports, as dictionaries: one for each structure, under the names of its fields.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tamarack::{
    CheckReport, CheckpointReport, CollectionStats, Error, GcReport, LevelStats, Loss, LostRange, Options,
    ReaderStats, RecoveryReport, RepairReport, RepairedManifest, SegmentStats, Stats,
};

type Report<'py> = PyResult<Bound<'py, PyDict>>;

/// A dictionary of fields whose types Python has as well.
macro_rules! fields {
    ($py:expr, $from:expr, [$($field:ident),* $(,)?]) => {{
        let fields = PyDict::new($py);
        $(fields.set_item(stringify!($field), &$from.$field)?;)*
        fields
    }};
}

/// A list of reports.
fn each<'py, T>(
    py: Python<'py>,
    items: &[T],
    describe: fn(Python<'py>, &T) -> Report<'py>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    items.iter().map(|item| describe(py, item)).collect()
}

/// Figures about a database.
pub fn stats<'py>(py: Python<'py>, stats: &Stats) -> Report<'py> {
    let all = fields!(
        py,
        stats,
        [
            disk_bytes,
            disk_bytes_max,
            log_bytes,
            table_bytes,
            live_bytes,
            hidden_bytes,
            leaving_bytes,
            stock_bytes,
            hole_bytes,
            live_value_bytes,
            dead_value_bytes,
            space_amplification,
            memtable_bytes,
            immutable_memtables,
            table_memory_bytes,
            unfiltered_tables,
            open_tables,
            last_sequence,
            worst_case_reads,
            user_bytes_written,
            operations_written,
            log_bytes_written,
            flush_bytes_written,
            compaction_bytes_read,
            compaction_bytes_written,
            write_amplification,
            flushes,
            compactions,
            running_jobs,
            syncs,
            stalls,
            stall_seconds,
            value_reads,
            value_read_bytes,
            index_block_reads,
            data_block_reads,
            collections,
            collected_segments,
            collected_bytes,
            recycled_segments,
            collection_bytes_written,
            punched_segments,
            collected_records,
            hidden_records,
            sortings,
            sorted_bytes,
            sorting_bytes_written,
            sorting_index_bytes_written,
            value_runs,
            moved_segments,
            relocation_memory_bytes,
            relocation_bytes,
            quarantined_segments,
            snapshots,
            oldest_snapshot_seconds,
            warnings,
        ]
    );
    all.set_item("block_cache", fields!(py, stats.block_cache, [hits, misses, bytes]))?;
    all.set_item("row_cache", fields!(py, stats.row_cache, [hits, misses, bytes]))?;
    all.set_item("running_collections", each(py, &stats.running_collections, running)?)?;
    all.set_item("readers", each(py, &stats.readers, reader)?)?;
    all.set_item("levels", each(py, &stats.levels, level)?)?;
    all.set_item("segments", each(py, &stats.segments, segment)?)?;
    Ok(all)
}

fn running<'py>(py: Python<'py>, collection: &CollectionStats) -> Report<'py> {
    Ok(fields!(py, collection, [job, victims, bytes, live_bytes, bytes_done, bytes_to_do]))
}

fn reader<'py>(py: Python<'py>, reader: &ReaderStats) -> Report<'py> {
    let about = fields!(py, reader, [name, sequence, age_seconds, held_bytes, held_alone_bytes]);
    about.set_item("kind", reader.kind.to_string())?;
    Ok(about)
}

fn level<'py>(py: Python<'py>, level: &LevelStats) -> Report<'py> {
    Ok(fields!(py, level, [level, tables, bytes, entries, referenced_value_bytes]))
}

fn segment<'py>(py: Python<'py>, segment: &SegmentStats) -> Report<'py> {
    let about = fields!(py, segment, [id, bytes, live_bytes, hole_bytes, dead_bytes, sealed]);
    about.set_item("file", segment.file_name())?;
    about.set_item("cold", segment.is_cold())?;
    Ok(about)
}

/// What garbage collection did.
pub fn gc<'py>(py: Python<'py>, report: &GcReport) -> Report<'py> {
    Ok(fields!(py, report, [segments, bytes_before, bytes_after, records, punched, hole_bytes, hidden]))
}

/// What a checkpoint shares and copies.
pub fn checkpoint<'py>(py: Python<'py>, report: &CheckpointReport) -> Report<'py> {
    Ok(fields!(py, report, [linked_files, linked_bytes, copied_files, copied_bytes]))
}

/// What a check found.
pub fn check<'py>(py: Python<'py>, report: &CheckReport) -> Report<'py> {
    let all = fields!(
        py,
        report,
        [tables, segments, entries, hidden_references, records, bytes_read, quarantined_segments]
    );
    all.set_item("clean", report.is_clean())?;
    all.set_item("problems", each(py, &report.problems, problem)?)?;
    Ok(all)
}

/// What opening found in the log.
pub fn recovery<'py>(py: Python<'py>, report: &RecoveryReport) -> Report<'py> {
    let all = fields!(py, report, [log_bytes, batches, operations, rewritten_bytes, seconds]);
    let torn = report.torn_tail.as_ref();
    let torn =
        torn.map(|torn| PyResult::Ok(fields!(py, torn, [segment, offset, ignored_bytes]))).transpose()?;
    all.set_item("torn_tail", torn)?;
    Ok(all)
}

/// What a repair found and did.
pub fn repair<'py>(py: Python<'py>, report: &RepairReport) -> Report<'py> {
    let all = fields!(
        py,
        report,
        [
            changed,
            dry_run,
            tables,
            damaged_tables,
            index_rebuilt,
            keys,
            segments,
            damaged_segments,
            copied_records,
            copied_bytes,
            log_operations,
            moved,
        ]
    );
    all.set_item("clean", report.is_clean())?;
    all.set_item("manifest_whole", report.manifest == RepairedManifest::Whole)?;
    all.set_item("damage", each(py, &report.damage, problem)?)?;
    all.set_item("lost", each(py, &report.lost, lost)?)?;
    all.set_item("text", report.to_string())?;
    Ok(all)
}

fn problem<'py>(py: Python<'py>, error: &Error) -> Report<'py> {
    let about = PyDict::new(py);
    about.set_item("kind", error.kind().to_string())?;
    about.set_item("message", error.message())?;
    if let Some(place) = error.as_corruption() {
        about.set_item("file", place.file.as_os_str())?;
        about.set_item("offset", place.offset)?;
        about.set_item("expected", &place.expected)?;
        about.set_item("found", &place.found)?;
    }
    Ok(about)
}

fn lost<'py>(py: Python<'py>, range: &LostRange) -> Report<'py> {
    let about = fields!(py, range, [operations, reason]);
    let key = |key: &Option<Vec<u8>>| key.as_deref().map(|key| PyBytes::new(py, key));
    about.set_item("first", key(&range.first))?;
    about.set_item("last", key(&range.last))?;
    about.set_item("may_be_older", range.loss == Loss::MayBeOlder)?;
    Ok(about)
}

/// What a database was opened with, by the names that `DB` takes.
pub fn options<'py>(py: Python<'py>, options: &Options) -> Report<'py> {
    let all = fields!(
        py,
        options,
        [
            create_if_missing,
            error_if_exists,
            read_only,
            paranoid_checks,
            memory_max,
            memtable_bytes,
            memtables_max,
            segment_bytes_max,
            recovery_log_max,
            max_space_amplification,
            gc_bytes_per_second,
            value_runs_max,
            reserved_bytes,
            inline_value_max,
            block_bytes,
            filter_bits_per_key,
            table_bytes_max,
            level_bytes_base,
            block_cache_bytes,
            row_cache_bytes,
            direct_reads,
            relocation_cache_bytes,
            open_files_max,
            background_threads,
        ]
    );
    all.set_item("gc", crate::options::gc_name(options.gc))?;
    all.set_item("log_mode", crate::options::log_mode_name(options.log_mode))?;
    all.set_item("value_codec", crate::options::codec_name(options.value_codec))?;
    all.set_item("block_codec", crate::options::codec_name(options.block_codec))?;
    all.set_item("comparator_name", PyBytes::new(py, options.comparator.name().as_bytes()))?;
    Ok(all)
}
