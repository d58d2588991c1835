//! Paths: opening, creating, renaming and removing.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::direct::DirectFile;
use super::file::PosixFile;
use super::page_cache::cached_pages;
use super::{dir, or_unsupported};
use crate::base::sync::Arc;
use crate::env::{DirLock, File, Fs, LockMode, ReadQueue};

/// Files belong to their owner alone, whatever the umask allows.
const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;

/// The process's view of the file system.
#[derive(Debug)]
pub struct PosixFs;

impl Fs for PosixFs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open(path, OpenOptions::new().read(true))
    }

    fn open_past_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let file = open_file(path, OpenOptions::new().read(true), OFlags::empty())?;
        // What is newer there than on the device would have to be written for each read of it.
        if cached_pages(&file, 0, 1).is_none() {
            return Ok(Arc::new(PosixFile::new(file)));
        }
        match DirectFile::open(path) {
            Ok(direct) => Ok(Arc::new(PosixFile::past_cache(file, direct))),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Arc::new(PosixFile::new(file))),
            Err(error) => Err(error),
        }
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open(path, OpenOptions::new().read(true).write(true))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        open(path, OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        // File systems without hard links say EPERM; so do systems that keep them for a file's owner.
        rustix::fs::link(from, to)
            .map_err(|errno| or_unsupported(errno, &[Errno::XDEV, Errno::MLINK, Errno::PERM]))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        dir::list(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(path.to_path_buf()),
            found => found,
        }
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        // A dangling symbolic link exists: creating a file in its place would fail.
        match std::fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn block_bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(rustix::fs::statvfs(path)?.f_frsize)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        dir::sync(path)
    }

    fn open_files_max(&self) -> u64 {
        getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        dir::free_bytes(path)
    }

    fn lock_dir(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn DirLock>> {
        Ok(Box::new(dir::lock(path, mode)?))
    }

    #[cfg(target_os = "linux")]
    fn read_queue(&self, depth: u32) -> Option<Box<dyn ReadQueue>> {
        super::read_queue::Ring::new(depth).map(|ring| Box::new(ring) as Box<dyn ReadQueue>)
    }

    #[cfg(not(target_os = "linux"))]
    fn read_queue(&self, _depth: u32) -> Option<Box<dyn ReadQueue>> {
        None
    }
}

/// Opens a file with `flags`, never through a symbolic link in its place and never to be inherited by a child process (the
/// standard library always sets `O_CLOEXEC`).
pub fn open_file(path: &Path, options: &mut OpenOptions, flags: OFlags) -> io::Result<fs::File> {
    let file = options.custom_flags(open_flags(OFlags::NOFOLLOW | flags)).open(path)?;
    leave_reads_unnoted(&file);
    Ok(file)
}

/// When a file was last read is of use to nobody here, and noting it costs each read. Only its owner may leave that out: for others nothing
/// changes. It is asked for once the file is open, for one that was just created may have another owner than its creator, on file systems that map them.
fn leave_reads_unnoted(file: &fs::File) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if let Ok(flags) = rustix::fs::fcntl_getfl(file) {
        rustix::fs::fcntl_setfl(file, flags | OFlags::NOATIME).ok();
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = file;
}

fn open(path: &Path, options: &mut OpenOptions) -> io::Result<Arc<dyn File>> {
    Ok(Arc::new(PosixFile::new(open_file(path, options, OFlags::empty())?)))
}

/// Flags in the type that the standard library takes them in.
pub fn open_flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}
