//! The wrapped file system: every call is judged, then passed on.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::queue::EagerQueue;
use super::rule::Verdict;
use super::{Call, Faults};
use crate::base::sync::Arc;
use crate::env::{Access, DirLock, File, Fs, Loaded, LockMode, Mapping, ReadQueue};

/// A file system under observation.
#[derive(Debug)]
pub struct FaultFs {
    inner: Arc<dyn Fs>,
    faults: Arc<Faults>,
}

impl FaultFs {
    /// Wraps `inner`.
    pub fn new(inner: Arc<dyn Fs>, faults: Arc<Faults>) -> Self {
        Self { inner, faults }
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultFile { inner, path: path.to_owned(), faults: Arc::clone(&self.faults) })
    }

    /// The length of the file at `path`, 0 if there is none.
    fn len_at(&self, path: &Path) -> io::Result<u64> {
        if self.inner.exists(path)? { self.inner.open_read(path)?.len() } else { Ok(0) }
    }
}

impl Fs for FaultFs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.faults.check(Call::OpenRead, path)?;
        Ok(self.wrap(path, self.inner.open_read(path)?))
    }

    fn open_past_cache(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.faults.check(Call::OpenPastCache, path)?;
        Ok(self.wrap(path, self.inner.open_past_cache(path)?))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.faults.check(Call::OpenWrite, path)?;
        Ok(self.wrap(path, self.inner.open_write(path)?))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.faults.check(Call::Create, path)?;
        Ok(self.wrap(path, self.inner.create_new(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.check(Call::Rename, to)?;
        let replaced = if from == to { 0 } else { self.len_at(to)? };
        self.faults.space.free(replaced, || self.inner.rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.check(Call::Link, to)?;
        let shared = self.len_at(from)?;
        self.faults.space.share(shared, || self.inner.hard_link(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Call::RemoveFile, path)?;
        let removed = self.len_at(path)?;
        self.faults.space.free(removed, || self.inner.remove_file(path))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Call::CreateDir, path)?;
        self.inner.create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Call::RemoveDir, path)?;
        self.inner.remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.faults.check(Call::List, path)?;
        self.inner.list(path)
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.faults.check(Call::Canonical, path)?;
        self.inner.canonical(path)
    }

    fn open_files_max(&self) -> u64 {
        self.inner.open_files_max()
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.faults.check(Call::Exists, path)?;
        self.inner.exists(path)
    }

    fn block_bytes(&self, path: &Path) -> io::Result<u64> {
        self.faults.check(Call::BlockSize, path)?;
        self.inner.block_bytes(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.faults.check(Call::SyncDir, path)?;
        self.inner.sync_dir(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        self.faults.check(Call::FreeBytes, path)?;
        Ok(self.inner.free_bytes(path)?.min(self.faults.space.free_bytes()))
    }

    fn lock_dir(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn DirLock>> {
        self.faults.check(Call::LockDir, path)?;
        self.inner.lock_dir(path, mode)
    }

    fn read_queue(&self, depth: u32) -> Option<Box<dyn ReadQueue>> {
        Some(Box::new(EagerQueue::new(depth)))
    }
}

/// A file under observation.
#[derive(Debug)]
struct FaultFile {
    inner: Arc<dyn File>,
    path: PathBuf,
    faults: Arc<Faults>,
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.faults.check(Call::Read, &self.path)?;
        let read = self.inner.read_at(buf, offset)?;
        self.faults.add_bytes(Call::Read, &self.path, read as u64);
        Ok(read)
    }

    fn read_cached(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        // One that finds nothing is no read: another follows.
        let found = self.inner.read_cached(buf, offset)?;
        if found {
            self.faults.check(Call::Read, &self.path)?;
            self.faults.add_bytes(Call::Read, &self.path, buf.len() as u64);
        }
        Ok(found)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let (written, outcome) = match self.faults.judge(Call::Write, &self.path) {
            Verdict::Proceed => (buf, Ok(())),
            Verdict::DoHalf(error) => (&buf[..buf.len() / 2], Err(error)),
            Verdict::Do(error) => (buf, Err(error)),
            Verdict::Fail(error) => return Err(error),
        };
        self.faults.space.write(&*self.inner, written, offset)?;
        self.faults.add_bytes(Call::Write, &self.path, written.len() as u64);
        outcome
    }

    fn len(&self) -> io::Result<u64> {
        self.faults.check(Call::Length, &self.path)?;
        self.inner.len()
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        self.faults.check(Call::Length, &self.path)?;
        self.inner.allocated_bytes()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.faults.check(Call::SetLength, &self.path)?;
        self.faults.space.resize(&*self.inner, len, |file| file.set_len(len))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.faults.check(Call::Allocate, &self.path)?;
        let end = offset.checked_add(len).ok_or(io::ErrorKind::FileTooLarge)?;
        self.faults.space.resize(&*self.inner, end, |file| file.allocate(offset, len))?;
        self.faults.add_bytes(Call::Allocate, &self.path, len);
        Ok(())
    }

    fn links(&self) -> io::Result<u64> {
        self.faults.check(Call::Length, &self.path)?;
        self.inner.links()
    }

    fn is_rewritten_in_place(&self) -> io::Result<bool> {
        // What is counted here is the same on every file system.
        Ok(true)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.faults.check(Call::PunchHole, &self.path)?;
        self.inner.punch_hole(offset, len)?;
        self.faults.add_bytes(Call::PunchHole, &self.path, len);
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.faults.check(Call::Zero, &self.path)?;
        let end = offset.checked_add(len).ok_or(io::ErrorKind::FileTooLarge)?;
        self.faults.space.resize(&*self.inner, end, |file| file.zero(offset, len))
    }

    fn write_behind(&self, offset: u64, len: u64) -> io::Result<()> {
        self.faults.check(Call::WriteBehind, &self.path)?;
        self.inner.write_behind(offset, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.faults.check(Call::SyncData, &self.path)?;
        self.inner.sync_data()
    }

    fn read_ahead(&self, offset: u64, len: u64) -> io::Result<()> {
        self.faults.check(Call::ReadAhead, &self.path)?;
        self.inner.read_ahead(offset, len)
    }

    fn load(&self, range: Range<u64>) -> io::Result<Loaded> {
        self.faults.check(Call::Load, &self.path)?;
        self.inner.load(range)
    }

    fn unload(&self, range: Range<u64>) -> io::Result<()> {
        self.faults.check(Call::Unload, &self.path)?;
        self.inner.unload(range)
    }

    fn part_pages(&self, range: Range<u64>) -> io::Result<()> {
        self.faults.check(Call::PartPages, &self.path)?;
        self.inner.part_pages(range)
    }

    fn advise(&self, access: Access) -> io::Result<()> {
        self.faults.check(Call::Advise, &self.path)?;
        self.inner.advise(access)
    }

    fn map(&self, len: u64) -> io::Result<Arc<dyn Mapping>> {
        self.faults.check(Call::Map, &self.path)?;
        self.inner.map(len)
    }
}
