//! The world outside: files, mapped log segments, directories, clock, randomness and threads.
//!
//! The engine reaches the operating system through these traits alone, so that a test can put it into a world
//! that loses power, runs full or fails any call. [`posix`] is the real one. Errors are plain [`io::Error`]s;
//! the caller knows what it was doing and names operation and file when it turns them into the engine's own.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::error::Error;
use crate::base::large_pages::LARGE_PAGE_BYTES;
use crate::base::sync::Arc;

pub mod at_work;
pub mod fault;
pub mod pool;
pub mod posix;
pub mod sim;
pub mod unwatched;
pub mod write_behind;

/// One world. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Env {
    /// Files and directories.
    pub fs: Arc<dyn Fs>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Random numbers.
    pub rng: Arc<dyn Rng>,
    /// Threads.
    pub spawn: Arc<dyn Spawn>,
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env").field("fs", &self.fs).finish_non_exhaustive()
    }
}

/// A file system.
///
/// Data is durable after [`File::sync_data`], a name (created, renamed or removed) after [`Fs::sync_dir`] of its
/// directory; neither implies the other. Files are made readable for their owner alone.
pub trait Fs: Send + Sync + fmt::Debug {
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// The same, but what is not in the system's cache of files is read past it, if the system can: it does not come into the cache, and
    /// nothing has to go for it. That takes two descriptors. A [`ReadQueue`] needs less time than [`File::read_at`].
    fn open_past_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_read(path)
    }
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Creates a file that must not exist, for reading and writing.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>>;
    /// Renames a file, replacing `to` atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives the file `from` a second name, `to`, which must not exist. Fails with [`io::ErrorKind::Unsupported`]
    /// where that cannot be: on another file system, on one without such names, or when the file has all it may have.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory and its missing parents; an existing directory is no error.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in no particular order. Names that are not UTF-8, which the engine never makes,
    /// are left out.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// The path of the directory `path` from the root, without symbolic links, so that it stays what it is when the working directory
    /// changes; `path` itself where directories on the way may not be read.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf>;
    /// Whether something exists at `path`.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Bytes of a block of the file system that holds `path`: what it reserves and gives back is counted in those.
    fn block_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// How many files the process may have open at a time.
    fn open_files_max(&self) -> u64;
    /// Bytes that may still be written to the file system that holds the directory `path`, without privileges. A
    /// file system that does not say how large it is has no end: `u64::MAX`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
    /// Locks a directory against every other opener, in this process or another: many shared locks or one
    /// exclusive one. Fails with [`io::ErrorKind::WouldBlock`] when the lock is taken. Dropping the result releases it, and so does
    /// the death of the process and of the children that it forked with it.
    fn lock_dir(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn DirLock>>;
    /// A queue for up to `depth` reads of this file system's files; `None` where there is none to be had, so that whoever wants
    /// several reads under way needs as many threads.
    fn read_queue(&self, depth: u32) -> Option<Box<dyn ReadQueue>>;
}

/// Reads that are under way at a time: one thread begins them without waiting for any, and takes their outcomes as they come, in
/// any order. What is under way when the queue is dropped is waited for, and lost.
pub trait ReadQueue: Send + fmt::Debug {
    /// Whether a read of `len` bytes may be taken in.
    fn has_room(&self, len: usize) -> bool;
    /// Whether none is.
    fn is_empty(&self) -> bool;
    /// Takes in a read of `len` bytes of `file` at `offset`, which `ticket` tells from others. There must be room.
    fn begin(&mut self, ticket: usize, file: &Arc<dyn File>, offset: u64, len: usize);
    /// Lets the device begin with what was taken in. Whoever does not call it lets it begin with
    /// [`finish_some`](Self::finish_some).
    fn submit(&mut self);
    /// Waits until a read has ended, if any is under way, and hands over the outcomes there are: tickets, and what
    /// [`File::read_at`] would have given, so fewer bytes than were wanted at the end of a file alone.
    fn finish_some(&mut self, done: &mut dyn FnMut(usize, io::Result<&[u8]>));
    /// Has reads that are not small go into memory in [large pages](LARGE_PAGE_BYTES), as many bytes at a time as one of them has: into `pages`, which
    /// another queue [gave back](Self::give_back_pages), or else some that it takes when there is something to read. No read is under way. Where
    /// there are none to be had, this does nothing.
    fn use_pages(&mut self, _pages: Option<ReadPages>) {}
    /// Ends that, with no read under way.
    fn give_back_pages(&mut self) -> Option<ReadPages> {
        None
    }
    /// Gives back what memory it can do without while it is not in use, with no read under way. Returns whether it is worth
    /// being used again.
    fn rest(&mut self) -> bool;
}

/// Memory that some kind of queue reads into.
pub type ReadPages = Box<dyn Any + Send>;

/// What reads past the system's cache are best multiples of: hardly a device has larger sectors.
pub const PAGE_BYTES: u64 = 4096;

/// How a directory is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// With other readers.
    Shared,
    /// Alone.
    Exclusive,
}

/// A held directory lock.
pub trait DirLock: Send + Sync + fmt::Debug {
    /// Whether this process took it: a forked child has a copy of it, and of all that it protects, but no right to it.
    fn is_ours(&self) -> bool;
}

/// What a file will be read like, so that the kernel neither reads ahead needlessly nor too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Small reads all over the place.
    Random,
    /// One pass from front to back.
    Sequential,
}

/// An open file. All methods take `&self` and may be called from several threads.
pub trait File: Any + Send + Sync + fmt::Debug {
    /// Reads at `offset` until `buf` is full or the file ends; returns how many bytes were read. Retries
    /// interrupted and partial reads, so a short count means the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Reads all of `buf` at `offset` if that is in memory, without waiting for the device. `false` if some of it is not, or the
    /// system does not tell: `buf` may have changed then.
    fn read_cached(&self, buf: &mut [u8], offset: u64) -> io::Result<bool>;
    /// Writes all of `buf` at `offset`, growing the file if need be. Retries interrupted and partial writes;
    /// after an error any part may have been written.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Writes all of `parts`, one behind the other, from `offset` on, as [`write_at`](Self::write_at) does.
    fn write_parts_at(&self, parts: [&[u8]; 3], offset: u64) -> io::Result<()> {
        parts
            .into_iter()
            .try_fold(offset, |at, part| self.write_at(part, at).map(|()| at + part.len() as u64))?;
        Ok(())
    }
    /// The file's length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Bytes of the device that the file takes up.
    fn allocated_bytes(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros) the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Reserves space for `offset..offset + len` and makes the file at least that long; the new bytes read as
    /// zeros. Fails with [`io::ErrorKind::Unsupported`] where the file system cannot.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;
    /// How many names the file has.
    fn links(&self) -> io::Result<u64>;
    /// Whether what is written goes to the blocks that are there. Where each write goes to others (btrfs, bcachefs, ZFS, f2fs), there is
    /// nothing to be had from writing to a block ahead.
    fn is_rewritten_in_place(&self) -> io::Result<bool> {
        Ok(true)
    }
    /// Gives the blocks that lie wholly in `offset..offset + len` back to the file system; the whole range reads as
    /// zeros from then on, and the file's length stays. Fails with [`io::ErrorKind::Unsupported`] where the file system
    /// cannot.
    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Makes `offset..offset + len`, a part of the file, read as zeros, with its space reserved: no block is given back, nor
    /// written. Fails with [`io::ErrorKind::Unsupported`] where the file system cannot.
    fn zero(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Begins to write `offset..offset + len` to the device, and does not wait for it: the next [`sync_data`](Self::sync_data)
    /// has less to wait for. Makes nothing durable. Advice: an error is reported but changes no result, and what could
    /// not be written, a sync tells. Where the system has no such call this does nothing.
    fn write_behind(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Begins to read `offset..offset + len` from the device, as far as the file has it, and does not wait for it: a
    /// [`read_at`](Self::read_at) that follows has less to wait for. Advice: an error is reported but changes no result.
    fn read_ahead(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Has all of `range` in the system's cache of files that the file has of it, and waits for that. What is not there is read into
    /// [large pages](LARGE_PAGE_BYTES) where there are such, which a device fills in half of the time, with all that is in them; what little is
    /// there in small ones is read again. For what nothing new is written to. Not all of it is there afterwards where much was there in small pages, or the system
    /// cannot do so. Advice: an error is reported but changes no result.
    fn load(&self, _range: Range<u64>) -> io::Result<Loaded> {
        Ok(Loaded::default())
    }
    /// Lets the system give up what it has of `range` in memory, as far as that is written to the device: whoever had it [loaded](Self::load)
    /// does not want it any more. Advice: an error is reported but changes no result. Where the system has no such call this does nothing.
    fn unload(&self, _range: Range<u64>) -> io::Result<()> {
        Ok(())
    }
    /// Makes the file's data (not its name) durable. After a failure nothing that was written since the last
    /// success may be taken as durable, not even if a second call succeeds.
    fn sync_data(&self) -> io::Result<()>;
    /// Lets the system give up small pages of what it has of `range` in memory, where that is in [large ones](Mapping::join_pages), which it
    /// gives up as a whole. For what is durable as it is. Advice: an error is reported but changes no result. Where the system has no
    /// such call this does nothing.
    fn part_pages(&self, _range: Range<u64>) -> io::Result<()> {
        Ok(())
    }
    /// Declares how the file will be read. Advice: an error is reported but changes no result.
    fn advise(&self, access: Access) -> io::Result<()>;
    /// Maps the first `len` bytes for shared writing. `len` may reach past the end of the file; bytes there
    /// must not be touched before [`allocate`](Self::allocate) has covered them. Fails with
    /// [`io::ErrorKind::Unsupported`] where shared mappings are not to be had.
    fn map(&self, len: u64) -> io::Result<Arc<dyn Mapping>>;
}

/// What [`File::load`] has done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    /// Bytes that were read from the device.
    pub read: u64,
    /// Whether all that was asked for is in memory now.
    pub is_there: bool,
}

/// The large pages that lie wholly in `range`.
pub fn large_pages_in(range: &Range<u64>) -> Range<u64> {
    range.start.next_multiple_of(LARGE_PAGE_BYTES)..range.end / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES
}

/// A file's bytes mapped for shared writing: what is written is in the kernel's hands at once, and survives the
/// death of the process, but not of the machine before [`File::sync_data`].
#[expect(unsafe_code, reason = "a shared mapping is memory that the kernel, too, reads and cuts")]
pub trait Mapping: Send + Sync + fmt::Debug {
    /// Length of the mapping in bytes.
    fn len(&self) -> u64;

    /// Readies `offset..offset + len`, which the file's allocated length covers, for being written: the page
    /// faults that the writer would take one by one are taken here, many at a time. Changes no byte. Where the
    /// system has no such call this does nothing, and the writer takes the faults.
    fn prefault(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Lets [the large pages](large_pages_in) in `offset..offset + len`, of which nothing is in memory yet, be pages of the system: that is
    /// one fault instead of hundreds, but once one byte of such a page has changed, a sync writes all of it. Returns where pages
    /// may be large, which is nowhere if the system does not know such. Changes no byte.
    fn join_pages(&self, offset: u64, len: u64) -> io::Result<Range<u64>>;

    /// Tells that hardly anybody will touch the pages again that lie wholly in `range`: else the system interrupts all
    /// processors for each of them that a sync writes. Changes no byte. Advice: an error is reported but changes no result. Where the system
    /// has no such call this does nothing.
    fn leave(&self, _range: Range<u64>) -> io::Result<()> {
        Ok(())
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Safety
    /// The range lies inside the mapping and inside the file's allocated length, nobody truncates the file
    /// meanwhile, and no other thread reads or writes any byte of the range through the mapping during the
    /// call.
    unsafe fn write(&self, offset: u64, bytes: &[u8]);

    /// The bytes of `offset..offset + len`.
    ///
    /// # Safety
    /// The range lies inside the mapping and inside the file's allocated length, and while the result lives
    /// nobody truncates the file below it or writes any byte of it.
    unsafe fn bytes(&self, offset: u64, len: usize) -> &[u8];
}

/// Time.
pub trait Clock: Send + Sync {
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// Time since the Unix epoch, for people; may jump.
    fn wall(&self) -> Duration;
    /// Blocks the thread.
    fn sleep(&self, duration: Duration);
}

/// Randomness for ids and salts.
pub trait Rng: Send + Sync {
    /// A number that cannot be guessed.
    fn random_u64(&self) -> io::Result<u64>;
}

/// Threads.
pub trait Spawn: Send + Sync {
    /// Starts a thread named `name`.
    fn spawn(&self, name: &str, body: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Join>>;
    /// How many threads can run at the same time.
    fn parallelism(&self) -> usize;
    /// Lets other threads run first, if any can.
    fn yield_now(&self);
}

/// A started thread.
pub trait Join: Send {
    /// Waits for its end. `Err` with the panic's message if it panicked. Dropping the handle instead lets the
    /// thread go on by itself.
    fn join(self: Box<Self>) -> Result<(), String>;
}

/// What a panic said.
pub fn panic_message(payload: &(dyn Any + Send)) -> String {
    let said = payload.downcast_ref::<&str>().copied();
    said.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .into()
}

/// Reads exactly `buf.len()` bytes at `offset`; a file that ends earlier gives
/// [`io::ErrorKind::UnexpectedEof`].
pub fn read_exact_at(file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<()> {
    let read = file.read_at(buf, offset)?;
    if read < buf.len() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("the file ends at {}, {} bytes were wanted at {offset}", offset + read as u64, buf.len()),
        ));
    }
    Ok(())
}

/// Reads a whole file.
pub fn read_file(fs: &dyn Fs, path: &Path) -> io::Result<Vec<u8>> {
    let file = fs.open_read(path)?;
    let len = usize::try_from(file.len()?).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = vec![0; len];
    read_exact_at(&*file, &mut bytes, 0)?;
    Ok(bytes)
}

/// Removes a file that may be gone already.
pub fn remove_if_there(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    match fs.remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// Writes what is to be the file at `path` into a temporary file beside it, and syncs that. The file at `path` stays as it
/// is, also after an error.
pub fn write_aside(fs: &dyn Fs, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = aside(path);
    remove_if_there(fs, &aside)?;
    let file = fs.create_new(&aside)?;
    file.write_at(bytes, 0)?;
    file.sync_data()
}

/// Replaces the file at `path` by what was written aside for it, atomically and durably. After an error nobody knows which of the two
/// a crash would leave.
pub fn put_in_place(fs: &dyn Fs, path: &Path) -> io::Result<()> {
    fs.rename(&aside(path), path)?;
    fs.sync_dir(directory_of(path))
}

/// The temporary file beside `path`.
pub fn aside(path: &Path) -> PathBuf {
    let mut name = PathBuf::from(path).into_os_string();
    name.push(".tmp");
    PathBuf::from(name)
}

/// The directory that holds `path`; the working directory for a bare file name.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the name of the directory `path` durable, and those of the directories in which it truly lies: any of them may be new, and made
/// by a process that was killed before it could sync. Whoever may not read a directory cannot sync it; then that is left to
/// its owner, as it is where a file system does not sync directories. Blocks on the device.
///
/// # Errors
/// `Io`.
pub fn sync_directory_name(fs: &dyn Fs, path: &Path) -> Result<(), Error> {
    let path = fs.canonical(path).map_err(|error| Error::io("find", path, error))?;
    let named = path.ancestors().take_while(|ancestor| ancestor.parent().is_some());
    for parent in named.map(directory_of) {
        match fs.sync_dir(parent) {
            Err(error) if !is_beyond_us(&error) => return Err(Error::sync(parent, error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn is_beyond_us(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput)
}
