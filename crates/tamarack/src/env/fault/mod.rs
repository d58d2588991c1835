//! A testing world: another world whose file calls are counted, made to fail on demand, and held to a quota.
//!
//! [`FaultEnv::new`] wraps an [`Env`] and gives a [`Faults`] handle to steer it with, also while the engine runs:
//! - every call is counted by kind and by file, so a test can assert what an operation costs;
//! - a [`Fault`] makes chosen calls fail, once or for ever;
//! - a quota makes the disk run full;
//! - a watcher sees each call before it is made, and may look at the files then, or keep it waiting;
//! - single calls can be declared unsupported, which forces the engine's fallbacks.
//!
//! Clock, randomness and threads pass through. Writes through a mapping are memory accesses: they are neither
//! counted nor failed, but the `allocate` calls that make room for them are. Nothing is lost in a crash here; that
//! is another world's business.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, ThreadId};

use rustix::io::Errno;

use self::counts::Counts;
use self::files::FaultFs;
pub use self::rule::Fault;
use self::rule::{Failure, Verdict};
use self::space::Space;
use self::watch::Watch;
use super::Env;
use crate::base::sync::{Arc, Mutex};

mod counts;
mod files;
mod queue;
mod rule;
mod space;
mod watch;

#[cfg(test)]
mod tests;

/// The error number of a device that could not read or write.
pub const EIO: i32 = Errno::IO.raw_os_error();
/// The error number of a full file system.
pub const ENOSPC: i32 = Errno::NOSPC.raw_os_error();
/// The error number of a file system that has become read-only.
pub const EROFS: i32 = Errno::ROFS.raw_os_error();

/// A kind of call to the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// `Fs::open_read`
    OpenRead,
    /// `Fs::open_past_cache`
    OpenPastCache,
    /// `Fs::open_write`
    OpenWrite,
    /// `Fs::create_new`
    Create,
    /// `Fs::rename`; its path is the new name.
    Rename,
    /// `Fs::hard_link`; its path is the new name.
    Link,
    /// `Fs::remove_file`
    RemoveFile,
    /// `Fs::create_dir_all`
    CreateDir,
    /// `Fs::remove_dir`
    RemoveDir,
    /// `Fs::list`
    List,
    /// `Fs::canonical`
    Canonical,
    /// `Fs::exists`
    Exists,
    /// `Fs::block_bytes`
    BlockSize,
    /// `Fs::sync_dir`
    SyncDir,
    /// `Fs::free_bytes`
    FreeBytes,
    /// `Fs::lock_dir`
    LockDir,
    /// `File::read_at`
    Read,
    /// `File::write_at`
    Write,
    /// `File::len`, `File::allocated_bytes` and `File::links`
    Length,
    /// `File::set_len`
    SetLength,
    /// `File::allocate`
    Allocate,
    /// `File::punch_hole`
    PunchHole,
    /// `File::zero`
    Zero,
    /// `File::sync_data`
    SyncData,
    /// `File::advise`
    Advise,
    /// `File::part_pages`
    PartPages,
    /// `File::read_ahead`
    ReadAhead,
    /// `File::load`
    Load,
    /// `File::unload`
    Unload,
    /// `File::write_behind`
    WriteBehind,
    /// `File::map`
    Map,
}

impl Call {
    /// Whether the call changes a file or a directory, or makes a change durable.
    pub fn is_mutating(self) -> bool {
        match self {
            Self::Create
            | Self::Rename
            | Self::Link
            | Self::RemoveFile
            | Self::CreateDir
            | Self::RemoveDir
            | Self::SyncDir
            | Self::Write
            | Self::SetLength
            | Self::Allocate
            | Self::PunchHole
            | Self::Zero
            | Self::SyncData => true,
            Self::OpenRead
            | Self::OpenPastCache
            | Self::OpenWrite
            | Self::List
            | Self::Canonical
            | Self::Exists
            | Self::BlockSize
            | Self::FreeBytes
            | Self::LockDir
            | Self::Read
            | Self::Length
            | Self::Advise
            | Self::ReadAhead
            | Self::Load
            | Self::Unload
            | Self::WriteBehind
            | Self::PartPages
            | Self::Map => false,
        }
    }
}

/// Makes the testing world.
#[derive(Debug)]
pub struct FaultEnv;

impl FaultEnv {
    /// Wraps the files of `inner`. Until the handle is told otherwise nothing fails.
    #[expect(
        clippy::new_ret_no_self,
        reason = "the product is an ordinary Env and the handle that steers it"
    )]
    pub fn new(inner: Env) -> (Env, Arc<Faults>) {
        let faults = Arc::new(Faults::default());
        let fs = Arc::new(FaultFs::new(inner.fs, Arc::clone(&faults)));
        (Env { fs, ..inner }, faults)
    }
}

/// Steers and observes a [`FaultEnv`]. A file is named by the path that it was opened or created under, also
/// after a rename, and chosen by how that path ends: `".vlog"`, `"CURRENT"`, or `""` for all.
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<State>,
    space: Space,
    watch: Watch,
}

#[derive(Debug, Default)]
struct State {
    counts: Counts,
    faults: Vec<Fault>,
    unsupported: HashSet<Call>,
    strikes: Vec<Strike>,
}

/// A call that an injected fault has failed.
#[derive(Debug, Clone)]
pub struct Strike {
    /// The call.
    pub call: Call,
    /// Its file.
    pub path: PathBuf,
    /// Who made it.
    pub thread: ThreadId,
}

impl Faults {
    /// How many calls of a kind there were, failed ones included.
    pub fn count(&self, call: Call) -> u64 {
        self.count_of(call, "")
    }

    /// How many calls of a kind there were for paths that end with `suffix`.
    pub fn count_of(&self, call: Call, suffix: &str) -> u64 {
        self.state.lock().counts.sum(call, suffix).calls
    }

    /// Bytes that calls of a kind ([`Call::Read`], [`Call::Write`] or [`Call::Allocate`]) have moved or reserved
    /// in files whose path ends with `suffix`.
    pub fn bytes_of(&self, call: Call, suffix: &str) -> u64 {
        self.state.lock().counts.sum(call, suffix).bytes
    }

    /// Sets every counter to zero.
    pub fn reset_counts(&self) {
        self.state.lock().counts = Counts::default();
    }

    /// Adds a fault. Several may be in force; the first that strikes decides.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    /// Removes all faults that were injected.
    pub fn heal(&self) {
        self.state.lock().faults.clear();
    }

    /// How many calls an injected fault has failed: a test that injects one should see that it struck.
    pub fn triggered(&self) -> u64 {
        self.state.lock().strikes.len() as u64
    }

    /// The calls that an injected fault has failed, in their order.
    pub fn strikes(&self) -> Vec<Strike> {
        self.state.lock().strikes.clone()
    }

    /// Makes every call of a kind fail with [`io::ErrorKind::Unsupported`], or ends that.
    pub fn set_unsupported(&self, call: Call, unsupported: bool) {
        let mut state = self.state.lock();
        if unsupported {
            state.unsupported.insert(call);
        } else {
            state.unsupported.remove(&call);
        }
    }

    /// Limits the sum of file lengths that this world's calls have added (less what they gave back) to `bytes`;
    /// `None` lifts the limit. What does not fit fails with [`io::ErrorKind::StorageFull`].
    pub fn set_quota(&self, bytes: Option<u64>) {
        self.space.set_quota(bytes);
    }

    /// Bytes that count against the quota at present.
    pub fn space_used(&self) -> u64 {
        self.space.used()
    }

    /// Calls `watcher` before each call from now on, failed ones included, on the thread that makes it. No lock is
    /// held meanwhile, so it may take its time, look at the files, or wait for another thread.
    pub fn watch(&self, watcher: impl Fn(Call, &Path) + Send + Sync + 'static) {
        self.watch.begin(Arc::new(watcher));
    }

    /// Ends the watch. A call that is being watched goes on being so.
    pub fn unwatch(&self) {
        self.watch.end();
    }

    /// Counts a call and says what shall become of it.
    fn judge(&self, call: Call, path: &Path) -> Verdict {
        self.watch.show(call, path);
        let mut state = self.state.lock();
        state.counts.add_call(call, path);
        if state.unsupported.contains(&call) {
            return Verdict::Fail(io::ErrorKind::Unsupported.into());
        }
        let Some(failure) = state.faults.iter_mut().find_map(|fault| fault.strike(call, path)) else {
            return Verdict::Proceed;
        };
        state.strikes.push(Strike { call, path: path.to_owned(), thread: thread::current().id() });
        match failure {
            Failure::Kind(kind) => Verdict::Fail(kind.into()),
            Failure::Errno(errno) => Verdict::Fail(io::Error::from_raw_os_error(errno)),
            Failure::ShortWrite => Verdict::DoHalf(io::Error::from_raw_os_error(EIO)),
            Failure::WholeWrite => Verdict::Do(io::Error::from_raw_os_error(EIO)),
        }
    }

    /// Counts a call, which fails if a fault says so. For the calls that cannot be done by halves.
    fn check(&self, call: Call, path: &Path) -> io::Result<()> {
        match self.judge(call, path) {
            Verdict::Proceed => Ok(()),
            Verdict::Fail(error) | Verdict::DoHalf(error) | Verdict::Do(error) => Err(error),
        }
    }

    fn add_bytes(&self, call: Call, path: &Path, bytes: u64) {
        self.state.lock().counts.add_bytes(call, path, bytes);
    }
}
