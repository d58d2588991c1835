//! What the tests of the index and the cube share: a file system in memory that can be told to fail, and an
//! observer that remembers.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, Result};
use crate::base::names::FileName;
use crate::base::pointer::ValuePointer;
use crate::base::segment::Relocate;
use crate::base::sync::{Arc, Mutex};
use crate::env::{Access, DirLock, File, Fs, LockMode, Mapping, ReadQueue};

use super::version::FileObserver;

/// Files in memory. Nothing is ever lost; operations fail when a test says so.
#[derive(Debug, Default)]
pub struct MemoryFs {
    files: Mutex<BTreeMap<PathBuf, Arc<Bytes>>>,
    failing: Arc<Failing>,
    writes: Mutex<u64>,
}

#[derive(Debug, Default)]
struct Failing(Mutex<Option<(&'static str, usize)>>);

impl Failing {
    fn check(&self, operation: &'static str) -> io::Result<()> {
        let mut armed = self.0.lock();
        match armed.as_mut() {
            Some((name, left)) if *name == operation && *left == 0 => {
                *armed = None;
                Err(io::Error::other("told to fail"))
            }
            Some((name, left)) if *name == operation => {
                *left -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug, Default)]
struct Bytes {
    bytes: Arc<Mutex<Vec<u8>>>,
    failing: Arc<Failing>,
}

impl MemoryFs {
    pub fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Makes the operation (`write`, `sync`, `rename`, `link`, `sync_dir`, `create`) fail once, after `skip` successes.
    pub fn fail(&self, operation: &'static str, skip: usize) {
        *self.failing.0.lock() = Some((operation, skip));
    }

    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let file = Bytes { bytes: Arc::new(Mutex::new(bytes.to_vec())), failing: self.failing.clone() };
        self.files.lock().insert(path.to_path_buf(), Arc::new(file));
    }

    pub fn get(&self, path: &Path) -> Vec<u8> {
        self.files.lock().get(path).expect("the file is there").bytes.lock().clone()
    }

    pub fn names(&self, directory: &str) -> Vec<String> {
        self.list(Path::new(directory)).expect("listing does not fail")
    }

    /// How many files were created, renamed or removed.
    pub fn changes(&self) -> u64 {
        *self.writes.lock()
    }

    fn find(&self, path: &Path) -> io::Result<Arc<Bytes>> {
        self.files.lock().get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Fs for MemoryFs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.find(path)?)
    }
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(self.find(path)?)
    }
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.failing.check("create")?;
        if self.exists(path)? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        *self.writes.lock() += 1;
        self.put(path, b"");
        Ok(self.find(path)?)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.failing.check("rename")?;
        *self.writes.lock() += 1;
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_path_buf(), file);
        Ok(())
    }
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.failing.check("link")?;
        if self.exists(to)? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        *self.writes.lock() += 1;
        let file = self.find(from)?;
        self.files.lock().insert(to.to_path_buf(), file);
        Ok(())
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        *self.writes.lock() += 1;
        self.files.lock().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    fn remove_dir(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let files = self.files.lock();
        let inside = files.keys().filter(|file| file.parent() == Some(path));
        Ok(inside.filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect())
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
        Ok(4096)
    }
    fn sync_dir(&self, _path: &Path) -> io::Result<()> {
        self.failing.check("sync_dir")
    }
    fn free_bytes(&self, _path: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }
    fn read_queue(&self, _depth: u32) -> Option<Box<dyn ReadQueue>> {
        None
    }

    fn lock_dir(&self, _path: &Path, _mode: LockMode) -> io::Result<Box<dyn DirLock>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl File for Bytes {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.failing.check("read")?;
        let bytes = self.bytes.lock();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn read_cached(&self, _buf: &mut [u8], _offset: u64) -> io::Result<bool> {
        Ok(false)
    }
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.failing.check("write")?;
        let mut bytes = self.bytes.lock();
        let end = offset as usize + buf.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[offset as usize..end].copy_from_slice(buf);
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
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.set_len(self.len()?.max(offset + len))
    }
    fn links(&self) -> io::Result<u64> {
        Ok(1)
    }
    fn punch_hole(&self, offset: u64, len: u64) -> io::Result<()> {
        self.failing.check("punch")?;
        self.bytes.lock()[offset as usize..][..len as usize].fill(0);
        Ok(())
    }
    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.failing.check("zero")?;
        self.bytes.lock()[offset as usize..][..len as usize].fill(0);
        Ok(())
    }
    fn write_behind(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.failing.check("sync")
    }
    fn read_ahead(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn advise(&self, _access: Access) -> io::Result<()> {
        Ok(())
    }
    fn map(&self, len: u64) -> io::Result<Arc<dyn Mapping>> {
        Ok(Arc::new(MappedBytes { bytes: self.bytes.clone(), len }))
    }
}

/// A file in memory, mapped.
#[derive(Debug)]
struct MappedBytes {
    bytes: Arc<Mutex<Vec<u8>>>,
    len: u64,
}

#[expect(unsafe_code, reason = "the trait's contract; here every call is safe")]
impl Mapping for MappedBytes {
    fn len(&self) -> u64 {
        self.len
    }
    fn prefault(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn join_pages(&self, offset: u64, _len: u64) -> io::Result<Range<u64>> {
        Ok(offset..offset)
    }
    unsafe fn write(&self, offset: u64, bytes: &[u8]) {
        let start = offset as usize;
        self.bytes.lock()[start..start + bytes.len()].copy_from_slice(bytes);
    }
    unsafe fn bytes(&self, _offset: u64, _len: usize) -> &[u8] {
        panic!("the engine reads files, not mappings")
    }
}

/// Remembers which files left.
#[derive(Debug, Clone, Default)]
pub struct RecordedFiles(Arc<Mutex<(Vec<FileName>, Vec<Error>)>>);

impl RecordedFiles {
    pub fn removed(&self) -> Vec<String> {
        self.0.lock().0.iter().map(FileName::to_string).collect()
    }

    pub fn failures(&self) -> usize {
        self.0.lock().1.len()
    }
}

impl FileObserver for RecordedFiles {
    fn removing(&self, file: FileName) {
        self.0.lock().0.push(file);
    }
    fn failed(&self, error: Error) {
        self.0.lock().1.push(error);
    }
}

/// Relocation tables of a world in which nothing was moved.
#[derive(Debug)]
pub struct Unmoved;

impl Relocate for Unmoved {
    fn relocate(&self, _table: ValuePointer, pointer: ValuePointer) -> Result<Option<ValuePointer>> {
        Ok(Some(pointer))
    }
}

/// For compactions in that world.
pub fn unmoved() -> Arc<dyn Relocate> {
    Arc::new(Unmoved)
}
