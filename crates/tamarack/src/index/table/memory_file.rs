//! Files in memory for the tests of tables and caches.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::base::sync::{Arc, Mutex};
use crate::env::{Access, DirLock, File, Fs, LockMode, Mapping, ReadQueue};

/// A file in memory.
#[derive(Debug, Default)]
pub struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
    reads: Mutex<u64>,
    synced: Mutex<bool>,
    /// What is read without waiting, and how much of the rest was; all of it unless somebody says otherwise.
    cached: Mutex<Option<Cached>>,
}

#[derive(Debug, Default)]
struct Cached {
    ranges: Vec<Range<u64>>,
    missed: u64,
    waited: u64,
}

impl Cached {
    fn has(&self, range: Range<u64>) -> bool {
        let mut at = range.start;
        while at < range.end {
            let Some(there) = self.ranges.iter().find(|there| there.contains(&at)) else { return false };
            at = there.end;
        }
        true
    }
}

impl MemoryFile {
    /// A file that holds `bytes`.
    pub fn with(bytes: Vec<u8>) -> Arc<Self> {
        Arc::new(Self { bytes: Mutex::new(bytes), ..Self::default() })
    }

    /// What it holds.
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().clone()
    }

    /// How often it was read.
    pub fn reads(&self) -> u64 {
        *self.reads.lock()
    }

    /// From now on only what is read ahead can be read without waiting.
    pub fn evict(&self) {
        *self.cached.lock() = Some(Cached::default());
    }

    /// How often since then something was to be read without waiting, and could not be; and all that was read ahead.
    pub fn missed(&self) -> (u64, Vec<Range<u64>>) {
        let cached = self.cached.lock();
        cached.as_ref().map_or((0, Vec::new()), |cached| (cached.missed, cached.ranges.clone()))
    }

    /// How often since then something was wanted that nobody had asked to be read ahead until then.
    pub fn waited(&self) -> u64 {
        self.cached.lock().as_ref().map_or(0, |cached| cached.missed + cached.waited)
    }

    /// Whether everything written has been synced.
    pub fn is_synced(&self) -> bool {
        *self.synced.lock()
    }
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl File for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        *self.reads.lock() += 1;
        if let Some(cached) = &mut *self.cached.lock() {
            cached.waited += u64::from(!cached.has(offset..offset + buf.len() as u64));
        }
        let bytes = self.bytes.lock();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn read_cached(&self, buf: &mut [u8], offset: u64) -> io::Result<bool> {
        if let Some(cached) = &mut *self.cached.lock()
            && !cached.has(offset..offset + buf.len() as u64)
        {
            cached.missed += 1;
            return Ok(false);
        }
        Ok(self.read_at(buf, offset)? == buf.len())
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut bytes = self.bytes.lock();
        let end = offset as usize + buf.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(buf);
        *self.synced.lock() = false;
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn allocated_bytes(&self) -> io::Result<u64> {
        self.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().resize(len as usize, 0);
        Ok(())
    }

    fn allocate(&self, _offset: u64, _len: u64) -> io::Result<()> {
        unsupported()
    }

    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }

    fn punch_hole(&self, _offset: u64, _len: u64) -> io::Result<()> {
        unsupported()
    }

    fn zero(&self, _offset: u64, _len: u64) -> io::Result<()> {
        unsupported()
    }

    fn write_behind(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        *self.synced.lock() = true;
        Ok(())
    }

    fn read_ahead(&self, offset: u64, len: u64) -> io::Result<()> {
        if let Some(cached) = &mut *self.cached.lock() {
            cached.ranges.push(offset..offset + len);
        }
        Ok(())
    }

    fn advise(&self, _access: Access) -> io::Result<()> {
        unsupported()
    }

    fn map(&self, _len: u64) -> io::Result<Arc<dyn Mapping>> {
        unsupported()
    }
}

/// Files in memory that can be opened for reading.
#[derive(Debug, Default)]
pub struct MemoryFs {
    /// The files.
    pub files: Mutex<BTreeMap<PathBuf, Arc<MemoryFile>>>,
    /// How often one was opened.
    pub opens: Mutex<u64>,
}

impl Fs for MemoryFs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        *self.opens.lock() += 1;
        let file = self.files.lock().get(path).cloned().ok_or(io::ErrorKind::NotFound)?;
        Ok(file)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open_read(path)
    }

    fn create_new(&self, _path: &Path) -> io::Result<Arc<dyn File>> {
        unsupported()
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        unsupported()
    }

    fn hard_link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        unsupported()
    }

    fn remove_file(&self, _path: &Path) -> io::Result<()> {
        unsupported()
    }

    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        unsupported()
    }

    fn remove_dir(&self, _path: &Path) -> io::Result<()> {
        unsupported()
    }

    fn list(&self, _path: &Path) -> io::Result<Vec<String>> {
        unsupported()
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }

    fn open_files_max(&self) -> u64 {
        u64::MAX
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.files.lock().contains_key(path))
    }

    fn block_bytes(&self, _path: &Path) -> io::Result<u64> {
        unsupported()
    }

    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        unsupported()
    }

    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        unsupported()
    }

    fn read_queue(&self, _depth: u32) -> Option<Box<dyn ReadQueue>> {
        None
    }

    fn lock_dir(&self, _path: &Path, _mode: LockMode) -> io::Result<Box<dyn DirLock>> {
        unsupported()
    }
}
