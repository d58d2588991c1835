//! Paths of the simulated disk.

use std::io;
use std::path::{Path, PathBuf};

use super::directory::Lock;
use super::disk::Shared;
use super::file::{Handle, SimFile};
use super::state::{NodeId, ROOT, State};
use crate::base::sync::{Arc, PlainMutexGuard, interleave};
use crate::env::{DirLock, File, Fs, LockMode, ReadQueue};

/// The disk's file system.
#[derive(Debug)]
pub struct SimFs {
    shared: Arc<Shared>,
}

impl SimFs {
    /// The file system of a disk.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Begins a call.
    fn begin(&self, call: &str, path: &Path) -> PlainMutexGuard<'_, State> {
        let mut state = self.shared.lock();
        state.note(call, path.as_os_str().as_encoded_bytes(), &[], &[]);
        state
    }

    fn open(
        &self,
        state: PlainMutexGuard<'_, State>,
        node: NodeId,
        writable: bool,
    ) -> io::Result<Arc<dyn File>> {
        let handle = Handle::open(&self.shared, state, node)?;
        Ok(Arc::new(SimFile::new(handle, writable)))
    }
}

impl Fs for SimFs {
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let state = self.begin("open_read", path);
        let node = state.find(path)?;
        self.open(state, node, false)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let state = self.begin("open_write", path);
        let node = state.find(path)?;
        self.open(state, node, true)
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut state = self.begin("create_new", path);
        let (parent, name) = find_vacant(&state, path)?;
        let node = state.add_node(false);
        state.name(parent, None, name, node)?;
        self.open(state, node, true)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin("rename", from);
        state.note("to", to.as_os_str().as_encoded_bytes(), &[], &[]);
        let node = state.find(from)?;
        let ((from_parent, from_name), (to_parent, to_name)) =
            (state.find_parent(from)?, state.find_parent(to)?);
        if from_parent != to_parent || state.directory(node).is_ok() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // Two names of one file stay as they are, as POSIX has it.
        if state.find(to).is_ok_and(|replaced| replaced == node) {
            return Ok(());
        }
        state.name(to_parent, Some(from_name), to_name, node)?;
        state.sweep();
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin("hard_link", from);
        state.note("to", to.as_os_str().as_encoded_bytes(), &[], &[]);
        let node = state.find(from)?;
        state.file(node)?;
        let (parent, name) = find_vacant(&state, to)?;
        state.name(parent, None, name, node)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin("remove_file", path);
        let node = state.find(path)?;
        state.file(node)?;
        let (parent, name) = state.find_parent(path)?;
        state.unname(parent, name)?;
        state.sweep();
        Ok(())
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin("create_dir_all", path);
        let missing: Vec<_> = path.ancestors().take_while(|path| state.find(path).is_err()).collect();
        for path in missing.into_iter().rev() {
            let (parent, name) = state.find_parent(path)?;
            let node = state.add_node(true);
            state.name(parent, None, name, node)?;
        }
        let node = state.find(path)?;
        state.directory(node).map(drop)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin("remove_dir", path);
        let node = state.find(path)?;
        if !state.directory(node)?.names().is_empty() || node == ROOT {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let (parent, name) = state.find_parent(path)?;
        state.unname(parent, name)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.begin("list", path);
        let node = state.find(path)?;
        Ok(state.directory(node)?.names().keys().cloned().collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.begin("exists", path).find(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn block_bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(self.begin("block_bytes", path).block_bytes())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin("sync_dir", path);
        let node = state.find(path)?;
        state.sync_directory(node)?;
        state.sweep();
        drop(state);
        // What others do between the sync and the return is not covered by it.
        interleave();
        Ok(())
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }

    fn open_files_max(&self) -> u64 {
        u64::MAX
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let state = self.begin("free_bytes", path);
        Ok(state.blocks_free().saturating_mul(state.block_bytes()))
    }

    fn read_queue(&self, _depth: u32) -> Option<Box<dyn ReadQueue>> {
        None
    }

    fn lock_dir(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn DirLock>> {
        let mut state = self.begin("lock_dir", path);
        let node = state.find(path)?;
        let lock = &mut state.directory_mut(node)?.lock;
        *lock = match (mode, &*lock) {
            (LockMode::Exclusive, Lock::Free) => Lock::Exclusive,
            (LockMode::Shared, Lock::Free) => Lock::Shared(1),
            (LockMode::Shared, Lock::Shared(holders)) => Lock::Shared(holders + 1),
            _ => return Err(io::ErrorKind::WouldBlock.into()),
        };
        drop(state);
        Ok(Box::new(SimDirLock { shared: Arc::clone(&self.shared), node, path: path.to_owned() }))
    }
}

/// Where a new name is to be.
fn find_vacant<'a>(state: &State, path: &'a Path) -> io::Result<(NodeId, &'a str)> {
    let (parent, name) = state.find_parent(path)?;
    if state.directory(parent)?.names().contains_key(name) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    Ok((parent, name))
}

/// A held lock.
#[derive(Debug)]
struct SimDirLock {
    shared: Arc<Shared>,
    node: NodeId,
    path: PathBuf,
}

impl DirLock for SimDirLock {
    fn is_ours(&self) -> bool {
        true
    }
}

impl Drop for SimDirLock {
    fn drop(&mut self) {
        let mut state = self.shared.lock_at_once();
        state.note("unlock_dir", self.path.as_os_str().as_encoded_bytes(), &[], &[]);
        let directory = state.directory_mut(self.node).expect("directories are never forgotten");
        directory.lock = match directory.lock {
            Lock::Shared(holders) if holders > 1 => Lock::Shared(holders - 1),
            _ => Lock::Free,
        };
    }
}
