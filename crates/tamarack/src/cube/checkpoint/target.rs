//! The directory in which a checkpoint is made.
//!
//! Owns: the directory from its creation until the checkpoint is in force. Invariants: nothing is written into a
//! directory that was not empty; a target that is dropped unfinished removes everything that was made, `CURRENT` first.

use std::io;
use std::path::{Path, PathBuf};

use super::CheckpointReport;
use crate::base::error::{Error, Result};
use crate::base::ids::{CubeId, SegmentId};
use crate::base::keys::KeyOrder;
use crate::base::names::FileName;
use crate::base::segment::SegmentMeta;
use crate::env::{Access, DirLock, Fs, LockMode, read_exact_at, sync_directory_name};
use crate::vlog::segment::seal_file;

const CHUNK_BYTES: u64 = 1 << 20;

/// A directory that is being filled.
#[derive(Debug)]
pub struct Target<'a> {
    fs: &'a dyn Fs,
    path: &'a Path,
    /// Directories that did not exist before, the innermost first.
    made: Vec<PathBuf>,
    /// Held since the directory was found empty: what is in it now was made here.
    lock: Option<Box<dyn DirLock>>,
    report: CheckpointReport,
    finished: bool,
}

impl<'a> Target<'a> {
    /// Makes the directory `path`, or takes it if it is there and empty. Its name is durable when this returns.
    ///
    /// # Errors
    /// `InvalidArgument` if it is something else than an empty directory, `Locked`, `NoSpace`, `Io`.
    pub fn claim(fs: &'a dyn Fs, path: &'a Path) -> Result<Self> {
        let mut target = Self {
            fs,
            path,
            made: Vec::new(),
            lock: None,
            report: CheckpointReport::default(),
            finished: false,
        };
        let exists = |path: &Path| fs.exists(path).map_err(|error| Error::io("look for", path, error));
        if exists(path)? {
            target.check_empty()?;
        } else {
            for directory in path.ancestors().filter(|ancestor| !ancestor.as_os_str().is_empty()) {
                if exists(directory)? {
                    break;
                }
                target.made.push(directory.to_path_buf());
            }
            fs.create_dir_all(path).map_err(|error| Error::io("create", path, error))?;
        }
        sync_directory_name(fs, path)?;
        let lock = fs.lock_dir(path, LockMode::Exclusive).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => Error::locked(format!(
                "{} is in use: a checkpoint needs a directory of its own",
                path.display()
            )),
            _ => Error::io("lock", path, error),
        })?;
        // Somebody may have had it in the meantime.
        target.check_empty()?;
        target.lock = Some(lock);
        Ok(target)
    }

    fn check_empty(&self) -> Result<()> {
        let refuse = || {
            Error::invalid_argument(format!(
                "{} is not an empty directory: a checkpoint needs one that is empty, or makes it (a checkpoint \
                 that was interrupted can be destroyed like a database)",
                self.path.display()
            ))
        };
        match self.fs.list(self.path) {
            Ok(names) if names.is_empty() => Ok(()),
            Ok(_) => Err(refuse()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(refuse()),
            Err(error) => Err(Error::io("list", self.path, error)),
        }
    }

    /// Gives the file `name` of `directory`, of `bytes`, the same name here. Where that cannot be it is copied.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn share(&mut self, directory: &Path, name: FileName, bytes: u64) -> Result<()> {
        let to = name.path(self.path);
        match self.fs.hard_link(&name.path(directory), &to) {
            Ok(()) => {
                self.report.linked_files += 1;
                self.report.linked_bytes += bytes;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => self.copy(directory, name, bytes),
            Err(error) => Err(Error::io("link", &to, error)),
        }
    }

    /// Copies the first `bytes` of the file `name` of `directory`; the copy is durable, but not its name.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub fn copy(&mut self, directory: &Path, name: FileName, bytes: u64) -> Result<()> {
        let (from, to) = (name.path(directory), name.path(self.path));
        let source = self.fs.open_read(&from).map_err(|error| Error::io("open", &from, error))?;
        // Advice: without it the kernel reads ahead less.
        drop(source.advise(Access::Sequential));
        let file = self.fs.create_new(&to).map_err(|error| Error::io("create", &to, error))?;
        let mut chunk = Vec::new();
        let mut at = 0;
        while at < bytes {
            chunk.resize(CHUNK_BYTES.min(bytes - at) as usize, 0);
            read_exact_at(&*source, &mut chunk, at).map_err(|error| Error::io("read", &from, error))?;
            file.write_at(&chunk, at).map_err(|error| Error::io("write", &to, error))?;
            at += chunk.len() as u64;
        }
        file.sync_data().map_err(|error| Error::sync(&to, error))?;
        self.report.copied_files += 1;
        self.report.copied_bytes += bytes;
        Ok(())
    }

    /// Gives the copy `name` of a segment, whose records end at `end`, a footer. It is durable, but not its name.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; `Corruption` if it is not what was written.
    pub fn seal(
        &mut self,
        name: FileName,
        ids: (CubeId, SegmentId),
        end: u64,
        order: &KeyOrder,
    ) -> Result<SegmentMeta> {
        let meta = seal_file(self.fs, &name.path(self.path), ids, end, order)?;
        self.report.copied_bytes += meta.file_bytes - end;
        Ok(meta)
    }

    /// Makes the names of the files durable.
    ///
    /// # Errors
    /// `Io`.
    pub fn sync_names(&self) -> Result<()> {
        self.fs.sync_dir(self.path).map_err(|error| Error::sync(self.path, error))
    }

    /// Leaves the directory as it is: the checkpoint is in force.
    pub fn finish(mut self) -> CheckpointReport {
        self.finished = true;
        self.report
    }

    fn remove_files(&self) -> io::Result<()> {
        let mut names = self.fs.list(self.path)?;
        let current = FileName::Current.to_string();
        if names.contains(&current) {
            self.fs.remove_file(&self.path.join(&current))?;
            self.fs.sync_dir(self.path)?;
        }
        names.retain(|name| *name != current);
        // One that stays is no reason to leave others.
        let removed = names.iter().map(|name| self.fs.remove_file(&self.path.join(name)));
        removed.fold(Ok(()), io::Result::and)
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        // The first error is the one to report. What cannot be removed either is no database without its CURRENT.
        if self.lock.is_some() {
            drop(self.remove_files());
        }
        for directory in &self.made {
            drop(self.fs.remove_dir(directory));
        }
    }
}
