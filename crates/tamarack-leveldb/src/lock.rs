//! The lock that keeps LevelDB out while a directory is read, and keeps us out while LevelDB has it.
//!
//! A program with the database open holds a write lock of POSIX on the file `LOCK`. A read lock conflicts with it just as well,
//! and needs no right to write; so nothing in the directory changes, and several may read it. goleveldb locks the same file in the
//! way of BSD, of which locks of POSIX know nothing, so it is locked in both.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::names::LOCK;

/// Holds the lock until it is dropped, unless there was nothing to lock.
///
/// A lock of POSIX belongs to the process: it also goes when the process opens the file once more and closes it.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Locks `directory`; none if there is no file to lock, as in a copy of a directory.
    ///
    /// # Errors
    /// [`Error::Locked`]; [`Error::Io`].
    pub fn take(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(LOCK);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", &path, error)),
        };
        let shared = FlockOperation::NonBlockingLockShared;
        match fcntl_lock(&file, shared).and_then(|()| flock(&file, shared)) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::ACCESS | Errno::AGAIN) => Err(Error::Locked { directory: directory.to_path_buf() }),
            Err(error) => Err(Error::io("lock", &path, io::Error::from(error))),
        }
    }
}
