//! What a user can choose. Plain data: the layers below the public API read it, `db` validates it.

use super::codec::Codec;
use super::comparator::{Bytewise, Comparator};
use super::error::{Error, Result};
use super::limits::{INLINE_VALUE_BYTES_MAX, SEGMENT_BYTES_RANGE};
use super::listener::EventListener;
use super::memory::{MEMORY_BYTES_MIN, MEMORY_BYTES_PER_THREAD};
use super::sync::Arc;

/// The least that [`Options::open_files_max`] may be.
pub const OPEN_FILES_MIN: usize = 16;

/// How the active segment of the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogMode {
    /// Mapped where the file system can reserve space and map files, else with plain writes.
    #[default]
    Auto,
    /// Mapped: fails where that is not to be had.
    Mapped,
    /// With one write call per commit. Slower; kill-safe just the same.
    Plain,
}

/// Which segments of the log garbage collection takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GcPolicy {
    /// Those whose dead bytes are most worth the copying of what is alive, old ones first among equals.
    #[default]
    CostBenefit,
    /// The oldest of those that are not wholly alive, always by copying (after WiscKey, section 3.3.3). For comparison.
    Tail,
    /// None in the background: segments go once nothing in them is alive, others when `Db::gc` is called. The bound
    /// on space does not hold.
    Off,
}

/// How a database is opened. The defaults suit a few hundred thousand writes a second on one SSD.
///
/// ```
/// let options = tamarack::Options { create_if_missing: false, ..tamarack::Options::default() };
/// let missing = std::env::temp_dir().join("tamarack-doc-no-such-database");
/// assert!(tamarack::Db::open(missing, options).is_err());
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Create the database if there is none. Default: true.
    pub create_if_missing: bool,
    /// Fail if the database exists. Default: false.
    pub error_if_exists: bool,
    /// Open without writing a byte: the log's tail is replayed in memory, writes fail. Several readers may open
    /// a database at once, but not beside a writer. Default: false.
    pub read_only: bool,
    /// Verify every checksum of tables and log when opening, and refuse to open if one fails. Costs a read of
    /// the whole database. Default: false.
    pub paranoid_checks: bool,
    /// The order of keys. Its name is stored; opening with another name fails. Default: [`Bytewise`].
    pub comparator: Arc<dyn Comparator>,
    /// Bytes of memory for all that the engine holds: memtables, blocks, rows, filters, relocation tables, what scans read ahead,
    /// what background jobs work on; at least 16 MiB, and 8 MiB for each of
    /// [`background_threads`](Self::background_threads). Each has a share of it, to which the options below are lowered that
    /// ask for more; tables whose filter does not fit are searched without
    /// ([`Stats::unfiltered_tables`](crate::Stats::unfiltered_tables)), scans read less ahead, values are sorted fewer at a
    /// time. Not in it are what an operation itself takes and returns; what an iterator needs at least, 256 KiB and a
    /// thousandth of the budget for each table or level that it walks over, and the memtables that it began with; some
    /// kilobytes for each open file, four bytes for each record of the segments that are being written, stacks of threads, what the
    /// allocator keeps of what was freed (glibc's does so for several threads apart, which may double what the process takes;
    /// less with `MALLOC_ARENA_MAX=1`), and the kernel's pages of files, those of mapped segments included. Default: `None`, what the other options come to, and as much as filters and scans need.
    pub memory_max: Option<u64>,
    /// Bytes of a memtable's entries, 4 KiB to 8 GiB; what finds them takes up to an eleventh more. A larger one means fewer flushes and
    /// compactions, and more memory: up to [`memtables_max`](Self::memtables_max) of them are held. Default: 32 MiB.
    pub memtable_bytes: usize,
    /// Memtables held at most, the active one included, 2 to 64. Default: 4.
    pub memtables_max: usize,
    /// Bytes of a full log segment, 4 KiB to 2 GiB. Segments begin small and grow. Larger ones mean fewer files
    /// and coarser garbage collection. Default: 32 MiB.
    pub segment_bytes_max: u64,
    /// Bytes of log that may have to be replayed after a crash; memtables are flushed before it grows beyond.
    /// At least twice `segment_bytes_max`. Default: 1 GiB.
    pub recovery_log_max: u64,
    /// Bytes on disk for each live byte of keys and values, 1.05 to 1000, beyond which garbage is collected. A slack of
    /// sixteen full segments comes on top while writes keep coming, because what dies before it is collected need not be
    /// copied; writers are slowed down as it is used up, and refused ([`ErrorKind::NoSpace`](crate::ErrorKind::NoSpace)) once
    /// it has been for some seconds in which something kept garbage from being collected; deletions never are. Where keys
    /// and values are so small that tables and record headers alone take more, these and a sixteenth of them are what counts.
    /// Lower values cost writes: at 1.3, 4 million uniform overwrites of 2 million values of 1 KiB wrote 2.0 bytes for each
    /// byte. Default: 1.3.
    pub max_space_amplification: f64,
    /// Which segments garbage collection takes. Default: [`GcPolicy::CostBenefit`].
    pub gc: GcPolicy,
    /// Bytes a second that garbage collection may copy, all its threads together; 0 is no limit. Less disturbs
    /// foreground reads less; writers are slowed down, and refused at last, when it is too little to keep the bound on space.
    /// [`Db::set_gc_bytes_per_second`](crate::Db::set_gc_bytes_per_second) changes it. Default: 0.
    pub gc_bytes_per_second: u64,
    /// Sorted runs of values over one key, 0 to 1000, beyond which segments of small values are rewritten in the order of
    /// their keys, so that long scans read them from front to back: while nothing is written or read, when scans have read
    /// much, or when [`Db::sort_values`](crate::Db::sort_values) is called. Fewer make scans faster and rewrite values more
    /// often: with 8, values that were loaded in random order are written twice, and once more whenever the database has
    /// grown by a few times. Segments whose values have 32 KiB and more on average are left as they are, for the device reads those apart nearly as
    /// fast. As the keys of what is sorted at a time are held in memory, fresh values of 1 KiB are sorted by themselves while there are up to some 20 GB
    /// of them, and beyond that when [`Db::sort_values`](crate::Db::sort_values) is called. 0 leaves all values where they are. Default: 8.
    pub value_runs_max: u32,
    /// Bytes of the file system that the log leaves free, so that deletions, flushes and garbage collection go on when
    /// writes of new data are refused for want of space (compactions leave half of them, deletions a quarter); what
    /// memtables need to become tables comes on top. With 0
    /// the log may take the last byte. Default, `None`: an eighth of the database's size, at most eight full segments.
    pub reserved_bytes: Option<u64>,
    /// How the log is written. Default: [`LogMode::Auto`].
    pub log_mode: LogMode,
    /// Values up to this many bytes are kept in the tables beside their keys, larger ones only in the log; 0 to
    /// 32 KiB. Inline values are scanned faster and rewritten by compactions. Default: 512.
    pub inline_value_max: usize,
    /// Compression of values larger than `inline_value_max`. Default: none.
    pub value_codec: Codec,
    /// Compression of index blocks. Default: none.
    pub block_codec: Codec,
    /// Bytes of an index block before compression, 512 to 1 MiB. Default: 4 KiB.
    pub block_bytes: usize,
    /// Bits of Bloom filter per key, 0 (no filter) to 32. Ten let about one absent key in a hundred through.
    /// Default: 10.
    pub filter_bits_per_key: u32,
    /// Bytes of a table before the next one is begun, at least 4 KiB. Default: 32 MiB.
    pub table_bytes_max: u64,
    /// Weight of level 1, at least 4 KiB; each further level holds ten times as much. Default: 256 MiB.
    pub level_bytes_base: u64,
    /// Bytes of index blocks cached. Default: 64 MiB.
    pub block_cache_bytes: usize,
    /// Bytes for values that are read again and again: a get that finds one there looks into no table and makes no system call.
    /// Kept are all until there are as many as fit, while the kernel's cache of files has most of what is asked for; otherwise values
    /// whose key is asked for a second time before long; if both together have at most 64 KiB, and at most a sixty-fourth of these bytes. The
    /// kernel's cache has whole pages instead, so that few of the values on them may be wanted. A third of it, and at most 4 GiB, is for places: where the log has the values
    /// of keys that were written or read lately, three in 64 bytes, so that a get needs no look into the index. 0 keeps none of either; nor is any
    /// kept if keys that differ may be equal in the order of [`comparator`](Self::comparator). Default: 64 MiB.
    pub row_cache_bytes: usize,
    /// Read values of the log past the kernel's cache of files (`O_DIRECT`), but for those that are in it because they were
    /// written lately. What is in that cache stays there, reads take less processor time, and sectors of the device are read
    /// instead of pages. But the row cache alone has values then that were read before, long walks over values that have not
    /// been sorted take longer, and each file takes two descriptors. Index tables, and the values that they hold
    /// ([`inline_value_max`](Self::inline_value_max)), are read through the cache. Where a file system has no such reads, or
    /// the kernel does not tell what is in its cache (Linux before 6.5), this does nothing. Default: false.
    pub direct_reads: bool,
    /// Bytes of relocation tables kept in memory, at least 4 KiB: eight for each record that garbage collection has moved
    /// and that an index entry still names by its old place. Others are read from the device when they are needed; and while
    /// all would take more than two thirds of that, index tables in which much was moved are rewritten so that they go. Default: 64 MiB.
    pub relocation_cache_bytes: usize,
    /// Files of segments and index tables held open for reads of values, at most, at least 16: up to half of them tables. With fewer than
    /// there are, some reads open a file first. A larger number than three quarters of the files that the process may have
    /// open (`ulimit -n`) counts as that; where a process has several databases, lower it. Eight more are open for long walks over keys. Default: 1000.
    pub open_files_max: usize,
    /// Threads for flushes and compactions, at least 1. Default: 2.
    pub background_threads: usize,
    /// Hears of garbage collection. It is called by the threads that work, which wait for it. Default: none.
    pub listener: Option<Arc<dyn EventListener>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_if_missing: true,
            error_if_exists: false,
            read_only: false,
            paranoid_checks: false,
            comparator: Arc::new(Bytewise),
            memory_max: None,
            memtable_bytes: 32 << 20,
            memtables_max: 4,
            segment_bytes_max: 32 << 20,
            recovery_log_max: 1 << 30,
            max_space_amplification: 1.3,
            gc: GcPolicy::CostBenefit,
            gc_bytes_per_second: 0,
            value_runs_max: 8,
            reserved_bytes: None,
            log_mode: LogMode::Auto,
            inline_value_max: 512,
            value_codec: Codec::None,
            block_codec: Codec::None,
            block_bytes: 4 << 10,
            filter_bits_per_key: 10,
            table_bytes_max: 32 << 20,
            level_bytes_base: 256 << 20,
            block_cache_bytes: 64 << 20,
            row_cache_bytes: 64 << 20,
            direct_reads: false,
            relocation_cache_bytes: 64 << 20,
            open_files_max: 1000,
            background_threads: 2,
            listener: None,
        }
    }
}

impl Options {
    /// Refuses values outside their documented range.
    ///
    /// # Errors
    /// `InvalidArgument`, naming the option, its value and its range.
    pub fn check(&self) -> Result<()> {
        let within = |name: &str, value: u64, range: std::ops::RangeInclusive<u64>| {
            if range.contains(&value) {
                return Ok(());
            }
            Err(Error::invalid_argument(format!(
                "option {name} is {value}: it takes {} to {}",
                range.start(),
                range.end()
            )))
        };
        within("memtable_bytes", self.memtable_bytes as u64, 4 << 10..=8 << 30)?;
        within("memtables_max", self.memtables_max as u64, 2..=64)?;
        within("segment_bytes_max", self.segment_bytes_max, SEGMENT_BYTES_RANGE)?;
        within("recovery_log_max", self.recovery_log_max, 2 * self.segment_bytes_max..=u64::MAX)?;
        if !(1.05..=1000.0).contains(&self.max_space_amplification) {
            return Err(Error::invalid_argument(format!(
                "option max_space_amplification is {}: it takes 1.05 to 1000",
                self.max_space_amplification
            )));
        }
        within("value_runs_max", u64::from(self.value_runs_max), 0..=1000)?;
        within("inline_value_max", self.inline_value_max as u64, 0..=INLINE_VALUE_BYTES_MAX as u64)?;
        within("block_bytes", self.block_bytes as u64, 512..=1 << 20)?;
        within("filter_bits_per_key", u64::from(self.filter_bits_per_key), 0..=32)?;
        within("table_bytes_max", self.table_bytes_max, 4 << 10..=1 << 40)?;
        within("level_bytes_base", self.level_bytes_base, 4 << 10..=1 << 50)?;
        within("relocation_cache_bytes", self.relocation_cache_bytes as u64, 4 << 10..=u64::MAX)?;
        within("open_files_max", self.open_files_max as u64, OPEN_FILES_MIN as u64..=1 << 20)?;
        within("background_threads", self.background_threads as u64, 1..=256)?;
        within("length of the comparator's name", self.comparator.name().len() as u64, 1..=255)?;
        if let Some(memory_max) = self.memory_max {
            let threads = self.background_threads as u64;
            within(
                "memory_max",
                memory_max,
                MEMORY_BYTES_MIN.max(threads * MEMORY_BYTES_PER_THREAD)..=u64::MAX,
            )?;
        }
        if self.read_only && self.error_if_exists {
            return Err(Error::invalid_argument(
                "options read_only and error_if_exists exclude each other: a read-only database must exist",
            ));
        }
        Ok(())
    }
}

/// How one write is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Return only when this write, and every write before it, is on the device and survives a power failure.
    /// Without it a write survives the death of the process (kill, panic, out of memory), not of the machine.
    /// Default: false.
    pub sync: bool,
}

impl WriteOptions {
    /// A write that is durable when it returns.
    pub fn synced() -> Self {
        Self { sync: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_pass() {
        Options::default().check().expect("defaults lie in their ranges");
    }

    #[test]
    fn a_value_outside_its_range_is_named() {
        let options = Options { segment_bytes_max: 100, ..Options::default() };
        let message = options.check().expect_err("too small").to_string();
        assert!(message.contains("segment_bytes_max") && message.contains("4096"), "{message}");
    }
}
