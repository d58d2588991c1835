//! Directories: listing them, making their names durable, locking them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::retry_on_intr;

use super::fs::open_flags;
use crate::env::{DirLock, LockMode};

/// Opens a directory. A symbolic link is followed: people do put databases on other disks that way.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(open_flags(OFlags::DIRECTORY)).open(path)
}

/// The names in a directory. One that is not UTF-8 was not made by the engine and is left out.
pub fn list(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        if let Ok(name) = entry?.file_name().into_string() {
            names.push(name);
        }
    }
    Ok(names)
}

/// Makes the names in a directory durable.
pub fn sync(path: &Path) -> io::Result<()> {
    open(path)?.sync_all()
}

/// Bytes free for everybody on the file system of a directory.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let of = retry_on_intr(|| rustix::fs::statvfs(path))?;
    Ok(if of.f_blocks == 0 { u64::MAX } else { of.f_bavail.saturating_mul(of.f_frsize) })
}

/// Takes the lock on a directory without waiting.
pub fn lock(path: &Path, mode: LockMode) -> io::Result<PosixDirLock> {
    let directory = open(path)?;
    let taken = match mode {
        LockMode::Shared => directory.try_lock_shared(),
        LockMode::Exclusive => directory.try_lock(),
    };
    match taken {
        Ok(()) => Ok(PosixDirLock { directory, owner: std::process::id() }),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// A `flock(2)` on the directory itself, so that there is no lock file to go stale, be copied or be deleted. It
/// belongs to this one descriptor: a second open of the same directory, even by the same process, gets a
/// descriptor of its own and is refused. The kernel releases it when the process dies.
#[derive(Debug)]
pub struct PosixDirLock {
    directory: File,
    /// The process that took the lock.
    owner: u32,
}

impl DirLock for PosixDirLock {}

impl Drop for PosixDirLock {
    fn drop(&mut self) {
        // Closing alone would not do: a child that another thread is just starting holds a copy of every
        // descriptor until it executes its program, and the lock with it. But a forked child that drops its
        // copy of the engine must not unlock its parent's directory.
        if std::process::id() == self.owner {
            let unlocked = self.directory.unlock();
            debug_assert!(unlocked.is_ok(), "a held lock can be released: {unlocked:?}");
        }
    }
}
