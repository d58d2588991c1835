//! Figures about a cube.

use super::Cube;
use super::collect::CollectionStats;
use super::readers::{ReaderKind, ReaderStats};
use crate::base::ids::SegmentId;
use crate::base::limits::LEVELS;
use crate::base::names::FileName;
use crate::base::sync::Ordering;

/// One level of the index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LevelStats {
    /// 0 to 6.
    pub level: u32,
    /// Its tables.
    pub tables: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their entries.
    pub entries: u64,
    /// Bytes of log records that they point to.
    pub referenced_value_bytes: u64,
}

/// One segment: of the log, or a cold one, which garbage collection has written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SegmentStats {
    /// Its id; those of cold segments have the highest bit set.
    pub id: u32,
    /// Bytes of its file; for the active segment, up to the end of its records.
    pub bytes: u64,
    /// Bytes of records that tables point to. Records that only memtables point to are not counted.
    pub live_bytes: u64,
    /// Bytes of its file that holes have given back to the file system, or will when those who still read it are done.
    pub hole_bytes: u64,
    /// The rest of a sealed segment: what overwriting and deleting has left behind, inline values, and framing.
    pub dead_bytes: u64,
    /// Whether it is sealed and flushed, so that live and dead are exact.
    pub sealed: bool,
}

impl SegmentStats {
    /// The name of its file: `NNNNNN.vlog`, or `NNNNNN.cold` if garbage collection has written it.
    pub fn file_name(&self) -> String {
        FileName::Segment(SegmentId(self.id)).to_string()
    }

    /// Whether garbage collection has written it.
    pub fn is_cold(&self) -> bool {
        SegmentId(self.id).is_cold()
    }
}

/// Use of the block cache, or of the row cache.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Blocks, or rows, found in it.
    pub hits: u64,
    /// Those not found in it.
    pub misses: u64,
    /// Bytes in it.
    pub bytes: u64,
}

/// Figures about a database. Counters count from opening; bytes are bytes.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
/// db.put(b"key", &[0; 10_000])?;
/// let stats = db.stats();
/// assert_eq!((stats.operations_written, stats.syncs), (1, 0));
/// assert!(stats.warnings.is_empty(), "nothing failed in the background");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// The levels, L0 to L6.
    pub levels: Vec<LevelStats>,
    /// The segments: sealed ones of the log, oldest first, cold ones, and those of the log that are not sealed.
    pub segments: Vec<SegmentStats>,
    /// Bytes used in memtables.
    pub memtable_bytes: u64,
    /// Memtables that wait for a flush.
    pub immutable_memtables: u64,
    /// The last operation visible.
    pub last_sequence: u64,
    /// Bytes of the log's records that tables point to.
    pub live_value_bytes: u64,
    /// Bytes of sealed segments that no table points to.
    pub dead_value_bytes: u64,
    /// Bytes of all segments, holes included.
    pub log_bytes: u64,
    /// Bytes of them that holes have given back to the file system, or will when those who still read them are done;
    /// the latter are among the `leaving_bytes`.
    pub hole_bytes: u64,
    /// Bytes of all tables.
    pub table_bytes: u64,
    /// Bytes of all files: segments, also as far as their space is only reserved, tables, and those that go once
    /// their readers do.
    pub disk_bytes: u64,
    /// Bytes of keys and values written.
    pub user_bytes_written: u64,
    /// Operations written.
    pub operations_written: u64,
    /// Bytes appended to the log.
    pub log_bytes_written: u64,
    /// Bytes of tables written by flushes.
    pub flush_bytes_written: u64,
    /// Bytes of tables read by compactions.
    pub compaction_bytes_read: u64,
    /// Bytes of tables written by compactions.
    pub compaction_bytes_written: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Compactions done.
    pub compactions: u64,
    /// Runs of garbage collection.
    pub collections: u64,
    /// Segments that they have freed.
    pub collected_segments: u64,
    /// Bytes of those segments.
    pub collected_bytes: u64,
    /// Files of segments that nobody needed any more and that became new segments; the others are removed.
    pub recycled_segments: u64,
    /// Bytes of cold segments written.
    pub collection_bytes_written: u64,
    /// Segments that were not copied but got holes in their files.
    pub punched_segments: u64,
    /// Records copied.
    pub collected_records: u64,
    /// Records left behind that tables still pointed to, because newer versions hide them.
    pub hidden_records: u64,
    /// Runs that have sorted values; see [`Options::value_runs_max`](crate::Options).
    pub sortings: u64,
    /// Bytes of the segments whose values they have sorted.
    pub sorted_bytes: u64,
    /// Bytes of cold segments that they have written.
    pub sorting_bytes_written: u64,
    /// Bytes of tables that were rewritten so that pointers lead there: a part of those that compactions have written.
    pub sorting_index_bytes_written: u64,
    /// The most sorted runs of values over one key when that was last looked at; 0 if it never was. The records of a
    /// segment that do not lie in the order of their keys count as several.
    pub value_runs: u64,
    /// Runs of garbage collection, and of sorting, that are under way.
    pub running_collections: Vec<CollectionStats>,
    /// Segments that were moved and that tables still point into under their old ids.
    pub moved_segments: u64,
    /// Bytes of memory that relocation tables take now.
    pub relocation_memory_bytes: u64,
    /// Bytes of memory that all relocation tables would take, about. Beyond two thirds of
    /// [`Options::relocation_cache_bytes`](crate::Options) compactions see to it that they go; beyond it they are not all in
    /// memory.
    pub relocation_bytes: u64,
    /// Segments that are damaged and are not collected.
    pub quarantined_segments: Vec<u32>,
    /// Bytes of keys and values that can be read; estimated as far as hidden ones are.
    pub live_bytes: u64,
    /// Bytes of log records that tables point to and that newer versions hide; estimated.
    pub hidden_bytes: u64,
    /// Bytes of files that go once the readers are gone that hold them.
    pub leaving_bytes: u64,
    /// Those of them that nobody holds, and that are kept to become new segments while writes keep coming.
    pub stock_bytes: u64,
    /// Bytes on disk for each live byte of keys and values.
    pub space_amplification: f64,
    /// The bytes on disk that [`Options::max_space_amplification`](crate::Options) and the slack allow.
    pub disk_bytes_max: u64,
    /// Log, flush, compaction, collection and sorting bytes written per byte of keys and values written; 0 if nothing was.
    pub write_amplification: f64,
    /// The block cache, which databases of one process may share.
    pub block_cache: CacheStats,
    /// The row cache: keys whose values it had and those that it had not, be there a value or not; and bytes of rows.
    pub row_cache: CacheStats,
    /// Reads from the log.
    pub value_reads: u64,
    /// Bytes of those reads.
    pub value_read_bytes: u64,
    /// Index partitions read from the device.
    pub index_block_reads: u64,
    /// Data blocks of tables read from the device.
    pub data_block_reads: u64,
    /// Tables open.
    pub open_tables: u64,
    /// Bytes of memory that open tables hold: top indexes and filters.
    pub table_memory_bytes: u64,
    /// Tables among them that are searched without their filter, because [`Options::memory_max`](crate::Options) left no room
    /// for it: keys that are not in them cost reads.
    pub unfiltered_tables: u64,
    /// Background jobs under way, or waiting for a thread: sealing, flushing, compacting, collecting, sorting.
    pub running_jobs: u64,
    /// Device syncs of the log.
    pub syncs: u64,
    /// Writes that had to wait for background work.
    pub stalls: u64,
    /// For how long in all, in seconds.
    pub stall_seconds: f64,
    /// Who reads at moments that have passed, oldest first: snapshots, iterators, checkpoints under way.
    pub readers: Vec<ReaderStats>,
    /// Snapshots held.
    pub snapshots: u64,
    /// Age of the oldest, in seconds.
    pub oldest_snapshot_seconds: Option<f64>,
    /// Device reads that one `get` can cost at most with the files as they are and nothing cached: a partition and
    /// a block for each table that can hold a key, and the value.
    pub worst_case_reads: u32,
    /// Failures in the background, oldest first; the last one is why writes are refused, if they are.
    pub warnings: Vec<String>,
}

impl Cube {
    /// Figures as of now.
    pub fn stats(&self) -> Stats {
        let state = self.current.load();
        let version = &state.version;
        let levels: Vec<_> = (0..LEVELS)
            .map(|level| {
                let tables = version.level(level);
                LevelStats {
                    level: level as u32,
                    tables: tables.len() as u64,
                    bytes: tables.iter().map(|table| table.file_bytes).sum(),
                    entries: tables.iter().map(|table| table.entries).sum(),
                    referenced_value_bytes: tables.iter().map(|table| table.referenced_value_bytes).sum(),
                }
            })
            .collect();
        let segments = self.segment_stats(&state);
        let sum = |of: fn(&SegmentStats) -> u64| segments.iter().map(of).sum::<u64>();
        let (log_bytes, hole_bytes, live, dead) = (
            sum(|segment| segment.bytes),
            sum(|segment| segment.hole_bytes),
            sum(|segment| segment.live_bytes),
            sum(|segment| segment.dead_bytes),
        );
        let table_bytes = levels.iter().map(|level| level.bytes).sum();
        let level0 = version.level(0).len() as u32;
        let deeper = (1..LEVELS).filter(|&level| !version.level(level).is_empty()).count() as u32;
        let memtables = std::iter::once(&state.active).chain(state.frozen.iter().map(|f| &f.memtable));
        let mut stats = Stats {
            memtable_bytes: memtables.map(|memtable| memtable.memory_bytes() as u64).sum(),
            immutable_memtables: state.frozen.len() as u64,
            last_sequence: self.publisher.visible().0,
            live_value_bytes: live,
            dead_value_bytes: dead,
            log_bytes,
            hole_bytes,
            table_bytes,
            moved_segments: version.segments().moved().count() as u64,
            relocation_bytes: version.segments().relocation_memory_bytes(),
            worst_case_reads: 2 * (level0 + deeper) + 1,
            warnings: self.health.warnings(),
            levels,
            segments,
            ..Stats::default()
        };
        self.add_counters(&mut stats);
        self.add_space(&mut stats);
        stats
    }

    fn segment_stats(&self, state: &super::state::ReadState) -> Vec<SegmentStats> {
        let segments = state.version.segments();
        let live = segments.live_by_home();
        let unpunched = self.index.files().unpunched();
        let sealed = segments.sealed().map(|entry| {
            let (meta, id) = (&entry.meta, entry.meta.id);
            let left = meta.value_record_bytes.min(meta.end.saturating_sub(segments.dead_bytes(id)));
            let waiting: u64 = unpunched.iter().filter(|(of, _)| *of == id).map(|(_, bytes)| bytes).sum();
            let (live_bytes, hole_bytes) =
                (live[&id].bytes.min(left), segments.hole_bytes(id).saturating_sub(waiting));
            SegmentStats {
                id: id.0,
                bytes: meta.file_bytes,
                live_bytes,
                hole_bytes,
                dead_bytes: meta.file_bytes.saturating_sub(live_bytes + hole_bytes),
                sealed: true,
            }
        });
        let active = self.order.active_segment();
        let unregistered = state.unregistered.iter().filter_map(|handle| {
            let FileName::Segment(id) = handle.name() else { return None };
            let bytes = match &active {
                Some((segment, end)) if segment.header().id == id => *end,
                // A length that cannot be read is no reason to fail: the figure is then 0.
                _ => self.reader.segments().get(id).ok().and_then(|open| open.file().len().ok()).unwrap_or(0),
            };
            let live_bytes = state.version.segments().live(id).bytes;
            Some(SegmentStats { id: id.0, bytes, live_bytes, ..SegmentStats::default() })
        });
        sealed.chain(unregistered).collect()
    }

    fn add_space(&self, stats: &mut Stats) {
        let space = self.space();
        stats.disk_bytes = space.disk;
        stats.live_bytes = space.live;
        stats.hidden_bytes = space.hidden;
        stats.leaving_bytes = space.leaving + space.removing;
        stats.space_amplification = space.amplification();
        stats.disk_bytes_max = space.goal + space.slack;
    }

    fn add_counters(&self, stats: &mut Stats) {
        let counters = &self.counters;
        stats.user_bytes_written = counters.user_bytes.load(Ordering::Relaxed);
        stats.operations_written = counters.operations.load(Ordering::Relaxed);
        stats.log_bytes_written = self.order.log_bytes();
        stats.flush_bytes_written = counters.flush_bytes.load(Ordering::Relaxed);
        stats.compaction_bytes_read = counters.compaction_bytes_read.load(Ordering::Relaxed);
        stats.compaction_bytes_written = counters.compaction_bytes_written.load(Ordering::Relaxed);
        stats.flushes = counters.flushes.load(Ordering::Relaxed);
        stats.compactions = counters.compactions.load(Ordering::Relaxed);
        stats.collections = counters.collections.load(Ordering::Relaxed);
        stats.collected_segments = counters.collected_segments.load(Ordering::Relaxed);
        stats.stock_bytes = self.index.files().stock_bytes();
        stats.recycled_segments = self.index.files().recycled();
        stats.collected_bytes = counters.collection_bytes_read.load(Ordering::Relaxed);
        stats.collection_bytes_written = counters.collection_bytes_written.load(Ordering::Relaxed);
        stats.punched_segments = counters.punched_segments.load(Ordering::Relaxed);
        stats.collected_records = counters.collected_records.load(Ordering::Relaxed);
        stats.hidden_records = counters.hidden_records.load(Ordering::Relaxed);
        stats.sortings = counters.sortings.load(Ordering::Relaxed);
        stats.sorted_bytes = counters.sorted_bytes.load(Ordering::Relaxed);
        stats.sorting_bytes_written = counters.sorting_bytes_written.load(Ordering::Relaxed);
        stats.sorting_index_bytes_written = counters.sorting_index_bytes.load(Ordering::Relaxed);
        stats.value_runs = self.collector.most_runs.load(Ordering::Relaxed);
        stats.running_collections = self.collector.running();
        stats.relocation_memory_bytes = self.reader.relocation_bytes();
        stats.quarantined_segments = self.collector.quarantined().iter().map(|id| id.0).collect();
        let written = stats.log_bytes_written
            + stats.flush_bytes_written
            + stats.compaction_bytes_written
            + stats.collection_bytes_written
            + stats.sorting_bytes_written;
        if stats.user_bytes_written > 0 {
            stats.write_amplification = written as f64 / stats.user_bytes_written as f64;
        }
        let cache = self.blocks.stats();
        stats.block_cache = CacheStats { hits: cache.hits, misses: cache.misses, bytes: cache.bytes };
        stats.row_cache = self.rows.stats();
        stats.index_block_reads = cache.index_block_reads;
        stats.data_block_reads = cache.data_block_reads;
        stats.value_reads = self.reader.counters().reads.load(Ordering::Relaxed);
        stats.value_read_bytes = self.reader.counters().bytes.load(Ordering::Relaxed);
        stats.open_tables = self.index.tables().open_tables() as u64;
        stats.unfiltered_tables = self.index.tables().unfiltered_tables() as u64;
        stats.table_memory_bytes = self.index.tables().resident_bytes() as u64;
        stats.syncs = self.durability.syncs();
        stats.running_jobs = self.maintenance.running_jobs();
        let (stalls, waited) = self.throttle.waited();
        (stats.stalls, stats.stall_seconds) = (stalls, waited.as_secs_f64());
        stats.readers = self.reader_stats();
        let snapshots = || stats.readers.iter().filter(|reader| reader.kind == ReaderKind::Snapshot);
        stats.snapshots = snapshots().count() as u64;
        stats.oldest_snapshot_seconds = snapshots().map(|reader| reader.age_seconds).next();
    }
}
