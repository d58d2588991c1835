//! One budget for the memory of an open database.
//!
//! [`Options::memory_max`] is divided once, when the database is opened. Options that bound a part of the memory are lowered to
//! the part's share; what no option bounds has its share here: filters of tables, what scans read ahead, what background jobs
//! hold. Shares are fixed, so that no part can take what another is about to need, and whoever finds its share used up does
//! with less: a table is opened without its filter, a scan reads less ahead, a job takes smaller steps. None fails, none
//! waits.

use super::options::Options;
use super::sync::{Arc, AtomicU64, Ordering};

/// The budget has so many parts ...
const PARTS: u64 = 32;
/// ... of which these are for memtables, all together,
const MEMTABLES: u64 = 8;
/// for blocks of tables,
const BLOCKS: u64 = 4;
/// for rows, and what is noted of keys beside them,
const ROWS: u64 = 5;
/// for filters,
const FILTERS: u64 = 3;
/// for relocation tables,
const RELOCATIONS: u64 = 2;
/// for what scans read ahead,
const SCANS: u64 = 4;
/// and for background jobs.
const JOBS: u64 = PARTS - MEMTABLES - BLOCKS - ROWS - FILTERS - RELOCATIONS - SCANS;

/// A memtable takes so many times as much for entries as for fingers (`skiplist::fingers`), which are not in its size.
const MEMTABLE_BYTES_PER_FINGER_BYTE: u64 = 11;

/// A budget is so many times what is read at a time of a table: a scan or a job may walk over some twenty, and ten of them are
/// to take a fifth of it.
const TABLE_READS: u64 = 1000;
/// That without a budget.
pub const TABLE_READ_BYTES_MAX: u64 = 256 << 10;

/// The smallest budget ...
pub const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// ... and the smallest for each background thread: a job with less would do little but begin and end.
pub const MEMORY_BYTES_PER_THREAD: u64 = 8 << 20;

/// Bytes that a job holds at most unless a budget says less: small records that a collection copies ...
const BATCH_BYTES_MAX: u64 = 16 << 20;
/// ... and where values are sorted, of values, which is what a job for scans takes ...
const PORTION_BYTES_MAX: u64 = 128 << 20;
/// ... and of keys and notes of all of them.
const SORTED_BYTES_MAX: u64 = 64 << 20;

/// The shares of what no option bounds.
#[derive(Debug)]
pub struct Memory {
    /// For filters of open tables.
    pub filters: Arc<Allotment>,
    /// For values that iterators read ahead.
    pub scans: Arc<Allotment>,
    /// Bytes that whoever walks over a table reads of it at a time.
    pub table_read_bytes: u64,
    /// Bytes of small records, of keys and bookkeeping that a collection holds at a time.
    pub batch_bytes: u64,
    /// Bytes of values that a job which sorts them holds at a time.
    pub portion_bytes: u64,
    /// Bytes of the keys of all values that such a job sorts, and of what is noted beside them.
    pub sorted_bytes: u64,
}

impl Memory {
    /// Divides the budget of `options`, which were [checked](Options::check), and lowers those of them that ask for more than
    /// their share. Without a budget they stay as they are, and filters and scans take what they need.
    pub fn divide(options: &mut Options) -> Self {
        let Some(memory_max) = options.memory_max else {
            return Self {
                filters: Allotment::unlimited(),
                scans: Allotment::unlimited(),
                table_read_bytes: TABLE_READ_BYTES_MAX,
                batch_bytes: BATCH_BYTES_MAX,
                portion_bytes: PORTION_BYTES_MAX,
                sorted_bytes: SORTED_BYTES_MAX,
            };
        };
        let share = |parts: u64| memory_max / PARTS * parts;
        // Without the one there are no rows (`cube::rows`).
        let rows = if options.comparator.equal_means_identical() { ROWS } else { 0 };
        let lower = |option: &mut usize, bytes: u64| {
            *option = usize::try_from(bytes).map_or(*option, |bytes| bytes.min(*option));
        };
        let memtable = share(MEMTABLES) / options.memtables_max as u64;
        lower(&mut options.memtable_bytes, memtable - memtable / (MEMTABLE_BYTES_PER_FINGER_BYTE + 1));
        lower(&mut options.block_cache_bytes, share(BLOCKS + ROWS - rows));
        lower(&mut options.row_cache_bytes, share(rows));
        lower(&mut options.relocation_cache_bytes, share(RELOCATIONS));
        let job_bytes = share(JOBS) / options.background_threads as u64;
        // The other half is for a table's filter and references while it is written, and for what is read.
        options.table_bytes_max = options.table_bytes_max.min(job_bytes / 2);
        Self {
            filters: Allotment::new(share(FILTERS)),
            scans: Allotment::new(share(SCANS)),
            table_read_bytes: TABLE_READ_BYTES_MAX.min(memory_max / TABLE_READS),
            batch_bytes: BATCH_BYTES_MAX.min(job_bytes / 2),
            // With few of the values each victim is read more often; with few of the keys less can be sorted at all.
            portion_bytes: PORTION_BYTES_MAX.min(job_bytes / 6),
            sorted_bytes: SORTED_BYTES_MAX.min(job_bytes / 2),
        }
    }
}

/// Bytes of memory that many may take from, each for as long as it needs them.
#[derive(Debug)]
pub struct Allotment {
    left: AtomicU64,
}

impl Allotment {
    /// So many bytes.
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(bytes) })
    }

    /// More bytes than anybody can take.
    pub fn unlimited() -> Arc<Self> {
        Self::new(u64::MAX)
    }

    /// Takes `bytes`, if as much is left.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Taken> {
        self.take_of(|left| (bytes <= left).then_some(bytes))
    }

    /// Takes `bytes`, or half of what is left, so that whoever comes next finds something, too.
    pub fn take_up_to(self: &Arc<Self>, bytes: u64) -> Taken {
        self.take_of(|left| Some(bytes.min(left / 2))).expect("nothing at least")
    }

    fn take_of(self: &Arc<Self>, choose: impl Fn(u64) -> Option<u64>) -> Option<Taken> {
        let mut left = self.left.load(Ordering::Relaxed);
        loop {
            let bytes = choose(left)?;
            // Nothing but the number is handed over.
            match self.left.compare_exchange(left, left - bytes, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(Taken { bytes, from: Arc::clone(self) }),
                Err(now) => left = now,
            }
        }
    }
}

/// Bytes that were taken from an allotment; they go back when this is dropped.
#[derive(Debug)]
pub struct Taken {
    bytes: u64,
    from: Arc<Allotment>,
}

impl Taken {
    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.from.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::comparator::Descending;

    fn divided(memory_max: Option<u64>) -> (Options, Memory) {
        let mut options = Options { memory_max, ..Options::default() };
        options.check().expect("in their ranges");
        let memory = Memory::divide(&mut options);
        options.check().expect("they still are");
        (options, memory)
    }

    /// All that the shares come to.
    fn total(options: &Options, memory: &Memory) -> u64 {
        let job =
            (memory.batch_bytes + options.table_bytes_max).max(memory.portion_bytes + memory.sorted_bytes);
        let memtable = options.memtable_bytes as u64;
        options.memtables_max as u64 * (memtable + memtable / MEMTABLE_BYTES_PER_FINGER_BYTE)
            + (options.block_cache_bytes + options.row_cache_bytes + options.relocation_cache_bytes) as u64
            + memory.filters.take(0).map_or(0, |taken| taken.from.left.load(Ordering::Relaxed))
            + memory.scans.take(0).map_or(0, |taken| taken.from.left.load(Ordering::Relaxed))
            + options.background_threads as u64 * job
    }

    #[test]
    fn the_shares_fit_into_the_budget() {
        for bytes in [MEMORY_BYTES_MIN, MEMORY_BYTES_MIN + 1, 100_000_000, 1 << 30] {
            let (options, memory) = divided(Some(bytes));
            let total = total(&options, &memory);
            assert!(total <= bytes, "{total} of {bytes}");
        }
        let (options, memory) = divided(Some(100_000_000));
        assert!(total(&options, &memory) > 95_000_000, "next to nothing is left over");
    }

    #[test]
    fn options_are_lowered_and_never_raised() {
        let (options, _) = divided(Some(1 << 40));
        let (unchanged, _) = divided(None);
        for (with, without) in [
            (options.memtable_bytes, unchanged.memtable_bytes),
            (options.block_cache_bytes, unchanged.block_cache_bytes),
            (options.row_cache_bytes, unchanged.row_cache_bytes),
            (options.relocation_cache_bytes, unchanged.relocation_cache_bytes),
        ] {
            assert_eq!(with, without);
        }
        assert_eq!(options.table_bytes_max, Options::default().table_bytes_max);
        assert_eq!(unchanged.memtable_bytes, Options::default().memtable_bytes);
    }

    #[test]
    fn where_there_are_no_rows_blocks_have_their_share() {
        let (usual, _) = divided(Some(100_000_000));
        let mut options =
            Options { memory_max: Some(100_000_000), comparator: Arc::new(Descending), ..Options::default() };
        let memory = Memory::divide(&mut options);
        assert_eq!(options.row_cache_bytes, 0);
        assert!(options.block_cache_bytes > usual.block_cache_bytes);
        assert!(total(&options, &memory) <= 100_000_000);
    }

    #[test]
    fn a_budget_too_small_for_its_threads_is_refused() {
        let refused = |memory_max, background_threads| {
            let options = Options { memory_max: Some(memory_max), background_threads, ..Options::default() };
            options.check().expect_err("too small").to_string()
        };
        let message = refused(MEMORY_BYTES_MIN - 1, 1);
        assert!(message.contains("memory_max is 16777215") && message.contains("16777216"), "{message}");
        let message = refused(MEMORY_BYTES_PER_THREAD * 4 - 1, 4);
        assert!(message.contains("memory_max") && message.contains("33554432"), "{message}");
    }

    #[test]
    fn what_was_taken_comes_back() {
        let allotment = Allotment::new(100);
        let first = allotment.take(60).expect("there is as much");
        assert!(allotment.take(41).is_none());
        let second = allotment.take(40).expect("there is as much");
        assert_eq!((first.bytes(), second.bytes()), (60, 40));
        assert_eq!(allotment.take_up_to(10).bytes(), 0, "nothing is left");
        drop(first);
        let some = allotment.take_up_to(100);
        assert_eq!(some.bytes(), 30, "half of what is left");
        assert_eq!(allotment.take_up_to(10).bytes(), 10, "what was asked for");
        drop((second, some));
        assert!(allotment.take(100).is_some(), "all came back");
    }
}
