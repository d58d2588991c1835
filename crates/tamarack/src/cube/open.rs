//! Opening and closing a cube.

use super::collect::Collector;
use super::durability::Durability;
use super::events::Events;
use super::headroom::Headroom;
use super::health::Health;
use super::inventory::Hidden;
use super::maintain::{Maintenance, Removal, RemoverSlot, Seal, watch};
use super::open_files::{self, OpenFiles};
use super::order::{CommitOrder, Start};
use super::publish::Publisher;
use super::reach::Reach;
use super::repair::remove_scratch;
use super::replay::{Refilled, Replay};
use super::rows::Rows;
use super::snapshot::Snapshots;
use super::spare::Spare;
use super::state::{Current, ReadState};
use super::throttle::Throttle;
use super::{Counters, Cube};
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, LogPosition};
use crate::base::keys::KeyOrder;
use crate::base::memory::Memory;
use crate::base::names::FileName;
use crate::base::options::Options;
use crate::base::swap::ArcSwapOption;
use crate::base::sync::{Arc, Mutex};
use crate::env::pool::WorkerPool;
use crate::env::{DirLock, Env, LockMode, remove_if_there, sync_directory_name};
use crate::index::cache::BlockCache;
use crate::index::compact::CompactionOptions;
use crate::index::manifest::{FIRST_MANIFEST, leveldb};
use crate::index::table::TableOptions;
use crate::index::version::{FileObserver, Version};
use crate::index::{Index, IndexOptions};
use crate::vlog::format::{RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES};
use crate::vlog::lease::Leases;
use crate::vlog::open_segments::OpenSegments;
use crate::vlog::reader::SegmentReader;
use crate::vlog::recover::{Recovered, Task, recover};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

/// What cubes share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// Threads for background work.
    pub workers: Arc<WorkerPool>,
    /// Index blocks in memory.
    pub blocks: Arc<BlockCache>,
    /// The shares of the rest of the memory.
    pub memory: Arc<Memory>,
}

impl Shared {
    /// Divides the memory that `options` allow, and lowers those that ask for more than their share.
    pub fn new(workers: Arc<WorkerPool>, options: &mut Options) -> Self {
        let memory = Arc::new(Memory::divide(options));
        let blocks = Arc::new(BlockCache::new(options.block_cache_bytes as u64));
        Self { workers, blocks, memory }
    }
}

/// Length at which a manifest is replaced by a short one, or that of a memtable if that is less: small databases have
/// small manifests.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// Relocation tables begin to be dissolved when they take this part of the memory for them: what is copied meanwhile needs the rest. Where they do
/// not fit, those who dissolve them have each of them decoded over and over.
const RELOCATIONS_PART: (u64, u64) = (2, 3);

impl Cube {
    /// Opens the cube in `directory`, or creates it if `options` say so: reads the manifest, replays the log from
    /// its head, and makes durable what was replayed. Blocks on the device. The lock belongs to whoever uses the cube:
    /// a job that has just ended may hold the cube for a moment longer, and does nothing with it.
    /// No more files are kept open than [`open_files::allowed`] of what the process may have.
    ///
    /// # Errors
    /// `InvalidArgument` (missing, existing, another comparator), `Locked`, `Corruption`, `Unsupported`, `Io`,
    /// `NoSpace`.
    pub fn open(
        env: Env,
        directory: &Path,
        mut options: Options,
        shared: Shared,
    ) -> Result<(Arc<Self>, Box<dyn DirLock>)> {
        options.check()?;
        let begin = env.clock.monotonic();
        make(&env, directory, &options)?;
        // Where it is must not depend on the working directory, which may change.
        let directory = &*env.fs.canonical(directory).map_err(|error| Error::io("find", directory, error))?;
        let lock = lock(&env, directory, &options)?;
        options.open_files_max = open_files::allowed(options.open_files_max, env.fs.open_files_max());
        let exists = exists(&env, directory, &options)?;
        check_existence(directory, exists, &options)?;
        if !exists {
            sync_directory_name(&*env.fs, directory)?;
        }
        let keys = KeyOrder::new(Arc::clone(&options.comparator));
        let health = Arc::new(Health::default());
        let health_of_files = Arc::clone(&health);
        let observer =
            Observer { reader: Arc::default(), cube: RemoverSlot::default(), health: health_of_files };
        let mut replay = Replay::new(&keys, options.memtable_bytes, Arc::clone(&shared.workers));
        let replaying = |cube, version: &Version| {
            replay_log(&env, directory, &keys, &options, cube, version, &mut replay)
        };
        let (index, recovered) =
            open_index(&env, directory, &options, &shared, observer.clone(), exists, replaying)?;
        let segments = OpenSegments::new(
            Arc::clone(&env.fs),
            directory.to_path_buf(),
            index.cube(),
            options.open_files_max - open_files::tables_max(options.open_files_max),
            options.direct_reads,
        );
        let relocation_bytes_max = options.relocation_cache_bytes as u64;
        let reader = Arc::new(SegmentReader::new(segments, keys.clone(), relocation_bytes_max));
        observer.reader.store(Some(Arc::clone(&reader)));
        let version = index.version();
        remove_orphan_segments(&env, directory, &version, options.read_only)?;
        if !options.read_only {
            remove_scratch(&*env.fs, directory)?;
        }
        let cube = Self::assemble(Parts {
            env,
            directory,
            options,
            keys,
            health,
            index,
            reader,
            shared,
            replay,
            recovered,
            begin,
        });
        observer.cube.store(Some(Arc::new(cube.this.clone())));
        cube.share_out_files();
        if cube.options.paranoid_checks {
            cube.check_everything()?;
        }
        if !cube.options.read_only {
            watch(&cube)?;
        }
        // A comparator of the user's may be asked when jobs have begun: they end before the lock goes.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| cube.schedule())) {
            drop(cube.close());
            cube.workers.shutdown();
            resume_unwind(payload);
        }
        Ok((cube, lock))
    }

    fn assemble(parts: Parts<'_>) -> Arc<Self> {
        let Parts { env, directory, options, keys, health, index, reader, shared, .. } = parts;
        let recovered = parts.recovered;
        let version = index.version();
        let publisher = Publisher::new(recovered.last_sequence);
        let memtable_log_max = options.recovery_log_max / 4;
        let refilled = parts.replay.finish(&recovered, &version, memtable_log_max);
        let Refilled { state, active_left, active_used, active_log_bytes } = refilled;
        let unregistered =
            recovered.segments.iter().filter(|meta| version.segments().get(meta.id).is_none()).copied();
        let unregistered: Vec<_> = unregistered.collect();
        let handles = unregistered.iter().map(|meta| index.files().segment(meta.id)).collect();
        let start = Start {
            tail: recovered.tail,
            next_segment: recovered.next_segment.max(version.numbers().next_segment_id),
            last_sequence: recovered.last_sequence,
            memtable: Arc::clone(&state.active),
            memtable_used: active_used,
            memtable_left: active_left,
            memtable_log_bytes: active_log_bytes,
        };
        let mut recovery = recovered.report;
        recovery.seconds = (env.clock.monotonic() - parts.begin).as_secs_f64();
        Arc::new_cyclic(|this| Self {
            this: this.clone(),
            directory: directory.to_path_buf(),
            id: index.cube(),
            order: CommitOrder::new(start, memtable_log_max, Arc::clone(&publisher), Arc::clone(&health)),
            durability: Durability::new(recovered.tail),
            current: Current::new(ReadState { unregistered: handles, ..state }),
            maintenance: Maintenance::new(unregistered),
            collector: Collector::new(&version, options.gc_bytes_per_second),
            hidden: Hidden::default(),
            events: Events::new(options.listener.clone(), Arc::clone(&health)),
            throttle: Throttle::default(),
            headroom: Headroom::default(),
            leases: Leases::default(),
            spare: Spare::default(),
            removal: Removal::default(),
            snapshots: Arc::new(Snapshots::default()),
            reach: Reach::default(),
            open_files: OpenFiles::new(options.open_files_max),
            rows: Rows::new(
                options.row_cache_bytes as u64,
                &keys,
                recovered.last_sequence,
                Arc::clone(reader.scarcity()),
                env.spawn.parallelism(),
            ),
            readers: Arc::default(),
            workers: shared.workers,
            blocks: shared.blocks,
            memory: shared.memory,
            read_workers: Mutex::new(None),
            counters: Counters::default(),
            env,
            options,
            keys,
            index,
            reader,
            publisher,
            health,
            recovery,
        })
    }

    /// Ends background work, seals the active segment and cuts it to its size. What is not in tables yet is
    /// replayed from the log at the next open. Blocks on the device. A second call does nothing.
    ///
    /// # Errors
    /// `Io`, `NoSpace`, or why the cube was poisoned: everything acknowledged is in the log nevertheless. `InvalidArgument` on a thread that does
    /// its background work, and nothing is changed.
    pub fn close(&self) -> Result<()> {
        if self.is_at_work_here() {
            return Err(Error::invalid_argument(
                "a listener or a comparator closed its database, which waits for the work that called it: close it on another thread",
            ));
        }
        // Before: a writer may be waiting for one of them.
        self.cancel_jobs();
        let (segment, tail, ticket) = self.order.close();
        let seals = self.stop_maintenance();
        let discarded = self.spare.discard(&*self.env.fs);
        self.index.files().release_stock();
        self.index.files().finish_removal();
        if self.options.read_only {
            return Ok(());
        }
        self.health.check_writable()?;
        self.publisher.wait_for(ticket)?;
        for seal in seals {
            self.seal_one(seal)?;
        }
        discarded?;
        if let Some(segment) = segment {
            // An empty one is not kept, unless the log begins in it.
            let head = self.index.version().numbers().log_head;
            if tail.offset == SEGMENT_HEADER_BYTES && head != tail {
                let path = segment.shared().path();
                self.env.fs.remove_file(path).map_err(|error| Error::io("remove", path, error))?;
            } else {
                self.seal_one(Seal::new(segment, tail.offset, ticket))?;
            }
        }
        // Once the manifest knows them, the next open misses them if they are gone or cut.
        self.register_sealed()
    }
}

struct Parts<'a> {
    env: Env,
    directory: &'a Path,
    options: Options,
    keys: KeyOrder,
    health: Arc<Health>,
    index: Arc<Index>,
    reader: Arc<SegmentReader>,
    shared: Shared,
    replay: Replay,
    recovered: Recovered,
    begin: std::time::Duration,
}

/// Makes the directory if it is to be.
fn make(env: &Env, directory: &Path, options: &Options) -> Result<()> {
    let io = |operation| move |error| Error::io(operation, directory, error);
    let there = env.fs.exists(directory).map_err(io("look for"))?;
    if !there {
        check_existence(directory, false, options)?;
        env.fs.create_dir_all(directory).map_err(io("create"))?;
    }
    Ok(())
}

fn lock(env: &Env, directory: &Path, options: &Options) -> Result<Box<dyn DirLock>> {
    let mode = if options.read_only { LockMode::Shared } else { LockMode::Exclusive };
    env.fs.lock_dir(directory, mode).map_err(|error| {
        if error.kind() == std::io::ErrorKind::WouldBlock {
            return Error::locked(format!(
                "{} is open in another process or by another handle of this one: close that first",
                directory.display()
            ));
        }
        Error::io("lock", directory, error)
    })
}

/// Whether `directory` holds a cube; one that may be written to has a durable name then.
///
/// # Errors
/// `Io`; `Corruption` if it holds parts of one but not `CURRENT`: a new cube there would sweep them away.
fn exists(env: &Env, directory: &Path, options: &Options) -> Result<bool> {
    let current = FileName::Current.path(directory);
    if env.fs.exists(&current).map_err(|error| Error::io("look for", &current, error))? {
        if !options.read_only {
            // Whoever created the cube may have been killed before this. No name that comes may outlive `CURRENT`.
            env.fs.sync_dir(directory).map_err(|error| Error::sync(directory, error))?;
        }
        return Ok(true);
    }
    let names = env.fs.list(directory).map_err(|error| Error::io("list", directory, error))?;
    // A creation that was cut off leaves at most its first manifest.
    let part = names.iter().find(|name| match FileName::parse(name) {
        Some(FileName::Segment(_) | FileName::Table(_)) => true,
        Some(FileName::Manifest(number)) => number > FIRST_MANIFEST,
        Some(FileName::Current | FileName::Temporary) | None => false,
    });
    let Some(part) = part else { return Ok(false) };
    leveldb::refuse(&*env.fs, directory, &names)?;
    let expected = format!(
        "the name of a manifest, because {part} is there (without it this is a damaged database: repair it; or a checkpoint \
         that was interrupted: destroy that one)"
    );
    Err(Error::corruption(&current, 0, expected, "no file"))
}

fn check_existence(directory: &Path, exists: bool, options: &Options) -> Result<()> {
    let refuse = |what: &str| Err(Error::invalid_argument(format!("{}: {what}", directory.display())));
    match exists {
        // The words are LevelDB's: its users look for them.
        true if options.error_if_exists => refuse("exists (error_if_exists is true)"),
        false if options.read_only => refuse("does not exist, and read_only creates nothing"),
        false if !options.create_if_missing => refuse("does not exist (create_if_missing is false)"),
        _ => Ok(()),
    }
}

/// Hears of files that the index removes.
#[derive(Debug, Clone)]
struct Observer {
    /// Set once the reader is there; nothing is removed before.
    reader: Arc<ArcSwapOption<SegmentReader>>,
    /// Set once the cube is there.
    cube: RemoverSlot,
    health: Arc<Health>,
}

impl FileObserver for Observer {
    fn removing(&self, file: FileName) {
        if let (FileName::Segment(id), Some(reader)) = (file, &*self.reader.load()) {
            reader.segments().forget(id);
        }
    }

    fn doomed(&self) -> bool {
        let cube = self.cube.load().as_ref().and_then(|cube| cube.upgrade());
        cube.is_some_and(|cube| cube.start_removal())
    }

    fn failed(&self, error: Error) {
        self.health.warn(format!("what is not needed any more stays until the next open: {error}"));
    }
}

/// Opens or creates the index, and has the log behind it replayed.
fn open_index(
    env: &Env,
    directory: &Path,
    options: &Options,
    shared: &Shared,
    observer: Observer,
    exists: bool,
    replay: impl FnOnce(CubeId, &Version) -> Result<Recovered>,
) -> Result<(Arc<Index>, Recovered)> {
    let id = env.rng.random_u64().map_err(|error| Error::io("draw an id for", directory, error))?;
    let keys = KeyOrder::new(Arc::clone(&options.comparator));
    let mut table = TableOptions::new(CubeId(id), keys, RECORD_HEADER_BYTES as u64);
    table.block_bytes = options.block_bytes;
    table.codec = options.block_codec;
    table.filter_bits_per_key = options.filter_bits_per_key;
    table.read_ahead_max = shared.memory.table_read_bytes;
    let index_options = IndexOptions {
        table,
        compaction: CompactionOptions {
            base_weight: options.level_bytes_base,
            table_bytes_max: options.table_bytes_max,
            relocation_bytes_max: options.relocation_cache_bytes as u64 / RELOCATIONS_PART.1
                * RELOCATIONS_PART.0,
            ..CompactionOptions::default()
        },
        manifest_bytes_max: MANIFEST_BYTES_MAX.min(options.memtable_bytes as u64),
        open_tables_max: open_files::tables_max(options.open_files_max),
        blocks: Arc::clone(&shared.blocks),
        filters: Arc::clone(&shared.memory.filters),
    };
    let opened = if exists {
        let health = Arc::clone(&observer.health);
        let (index, torn, recovered) =
            Index::open(env, directory, index_options, Box::new(observer), options.read_only, replay)?;
        if let Some(torn) = torn {
            health.warn(format!(
                "the last edit of the manifest was never acknowledged and was dropped ({torn})"
            ));
        }
        (Arc::new(index), recovered)
    } else {
        let index = Index::create(env, directory, CubeId(id), index_options, Box::new(observer))?;
        let recovered = replay(index.cube(), &index.version())?;
        (Arc::new(index), recovered)
    };
    Ok(opened)
}

/// Removes segment files before the log head, and cold ones, that no version mentions: they were dropped, or were the
/// output of a collection, and the process ended before they were unlinked or installed.
fn remove_orphan_segments(env: &Env, directory: &Path, version: &Version, read_only: bool) -> Result<()> {
    if read_only {
        return Ok(());
    }
    let names = env.fs.list(directory).map_err(|error| Error::io("list", directory, error))?;
    for name in names.iter().filter_map(|name| FileName::parse(name)) {
        let FileName::Segment(id) = name else { continue };
        let finished = id.is_cold() || id < version.numbers().log_head.segment;
        if finished && version.segments().get(id).is_none() {
            let path = name.path(directory);
            remove_if_there(&*env.fs, &path).map_err(|error| Error::io("remove", &path, error))?;
        }
    }
    Ok(())
}

/// The end of the last segment of the log that was sealed.
fn sealed_end(version: &Version) -> LogPosition {
    let last = version.segments().sealed().rfind(|entry| !entry.meta.id.is_cold());
    last.map_or_else(LogPosition::default, |entry| LogPosition {
        segment: entry.meta.id,
        offset: entry.meta.end,
    })
}

fn replay_log(
    env: &Env,
    directory: &Path,
    keys: &KeyOrder,
    options: &Options,
    cube: CubeId,
    version: &Version,
    replay: &mut Replay,
) -> Result<Recovered> {
    let task = Task {
        fs: &*env.fs,
        directory,
        cube,
        order: keys,
        head: version.numbers().log_head,
        last_sequence: version.numbers().last_sequence,
        sealed_end: sealed_end(version),
        inline_value_max: options.inline_value_max,
        check_values: options.paranoid_checks,
        mend: true,
        read_only: options.read_only,
    };
    recover(&task, &mut |operation| {
        replay.apply(&operation);
        Ok(())
    })
}
