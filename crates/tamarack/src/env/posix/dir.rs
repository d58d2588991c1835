//! Directories: listing them, making their names durable, locking them.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
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
    loop {
        let directory = open(path)?;
        let taken = match mode {
            LockMode::Shared => directory.try_lock_shared(),
            LockMode::Exclusive => directory.try_lock(),
        };
        taken.map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        // Whoever had the lock until now may have removed the directory, and somebody may have made, and locked, another in its place.
        if is_at(&directory, path)? {
            return Ok(PosixDirLock { directory, owner: std::process::id() });
        }
    }
}

/// Whether `path` names `directory`.
fn is_at(directory: &File, path: &Path) -> io::Result<bool> {
    let id = |of: Metadata| (of.dev(), of.ino());
    Ok(id(directory.metadata()?) == id(std::fs::metadata(path)?))
}

/// A `flock(2)` on the directory itself, so that there is no lock file to go stale, be copied or be deleted. It
/// belongs to this one descriptor: a second open of the same directory, even by the same process, gets a
/// descriptor of its own and is refused. The kernel releases it when the process dies, and those that were forked from it
/// while it was held.
#[derive(Debug)]
pub struct PosixDirLock {
    directory: File,
    /// The process that took the lock.
    owner: u32,
}

impl DirLock for PosixDirLock {
    fn is_ours(&self) -> bool {
        std::process::id() == self.owner
    }
}

impl Drop for PosixDirLock {
    fn drop(&mut self) {
        // Closing alone would not do: a child that another thread is just starting holds a copy of every
        // descriptor until it executes its program, and the lock with it. But a forked child that drops its
        // copy of the engine must not unlock its parent's directory.
        if self.is_ours() {
            let unlocked = self.directory.unlock();
            debug_assert!(unlocked.is_ok(), "a held lock can be released: {unlocked:?}");
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_made_anew_is_another() {
        let parent = tempfile::tempdir().expect("a directory");
        let path = parent.path().join("db");
        std::fs::create_dir(&path).expect("created");
        let old = open(&path).expect("it is there");
        assert!(is_at(&old, &path).expect("it is there"));
        std::fs::remove_dir(&path).expect("it is empty");
        let error = is_at(&old, &path).expect_err("nothing is there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        std::fs::create_dir(&path).expect("created");
        assert!(!is_at(&old, &path).expect("another is there"));
    }
}
