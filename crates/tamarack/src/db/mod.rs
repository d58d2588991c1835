//! The public face: a database with LevelDB's operations. Thin: every operation is the cube's.

mod iter;
mod property;
mod read;
mod sort;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::base::batch::{Operation, WriteBatch};
use crate::base::error::{Error, Result};
use crate::base::names::FileName;
use crate::base::options::{Options, WriteOptions};
use crate::base::recovery::RecoveryReport;
use crate::base::sync::Arc;
use crate::cube::Cube;
use crate::cube::check::{CheckLevel, CheckReport};
use crate::cube::checkpoint::CheckpointReport;
use crate::cube::collect::{GcGoal, GcReport};
use crate::cube::open::Shared;
use crate::cube::read::ReadSettings;
use crate::cube::repair::report::RepairReport;
use crate::cube::repair::{RepairOptions, repair};
use crate::cube::snapshot::HeldSequence;
use crate::cube::stats::Stats;
use crate::env::pool::WorkerPool;
use crate::env::posix::posix_env;
use crate::env::{DirLock, Env, LockMode};
use crate::index::manifest::leveldb;

pub use iter::{Entries, Iter};

/// An open database. Cheap to clone; all clones are the same database, and may be used from many threads at once.
///
/// Writes return when the data is in the kernel's hands: they survive the death of the process (kill, panic,
/// out of memory). With [`WriteOptions::sync`], or after [`sync`](Self::sync), they survive that of the machine.
/// Whatever happens, the database holds a prefix of the batches in the order they were committed.
///
/// A child that the process forks has copies of handles, which it may drop, and must not use them otherwise, nor iterators and snapshots.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// let db = tamarack::Db::open(directory.path().join("db"), tamarack::Options::default())?;
/// db.put(b"key", b"value")?;
/// assert_eq!(db.get(b"key")?.as_deref(), Some(&b"value"[..]));
/// db.delete(b"key")?;
/// assert_eq!(db.get(b"key")?, None);
/// db.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Db {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    cube: Arc<Cube>,
    workers: Arc<WorkerPool>,
    /// Held by handles and iterators: when the last of them is gone, the directory can be opened again.
    lock: Arc<Box<dyn DirLock>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (cube, workers, lock) =
            (Arc::clone(&self.cube), Arc::clone(&self.workers), Arc::clone(&self.lock));
        if !lock.is_ours() {
            // A forked child: the files are its parent's, and it has none of the threads that would have to end.
            std::mem::forget((cube, workers));
            return;
        }
        let close = move || {
            // `close` reports errors; a drop cannot, nor pass on what a comparator of the user's panics with. What was acknowledged is in the log in either case.
            drop(catch_unwind(AssertUnwindSafe(|| cube.close())));
            workers.shutdown();
            drop(cube);
            drop(lock);
        };
        if !self.cube.is_at_work_here() {
            return close();
        }
        // A listener or a comparator had the last handle: the work that called it has to end first.
        if self.cube.env().spawn.spawn("tamarack-close", Box::new(close)).is_err() {
            // Its threads go on, so nobody else may open it.
            std::mem::forget(Arc::clone(&self.lock));
        }
    }
}

/// A moment of a database, for reading; see [`Db::snapshot`]. Operations after it are not seen. Cheap to clone; what
/// it alone still sees takes up space until the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Snapshot {
    held: Arc<HeldSequence>,
}

impl Snapshot {
    /// The name given to [`Db::snapshot_named`].
    pub fn name(&self) -> Option<&str> {
        self.held.name()
    }
}

/// How a read is done.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The moment to read at; the present if `None`. Default: `None`.
    pub snapshot: Option<Snapshot>,
    /// Check the checksum of every value read. The record's header, key and length are checked in any case; what the
    /// row cache has was checked when it was put there. Default: true.
    pub verify_checksums: bool,
    /// Keep the index blocks that were read in the cache, and values that are read again, if they were checked, in the row
    /// cache. Default: true.
    pub fill_cache: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { snapshot: None, verify_checksums: true, fill_cache: true }
    }
}

/// What an iterator walks over, and how.
#[derive(Debug, Clone)]
pub struct IterOptions {
    /// The moment to read at; the present if `None`. Default: `None`.
    pub snapshot: Option<Snapshot>,
    /// The first key that belongs to the range. Default: unbounded.
    pub start: Option<Vec<u8>>,
    /// The first key behind the range. Default: unbounded.
    pub end: Option<Vec<u8>>,
    /// Never read values: [`Iter::value`] fails. Default: false.
    pub keys_only: bool,
    /// How many entries the caller will want from where it puts the iterator, if it knows, as YCSB's scans do: their values are read
    /// together, up to 2 MiB and 16,384 at a time, as far as there is memory for them, and none of those behind them before they are asked for. It is no limit, 0 is as
    /// 1, and what follows a turn is not expected. The first value takes as long as all that are read with it. Without this, how far
    /// iterators have gone lately tells how many are read at first. Default: `None`.
    pub expected_entries: Option<usize>,
    /// As in [`ReadOptions`]. Default: true.
    pub verify_checksums: bool,
    /// Keep the index blocks that were read in the cache. Without it, what a long walk reads from front to back comes not even into
    /// the kernel's cache of files, as with [`Options::direct_reads`]; that takes less processor time. Values of 32 to 990 KiB
    /// that lie in disorder come not into it either way once a walk has gone over 64 MiB of them, where there are io_uring and memory for it.
    /// Default: true.
    pub fill_cache: bool,
}

impl Default for IterOptions {
    fn default() -> Self {
        Self {
            snapshot: None,
            start: None,
            end: None,
            keys_only: false,
            expected_entries: None,
            verify_checksums: true,
            fill_cache: true,
        }
    }
}

/// Threads beside those for flushes and compactions: one seals full segments of the log, one readies the space
/// that writers will need next, and follows them. Both mostly wait for the device.
const LOG_THREADS: usize = 2;

impl Db {
    /// Opens the database in the directory `path`, or creates it. Replays the log that the last process left and
    /// makes it durable. Blocks on the device.
    ///
    /// # Errors
    /// `InvalidArgument` (an option out of range, another comparator, a missing or existing database), `Locked`
    /// (open elsewhere, or by another handle of this process), `Corruption`, `Unsupported`, `Io`, `NoSpace`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        Self::open_with_env(path, options, &posix_env())
    }

    /// Opens a database in another world than the operating system's, for tests.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_with_env(path: impl AsRef<Path>, mut options: Options, env: &Env) -> Result<Self> {
        options.check()?;
        let path = path.as_ref();
        let workers = WorkerPool::new(env, "tamarack", options.background_threads + LOG_THREADS)
            .map_err(|error| Error::io("start threads for", path, error))?;
        let shared = Shared::new(Arc::clone(&workers), &mut options);
        let opened = Cube::open(env.clone(), path, options, shared);
        let (cube, lock) = opened.inspect_err(|_| workers.shutdown())?;
        Ok(Self { inner: Arc::new(Inner { cube, workers, lock: Arc::new(lock) }) })
    }

    /// What opening found in the log.
    pub fn recovery(&self) -> &RecoveryReport {
        self.inner.cube.recovery()
    }

    /// Sets `key` to `value`; returns when that is visible and survives the death of the process.
    ///
    /// # Errors
    /// `InvalidArgument` (a key over 65,535 bytes, a value over 4 GiB − 1), `NoSpace`, `Closed`: nothing was written; nor for `ReadOnly`, unless what
    /// made the database so, another's write or sync, failed while this one was under way: it is in doubt then. `Io`: in doubt until the
    /// database is opened again. With [`sync`](WriteOptions::sync) the sync may fail after the write became visible; it is then in doubt, too.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, &WriteOptions::default())
    }

    /// Like [`put`](Self::put), with options.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub fn put_with(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        self.inner.cube.write_one(Operation::Put { key, value }, options)
    }

    /// Removes `key`. That it is not there is no error.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(key, &WriteOptions::default())
    }

    /// Like [`delete`](Self::delete), with options.
    ///
    /// # Errors
    /// As for [`put`](Self::put).
    pub fn delete_with(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        self.inner.cube.write_one(Operation::Delete { key }, options)
    }

    /// Applies `batch` atomically: readers see all of it or nothing, and so does whoever opens the database after a
    /// crash.
    ///
    /// # Errors
    /// As for [`put`](Self::put); also `InvalidArgument` for a batch whose records do not all begin within 4 GiB.
    pub fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        self.inner.cube.write(batch, options)
    }

    /// Holds the present moment, for reads and iterators.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
    /// db.put(b"key", b"old")?;
    /// let options = tamarack::ReadOptions { snapshot: Some(db.snapshot()), ..Default::default() };
    /// db.put(b"key", b"new")?;
    /// assert_eq!(db.get_with(b"key", &options)?, Some(b"old".to_vec()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { held: Arc::new(self.inner.cube.snapshot(None)) }
    }

    /// Like [`snapshot`](Self::snapshot), with a name by which [`Stats::readers`](crate::Stats::readers) and warnings
    /// call it, so that one that was forgotten can be found. Names mean nothing else, and need not differ.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
    /// let nightly = db.snapshot_named("nightly backup");
    /// assert_eq!(nightly.name(), Some("nightly backup"));
    /// assert_eq!(db.stats().readers[0].name.as_deref(), Some("nightly backup"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot_named(&self, name: &str) -> Snapshot {
        Snapshot { held: Arc::new(self.inner.cube.snapshot(Some(name))) }
    }

    /// An iterator over a range. It sees one moment, however long it lives, and stands nowhere until a seek.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let db = tamarack::Db::open(directory.path(), tamarack::Options::default())?;
    /// for key in ["a", "b", "c"] {
    ///     db.put(key.as_bytes(), b"value")?;
    /// }
    /// let mut iter = db.iter(&tamarack::IterOptions::default())?;
    /// iter.seek_to_last()?;
    /// assert_eq!(iter.key(), b"c");
    /// iter.prev()?;
    /// assert_eq!(iter.key(), b"b");
    /// assert_eq!(iter.value()?, b"value");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a snapshot of another database; `Io`, `Corruption`.
    pub fn iter(&self, options: &IterOptions) -> Result<Iter> {
        let read = ReadOptions {
            snapshot: options.snapshot.clone(),
            verify_checksums: options.verify_checksums,
            fill_cache: options.fill_cache,
        };
        let settings = self.settings(&read)?;
        let inner = self.inner.cube.iter(
            options.start.clone(),
            options.end.clone(),
            options.expected_entries,
            settings,
        )?;
        Ok(Iter::new(inner, options.keys_only, options.snapshot.clone(), self.clone()))
    }

    /// About how many bytes of disk the keys from `start` (inclusive) to `end` (exclusive) take, values included.
    /// What lies in memtables only is not counted.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn approximate_size(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<u64> {
        self.inner.cube.approximate_size(start, end)
    }

    /// Collects garbage of the value log now, beside what happens in the background (where
    /// [`Options::max_space_amplification`] says when). What only memtables know to be dead is not freed:
    /// [`flush`](Self::flush) first. Blocks on the device; readers and writers go on.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let options = tamarack::Options { segment_bytes_max: 64 << 10, ..tamarack::Options::default() };
    /// # let db = tamarack::Db::open(directory.path(), options)?;
    /// for round in 0..4 {
    ///     for key in 0..50_u32 {
    ///         db.put(&key.to_be_bytes(), &[round; 4000])?;
    ///     }
    /// }
    /// db.flush()?;
    /// let done = db.gc(tamarack::GcGoal::Until(1.5))?;
    /// assert!(done.bytes_after < done.bytes_before);
    /// assert_eq!(db.get(&7_u32.to_be_bytes())?, Some(vec![3; 4000]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` for a ratio below 1; `NoSpace`, `Io`, `ReadOnly`, `Closed`; `Corruption` when a segment is
    /// damaged: it is kept, and left alone from then on. Nothing is lost. A [`close`](Self::close) ends it soon.
    pub fn gc(&self, goal: GcGoal) -> Result<GcReport> {
        self.inner.cube.gc(goal)
    }

    /// Keeps garbage collection from beginning in the background until [`resume_gc`](Self::resume_gc) has been called
    /// as often. What runs goes on to its end. The bound on space does not hold meanwhile.
    pub fn pause_gc(&self) {
        self.inner.cube.pause_gc();
    }

    /// Ends a pause of garbage collection.
    ///
    /// # Errors
    /// `InvalidArgument` if it is not paused.
    pub fn resume_gc(&self) -> Result<()> {
        self.inner.cube.resume_gc()
    }

    /// Changes how many bytes a second garbage collection may copy, as
    /// [`Options::gc_bytes_per_second`](crate::Options::gc_bytes_per_second) does when the database is opened; 0 is no limit.
    /// Holds from the next copy on, at most a mebibyte later, for this handle's database as long as it is open.
    ///
    /// ```
    /// # use tamarack::{Db, Options};
    /// # let directory = tempfile::tempdir()?;
    /// let db = Db::open(directory.path(), Options { gc_bytes_per_second: 8 << 20, ..Options::default() })?;
    /// // At night nobody minds.
    /// db.set_gc_bytes_per_second(0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_gc_bytes_per_second(&self, bytes: u64) {
        self.inner.cube.set_gc_rate(bytes);
    }

    /// Flushes, and compacts every table that overlaps the range, bounds included, so that nothing deleted or
    /// overwritten is left in it but what snapshots see. Blocks until that is done.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `Corruption`, `ReadOnly`, `Closed`. Nothing is lost.
    pub fn compact_range(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<()> {
        self.inner.cube.compact_range(start, end)
    }

    /// Turns every memtable into tables, so that opening has nothing to replay. Blocks.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, `ReadOnly`, `Closed`. Nothing is lost.
    pub fn flush(&self) -> Result<()> {
        self.inner.cube.flush()
    }

    /// Makes a copy of the database in the directory `path`, which must be empty or not there. Reads and writes go on.
    /// The copy holds what a prefix of all batches has left, with everything in it that was acknowledged before the
    /// call, and is safe against a failure of the machine when the call returns. It is a database like any other:
    /// whatever happens to one of the two never changes the other.
    ///
    /// On the same file system this takes little time and, at first, next to no space: files that never change
    /// again are shared by hard links, and each takes up space as long as one of the two needs it. Where files cannot be linked
    /// (another file system, one without hard links) they are copied; the report says how much was.
    /// Flushes first. A database that was opened read-only can be copied, too; its log is then copied with it, and
    /// sealed, which reads the heads of all records of its last segment.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let db = tamarack::Db::open(directory.path().join("db"), tamarack::Options::default())?;
    /// db.put(b"key", b"before")?;
    /// db.checkpoint(directory.path().join("copy"))?;
    /// db.put(b"key", b"after")?;
    /// let copy = tamarack::Db::open(directory.path().join("copy"), tamarack::Options::default())?;
    /// assert_eq!(copy.get(b"key")?.as_deref(), Some(&b"before"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is anything in `path`: nothing was written. `Locked` (another checkpoint is being made
    /// there), `NoSpace`, `Io`, `ReadOnly`, `Closed`; `Corruption` if the log of a database that was opened
    /// read-only has changed: what was made has been removed again. A crash in the midst
    /// leaves a directory that cannot be opened; [`destroy`](Self::destroy) removes it.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<CheckpointReport> {
        self.inner.cube.checkpoint(path.as_ref())
    }

    /// Makes everything acknowledged so far safe against a failure of the machine. Blocks on the device; calls at
    /// the same time share one sync, and where nothing was written since the last one there is none.
    ///
    /// # Errors
    /// `Io`: the database then takes no more writes until it is opened again.
    pub fn sync(&self) -> Result<()> {
        self.inner.cube.sync()
    }

    /// Waits until flushes and compactions have nothing left to do.
    ///
    /// # Errors
    /// Why background work stopped; `Closed` if the database was closed with work undone.
    pub fn wait_idle(&self) -> Result<()> {
        self.inner.cube.wait_idle()
    }

    /// Figures about the database.
    pub fn stats(&self) -> Stats {
        self.inner.cube.stats()
    }

    /// A property as text, or `None` if there is none of that name: `tamarack.stats`,
    /// `tamarack.num-files-at-level<N>`, `tamarack.sstables`, `tamarack.approximate-memory-usage`; the same with
    /// `leveldb.` in front, for programs that ask LevelDB's names.
    pub fn property(&self, name: &str) -> Option<String> {
        property::property(&self.inner.cube.stats(), name)
    }

    /// Checks what is on disk while the database goes on. Reads as much as `level` says.
    pub fn check(&self, level: CheckLevel) -> CheckReport {
        self.inner.cube.check(level)
    }

    /// Closes the database: ends background work, and [`gc`](Self::gc) and
    /// [`compact_range`](Self::compact_range) where other threads are in them, waits until all that has ended, seals the log and cuts it to its size. Other clones and
    /// iterators can still read; writing fails with `Closed`. Dropping the last clone does the same but cannot
    /// report errors.
    ///
    /// # Errors
    /// `Io`, `NoSpace`: everything acknowledged is in the log nevertheless. `InvalidArgument` in a listener, or a comparator, that background
    /// work calls, and in a forked child of the process that opened the database.
    pub fn close(self) -> Result<()> {
        if !self.inner.lock.is_ours() {
            let reason = "the database was opened before this process was forked: only the process that opened it can close it";
            return Err(Error::invalid_argument(reason));
        }
        self.inner.cube.close()
    }

    /// Removes the database in `path`: every file that is one of ours, and the directory if nothing else is in it and it can be removed, which
    /// one that is mounted, or behind a symbolic link, cannot. A directory without a database is no error.
    ///
    /// # Errors
    /// `Locked` if it is open; `InvalidArgument` if it is a LevelDB database; `Io`.
    pub fn destroy(path: impl AsRef<Path>) -> Result<()> {
        destroy(path.as_ref(), &posix_env())
    }

    /// Repairs the database in `path`, which must not be open: makes one that can be opened out of what is whole, and
    /// reports what is not, file by file and key range by key range. Keys that the report does not name have the values
    /// that were last written. Values that are lost read as absent, never as older ones; where an older
    /// value or a deleted key may have come back, the report names the range.
    ///
    /// `options` are those the database is opened with; `inline_value_max` the largest it ever was, for longer values that are in a
    /// damaged part of a table alone are taken for superseded ones. Nothing is removed: what the repaired database does not use is in
    /// the directory `lost` in `path`, with the report, and may be removed by whoever does not need it. A
    /// repair that is cut off, by a kill or a loss of power, can be done again. One of a whole database changes nothing.
    /// Reads every byte, and writes the index and the records of damaged segments anew; needs the space for that.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("db");
    /// use tamarack::{Db, Options};
    ///
    /// let db = Db::open(&path, Options::default())?;
    /// db.put(b"key", b"value")?;
    /// db.close()?;
    /// std::fs::remove_file(path.join("CURRENT"))?;
    /// assert!(Db::open(&path, Options::default()).is_err());
    ///
    /// let report = Db::repair(&path, &Options::default())?;
    /// println!("{report}");
    /// assert!(report.changed && report.loss_of(b"key").is_none());
    /// assert_eq!(Db::open(&path, Options::default())?.get(b"key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if there is no database, or its keys are in another order; `Locked` if it is open;
    /// `Unsupported`, also where a file bears one of the last numbers of its kind; `Corruption` if nothing is left that tells which database it was; `Io`, `NoSpace`: the
    /// repair can be tried again.
    pub fn repair(path: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
        Self::repair_with(path, options, RepairOptions::default())
    }

    /// Like [`repair`](Self::repair), with options for the repair itself.
    ///
    /// # Errors
    /// As for [`repair`](Self::repair).
    pub fn repair_with(
        path: impl AsRef<Path>,
        options: &Options,
        how: RepairOptions,
    ) -> Result<RepairReport> {
        repair(&posix_env(), path.as_ref(), options, how)
    }

    /// Repairs a database in another world than the operating system's, for tests.
    ///
    /// # Errors
    /// As for [`repair`](Self::repair).
    #[doc(hidden)]
    pub fn repair_with_env(
        path: impl AsRef<Path>,
        options: &Options,
        how: RepairOptions,
        env: &Env,
    ) -> Result<RepairReport> {
        repair(env, path.as_ref(), options, how)
    }

    fn settings(&self, options: &ReadOptions) -> Result<ReadSettings> {
        if let Some(snapshot) = &options.snapshot {
            self.inner.cube.check_snapshot(&snapshot.held)?;
        }
        Ok(ReadSettings {
            sequence: options.snapshot.as_ref().map(|snapshot| snapshot.held.sequence()),
            verify: options.verify_checksums,
            fill_cache: options.fill_cache,
        })
    }
}

fn destroy(path: &Path, env: &Env) -> Result<()> {
    let io = |operation| move |error| Error::io(operation, path, error);
    if !env.fs.exists(path).map_err(io("look for"))? {
        return Ok(());
    }
    let lock = env.fs.lock_dir(path, LockMode::Exclusive).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            Error::locked(format!("{} is open: close it before destroying it", path.display()))
        }
        _ => Error::io("lock", path, error),
    })?;
    let mut foreign = false;
    // CURRENT goes last: what a crash leaves is a damaged database, and is not taken for an empty directory.
    let mut names = env.fs.list(path).map_err(io("list"))?;
    leveldb::refuse(&*env.fs, path, &names)?;
    names.sort_by_key(|name| FileName::parse(name) == Some(FileName::Current));
    for name in names {
        if FileName::parse(&name).is_none() {
            foreign = true;
            continue;
        }
        let file = path.join(name);
        env.fs.remove_file(&file).map_err(|error| Error::io("remove", &file, error))?;
    }
    env.fs.sync_dir(path).map_err(io("sync"))?;
    drop(lock);
    if foreign {
        return Ok(());
    }
    match env.fs.remove_dir(path) {
        // There is no database any more. It may be a link or a mount point, or in a directory of somebody else.
        Err(error) if is_in_the_way(error.kind()) => Ok(()),
        removed => removed.map_err(io("remove")),
    }
}

/// Whether a directory that cannot be removed for this reason is to stay.
fn is_in_the_way(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{
        DirectoryNotEmpty, NotADirectory, PermissionDenied, ReadOnlyFilesystem, ResourceBusy,
    };
    matches!(kind, NotADirectory | DirectoryNotEmpty | ResourceBusy | PermissionDenied | ReadOnlyFilesystem)
}
