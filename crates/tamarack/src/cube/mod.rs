//! One failure domain: a directory with its log, index, memtables, commit order, snapshots and background work.
//!
//! Writing: `commit` measures a batch, `order` grants it a place (its essay describes the protocol), `turn` clears
//! what stands in the way, `publish` makes it visible in order, `durability` syncs. Reading: `state` is what a
//! reader holds, `read` looks keys up, `destination` and `pinned` are where the values go, `rows` keeps what is read again,
//! `visible`, `entries`, `window` and `iter` walk, `reading` brings values, `readers` lists who holds what. Background: `maintain` seals segments, flushes
//! memtables and compacts tables, `collect` frees the space of dead values. `open` recovers; `open_files` shares out the limit on files; `checkpoint` copies; `repair` saves what is left of a damaged cube;
//! `health` says whether writes are still possible, `events` tells the user's listener.

pub mod check;
pub mod checkpoint;
pub mod collect;
mod commit;
pub mod destination;
mod durability;
mod entries;
mod events;
mod headroom;
mod health;
mod inventory;
pub mod iter;
mod maintain;
pub mod open;
mod open_files;
mod order;
pub mod pinned;
mod publish;
mod reach;
pub mod read;
mod read_many;
pub mod readers;
mod reading;
pub mod repair;
mod replay;
mod rows;
pub mod snapshot;
mod space;
mod spare;
mod state;
pub mod stats;
mod sweep;
mod throttle;
mod turn;
mod visible;
mod window;

use std::path::PathBuf;
use std::sync::Weak;

use crate::base::error::{Error, Result};
use crate::base::ids::CubeId;
use crate::base::keys::KeyOrder;
use crate::base::memory::Memory;
use crate::base::options::Options;
use crate::base::recovery::RecoveryReport;
use crate::base::sync::{Arc, AtomicU64, Mutex};
use crate::env::Env;
use crate::env::pool::WorkerPool;
use crate::index::Index;
use crate::index::cache::BlockCache;
use crate::vlog::lease::Leases;
use crate::vlog::reader::SegmentReader;

use collect::Collector;
use durability::Durability;
use events::Events;
use headroom::Headroom;
use health::Health;
use inventory::Hidden;
use maintain::{Maintenance, Removal};
use open_files::OpenFiles;
use order::CommitOrder;
use publish::Publisher;
use reach::Reach;
use readers::Readers;
use rows::Rows;
use snapshot::Snapshots;
use spare::Spare;
use state::Current;
use throttle::Throttle;

/// One open cube.
pub struct Cube {
    /// For background jobs, which hold the cube while they run.
    this: Weak<Cube>,
    env: Env,
    directory: PathBuf,
    id: CubeId,
    options: Options,
    keys: KeyOrder,
    index: Arc<Index>,
    reader: Arc<SegmentReader>,
    leases: Leases,
    publisher: Arc<Publisher>,
    order: CommitOrder,
    durability: Durability,
    health: Arc<Health>,
    events: Events,
    throttle: Throttle,
    headroom: Headroom,
    current: Current,
    snapshots: Arc<Snapshots>,
    readers: Arc<Readers>,
    reach: Reach,
    rows: Rows,
    open_files: OpenFiles,
    maintenance: Maintenance,
    collector: Collector,
    hidden: Hidden,
    spare: Spare,
    removal: Removal,
    workers: Arc<WorkerPool>,
    blocks: Arc<BlockCache>,
    memory: Arc<Memory>,
    /// Threads for reads that are done together, started by the first of them.
    read_workers: Mutex<Option<Arc<WorkerPool>>>,
    counters: Counters,
    recovery: RecoveryReport,
}

/// What has been written, and scanned, since the cube was opened.
#[derive(Debug, Default)]
struct Counters {
    user_bytes: AtomicU64,
    operations: AtomicU64,
    flush_bytes: AtomicU64,
    compaction_bytes_read: AtomicU64,
    compaction_bytes_written: AtomicU64,
    flushes: AtomicU64,
    compactions: AtomicU64,
    collections: AtomicU64,
    collected_segments: AtomicU64,
    collection_bytes_read: AtomicU64,
    collection_bytes_written: AtomicU64,
    collected_records: AtomicU64,
    punched_segments: AtomicU64,
    hidden_records: AtomicU64,
    /// What reading small values for scans has cost: their bytes, and for those that had to come from the device one by one what it could have
    /// read in sequence meanwhile.
    scan_cost_bytes: AtomicU64,
    sortings: AtomicU64,
    sorted_bytes: AtomicU64,
    sorting_bytes_written: AtomicU64,
    sorting_index_bytes: AtomicU64,
}

impl std::fmt::Debug for Cube {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cube")
            .field("directory", &self.directory)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl Cube {
    /// The world it is in.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// What opening found in the log.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.recovery
    }

    /// About how many bytes of device `start..end` takes, values included.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn approximate_size(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<u64> {
        let size = self.index.approximate_size(&self.current.load().version, start, end)?;
        Ok(size.table_bytes + size.value_bytes)
    }

    fn check_may_write(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::read_only("the database was opened read-only: open it without read_only"));
        }
        self.health.check_writable()
    }

    /// Takes no more writes, because of `cause`, and tells everybody who waits.
    fn poison(&self, cause: &Error) {
        let error = self.health.poison(cause);
        self.publisher.fail(&error);
        self.maintenance.wake_all();
    }

    fn read_pool(&self) -> Arc<WorkerPool> {
        let mut pool = self.read_workers.lock();
        let started = pool.get_or_insert_with(|| {
            // Where no thread can be started, the work is done by the caller and the pool of the background.
            WorkerPool::new(&self.env, "tamarack-read", read::READ_WAYS)
                .unwrap_or_else(|_| Arc::clone(&self.workers))
        });
        Arc::clone(started)
    }
}
