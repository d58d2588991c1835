//! Writes a tree out of a database into a directory, bit for bit.
//!
//! Keys are data from elsewhere, so nothing is made outside the directory: names are checked, no symbolic link
//! is ever followed below the directory, and links are made only after every file. What is already there
//! stays unless it is equal or overwriting was asked for. Files appear whole or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tamarack::{Db, IterOptions};

use super::layout::{Companion, DIRECTORY_MODE, FILE_MODE, Layout, MODE_MASK, safe_path};
use crate::failure::{Failure, Result};
use crate::format::Encoding;
use crate::output;
use crate::progress::{Notices, Progress};
use crate::range::KeyRange;

/// What was done.
#[derive(Debug, Default)]
pub struct Restored {
    /// Regular files written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Symbolic links made.
    pub symlinks: u64,
    /// Directories that had a companion.
    pub directories: u64,
    /// Files and links that were already there and equal.
    pub unchanged: u64,
}

/// One run of an export.
#[derive(Debug)]
pub struct Restore<'a> {
    root: &'a Path,
    overwrite: bool,
    progress: &'a Progress,
    notices: &'a mut Notices,
    /// Directories known to be real directories, not links.
    directories: BTreeSet<PathBuf>,
    companions: BTreeMap<Vec<u8>, Companion>,
    done: Restored,
}

/// Why one entry was not restored.
enum Obstacle {
    /// It is left out, for this reason.
    Skip(String),
    /// Going on makes no sense.
    Stop(Failure),
}

type Step<T> = std::result::Result<T, Obstacle>;

impl<'a> Restore<'a> {
    /// Writes the tree that `layout` describes into `root`.
    pub fn run(
        db: &Db,
        layout: &Layout,
        root: &'a Path,
        overwrite: bool,
        progress: &'a Progress,
        notices: &'a mut Notices,
    ) -> Result<Restored> {
        fs::create_dir_all(root).map_err(|error| Failure::io("make", root, error))?;
        let mut this = Self {
            root,
            overwrite,
            progress,
            notices,
            directories: BTreeSet::new(),
            companions: BTreeMap::new(),
            done: Restored::default(),
        };
        this.read_companions(db, layout)?;
        for entry in entries(db, layout.keys())? {
            let (key, value) = entry?;
            let path = layout.path(&key);
            let result = this.file(path, &value);
            this.settle(path, result)?;
        }
        this.links_and_directories()?;
        Ok(this.done)
    }

    fn read_companions(&mut self, db: &Db, layout: &Layout) -> Result<()> {
        for entry in entries(db, layout.companion_keys())? {
            let (key, value) = entry?;
            let path = layout.companion_path(&key);
            match Companion::from_bytes(&value) {
                Some(companion) => {
                    self.companions.insert(path.to_vec(), companion);
                }
                None => self.settle(path, Err(Obstacle::Skip("its metadata cannot be read".into())))?,
            }
        }
        Ok(())
    }

    /// Turns a skipped entry into a notice.
    fn settle(&mut self, path: &[u8], result: Step<()>) -> Result<()> {
        match result {
            Ok(()) => Ok(()),
            Err(Obstacle::Skip(reason)) => {
                self.notices.add(self.progress, format!("{}: {reason}", Encoding::Utf8.line(path)));
                Ok(())
            }
            Err(Obstacle::Stop(failure)) => Err(failure),
        }
    }

    fn file(&mut self, path: &[u8], bytes: &[u8]) -> Step<()> {
        let mode = match self.companions.get(path) {
            Some(Companion::File(mode)) => *mode,
            Some(_) => return Err(Obstacle::Skip("it is a file, but its metadata says otherwise".into())),
            None => FILE_MODE,
        };
        let target = self.place(path)?;
        if let Some(metadata) = look(&target)? {
            if is_equal(&target, &metadata, bytes)? {
                set_mode(&target, mode)?;
                self.done.unchanged += 1;
                return Ok(());
            }
            self.may_replace(&metadata)?;
        }
        let temporary = target.with_file_name(format!(".tamarack-export-{}", std::process::id()));
        let written = fs::write(&temporary, bytes)
            .map_err(Obstacle::from)
            .and_then(|()| set_mode(&temporary, mode))
            .and_then(|()| Ok(fs::rename(&temporary, &target)?));
        if written.is_err() {
            // The error that matters is the first one; a temporary file that cannot be removed changes nothing.
            fs::remove_file(&temporary).ok();
        }
        written?;
        self.done.files += 1;
        self.done.bytes += bytes.len() as u64;
        self.progress.advance(bytes.len() as u64);
        self.progress.note(|| output::plural(self.done.files + self.done.unchanged, "file"));
        Ok(())
    }

    /// Links, then permissions of directories, the deepest first: a directory may not be writable afterwards.
    fn links_and_directories(&mut self) -> Result<()> {
        let companions = std::mem::take(&mut self.companions);
        for (path, companion) in companions.iter().rev() {
            if let Companion::Symlink(target) = companion {
                let result = self.link(path, target);
                self.settle(path, result)?;
            }
        }
        let directories = || {
            companions.iter().rev().filter_map(|(path, companion)| match companion {
                Companion::Directory(mode) => Some((path, *mode)),
                _ => None,
            })
        };
        for (path, _) in directories() {
            let result = self.place(path).and_then(|place| self.directory(&place));
            self.settle(path, result)?;
        }
        for (path, mode) in directories() {
            let Ok(place) = self.place(path) else { continue };
            if self.directories.contains(&place) {
                let result = set_mode(&place, mode);
                self.done.directories += u64::from(result.is_ok());
                self.settle(path, result)?;
            }
        }
        Ok(())
    }

    fn link(&mut self, path: &[u8], link_target: &[u8]) -> Step<()> {
        let target = self.place(path)?;
        if let Some(metadata) = look(&target)? {
            if metadata.is_symlink() && fs::read_link(&target)?.into_os_string().into_vec() == link_target {
                self.done.unchanged += 1;
                return Ok(());
            }
            self.may_replace(&metadata)?;
            fs::remove_file(&target)?;
        }
        symlink(OsStr::from_bytes(link_target), &target)?;
        self.done.symlinks += 1;
        Ok(())
    }

    fn may_replace(&self, metadata: &Metadata) -> Step<()> {
        if metadata.is_dir() {
            Err(Obstacle::Skip("a directory is in its place".into()))
        } else if !self.overwrite {
            Err(Obstacle::Skip("something else is there (--overwrite replaces it)".into()))
        } else {
            Ok(())
        }
    }

    /// Where `path` goes; makes the directories above it.
    fn place(&mut self, path: &[u8]) -> Step<PathBuf> {
        let relative = safe_path(path).map_err(|reason| Obstacle::Skip(reason.into()))?;
        let mut place = self.root.to_path_buf();
        let mut components = relative.components().peekable();
        while let Some(component) = components.next() {
            place.push(component);
            if components.peek().is_some() {
                self.directory(&place)?;
            }
        }
        Ok(place)
    }

    /// Makes sure that `place` is a real directory.
    fn directory(&mut self, place: &Path) -> Step<()> {
        if self.directories.contains(place) {
            return Ok(());
        }
        match look(place)? {
            Some(metadata) if metadata.is_dir() => {}
            Some(_) => {
                return Err(Obstacle::Skip(format!("{} is not a directory", place.display())));
            }
            None => {
                fs::create_dir(place)?;
                set_mode(place, DIRECTORY_MODE)?;
            }
        }
        self.directories.insert(place.to_path_buf());
        Ok(())
    }
}

fn entries(db: &Db, range: KeyRange) -> Result<impl Iterator<Item = tamarack::Result<(Vec<u8>, Vec<u8>)>>> {
    let options = IterOptions { start: range.start, end: range.end, ..IterOptions::default() };
    Ok(db.iter(&options)?.entries())
}

/// What is at `path`, links not followed.
fn look(path: &Path) -> Step<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_equal(path: &Path, metadata: &Metadata, bytes: &[u8]) -> Step<bool> {
    Ok(metadata.is_file() && metadata.len() == bytes.len() as u64 && fs::read(path)? == bytes)
}

fn set_mode(path: &Path, mode: u32) -> Step<()> {
    if fs::symlink_metadata(path)?.permissions().mode() & MODE_MASK != mode {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

impl From<io::Error> for Obstacle {
    /// A full device stops everything; other errors concern one file.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Stop(Failure::Io { action: "write a file".into(), source: error })
            }
            _ => Self::Skip(error.to_string()),
        }
    }
}
